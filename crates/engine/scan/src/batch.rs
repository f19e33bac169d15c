//! Packed rows.

use std::ops::{Deref, Range};

use millstream_version::Version;
use millstream_vfs::{Errno, Error, Operation, Result};

use crate::lines::Separator;

/// Position of a row in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Line {
    /// First byte.
    pub start: u32,
    /// Number of bytes, without the separator.
    pub length: u32,
}

impl Line {
    /// The row at these offsets. They fit 32 bits: a buffer is no longer than [`Buffer::MAX`].
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Line { start: start as u32, length: (end - start) as u32 }
    }
}

/// Rows that are delivered together. Their bytes lie in one buffer, possibly with other bytes between them.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) buffer: Buffer,
    pub(crate) lines: Vec<Line>,
    pub(crate) counts: Vec<u64>,
    pub(crate) rows: u64,
    pub(crate) range: usize,
    pub(crate) offset: u64,
    pub(crate) versions: Vec<Version>,
    pub(crate) last_versions: Vec<Version>,
}

impl Batch {
    /// Larger ones are not kept for reuse.
    const KEPT_BYTES: usize = 8 << 20;

    /// The buffer that holds the rows.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Position of each row in the buffer; empty if only the number of rows was requested.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How often each row occurs; empty unless the output is [`crate::Output::Distinct`].
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of rows with all their occurrences.
    pub fn occurrences(&self) -> u64 {
        if self.counts.is_empty() { self.rows } else { self.counts.iter().sum() }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The range of the first row. With [`crate::Grouping::ByRange`], the range of all rows.
    pub fn range(&self) -> usize {
        self.range
    }

    /// A row, by its number in the batch.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        self.lines.get(index).map(|line| self.at(*line))
    }

    /// The bytes of a row at this position.
    pub(crate) fn at(&self, line: Line) -> &[u8] {
        &self.buffer[line.start as usize..][..line.length as usize]
    }

    /// File offset of the start of the buffer. Valid if the buffer holds one range and no predicate drops rows; a row's
    /// offset in the file is then this offset plus its offset in the buffer.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The rows themselves.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.lines.len()).filter_map(|index| self.row(index))
    }

    /// For [`crate::Rows::Bytes`]: versions of the files whose first piece is in this batch, in order.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// For [`crate::Rows::Bytes`]: versions of the files of several pieces whose last piece is in this batch, taken
    /// after it was read, in order.
    pub fn last_versions(&self) -> &[Version] {
        &self.last_versions
    }

    /// Whether its memory is worth keeping for another batch.
    pub(crate) fn is_kept(&self) -> bool {
        self.buffer.storage.len() <= Self::KEPT_BYTES
    }

    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.lines.clear();
        self.counts.clear();
        self.versions.clear();
        self.last_versions.clear();
        self.rows = 0;
    }

    /// Fails if `count` more bytes do not fit: files may have grown since they were grouped.
    pub(crate) fn check_room(&self, count: usize) -> Result<()> {
        if count > Buffer::MAX - self.buffer.len() {
            return Err(Error::new(Operation::Read, Errno::OVERFLOW));
        }
        Ok(())
    }

    /// Adds a row whose bytes are already in the buffer.
    pub(crate) fn add_in_place(&mut self, start: usize, end: usize) {
        self.lines.push(Line::new(start, end));
    }

    /// Adds lines whose bytes are already in the buffer.
    pub(crate) fn add_lines(&mut self, place: Range<usize>, separator: &Separator) {
        let Batch { buffer, lines, .. } = &mut *self;
        let (before, first) = (lines.len(), place.start);
        separator.split(&buffer[place], |start, end| lines.push(Line::new(first + start, first + end)));
        self.rows += (lines.len() - before) as u64;
    }

    /// Adds a copy of a row.
    pub(crate) fn add(&mut self, row: &[u8]) {
        let line = self.store(row);
        self.lines.push(line);
    }

    /// Copies bytes into the buffer, without making them a row.
    pub(crate) fn store(&mut self, row: &[u8]) -> Line {
        let start = self.buffer.len();
        self.buffer.extend(row);
        Line::new(start, start + row.len())
    }
}

/// A reusable read buffer: space is zeroed once, when it is allocated.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    storage: Vec<u8>,
    filled: usize,
}

impl Buffer {
    /// Maximum size in bytes: that of a JVM array.
    pub(crate) const MAX: usize = i32::MAX as usize;

    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Forgets what is after the first `count` bytes.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.filled = self.filled.min(count);
    }

    /// Space for `count` bytes after the filled part.
    pub(crate) fn room(&mut self, count: usize) -> &mut [u8] {
        let end = self.filled + count;
        if self.storage.len() < end {
            self.storage.resize(end, 0);
        }
        &mut self.storage[self.filled..end]
    }

    /// Marks the next `count` bytes as filled.
    pub(crate) fn fill(&mut self, count: usize) {
        self.filled += count;
    }

    /// Adds a copy of bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
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
