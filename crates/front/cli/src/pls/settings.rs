//! Converts options and environment to the options of a listing.

use std::ffi::{CStr, CString, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;

use millstream_inspect::list::color::{ColorError, Colors};
use millstream_inspect::list::options::{
    Depth, Dereference, Hidden, Indicator, Layout, NamePattern, SortKey, TimeField,
};
use millstream_inspect::list::{ListOptions, TreeForm};
use millstream_system::locale::{Locale, LocaleKind};
use millstream_text::quote::{ControlCharacters, QuotingStyle};
use millstream_text::size::{Base, SizeFormat};
use millstream_text::time::TimeStyle;

use super::arguments::{
    FORMATS, INDICATORS, QUOTING_STYLES, SORTS, TIMES, WHENS, When, block_size_message, integer,
    known_terminal,
};
use super::table::{ColumnId, Id, LayoutId, NameId, OrderId, WhichId};
use crate::diagnostics::{Diagnostics, UsageError};
use crate::options::{Choice, Occurrence, choose};
use crate::startup::parse_threads;

/// The request of a command line.
#[derive(Debug)]
pub struct Settings {
    /// The listing.
    pub list: ListOptions,
    /// The form of the output if it is not a listing.
    pub tree: Option<TreeForm>,
    /// Whether to print a summary at the end.
    pub verbose: bool,
}

/// The options given so far; the defaults of the others depend on the rest of the command line.
#[derive(Debug)]
pub struct Collector<'a> {
    diagnostics: &'a Diagnostics,
    list: ListOptions,
    layout: Option<Layout>,
    sort: Option<SortKey>,
    time_given: bool,
    time_style: Option<OsString>,
    dereference: Option<Dereference>,
    quoting: Option<QuotingStyle>,
    control: Option<ControlCharacters>,
    sizes: Option<SizeFormat>,
    kibibytes: bool,
    colored: bool,
    hyperlinks: bool,
    line_width: Option<usize>,
    tab_width: Option<usize>,
    tree: Option<TreeForm>,
    verbose: bool,
    stdout_is_terminal: bool,
}

/// Why there is no listing.
#[derive(Debug)]
pub enum Refusal {
    /// A mistake to report together with the hint at `--help`.
    WithHint(UsageError),
    /// Any other mistake, as a complete message.
    Plain(Vec<u8>),
}

impl From<UsageError> for Refusal {
    fn from(error: UsageError) -> Self {
        Refusal::WithHint(error)
    }
}

impl<'a> Collector<'a> {
    /// No options given yet.
    pub fn new(locale: &'static Locale, diagnostics: &'a Diagnostics) -> Self {
        Collector {
            diagnostics,
            list: ListOptions::new(locale),
            layout: None,
            sort: None,
            time_given: false,
            time_style: None,
            dereference: None,
            quoting: None,
            control: None,
            sizes: None,
            kibibytes: false,
            colored: false,
            hyperlinks: false,
            line_width: None,
            tab_width: None,
            tree: None,
            verbose: false,
            stdout_is_terminal: std::io::stdout().is_terminal(),
        }
    }

    /// Handles one option.
    ///
    /// # Errors
    /// If the argument is invalid.
    pub fn take(&mut self, option: &Occurrence<Id>) -> Result<(), Refusal> {
        match option.id {
            Id::Which(id) => self.take_which(id, option),
            Id::Column(id) => self.take_column(id, option),
            Id::Layout(id) => self.take_layout(id, option),
            Id::Order(id) => self.take_order(id, option),
            Id::Name(id) => self.take_name(id, option),
        }
    }

