//! Removal of files and trees.
//!
//! ```text
//!  visit: unlink ──────────────► gone              leave: rmdir ─► gone, or once more where entries were passed over
//!     │ a directory ─► descend                         ▲
//!     └ a failure, a refusal ─► all directories above stay: nothing more is said about them
//! ```
//!
//! Every call names one entry of an open directory. The type that the directory lists decides between unlink and
//! descent; an entry of unknown type is unlinked, which fails harmlessly on a directory.
//!
//! **Questions.** Where every removal is to be confirmed, one worker goes through the trees in the order of the original.
//! Where only write-protected files are (standard input is a terminal), all workers first sweep away what needs no
//! question, silently leaving everything else, failures included; if anything is left of an operand, one worker goes
//! through that in order, asks, and reports. What is removed in the end is the same.
//!
//! **Operands** are removed together if there are many, unless one may hold another; what is said about one waits until
//! all before it are done (`turn`). Otherwise each is done before the next: questions come in their order too, and what
//! has gone with the first is missing for the second, as for the original.

mod report;
mod turn;
mod visitor;

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_vfs::{Error, FileKind, Volume};
use millstream_walk::{Cancellation, HandleRetention, Threads, WalkOptions, WalkStats, walk};

pub use report::ReportFormat;

use crate::activity::Activity;
use crate::operands::may_overlap;
use visitor::Remover;

/// What is to be removed, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which directories are removed.
    pub directories: Directories,
    /// What happens about operands that do not exist.
    pub missing: Missing,
    /// What is asked about before it is removed.
    pub prompts: Prompts,
    /// Which file systems are entered.
    pub file_systems: FileSystems,
    /// Operands that are never removed recursively.
    pub preserve_root: PreserveRoot,
    /// Whether anything is removed at all.
    pub effect: Effect,
    /// How removals are reported, if they are.
    pub report: Option<ReportFormat>,
    /// Workers.
    pub threads: Threads,
}

/// Which directories are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directories {
    /// None.
    Refuse,
    /// Empty ones (`-d`).
    Empty,
    /// All, with what is in them (`-r`).
    Recursive,
}

/// What happens about things that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// They are problems.
    Report,
    /// Nothing (`-f`).
    Ignore,
}

/// What is asked about before it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// Nothing.
    Never,
    /// What the user may not write.
    WriteProtected,
    /// Everything (`-i`).
    Always,
}

/// Which file systems are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystems {
    /// All.
    All,
    /// That of the operand (`--one-file-system`).
    One,
}

/// Operands that are never removed recursively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreserveRoot {
    /// None (`--no-preserve-root`).
    Off,
    /// `/`.
    Root,
    /// `/`, and what is on another device than its parent (`--preserve-root=all`).
    MountPoints,
}

/// Whether anything is removed at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is.
    Remove,
    /// What would be removed is reported (`--dry-run`). Nothing is asked.
    Pretend,
}

/// Something that stays, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// Why.
    pub cause: Cause,
    /// The path, starting with the operand.
    pub path: &'a [u8],
}

/// Why something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A call failed.
    Failed(Error),
    /// The operand ends in `.` or `..`.
    Dots,
    /// The operand is `/`.
    Root,
    /// It is on another device than its operand.
    OtherDevice,
    /// The operand is on another device than its parent.
    MountPoint,
    /// It is a directory that it is in.
    Cycle,
    /// The parent of the operand cannot be examined, so its device is unknown.
    UnknownParent(Error),
}

/// A question to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// What is about to happen.
    pub step: Step,
    /// Whether the user may not write it.
    pub write_protected: bool,
    /// The path, starting with the operand.
    pub path: &'a [u8],
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Removing what is in a directory.
    Descend,
    /// Removing a file or an empty directory.
    Remove {
        /// Its type.
        kind: FileKind,
        /// Its size in bytes.
        size: u64,
    },
}

/// Takes reports, and answers questions.
pub trait Sink: Sync {
    /// Whole lines. Calls may come from several threads at once.
    fn lines(&self, lines: &[u8]);

    /// Something stays. Calls may come from several threads at once.
    fn problem(&self, problem: &Problem<'_>);

    /// Whether the user agrees. Asked from one thread.
    fn approve(&self, question: &Question<'_>) -> bool;
}

/// How one traversal treats questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// There are none.
    Unasked,
    /// What they are about is left, and so is what fails; nothing is reported but removals.
    Sweep,
    /// They are asked, in order.
    Ordered,
}

/// So many operands are removed one after the other, each in parallel.
const FEW_OPERANDS: usize = 16;

/// Removes `operands`, reports to `sink`, and counts on `activity`.
pub fn remove<V: Volume>(
    volume: &V,
    operands: &[CString],
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) -> WalkStats {
    let run = Run { volume, options, sink, activity };
    activity.expect(operands.len());
    let in_turn = operands.len() <= FEW_OPERANDS || may_overlap(operands);
    if options.directories == Directories::Recursive && in_turn {
        return operands.chunks(1).map(|one| run.remove(one)).fold(WalkStats::default(), add);
    }
    run.remove(operands)
}

struct Run<'a, V> {
    volume: &'a V,
    options: &'a Options,
    sink: &'a dyn Sink,
    activity: &'a Activity,
}

impl<V: Volume> Run<'_, V> {
    fn remove(&self, operands: &[CString]) -> WalkStats {
        match (self.options.effect, self.options.prompts) {
            (Effect::Pretend, _) | (_, Prompts::Never) => self.pass(operands, Pass::Unasked).0,
            (_, Prompts::Always) => self.pass(operands, Pass::Ordered).0,
            (_, Prompts::WriteProtected) => {
                let (swept, left) = self.pass(operands, Pass::Sweep);
                let rest: Vec<_> =
                    operands.iter().zip(left).filter(|(_, left)| *left).map(|(o, _)| o.clone()).collect();
                if rest.is_empty() { swept } else { add(swept, self.pass(&rest, Pass::Ordered).0) }
            }
        }
    }

    /// One traversal; which operands are left.
    fn pass(&self, operands: &[CString], pass: Pass) -> (WalkStats, Vec<bool>) {
        let left: Vec<_> = operands.iter().map(|_| AtomicBool::new(false)).collect();
        let remover = Remover::new(self.volume, self.options, self.sink, self.activity, pass, &left);
        let walk_options = WalkOptions {
            threads: if pass == Pass::Ordered { Threads::Fixed(1) } else { self.options.threads },
            retention: HandleRetention::UntilLeft,
            cancellation: Cancellation::default(),
            census: if pass == Pass::Ordered { None } else { self.activity.census() },
            ..WalkOptions::default()
        };
        let stats = walk(self.volume, operands, &remover, &walk_options);
        (stats, left.into_iter().map(|left| left.load(Ordering::Relaxed)).collect())
    }
}

fn add(a: WalkStats, b: WalkStats) -> WalkStats {
    WalkStats {
        directories: a.directories + b.directories,
        threads_peak: a.threads_peak.max(b.threads_peak),
        reopened: a.reopened + b.reopened,
    }
}
