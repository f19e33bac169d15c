//! The options shared by `pchmod` and `pchown`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use millstream_change::attributes::{Detail, Execution, Links, Options, Recursion};
use millstream_walk::{Cancellation, FollowPolicy, Threads};

use super::{Format, Messages, reference_file};
use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::options::{OptionSpec, dry_run, flag, json, threads, value};
use crate::startup::parse_threads;

/// An option of one of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id<Own> {
    /// A shared option.
    Shared(Shared),
    /// An option of this tool only.
    Own(Own),
}

/// An option shared by all tools that change attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    Recursive,
    /// Takes its help as an argument, because the rest of the command line differs.
    Reference(&'static str),
    PreserveRoot,
    NoPreserveRoot,
    /// Takes its help as an argument, because the defaults of the tools differ; likewise below.
    Dereference(&'static str),
    NoDereference(&'static str),
    FollowOperands(&'static str),
    FollowAll,
    FollowNone(&'static str),
    Changes,
    Silent,
    Verbose,
    DryRun,
    Json,
    Threads,
}

pub(crate) const WHAT: &str = "What to change";
const LINKS: &str = "Symbolic links";
const TOLD: &str = "Output";

/// The name of a shared option.
pub(crate) const fn shared<O: Copy>(option: Shared) -> OptionSpec<Id<O>> {
    let id = Id::Shared(option);
    match option {
        Shared::Recursive => {
            flag(id, Some(b'R'), &["recursive"], WHAT, "change directories and their contents")
        }
        Shared::Reference(help) => value(id, None, &["reference"], "RFILE", WHAT, help),
        Shared::PreserveRoot => {
            flag(id, None, &["preserve-root"], WHAT, "refuse to operate recursively on '/'")
        }
        Shared::NoPreserveRoot => {
            const HELP: &str = "treat '/' like any other directory (the default)";
            flag(id, None, &["no-preserve-root"], WHAT, HELP)
        }
        Shared::Dereference(help) => flag(id, None, &["dereference"], LINKS, help),
        Shared::NoDereference(help) => flag(id, Some(b'h'), &["no-dereference"], LINKS, help),
        Shared::FollowOperands(help) => flag(id, Some(b'H'), &[], LINKS, help),
        Shared::FollowAll => flag(id, Some(b'L'), &[], LINKS, "with -R, traverse all links to directories"),
        Shared::FollowNone(help) => flag(id, Some(b'P'), &[], LINKS, help),
        Shared::Changes => flag(id, Some(b'c'), &["changes"], TOLD, "report each file that is changed"),
        Shared::Silent => {
            flag(id, Some(b'f'), &["silent", "quiet"], TOLD, "suppress error messages about files")
        }
        Shared::Verbose => flag(id, Some(b'v'), &["verbose"], TOLD, "report each file"),
        Shared::DryRun => dry_run(id, "change nothing; report what would be changed"),
        Shared::Json => json(id),
        Shared::Threads => threads(id),
    }
}

/// The values of the shared options.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) recursion: Recursion,
    pub(crate) reference: Option<Vec<u8>>,
    /// Whether to use the target of a link instead of the link, if an option says so.
    pub(crate) dereference: Option<bool>,
    /// Which links to traverse, if an option says so.
    pub(crate) follow: Option<FollowPolicy>,
    root: Root,
    pub(super) detail: Detail,
    pub(super) messages: Messages,
    execution: Execution,
    pub(super) format: Format,
    threads: Threads,
}

/// Whether to traverse the root directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// Like any other directory.
    Ordinary,
    /// It is refused (`--preserve-root`).
    Preserved,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            recursion: Recursion::Operands,
            reference: None,
            dereference: None,
            follow: None,
            root: Root::Ordinary,
            detail: Detail::Failures,
            messages: Messages::All,
            execution: Execution::Real,
            format: Format::Text,
            threads: Threads::default(),
        }
    }
}

impl Settings {
    /// Handles a shared option and its argument.
    pub(crate) fn take(
        &mut self,
        option: Shared,
        argument: Option<OsString>,
        diagnostics: &Diagnostics,
    ) -> Result<(), Refused> {
        let argument = argument.map(OsString::into_vec);
        match option {
            Shared::Recursive => self.recursion = Recursion::Trees,
            Shared::Reference(_) => self.reference = argument,
            Shared::PreserveRoot => self.root = Root::Preserved,
            Shared::NoPreserveRoot => self.root = Root::Ordinary,
            Shared::Dereference(_) => self.dereference = Some(true),
            Shared::NoDereference(_) => self.dereference = Some(false),
            Shared::FollowOperands(_) => self.follow = Some(FollowPolicy::Operands),
            Shared::FollowAll => self.follow = Some(FollowPolicy::Always),
            Shared::FollowNone(_) => self.follow = Some(FollowPolicy::Never),
            Shared::Changes => self.detail = Detail::Changes,
            Shared::Silent => self.messages = Messages::Few,
            Shared::Verbose => self.detail = Detail::Everything,
            Shared::DryRun => self.execution = Execution::DryRun,
            Shared::Json => self.format = Format::Json,
            Shared::Threads => {
                self.threads = parse_threads(&argument.unwrap_or_default(), diagnostics)
                    .map_err(|error| diagnostics.usage_error(&error, FAILURE))?;
            }
        }
        Ok(())
    }

    /// The level of detail. Dry runs and JSON records exist for their reports, so they report changes at least.
    fn detail(&self) -> Detail {
        match (self.execution, self.format) {
            (Execution::Real, Format::Text) => self.detail,
            _ => self.detail.max(Detail::Changes),
        }
    }

    /// Reports that links should be dereferenced in a traversal that follows none.
    pub(crate) fn refuse_dereference(diagnostics: &Diagnostics) -> Refused {
        diagnostics.error(FAILURE).text("-R --dereference requires either -H or -L").send();
        Refused
    }

    /// All settings of the change.
    pub(crate) fn options(
        &self,
        follow: FollowPolicy,
        links: Links,
        diagnostics: &Diagnostics,
    ) -> Result<Options, Refused> {
        let preserved_root = match (self.root, self.recursion) {
            (Root::Preserved, Recursion::Trees) => Some(reference_file(b"/", diagnostics)?.identity()),
            _ => None,
        };
        Ok(Options {
            recursion: self.recursion,
            follow,
            links,
            preserved_root,
            detail: self.detail(),
            execution: self.execution,
            threads: self.threads,
            cancellation: Cancellation::default(),
        })
    }
}
