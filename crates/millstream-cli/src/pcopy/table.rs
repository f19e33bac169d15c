//! The options of `pcopy`.

use crate::options::{
    Argument, Command, Paragraph, Section, Syntax, dry_run, extension, flag, help_option, json, optional,
    threads, value, version_option,
};

/// An option of `pcopy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Archive,
    Atomic,
    AttributesOnly,
    Backup,
    BackupByDefault,
    BandwidthLimit,
    Context,
    CopyContents,
    Debug,
    Dereference,
    DereferenceArgs,
    DryRun,
    Force,
    Interactive,
    Json,
    KeepDirectorySymlink,
    Link,
    NoClobber,
    NoDereference,
    NoDereferenceAndLinks,
    NoPreserve,
    NoTargetDirectory,
    OneFileSystem,
    Parents,
    Preserve,
    PreserveDefault,
    Recursive,
    Reflink,
    RemoveDestination,
    Resume,
    SelinuxDefault,
    Sparse,
    StripTrailingSlashes,
    Suffix,
    SymbolicLink,
    TargetDirectory,
    Threads,
    Update,
    UpdateWhich,
    Verbose,
    Verify,
}

const WHAT: &str = "What is copied";
const WHERE: &str = "Where to";
const EXISTING: &str = "Files that exist";
const ATTRIBUTES: &str = "Attributes";
const DATA: &str = "Data";
const OTHER: &str = "Other";

const WHEN: &[&str] = &["auto", "always", "never"];
const BACKUPS: &[&str] = &["none", "off", "simple", "never", "existing", "nil", "numbered", "t"];
const UPDATES: &[&str] = &["all", "none", "none-fail", "older"];
const ATTRIBUTE_WORDS: &[&str] = &["mode", "timestamps", "ownership", "links", "context", "xattr", "all"];

