//! Disk usage of trees.
//!
//! ```text
//!  visit (parallel)                                      report (one operand at a time, in order)
//!  stat an entry ─► add to the totals of its node        walk the nodes depth first, names sorted:
//!                   hard link ─► node remembers inode ─►   first node that remembers an inode counts it
//!                   directory ─► child of its node    ─►   first parent of a directory owns it
//!                                                          line of each node, children before parents
//! ```
//!
//! What is printed does not depend on the order in which threads find things. A visit adds up a chunk and then takes the
//! lock of one [`tree::Node`]; what may be counted once only, inodes with several links and directories reached
//! twice, is just remembered, and given to the first who has it when the tree is walked for the report. An operand is
//! reported when it and all before it are complete, so that an earlier operand always comes first.
//!
//! Memory: directories deeper than lines are printed add to the node above and leave nothing. Otherwise a directory
//! takes about 250 bytes, a printed file (`-a`) its name and about 10 bytes, a path of an inode with several links 4
//! bytes and such an inode about 100, each until its operand has been reported. With `-S` every
//! directory has a node; where links are followed (`-L`) also, and every file counts as having several links.

mod exclude;
mod inodes;
mod line;
mod report;
mod survey;
mod tree;

use std::ffi::CString;

use millstream_vfs::{Errno, Operation, Volume};
use millstream_walk::{Cancellation, FollowPolicy, Threads, WalkOptions, WalkStats, walk};

pub use exclude::Exclude;
pub use line::{LineFormat, Sizes};

pub use crate::terms::FileSystems;

use crate::activity::Activity;
use crate::time::TimeStyle;
use inodes::Inodes;
use survey::Survey;

/// What is to be measured, and how it is to be printed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number that is printed.
    pub measure: Measure,
    /// What gets a line.
    pub lines: Lines,
    /// Operands are at depth 0; what is deeper than this gets no line.
    pub max_depth: u32,
    /// How files with several links are counted.
    pub hard_links: HardLinks,
    /// Whether the line of a directory includes what is in its subdirectories.
    pub subdirectories: Subdirectories,
    /// Which file systems are entered.
    pub file_systems: FileSystems,
    /// Symbolic links that are followed.
    pub follow: FollowPolicy,
    /// What is left out.
    pub exclude: Exclude,
    /// Lines that are left out for their size.
    pub threshold: Option<Threshold>,
    /// The time that is printed.
    pub time: Option<(TimeField, TimeStyle)>,
    /// Whether the sum of all operands gets a line.
    pub grand_total: GrandTotal,
    /// How lines are written.
    pub format: LineFormat,
    /// Workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
}

/// A number that is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Allocated space.
    Allocated,
    /// Sizes in bytes.
    Apparent,
    /// Number of inodes.
    Inodes,
}

/// What gets a line besides operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Directories.
    Directories,
    /// Everything (`-a`).
    All,
}

/// How files with several links are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardLinks {
    /// Once, also across operands.
    Once,
    /// Each time (`-l`).
    Each,
}

/// Whether the line of a directory includes what is in its subdirectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subdirectories {
    /// It does.
    Included,
    /// It does not (`-S`).
    Separate,
}

/// Lines that are wanted, by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// This much or more.
    AtLeast(u64),
    /// This much or less.
    AtMost(u64),
}

impl Threshold {
    fn admits(self, value: u64) -> bool {
        match self {
            Threshold::AtLeast(least) => value >= least,
            Threshold::AtMost(most) => value <= most,
        }
    }
}

/// A time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeField {
    /// Last change of the contents.
    Modified,
    /// Last access.
    Accessed,
    /// Last change of the attributes.
    Changed,
}

/// Whether the sum of all operands gets a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrandTotal {
    /// It does (`-c`).
    Print,
    /// It does not.
    Omit,
}

/// Something that could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// What was tried: [`Operation::Stat`] on an entry, or opening or reading a directory.
    pub operation: Operation,
    /// Why it failed; [`None`] where a link that was to be followed leads nowhere.
    pub errno: Option<Errno>,
    /// The path, starting with the operand.
    pub path: &'a [u8],
}

/// Takes the results.
pub trait Sink: Sync {
    /// Whole lines. One call at a time.
    fn lines(&self, lines: &[u8]);

    /// Something failed. Calls may come from several threads at once.
    fn problem(&self, problem: &Problem<'_>);

    /// A line has these seconds since 1970 as a number, because no calendar has them.
    fn odd_time(&self, seconds: i64);
}

/// Measures `operands`, prints to `sink`, and counts on `activity`.
pub fn measure<V: Volume>(
    volume: &V,
    operands: &[CString],
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) -> WalkStats {
    let inodes = Inodes::default();
    let survey = Survey::<V>::new(operands, options, sink, activity, &inodes);
    let walk_options = WalkOptions {
        threads: options.threads,
        follow: options.follow,
        cancellation: options.cancellation.clone(),
        ..WalkOptions::default()
    };
    let stats = walk(volume, operands, &survey, &walk_options);
    if !options.cancellation.is_cancelled() {
        survey.report_rest();
    }
    stats
}