    fn take_which(&mut self, id: WhichId, option: &Occurrence<Id>) -> Result<(), Refusal> {
        match id {
            WhichId::All => self.list.hidden = Hidden::ShowWithDots,
            WhichId::AlmostAll => self.list.hidden = Hidden::Show,
            WhichId::IgnoreBackups => {
                self.list.ignore.extend([c"*~", c".*~"].map(|p| NamePattern::new(p.to_owned())));
            }
            WhichId::Ignore => self.list.ignore.push(pattern(option)),
            WhichId::Hide => self.list.hide.push(pattern(option)),
            WhichId::Directory => self.list.depth = Depth::Entries,
            WhichId::Recursive if self.list.depth == Depth::Entries => {}
            WhichId::Recursive => self.list.depth = Depth::Tree,
            WhichId::Dereference => self.dereference = Some(Dereference::Always),
            WhichId::DereferenceOperands => self.dereference = Some(Dereference::Operands),
            WhichId::DereferenceOperandDirectories => {
                self.dereference = Some(Dereference::OperandDirectories)
            }
            WhichId::Dired => {
                self.list.dired = true;
                self.layout = Some(Layout::Long);
                self.hyperlinks = false;
            }
            WhichId::Json => self.tree = Some(TreeForm::Records),
            WhichId::Paths => self.tree = Some(TreeForm::Paths),
            WhichId::Threads => self.list.threads = parse_threads(option.bytes(), self.diagnostics)?,
            WhichId::Verbose => self.verbose = true,
        }
        Ok(())
    }

    fn take_column(&mut self, id: ColumnId, option: &Occurrence<Id>) -> Result<(), Refusal> {
        let columns = &mut self.list.columns;
        match id {
            ColumnId::NoOwner => columns.owner = false,
            ColumnId::NoGroupLong | ColumnId::NoGroup => columns.group = false,
            ColumnId::NumericIds => columns.numeric_ids = true,
            ColumnId::Author => columns.author = true,
            ColumnId::FullTime => self.time_style = Some("full-iso".into()),
            ColumnId::Inode => columns.inode = true,
            ColumnId::Size => columns.blocks = true,
            ColumnId::Context => columns.context = true,
            ColumnId::Human => self.set_sizes(SizeFormat::Human(Base::Binary)),
            ColumnId::Si => self.set_sizes(SizeFormat::Human(Base::Decimal)),
            ColumnId::BlockSize => {
                let text = String::from_utf8_lossy(option.bytes());
                let sizes = SizeFormat::parse(&text)
                    .map_err(|error| Refusal::Plain(block_size_message(error, option)))?;
                self.set_sizes(sizes);
            }
            ColumnId::Kibibytes => self.kibibytes = true,
        }
        if matches!(id, ColumnId::NoOwner | ColumnId::NoGroupLong | ColumnId::NumericIds | ColumnId::FullTime)
        {
            self.layout = Some(Layout::Long);
        }
        Ok(())
    }

    fn set_sizes(&mut self, sizes: SizeFormat) {
        self.list.file_size = sizes.clone();
        self.sizes = Some(sizes);
    }

    fn take_layout(&mut self, id: LayoutId, option: &Occurrence<Id>) -> Result<(), Refusal> {
        match id {
            LayoutId::Long => self.layout = Some(Layout::Long),
            LayoutId::Columns => self.layout = Some(Layout::Columns),
            LayoutId::Across => self.layout = Some(Layout::Across),
            LayoutId::Commas => self.layout = Some(Layout::Commas),
            LayoutId::OnePerLine => self.set_one_per_line(),
            LayoutId::Format => self.layout = Some(self.choose(option, FORMATS)?),
            LayoutId::Width => {
                // A number that is too large means no limit.
                let width =
                    integer(option.bytes()).ok_or_else(|| self.refuse("invalid line width: ", option))?;
                self.line_width = Some(width.unwrap_or(0));
            }
            LayoutId::TabSize => {
                let width =
                    integer(option.bytes()).ok_or_else(|| self.refuse("invalid tab size: ", option))?;
                self.tab_width = Some(width.ok_or_else(|| {
                    let Refusal::Plain(mut message) = self.refuse("invalid tab size: ", option) else {
                        return Refusal::Plain(Vec::new());
                    };
                    message.extend_from_slice(b": Value too large for defined data type");
                    Refusal::Plain(message)
                })?);
            }
            LayoutId::Zero => {
                self.list.line_end = 0;
                self.colored = false;
                self.set_one_per_line();
                self.quoting = Some(QuotingStyle::Literal);
                self.control = Some(ControlCharacters::Show);
            }
        }
        Ok(())
    }

    /// One name per line, unless long lines were chosen.
    fn set_one_per_line(&mut self) {
        if self.layout != Some(Layout::Long) {
            self.layout = Some(Layout::OnePerLine);
        }
    }

