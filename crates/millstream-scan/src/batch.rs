//! Packed rows.

use std::ops::Deref;

use millstream_vfs::{Errno, Error, Fields, Metadata, Operation, Result, Timestamp};

/// Where a row is in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Line {
    /// First byte.
    pub start: u32,
    /// Number of bytes, without the separator.
    pub length: u32,
}

/// What a file was when it was opened: as long as it has the same stamp it is the same and has the same contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents.
    pub mtime: Timestamp,
}

impl Stamp {
    /// What it is made of.
    pub const FIELDS: Fields = Fields::INO.union(Fields::SIZE).union(Fields::MTIME);

    /// The stamp of a file with this metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Stamp { ino: metadata.ino, size: metadata.size, mtime: metadata.mtime }
    }
}

/// Rows that are handed over together. Their bytes lie in one buffer, in which there may be others between them.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) buffer: Buffer,
    pub(crate) lines: Vec<Line>,
    pub(crate) rows: u64,
    pub(crate) range: usize,
    pub(crate) offset: u64,
    pub(crate) stamps: Vec<Stamp>,
}

impl Batch {
    /// The buffer that holds the rows.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Where each row is in it; nothing if only the number of rows was asked for.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The range that its first row belongs to; all of them, if the scan groups by range.
    pub fn range(&self) -> usize {
        self.range
    }

    /// A row, by its number in the batch.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        self.lines.get(index).map(|line| &self.buffer[line.start as usize..][..line.length as usize])
    }

    /// Where in its file the buffer begins, if the rows of one range were read into it and all of them are wanted: then a row
    /// has the same place in the buffer as in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The rows themselves.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.lines.len()).filter_map(|index| self.row(index))
    }

    /// The files that its rows begin, in their order, if the rows are [`crate::Rows::Bytes`].
    pub fn stamps(&self) -> &[Stamp] {
        &self.stamps
    }

    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.lines.clear();
        self.stamps.clear();
        self.rows = 0;
    }

    /// Fails if it cannot take `count` bytes more: files may have grown since they were put together.
    pub(crate) fn check_room(&self, count: usize) -> Result<()> {
        if count > Buffer::MAX - self.buffer.len() {
            return Err(Error::new(Operation::Read, Errno::OVERFLOW));
        }
        Ok(())
    }

    /// Adds a row that is in the buffer already, at an offset that fits: a buffer is no longer than [`Buffer::MAX`].
    pub(crate) fn add_in_place(&mut self, start: usize, end: usize) {
        self.lines.push(Line { start: start as u32, length: (end - start) as u32 });
    }

    /// Adds a copy of a row.
    pub(crate) fn add(&mut self, row: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend(row);
        self.add_in_place(start, start + row.len());
    }
}

/// Bytes that are read into again and again: room that was made once is not zeroed again.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    storage: Vec<u8>,
    filled: usize,
}

impl Buffer {
    /// The most bytes in a buffer: those that an array of the JVM may have.
    pub(crate) const MAX: usize = i32::MAX as usize;

    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Room for `count` bytes after those that are there.
    pub(crate) fn room(&mut self, count: usize) -> &mut [u8] {
        let end = self.filled + count;
        if self.storage.len() < end {
            self.storage.resize(end, 0);
        }
        &mut self.storage[self.filled..end]
    }

    /// The first `count` bytes of the room hold data now.
    pub(crate) fn fill(&mut self, count: usize) {
        self.filled += count;
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.fill(bytes.len());
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage[..self.filled]
    }
}
