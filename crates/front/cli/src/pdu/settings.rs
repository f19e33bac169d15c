//! Converts the options to settings of the measurement.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;

use millstream_inspect::du::{
    Exclude, FileSystems, GrandTotal, HardLinks, LineFormat, Lines, Measure, Options, Sizes, Subdirectories,
    Threshold, TimeField,
};
use millstream_system::locale::Locale;
use millstream_text::size::{Base, BlockSizeError, SizeFormat};
use millstream_text::time::TimeStyle;
use millstream_walk::{Cancellation, FollowPolicy, Threads};

use super::number::{block_size, integer, report_bad_size, threshold};
use super::table::{Id, ValueId};
use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::options::{Choice, Occurrence, Spelling, choose};
use crate::startup::parse_threads;

const TIMES: &[Choice<TimeField>] = &[
    Choice { words: &["atime", "access", "use"], meaning: TimeField::Accessed },
    Choice { words: &["ctime", "status"], meaning: TimeField::Changed },
];

const STYLES: &[Choice<&str>] = &[
    Choice { words: &["full-iso"], meaning: "%Y-%m-%d %H:%M:%S.%N %z" },
    Choice { words: &["long-iso"], meaning: "%Y-%m-%d %H:%M" },
    Choice { words: &["iso"], meaning: "%Y-%m-%d" },
];

/// The values of the options.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    diagnostics: &'a Diagnostics,
    locale: &'static Locale,
    lines: Lines,
    apparent_size: bool,
    inodes: bool,
    summarize: bool,
    max_depth: Option<i64>,
    hard_links: HardLinks,
    subdirectories: Subdirectories,
    file_systems: FileSystems,
    follow: FollowPolicy,
    exclude: Exclude,
    threshold: Option<Threshold>,
    time: Option<TimeField>,
    time_style: Option<Vec<u8>>,
    grand_total: GrandTotal,
    size: Option<SizeFormat>,
    terminator: u8,
    json: bool,
    threads: Threads,
    /// An error was found that does not prevent checking the options after it.
    wrong: bool,
    /// Name of the file with the names of operands.
    pub(super) files0_from: Option<Vec<u8>>,
    /// Whether to print a summary at the end.
    pub(super) verbose: bool,
}

fn blocks(bytes: u64) -> Option<SizeFormat> {
    NonZeroU64::new(bytes).map(SizeFormat::blocks)
}

impl<'a> Settings<'a> {
    pub(super) fn new(locale: &'static Locale, diagnostics: &'a Diagnostics) -> Self {
        Settings {
            diagnostics,
            locale,
            lines: Lines::Directories,
            apparent_size: false,
            inodes: false,
            summarize: false,
            max_depth: None,
            hard_links: HardLinks::Once,
            subdirectories: Subdirectories::Included,
            file_systems: FileSystems::All,
            follow: FollowPolicy::Never,
            exclude: Exclude::default(),
            threshold: None,
            time: None,
            time_style: None,
            grand_total: GrandTotal::Omit,
            size: None,
            terminator: b'\n',
            json: false,
            threads: Threads::default(),
            wrong: false,
            files0_from: None,
            verbose: false,
        }
    }

    /// Records that an option was invalid. The others are still checked before the command is refused.
    pub(super) fn note_wrong(&mut self) {
        self.wrong = true;
    }

    /// Handles an option.
    pub(super) fn take(&mut self, option: &Occurrence<Id>) -> Result<(), Refused> {
        match option.id {
            Id::All => self.lines = Lines::All,
            Id::ApparentSize => self.apparent_size = true,
            Id::Bytes => {
                self.apparent_size = true;
                self.size = blocks(1);
            }
            Id::CountLinks => self.hard_links = HardLinks::Each,
            Id::Dereference => self.follow = FollowPolicy::Always,
            Id::DereferenceArgs => self.follow = FollowPolicy::Operands,
            Id::NoDereference => self.follow = FollowPolicy::Never,
            Id::Exclude => self.exclude.add(option.bytes()),
            Id::Files0From => self.files0_from = Some(option.bytes().to_vec()),
            Id::HumanReadable => self.size = Some(SizeFormat::Human(Base::Binary)),
            Id::Si => self.size = Some(SizeFormat::Human(Base::Decimal)),
            Id::Inodes => self.inodes = true,
            Id::Kibibytes => self.size = blocks(1 << 10),
            Id::Mebibytes => self.size = blocks(1 << 20),
            Id::Null => self.terminator = 0,
            Id::OneFileSystem => self.file_systems = FileSystems::One,
            Id::SeparateDirs => self.subdirectories = Subdirectories::Separate,
            Id::Summarize => self.summarize = true,
            Id::TimeStyle => self.time_style = Some(option.bytes().to_vec()),
            Id::Total => self.grand_total = GrandTotal::Print,
            Id::Json => self.json = true,
            Id::Verbose => self.verbose = true,
            Id::Value(id) => self.take_value(id, option)?,
        }
        Ok(())
    }

