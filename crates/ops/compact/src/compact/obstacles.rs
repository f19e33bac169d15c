//! Files of a directory that cannot be replaced, whatever their contents.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Error, Fields, FileKind, SymlinkBehavior, Volume};

use super::CompactError;
use super::outcome::Reason;
use super::staging::entries;
use millstream_operation::sticky::restricted_user;

/// The files of the directory `path` on `volume` that a compaction would not replace, as far as that is known without
/// opening them, and why.
///
/// # Errors
/// If the directory cannot be read.
pub fn obstacles<V: Volume>(volume: &V, path: &CStr) -> Result<Vec<(CString, Reason)>, CompactError> {
    let found = volume.base().open_dir(path, SymlinkBehavior::Follow).and_then(|dir| {
        let user = restricted_user(&dir)?;
        let of_entry = |(name, kind): (CString, FileKind)| match (kind, user) {
            (FileKind::Symlink, _) => Some((name.clone(), Reason::Link(name))),
            (FileKind::File, Some(user)) => Some((name.clone(), why_kept(&dir, &name, user)?)),
            _ => None,
        };
        Ok(entries(&dir)?.into_iter().filter_map(of_entry).collect())
    });
    found.map_err(|error: Error| CompactError::Volume { path: path.to_owned(), error })
}

/// Why `user`, who may remove only their own files from `dir`, cannot replace the file `name`; `None` if they own it.
pub(super) fn why_kept<D: Dir>(dir: &D, name: &CStr, user: u32) -> Option<Reason> {
    let found = dir.metadata(name, SymlinkBehavior::NoFollow, Fields::UID).ok()?;
    (found.uid != user).then(|| Reason::Sticky(name.to_owned()))
}
