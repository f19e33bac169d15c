//! Evaluation of `find` expressions over a traversal.
//!
//! ```text
//! words ── parser ──► tokens ── grammar ──► tree ── analysis ──► plan ──► visitor ── evaluate ──► streams
//!          primaries             precedence        order, fields  │       what to descend into
//!          (one table)                             fan-out        └─ one value, read by all workers
//! ```
//!
//! * The **tree** ([`expression`]) is built once. Patterns are compiled, user names resolved and files of `-fprint`
//!   opened while the words are read, so mistakes are found before the traversal starts.
//! * The **plan** ([`analysis`]) lists the attributes needed, all fetched by one call at the first test that uses one,
//!   and says whether entries may be processed in parallel.
//! * The **visitor** ([`visit`]) decides where to descend; [`evaluate`] walks the tree for one entry.
//! * Siblings are printed in no particular order, but a directory always comes before its contents (after them with
//!   `-depth`): a worker hands over its output before other workers can see the directories it found.
//!
//! Any volume is supported. If a child process cannot enter its directories, `-execdir` is an error.

mod analysis;
mod arguments;
mod date;
mod environment;
mod evaluate;
mod exec;
mod expression;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod glob;
mod grammar;
mod mode;
mod moment;
mod mounts;
mod output;
mod parser;
mod primaries;
mod quote;
mod refusal;
mod render;
mod run;
mod subject;
mod visit;
mod words;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use millstream_system::locale::Locale;
use millstream_vfs::Volume;
use millstream_walk::{Cancellation, HandleRetention, WalkOptions, walk};

pub use primaries::{Class, PRIMARIES, Primary};
pub use refusal::Refusal;
pub use words::Verbosity;

use analysis::{Commands, OperandOrder, Plan};
use environment::{Environment, Process};
use expression::VisitOrder;
use output::Streams;
use run::Shared;
use visit::FindVisitor;
use words::Warnings;

use millstream_operation::activity::Activity;

/// Prints messages.
pub trait Reporter: Send + Sync {
    /// Prints one message, without the program's name and the newline.
    fn report(&self, message: &[u8]);
}

/// A command line that is ready to run.
pub struct Find {
    shared: Shared,
    options: WalkOptions,
    verbosity: Verbosity,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Findings {
    /// Whether everything succeeded.
    pub success: bool,
    /// The largest number of workers.
    pub threads_peak: usize,
}

impl Find {
    /// Parses the arguments of a command line, without the program's name. Files that they name, as that of `-newer`,
    /// are examined on `volume`.
    ///
    /// # Errors
    /// Text to print instead of searching.
    pub fn parse<V: Volume>(
        arguments: impl IntoIterator<Item = OsString>,
        volume: &V,
        locale: &'static Locale,
        reporter: Arc<dyn Reporter>,
    ) -> Result<Self, Refusal> {
        let arguments: Result<Vec<_>, _> =
            arguments.into_iter().map(|argument| CString::new(argument.into_vec())).collect();
        let arguments =
            arguments.map_err(|_| Refusal::mistake(&[b"an argument contains a NUL character"]))?;
        let warnings = match rustix::termios::isatty(std::io::stdin()) {
            true => Warnings::On,
            false => Warnings::Off,
        };
        let mut streams = Streams::default();
        let mut process =
            Process { volume, streams: &mut streams, reporter: &*reporter, locale, failed: false };
        let parsed = parser::parse(&arguments, warnings, &mut process)?;
        let (now, failed) = (process.now(), process.failed);
        let plan = Plan::new(parsed.options, parsed.expression);
        let cancellation = Cancellation::default();
        let options = WalkOptions {
            threads: parsed.threads,
            follow: plan.options.follow,
            retention: match plan.options.visits {
                // A directory that is left is examined, or removed, from the one above it.
                VisitOrder::PostOrder => HandleRetention::UntilLeft,
                VisitOrder::PreOrder => HandleRetention::UntilChildrenOpen,
            },
            cancellation: cancellation.clone(),
            ..WalkOptions::default()
        };
        let shared = Shared::new(plan, streams, reporter, parsed.output, locale, now, cancellation);
        if failed {
            shared.fail();
        }
        Ok(Find { shared, options, verbosity: parsed.verbosity })
    }

    /// Whether to print a summary of the work.
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// The starting points, `.` if none is given.
    pub fn starting_points(&self) -> &[CString] {
        &self.shared.plan.options.operands
    }

    /// Whether commands may be run; they should inherit the process's state as the user started it.
    pub fn runs_commands(&self) -> bool {
        self.shared.plan.commands == Commands::Run
    }

    /// Whether the user may be asked questions on the terminal.
    pub fn asks(&self) -> bool {
        self.shared.plan.expression.asks()
    }

    /// The progress so far.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.shared.activity
    }

    /// Traverses and evaluates.
    pub fn run<V: Volume>(&self, volume: &V) -> Findings {
        let operands = &self.shared.plan.options.operands;
        let groups = match self.shared.plan.operands {
            OperandOrder::Together => operands.chunks(operands.len().max(1)),
            OperandOrder::InTurn => operands.chunks(1),
        };
        let mut threads_peak = 0;
        for (first, group) in (0..).zip(groups) {
            if self.shared.has_quit() {
                break;
            }
            // Groups of more than one operand begin at the first.
            let visitor = FindVisitor::<V>::new(&self.shared, first);
            threads_peak = walk(volume, group, &visitor, &self.options).threads_peak.max(threads_peak);
        }
        self.shared.run_last_batches();
        self.shared.close();
        Findings { success: !self.shared.has_failed(), threads_peak }
    }
}