    fn take_order(&mut self, id: OrderId, option: &Occurrence<Id>) -> Result<(), Refusal> {
        match id {
            OrderId::SortTime => self.sort = Some(SortKey::Time),
            OrderId::SortSize => self.sort = Some(SortKey::Size),
            OrderId::SortExtension => self.sort = Some(SortKey::Extension),
            OrderId::SortVersion => self.sort = Some(SortKey::Version),
            OrderId::Unsorted => self.sort = Some(SortKey::None),
            OrderId::UnsortedAll => {
                self.list.hidden = Hidden::ShowWithDots;
                self.sort = Some(SortKey::None);
            }
            OrderId::Sort => self.sort = Some(self.choose(option, SORTS)?),
            OrderId::Reverse => self.list.reverse = true,
            OrderId::DirectoriesFirst => self.list.directories_first = true,
            OrderId::Change => self.set_time(TimeField::Change),
            OrderId::Access => self.set_time(TimeField::Access),
            OrderId::Time => {
                let time = self.choose(option, TIMES)?;
                self.set_time(time);
            }
            OrderId::TimeStyle => self.time_style.clone_from(&option.value),
        }
        Ok(())
    }

    fn set_time(&mut self, time: TimeField) {
        self.list.time = time;
        self.time_given = true;
    }

    fn take_name(&mut self, id: NameId, option: &Occurrence<Id>) -> Result<(), Refusal> {
        match id {
            NameId::Escape => self.quoting = Some(QuotingStyle::Escape),
            NameId::Literal => self.quoting = Some(QuotingStyle::Literal),
            NameId::QuoteName => self.quoting = Some(QuotingStyle::C),
            NameId::QuotingStyle => self.quoting = Some(self.choose(option, QUOTING_STYLES)?),
            NameId::HideControl => self.control = Some(ControlCharacters::Hide),
            NameId::ShowControl => self.control = Some(ControlCharacters::Show),
            NameId::Classify => self.list.indicator = Indicator::Classify,
            NameId::ClassifyWhen => {
                if self.applies(option)? {
                    self.list.indicator = Indicator::Classify;
                }
            }
            NameId::FileType => self.list.indicator = Indicator::FileType,
            NameId::Slash => self.list.indicator = Indicator::Slash,
            NameId::IndicatorStyle => self.list.indicator = self.choose(option, INDICATORS)?,
            NameId::Color => self.colored = self.applies(option)?,
            NameId::Hyperlink => self.hyperlinks = self.applies(option)?,
        }
        Ok(())
    }

    /// Whether an option with an argument like `auto` applies.
    fn applies(&self, option: &Occurrence<Id>) -> Result<bool, Refusal> {
        if option.value.is_none() {
            return Ok(true);
        }
        Ok(match self.choose(option, WHENS)? {
            When::Always => true,
            When::Never => false,
            When::Auto => self.stdout_is_terminal,
        })
    }

    fn choose<T: Copy>(&self, option: &Occurrence<Id>, choices: &[Choice<T>]) -> Result<T, Refusal> {
        Ok(choose(option.bytes(), &option.spelling.to_string(), choices, self.diagnostics)?)
    }

    fn refuse(&self, what: &str, option: &Occurrence<Id>) -> Refusal {
        Refusal::Plain([what.as_bytes(), &self.diagnostics.quoted(option.bytes())].concat())
    }

    /// The options given, and the settings that follow from them and the environment.
    ///
    /// # Errors
    /// If the options are incompatible, or a time style does not exist.
    pub fn finish(mut self) -> Result<Settings, Refusal> {
        let terminal = self.stdout_is_terminal;
        let default_layout = if terminal { Layout::Columns } else { Layout::OnePerLine };
        self.list.layout = self.layout.unwrap_or(default_layout);
        let default_sort = match self.list.layout {
            Layout::Long => SortKey::Name,
            _ if self.time_given => SortKey::Time,
            _ => SortKey::Name,
        };
        self.list.sort = self.sort.unwrap_or(default_sort);
        self.list.dereference = self.dereference.unwrap_or_else(|| self.default_dereference());
        self.finish_sizes();
        self.list.quoting =
            self.quoting.or_else(|| self.quoting_from_environment()).unwrap_or(match terminal {
                true => QuotingStyle::ShellEscape,
                false => QuotingStyle::Literal,
            });
        self.list.control = self.control.unwrap_or(match terminal {
            true => ControlCharacters::Hide,
            false => ControlCharacters::Show,
        });
        self.finish_colors();
        self.finish_lines();
        let is_long = self.list.layout == Layout::Long;
        self.list.dired &= is_long && !self.hyperlinks;
        if self.list.dired && self.list.line_end == 0 {
            return Err(Refusal::Plain(b"--dired and --zero are incompatible".to_vec()));
        }
        if self.hyperlinks {
            self.list.hyperlink_host = Some(rustix::system::uname().nodename().to_bytes().to_vec());
        }
        if is_long {
            self.finish_times()?;
        }
        Ok(Settings { list: self.list, tree: self.tree, verbose: self.verbose })
    }

