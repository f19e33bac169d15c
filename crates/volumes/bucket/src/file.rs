//! Open objects.

use std::ffi::CStr;
use std::sync::Arc;

use millstream_vfs::{At, Errno, Error, Fields, File, Metadata, Operation, Result, Timestamp};

use crate::reader::ObjectReader;
use crate::upload::Upload;

/// An open object.
#[derive(Debug)]
pub enum ObjectFile {
    /// One that is read.
    Read(Arc<ObjectReader>),
    /// One that is written.
    Write(Arc<Upload>),
    /// A directory, which has no attributes.
    Directory(Metadata),
}

pub(crate) fn unsupported<T>(operation: Operation) -> Result<T> {
    Err(Error::new(operation, Errno::OPNOTSUPP))
}

/// An offset; objects have no cursor.
fn offset(operation: Operation, at: At) -> Result<u64> {
    match at {
        At::Offset(offset) => Ok(offset),
        At::Cursor => unsupported(operation),
    }
}

impl File for ObjectFile {
    fn metadata(&self, _: Fields) -> Result<Metadata> {
        Ok(match self {
            ObjectFile::Read(reader) => reader.metadata(),
            ObjectFile::Write(upload) => upload.metadata(),
            ObjectFile::Directory(metadata) => *metadata,
        })
    }

    fn read(&self, buffer: &mut [u8], at: At) -> Result<usize> {
        let offset = offset(Operation::Read, at)?;
        match self {
            ObjectFile::Read(reader) => reader.read(buffer, offset),
            // It is no object yet.
            ObjectFile::Write(_) => unsupported(Operation::Read),
            ObjectFile::Directory(_) => Err(Error::new(Operation::Read, Errno::ISDIR)),
        }
    }

    fn write_all(&self, bytes: &[u8], at: At) -> Result<()> {
        let offset = offset(Operation::Write, at)?;
        match self {
            ObjectFile::Write(upload) => upload.write_all(bytes, offset),
            _ => unsupported(Operation::Write),
        }
    }

    fn copy_range(&self, _: &Self, _: u64, _: u64) -> Result<u64> {
        unsupported(Operation::Write)
    }

    /// Has the server copy the object, when this one is complete.
    fn clone_from(&self, source: &Self) -> Result<()> {
        match (self, source) {
            (ObjectFile::Write(upload), ObjectFile::Read(reader)) => upload.copy(reader),
            _ => unsupported(Operation::Clone),
        }
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        Ok(Some(offset))
    }

    fn next_hole(&self, _: u64) -> Result<u64> {
        self.metadata(Fields::SIZE).map(|metadata| metadata.size)
    }

    /// An object is as long as what is written to it.
    fn set_len(&self, length: u64) -> Result<()> {
        let is_as_long = self.metadata(Fields::SIZE)?.size == length;
        if is_as_long { Ok(()) } else { unsupported(Operation::Write) }
    }

    fn allocate(&self, _: u64) -> Result<()> {
        unsupported(Operation::Write)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }

    /// What a server has answered for is durable.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn sync_volume(&self) -> Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> Result<()> {
        unsupported(Operation::Lock)
    }

    fn list_xattr(&self, _: &mut Vec<u8>) -> Result<()> {
        unsupported(Operation::ListXattr)
    }

    fn xattr(&self, _: &CStr) -> Result<Vec<u8>> {
        unsupported(Operation::GetXattr)
    }

    fn set_xattr(&self, _: &CStr, _: &[u8]) -> Result<()> {
        unsupported(Operation::SetXattr)
    }

    fn remove_xattr(&self, _: &CStr) -> Result<()> {
        unsupported(Operation::SetXattr)
    }

    /// Objects have no permissions of this kind.
    fn set_mode(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn set_owner(&self, _: Option<u32>, _: Option<u32>) -> Result<()> {
        unsupported(Operation::SetOwner)
    }

    fn set_times(&self, _: Timestamp, mtime: Timestamp) -> Result<()> {
        match self {
            ObjectFile::Write(upload) => {
                upload.set_time(mtime);
                Ok(())
            }
            ObjectFile::Directory(_) => Ok(()),
            ObjectFile::Read(_) => unsupported(Operation::SetTimes),
        }
    }
}
