//! Options of an enumeration.

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

/// Which names are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredNames {
    /// Hadoop's checksum files.
    Checksums,
    /// All names that Spark ignores in a data set, including checksum files.
    Hidden,
}

impl IgnoredNames {
    pub(crate) fn ignores(self, name: &[u8]) -> bool {
        match self {
            IgnoredNames::Checksums => is_checksum_file(name),
            IgnoredNames::Hidden => is_hidden_from_spark(name),
        }
    }
}

pub(super) fn is_checksum_file(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(b".crc")
}

/// Spark's rule, from its `HadoopFSUtils.shouldFilterOutPathName`.
fn is_hidden_from_spark(name: &[u8]) -> bool {
    if name.starts_with(b"_metadata") || name.starts_with(b"_common_metadata") {
        return false;
    }
    name.starts_with(b".")
        || (name.starts_with(b"_") && !name.contains(&b'='))
        || name.ends_with(b"._COPYING_")
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
