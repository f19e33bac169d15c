//! The options of `pchmod`.

use crate::attributes::{Id, Shared, shared};
use crate::options::{
    Command, OptionSpec, Paragraph, Section, Syntax, help_option, optional, version_option,
};

/// A letter that a mode may begin with: such a word looks like options.
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
        "The options are those of GNU chmod. With -R, a file that already has the mode is skipped. A directory \
         is changed before its contents, or after them if its new mode would lock out its owner.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        shared(Shared::Recursive),
        shared(Shared::Reference("use the mode of RFILE instead of MODE")),
        shared(Shared::PreserveRoot),
        shared(Shared::NoPreserveRoot),
        shared(Shared::Dereference(
            "change the target of a link (the default for operands; links below them are left alone)",
        )),
        shared(Shared::NoDereference("change neither links nor their targets")),
        shared(Shared::FollowOperands(
            "with -R, traverse operands that are links to directories (the default)",
        )),
        shared(Shared::FollowAll),
        shared(Shared::FollowNone("with -R, do not traverse links")),
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
                    "A MODE is octal digits, or comma-separated clauses, each of the form \
                     [ugoa]*([-+=]([rwxXst]*|[ugo]))+ or [-+=][0-7]+.",
                ),
                Paragraph::Terms(&[
                    (
                        "u, g, o, a",
                        "the owner, the group, others, all; without any of them, all, except for bits in the \
                         umask",
                    ),
                    ("+, -, =", "add, remove, set"),
                    ("r, w, x", "read, write, execute or search"),
                    ("X", "x for directories, and for files with any x bit"),
                    ("s, t", "set user or group ID on execution; sticky, or restricted deletion"),
                    ("u, g, o", "after an operator: the bits of the owner, the group or others"),
                ]),
                Paragraph::Text(
                    "Directories keep their set-ID bits unless a clause names them or the number has at least \
                     five digits.",
                ),
            ],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 if everything was changed; 1 if something could not be changed, or an option is wrong.",
            )],
        },
    ],
};
