//! Converts the options to settings of the synchronization.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use millstream_rsync_rules::Separator;
use millstream_rsync_rules::files::FileList;
use millstream_rsync_rules::filter::{BadRule, Effect, Filter, Unsided};
use millstream_system::locale::Encoding;
use millstream_transfer::sync::{
    Comparison, Conflicts, Deletion, Errors, Execution, FileSystems, HighBytes, Missing, Newer, Options,
    Present, Recursion, Report, Sparse, TimeAccuracy, Timing, User, Verification, Xattrs,
};

use super::rate::parse_rate;
use super::table::Id;
use super::{NO_FILE, USAGE};
use crate::diagnostics::{Diagnostics, Refused, UsageError, error_text};
use crate::options::Occurrence;
use crate::startup::parse_threads;

/// A part of the filter, in the order of the command line.
#[derive(Debug)]
enum Part {
    Rule(Vec<u8>, Separator),
    Pattern(Effect, Vec<u8>),
    Patterns(Effect, Vec<u8>, Separator),
}

/// The values of the options.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    diagnostics: &'a Diagnostics,
    options: Options,
    recursive: bool,
    /// Whether `-a` alone asked for recursion, which does not count where a list of files is given.
    recursive_by_archive: bool,
    dirs: bool,
    filter: Vec<Part>,
    files_from: Option<Vec<u8>>,
    /// Of the files that later options name.
    separator: Separator,
    deletion: Option<Timing>,
    deletes_excluded: bool,
    most_deletions: Option<u64>,
    ignores_errors: bool,
    verbose: bool,
    items: u8,
    json: bool,
    /// Whether to tell at the end what was done.
    shows_stats: bool,
    quiet: bool,
    /// Whether bytes that the locale does not have are printed as they are.
    prints_high_bytes: bool,
}

impl<'a> Settings<'a> {
    pub(super) fn new(encoding: Encoding, diagnostics: &'a Diagnostics) -> Self {
        let mut options = Options::default();
        if encoding == Encoding::SingleByte {
            options.high_bytes = HighBytes::Escaped;
        }
        if !rustix::process::geteuid().is_root() {
            // Without a list of groups, none can be set.
            let mut groups: std::collections::HashSet<u32> = rustix::process::getgroups()
                .unwrap_or_default()
                .into_iter()
                .map(|gid| gid.as_raw())
                .collect();
            groups.insert(rustix::process::getegid().as_raw());
            options.user = User::Other { groups };
        }
        Settings {
            diagnostics,
            options,
            recursive: false,
            recursive_by_archive: false,
            dirs: false,
            filter: Vec::new(),
            files_from: None,
            separator: Separator::Line,
            deletion: None,
            deletes_excluded: false,
            most_deletions: None,
            ignores_errors: false,
            verbose: false,
            items: 0,
            json: false,
            shows_stats: false,
            quiet: false,
            prints_high_bytes: false,
        }
    }

    /// Handles an option.
    pub(super) fn take(&mut self, option: &Occurrence<Id>) -> Result<(), Refused> {
        let options = &mut self.options;
        let preserve = &mut options.preserve;
        let kinds = &mut options.kinds;
        match option.id {
            Id::Archive => {
                self.recursive_by_archive |= !self.recursive;
                self.recursive = true;
                (kinds.links, kinds.devices, kinds.specials) = (true, true, true);
                (preserve.mode, preserve.timestamps, preserve.owner, preserve.group) =
                    (true, true, true, true);
            }
            Id::Recursive => (self.recursive, self.recursive_by_archive) = (true, false),
            Id::NoRecursive => self.recursive = false,
            Id::Dirs => self.dirs = true,
            Id::NoDirs => self.dirs = false,
            Id::Links => kinds.links = true,
            Id::NoLinks => kinds.links = false,
            Id::Devices => kinds.devices = true,
            Id::NoDevices => kinds.devices = false,
            Id::Specials => kinds.specials = true,
            Id::NoSpecials => kinds.specials = false,
            Id::DevicesAndSpecials => (kinds.devices, kinds.specials) = (true, true),
            Id::NoDevicesAndSpecials => (kinds.devices, kinds.specials) = (false, false),
            Id::Perms => preserve.mode = true,
            Id::NoPerms => preserve.mode = false,
            Id::Times => preserve.timestamps = true,
            Id::NoTimes => preserve.timestamps = false,
            Id::Owner => preserve.owner = true,
            Id::NoOwner => preserve.owner = false,
            Id::Group => preserve.group = true,
            Id::NoGroup => preserve.group = false,
            Id::HardLinks => preserve.links = true,
            Id::NoHardLinks => preserve.links = false,
            Id::Acls => (preserve.acls, preserve.mode) = (true, true),
            Id::NoAcls => preserve.acls = false,
            Id::Xattrs => preserve.xattrs = Xattrs::Required,
            Id::NoXattrs => preserve.xattrs = Xattrs::Ignore,
            Id::OmitDirTimes => options.untimed.directories = true,
            Id::OmitLinkTimes => options.untimed.links = true,
            Id::NoOmitDirTimes => options.untimed.directories = false,
            Id::NoOmitLinkTimes => options.untimed.links = false,
            _ => return self.take_choice(option),
        }
        Ok(())
    }