    fn default_dereference(&self) -> Dereference {
        let shows_links = self.list.depth == Depth::Entries
            || self.list.indicator == Indicator::Classify
            || self.list.layout == Layout::Long;
        // Records and paths describe trees, so links to trees are followed.
        if shows_links && self.tree.is_none() { Dereference::Never } else { Dereference::OperandDirectories }
    }

    fn finish_sizes(&mut self) {
        if let Some(sizes) = self.sizes.take() {
            self.list.block_size = sizes;
            return;
        }
        let variable = |name| std::env::var_os(name);
        let for_files = variable("LS_BLOCK_SIZE").or_else(|| variable("BLOCK_SIZE"));
        let given = for_files.clone().or_else(|| variable("BLOCKSIZE"));
        let default = match variable("POSIXLY_CORRECT") {
            Some(_) => SizeFormat::HALF_KIBIBYTES,
            None => SizeFormat::KIBIBYTES,
        };
        let parsed = given.and_then(|text| SizeFormat::from_variable(&text.to_string_lossy()));
        self.list.block_size = parsed.unwrap_or(default);
        if for_files.is_some() {
            self.list.file_size = self.list.block_size.clone();
        }
        if self.kibibytes {
            self.list.block_size = SizeFormat::KIBIBYTES;
        }
    }

    fn quoting_from_environment(&self) -> Option<QuotingStyle> {
        let value = std::env::var_os("QUOTING_STYLE")?;
        let found = QUOTING_STYLES.iter().find(|c| c.words.iter().any(|w| w.as_bytes() == value.as_bytes()));
        if found.is_none() {
            self.ignore_variable("value of environment variable QUOTING_STYLE", value.as_bytes());
        }
        found.map(|choice| choice.meaning)
    }

    fn ignore_variable(&self, what: &str, value: &[u8]) {
        self.diagnostics.warning().text("ignoring invalid ").text(what).text(": ").quoted(value).send();
    }

    fn finish_colors(&mut self) {
        if !self.colored {
            return;
        }
        self.list.colors = match std::env::var_os("LS_COLORS").filter(|value| !value.is_empty()) {
            None => known_terminal().then(Colors::default),
            Some(value) => match Colors::parse(value.as_bytes()) {
                Ok(colors) => Some(colors),
                Err(error) => {
                    if let ColorError::UnrecognizedPrefix(prefix) = &error {
                        self.diagnostics.warning().text("unrecognized prefix: ").quoted(prefix).send();
                    }
                    self.diagnostics
                        .warning()
                        .text("unparsable value for LS_COLORS environment variable")
                        .send();
                    None
                }
            },
        };
    }

    fn finish_lines(&mut self) {
        let grid = matches!(self.list.layout, Layout::Columns | Layout::Across | Layout::Commas);
        if !grid && self.list.colors.is_none() {
            return;
        }
        self.list.line_width = self.line_width.unwrap_or_else(|| self.default_line_width());
        let tabs = |c: &Self| {
            let value = std::env::var_os("TABSIZE")?;
            let width = integer(value.as_bytes()).flatten();
            if width.is_none() {
                c.ignore_variable("tab size in environment variable TABSIZE", value.as_bytes());
            }
            width
        };
        if grid {
            self.list.tab_width = self.tab_width.or_else(|| tabs(self)).unwrap_or(self.list.tab_width);
        }
    }

