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

const WHAT: &str = "What to remove";
const PROMPTS: &str = "Prompts and output";
const OTHER: &str = "Other";

/// `prm`.
pub(super) static PRM: Command<Id> = Command {
    name: "prm",
    summary: "remove files and directories, in parallel",
    usage: &["[OPTION]... [FILE]..."],
    description: &[
        "Remove the FILEs, directories only with -r or, if they are empty, with -d.",
        "The options are those of GNU rm. If standard input is a terminal and neither -f, -i nor \
         --interactive=never is given, prm asks before it removes a write-protected file. Everything that \
         needs no prompt is removed first.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        flag(Id::Recursive, Some(b'r'), &["recursive"], WHAT, "remove directories and their contents"),
        flag(Id::Recursive, Some(b'R'), &[], WHAT, "the same as -r"),
        flag(Id::Dir, Some(b'd'), &["dir"], WHAT, "remove empty directories"),
        flag(
            Id::OneFileSystem,
            None,
            &["one-file-system"],
            WHAT,
            "with -r, skip directories on a file system other than the operand's",
        ),
        optional(
            Id::PreserveRoot,
            None,
            &["preserve-root"],
            "all",
            WHAT,
            "do not remove / (the default); with all, also refuse operands on a different \
             device from their parent",
        )
        .words(&["all"]),
        flag(Id::NoPreserveRoot, None, &["no-preserve-root"], WHAT, "do not treat / specially"),
        flag(Id::Force, Some(b'f'), &["force"], PROMPTS, "ignore files that do not exist, and never ask"),
        flag(Id::PromptAlways, Some(b'i'), &[], PROMPTS, "ask before every removal"),
        flag(
            Id::PromptOnce,
            Some(b'I'),
            &[],
            PROMPTS,
            "ask once before removing more than three files, or removing recursively",
        ),
        optional(
            Id::Interactive,
            None,
            &["interactive"],
            "WHEN",
            PROMPTS,
            "ask never, once (-I) or always (-i); always without WHEN",
        )
        .words(&["never", "no", "none", "once", "always", "yes"]),
        flag(Id::Verbose, Some(b'v'), &["verbose"], PROMPTS, "report each removal"),
        flag(Id::PresumeInputTty, None, &["-presume-input-tty"], PROMPTS, ""),
        help_option(OTHER),
        version_option(OTHER),
        dry_run(Id::DryRun, "remove nothing and ask nothing; report what would be removed"),
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
            body: &[Paragraph::Text("0 if everything was removed, or the user declined; 1 otherwise.")],
        },
    ],
};
