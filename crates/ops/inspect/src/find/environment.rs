//! The outside world as the parser sees it: files, accounts, the clock, the terminal.
//!
//! Tests and the fuzzer use an empty environment.

use std::ffi::CStr;

use millstream_system::accounts;
use millstream_system::pattern::{CaseSensitivity, Regex, RegexSyntax};
use millstream_vfs::{Dir, Errno, Fields, Metadata, SymlinkBehavior, Timestamp, Volume};

use super::date::parse_date;
use super::expression::StreamId;
use super::output::Streams;

/// The outside world of an expression.
pub(super) trait Environment {
    /// Metadata of a file named by an argument.
    fn metadata(&self, path: &CStr, symlinks: SymlinkBehavior) -> Result<Metadata, Errno>;
    /// Creates the file of an `-fprint`.
    fn open_output(&mut self, path: &CStr) -> Result<StreamId, Errno>;
    /// Contents of the file that lists the operands; `-` is standard input.
    fn read_operands(&mut self, path: &CStr) -> Result<Vec<u8>, UnreadableList>;
    /// Device and inode number of standard input.
    fn standard_input(&self) -> Option<(u64, u64)>;
    /// The identifier of a user.
    fn user_id(&self, name: &CStr) -> Option<u32>;
    /// The identifier of a group.
    fn group_id(&self, name: &CStr) -> Option<u32>;
    /// Compiles a regular expression; `None` where there is no matcher.
    fn regex(
        &self,
        pattern: &CStr,
        syntax: RegexSyntax,
        case: CaseSensitivity,
    ) -> Result<Option<Regex>, Vec<u8>>;
    /// The current time.
    fn now(&self) -> Timestamp;
    /// Seconds since 1970 of the beginning of the next local day.
    fn next_midnight(&self) -> i64;
    /// The moment denoted by a date in words.
    fn parse_date(&self, text: &CStr) -> Option<Timestamp>;
    /// The search path for commands.
    fn search_path(&self) -> Option<Vec<u8>>;
    /// Whether `POSIXLY_CORRECT` is set.
    fn is_posixly_correct(&self) -> bool;
    /// Prints a warning or an error that does not end the parsing.
    fn complain(&mut self, severity: Severity, message: &[u8]);
    /// Text in the locale's quotation marks.
    fn quote(&self, text: &[u8]) -> Vec<u8>;
}

/// Why a list of operands cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadableList {
    /// It cannot be opened.
    Open(Errno),
    /// It cannot be read.
    Read(Errno),
}

/// The severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// A warning.
    Warning,
    /// A warning without the word *warning*.
    Remark,
    /// An error, which the exit status reflects.
    Error,
}

/// The process and the machine.
pub(super) struct Process<'a, V> {
    /// The volume of the files that arguments name.
    pub volume: &'a V,
    /// Files that the expression prints to.
    pub streams: &'a mut Streams,
    /// Prints a message.
    pub reporter: &'a dyn super::Reporter,
    /// The locale.
    pub locale: &'static millstream_system::locale::Locale,
    /// Whether a complaint was an error.
    pub failed: bool,
}

