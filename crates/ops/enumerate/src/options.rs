//! Options of an enumeration.

use millstream_text::hidden::IgnoredNames;
use millstream_walk::Threads;

/// The depth of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The entries of the roots.
    Roots,
    /// Everything below the roots.
    Tree,
}

/// Whether subdirectories are listed as entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subdirectories {
    /// They are reported with their attributes.
    Report,
    /// Only files are reported.
    Omit,
}

/// Options of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct EnumerateOptions {
    /// The depth.
    pub depth: Depth,
    /// Whether subdirectories are reported.
    pub subdirectories: Subdirectories,
    /// Names that are ignored and not descended into.
    pub ignored: IgnoredNames,
    /// Number of workers.
    pub threads: Threads,
}
