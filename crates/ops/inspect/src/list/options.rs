//! Options of a listing.

use std::ffi::{CStr, CString};

use millstream_system::locale::Locale;
use millstream_system::pattern::{CaseSensitivity, matches_glob};
use millstream_vfs::{Fields, Metadata, Timestamp};
use millstream_walk::Threads;

use super::color::{Colors, Role};
use millstream_text::quote::{ControlCharacters, QuotingStyle};
use millstream_text::size::SizeFormat;
use millstream_text::time::TimeStyle;

/// How the entries of a directory are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line per entry, with its attributes (`-l`).
    Long,
    /// One line per entry (`-1`).
    OnePerLine,
    /// Columns, sorted downwards (`-C`).
    Columns,
    /// Columns, sorted across (`-x`).
    Across,
    /// Separated by commas (`-m`).
    Commas,
}

/// The sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// The order of the directory (`-U`).
    None,
    /// Name, in the order of the locale.
    Name,
    /// Extension, then name (`-X`).
    Extension,
    /// Name, with numbers as numbers (`-v`).
    Version,
    /// Width of the name.
    Width,
    /// Size, largest first (`-S`).
    Size,
    /// Time, newest first (`-t`).
    Time,
}

/// Which time to show and sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeField {
    /// Last change of the contents.
    Modification,
    /// Last change of the attributes (`-c`).
    Change,
    /// Last access (`-u`).
    Access,
    /// Creation.
    Birth,
}

impl TimeField {
    /// The fields to request from the volume.
    pub fn field(self) -> Fields {
        match self {
            TimeField::Modification => Fields::MTIME,
            TimeField::Change => Fields::CTIME,
            TimeField::Access => Fields::ATIME,
            TimeField::Birth => Fields::BTIME,
        }
    }

    /// The time, `None` if the volume does not know it.
    pub fn of(self, metadata: &Metadata) -> Option<Timestamp> {
        metadata.fields.contains(self.field()).then_some(match self {
            TimeField::Modification => metadata.mtime,
            TimeField::Change => metadata.ctime,
            TimeField::Access => metadata.atime,
            TimeField::Birth => metadata.btime,
        })
    }
}

/// Which names that begin with a dot to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// None.
    Skip,
    /// All but `.` and `..` (`-A`).
    Show,
    /// All (`-a`).
    ShowWithDots,
}

/// The indicators to append to names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indicator {
    /// Nothing.
    None,
    /// `/` (`-p`).
    Slash,
    /// One of `/=@|` (`--file-type`).
    FileType,
    /// One of `*/=@|` (`-F`).
    Classify,
}

/// Which symbolic links to replace by their targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dereference {
    /// None.
    Never,
    /// Operands that lead to directories.
    OperandDirectories,
    /// All operands (`-H`).
    Operands,
    /// All (`-L`).
    Always,
}

/// How to treat directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// List them like files (`-d`).
    Entries,
    /// List the contents of operands.
    Operands,
    /// List the contents of all (`-R`).
    Tree,
}

/// The columns of a listing other than name, mode, number of links, size and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Inode number (`-i`).
    pub inode: bool,
    /// Allocated blocks (`-s`).
    pub blocks: bool,
    /// Security context (`-Z`).
    pub context: bool,
    /// Owner, in long lines.
    pub owner: bool,
    /// Group, in long lines.
    pub group: bool,
    /// The owner once more, in long lines (`--author`).
    pub author: bool,
    /// Numbers instead of names of users and groups (`-n`).
    pub numeric_ids: bool,
}

/// A shell pattern for names to omit.
#[derive(Clone, Debug)]
pub struct NamePattern {
    pattern: CString,
}

impl NamePattern {
    /// From its text.
    pub fn new(pattern: CString) -> Self {
        NamePattern { pattern }
    }

    /// Whether `name` matches; a dot at its beginning only matches a dot.
    pub fn matches(&self, name: &CStr) -> bool {
        let explicit = matches!(self.pattern.to_bytes(), [b'.', ..] | [b'\\', b'.', ..]);
        (explicit || !name.to_bytes().starts_with(b"."))
            && matches_glob(&self.pattern, name, CaseSensitivity::Sensitive)
    }
}

/// Options of a listing.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// The locale of names, dates and numbers.
    pub locale: &'static Locale,
    /// Layout of the entries.
    pub layout: Layout,
    /// Extra columns.
    pub columns: Columns,
    /// Sort key.
    pub sort: SortKey,
    /// Whether the order is reversed (`-r`).
    pub reverse: bool,
    /// Whether directories come first.
    pub directories_first: bool,
    /// Time that is shown and sorted by.
    pub time: TimeField,
    /// How times are written.
    pub time_style: TimeStyle,
    /// How to treat directories.
    pub depth: Depth,
    /// Which links to replace by their targets.
    pub dereference: Dereference,
    /// Which hidden names to list.
    pub hidden: Hidden,
    /// Names that are never listed (`-I`, `-B`).
    pub ignore: Vec<NamePattern>,
    /// Names that are not listed unless `-a` or `-A` is given (`--hide`).
    pub hide: Vec<NamePattern>,
    /// The indicators to append to names.
    pub indicator: Indicator,
    /// How names are quoted.
    pub quoting: QuotingStyle,
    /// How to show control characters in names.
    pub control: ControlCharacters,
    /// Colors of names, if any.
    pub colors: Option<Colors>,
    /// Host name for hyperlinks, if names are links.
    pub hyperlink_host: Option<Vec<u8>>,
    /// How sizes are written.
    pub file_size: SizeFormat,
    /// How allocated space is written.
    pub block_size: SizeFormat,
    /// Line width in columns, 0 for no limit.
    pub line_width: usize,
    /// Columns between tab stops, 0 for no tabs.
    pub tab_width: usize,
    /// The line terminator: a newline or a NUL.
    pub line_end: u8,
    /// Whether to print the offsets of names for Emacs (`-D`).
    pub dired: bool,
    /// Number of workers.
    pub threads: Threads,
}

