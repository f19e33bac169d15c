//! Splits the operands into sources and destination.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;

use millstream_storage::is_bucket;
use millstream_transfer::sync::{Destination, Options, means_contents};
use millstream_vfs::{Dir, Errno, Fields, FileKind, SymlinkBehavior};

use super::USAGE;
use crate::diagnostics::{Diagnostics, Refused};
use crate::operand::before_colon;

/// The sources and their destination.
pub(super) fn operands<D: Dir>(
    base: &D,
    given: Vec<OsString>,
    options: &Options,
    diagnostics: &Diagnostics,
) -> Result<(Vec<CString>, Destination), Refused> {
    // Arguments hold no NUL.
    let mut paths: Vec<CString> =
        given.into_iter().filter_map(|path| CString::new(path.into_vec()).ok()).collect();
    for path in &paths {
        if let Some(advice) = of_host(path.to_bytes()).filter(|_| !is_bucket(path.to_bytes())) {
            diagnostics.error(USAGE).name(path.to_bytes()).text(advice).send();
            return Err(Refused);
        }
        if path.is_empty() {
            diagnostics.error(USAGE).text("an operand is empty").send_with_hint();
            return Err(Refused);
        }
    }
    let Some(destination) = paths.pop().filter(|_| !paths.is_empty()) else {
        diagnostics.error(USAGE).text("a source and a destination are required").send_with_hint();
        return Err(Refused);
    };
    if options.files.is_some() && (paths.len() > 1 || kind(base, &paths[0]) != Some(FileKind::Directory)) {
        diagnostics.error(USAGE).text("--files-from needs exactly one source, a directory").send();
        return Err(Refused);
    }
    if options.files.is_some() && !means_contents(paths[0].to_bytes()) {
        // The paths of the list are relative to the source, with or without a trailing slash.
        paths[0] = CString::new([paths[0].to_bytes(), b"/"].concat()).unwrap_or_default();
    }
    let is_file = |path: &CStr| {
        let found = base.metadata(path, SymlinkBehavior::NoFollow, Fields::KIND);
        !means_contents(path.to_bytes()) && found.is_ok_and(|found| found.kind() != FileKind::Directory)
    };
    let is_exact = paths.len() == 1
        && is_file(&paths[0])
        && !destination.to_bytes().ends_with(b"/")
        && !may_be_directory(base, &destination);
    let destination =
        if is_exact { Destination::Exactly(destination) } else { Destination::Into(destination) };
    Ok((paths, destination))
}

/// The path of a destination.
pub(super) fn path_of(destination: &Destination) -> &[u8] {
    let (Destination::Exactly(path) | Destination::Into(path)) = destination;
    path.to_bytes()
}

/// Whether a path leads to a directory, or cannot be examined; using it as a directory then reports the error.
fn may_be_directory<D: Dir>(base: &D, path: &CStr) -> bool {
    match base.metadata(path, SymlinkBehavior::Follow, Fields::KIND) {
        Ok(found) => found.kind() == FileKind::Directory,
        Err(error) => !matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP),
    }
}

/// The type of the file that a path leads to.
fn kind<D: Dir>(base: &D, path: &CStr) -> Option<FileKind> {
    let found = base.metadata(path, SymlinkBehavior::Follow, Fields::KIND);
    found.ok().map(|found| found.kind())
}

/// The advice if a path is on another machine.
pub(super) fn of_host(path: &[u8]) -> Option<&'static str> {
    const SHELL: &str = ": other hosts are not supported; mount the remote directory, or use rsync. Write a \
                         local path with a colon as ./PATH";
    const DAEMON: &str = ": rsync daemons are not supported; mount the remote directory, or use rsync";
    let (host, rest) = before_colon(path)?;
    let is_daemon = host == b"rsync" && rest.starts_with(b"//") || rest.starts_with(b":");
    Some(if is_daemon { DAEMON } else { SHELL })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_other_machines_are_told_from_names_with_colons() {
        for path in ["host:dir", "user@host:dir", "host::module", "rsync://host/m", "a:", "[::1]:p"] {
            assert!(of_host(path.as_bytes()).is_some(), "{path}");
        }
        for path in ["dir", "./a:b", "/a:b", "dir/a:b", ""] {
            assert!(of_host(path.as_bytes()).is_none(), "{path}");
        }
    }
}
