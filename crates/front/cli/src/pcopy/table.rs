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

const WHAT: &str = "What to copy";
const WHERE: &str = "Destination";
const EXISTING: &str = "Existing files";
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
        "The options are those of GNU cp. Files are copied in parallel, and a large file by several threads \
         where that helps. -v prints lines in the order in which the work is done: a directory comes before \
         its contents.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        flag(Id::Recursive, Some(b'R'), &["recursive"], WHAT, "copy directories and their contents"),
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
            "with -R, copy the contents of pipes and devices",
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
            "treat DEST as the copy, not as a directory to copy into",
        ),
        flag(Id::Parents, None, &["parents"], WHERE, "use the whole path of SOURCE below DIRECTORY"),
        flag(
            Id::Force,
            Some(b'f'),
            &["force"],
            EXISTING,
            "remove a file that cannot be opened for writing, and try again",
        ),
        flag(Id::Interactive, Some(b'i'), &["interactive"], EXISTING, "ask before overwriting a file"),
        flag(Id::NoClobber, Some(b'n'), &["no-clobber"], EXISTING, "do not overwrite files"),
        flag(Id::Update, Some(b'u'), &[], EXISTING, "keep files that are not older than their source"),
        optional(
            Id::UpdateWhich,
            None,
            &["update"],
            "WHICH",
            EXISTING,
            "which existing files to replace: older, the default; all; none; or none-fail, which reports \
             existing files as errors",
        )
        .words(UPDATES),
        flag(
            Id::KeepDirectorySymlink,
            None,
            &["keep-directory-symlink"],
            EXISTING,
            "if a symbolic link to a directory is where a directory is to be created, copy into the target \
             of the link",
        ),
        flag(
            Id::RemoveDestination,
            None,
            &["remove-destination"],
            EXISTING,
            "remove existing files instead of overwriting them",
        ),
        optional(Id::Backup, None, &["backup"], "CONTROL", EXISTING, "rename existing files to backups")
            .words(BACKUPS),
        flag(Id::BackupByDefault, Some(b'b'), &[], EXISTING, "like --backup, without an argument"),
        value(
            Id::Suffix,
            Some(b'S'),
            &["suffix"],
            "SUFFIX",
            EXISTING,
            "the suffix of simple backups, ~ by default",
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
            "preserve mode, ownership, timestamps, links, xattr, or all; the first three by default",
        )
        .words(ATTRIBUTE_WORDS),
        value(
            Id::NoPreserve,
            None,
            &["no-preserve"],
            "LIST",
            ATTRIBUTES,
            "do not preserve the attributes in this list",
        )
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
            "where to create holes: auto, as in the source; always, for all zeros; never",
        )
        .words(WHEN),
        flag(Id::Verbose, Some(b'v'), &["verbose"], OTHER, "report each copy"),
        flag(
            Id::Debug,
            None,
            &["debug"],
            OTHER,
            "like -v, but also report skipped files and, after each copy, how the data was copied",
        ),
        help_option(OTHER),
        version_option(OTHER),
        extension(
            Id::Resume,
            &["resume"],
            Argument::None,
            "skip files whose copy is complete (same type, size and time), and preserve timestamps",
        ),
        extension(
            Id::Atomic,
            &["atomic"],
            Argument::None,
            "write to temporary names and rename, so that no incomplete file ever appears under its final \
             name",
        ),
        extension(
            Id::Verify,
            &["verify"],
            Argument::None,
            "read the source and the copy again, and compare checksums",
        ),
        dry_run(Id::DryRun, "report what would be copied, and change nothing"),
        extension(
            Id::BandwidthLimit,
            &["bwlimit"],
            Argument::Required("RATE"),
            "copy at most RATE bytes per second; K, M, G, ... as for dd(1)",
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
                    ("existing, nil", "numbered if numbered backups exist, otherwise simple (the default)"),
                    ("simple, never", "name~"),
                ]),
            ],
        },
        Section {
            title: "Environment",
            body: &[Paragraph::Terms(&[
                ("SIMPLE_BACKUP_SUFFIX", "the suffix of simple backups, unless -S sets it"),
                ("VERSION_CONTROL", "the kind of backups, unless --backup sets it"),
                (
                    "POSIXLY_CORRECT",
                    "options end at the first operand; dangling links at the destination are written through",
                ),
            ])],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 if everything was copied; 1 if something could not be copied, or an option is wrong.",
            )],
        },
    ],
};
