//! Paths and their names as C strings, and renames that never replace a file.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Errno, Error, RemoveKind, Result, SymlinkBehavior};

/// A name or path concatenated from parts.
///
/// # Panics
/// If a part contains a NUL, which parts of C strings do not.
pub fn c_string(parts: &[&[u8]]) -> CString {
    CString::new(parts.concat()).expect("names contain no NUL")
}

/// The directory of a path, with its slash, and the name in it; `.` and the name if the path has no slash.
pub fn split(path: &[u8]) -> (CString, CString) {
    let at = path.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
    let directory = if at == 0 { b"." } else { &path[..at] };
    (c_string(&[directory]), c_string(&[&path[at..]]))
}

/// Renames a file. If another file has the new name, it is not replaced; that is an error, `EEXIST`.
///
/// # Errors
/// Those of a rename; where the volume cannot rename without replacing, such as NFS, those of a hard link and
/// a removal.
pub fn rename_new<D: Dir>(from: &D, name: &CStr, to: &D, new_name: &CStr) -> Result<()> {
    match from.rename_new(name, to, new_name) {
        Err(error) if is_unsupported(&error) => {
            from.hard_link(name, SymlinkBehavior::NoFollow, to, new_name)?;
            from.remove(name, RemoveKind::File)
        }
        renamed => renamed,
    }
}

/// Whether this error means that the volume cannot rename without replacing.
pub fn is_unsupported(error: &Error) -> bool {
    matches!(error.errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_the_last_slash() {
        assert_eq!(split(b"a.gz"), (c".".into(), c"a.gz".into()));
        assert_eq!(split(b"/a.gz"), (c"/".into(), c"a.gz".into()));
        assert_eq!(split(b"x/y/a.gz"), (c"x/y/".into(), c"a.gz".into()));
    }
}
