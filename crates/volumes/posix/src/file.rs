//! Open files of the POSIX volume.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use millstream_vfs::{At, Error, Fields, File, Metadata, Operation, Result, Timestamp};
use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, Gid, Mode, SeekFrom, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::stat::{statx, times};
use crate::syscalls::{self, append_list};

/// A file descriptor.
#[derive(Debug)]
pub struct PosixFile {
    pub(crate) fd: OwnedFd,
}

impl AsFd for PosixFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn failed<T>(operation: Operation, result: rustix::io::Result<T>) -> Result<T> {
    result.map_err(|errno| Error::new(operation, errno))
}

impl File for PosixFile {
    fn metadata(&self, fields: Fields) -> Result<Metadata> {
        statx(self.as_fd(), c"", AtFlags::EMPTY_PATH, fields)
    }

    fn read(&self, buffer: &mut [u8], at: At) -> Result<usize> {
        let read = match at {
            At::Offset(offset) => retry_on_intr(|| rustix::io::pread(self, &mut *buffer, offset)),
            At::Cursor => retry_on_intr(|| rustix::io::read(self, &mut *buffer)),
        };
        failed(Operation::Read, read)
    }

    fn write_all(&self, mut bytes: &[u8], at: At) -> Result<()> {
        let mut at = at;
        while !bytes.is_empty() {
            let written = match at {
                At::Offset(offset) => retry_on_intr(|| rustix::io::pwrite(self, bytes, offset)),
                At::Cursor => retry_on_intr(|| rustix::io::write(self, bytes)),
            };
            let n = failed(Operation::Write, written)?;
            if n == 0 {
                return Err(Error::new(Operation::Write, Errno::NOSPC));
            }
            bytes = &bytes[n..];
            if let At::Offset(offset) = &mut at {
                *offset += n as u64;
            }
        }
        Ok(())
    }

    fn copy_range(&self, source: &Self, offset: u64, length: u64) -> Result<u64> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let copied = retry_on_intr(|| {
            let (mut from, mut to) = (offset, offset);
            fs::copy_file_range(source, Some(&mut from), self, Some(&mut to), length)
        });
        failed(Operation::Write, copied.map(|n| n as u64))
    }

    fn clone_from(&self, source: &Self) -> Result<()> {
        failed(Operation::Clone, retry_on_intr(|| fs::ioctl_ficlone(self, source)))
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        match fs::seek(self, SeekFrom::Data(offset)) {
            Err(Errno::NXIO) => Ok(None),
            found => failed(Operation::Read, found.map(Some)),
        }
    }

    fn next_hole(&self, offset: u64) -> Result<u64> {
        failed(Operation::Read, fs::seek(self, SeekFrom::Hole(offset)))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        failed(Operation::Write, retry_on_intr(|| fs::ftruncate(self, length)))
    }

    fn allocate(&self, length: u64) -> Result<()> {
        let done = retry_on_intr(|| fs::fallocate(self, FallocateFlags::KEEP_SIZE, 0, length));
        failed(Operation::Write, done)
    }

    fn flush(&self) -> Result<()> {
        // Linux flushes a file each time that one of its descriptors is closed.
        let duplicate = failed(Operation::Close, rustix::io::dup(self))?;
        failed(Operation::Close, syscalls::close(duplicate))
    }

    fn close(self) -> Result<()> {
        failed(Operation::Close, syscalls::close(self.fd))
    }

    fn sync(&self) -> Result<()> {
        failed(Operation::Sync, retry_on_intr(|| fs::fsync(self)))
    }

    fn sync_volume(&self) -> Result<()> {
        failed(Operation::Sync, retry_on_intr(|| fs::syncfs(self)))
    }

    fn try_lock(&self) -> Result<()> {
        failed(Operation::Lock, retry_on_intr(|| fs::flock(self, FlockOperation::NonBlockingLockExclusive)))
    }

    fn list_xattr(&self, names: &mut Vec<u8>) -> Result<()> {
        failed(Operation::ListXattr, append_list(names, |buffer| fs::flistxattr(self, buffer)))
    }

    fn xattr(&self, name: &CStr) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        let read = append_list(&mut value, |buffer| fs::fgetxattr(self, name, buffer));
        failed(Operation::GetXattr, read.map(|()| value))
    }

    fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()> {
        failed(Operation::SetXattr, fs::fsetxattr(self, name, value, XattrFlags::empty()))
    }

    fn remove_xattr(&self, name: &CStr) -> Result<()> {
        failed(Operation::SetXattr, fs::fremovexattr(self, name))
    }

    fn set_mode(&self, mode: u32) -> Result<()> {
        let mode = Mode::from_bits_truncate(mode);
        failed(Operation::SetMode, retry_on_intr(|| fs::fchmod(self, mode)))
    }

    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        failed(Operation::SetOwner, retry_on_intr(|| fs::fchown(self, uid, gid)))
    }

    fn set_times(&self, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        failed(Operation::SetTimes, retry_on_intr(|| fs::futimens(self, &times(atime, mtime))))
    }
}