impl ListOptions {
    /// The options of a plain call that writes to a pipe: names, one per line.
    pub fn new(locale: &'static Locale) -> Self {
        let old = b"%b %e  %Y";
        let recent = b"%b %e %H:%M";
        ListOptions {
            locale,
            layout: Layout::OnePerLine,
            columns: Columns { owner: true, group: true, ..Columns::default() },
            sort: SortKey::Name,
            reverse: false,
            directories_first: false,
            time: TimeField::Modification,
            time_style: TimeStyle::new(old, recent, locale),
            depth: Depth::Operands,
            dereference: Dereference::OperandDirectories,
            hidden: Hidden::Skip,
            ignore: Vec::new(),
            hide: Vec::new(),
            indicator: Indicator::None,
            quoting: QuotingStyle::Literal,
            control: ControlCharacters::Show,
            colors: None,
            hyperlink_host: None,
            file_size: SizeFormat::BYTES,
            block_size: SizeFormat::KIBIBYTES,
            line_width: 80,
            tab_width: 8,
            line_end: b'\n',
            dired: false,
            threads: Threads::default(),
        }
    }

    /// Whether `name` is listed as an entry of a directory.
    pub fn shows(&self, name: &CStr) -> bool {
        if self.hidden == Hidden::Skip
            && (name.to_bytes().starts_with(b".") || self.hide.iter().any(|p| p.matches(name)))
        {
            return false;
        }
        !self.ignores(name)
    }

    /// Whether `name` is never listed.
    pub fn ignores(&self, name: &CStr) -> bool {
        self.ignore.iter().any(|p| p.matches(name))
    }

    /// Whether every entry's attributes are needed, whatever its type.
    pub(super) fn needs_attributes(&self) -> bool {
        self.layout == Layout::Long
            || self.columns.blocks
            || self.columns.context
            || matches!(self.sort, SortKey::Size | SortKey::Time)
    }

    /// Whether the type of every entry is needed.
    pub(super) fn needs_kind(&self) -> bool {
        self.depth == Depth::Tree
            || self.colors.is_some()
            || self.indicator != Indicator::None
            || self.directories_first
            || self.hyperlink_host.is_some()
    }

    pub(super) fn colors_any_of(&self, roles: &[Role]) -> bool {
        self.colors.as_ref().is_some_and(|colors| roles.iter().any(|&role| colors.is_colored(role)))
    }

    /// As in GNU ls, links have their targets' colors only if executable files have one.
    fn links_have_target_colors(&self) -> bool {
        self.colors.as_ref().is_some_and(Colors::links_as_targets) && self.colors_any_of(&[Role::Executable])
    }

    /// Whether the types of links' targets matter to the order or the colors.
    pub(super) fn checks_targets(&self) -> bool {
        self.directories_first
            || self.colors_any_of(&[Role::Orphan])
            || (self.layout == Layout::Long && self.colors_any_of(&[Role::Missing]))
            || self.links_have_target_colors()
    }

    /// Whether a long line shows the type of a link's target.
    pub(super) fn marks_targets(&self) -> bool {
        self.indicator >= Indicator::FileType
    }

    /// The fields to request from the volume when attributes are needed.
    pub(super) fn fields(&self) -> Fields {
        let mut fields = Fields::KIND | Fields::MODE;
        if self.layout == Layout::Long {
            fields |= Fields::NLINK | Fields::SIZE | Fields::BLOCKS | self.time.field();
            if self.columns.owner || self.columns.author {
                fields |= Fields::UID;
            }
            if self.columns.group {
                fields |= Fields::GID;
            }
        }
        if self.columns.inode {
            fields |= Fields::INO;
        }
        if self.columns.blocks {
            fields |= Fields::BLOCKS;
        }
        match self.sort {
            SortKey::Size => fields |= Fields::SIZE,
            SortKey::Time => fields |= self.time.field(),
            _ => {}
        }
        if self.colors_any_of(&[Role::MultipleHardLinks]) {
            fields |= Fields::NLINK;
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_ignored_names() {
        let pattern = |text: &str| NamePattern::new(CString::new(text).expect("no NUL"));
        let mut options = ListOptions::new(Locale::from_environment());
        options.ignore = vec![pattern("*~"), pattern(".*~")];
        options.hide = vec![pattern("*.o")];
        for (hidden, name, shown) in [
            (Hidden::Skip, c"a", true),
            (Hidden::Skip, c".a", false),
            (Hidden::Skip, c"a.o", false),
            (Hidden::Show, c"a.o", true),
            (Hidden::Show, c".a", true),
            (Hidden::Show, c"a~", false),
            (Hidden::Show, c".a~", false),
        ] {
            options.hidden = hidden;
            assert_eq!(options.shows(name), shown, "{hidden:?} {name:?}");
        }
        assert!(!pattern("*").matches(c".a"));
        assert!(!pattern("[.]a").matches(c".a"));
        assert!(pattern("\\.a").matches(c".a"));
    }
}