    fn take_choice(&mut self, option: &Occurrence<Id>) -> Result<(), Refused> {
        let options = &mut self.options;
        match option.id {
            Id::OneFileSystem if options.file_systems == FileSystems::One => {
                let text = "-x twice is not supported; a single -x skips other file systems";
                self.diagnostics.error(USAGE).text(text).send();
                return Err(Refused);
            }
            Id::OneFileSystem => options.file_systems = FileSystems::One,
            Id::NoOneFileSystem => options.file_systems = FileSystems::All,
            Id::Existing => options.missing = Missing::Skipped,
            Id::IgnoreExisting => options.present = Present::Left,
            Id::Update => options.newer = Newer::Kept,
            Id::Checksum => options.comparison = Comparison::Contents,
            Id::NoChecksum if options.comparison == Comparison::Contents => {
                options.comparison = Comparison::SizeAndTime
            }
            // Of several, the first of contents, sizes and nothing decides.
            Id::SizeOnly if options.comparison != Comparison::Contents => {
                options.comparison = Comparison::Size
            }
            Id::IgnoreTimes if options.comparison == Comparison::SizeAndTime => {
                options.comparison = Comparison::None
            }
            Id::NoChecksum | Id::SizeOnly | Id::IgnoreTimes => {}
            Id::Sparse => options.sparse = Sparse::Always,
            Id::NoSparse => options.sparse = Sparse::Auto,
            Id::Force => options.conflicts = Conflicts::Removed,
            Id::NoForce => options.conflicts = Conflicts::Kept,
            Id::Verify => options.verification = Verification::Checksum,
            Id::DryRun => options.execution = Execution::DryRun,
            Id::Delete => _ = self.deletion.get_or_insert(Timing::After),
            Id::DeleteBefore => self.deletion = Some(Timing::Before),
            Id::DeleteExcluded => {
                self.deletes_excluded = true;
                self.deletion.get_or_insert(Timing::After);
            }
            Id::DeleteDuring => {
                let text = ": deleting during the transfer is not supported, because an unreadable \
                            directory may be found only later; use --delete, which here means \
                            --delete-after, or --delete-before";
                self.diagnostics.error(USAGE).text(&option.spelling.to_string()).text(text).send();
                return Err(Refused);
            }
            Id::IgnoreErrors => self.ignores_errors = true,
            Id::From0 => self.separator = Separator::Nul,
            Id::NoFrom0 => self.separator = Separator::Line,
            Id::Verbose => self.verbose = true,
            Id::NoVerbose => self.verbose = false,
            Id::Itemize => self.items = self.items.saturating_add(1),
            Id::NoItemize => self.items = 0,
            Id::EightBit => self.prints_high_bytes = true,
            Id::NoEightBit => self.prints_high_bytes = false,
            Id::NoBandwidthLimit => options.bytes_per_second = None,
            Id::Json => self.json = true,
            Id::Stats => self.shows_stats = true,
            Id::Exclude => self.filter.push(Part::Pattern(Effect::Exclude, option.bytes().to_vec())),
            Id::Include => self.filter.push(Part::Pattern(Effect::Include, option.bytes().to_vec())),
            Id::Filter => self.filter.push(Part::Rule(option.bytes().to_vec(), self.separator)),
            Id::ExcludeFrom => {
                self.filter.push(Part::Patterns(Effect::Exclude, option.bytes().to_vec(), self.separator))
            }
            Id::IncludeFrom => {
                self.filter.push(Part::Patterns(Effect::Include, option.bytes().to_vec(), self.separator))
            }
            Id::FilesFrom => self.files_from = Some(option.bytes().to_vec()),
            // See `spark`.
            Id::Spark | Id::SparkConf | Id::Checkpoint | Id::Jar => {}
            Id::Quiet => self.quiet = true,
            Id::Unsupported => {
                let text =
                    " is an rsync option that psync does not support; see --help for those that it does";
                self.diagnostics.error(USAGE).text(&option.spelling.to_string()).text(text).send();
                return Err(Refused);
            }
            Id::Partial | Id::HumanReadable | Id::AllowsNothing => {}
            _ => {
                let taken = self.take_argument(option);
                return taken.map_err(|error| self.diagnostics.usage_error(&error, USAGE));
            }
        }
        Ok(())
    }

