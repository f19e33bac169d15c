//! Open files.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millstream_vfs::{At, Errno, Error, Fields, File, FileKind, Metadata, Operation, Result, Timestamp};

use crate::Shared;
use crate::tree::{Ino, Node};

/// An open file.
#[derive(Debug)]
pub struct MemoryFile {
    shared: Arc<Shared>,
    ino: Ino,
    /// Path at the time of opening.
    path: Vec<u8>,
    position: AtomicU64,
    has_lock: AtomicBool,
}

impl MemoryFile {
    pub(crate) fn new(shared: Arc<Shared>, ino: Ino, path: Vec<u8>) -> Self {
        MemoryFile { shared, ino, path, position: AtomicU64::new(0), has_lock: AtomicBool::new(false) }
    }

    /// Fails if an error is injected here.
    fn check(&self, operation: Operation) -> Result<()> {
        self.shared.faults().check(operation, &self.path)
    }

    /// Applies `change` to the node.
    fn change<T>(
        &self,
        operation: Operation,
        change: impl FnOnce(&mut Node) -> std::result::Result<T, Errno>,
    ) -> Result<T> {
        self.check(operation)?;
        let mut tree = self.shared.tree();
        let changed = change(tree.node_mut(self.ino)).map_err(|errno| Error::new(operation, errno))?;
        tree.node_mut(self.ino).touch();
        Ok(changed)
    }

    /// Applies `change` to the data.
    fn write<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> Result<T> {
        self.check(Operation::Write)?;
        let mut tree = self.shared.tree();
        tree.data_mut(self.ino).map(change).map_err(|errno| Error::new(Operation::Write, errno))
    }

    /// The offset of `at`; advances the cursor by `length` bytes.
    fn offset(&self, at: At, length: usize) -> usize {
        let offset = match at {
            At::Offset(offset) => offset,
            At::Cursor => self.position.fetch_add(length as u64, Ordering::Relaxed),
        };
        usize::try_from(offset).unwrap_or(usize::MAX)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        if self.has_lock.load(Ordering::Relaxed) {
            self.shared.tree().node_mut(self.ino).is_locked = false;
        }
    }
}

impl File for MemoryFile {
    fn metadata(&self, _: Fields) -> Result<Metadata> {
        self.check(Operation::Stat)?;
        Ok(self.shared.tree().metadata(self.ino))
    }

    fn read(&self, buffer: &mut [u8], at: At) -> Result<usize> {
        self.check(Operation::Read)?;
        let tree = self.shared.tree();
        let data = tree.data(self.ino).map_err(|errno| Error::new(Operation::Read, errno))?;
        let start = match at {
            At::Offset(offset) => usize::try_from(offset).unwrap_or(usize::MAX),
            At::Cursor => usize::try_from(self.position.load(Ordering::Relaxed)).unwrap_or(usize::MAX),
        };
        let rest = data.get(start..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.offset(at, length);
        Ok(length)
    }

    fn write_all(&self, bytes: &[u8], at: At) -> Result<()> {
        let start = self.offset(at, bytes.len());
        self.write(|data| {
            let end = start + bytes.len();
            if data.len() < end {
                data.resize(end, 0);
            }
            data[start..end].copy_from_slice(bytes);
        })
    }

    fn copy_range(&self, source: &Self, offset: u64, length: u64) -> Result<u64> {
        let mut part = vec![0; usize::try_from(length.min(1 << 20)).unwrap_or(1 << 20)];
        let copied = source.read(&mut part, At::Offset(offset))?;
        self.write_all(&part[..copied], At::Offset(offset))?;
        Ok(copied as u64)
    }

    fn clone_from(&self, _: &Self) -> Result<()> {
        Err(Error::new(Operation::Clone, Errno::OPNOTSUPP))
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        Ok((offset < self.metadata(Fields::SIZE)?.size).then_some(offset))
    }

    fn next_hole(&self, offset: u64) -> Result<u64> {
        Ok(self.metadata(Fields::SIZE)?.size.max(offset))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.write(|data| data.resize(usize::try_from(length).unwrap_or(usize::MAX), 0))
    }

    fn allocate(&self, _: u64) -> Result<()> {
        self.check(Operation::Write)
    }

    fn flush(&self) -> Result<()> {
        self.check(Operation::Close)
    }

    fn close(self) -> Result<()> {
        self.flush()
    }

    fn sync(&self) -> Result<()> {
        self.check(Operation::Sync)
    }

    fn sync_volume(&self) -> Result<()> {
        self.check(Operation::Sync)
    }

    fn try_lock(&self) -> Result<()> {
        self.check(Operation::Lock)?;
        let mut tree = self.shared.tree();
        let node = tree.node_mut(self.ino);
        if node.is_locked && !self.has_lock.load(Ordering::Relaxed) {
            return Err(Error::new(Operation::Lock, Errno::AGAIN));
        }
        node.is_locked = true;
        self.has_lock.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn list_xattr(&self, names: &mut Vec<u8>) -> Result<()> {
        self.check(Operation::ListXattr)?;
        let tree = self.shared.tree();
        names.extend(tree.node(self.ino).xattrs.keys().flat_map(|name| [name, &b"\0"[..]].concat()));
        Ok(())
    }

    fn xattr(&self, name: &CStr) -> Result<Vec<u8>> {
        self.check(Operation::GetXattr)?;
        let tree = self.shared.tree();
        let value = tree.node(self.ino).xattrs.get(name.to_bytes()).cloned();
        value.ok_or(Error::new(Operation::GetXattr, Errno::NODATA))
    }

    fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()> {
        self.change(Operation::SetXattr, |node| {
            node.xattrs.insert(name.to_bytes().to_vec(), value.to_vec());
            Ok(())
        })
    }

    fn remove_xattr(&self, name: &CStr) -> Result<()> {
        self.change(Operation::SetXattr, |node| {
            node.xattrs.remove(name.to_bytes()).map(drop).ok_or(Errno::NODATA)
        })
    }

    fn set_mode(&self, mode: u32) -> Result<()> {
        self.change(Operation::SetMode, |node| {
            if node.kind == FileKind::Symlink {
                return Err(Errno::OPNOTSUPP);
            }
            node.mode = mode & 0o7777;
            Ok(())
        })
    }

    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.change(Operation::SetOwner, |node| {
            node.uid = uid.unwrap_or(node.uid);
            node.gid = gid.unwrap_or(node.gid);
            Ok(())
        })
    }

    fn set_times(&self, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        self.change(Operation::SetTimes, |node| {
            (node.atime, node.mtime) = (atime, mtime);
            Ok(())
        })
    }
}
