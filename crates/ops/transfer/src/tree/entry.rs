//! What is at a path.

use std::ffi::CStr;

use millstream_vfs::{Dir, Error, Fields, FileKind, Metadata, SymlinkBehavior};
use xxhash_rust::xxh3::Xxh3;

use super::attributes::{gather, is_acl};
use crate::transfer::attributes::{Attributes, XattrValues};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its type, size, mode, owner, group, time, device, inode and number of links, and whether something is mounted on
    /// it.
    pub metadata: Metadata,
    /// Where a symbolic link leads; empty for anything else.
    pub target: Vec<u8>,
    /// XXH3 of its access control lists; none if it has none, or if the tree carries none.
    pub acls: Option<u128>,
    /// XXH3 of its other extended attributes; none if it has none, or if the tree carries none.
    pub xattrs: Option<u128>,
}

impl Entry {
    pub(super) const FIELDS: Fields = Fields::KIND
        .union(Fields::MODE)
        .union(Fields::UID)
        .union(Fields::GID)
        .union(Fields::MTIME)
        .union(Fields::SIZE)
        .union(Fields::INO)
        .union(Fields::NLINK);

    /// `carried` says which extended attributes are of interest.
    pub(super) fn examine<D: Dir>(directory: &D, name: &CStr, carried: &Attributes) -> Result<Self, Error> {
        let metadata = directory.metadata(name, SymlinkBehavior::NoFollow, Entry::FIELDS)?;
        let target = match metadata.kind() {
            FileKind::Symlink => directory.read_link(name)?,
            _ => Vec::new(),
        };
        Entry::with_attributes(directory, name, (metadata, target), carried)
    }

    pub(super) fn with_attributes<D: Dir>(
        directory: &D,
        name: &CStr,
        (metadata, target): (Metadata, Vec<u8>),
        carried: &Attributes,
    ) -> Result<Self, Error> {
        let mut values = XattrValues::new();
        if carried.gathers() {
            values = gather(directory, name, carried)?;
        }
        let (acls, xattrs): (XattrValues, XattrValues) =
            values.into_iter().partition(|(name, _)| is_acl(name));
        Ok(Entry { metadata, target, acls: checksum(&acls), xattrs: checksum(&xattrs) })
    }
}

/// A checksum of attributes in the order of their names; none if there are none.
fn checksum(values: &XattrValues) -> Option<u128> {
    let mut hasher = Xxh3::new();
    for (name, value) in values {
        hasher.update(name.to_bytes_with_nul());
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    }
    (!values.is_empty()).then(|| hasher.digest128())
}
