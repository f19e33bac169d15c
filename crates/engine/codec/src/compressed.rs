//! The compressed bytes of a file: fields and blocks of them, and errors that say where they are.

use std::io::{self, Read};

use crate::codec::Codec;
use crate::error::DecodeError;
use crate::input::Input;

/// Bytes decoded at once: few enough to stay in the processor's cache until their checksum is computed.
pub(crate) const STEP: usize = 256 << 10;

/// Input of a decoder.
#[derive(Debug)]
pub(crate) struct Compressed<R> {
    input: Input<R>,
    codec: Codec,
}

impl<R: Read> Compressed<R> {
    /// From `input`, which reads a whole file.
    pub(crate) fn new(codec: Codec, input: R) -> Self {
        Compressed::at(codec, 0, input)
    }

    /// From `input`, which reads a file from an offset on.
    pub(crate) fn at(codec: Codec, offset: u64, input: R) -> Self {
        Compressed { input: Input::new(offset, input), codec }
    }

    /// The offset after the used bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The next bytes; empty only at the end.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.peek()
    }

    /// Whether the next field has this value.
    pub(crate) fn next_is<const N: usize>(&mut self, field: [u8; N]) -> io::Result<bool> {
        Ok(self.input.peek_more(N)?.starts_with(&field))
    }

    /// Marks some of the next bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }

    /// Fills as much of `out` as there are bytes. Returns how many.
    pub(crate) fn up_to(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < out.len() {
            let next = self.input.peek()?;
            let n = next.len().min(out.len() - filled);
            if n == 0 {
                break;
            }
            out[filled..filled + n].copy_from_slice(&next[..n]);
            self.input.consume(n);
            filled += n;
        }
        Ok(filled)
    }

    /// Fills `out`.
    pub(crate) fn exact(&mut self, out: &mut [u8]) -> io::Result<()> {
        if self.up_to(out)? < out.len() { Err(self.truncated()) } else { Ok(()) }
    }

    /// A field.
    pub(crate) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A field, or `None` at the end of the file.
    pub(crate) fn array_or_end<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.input.peek()?.is_empty() { Ok(None) } else { self.array().map(Some) }
    }

    /// Replaces the contents of `block` by the next `length` bytes. Memory grows only with bytes that exist.
    pub(crate) fn block(&mut self, length: usize, block: &mut Vec<u8>) -> io::Result<()> {
        block.clear();
        while block.len() < length {
            let next = self.input.peek()?;
            let n = next.len().min(length - block.len());
            if n == 0 {
                return Err(self.truncated());
            }
            block.extend_from_slice(&next[..n]);
            self.input.consume(n);
        }
        Ok(())
    }

    /// Skips bytes.
    pub(crate) fn skip(&mut self, length: u32) -> io::Result<()> {
        let mut left = length as usize;
        while left > 0 {
            let n = self.input.peek()?.len().min(left);
            if n == 0 {
                return Err(self.truncated());
            }
            self.input.consume(n);
            left -= n;
        }
        Ok(())
    }

    /// The error for a file that ends here, where more must follow.
    pub(crate) fn truncated(&self) -> io::Error {
        DecodeError::truncated(self.codec, self.input.offset())
    }

    /// The error for bytes before here that are damaged.
    pub(crate) fn invalid(&self, reason: impl Into<String>) -> io::Error {
        DecodeError::invalid(self.codec, self.input.offset(), reason)
    }
}
