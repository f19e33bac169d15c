//! Buffered input that knows how far it has been read.

use std::io::{self, Read};

/// Bytes that are read at once.
const BUFFERED: usize = 128 << 10;

#[derive(Debug)]
pub(crate) struct Input<R> {
    source: R,
    buffer: Box<[u8]>,
    next: usize,
    filled: usize,
    /// Offset of the buffer.
    before: u64,
}

impl<R: Read> Input<R> {
    /// What `source` reads, which begins at an offset.
    pub(crate) fn new(offset: u64, source: R) -> Self {
        Input { source, buffer: vec![0; BUFFERED].into(), next: 0, filled: 0, before: offset }
    }

    /// The offset after what has been used.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.next as u64
    }

    /// The next bytes; none at the end only.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        if self.next == self.filled {
            self.before += self.filled as u64;
            (self.next, self.filled) = (0, 0);
            self.filled = self.fill()?;
        }
        Ok(&self.buffer[self.next..self.filled])
    }

    /// The next bytes, at least `count` of them, which is less than a buffer; fewer at the end only.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn peek_more(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.filled - self.next < count {
            self.buffer.copy_within(self.next..self.filled, 0);
            self.before += self.next as u64;
            (self.next, self.filled) = (0, self.filled - self.next);
            let read = self.fill()?;
            self.filled += read;
            if read == 0 {
                break;
            }
        }
        Ok(&self.buffer[self.next..self.filled])
    }

    /// Reads to the free part of the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Marks some of the next bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.next += count;
        debug_assert!(self.next <= self.filled);
    }
}
