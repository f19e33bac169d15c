//! Paths below the root of a tree.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Error, SymlinkBehavior};

use super::staging::c_string;

pub(super) fn names(path: &CStr) -> impl Iterator<Item = CString> {
    path.to_bytes().split(|&b| b == b'/').filter(|name| !name.is_empty()).map(|name| c_string(name.to_vec()))
}

/// Opens the parent directory of this path below `root`, following no symbolic link; also returns the entry's name.
pub(crate) fn parent_below<D: Dir>(root: &D, path: &CStr) -> Result<(D, CString), Error> {
    let mut all: Vec<_> = names(path).collect();
    let last = all.pop().unwrap_or_default();
    let mut dir = root.open_dir(c".", SymlinkBehavior::NoFollow)?;
    for name in all {
        dir = dir.open_dir(&name, SymlinkBehavior::NoFollow)?;
    }
    Ok((dir, last))
}

pub(super) fn split_last(path: &CStr) -> (CString, CString) {
    let bytes = path.to_bytes();
    let trimmed = &bytes[..bytes.len() - bytes.iter().rev().take_while(|&&b| b == b'/').count()];
    let at = trimmed.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
    let parent = if at == 0 { b"." } else { &trimmed[..at] };
    (c_string(parent.to_vec()), c_string(trimmed[at..].to_vec()))
}
