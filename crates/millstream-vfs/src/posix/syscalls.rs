//! The system calls that `rustix` does not wrap.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::SymlinkBehavior;

/// `listxattrat(2)`, the same number on every architecture that has it (Linux 6.13).
const SYS_LISTXATTRAT: libc::c_long = 465;

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Reads directory entries into `buffer`; returns how many bytes are filled, 0 at the end.
pub fn getdents64(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the pointer and length describe `buffer`, which the kernel may overwrite with any bytes.
    let read =
        unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(read).map_err(|_| last_errno())
}

/// Appends the names of the extended attributes of `name` in `dir`, never following a link.
///
/// Kernels before 6.13 have no `listxattrat`; there the name is resolved through `/proc/self/fd`, which stays relative
/// to the handle.
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

/// A path that leads to `name` in `dir`.
fn proc_path(dir: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
    let fd = dir.as_raw_fd();
    if fd == libc::AT_FDCWD || name.to_bytes().starts_with(b"/") {
        return Ok(name.to_owned());
    }
    let mut path = format!("/proc/self/fd/{fd}/").into_bytes();
    path.extend_from_slice(name.to_bytes());
    CString::new(path).map_err(|_| Errno::INVAL)
}

/// Calls `list` with a buffer that grows until names or a value fit.
fn append_list(
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
            // 64 KiB is the kernel's own bound (XATTR_LIST_MAX, XATTR_SIZE_MAX).
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
