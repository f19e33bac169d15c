//! Removal of files and trees.
//!
//! ```text
//!  visit: unlink ──────────────► gone              leave: rmdir ─► gone, or read again where entries were skipped
//!     │ a directory ─► descend                         ▲
//!     └ failed or refused ─► all ancestors stay: nothing more is reported about them
//! ```
//!
//! Every call names one entry of an open directory. The listed type decides between unlink and descent; an entry of
//! unknown type is unlinked, which fails harmlessly on a directory.
//!
//! **Questions.** If every removal needs confirmation, one worker walks the trees in the same order as GNU rm. If
//! only write-protected files need it (standard input is a terminal), all workers first remove everything that needs no
//! question and silently leave the rest, failures included. If anything of an operand is left, one worker then walks it
//! in order, asks, and reports. The end result is the same.
//!
//! **Operands** are removed together if there are many, up to the first that may be or contain one of them, or lie in
//! one (`operands`): that one begins the next group. Reports about an operand wait until all operands before it are
//! done (`turn`). With `-r`, a few operands are removed one after the other. Their questions then come in order too,
//! and a file removed with the first is missing for the second, as with GNU rm.

mod outcome;
mod report;
mod turn;
mod visitor;

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_vfs::{Error, FileKind, RemoveKind, Volume};
use millstream_walk::{Cancellation, HandleRetention, Threads, WalkOptions, WalkStats, walk, walk_from};

pub use report::ReportFormat;

pub use millstream_operation::terms::{Execution, FileSystems};

use millstream_operation::activity::Activity;
use millstream_text::operands::groups;
use visitor::Remover;

/// Options of a removal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which directories to remove.
    pub directories: Directories,
    /// How to treat operands that do not exist.
    pub missing: Missing,
    /// When to ask before a removal.
    pub prompts: Prompts,
    /// Which file systems to enter.
    pub file_systems: FileSystems,
    /// Operands that are never removed recursively.
    pub preserve_root: PreserveRoot,
    /// Whether to make changes or only report them.
    pub execution: Execution,
    /// How to report removals, if at all.
    pub report: Option<ReportFormat>,
    /// Number of workers.
    pub threads: Threads,
}

impl Options {
    /// Removes whole trees without asking, except for what is mounted in them.
    pub fn whole_trees(execution: Execution, threads: Threads) -> Self {
        Options {
            directories: Directories::Recursive,
            missing: Missing::Ignore,
            prompts: Prompts::Never,
            file_systems: FileSystems::One,
            preserve_root: PreserveRoot::Root,
            execution,
            report: None,
            threads,
        }
    }
}

/// Which directories to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directories {
    /// None.
    Refuse,
    /// Empty ones (`-d`).
    Empty,
    /// All, with their contents (`-r`).
    Recursive,
}

/// How to treat files that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Report a problem.
    Report,
    /// Ignore them (`-f`).
    Ignore,
}

/// When to ask before a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// Never.
    Never,
    /// For files that the user may not write.
    WriteProtected,
    /// Always (`-i`).
    Always,
}

/// Operands that are never removed recursively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreserveRoot {
    /// None (`--no-preserve-root`).
    Off,
    /// `/`.
    Root,
    /// `/`, and any operand on another device than its parent (`--preserve-root=all`).
    MountPoints,
}

/// An entry that stays, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// The reason.
    pub cause: Cause,
    /// The path, starting with the operand.
    pub path: &'a [u8],
}

/// Why an entry stays.
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
    /// It is a directory that contains itself.
    Cycle,
    /// The parent of the operand cannot be examined, so its device is unknown.
    UnknownParent(Error),
}

/// A question to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The action to confirm.
    pub step: Step,
    /// Whether the user lacks write permission for it.
    pub write_protected: bool,
    /// The path, starting with the operand.
    pub path: &'a [u8],
}

/// The action to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Descending into a directory.
    Descend,
    /// Removing a directory that cannot be read, and so may not be empty.
    Attempt,
    /// Removing a file or an empty directory.
    Remove {
        /// Its type.
        kind: FileKind,
        /// Its size in bytes.
        size: u64,
    },
}

/// Receives reports and answers questions.
pub trait Sink: Sync {
    /// Whole lines. Calls may come from several threads at once.
    fn lines(&self, lines: &[u8]);

    /// An entry stays. Calls may come from several threads at once.
    fn problem(&self, problem: &Problem<'_>);

    /// Whether the user agrees. Asked from one thread.
    fn approve(&self, question: &Question<'_>) -> bool;
}

/// Decides about each entry of a removal, and receives the removed entries. Paths start with the operand. Calls may
/// come from several threads at once.
pub trait Guard: Sync {
    /// Whether an entry may be removed; the contents of a directory that may not are not examined.
    fn admits(&self, path: &[u8], is_directory: bool) -> bool;

    /// Whether one more entry may be removed.
    fn take(&self) -> bool;

    /// Whether directories of this process's user that this user may not change get the permissions for it.
    fn opens_directories(&self) -> bool;

    /// An entry has been removed, or would have been.
    fn removed(&self, path: &[u8], kind: RemoveKind);
}

/// How one traversal treats questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// There are none.
    Unasked,
    /// Entries that need a question stay, and so do those that fail; only removals are reported.
    Sweep,
    /// They are asked in order.
    Ordered,
}

/// Up to this many operands are removed one after the other with `-r`, each in parallel.
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
    let mut stats = WalkStats::default();
    if options.directories == Directories::Recursive && operands.len() <= FEW_OPERANDS {
        operands.chunks(1).for_each(|one| stats += run.remove(one));
    } else {
        groups(operands).for_each(|group| stats += run.remove(group));
    }
    stats
}

/// Removes the entry `name` of an open directory, with its contents, as far as `guard` agrees; returns whether it is
/// gone.
pub fn remove_below<V: Volume>(
    volume: &V,
    directory: V::Dir,
    name: &CStr,
    options: &Options,
    guard: &dyn Guard,
    (sink, activity): (&dyn Sink, &Activity),
) -> bool {
    let left = [AtomicBool::new(false)];
    let remover = Remover::new(volume, options, sink, activity, Pass::Unasked, &left).guarded_by(guard);
    let walk_options = WalkOptions {
        threads: options.threads,
        retention: HandleRetention::UntilLeft,
        ..WalkOptions::default()
    };
    walk_from(volume, directory, &[name.to_owned()], &remover, &walk_options);
    !left[0].load(Ordering::Relaxed)
}

struct Run<'a, V> {
    volume: &'a V,
    options: &'a Options,
    sink: &'a dyn Sink,
    activity: &'a Activity,
}

impl<V: Volume> Run<'_, V> {
    fn remove(&self, operands: &[CString]) -> WalkStats {
        match (self.options.execution, self.options.prompts) {
            (Execution::DryRun, _) | (_, Prompts::Never) => self.pass(operands, Pass::Unasked).0,
            (_, Prompts::Always) => self.pass(operands, Pass::Ordered).0,
            (_, Prompts::WriteProtected) => {
                let (mut stats, left) = self.pass(operands, Pass::Sweep);
                let rest: Vec<_> =
                    operands.iter().zip(left).filter(|(_, left)| *left).map(|(o, _)| o.clone()).collect();
                if !rest.is_empty() {
                    stats += self.pass(&rest, Pass::Ordered).0;
                }
                stats
            }
        }
    }

    /// Runs one traversal; returns the operands that are not completely removed.
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