    fn take_argument(&mut self, option: &Occurrence<Id>) -> Result<(), UsageError> {
        let text = option.bytes();
        let invalid = || {
            let quoted = self.diagnostics.quoted(text);
            let spelling = option.spelling.to_string();
            UsageError::argument([b"invalid argument ", &quoted[..], b" for ", spelling.as_bytes()].concat())
        };
        let number = || -> Result<i64, UsageError> {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            number.ok_or_else(invalid)
        };
        match option.id {
            Id::ModifyWindow => {
                self.options.time_accuracy = match number()? {
                    -1 => TimeAccuracy::Nanoseconds,
                    seconds => TimeAccuracy::Seconds(u32::try_from(seconds).map_err(|_| invalid())?),
                }
            }
            Id::MaxDelete => self.most_deletions = Some(u64::try_from(number()?).unwrap_or(0)),
            Id::BandwidthLimit => {
                self.options.bytes_per_second = parse_rate(text).map_err(|()| invalid())?;
            }
            Id::Threads => self.options.threads = parse_threads(text, self.diagnostics)?,
            Id::Info => {
                for item in text.split(|&b| b == b',') {
                    self.take_info(item).ok_or_else(invalid)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles an item of `--info`: a word, after which a number may follow, of which 0 takes it back. None if it is none of rsync's.
    fn take_info(&mut self, item: &[u8]) -> Option<()> {
        const ACCEPTED: [&str; 13] = [
            "all", "backup", "copy", "del", "flist", "misc", "mount", "none", "nonreg", "progress", "remove",
            "skip", "symsafe",
        ];
        let text = std::str::from_utf8(item).ok()?.to_ascii_lowercase();
        let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let level = &text[word.len()..];
        let is_wanted = level.is_empty() || !level.trim_start_matches('0').is_empty();
        match word {
            "stats" => self.shows_stats = is_wanted,
            "name" => self.verbose = is_wanted,
            _ if ACCEPTED.contains(&word) => {}
            _ => return None,
        }
        Some(())
    }

    /// Whether to print what was done, at the end.
    pub(super) fn shows_stats(&self) -> bool {
        self.shows_stats && !self.quiet
    }

    /// The settings, after all options; without the list of files if another program reads it.
    pub(super) fn finish(mut self, reads_files: bool) -> Result<Options, Refused> {
        let filter = self.filter()?;
        let is_listed = self.files_from.is_some();
        let files = if reads_files { self.files()? } else { None };
        let mut options = self.options;
        options.filter = filter;
        options.most_deletions = self.most_deletions;
        let is_recursive = self.recursive && !(self.recursive_by_archive && is_listed);
        options.recursion = match (is_recursive, self.dirs || is_listed) {
            (true, _) => Recursion::Recursive,
            (false, true) => Recursion::Directories,
            (false, false) => Recursion::None,
        };
        options.files = files;
        if self.prints_high_bytes {
            options.high_bytes = HighBytes::Printed;
        }
        options.kinds.devices &= options.user == User::Superuser;
        options.deletion = self.deletion.map(|timing| Deletion {
            timing,
            errors: if self.ignores_errors { Errors::Ignored } else { Errors::PreventDeletion },
        });
        if options.deletion.is_some() && options.recursion == Recursion::None {
            let text = "--delete does not work without --recursive (-r) or --dirs (-d)";
            self.diagnostics.error(USAGE).text(text).send();
            return Err(Refused);
        }
        if self.quiet {
            (self.items, self.verbose) = (0, false);
        }
        options.report = match (self.json, self.items, self.verbose) {
            (true, ..) => Report::Json,
            (false, 0, false) => Report::Nothing,
            (false, 0, true) => Report::Names,
            (false, 1, _) => Report::Items,
            (false, ..) => Report::AllItems,
        };
        Ok(options)
    }

    fn filter(&mut self) -> Result<Filter, Refused> {
        let mut filter = Filter::default();
        for part in std::mem::take(&mut self.filter) {
            let added = match part {
                Part::Pattern(effect, pattern) => filter.add_pattern(&pattern, effect),
                Part::Rule(rule, separator) => filter.add_rule(&rule, separator, &mut read_file),
                Part::Patterns(effect, path, separator) => {
                    filter.add_patterns(&self.read(&path, NO_FILE)?, separator, effect)
                }
            };
            added.map_err(|error| self.refuse(&error))?;
        }
        if self.deletes_excluded {
            filter.apply_unsided(Unsided::Sender);
        }
        Ok(filter)
    }

    fn refuse(&self, error: &BadRule) -> Refused {
        let exit_code = if error.lacks_file { NO_FILE } else { USAGE };
        self.diagnostics.error(exit_code).text(&error.to_string()).send();
        Refused
    }

    fn files(&mut self) -> Result<Option<Arc<FileList>>, Refused> {
        let Some(path) = self.files_from.take() else { return Ok(None) };
        match FileList::parse(&self.read(&path, USAGE)?, self.separator) {
            Ok(list) => Ok(Some(Arc::new(list))),
            Err(error) => {
                self.diagnostics.error(USAGE).text(&error.to_string()).send();
                Err(Refused)
            }
        }
    }

    fn read(&self, path: &[u8], exit_code: u8) -> Result<Vec<u8>, Refused> {
        read_file(OsStr::from_bytes(path)).map_err(|error| {
            let message = self.diagnostics.error(exit_code).text("cannot read ").name(path).text(": ");
            message.text(&error_text(&error)).send();
            Refused
        })
    }
}

/// Reads a file of rules, patterns or paths; `-` is standard input.
fn read_file(path: &OsStr) -> io::Result<Vec<u8>> {
    if path != "-" {
        return std::fs::read(path);
    }
    let mut content = Vec::new();
    io::stdin().lock().read_to_end(&mut content)?;
    Ok(content)
}
