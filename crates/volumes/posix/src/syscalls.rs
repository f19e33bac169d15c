//! The system calls that `rustix` does not wrap.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_vfs::SymlinkBehavior;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// `listxattrat(2)`, the same number on every architecture that has it (Linux 6.13).
const SYS_LISTXATTRAT: libc::c_long = 465;

/// `fchmodat2(2)`, the same number on every architecture that has it (Linux 6.6).
const SYS_FCHMODAT2: libc::c_long = 452;

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Closes a descriptor, and tells what Rust's own closing does not.
pub fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: nobody else has the descriptor, which is closed whatever the result is.
    let closed = unsafe { libc::close(fd.into_raw_fd()) };
    if closed == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Reads directory entries into `buffer`. Returns the number of bytes filled, 0 at the end.
pub fn getdents64(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the pointer and length describe `buffer`, which the kernel may overwrite with any bytes.
    let read =
        unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(read).map_err(|_| last_errno())
}

/// Sets the permission bits of `name` in `dir`, which must not be a symbolic link.
pub fn set_mode_at(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    match has_fchmodat2() {
        true => fchmodat2(dir.as_raw_fd(), name, mode, libc::AT_SYMLINK_NOFOLLOW),
        false => set_mode_by_descriptor(dir, name, mode),
    }
}

/// Probes once, with invalid flags: a system call filter may refuse an unknown call with `EPERM`, which in a real call
/// could be about the file.
fn has_fchmodat2() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    *PRESENT.get_or_init(|| fchmodat2(libc::AT_FDCWD, c"", 0, -1) == Err(Errno::INVAL))
}

fn fchmodat2(dir: i32, name: &CStr, mode: u32, flags: libc::c_int) -> Result<(), Errno> {
    // SAFETY: `name` is NUL-terminated; the other arguments are numbers.
    let done = unsafe { libc::syscall(SYS_FCHMODAT2, dir, name.as_ptr(), mode, flags) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// For Linux before 6.6: opens the file itself and sets its mode through `/proc`'s link to the descriptor, which cannot
/// lead anywhere else.
fn set_mode_by_descriptor(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    let file = fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fs::fstat(&file)?.st_mode) == FileType::Symlink {
        return Err(Errno::OPNOTSUPP);
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::chmodat(fs::CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Appends the names of the extended attributes of `name` in `dir`, never following a link.
///
/// Kernels before 6.13 lack `listxattrat`; there the name is resolved through `/proc/self/fd`, still relative to the
/// handle.
pub fn list_xattr_at(dir: BorrowedFd<'_>, name: &CStr, names: &mut Vec<u8>) -> Result<(), Errno> {
    static MISSING: AtomicBool = AtomicBool::new(false);
    if !MISSING.load(Ordering::Relaxed) {
        match append_list(names, |buffer| listxattrat(dir, name, buffer)) {
            Err(Errno::NOSYS) => MISSING.store(true, Ordering::Relaxed),
            done => return done,
        }
    }
    let path = proc_path(dir, name)?;
    append_list(names, |buffer| llistxattr(&path, buffer))
}

/// The value of the extended attribute `attribute` of `name` in `dir`.
pub fn get_xattr_at(
    dir: BorrowedFd<'_>,
    name: &CStr,
    attribute: &CStr,
    symlinks: SymlinkBehavior,
) -> Result<Vec<u8>, Errno> {
    let path = proc_path(dir, name)?;
    let get = match symlinks {
        SymlinkBehavior::Follow => libc::getxattr,
        SymlinkBehavior::NoFollow => libc::lgetxattr,
    };
    let mut value = Vec::new();
    append_list(&mut value, |buffer| {
        // SAFETY: both names are NUL-terminated, the pointer and length describe `buffer`.
        let n = unsafe { get(path.as_ptr(), attribute.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(n).map_err(|_| last_errno())
    })?;
    Ok(value)
}

/// A path to `name` in `dir` through no link but `/proc`'s own.
pub fn proc_path(dir: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
    let fd = dir.as_raw_fd();
    if fd == libc::AT_FDCWD || name.to_bytes().starts_with(b"/") {
        return Ok(name.to_owned());
    }
    let mut path = format!("/proc/self/fd/{fd}/").into_bytes();
    path.extend_from_slice(name.to_bytes());
    CString::new(path).map_err(|_| Errno::INVAL)
}

/// Calls `list` with a growing buffer until the names, or an attribute's value, fit.
pub fn append_list(
    names: &mut Vec<u8>,
    mut list: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let start = names.len();
    let mut room = 256;
    loop {
        names.resize(start + room, 0);
        match list(&mut names[start..]) {
            Ok(n) => {
                names.truncate(start + n);
                return Ok(());
            }
            // 64 KiB is the kernel's limit (XATTR_LIST_MAX, XATTR_SIZE_MAX).
            Err(Errno::RANGE) if room < 65_536 => room *= 16,
            Err(errno) => {
                names.truncate(start);
                return Err(errno);
            }
        }
    }
}

fn listxattrat(dir: BorrowedFd<'_>, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: `name` is NUL-terminated, the pointer and length describe `buffer`.
    let n = unsafe {
        libc::syscall(
            SYS_LISTXATTRAT,
            dir.as_raw_fd(),
            name.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    usize::try_from(n).map_err(|_| last_errno())
}

fn llistxattr(path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: `path` is NUL-terminated, the pointer and length describe `buffer`.
    let n = unsafe { libc::llistxattr(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(n).map_err(|_| last_errno())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    type SetMode = fn(BorrowedFd<'_>, &CStr, u32) -> Result<(), Errno>;

    /// The fallback for older kernels behaves like the system call.
    #[test]
    fn modes_are_set_without_following() {
        let ways: [SetMode; 2] = [set_mode_at, set_mode_by_descriptor];
        for set in ways {
            let scratch = tempfile::tempdir().expect("scratch directory");
            let mode = |name: &str| {
                std::fs::metadata(scratch.path().join(name)).expect("stat").permissions().mode() & 0o7777
            };
            std::fs::create_dir(scratch.path().join("dir")).expect("mkdir");
            std::fs::write(scratch.path().join("file"), "").expect("write");
            symlink("file", scratch.path().join("link")).expect("symlink");
            let dir = std::fs::File::open(scratch.path()).expect("opens");
            assert_eq!(set(dir.as_fd(), c"file", 0o4711), Ok(()));
            assert_eq!(set(dir.as_fd(), c"dir", 0), Ok(()));
            assert_eq!(set(dir.as_fd(), c"link", 0o600), Err(Errno::OPNOTSUPP));
            assert_eq!(set(dir.as_fd(), c"missing", 0o600), Err(Errno::NOENT));
            assert_eq!((mode("file"), mode("dir")), (0o4711, 0));
        }
    }
}