    fn default_line_width(&self) -> usize {
        let terminal = self.stdout_is_terminal.then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok());
        if let Some(columns) = terminal.flatten().map(|size| usize::from(size.ws_col)).filter(|&n| n > 0) {
            return columns;
        }
        let Some(value) = std::env::var_os("COLUMNS").filter(|value| !value.is_empty()) else {
            return self.list.line_width;
        };
        integer(value.as_bytes()).map_or_else(
            || {
                self.ignore_variable("width in environment variable COLUMNS", value.as_bytes());
                self.list.line_width
            },
            |width| width.unwrap_or(0),
        )
    }

    fn finish_times(&mut self) -> Result<(), Refusal> {
        let style = self.time_style.take().or_else(|| std::env::var_os("TIME_STYLE"));
        let style = style.unwrap_or_else(|| "locale".into());
        let mut word = style.as_bytes();
        while let Some(rest) = word.strip_prefix(b"posix-") {
            if self.list.locale.time() == LocaleKind::Posix {
                return Ok(());
            }
            word = rest;
        }
        let locale = self.list.locale;
        let (old, recent) = match word {
            [b'+', format @ ..] => {
                let (old, recent) = self.split_time_format(format)?;
                (old.to_vec(), recent.to_vec())
            }
            _ => match self.choose_time_style(word)? {
                ChosenTimeStyle::Fixed(old, recent) => (old.to_vec(), recent.to_vec()),
                ChosenTimeStyle::OfLocale(old, recent) => {
                    (locale.coreutils_date_format(old), locale.coreutils_date_format(recent))
                }
            },
        };
        self.list.time_style = TimeStyle::new(&old, &recent, locale);
        Ok(())
    }

    fn split_time_format<'f>(&self, format: &'f [u8]) -> Result<(&'f [u8], &'f [u8]), Refusal> {
        let mut lines = format.splitn(3, |&b| b == b'\n');
        let (old, recent) = (lines.next().unwrap_or_default(), lines.next());
        if lines.next().is_some() {
            let message = [b"invalid time style format ", &self.diagnostics.quoted(format)[..]].concat();
            return Err(Refusal::Plain(message));
        }
        Ok((old, recent.unwrap_or(old)))
    }

    fn choose_time_style(&self, word: &[u8]) -> Result<ChosenTimeStyle, Refusal> {
        use ChosenTimeStyle::{Fixed, OfLocale};
        const STYLES: &[(&str, ChosenTimeStyle)] = &[
            ("full-iso", Fixed(b"%Y-%m-%d %H:%M:%S.%N %z", b"%Y-%m-%d %H:%M:%S.%N %z")),
            ("long-iso", Fixed(b"%Y-%m-%d %H:%M", b"%Y-%m-%d %H:%M")),
            ("iso", Fixed(b"%Y-%m-%d ", b"%m-%d %H:%M")),
            ("locale", OfLocale(c"%b %e  %Y", c"%b %e %H:%M")),
        ];
        let exact = STYLES.iter().find(|(name, ..)| name.as_bytes() == word);
        let mut possible = STYLES.iter().filter(|(name, ..)| name.as_bytes().starts_with(word));
        let found = exact.or_else(|| possible.next().filter(|_| possible.next().is_none()));
        found.map(|&(_, style)| style).ok_or_else(|| {
            let ambiguous = STYLES.iter().any(|(name, ..)| name.as_bytes().starts_with(word));
            let mut message = if ambiguous { b"ambiguous".to_vec() } else { b"invalid".to_vec() };
            message.extend_from_slice(b" argument ");
            message.extend(self.diagnostics.quoted(word));
            message.extend_from_slice(b" for ");
            message.extend(self.diagnostics.quoted(b"time style"));
            message.extend_from_slice(b"\nValid arguments are:");
            for (name, ..) in STYLES {
                message.extend_from_slice(format!("\n  - [posix-]{name}").as_bytes());
            }
            message.extend_from_slice(b"\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format");
            Refusal::WithHint(UsageError::option(message))
        })
    }
}

/// Formats of dates, for old files and for recent ones.
#[derive(Clone, Copy)]
enum ChosenTimeStyle {
    /// These formats, in every language.
    Fixed(&'static [u8], &'static [u8]),
    /// The formats that the language of dates uses instead.
    OfLocale(&'static CStr, &'static CStr),
}

fn pattern(option: &Occurrence<Id>) -> NamePattern {
    NamePattern::new(CString::new(option.bytes()).expect("an argument of a process, which has no NUL"))
}
