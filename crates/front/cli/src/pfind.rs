//! The help, manual page and completions of `pfind`. The words of its expression come from their table in
//! [`millstream_inspect::find::PRIMARIES`].

use millstream_inspect::find::{Class, PRIMARIES, Primary};

use crate::options::{Command, EXTENSIONS, OptionSpec, Paragraph, Reference, Section, Syntax, flag, value};

const LEADING: &str = "Options before the starting points";

const LEADING_OPTIONS: [OptionSpec<()>; 5] = [
    flag((), Some(b'P'), &[], LEADING, "never follow symbolic links (the default)"),
    flag((), Some(b'H'), &[], LEADING, "follow symbolic links that are starting points"),
    flag((), Some(b'L'), &[], LEADING, "follow all symbolic links"),
    value((), Some(b'D'), &[], "FLAGS", LEADING, "accepted and ignored; -D help lists GNU's flags"),
    value(
        (),
        Some(b'O'),
        &[],
        "LEVEL",
        LEADING,
        "accepted and ignored: cheap tests always come first if the result is the same",
    ),
];

const SECTIONS: &[Section] = &[
    Section {
        title: "Operators",
        body: &[
            Paragraph::Text("In order of decreasing precedence:"),
            Paragraph::Terms(&[
                ("( EXPR )", "the value of EXPR; in a shell, the parentheses must be quoted"),
                ("! EXPR, -not EXPR", "true if EXPR is false"),
                (
                    "EXPR EXPR, EXPR -a EXPR, EXPR -and EXPR",
                    "the second is evaluated only if the first is true",
                ),
                ("EXPR -o EXPR, EXPR -or EXPR", "the second is evaluated only if the first is false"),
                ("EXPR , EXPR", "both are evaluated; the second gives the value"),
            ]),
            Paragraph::Text(
                "N is a number: exactly N, or +N for more than N, or -N for less. An expression with no action \
                 except -prune prints the files for which it is true.",
            ),
        ],
    },
    Section {
        title: "Formats",
        body: &[
            Paragraph::Text(
                "-printf understands the escapes \\a \\b \\c \\f \\n \\r \\t \\v \\\\ \\NNN (octal; \\c \
                 ends the output), and directives, which may have flags, a width and a precision between \
                 the % and the letter, as for printf(3):",
            ),
            Paragraph::Terms(&[
                ("%p %P %H", "path; path without the starting point; the starting point"),
                ("%f %h %d", "last component of the path; the path before it; depth"),
                ("%y %Y %l", "type; type of a link's target; target of a link"),
                ("%s %b %k %S", "size in bytes; 512-byte blocks; 1-KiB blocks; sparseness"),
                ("%i %n %D %F", "inode number; hard links; device; type of the file system"),
                ("%m %M", "permissions in octal; type and permissions as ls -l shows them"),
                ("%u %U %g %G", "owner; number of the owner; group; number of the group"),
                ("%a %c %t", "times of last access, attribute change and modification"),
                (
                    "%Ak %Bk %Ck %Tk",
                    "parts of the times of access, creation, attribute change and modification: @ for \
                     seconds since 1970, + for date and time, otherwise a letter as for strftime(3)",
                ),
            ]),
        ],
    },
    Section {
        title: "Order",
        body: &[Paragraph::Text(
            "Directories are read by several threads. A directory is printed before its contents, or after \
             them with -depth. The entries of a directory come in no particular order, and neither do the \
             starting points. Commands run one at a time. Nothing is printed after -quit.",
        )],
    },
    Section {
        title: "Exit status",
        body: &[Paragraph::Terms(&[
            ("0", "everything was examined"),
            (
                "1",
                "something could not be examined, a command of -exec ... {} + failed, or the command line is wrong",
            ),
        ])],
    },
];

/// The option table of `pfind`, for texts.
pub fn reference() -> Reference {
    let mut options = LEADING_OPTIONS.to_vec();
    options.extend(PRIMARIES.iter().map(option_of));
    let command = Command {
        name: "pfind",
        summary: "search for files in a directory hierarchy, in parallel",
        usage: &["[-H] [-L] [-P] [-Olevel] [-D FLAGS] [STARTING-POINT...] [EXPRESSION]"],
        description: &[
            "Evaluate EXPRESSION on every file at and below the STARTING-POINTs, the current directory if there is none. Without an expression, print all paths.",
        ],
        syntax: Syntax::Expression,
        // Leaked once per process.
        options: Vec::leak(options),
        long_order: &[],
        sections: SECTIONS,
    };
    Reference::from(&command)
}

fn option_of(primary: &'static Primary) -> OptionSpec<()> {
    let names: Vec<_> = primary.names.iter().map(|name| &name[1..]).collect();
    let (names, group) = (Vec::leak(names), group_of(primary));
    match primary.argument {
        "" => flag((), None, names, group, primary.help),
        argument => value((), None, names, argument, group, primary.help),
    }
}

fn group_of(primary: &Primary) -> &'static str {
    match primary.class {
        _ if primary.names[0].starts_with("--") => EXTENSIONS,
        _ if primary.names.contains(&"--help") || primary.names.contains(&"--version") => "Help",
        Class::GlobalOption => "Global options (always true)",
        Class::PositionalOption => "Positional options (always true)",
        Class::Test => "Tests",
        Class::Action => "Actions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{help, man_page};

    #[test]
    fn every_word_of_the_expression_is_explained() {
        let (text, page) = (help(&reference(), "pfind"), man_page(&reference()));
        for name in PRIMARIES.iter().flat_map(|primary| primary.names) {
            assert!(text.contains(name), "{name} is not in the help");
            assert!(page.contains(&name.replace('-', "\\-")), "{name} is not in the manual");
        }
    }
}
