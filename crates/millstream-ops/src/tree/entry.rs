//! What is at a path.

use std::ffi::CStr;

use millstream_vfs::{Dir, Error, Fields, FileKind, Metadata, SymlinkBehavior};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its type, size, mode, owner, group, time, device and inode, and whether something is mounted on it.
    pub metadata: Metadata,
    /// Where a symbolic link leads; empty for anything else.
    pub target: Vec<u8>,
}

impl Entry {
    pub(super) const FIELDS: Fields = Fields::KIND
        .union(Fields::MODE)
        .union(Fields::UID)
        .union(Fields::GID)
        .union(Fields::MTIME)
        .union(Fields::SIZE)
        .union(Fields::INO);

    pub(super) fn examine<D: Dir>(directory: &D, name: &CStr) -> Result<Self, Error> {
        let metadata = directory.metadata(name, SymlinkBehavior::NoFollow, Entry::FIELDS)?;
        let target = match metadata.kind() {
            FileKind::Symlink => directory.read_link(name)?,
            _ => Vec::new(),
        };
        Ok(Entry { metadata, target })
    }
}
