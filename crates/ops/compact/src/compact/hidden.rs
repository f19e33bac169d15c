//! Names of files in the hidden directories of compactions.
//!
//! A pattern such as `/t/*/*` matches hidden directories too, and Spark reads the visible files in them as data. So
//! these files are hidden as well. Earlier versions gave them visible names, which are still recognised.

#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Error, Fields, SymlinkBehavior};

use super::journal::ManifestEntry;
use super::kept::has_inode;
use millstream_text::names::c_string;

/// Maximum bytes of a name that is kept with dots before it: on eCryptfs, names have at most 143.
const LONGEST: usize = 140;

/// The name under which a replaced file is kept. Nothing else in its directory has that name: inputs do not begin with
/// a dot, and their checksum files begin with one dot only.
pub(super) fn kept_as(entry: &ManifestEntry) -> CString {
    match entry.name.to_bytes() {
        name if name.len() <= LONGEST => c_string(&[b"..", name]),
        _ => c_string(&[format!("...{}", entry.ino).as_bytes()]),
    }
}

/// The name under which `dir` keeps a replaced file; [`None`] if it does not.
pub(super) fn find_kept<D: Dir>(dir: &D, entry: &ManifestEntry) -> Result<Option<CString>, Error> {
    for name in [kept_as(entry), entry.name.clone()] {
        if has_inode(dir, &name, entry.ino)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The name of the file `hidden` in `dir`, in this version or in an earlier one; [`None`] if there is no such file.
pub(super) fn find_hidden<D: Dir>(dir: &D, hidden: &CStr) -> Result<Option<CString>, Error> {
    for name in [hidden.to_owned(), visible(hidden)] {
        match dir.metadata(&name, SymlinkBehavior::NoFollow, Fields::INO) {
            Ok(_) => return Ok(Some(name)),
            Err(error) if error.is_vanished() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Gives files of an earlier version their current names, which begin with a dot, unlike the earlier ones.
pub(super) fn hide<D: Dir>(dir: &D, names: &[&CStr]) -> Result<(), Error> {
    for name in names {
        match dir.rename(&visible(name), dir, name) {
            Err(error) if !error.is_vanished() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The name that an earlier version gave a file.
pub(super) fn visible(hidden: &CStr) -> CString {
    c_string(&[&hidden.to_bytes()[1..]])
}
