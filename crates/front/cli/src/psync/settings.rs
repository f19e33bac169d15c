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
use super::table::{ChoiceId, Id, TreeId, ValueId};
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
    /// Whether only `-a` requested recursion, which is ignored if a list of files is given.
    recursive_by_archive: bool,
    dirs: bool,
    filter: Vec<Part>,
    files_from: Option<Vec<u8>>,
    /// The separator of entries in files that later options name.
    separator: Separator,
    deletion: Option<Timing>,
    deletes_excluded: bool,
    most_deletions: Option<u64>,
    ignores_errors: bool,
    verbose: bool,
    items: u8,
    json: bool,
    /// Whether to print statistics at the end.
    shows_stats: bool,
    quiet: bool,
    /// Whether bytes that are invalid in the locale are printed as they are.
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
        match option.id {
            Id::Tree(id) => {
                self.take_tree(id);
                Ok(())
            }
            Id::Choice(id) => self.take_choice(id, option),
            // `Request::note` has it.
            Id::Spark(_) => Ok(()),
            Id::Value(id) => {
                self.take_value(id, option).map_err(|error| self.diagnostics.usage_error(&error, USAGE))
            }
        }
    }

    fn take_tree(&mut self, id: TreeId) {
        let options = &mut self.options;
        let preserve = &mut options.preserve;
        let kinds = &mut options.kinds;
        match id {
            TreeId::Archive => {
                self.recursive_by_archive |= !self.recursive;
                self.recursive = true;
                (kinds.links, kinds.devices, kinds.specials) = (true, true, true);
                (preserve.mode, preserve.timestamps, preserve.owner, preserve.group) =
                    (true, true, true, true);
            }
            TreeId::Recursive => (self.recursive, self.recursive_by_archive) = (true, false),
            TreeId::NoRecursive => self.recursive = false,
            TreeId::Dirs => self.dirs = true,
            TreeId::NoDirs => self.dirs = false,
            TreeId::Links => kinds.links = true,
            TreeId::NoLinks => kinds.links = false,
            TreeId::Devices => kinds.devices = true,
            TreeId::NoDevices => kinds.devices = false,
            TreeId::Specials => kinds.specials = true,
            TreeId::NoSpecials => kinds.specials = false,
            TreeId::DevicesAndSpecials => (kinds.devices, kinds.specials) = (true, true),
            TreeId::NoDevicesAndSpecials => (kinds.devices, kinds.specials) = (false, false),
            TreeId::Perms => preserve.mode = true,
            TreeId::NoPerms => preserve.mode = false,
            TreeId::Times => preserve.timestamps = true,
            TreeId::NoTimes => preserve.timestamps = false,
            TreeId::Owner => preserve.owner = true,
            TreeId::NoOwner => preserve.owner = false,
            TreeId::Group => preserve.group = true,
            TreeId::NoGroup => preserve.group = false,
            TreeId::HardLinks => preserve.links = true,
            TreeId::NoHardLinks => preserve.links = false,
            TreeId::Acls => (preserve.acls, preserve.mode) = (true, true),
            TreeId::NoAcls => preserve.acls = false,
            TreeId::Xattrs => preserve.xattrs = Xattrs::Required,
            TreeId::NoXattrs => preserve.xattrs = Xattrs::Ignore,
            TreeId::OmitDirTimes => options.untimed.directories = true,
            TreeId::OmitLinkTimes => options.untimed.links = true,
            TreeId::NoOmitDirTimes => options.untimed.directories = false,
            TreeId::NoOmitLinkTimes => options.untimed.links = false,
        }
    }

    fn take_choice(&mut self, id: ChoiceId, option: &Occurrence<Id>) -> Result<(), Refused> {
        let options = &mut self.options;
        match id {
            ChoiceId::OneFileSystem if options.file_systems == FileSystems::One => {
                let text = "-x twice is not supported; a single -x skips other file systems";
                self.diagnostics.error(USAGE).text(text).send();
                return Err(Refused);
            }
            ChoiceId::OneFileSystem => options.file_systems = FileSystems::One,
            ChoiceId::NoOneFileSystem => options.file_systems = FileSystems::All,
            ChoiceId::Existing => options.missing = Missing::Skipped,
            ChoiceId::IgnoreExisting => options.present = Present::Left,
            ChoiceId::Update => options.newer = Newer::Kept,
            ChoiceId::Checksum => options.comparison = Comparison::Contents,
            ChoiceId::NoChecksum if options.comparison == Comparison::Contents => {
                options.comparison = Comparison::SizeAndTime
            }
            // Of several, the first of contents, sizes and nothing decides.
            ChoiceId::SizeOnly if options.comparison != Comparison::Contents => {
                options.comparison = Comparison::Size
            }
            ChoiceId::IgnoreTimes if options.comparison == Comparison::SizeAndTime => {
                options.comparison = Comparison::None
            }
            ChoiceId::NoChecksum | ChoiceId::SizeOnly | ChoiceId::IgnoreTimes => {}
            ChoiceId::Sparse => options.sparse = Sparse::Always,
            ChoiceId::NoSparse => options.sparse = Sparse::Auto,
            ChoiceId::Force => options.conflicts = Conflicts::Removed,
            ChoiceId::NoForce => options.conflicts = Conflicts::Kept,
            ChoiceId::Verify => options.verification = Verification::Checksum,
            ChoiceId::DryRun => options.execution = Execution::DryRun,
            ChoiceId::Delete => _ = self.deletion.get_or_insert(Timing::After),
            ChoiceId::DeleteBefore => self.deletion = Some(Timing::Before),
            ChoiceId::DeleteExcluded => {
                self.deletes_excluded = true;
                self.deletion.get_or_insert(Timing::After);
            }
            ChoiceId::DeleteDuring => {
                let text = ": deleting during the transfer is not supported, because an unreadable \
                            directory may be found only later; use --delete, which here means \
                            --delete-after, or --delete-before";
                self.diagnostics.error(USAGE).text(&option.spelling.to_string()).text(text).send();
                return Err(Refused);
            }
            ChoiceId::IgnoreErrors => self.ignores_errors = true,
            ChoiceId::From0 => self.separator = Separator::Nul,
            ChoiceId::NoFrom0 => self.separator = Separator::Line,
            ChoiceId::Verbose => self.verbose = true,
            ChoiceId::NoVerbose => self.verbose = false,
            ChoiceId::Itemize => self.items = self.items.saturating_add(1),
            ChoiceId::NoItemize => self.items = 0,
            ChoiceId::EightBit => self.prints_high_bytes = true,
            ChoiceId::NoEightBit => self.prints_high_bytes = false,
            ChoiceId::NoBandwidthLimit => options.bytes_per_second = None,
            ChoiceId::Json => self.json = true,
            ChoiceId::Stats => self.shows_stats = true,
            ChoiceId::Exclude => self.filter.push(Part::Pattern(Effect::Exclude, option.bytes().to_vec())),
            ChoiceId::Include => self.filter.push(Part::Pattern(Effect::Include, option.bytes().to_vec())),
            ChoiceId::Filter => self.filter.push(Part::Rule(option.bytes().to_vec(), self.separator)),
            ChoiceId::ExcludeFrom => {
                self.filter.push(Part::Patterns(Effect::Exclude, option.bytes().to_vec(), self.separator))
            }
            ChoiceId::IncludeFrom => {
                self.filter.push(Part::Patterns(Effect::Include, option.bytes().to_vec(), self.separator))
            }
            ChoiceId::FilesFrom => self.files_from = Some(option.bytes().to_vec()),
            ChoiceId::Quiet => self.quiet = true,
            ChoiceId::Unsupported => {
                let text =
                    " is an rsync option that psync does not support; see --help for those that it does";
                self.diagnostics.error(USAGE).text(&option.spelling.to_string()).text(text).send();
                return Err(Refused);
            }
            ChoiceId::Partial | ChoiceId::HumanReadable | ChoiceId::AllowsNothing => {}
        }
        Ok(())
    }

    fn take_value(&mut self, id: ValueId, option: &Occurrence<Id>) -> Result<(), UsageError> {
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
        match id {
            ValueId::ModifyWindow => {
                self.options.time_accuracy = match number()? {
                    -1 => TimeAccuracy::Nanoseconds,
                    seconds => TimeAccuracy::Seconds(u32::try_from(seconds).map_err(|_| invalid())?),
                }
            }
            ValueId::MaxDelete => self.most_deletions = Some(u64::try_from(number()?).unwrap_or(0)),
            ValueId::BandwidthLimit => {
                self.options.bytes_per_second = parse_rate(text).map_err(|()| invalid())?;
            }
            ValueId::Threads => self.options.threads = parse_threads(text, self.diagnostics)?,
            ValueId::Info => {
                for item in text.split(|&b| b == b',') {
                    self.take_info(item).ok_or_else(invalid)?;
                }
            }
        }
        Ok(())
    }

    /// Handles an item of `--info`: a word, optionally followed by a number; 0 switches it off. None if rsync has no
    /// such item.
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

    /// Whether to print statistics at the end.
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