    /// Handles an option whose argument may be invalid.
    fn take_value(&mut self, id: ValueId, option: &Occurrence<Id>) -> Result<(), Refused> {
        let text = option.bytes();
        let bad_size = |error| {
            report_bad_size(error, option.spelling, text, self.diagnostics);
            Refused
        };
        let refuse = |error| self.diagnostics.usage_error(&error, FAILURE);
        match id {
            ValueId::BlockSize => self.size = Some(block_size(text).map_err(bad_size)?),
            ValueId::Threshold => {
                self.threshold = Some(threshold(text).map_err(|error| {
                    // For zero with a minus sign, GNU du names the long option and the number.
                    let is_minus_zero = error == BlockSizeError::Invalid && matches!(text, [b'-', b'0', ..]);
                    let (spelling, text) = match is_minus_zero {
                        true => (Spelling::Long("threshold"), &b"-0"[..]),
                        false => (option.spelling, text),
                    };
                    report_bad_size(error, spelling, text, self.diagnostics);
                    Refused
                })?);
            }
            ValueId::Threads => self.threads = parse_threads(text, self.diagnostics).map_err(refuse)?,
            ValueId::Time if option.value.is_none() => self.time = Some(TimeField::Modified),
            ValueId::Time => {
                self.time = Some(choose(text, "--time", TIMES, self.diagnostics).map_err(refuse)?)
            }
            ValueId::MaxDepth => match integer(text) {
                Some(depth) => self.max_depth = Some(depth),
                None => {
                    self.diagnostics.error(FAILURE).text("invalid maximum depth ").quoted(text).send();
                    self.wrong = true;
                }
            },
            ValueId::ExcludeFrom => self.exclude_from(text),
        }
        Ok(())
    }

    fn exclude_from(&mut self, name: &[u8]) {
        let mut text = Vec::new();
        let read = match name {
            // Its name in /dev could belong to another user who opened it.
            b"-" => io::stdin().read_to_end(&mut text),
            name => File::open(OsStr::from_bytes(name)).and_then(|mut file| file.read_to_end(&mut text)),
        };
        match read {
            Ok(_) => self.exclude.add_lines(&text),
            Err(error) => {
                self.diagnostics.error(FAILURE).name_before_colon(name).cause(&error).send();
                self.wrong = true;
            }
        }
    }

    /// The settings of the measurement, if the options are compatible.
    pub(super) fn finish(mut self, gnu: bool) -> Result<Options, Refused> {
        if self.wrong {
            self.diagnostics.usage_hint(FAILURE);
            return Err(Refused);
        }
        if self.summarize && self.lines == Lines::All {
            if gnu {
                let message = self.diagnostics.error(FAILURE);
                message.text("cannot both summarize and show all entries").send_with_hint();
                return Err(Refused);
            }
            self.lines = Lines::Directories;
        }
        let max_depth = self.max_depth()?;
        if self.inodes && self.apparent_size {
            let warning = "warning: options --apparent-size and -b are ineffective with --inodes";
            self.diagnostics.warning().text(warning).send();
        }
        let time = self.time.map(|field| Ok((field, self.time_style()?))).transpose()?;
        let measure = match (self.inodes, self.apparent_size) {
            (true, _) => Measure::Inodes,
            (false, true) => Measure::Apparent,
            (false, false) => Measure::Allocated,
        };
        let format = match self.json {
            true => LineFormat::Json,
            false => LineFormat::Text {
                sizes: Sizes {
                    format: self.size.or_else(size_from_environment).unwrap_or_else(default_size),
                    locale: self.locale,
                },
                terminator: self.terminator,
            },
        };
        Ok(Options {
            measure,
            lines: self.lines,
            max_depth,
            hard_links: self.hard_links,
            subdirectories: self.subdirectories,
            file_systems: self.file_systems,
            follow: self.follow,
            exclude: self.exclude,
            threshold: self.threshold,
            time,
            grand_total: self.grand_total,
            format,
            threads: self.threads,
            cancellation: Cancellation::default(),
        })
    }

    fn max_depth(&self) -> Result<u32, Refused> {
        match (self.summarize, self.max_depth) {
            (true, Some(0)) => {
                let warning = "warning: summarizing is the same as using --max-depth=0";
                self.diagnostics.warning().text(warning).send();
            }
            (true, Some(depth)) => {
                let text = format!("warning: summarizing conflicts with --max-depth={depth}");
                self.diagnostics.error(FAILURE).text(&text).send_with_hint();
                return Err(Refused);
            }
            _ => {}
        }
        let depth = if self.summarize { 0 } else { self.max_depth.unwrap_or(i64::MAX) };
        // Operands have lines at any depth limit.
        Ok(u32::try_from(depth.max(0)).unwrap_or(u32::MAX))
    }

    fn time_style(&self) -> Result<TimeStyle, Refused> {
        let style = self.time_style.clone().or_else(style_from_environment);
        let format = match style.as_deref() {
            None => b"%Y-%m-%d %H:%M",
            Some([b'+', format @ ..]) => format,
            Some(word) => choose(word, "time style", STYLES, self.diagnostics)
                .map_err(|error| self.diagnostics.usage_error(&error, FAILURE))?
                .as_bytes(),
        };
        Ok(TimeStyle::new(format, format, self.locale))
    }
}

/// `TIME_STYLE` is primarily meant for `ls`: styles that only `ls` understands are ignored.
fn style_from_environment() -> Option<Vec<u8>> {
    let style = std::env::var_os("TIME_STYLE")?;
    let mut style = style.as_bytes();
    if style == b"locale" {
        return None;
    }
    if style.first() == Some(&b'+') {
        return style.split(|&b| b == b'\n').next().map(<[u8]>::to_vec);
    }
    while let Some(rest) = style.strip_prefix(b"posix-") {
        style = rest;
    }
    Some(style.to_vec())
}

fn size_from_environment() -> Option<SizeFormat> {
    let variables = ["DU_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"];
    let set = variables.iter().find_map(std::env::var_os)?;
    SizeFormat::from_variable(&set.to_string_lossy())
}

fn default_size() -> SizeFormat {
    let bytes = if std::env::var_os("POSIXLY_CORRECT").is_some() { 512 } else { 1024 };
    SizeFormat::blocks(NonZeroU64::MIN.saturating_add(bytes - 1))
}
