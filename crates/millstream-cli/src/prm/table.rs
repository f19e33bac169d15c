//! The options of `prm`.

use crate::options::{
    Command, Paragraph, Section, Syntax, dry_run, flag, help_option, json, optional, threads, version_option,
};

/// An option of `prm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Force,
    PromptAlways,
    PromptOnce,
    Interactive,
    OneFileSystem,
    NoPreserveRoot,
    PreserveRoot,
    PresumeInputTty,
    Recursive,
    Dir,
    Verbose,
    DryRun,
    Threads,
    Json,
}

const WHAT: &str = "What is removed";
const PROMPTS: &str = "What is asked and told";
const OTHER: &str = "Other";

/// `prm`.
pub(super) static PRM: Command<Id> = Command {
    name: "prm",
    summary: "remove files and directories, in parallel",
    usage: &["[OPTION]... [FILE]..."],
    description: &[
        "Remove the FILEs, directories only with -r or, if they are empty, with -d.",
        "Options are those of GNU rm. Without -f, -i and --interactive=never, what the user may not write is asked \
         about if standard input is a terminal; what needs no question is removed first then.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        flag(
            Id::Recursive,
            Some(b'r'),
            &["recursive"],
            WHAT,
            "remove directories and what is in them",
        ),
        flag(Id::Recursive, Some(b'R'), &[], WHAT, "the same as -r"),
        flag(Id::Dir, Some(b'd'), &["dir"], WHAT, "remove empty directories"),
        flag(
            Id::OneFileSystem,
            None,
            &["one-file-system"],
            WHAT,
            "with -r, skip directories that are on another file system than their operand",
        ),
        optional(Id::PreserveRoot, None, &["preserve-root"], "all", WHAT,
            "do not remove / (the default); with all, no operand that is on another device than its parent either",
        )
        .words(&["all"]),
        flag(Id::NoPreserveRoot, None, &["no-preserve-root"], WHAT, "do not treat / specially"),
        flag(
            Id::Force,
            Some(b'f'),
            &["force"],
            PROMPTS,
            "ignore files that do not exist, and ask nothing",
        ),
        flag(Id::PromptAlways, Some(b'i'), &[], PROMPTS, "ask before every removal"),
        flag(
            Id::PromptOnce,
            Some(b'I'),
            &[],
            PROMPTS,
            "ask once before removing more than three files, or removing recursively",
        ),
        optional(Id::Interactive, None, &["interactive"], "WHEN", PROMPTS,
            "ask never, once (-I) or always (-i, which is also meant without WHEN)",
        )
        .words(&["never", "no", "none", "once", "always", "yes"]),
        flag(Id::Verbose, Some(b'v'), &["verbose"], PROMPTS, "tell what is removed"),
        flag(Id::PresumeInputTty, None, &["-presume-input-tty"], PROMPTS, ""),
        help_option(OTHER),
        version_option(OTHER),
        dry_run(Id::DryRun, "remove nothing, ask nothing, tell what would be removed"),
        json(Id::Json),
        threads(Id::Threads),
    ],
    long_order: &[
        "force",
        "interactive",
        "one-file-system",
        "no-preserve-root",
        "preserve-root",
        "-presume-input-tty",
        "recursive",
        "dir",
        "verbose",
        "help",
        "version",
    ],
    sections: &[
        Section {
            title: "Names that begin with a dash",
            body: &[Paragraph::Text("To remove a file named -foo: prm -- -foo, or prm ./-foo")],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 if everything that was to be removed has been, or was declined; 1 otherwise.",
            )],
        },
    ],
};