/// `pcopy`.
pub(super) static PCOPY: Command<Id> = Command {
    name: "pcopy",
    summary: "copy files and directories, in parallel",
    usage: &[
        "[OPTION]... [-T] SOURCE DEST",
        "[OPTION]... SOURCE... DIRECTORY",
        "[OPTION]... -t DIRECTORY SOURCE...",
    ],
    description: &[
        "Copy SOURCE to DEST, or SOURCEs into DIRECTORY.",
        "Options are those of GNU cp. Files are copied side by side, large ones by several threads where that helps; the \
         lines of -v come in the order of the work, a directory's before those of what is in it.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        flag(Id::Recursive, Some(b'R'), &["recursive"], WHAT, "copy directories with all that is in them"),
        flag(Id::Recursive, Some(b'r'), &[], WHAT, "the same as -R"),
        flag(Id::Archive, Some(b'a'), &["archive"], WHAT, "the same as -dR --preserve=all"),
        flag(
            Id::NoDereferenceAndLinks,
            Some(b'd'),
            &[],
            WHAT,
            "the same as --no-dereference --preserve=links",
        ),
        flag(Id::DereferenceArgs, Some(b'H'), &[], WHAT, "follow symbolic links that are operands"),
        flag(Id::Dereference, Some(b'L'), &["dereference"], WHAT, "follow all symbolic links"),
        flag(
            Id::NoDereference,
            Some(b'P'),
            &["no-dereference"],
            WHAT,
            "follow no symbolic links (the default with -R)",
        ),
        flag(
            Id::CopyContents,
            None,
            &["copy-contents"],
            WHAT,
            "with -R copy what can be read from pipes and devices",
        ),
        flag(Id::OneFileSystem, Some(b'x'), &["one-file-system"], WHAT, "stay on the operand's file system"),
        flag(Id::Link, Some(b'l'), &["link"], WHAT, "make hard links instead of copies"),
        flag(Id::SymbolicLink, Some(b's'), &["symbolic-link"], WHAT, "make symbolic links instead of copies"),
        flag(
            Id::StripTrailingSlashes,
            None,
            &["strip-trailing-slashes"],
            WHAT,
            "remove slashes from the end of each SOURCE",
        ),
        value(
            Id::TargetDirectory,
            Some(b't'),
            &["target-directory"],
            "DIRECTORY",
            WHERE,
            "copy into DIRECTORY",
        ),
        flag(
            Id::NoTargetDirectory,
            Some(b'T'),
            &["no-target-directory"],
            WHERE,
            "DEST is the copy, not a directory to copy into",
        ),
        flag(Id::Parents, None, &["parents"], WHERE, "use the whole path of SOURCE below DIRECTORY"),
        flag(
            Id::Force,
            Some(b'f'),
            &["force"],
            EXISTING,
            "remove a file that cannot be opened for writing, and try again",
        ),
        flag(Id::Interactive, Some(b'i'), &["interactive"], EXISTING, "ask before a file is written over"),
        flag(Id::NoClobber, Some(b'n'), &["no-clobber"], EXISTING, "leave files as they are"),
        flag(Id::Update, Some(b'u'), &[], EXISTING, "leave files that are not older than their source"),
        optional(
            Id::UpdateWhich,
            None,
            &["update"],
            "WHICH",
            EXISTING,
            "replace older files, the default; all; none; or none-fail: none, and fail where there are some",
        )
        .words(UPDATES),
        flag(
            Id::KeepDirectorySymlink,
            None,
            &["keep-directory-symlink"],
            EXISTING,
            "copy directories into those that symbolic links in their place lead to",
        ),
        flag(
            Id::RemoveDestination,
            None,
            &["remove-destination"],
            EXISTING,
            "remove files instead of writing over them",
        ),
        optional(Id::Backup, None, &["backup"], "CONTROL", EXISTING, "keep files under another name")
            .words(BACKUPS),
        flag(Id::BackupByDefault, Some(b'b'), &[], EXISTING, "like --backup, without an argument"),
        value(
            Id::Suffix,
            Some(b'S'),
            &["suffix"],
            "SUFFIX",
            EXISTING,
            "what simple backups end with, ~ by default",
        ),
        flag(
            Id::PreserveDefault,
            Some(b'p'),
            &[],
            ATTRIBUTES,
            "the same as --preserve=mode,ownership,timestamps",
        ),
        optional(
            Id::Preserve,
            None,
            &["preserve"],
            "LIST",
            ATTRIBUTES,
            "keep mode, ownership, timestamps, links, xattr, or all; the first three by default",
        )
        .words(ATTRIBUTE_WORDS),
        value(Id::NoPreserve, None, &["no-preserve"], "LIST", ATTRIBUTES, "do not keep these")
            .words(ATTRIBUTE_WORDS),
        flag(Id::AttributesOnly, None, &["attributes-only"], ATTRIBUTES, "copy attributes and no data"),
        flag(Id::SelinuxDefault, Some(b'Z'), &[], ATTRIBUTES, "accepted; has no effect without SELinux"),
        optional(
            Id::Context,
            None,
            &["context"],
            "CTX",
            ATTRIBUTES,
            "accepted; has no effect without SELinux",
        ),
        optional(
            Id::Reflink,
            None,
            &["reflink"],
            "WHEN",
            DATA,
            "share data with the source: auto, always, never",
        )
        .words(WHEN),
        value(
            Id::Sparse,
            None,
            &["sparse"],
            "WHEN",
            DATA,
            "where copies have holes: auto, as the source; always, for all zeros; never",
        )
        .words(WHEN),
        flag(Id::Verbose, Some(b'v'), &["verbose"], OTHER, "tell what is copied"),
        flag(
            Id::Debug,
            None,
            &["debug"],
            OTHER,
            "like -v, and tell what is skipped, and how the data of files was copied, after it was",
        ),
        help_option(OTHER),
        version_option(OTHER),
        extension(
            Id::Resume,
            &["resume"],
            Argument::None,
            "leave files whose copy is complete, by kind, size and time, and keep timestamps",
        ),
        extension(
            Id::Atomic,
            &["atomic"],
            Argument::None,
            "write to temporary names and rename, so that no name ever has half a file",
        ),
        extension(
            Id::Verify,
            &["verify"],
            Argument::None,
            "read source and copy again and compare checksums",
        ),
        dry_run(Id::DryRun, "tell what would be copied, and change nothing"),
        extension(
            Id::BandwidthLimit,
            &["bwlimit"],
            Argument::Required("RATE"),
            "copy at most RATE bytes a second; K, M, G, ... as for dd(1)",
        ),
        json(Id::Json),
        threads(Id::Threads),
    ],
    long_order: &[
        "archive",
        "attributes-only",
        "backup",
        "copy-contents",
        "debug",
        "dereference",
        "force",
        "interactive",
        "keep-directory-symlink",
        "link",
        "no-clobber",
        "no-dereference",
        "no-preserve",
        "no-target-directory",
        "one-file-system",
        "parents",
        "preserve",
        "recursive",
        "remove-destination",
        "sparse",
        "reflink",
        "strip-trailing-slashes",
        "suffix",
        "symbolic-link",
        "target-directory",
        "update",
        "verbose",
        "context",
        "help",
        "version",
    ],
    sections: &[
        Section {
            title: "Backups",
            body: &[
                Paragraph::Text("CONTROL, or VERSION_CONTROL in the environment, is one of"),
                Paragraph::Terms(&[
                    ("none, off", "no backups"),
                    ("numbered, t", "name.~1~, name.~2~, ..."),
                    ("existing, nil", "numbered where there are numbered ones, else simple (the default)"),
                    ("simple, never", "name~"),
                ]),
            ],
        },
        Section {
            title: "Environment",
            body: &[Paragraph::Terms(&[
                ("SIMPLE_BACKUP_SUFFIX", "what simple backups end with, if -S does not tell"),
                ("VERSION_CONTROL", "the kind of backups, if --backup does not tell"),
                (
                    "POSIXLY_CORRECT",
                    "options end at the first operand; copies are written through dangling links",
                ),
            ])],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 if all has been copied, 1 if something could not be, or an option is wrong.",
            )],
        },
    ],
};
