//! Converts the options to settings of the copy.

use std::os::unix::ffi::OsStrExt;

use millstream_text::size::SizeFormat;
use millstream_transfer::copy::{
    Backup, BackupStyle, Contents, Dangling, Directories, DirectoryLinks, Execution, Existing, Explanation,
    FileSystems, Method, ModeSource, Options, OwnershipErrors, Placement, Reflink, Removal, Sparse, Specials,
    Trace, Update, Verification, Xattrs,
};
use millstream_walk::FollowPolicy;

use super::table::Id;
use crate::diagnostics::{Diagnostics, Refused, UsageError};
use crate::options::{Choice, Occurrence, choose};
use crate::startup::parse_threads;

#[derive(Clone, Copy)]
enum Attribute {
    Mode,
    Timestamps,
    Ownership,
    Links,
    Context,
    Xattr,
    All,
}

const ATTRIBUTES: &[Choice<Attribute>] = &[
    Choice { words: &["mode"], meaning: Attribute::Mode },
    Choice { words: &["timestamps"], meaning: Attribute::Timestamps },
    Choice { words: &["ownership"], meaning: Attribute::Ownership },
    Choice { words: &["links"], meaning: Attribute::Links },
    Choice { words: &["context"], meaning: Attribute::Context },
    Choice { words: &["xattr"], meaning: Attribute::Xattr },
    Choice { words: &["all"], meaning: Attribute::All },
];

const REFLINKS: &[Choice<Reflink>] = &[
    Choice { words: &["auto"], meaning: Reflink::Auto },
    Choice { words: &["always"], meaning: Reflink::Always },
    Choice { words: &["never"], meaning: Reflink::Never },
];

const SPARSE: &[Choice<Sparse>] = &[
    Choice { words: &["never"], meaning: Sparse::Never },
    Choice { words: &["auto"], meaning: Sparse::Auto },
    Choice { words: &["always"], meaning: Sparse::Always },
];

const UPDATES: &[Choice<Update>] = &[
    Choice { words: &["all"], meaning: Update::All },
    Choice { words: &["none"], meaning: Update::None },
    Choice { words: &["none-fail"], meaning: Update::NoneOrFail },
    Choice { words: &["older"], meaning: Update::Older },
];

const BACKUPS: &[Choice<Option<BackupStyle>>] = &[
    Choice { words: &["none", "off"], meaning: None },
    Choice { words: &["simple", "never"], meaning: Some(BackupStyle::Simple) },
    Choice { words: &["existing", "nil"], meaning: Some(BackupStyle::Existing) },
    Choice { words: &["numbered", "t"], meaning: Some(BackupStyle::Numbered) },
];

/// Whether to keep the security context, which exists only with SELinux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepContext {
    No,
    Required,
}

/// The values of the options.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    diagnostics: &'a Diagnostics,
    options: Options,
    follow: Option<FollowPolicy>,
    recursive: bool,
    copy_contents: bool,
    hard_link: bool,
    symbolic_link: bool,
    makes_backups: bool,
    backup_control: Option<Vec<u8>>,
    suffix: Option<Vec<u8>>,
    context: KeepContext,
    verbose: bool,
    json: bool,
    pub(super) target_directory: Option<Vec<u8>>,
    pub(super) no_target_directory: bool,
    pub(super) parents: bool,
    pub(super) strip_trailing_slashes: bool,
}

/// The defaults that depend on the user and the environment.
fn default_options() -> Options {
    let mut options = Options::default();
    if std::env::var_os("POSIXLY_CORRECT").is_some() {
        options.dangling = Dangling::WriteThrough;
    }
    if !rustix::process::geteuid().is_root() {
        options.ownership_errors = OwnershipErrors::Ignored;
    }
    options
}

impl<'a> Settings<'a> {
    pub(super) fn new(diagnostics: &'a Diagnostics) -> Self {
        Settings {
            diagnostics,
            options: default_options(),
            follow: None,
            recursive: false,
            copy_contents: false,
            hard_link: false,
            symbolic_link: false,
            makes_backups: false,
            backup_control: None,
            suffix: None,
            context: KeepContext::No,
            verbose: false,
            json: false,
            target_directory: None,
            no_target_directory: false,
            parents: false,
            strip_trailing_slashes: false,
        }
    }

