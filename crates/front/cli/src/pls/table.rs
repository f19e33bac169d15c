//! The option table of `pls`.

use crate::options::{
    Argument, Command, Paragraph, Section, Syntax, extension, flag, help_option, json, optional, threads,
    value, verbose, version_option,
};

/// The options of `pls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Id {
    Which(WhichId),
    Column(ColumnId),
    Layout(LayoutId),
    Order(OrderId),
    Name(NameId),
}

/// Which files are listed, and options of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichId {
    All,
    AlmostAll,
    IgnoreBackups,
    Ignore,
    Hide,
    Directory,
    Recursive,
    Dereference,
    DereferenceOperands,
    DereferenceOperandDirectories,
    Dired,
    Json,
    Paths,
    Threads,
    Verbose,
}

/// The columns of a long line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnId {
    NoOwner,
    NoGroupLong,
    NoGroup,
    NumericIds,
    Author,
    FullTime,
    Inode,
    Size,
    Context,
    Human,
    Si,
    BlockSize,
    Kibibytes,
}

/// How lines are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutId {
    Long,
    Columns,
    Across,
    Commas,
    OnePerLine,
    Format,
    Width,
    TabSize,
    Zero,
}

/// Order and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderId {
    SortTime,
    SortSize,
    SortExtension,
    SortVersion,
    Unsorted,
    UnsortedAll,
    Sort,
    Reverse,
    DirectoriesFirst,
    Change,
    Access,
    Time,
    TimeStyle,
}

/// How names are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameId {
    Escape,
    Literal,
    QuoteName,
    QuotingStyle,
    HideControl,
    ShowControl,
    Classify,
    ClassifyWhen,
    FileType,
    Slash,
    IndicatorStyle,
    Color,
    Hyperlink,
}

const WHEN: &[&str] = &["always", "auto", "never"];
const WHICH: &str = "Which files to list";
const WHAT: &str = "What to show";
const LAYOUT: &str = "Layout";
const ORDER: &str = "Order and time";
const NAMES: &str = "Names";
const OTHER: &str = "Other";

