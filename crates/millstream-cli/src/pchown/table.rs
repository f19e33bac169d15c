//! The options of `pchown`, and of `chgrp`, which has one less and takes a group where that takes an owner.

use crate::options::{
    Argument, Command, OptionSpec, Paragraph, Section, Syntax, dry_run, help_option, json, threads,
    version_option,
};

/// An option of `pchown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Changes,
    Silent,
    Verbose,
    Dereference,
    NoDereference,
    From,
    NoPreserveRoot,
    PreserveRoot,
    Reference,
    Recursive,
    FollowOperands,
    FollowAll,
    FollowNone,
    DryRun,
    Json,
    Threads,
    Help,
    Version,
}

const WHAT: &str = "What is changed";
const LINKS: &str = "Symbolic links";
const TOLD: &str = "What is told";
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

const fn reference(help: &'static str) -> OptionSpec<Id> {
    OptionSpec::new(Id::Reference, None, &["reference"], Argument::Required("RFILE"), WHAT, help)
}

const RECURSIVE: OptionSpec<Id> =
    flag(Id::Recursive, Some(b'R'), &["recursive"], WHAT, "change directories and all that is in them");
const FROM: OptionSpec<Id> = OptionSpec::new(
    Id::From,
    None,
    &["from"],
    Argument::Required("CURRENT_OWNER:CURRENT_GROUP"),
    WHAT,
    "change only files that have this owner and group; one of them may be left out",
);
const PRESERVE_ROOT: OptionSpec<Id> =
    flag(Id::PreserveRoot, None, &["preserve-root"], WHAT, "refuse to operate recursively on '/'");
const NO_PRESERVE_ROOT: OptionSpec<Id> = flag(
    Id::NoPreserveRoot,
    None,
    &["no-preserve-root"],
    WHAT,
    "treat '/' like any other directory (the default)",
);
const DEREFERENCE: OptionSpec<Id> = flag(
    Id::Dereference,
    None,
    &["dereference"],
    LINKS,
    "change what a link leads to (the default, except with -R and neither -H nor -L)",
);
const NO_DEREFERENCE: OptionSpec<Id> =
    flag(Id::NoDereference, Some(b'h'), &["no-dereference"], LINKS, "change links themselves");
const FOLLOW_OPERANDS: OptionSpec<Id> =
    flag(Id::FollowOperands, Some(b'H'), &[], LINKS, "with -R, traverse operands that lead to directories");
const FOLLOW_ALL: OptionSpec<Id> =
    flag(Id::FollowAll, Some(b'L'), &[], LINKS, "with -R, traverse all links that lead to directories");
const FOLLOW_NONE: OptionSpec<Id> =
    flag(Id::FollowNone, Some(b'P'), &[], LINKS, "with -R, traverse no links (the default)");
const CHANGES: OptionSpec<Id> =
    flag(Id::Changes, Some(b'c'), &["changes"], TOLD, "a line for each file that is changed");
const SILENT: OptionSpec<Id> =
    flag(Id::Silent, Some(b'f'), &["silent", "quiet"], TOLD, "no messages about files that fail");
const VERBOSE: OptionSpec<Id> = flag(Id::Verbose, Some(b'v'), &["verbose"], TOLD, "a line for each file");

const LONG_ORDER: &[&str] = &[
    "recursive",
    "changes",
    "dereference",
    "from",
    "no-dereference",
    "no-preserve-root",
    "preserve-root",
    "quiet",
    "silent",
    "reference",
    "verbose",
    "help",
    "version",
];

const EXIT_STATUS: Section = Section {
    title: "Exit status",
    body: &[Paragraph::Text(
        "0 if all has been changed, 1 if something could not be, or an option is wrong.",
    )],
};

const LEFT_ALONE: &str = "With -R a file that has the owner already is left alone, unless the call might take set-ID \
     bits or capabilities away, and directories are changed after what is in them.";

/// `pchown`.
pub(super) static PCHOWN: Command<Id> = Command {
    name: "pchown",
    summary: "change file owner and group, in parallel",
    usage: &["[OPTION]... [OWNER][:[GROUP]] FILE...", "[OPTION]... --reference=RFILE FILE..."],
    description: &[
        "Change the owner, the group or both of each FILE, or make them those of RFILE.",
        "Options are those of GNU chown, and of GNU chgrp when called by that name.",
        LEFT_ALONE,
    ],
    syntax: Syntax::Getopt,
    options: &[
        RECURSIVE,
        reference("use owner and group of RFILE instead of OWNER:GROUP"),
        FROM,
        PRESERVE_ROOT,
        NO_PRESERVE_ROOT,
        DEREFERENCE,
        NO_DEREFERENCE,
        FOLLOW_OPERANDS,
        FOLLOW_ALL,
        FOLLOW_NONE,
        CHANGES,
        SILENT,
        VERBOSE,
        help_option(Id::Help, OTHER),
        version_option(Id::Version, OTHER),
        dry_run(Id::DryRun),
        json(Id::Json),
        threads(Id::Threads),
    ],
    long_order: LONG_ORDER,
    sections: &[
        Section {
            title: "Owners",
            body: &[
                Paragraph::Terms(&[
                    ("OWNER", "a user; the group stays"),
                    ("OWNER:GROUP", "a user and a group"),
                    ("OWNER:", "a user and that user's login group"),
                    (":GROUP", "a group; the owner stays"),
                ]),
                Paragraph::Text("Both may be numbers; with a + before them they are never taken for names."),
            ],
        },
        EXIT_STATUS,
    ],
};

/// `pchown` called as `chgrp`.
pub(super) static CHGRP: Command<Id> = Command {
    name: "pchown",
    summary: "change group ownership, in parallel",
    usage: &["[OPTION]... GROUP FILE...", "[OPTION]... --reference=RFILE FILE..."],
    description: &["Change the group of each FILE to GROUP, or to that of RFILE.", LEFT_ALONE],
    syntax: Syntax::Getopt,
    options: &[
        RECURSIVE,
        reference("use the group of RFILE instead of a GROUP"),
        PRESERVE_ROOT,
        NO_PRESERVE_ROOT,
        DEREFERENCE,
        NO_DEREFERENCE,
        FOLLOW_OPERANDS,
        FOLLOW_ALL,
        FOLLOW_NONE,
        CHANGES,
        SILENT,
        VERBOSE,
        help_option(Id::Help, OTHER),
        version_option(Id::Version, OTHER),
        dry_run(Id::DryRun),
        json(Id::Json),
        threads(Id::Threads),
    ],
    long_order: LONG_ORDER,
    sections: &[EXIT_STATUS],
};
