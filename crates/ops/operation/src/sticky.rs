//! Directories with the sticky bit, from which only owners remove files.

use millstream_vfs::{Dir, Error, Fields};

const STICKY: u32 = 0o1000;

/// The user of this process, if the sticky bit keeps them from removing other users' files from `dir`.
///
/// # Errors
/// Those of the volume.
pub fn restricted_user<D: Dir>(dir: &D) -> Result<Option<u32>, Error> {
    let directory = dir.own_metadata(Fields::MODE | Fields::UID)?;
    let user = rustix::process::geteuid();
    let is_restricted = directory.mode & STICKY != 0 && !user.is_root() && user.as_raw() != directory.uid;
    Ok(is_restricted.then_some(user.as_raw()))
}