/// The table.
pub const PLS: Command<Id> = Command {
    name: "pls",
    summary: "list directory contents in parallel",
    usage: &["[OPTION]... [FILE]..."],
    description: &[
        "List the FILEs, and the contents of those that are directories; the current directory by default.",
        "Output, messages and exit codes are those of GNU ls for the same options.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        flag(Id::Which(WhichId::All), Some(b'a'), &["all"], WHICH, "also list names that begin with a dot"),
        flag(Id::Which(WhichId::AlmostAll), Some(b'A'), &["almost-all"], WHICH, "likewise, but not . and .."),
        flag(
            Id::Which(WhichId::IgnoreBackups),
            Some(b'B'),
            &["ignore-backups"],
            WHICH,
            "omit names that end with ~",
        ),
        value(
            Id::Which(WhichId::Ignore),
            Some(b'I'),
            &["ignore"],
            "PATTERN",
            WHICH,
            "omit names that match the shell PATTERN",
        ),
        value(
            Id::Which(WhichId::Hide),
            None,
            &["hide"],
            "PATTERN",
            WHICH,
            "likewise, unless -a or -A is given",
        ),
        flag(
            Id::Which(WhichId::Directory),
            Some(b'd'),
            &["directory"],
            WHICH,
            "list directories themselves, not their contents",
        ),
        flag(
            Id::Which(WhichId::Recursive),
            Some(b'R'),
            &["recursive"],
            WHICH,
            "list subdirectories recursively",
        ),
        flag(
            Id::Which(WhichId::Dereference),
            Some(b'L'),
            &["dereference"],
            WHICH,
            "show the targets of symbolic links",
        ),
        flag(
            Id::Which(WhichId::DereferenceOperands),
            Some(b'H'),
            &["dereference-command-line"],
            WHICH,
            "likewise for FILEs only",
        ),
        flag(
            Id::Which(WhichId::DereferenceOperandDirectories),
            None,
            &["dereference-command-line-symlink-to-dir"],
            WHICH,
            "likewise, only for FILEs that are links to directories",
        ),
        flag(Id::Layout(LayoutId::Long), Some(b'l'), &[], WHAT, "one line per file, with its attributes"),
        flag(Id::Column(ColumnId::NoOwner), Some(b'g'), &[], WHAT, "like -l, without the owner"),
        flag(Id::Column(ColumnId::NoGroupLong), Some(b'o'), &[], WHAT, "like -l, without the group"),
        flag(Id::Column(ColumnId::NoGroup), Some(b'G'), &["no-group"], WHAT, "omit the group in long lines"),
        flag(
            Id::Column(ColumnId::NumericIds),
            Some(b'n'),
            &["numeric-uid-gid"],
            WHAT,
            "like -l, with numeric user and group IDs",
        ),
        flag(Id::Column(ColumnId::Author), None, &["author"], WHAT, "show the author in long lines"),
        flag(Id::Column(ColumnId::FullTime), None, &["full-time"], WHAT, "like -l --time-style=full-iso"),
        flag(Id::Column(ColumnId::Inode), Some(b'i'), &["inode"], WHAT, "show inode numbers"),
        flag(Id::Column(ColumnId::Size), Some(b's'), &["size"], WHAT, "show allocated sizes, in blocks"),
        flag(Id::Column(ColumnId::Context), Some(b'Z'), &["context"], WHAT, "show security contexts"),
        flag(Id::Column(ColumnId::Human), Some(b'h'), &["human-readable"], WHAT, "sizes like 1K, 234M, 2G"),
        flag(Id::Column(ColumnId::Si), None, &["si"], WHAT, "likewise, in powers of 1000"),
        value(
            Id::Column(ColumnId::BlockSize),
            None,
            &["block-size"],
            "SIZE",
            WHAT,
            "sizes in units of SIZE, like K or 1MB",
        ),
        flag(
            Id::Column(ColumnId::Kibibytes),
            Some(b'k'),
            &["kibibytes"],
            WHAT,
            "allocated sizes in units of 1024 bytes",
        ),
        flag(
            Id::Layout(LayoutId::Columns),
            Some(b'C'),
            &[],
            LAYOUT,
            "columns, sorted downwards; the default on a terminal",
        ),
        flag(Id::Layout(LayoutId::Across), Some(b'x'), &[], LAYOUT, "columns, sorted across"),
        flag(Id::Layout(LayoutId::Commas), Some(b'm'), &[], LAYOUT, "names separated by commas"),
        flag(
            Id::Layout(LayoutId::OnePerLine),
            Some(b'1'),
            &[],
            LAYOUT,
            "one name per line; the default when not on a terminal",
        ),
        value(Id::Layout(LayoutId::Format), None, &["format"], "WORD", LAYOUT, "choose the layout by name")
            .words(&["across", "commas", "horizontal", "long", "single-column", "verbose", "vertical"]),
        value(
            Id::Layout(LayoutId::Width),
            Some(b'w'),
            &["width"],
            "COLS",
            LAYOUT,
            "lines of COLS columns; 0 means no limit",
        ),
        value(
            Id::Layout(LayoutId::TabSize),
            Some(b'T'),
            &["tabsize"],
            "COLS",
            LAYOUT,
            "tab stops every COLS columns; 0 means no tabs",
        ),
        flag(
            Id::Layout(LayoutId::Zero),
            None,
            &["zero"],
            LAYOUT,
            "end lines with NUL, and print names literally",
        ),
        flag(Id::Order(OrderId::SortTime), Some(b't'), &[], ORDER, "newest first"),
        flag(Id::Order(OrderId::SortSize), Some(b'S'), &[], ORDER, "largest first"),
        flag(Id::Order(OrderId::SortExtension), Some(b'X'), &[], ORDER, "by extension"),
        flag(
            Id::Order(OrderId::SortVersion),
            Some(b'v'),
            &[],
            ORDER,
            "by name, with numbers compared as numbers",
        ),
        flag(
            Id::Order(OrderId::Unsorted),
            Some(b'U'),
            &[],
            ORDER,
            "in directory order; names are printed as they are read",
        ),
        flag(Id::Order(OrderId::UnsortedAll), Some(b'f'), &[], ORDER, "the same as -aU"),
        value(Id::Order(OrderId::Sort), None, &["sort"], "WORD", ORDER, "choose the order by name").words(&[
            "none",
            "name",
            "size",
            "time",
            "version",
            "extension",
            "width",
        ]),
        flag(Id::Order(OrderId::Reverse), Some(b'r'), &["reverse"], ORDER, "reverse the order"),
        flag(
            Id::Order(OrderId::DirectoriesFirst),
            None,
            &["group-directories-first"],
            ORDER,
            "directories before files",
        ),
        flag(Id::Order(OrderId::Change), Some(b'c'), &[], ORDER, "use the time of the last attribute change"),
        flag(Id::Order(OrderId::Access), Some(b'u'), &[], ORDER, "use the time of the last access"),
        value(Id::Order(OrderId::Time), None, &["time"], "WORD", ORDER, "choose the time by name").words(&[
            "atime",
            "access",
            "use",
            "ctime",
            "status",
            "mtime",
            "modification",
            "birth",
            "creation",
        ]),
        value(
            Id::Order(OrderId::TimeStyle),
            None,
            &["time-style"],
            "STYLE",
            ORDER,
            "full-iso, long-iso, iso, locale, or +FORMAT as for date(1); posix-STYLE is STYLE outside of the \
             POSIX locale",
        ),
        flag(
            Id::Name(NameId::Escape),
            Some(b'b'),
            &["escape"],
            NAMES,
            "C escapes for nonprintable characters",
        ),
        flag(Id::Name(NameId::Literal), Some(b'N'), &["literal"], NAMES, "names as they are"),
        flag(Id::Name(NameId::QuoteName), Some(b'Q'), &["quote-name"], NAMES, "names in double quotes"),
        value(
            Id::Name(NameId::QuotingStyle),
            None,
            &["quoting-style"],
            "WORD",
            NAMES,
            "choose the quoting style by name",
        )
        .words(&[
            "literal",
            "locale",
            "shell",
            "shell-always",
            "shell-escape",
            "shell-escape-always",
            "c",
            "c-maybe",
            "clocale",
            "escape",
        ]),
        flag(
            Id::Name(NameId::HideControl),
            Some(b'q'),
            &["hide-control-chars"],
            NAMES,
            "? for nonprintable characters",
        ),
        flag(
            Id::Name(NameId::ShowControl),
            None,
            &["show-control-chars"],
            NAMES,
            "nonprintable characters as they are",
        ),
        flag(Id::Name(NameId::Classify), Some(b'F'), &[], NAMES, "append one of */=@| to show the type"),
        optional(
            Id::Name(NameId::ClassifyWhen),
            None,
            &["classify"],
            "WHEN",
            NAMES,
            "likewise, always, auto or never",
        )
        .words(WHEN),
        flag(Id::Name(NameId::FileType), None, &["file-type"], NAMES, "likewise, without *"),
        flag(Id::Name(NameId::Slash), Some(b'p'), &[], NAMES, "append / to directories"),
        value(
            Id::Name(NameId::IndicatorStyle),
            None,
            &["indicator-style"],
            "WORD",
            NAMES,
            "choose the appended indicators by name",
        )
        .words(&["none", "slash", "file-type", "classify"]),
        optional(
            Id::Name(NameId::Color),
            None,
            &["color"],
            "WHEN",
            NAMES,
            "color names by type: always, auto or never",
        )
        .words(WHEN),
        optional(
            Id::Name(NameId::Hyperlink),
            None,
            &["hyperlink"],
            "WHEN",
            NAMES,
            "make names hyperlinks to the files: always, auto or never",
        )
        .words(WHEN),
        flag(
            Id::Which(WhichId::Dired),
            Some(b'D'),
            &["dired"],
            OTHER,
            "like -l, with the offsets of names for Emacs",
        ),
        json(Id::Which(WhichId::Json)),
        extension(
            Id::Which(WhichId::Paths),
            &["paths"],
            Argument::None,
            "write the path of every file of the whole tree as soon as it is found, in no particular order",
        ),
        threads(Id::Which(WhichId::Threads)),
        verbose(Id::Which(WhichId::Verbose)),
        help_option(OTHER),
        version_option(OTHER),
    ],
    long_order: &[
        "all",
        "escape",
        "directory",
        "dired",
        "full-time",
        "group-directories-first",
        "human-readable",
        "inode",
        "kibibytes",
        "numeric-uid-gid",
        "no-group",
        "hide-control-chars",
        "reverse",
        "size",
        "width",
        "almost-all",
        "ignore-backups",
        "classify",
        "file-type",
        "si",
        "dereference-command-line",
        "dereference-command-line-symlink-to-dir",
        "hide",
        "ignore",
        "indicator-style",
        "dereference",
        "literal",
        "quote-name",
        "quoting-style",
        "recursive",
        "format",
        "show-control-chars",
        "sort",
        "tabsize",
        "time",
        "time-style",
        "zero",
        "color",
        "hyperlink",
        "block-size",
        "context",
        "author",
        "help",
        "version",
    ],
    sections: &[
        Section {
            title: "Whole trees",
            body: &[Paragraph::Text(
                "--json writes a record for every entry below the FILEs, including hidden ones, and with -d \
                 for the FILEs themselves. Names that are not UTF-8 can be restored from it. --paths writes \
                 the paths of regular files and of links to them, byte for byte; hidden ones only with -a \
                 or -A. Neither needs -R, sorts its output, or holds more than a few thousand entries in \
                 memory. Directories that match -I or -B are not entered.",
            )],
        },
        Section {
            title: "Memory",
            body: &[Paragraph::Text(
                "Names in directory order, one per line (-U1), are written as they are read. Every other \
                 listing holds one directory in memory: the name and about 40 bytes for each entry, 104 with \
                 -l.",
            )],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Terms(&[
                ("0", "success"),
                ("1", "something below the FILEs could not be listed"),
                ("2", "one of the FILEs could not be listed, or an option is wrong"),
            ])],
        },
    ],
};