    /// Handles an option.
    pub(super) fn take(&mut self, option: &Occurrence<Id>) -> Result<(), Refused> {
        match option.id {
            Id::Archive => {
                self.recursive = true;
                self.follow = Some(FollowPolicy::Never);
                self.preserve(Attribute::All, true);
            }
            Id::NoDereferenceAndLinks => {
                self.follow = Some(FollowPolicy::Never);
                self.options.preserve.links = true;
            }
            Id::PreserveDefault => self.preserve_default(),
            Id::Recursive => self.recursive = true,
            Id::CopyContents => self.copy_contents = true,
            Id::Dereference => self.follow = Some(FollowPolicy::Always),
            Id::DereferenceArgs => self.follow = Some(FollowPolicy::Operands),
            Id::NoDereference => self.follow = Some(FollowPolicy::Never),
            Id::Link => self.hard_link = true,
            Id::SymbolicLink => self.symbolic_link = true,
            Id::Parents => self.parents = true,
            Id::NoTargetDirectory => self.no_target_directory = true,
            Id::StripTrailingSlashes => self.strip_trailing_slashes = true,
            Id::Verbose => self.verbose = true,
            Id::Debug => {
                self.verbose = true;
                self.options.explanation = Explanation::Methods;
            }
            Id::Json => self.json = true,
            Id::BackupByDefault => self.makes_backups = true,
            Id::Suffix => {
                self.makes_backups = true;
                self.suffix = Some(option.bytes().to_vec());
            }
            Id::Backup => {
                self.makes_backups = true;
                if option.value.is_some() {
                    self.backup_control = Some(option.bytes().to_vec());
                }
            }
            Id::SelinuxDefault => {}
            Id::Context if option.value.is_some() => {
                let text = "warning: ignoring --context; it requires an SELinux-enabled kernel";
                self.diagnostics.warning().text(text).send();
            }
            Id::Context => {}
            _ => return self.take_choice(option),
        }
        Ok(())
    }

    fn take_choice(&mut self, option: &Occurrence<Id>) -> Result<(), Refused> {
        let options = &mut self.options;
        match option.id {
            Id::AttributesOnly => options.contents = Contents::Omit,
            Id::Force => {
                if options.removal == Removal::Never {
                    options.removal = Removal::IfUnwritable;
                }
            }
            Id::RemoveDestination => options.removal = Removal::Always,
            Id::Interactive => options.existing = Existing::Ask,
            Id::NoClobber => options.existing = Existing::Keep,
            Id::Update => options.update = Update::Older,
            Id::KeepDirectorySymlink => options.directory_links = DirectoryLinks::Followed,
            Id::OneFileSystem => options.file_systems = FileSystems::One,
            Id::Resume => {
                options.update = Update::Incomplete;
                options.preserve.timestamps = true;
            }
            Id::Atomic => options.placement = Placement::Atomic,
            Id::Verify => options.verification = Verification::Checksum,
            Id::DryRun => options.effect = Execution::DryRun,
            Id::TargetDirectory => {
                if self.target_directory.is_some() {
                    self.diagnostics.error(1).text("multiple target directories specified").send();
                    return Err(Refused);
                }
                self.target_directory = Some(option.bytes().to_vec());
            }
            _ => return self.take_argument(option).map_err(|error| self.refuse(&error)),
        }
        Ok(())
    }

    fn refuse(&self, error: &UsageError) -> Refused {
        self.diagnostics.usage_error(error, 1)
    }

    /// Handles an option whose argument may be invalid.
    fn take_argument(&mut self, option: &Occurrence<Id>) -> Result<(), UsageError> {
        let text = option.bytes();
        match option.id {
            Id::Preserve if option.value.is_none() => self.preserve_default(),
            Id::Preserve => self.preserve_list(text, "--preserve", true)?,
            Id::NoPreserve => self.preserve_list(text, "--no-preserve", false)?,
            Id::Reflink if option.value.is_none() => self.options.reflink = Reflink::Always,
            Id::Reflink => self.options.reflink = choose(text, "--reflink", REFLINKS, self.diagnostics)?,
            Id::Sparse => self.options.sparse = choose(text, "--sparse", SPARSE, self.diagnostics)?,
            Id::UpdateWhich if option.value.is_none() => self.options.update = Update::Older,
            Id::UpdateWhich => self.options.update = choose(text, "--update", UPDATES, self.diagnostics)?,
            Id::Threads => self.options.threads = parse_threads(text, self.diagnostics)?,
            _ => self.options.bytes_per_second = Some(self.rate(text)?),
        }
        Ok(())
    }

    fn rate(&self, text: &[u8]) -> Result<u64, UsageError> {
        let size = std::str::from_utf8(text).ok().and_then(|text| SizeFormat::parse(text).ok());
        match size {
            Some(SizeFormat::Blocks { bytes, .. }) => Ok(bytes.get()),
            _ => {
                let quoted = self.diagnostics.quoted(text);
                Err(UsageError::argument([b"invalid rate: ", &quoted[..]].concat()))
            }
        }
    }

    fn preserve_default(&mut self) {
        for attribute in [Attribute::Mode, Attribute::Timestamps, Attribute::Ownership] {
            self.preserve(attribute, true);
        }
    }

