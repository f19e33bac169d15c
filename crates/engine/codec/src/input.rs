//! Buffered input that counts the bytes read.

use std::io::{self, Read};

/// Bytes of one read.
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
    /// Input from `source`, which begins at an offset of the file.
    pub(crate) fn new(offset: u64, source: R) -> Self {
        Input { source, buffer: vec![0; BUFFERED].into(), next: 0, filled: 0, before: offset }
    }

    /// The offset after the used bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.next as u64
    }

    /// The next bytes; empty only at the end.
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

    /// The next bytes, at least `count`, which is less than a buffer; fewer only at the end.
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
