//! Files of a directory that stay while others are replaced, and how each is recognised later.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Errno, Error, Fields, FileKind, SymlinkBehavior};

use super::journal::ManifestEntry;
use super::outcome::Reason;

pub(super) const STAMP: Fields = Fields::KIND.union(Fields::INO).union(Fields::SIZE).union(Fields::MTIME);

/// The files that stay, by name, as they were when they were linked into the new directory.
pub(super) struct Kept(pub(super) HashMap<CString, ManifestEntry>);

impl Kept {
    /// Whether the file `name` in `dir` is one of them.
    pub(super) fn has<D: Dir>(&self, dir: &D, name: &CStr) -> Result<bool, Error> {
        self.0.get(name).map_or(Ok(false), |entry| is_same(dir, entry))
    }

    /// Whether the file `name` in `dir` is certainly one of them and may therefore be removed. The inode number alone
    /// is no proof: a new file may have got the number of a deleted one.
    pub(super) fn has_unchanged<D: Dir>(&self, dir: &D, name: &CStr) -> bool {
        self.0.get(name).is_some_and(|entry| change(dir, entry).is_ok())
    }
}

/// Whether a file is unchanged since it was read.
pub(super) fn change<D: Dir>(dir: &D, entry: &ManifestEntry) -> Result<(), Reason> {
    match dir.metadata(&entry.name, SymlinkBehavior::NoFollow, STAMP) {
        Ok(found) if found.kind() == FileKind::Symlink => Err(Reason::Link(entry.name.clone())),
        Ok(found) if found.is_immovable => Err(Reason::Immovable(entry.name.clone())),
        Ok(found) if (found.ino, found.size, found.mtime) == (entry.ino, entry.size, entry.mtime) => Ok(()),
        Ok(_) => Err(Reason::Changed(entry.name.clone())),
        Err(error) if error.is_vanished() => Err(Reason::Changed(entry.name.clone())),
        Err(error) => Err(Reason::Failed(error)),
    }
}

/// The current state of a file.
pub(super) fn stamped<D: Dir>(dir: &D, name: &CStr) -> Result<ManifestEntry, Error> {
    let found = dir.metadata(name, SymlinkBehavior::NoFollow, STAMP)?;
    Ok(ManifestEntry { name: name.to_owned(), ino: found.ino, size: found.size, mtime: found.mtime })
}

/// Whether `dir` has this file under its name, whatever its current contents.
pub(super) fn is_same<D: Dir>(dir: &D, entry: &ManifestEntry) -> Result<bool, Error> {
    has_inode(dir, &entry.name, entry.ino)
}

/// Whether `name` in `dir` is the file with this inode number.
pub(super) fn has_inode<D: Dir>(dir: &D, name: &CStr, ino: u64) -> Result<bool, Error> {
    match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO) {
        Ok(found) => Ok(found.ino == ino),
        Err(error) if error.is_vanished() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `name` has been removed from `dir`. It is an error if the directory itself has been removed: then nobody
/// meant to remove this one file.
pub(super) fn is_gone<D: Dir>(dir: &D, name: &CStr) -> Result<bool, Error> {
    match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO) {
        Ok(_) => Ok(false),
        Err(error) if error.errno == Errno::NOENT && dir.own_metadata(Fields::NLINK)?.nlink > 0 => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether both directories have the same file under this name.
pub(super) fn is_link<D: Dir>(one: &D, other: &D, name: &CStr) -> Result<bool, Error> {
    are_links((one, name), (other, name))
}

/// Whether two names are links to the same file.
pub(super) fn are_links<D: Dir>(one: (&D, &CStr), other: (&D, &CStr)) -> Result<bool, Error> {
    let ino = |(dir, name): (&D, &CStr)| match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO) {
        Ok(metadata) => Ok(Some(metadata.identity())),
        Err(error) if error.is_vanished() => Ok(None),
        Err(error) => Err(error),
    };
    let one = ino(one)?;
    Ok(one.is_some() && one == ino(other)?)
}
