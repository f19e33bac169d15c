//! The options of `pdu`.

use crate::options::{
    Command, Paragraph, Section, Syntax, flag, help_option, json, optional, threads, value, verbose,
    version_option,
};

/// An option of `pdu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    All,
    ApparentSize,
    Bytes,
    CountLinks,
    Dereference,
    DereferenceArgs,
    Exclude,
    Files0From,
    HumanReadable,
    Inodes,
    Kibibytes,
    Mebibytes,
    NoDereference,
    Null,
    OneFileSystem,
    SeparateDirs,
    Si,
    Summarize,
    TimeStyle,
    Total,
    Json,
    Verbose,
    Value(ValueId),
}

/// Values that may be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueId {
    BlockSize,
    ExcludeFrom,
    MaxDepth,
    Threads,
    Threshold,
    Time,
}

const WHAT: &str = "What to measure";
const LINES: &str = "What to print";
const UNITS: &str = "Output format";
const OTHER: &str = "Other";

const TIME_WORDS: &[&str] = &["atime", "access", "use", "ctime", "status"];
const STYLE_WORDS: &[&str] = &["full-iso", "long-iso", "iso"];

/// `pdu`.
pub(super) static PDU: Command<Id> = Command {
    name: "pdu",
    summary: "estimate file space usage, in parallel",
    usage: &["[OPTION]... [FILE]...", "[OPTION]... --files0-from=F"],
    description: &[
        "Sum up the disk usage of the FILEs, recursively for directories; by default, of the current \
         directory.",
        "The options are those of GNU du. The lines of an operand are printed when it and all operands \
         before it have been measured; names are sorted, and a directory comes after its contents. A file \
         with several links is counted once: in the first operand that contains it, and there in the first \
         directory.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        flag(
            Id::ApparentSize,
            Some(b'A'),
            &["apparent-size"],
            WHAT,
            "print the sizes of regular files and symbolic links instead of disk usage",
        ),
        flag(Id::Inodes, None, &["inodes"], WHAT, "print inode counts instead of disk usage"),
        flag(Id::CountLinks, Some(b'l'), &["count-links"], WHAT, "count a file once for each of its links"),
        flag(
            Id::DereferenceArgs,
            Some(b'D'),
            &["dereference-args"],
            WHAT,
            "follow symbolic links that are operands",
        ),
        flag(Id::DereferenceArgs, Some(b'H'), &[], WHAT, "the same as -D"),
        flag(Id::Dereference, Some(b'L'), &["dereference"], WHAT, "follow all symbolic links"),
        flag(
            Id::NoDereference,
            Some(b'P'),
            &["no-dereference"],
            WHAT,
            "follow no symbolic links (the default)",
        ),
        flag(Id::OneFileSystem, Some(b'x'), &["one-file-system"], WHAT, "stay on the operand's file system"),
        value(
            Id::Exclude,
            None,
            &["exclude"],
            "PATTERN",
            WHAT,
            "exclude files whose path, or the part of it after any slash, matches PATTERN",
        ),
        value(
            Id::Value(ValueId::ExcludeFrom),
            Some(b'X'),
            &["exclude-from"],
            "FILE",
            WHAT,
            "exclude files that match a pattern in FILE, one per line",
        ),
        value(
            Id::Files0From,
            None,
            &["files0-from"],
            "F",
            WHAT,
            "measure the files whose NUL-terminated names are in F; - is standard input",
        ),
        flag(
            Id::All,
            Some(b'a'),
            &["all"],
            LINES,
            "print a line for every file, not only for directories; no effect with -s, a combination that \
             GNU du refuses",
        ),
        flag(Id::Summarize, Some(b's'), &["summarize"], LINES, "print only a line for each operand"),
        value(
            Id::Value(ValueId::MaxDepth),
            Some(b'd'),
            &["max-depth"],
            "N",
            LINES,
            "print lines only for entries at most N levels below an operand",
        ),
        flag(
            Id::SeparateDirs,
            Some(b'S'),
            &["separate-dirs"],
            LINES,
            "do not include subdirectories in the size of a directory",
        ),
        value(
            Id::Value(ValueId::Threshold),
            Some(b't'),
            &["threshold"],
            "SIZE",
            LINES,
            "print only lines with a size of at least SIZE or, if SIZE is negative, at most -SIZE",
        ),
        flag(Id::Total, Some(b'c'), &["total"], LINES, "print a grand total at the end"),
        value(
            Id::Value(ValueId::BlockSize),
            Some(b'B'),
            &["block-size"],
            "SIZE",
            UNITS,
            "print sizes in units of SIZE: a number, or one of K, M, G, T, P, E (powers of 1024), KB, MB, \
             ... (of 1000), or both",
        ),
        flag(Id::Bytes, Some(b'b'), &["bytes"], UNITS, "the same as --apparent-size --block-size=1"),
        flag(
            Id::HumanReadable,
            Some(b'h'),
            &["human-readable"],
            UNITS,
            "print sizes in human-readable units (1K, 234M, 2G)",
        ),
        flag(Id::Si, None, &["si"], UNITS, "like -h, with powers of 1000"),
        flag(Id::Kibibytes, Some(b'k'), &[], UNITS, "the same as --block-size=1K"),
        flag(Id::Mebibytes, Some(b'm'), &[], UNITS, "the same as --block-size=1M"),
        optional(
            Id::Value(ValueId::Time),
            None,
            &["time"],
            "WORD",
            UNITS,
            "also print the time of the latest modification in the directory or, if WORD is atime or ctime, \
             that time",
        )
        .words(TIME_WORDS),
        value(
            Id::TimeStyle,
            None,
            &["time-style"],
            "STYLE",
            UNITS,
            "print times as full-iso, long-iso, iso, or +FORMAT as for date(1)",
        )
        .words(STYLE_WORDS),
        flag(Id::Null, Some(b'0'), &["null"], UNITS, "end lines with NUL"),
        help_option(OTHER),
        version_option(OTHER),
        json(Id::Json),
        threads(Id::Value(ValueId::Threads)),
        verbose(Id::Verbose),
    ],
    long_order: &[
        "all",
        "apparent-size",
        "block-size",
        "bytes",
        "count-links",
        "dereference",
        "dereference-args",
        "exclude",
        "exclude-from",
        "files0-from",
        "human-readable",
        "inodes",
        "si",
        "max-depth",
        "null",
        "no-dereference",
        "one-file-system",
        "separate-dirs",
        "summarize",
        "total",
        "threshold",
        "time",
        "time-style",
        "help",
        "version",
    ],
    sections: &[
        Section {
            title: "Memory",
            body: &[Paragraph::Text(
                "A directory that gets a line takes about 250 bytes until its operand has been printed; a \
                 directory without a line takes none, unless -S is given. With -a, a file takes the length \
                 of its name and about 10 bytes. A file with several links takes about 100 bytes, and each \
                 of its paths 4. With -L every directory takes its 250 bytes, and every file counts as \
                 having several links.",
            )],
        },
        Section {
            title: "Environment",
            body: &[Paragraph::Terms(&[
                ("DU_BLOCK_SIZE", "the unit, unless an option sets it; then BLOCK_SIZE, then BLOCKSIZE"),
                ("POSIXLY_CORRECT", "if none of these is set, the unit is 512, not 1024"),
                ("TIME_STYLE", "the time style, unless an option sets it"),
            ])],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 if everything was measured; 1 if something could not be measured, or an option is wrong.",
            )],
        },
    ],
};
