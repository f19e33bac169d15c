//! The options of `prm`.

use crate::options::{
    Argument, Command, OptionSpec, Paragraph, Section, Syntax, help_option, json, threads, version_option,
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
    Help,
    Version,
}

const WHAT: &str = "What is removed";
const PROMPTS: &str = "What is asked and told";
const OTHER: &str = "Other";

const fn flag(
    id: Id,
    short: Option<u8>,
    long: &'static [&'static str],
    group: &'static str,
    help: &'static str,
) -> OptionSpec<Id> {
    OptionSpec::new(id, short, long, Argument::None, group, help)
}

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
        OptionSpec::new(
            Id::PreserveRoot,
            None,
            &["preserve-root"],
            Argument::Optional("all"),
            WHAT,
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
        OptionSpec::new(
            Id::Interactive,
            None,
            &["interactive"],
            Argument::Optional("WHEN"),
            PROMPTS,
            "ask never, once (-I) or always (-i, which is also meant without WHEN)",
        )
        .words(&["never", "no", "none", "once", "always", "yes"]),
        flag(Id::Verbose, Some(b'v'), &["verbose"], PROMPTS, "tell what is removed"),
        OptionSpec::new(Id::PresumeInputTty, None, &["-presume-input-tty"], Argument::None, PROMPTS, ""),
        help_option(Id::Help, OTHER),
        version_option(Id::Version, OTHER),
        flag(
            Id::DryRun,
            None,
            &["dry-run"],
            "Not in GNU's tool",
            "remove nothing, ask nothing, tell what would be removed",
        )
        .extension(),
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
