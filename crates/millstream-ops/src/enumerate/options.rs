//! What is enumerated, and which names are left out.

use millstream_walk::Threads;

/// How deep to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The entries of the roots.
    Roots,
    /// Everything below the roots.
    Tree,
}

/// Whether subdirectories are entries of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subdirectories {
    /// They are reported with their attributes.
    Report,
    /// Only files are reported.
    Omit,
}

/// Which names do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredNames {
    /// Hadoop's checksum files.
    Checksums,
    /// Those that Spark ignores in a data set, checksum files among them.
    Hidden,
}

impl IgnoredNames {
    pub(super) fn ignores(self, name: &[u8]) -> bool {
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

/// What to enumerate.
#[derive(Clone, Copy, Debug)]
pub struct EnumerateOptions {
    /// How deep to go.
    pub depth: Depth,
    /// Whether subdirectories are reported.
    pub subdirectories: Subdirectories,
    /// Names left out, and not descended into.
    pub ignored: IgnoredNames,
    /// Number of workers.
    pub threads: Threads,
}
