//! The options of `pchown`, and of `chgrp`, which takes a group instead of an owner.

use crate::attributes::{Id, Shared, WHAT, shared};
use crate::options::{Command, OptionSpec, Paragraph, Section, Syntax, help_option, value, version_option};

/// An option that `pchmod` does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct From;

const OTHER: &str = "Other";

const FROM: OptionSpec<Id<From>> = value(
    Id::Own(From),
    None,
    &["from"],
    "CURRENT_OWNER:CURRENT_GROUP",
    WHAT,
    "change only files that have this owner and group; either may be left out",
);
const DEREFERENCE: OptionSpec<Id<From>> = shared(Shared::Dereference(
    "change the target of a link (the default, except with -R and neither -H nor -L)",
));
const NO_DEREFERENCE: OptionSpec<Id<From>> = shared(Shared::NoDereference("change links themselves"));
const FOLLOW_OPERANDS: OptionSpec<Id<From>> =
    shared(Shared::FollowOperands("with -R, traverse operands that are links to directories"));
const FOLLOW_NONE: OptionSpec<Id<From>> =
    shared(Shared::FollowNone("with -R, do not traverse links (the default)"));

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
        "0 if everything was changed; 1 if something could not be changed, or an option is wrong.",
    )],
};

const LEFT_ALONE: &str = "With -R, a file that already has the owner is skipped, unless the call might clear set-ID \
     bits or capabilities. Directories are changed after their contents.";

/// `pchown`.
pub(super) static PCHOWN: Command<Id<From>> = Command {
    name: "pchown",
    summary: "change file owner and group, in parallel",
    usage: &["[OPTION]... [OWNER][:[GROUP]] FILE...", "[OPTION]... --reference=RFILE FILE..."],
    description: &[
        "Change the owner, the group or both of each FILE, or copy them from RFILE.",
        "The options are those of GNU chown, or of GNU chgrp when called by that name.",
        LEFT_ALONE,
    ],
    syntax: Syntax::Getopt,
    options: &[
        shared(Shared::Recursive),
        shared(Shared::Reference("use the owner and group of RFILE instead of OWNER:GROUP")),
        FROM,
        shared(Shared::PreserveRoot),
        shared(Shared::NoPreserveRoot),
        DEREFERENCE,
        NO_DEREFERENCE,
        FOLLOW_OPERANDS,
        shared(Shared::FollowAll),
        FOLLOW_NONE,
        shared(Shared::Changes),
        shared(Shared::Silent),
        shared(Shared::Verbose),
        help_option(OTHER),
        version_option(OTHER),
        shared(Shared::DryRun),
        shared(Shared::Json),
        shared(Shared::Threads),
    ],
    long_order: LONG_ORDER,
    sections: &[
        Section {
            title: "Owners",
            body: &[
                Paragraph::Terms(&[
                    ("OWNER", "a user; the group is unchanged"),
                    ("OWNER:GROUP", "a user and a group"),
                    ("OWNER:", "a user and that user's login group"),
                    (":GROUP", "a group; the owner is unchanged"),
                ]),
                Paragraph::Text("Both may be numbers; a number with a leading + is never taken as a name."),
            ],
        },
        EXIT_STATUS,
    ],
};

/// `pchown` called as `chgrp`.
pub(super) static CHGRP: Command<Id<From>> = Command {
    name: "pchown",
    summary: "change group ownership, in parallel",
    usage: &["[OPTION]... GROUP FILE...", "[OPTION]... --reference=RFILE FILE..."],
    description: &["Change the group of each FILE to GROUP, or to the group of RFILE.", LEFT_ALONE],
    syntax: Syntax::Getopt,
    options: &[
        shared(Shared::Recursive),
        shared(Shared::Reference("use the group of RFILE instead of GROUP")),
        FROM,
        shared(Shared::PreserveRoot),
        shared(Shared::NoPreserveRoot),
        DEREFERENCE,
        NO_DEREFERENCE,
        FOLLOW_OPERANDS,
        shared(Shared::FollowAll),
        FOLLOW_NONE,
        shared(Shared::Changes),
        shared(Shared::Silent),
        shared(Shared::Verbose),
        help_option(OTHER),
        version_option(OTHER),
        shared(Shared::DryRun),
        shared(Shared::Json),
        shared(Shared::Threads),
    ],
    long_order: LONG_ORDER,
    sections: &[EXIT_STATUS],
};
