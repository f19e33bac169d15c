//! Names that are hidden in data sets: those that Hadoop and Spark ignore.

/// Which names are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredNames {
    /// Hadoop's checksum files.
    Checksums,
    /// All names that Spark ignores in a data set, including checksum files.
    Hidden,
}

impl IgnoredNames {
    /// Whether this name is ignored.
    pub fn ignores(self, name: &[u8]) -> bool {
        match self {
            IgnoredNames::Checksums => is_checksum_file(name),
            IgnoredNames::Hidden => is_hidden_from_spark(name),
        }
    }
}

/// Whether Hadoop keeps checksums of another file under this name.
pub fn is_checksum_file(name: &[u8]) -> bool {
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
