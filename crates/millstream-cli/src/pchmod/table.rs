//! The options of `pchmod`.

use crate::attributes::{Id, Shared, shared};
use crate::options::{
    Command, OptionSpec, Paragraph, Section, Syntax, help_option, optional, version_option,
};

/// A letter that a mode may begin with: the word is one that looks like options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModeLetter;

const OTHER: &str = "Other";

const fn mode(letter: u8) -> OptionSpec<Id<ModeLetter>> {
    optional(Id::Own(ModeLetter), Some(letter), &[], "MODE", OTHER, "")
}

/// `pchmod`.
pub(super) static PCHMOD: Command<Id<ModeLetter>> = Command {
    name: "pchmod",
    summary: "change file mode bits, in parallel",
    usage: &[
        "[OPTION]... MODE[,MODE]... FILE...",
        "[OPTION]... OCTAL-MODE FILE...",
        "[OPTION]... --reference=RFILE FILE...",
    ],
    description: &[
        "Change the mode of each FILE to MODE, or to the mode of RFILE.",
        "Options are those of GNU chmod. With -R a file that has the mode already is left alone, and a directory \
         whose new mode would keep its owner out is changed after what is in it, any other before.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        shared(Shared::Recursive),
        shared(Shared::Reference("use the mode of RFILE instead of a MODE")),
        shared(Shared::PreserveRoot),
        shared(Shared::NoPreserveRoot),
        shared(Shared::Dereference(
            "change what a link leads to (the default for operands; below them links are left alone)",
        )),
        shared(Shared::NoDereference("leave links alone, and what they lead to")),
        shared(Shared::FollowOperands("with -R, traverse operands that lead to directories (the default)")),
        shared(Shared::FollowAll),
        shared(Shared::FollowNone("with -R, traverse no links")),
        shared(Shared::Changes),
        shared(Shared::Silent),
        shared(Shared::Verbose),
        help_option(OTHER),
        version_option(OTHER),
        shared(Shared::DryRun),
        shared(Shared::Json),
        shared(Shared::Threads),
        mode(b'r'),
        mode(b'w'),
        mode(b'x'),
        mode(b'X'),
        mode(b's'),
        mode(b't'),
        mode(b'u'),
        mode(b'g'),
        mode(b'o'),
        mode(b'a'),
        mode(b','),
        mode(b'+'),
        mode(b'='),
        mode(b'0'),
        mode(b'1'),
        mode(b'2'),
        mode(b'3'),
        mode(b'4'),
        mode(b'5'),
        mode(b'6'),
        mode(b'7'),
    ],
    long_order: &[
        "changes",
        "dereference",
        "recursive",
        "no-dereference",
        "no-preserve-root",
        "preserve-root",
        "quiet",
        "reference",
        "silent",
        "verbose",
        "help",
        "version",
    ],
    sections: &[
        Section {
            title: "Modes",
            body: &[
                Paragraph::Text(
                    "A MODE is octal digits, or clauses with commas between them, each of the form \
                     [ugoa]*([-+=]([rwxXst]*|[ugo]))+ or [-+=][0-7]+.",
                ),
                Paragraph::Terms(&[
                    (
                        "u, g, o, a",
                        "the owner, the group, others, all; without any, all, but no bits that the umask masks",
                    ),
                    ("+, -, =", "add, remove, set"),
                    ("r, w, x", "read, write, execute or search"),
                    ("X", "x for directories, and for files that somebody may execute"),
                    ("s, t", "set user or group ID on execution; sticky, or restricted deletion"),
                    ("u, g, o", "after an operator: what the owner, the group or others have"),
                ]),
                Paragraph::Text(
                    "Directories keep their set-ID bits unless a clause names them, or a number of five digits or more.",
                ),
            ],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 if all has been changed, 1 if something could not be, or an option is wrong.",
            )],
        },
    ],
};