    fn preserve_list(&mut self, list: &[u8], option: &str, wanted: bool) -> Result<(), UsageError> {
        for word in list.split(|&b| b == b',') {
            let attribute = choose(word, option, ATTRIBUTES, self.diagnostics)?;
            self.preserve(attribute, wanted);
        }
        Ok(())
    }

    fn preserve(&mut self, attribute: Attribute, wanted: bool) {
        let preserve = &mut self.options.preserve;
        match attribute {
            Attribute::Mode => {
                (preserve.mode, preserve.acls) = (wanted, wanted);
                self.options.mode = if wanted { ModeSource::Source } else { ModeSource::Default };
            }
            Attribute::Timestamps => preserve.timestamps = wanted,
            Attribute::Ownership => (preserve.owner, preserve.group) = (wanted, wanted),
            Attribute::Links => preserve.links = wanted,
            Attribute::Context => self.context = if wanted { KeepContext::Required } else { KeepContext::No },
            Attribute::Xattr => preserve.xattrs = if wanted { Xattrs::Required } else { Xattrs::Ignore },
            Attribute::All => {
                for one in [Attribute::Mode, Attribute::Timestamps, Attribute::Ownership, Attribute::Links] {
                    self.preserve(one, wanted);
                }
                let preserve = &mut self.options.preserve;
                preserve.xattrs = match (wanted, preserve.xattrs) {
                    (false, _) => Xattrs::Ignore,
                    (true, Xattrs::Required) => Xattrs::Required,
                    (true, _) => Xattrs::IfPossible,
                };
                if !wanted {
                    self.context = KeepContext::No;
                }
            }
        }
    }

    /// Whether records are written (`--json`).
    pub(super) fn writes_records(&self) -> bool {
        self.json
    }

    /// The settings of the copy, if the options are compatible.
    pub(super) fn finish(&mut self) -> Result<Options, Refused> {
        let wrong = |text: &str| {
            self.diagnostics.error(1).text(text).send_with_hint();
            Refused
        };
        let options = &self.options;
        if self.hard_link && self.symbolic_link {
            return Err(wrong("cannot make both hard and symbolic links"));
        }
        if self.makes_backups && options.keeps_existing() {
            return Err(wrong("--backup is mutually exclusive with -n or --update=none-fail"));
        }
        if options.reflink == Reflink::Always && options.sparse != Sparse::Auto {
            return Err(wrong("--reflink can be used only with --sparse=auto"));
        }
        let backup = self.backup()?;
        if self.context == KeepContext::Required {
            let text = "cannot preserve security context without an SELinux-enabled kernel";
            self.diagnostics.error(1).text(text).send();
            return Err(Refused);
        }
        let default_follow = match (self.recursive, self.hard_link) {
            (true, false) => FollowPolicy::Never,
            _ => FollowPolicy::Always,
        };
        let is_dry = options.effect == Execution::DryRun;
        Ok(Options {
            directories: if self.recursive { Directories::Copy } else { Directories::Omit },
            follow: self.follow.unwrap_or(default_follow),
            method: match (self.hard_link, self.symbolic_link) {
                (true, _) => Method::HardLink,
                (_, true) => Method::SymbolicLink,
                _ => Method::Copy,
            },
            specials: match self.recursive && !self.copy_contents {
                true => Specials::Recreate,
                false => Specials::CopyContents,
            },
            backup,
            trace: match (self.json, self.verbose || is_dry) {
                (true, _) => Trace::Json,
                (false, true) => Trace::Text,
                (false, false) => Trace::Nothing,
            },
            ..options.clone()
        })
    }

    fn backup(&self) -> Result<Option<Backup>, Refused> {
        if !self.makes_backups {
            return Ok(None);
        }
        let control = match &self.backup_control {
            Some(control) => Some((control.clone(), "backup type")),
            None => std::env::var_os("VERSION_CONTROL").map(|v| (v.as_bytes().to_vec(), "$VERSION_CONTROL")),
        };
        let style = match control {
            None => Some(BackupStyle::Existing),
            Some((control, _)) if control.is_empty() => Some(BackupStyle::Existing),
            Some((control, context)) => {
                choose(&control, context, BACKUPS, self.diagnostics).map_err(|error| self.refuse(&error))?
            }
        };
        let from_environment = || std::env::var_os("SIMPLE_BACKUP_SUFFIX").map(|s| s.as_bytes().to_vec());
        let suffix = self.suffix.clone().or_else(from_environment);
        let suffix = suffix.filter(|s| !s.is_empty() && !s.contains(&b'/')).unwrap_or_else(|| b"~".to_vec());
        Ok(style.map(|style| Backup { style, suffix }))
    }
}