impl<V: Volume> Environment for Process<'_, V> {
    fn metadata(&self, path: &CStr, symlinks: SymlinkBehavior) -> Result<Metadata, Errno> {
        self.volume.base().metadata(path, symlinks, Fields::STAT | Fields::BTIME).map_err(|e| e.errno)
    }

    fn open_output(&mut self, path: &CStr) -> Result<StreamId, Errno> {
        self.streams.open(path.to_bytes())
    }

    fn read_operands(&mut self, path: &CStr) -> Result<Vec<u8>, UnreadableList> {
        use std::io::Read;
        use std::os::unix::ffi::OsStrExt;
        let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut text = Vec::new();
        let read = match path.to_bytes() {
            b"-" => std::io::stdin().read_to_end(&mut text),
            path => std::fs::File::open(std::ffi::OsStr::from_bytes(path))
                .map_err(|error| UnreadableList::Open(errno(error)))?
                .read_to_end(&mut text),
        };
        read.map_err(|error| UnreadableList::Read(errno(error)))?;
        Ok(text)
    }

    fn standard_input(&self) -> Option<(u64, u64)> {
        rustix::fs::fstat(std::io::stdin()).ok().map(|stat| (stat.st_dev, stat.st_ino))
    }

    fn user_id(&self, name: &CStr) -> Option<u32> {
        accounts::user_id(name)
    }

    fn group_id(&self, name: &CStr) -> Option<u32> {
        accounts::group_id(name)
    }

    fn regex(
        &self,
        pattern: &CStr,
        syntax: RegexSyntax,
        case: CaseSensitivity,
    ) -> Result<Option<Regex>, Vec<u8>> {
        Regex::new(pattern.to_bytes(), syntax, case).map(Some)
    }

    fn now(&self) -> Timestamp {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Timestamp { sec: now.tv_sec, nsec: u32::try_from(now.tv_nsec).unwrap_or(0) }
    }

    fn next_midnight(&self) -> i64 {
        let now = self.now().sec;
        let Some(local) = self.locale.local_time(now) else { return now };
        let since_midnight =
            i64::from(local.hour()) * 3600 + i64::from(local.minute()) * 60 + i64::from(local.second());
        now - since_midnight + 86_400
    }

    fn parse_date(&self, text: &CStr) -> Option<Timestamp> {
        parse_date(text)
    }

    fn search_path(&self) -> Option<Vec<u8>> {
        use std::os::unix::ffi::OsStringExt;
        std::env::var_os("PATH").map(OsStringExt::into_vec)
    }

    fn is_posixly_correct(&self) -> bool {
        std::env::var_os("POSIXLY_CORRECT").is_some()
    }

    fn complain(&mut self, severity: Severity, message: &[u8]) {
        match severity {
            Severity::Warning => self.reporter.report(&[b"warning: ", message].concat()),
            Severity::Remark => self.reporter.report(message),
            Severity::Error => {
                self.failed = true;
                self.reporter.report(message);
            }
        }
    }

    fn quote(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        super::quote::push_quoted(&mut out, text, self.locale);
        out
    }
}

/// An empty environment: no file exists, no account is known, nothing is written.
#[cfg(any(test, feature = "fuzzing"))]
#[derive(Debug, Default)]
pub(super) struct Nothing {
    /// The warnings that were issued.
    pub complaints: Vec<Vec<u8>>,
}

#[cfg(any(test, feature = "fuzzing"))]
impl Environment for Nothing {
    fn metadata(&self, _path: &CStr, _symlinks: SymlinkBehavior) -> Result<Metadata, Errno> {
        Err(Errno::NOENT)
    }

    fn open_output(&mut self, _path: &CStr) -> Result<StreamId, Errno> {
        Ok(StreamId::STDOUT)
    }

    fn read_operands(&mut self, _path: &CStr) -> Result<Vec<u8>, UnreadableList> {
        Ok(b"a\0b\0".to_vec())
    }

    fn standard_input(&self) -> Option<(u64, u64)> {
        None
    }

    fn user_id(&self, _name: &CStr) -> Option<u32> {
        None
    }

    fn group_id(&self, _name: &CStr) -> Option<u32> {
        None
    }

    fn regex(
        &self,
        _pattern: &CStr,
        _syntax: RegexSyntax,
        _case: CaseSensitivity,
    ) -> Result<Option<Regex>, Vec<u8>> {
        Ok(None)
    }

    fn now(&self) -> Timestamp {
        Timestamp { sec: 1_000_000_000, nsec: 0 }
    }

    fn next_midnight(&self) -> i64 {
        1_000_080_000
    }

    fn parse_date(&self, _text: &CStr) -> Option<Timestamp> {
        None
    }

    fn search_path(&self) -> Option<Vec<u8>> {
        None
    }

    fn is_posixly_correct(&self) -> bool {
        false
    }

    fn complain(&mut self, _severity: Severity, message: &[u8]) {
        self.complaints.push(message.to_vec());
    }

    fn quote(&self, text: &[u8]) -> Vec<u8> {
        [b"'", text, b"'"].concat()
    }
}
