//! Disk usage of trees.
//!
//! ```text
//!  visit (parallel)                                      report (one operand at a time, in order)
//!  stat an entry ─► add to the totals of its node        walk the nodes depth first, names sorted:
//!                   hard link ─► node records inode ──►    first node with an inode counts it
//!                   directory ─► child of its node ───►    first parent of a directory owns it
//!                                                          line of each node, children before parents
//! ```
//!
//! The output does not depend on the order in which threads find files. A visit adds up a chunk and then takes the lock
//! of one [`tree::Node`]. Inodes with several links and directories reached twice must be counted once. A visit only
//! records them; the report counts each for the first node that has it. An operand is reported when it and all operands
//! before it are complete, so that an earlier operand always comes first.
//!
//! Memory: a directory below the printed depth adds to the node above it and takes none. Any other directory takes
//! about 250 bytes, and a printed file (`-a`) its name and about 10 bytes. Each path of an inode with several links
//! takes 4 bytes and each such inode about 100. All of it is freed when the operand has been reported. With `-S` and
//! with followed links (`-L`) every directory has a node, and with `-L` every file counts as having several links.

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

pub use millstream_operation::terms::FileSystems;

use inodes::Inodes;
use millstream_operation::activity::Activity;
use millstream_text::time::TimeStyle;
use survey::Survey;

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number to print.
    pub measure: Measure,
    /// What gets a line.
    pub lines: Lines,
    /// The maximum depth of lines; operands are at depth 0.
    pub max_depth: u32,
    /// How files with several links are counted.
    pub hard_links: HardLinks,
    /// Whether the line of a directory includes its subdirectories.
    pub subdirectories: Subdirectories,
    /// Which file systems to enter.
    pub file_systems: FileSystems,
    /// Which symbolic links to follow.
    pub follow: FollowPolicy,
    /// The exclude patterns.
    pub exclude: Exclude,
    /// The size threshold for lines.
    pub threshold: Option<Threshold>,
    /// The time to print.
    pub time: Option<(TimeField, TimeStyle)>,
    /// Whether to print a grand total.
    pub grand_total: GrandTotal,
    /// How lines are written.
    pub format: LineFormat,
    /// Number of workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
}

/// The number to sum up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Allocated space.
    Allocated,
    /// Sizes in bytes.
    Apparent,
    /// Number of inodes.
    Inodes,
}

/// What gets a line in addition to operands.
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

/// Whether the line of a directory includes its subdirectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subdirectories {
    /// It does.
    Included,
    /// It does not (`-S`).
    Separate,
}

/// A threshold for the number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// At least this much.
    AtLeast(u64),
    /// At most this much.
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

/// Whether to print a grand total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrandTotal {
    /// It does (`-c`).
    Print,
    /// It does not.
    Omit,
}

/// An entry that could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// The failed operation: [`Operation::Stat`] on an entry, or opening or reading a directory.
    pub operation: Operation,
    /// The error; [`None`] if a symbolic link to follow is dangling.
    pub errno: Option<Errno>,
    /// The path, starting with the operand.
    pub path: &'a [u8],
}

/// Receives the results.
pub trait Sink: Sync {
    /// Whole lines. One call at a time.
    fn lines(&self, lines: &[u8]);

    /// Something failed. Calls may come from several threads at once.
    fn problem(&self, problem: &Problem<'_>);

    /// A line shows this time as a number of seconds since 1970, because it is outside the range of the calendar.
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
