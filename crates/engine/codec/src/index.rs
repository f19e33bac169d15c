//! Compressed-file indexes: the offsets at which decoding may begin.
//!
//! An index divides the decoded bytes of a file into *chunks*. A chunk begins where a decoder can start: at a member or
//! frame, or, in gzip, at a deflate block, for which the index keeps the *window*: the up to 32 KiB before it that the
//! block may refer to. In LZ4 it can also begin at an independent block; the window then records the form of the file
//! (`lz4.rs`). The index has a checksum of each chunk, because the checksum of a gzip member or a frame can only be
//! checked after all of it has been decoded.
//!
//! # Format
//! As [`millstream_wire`] describes, in this order:
//!
//! ```text
//! "MSINDEX1"
//! u8 codec, u64 size of the file, u64 decoded length of the file, u64 number of LF in it, u32 number of chunks
//! for each chunk   u64 bit of the file, u64 decoded offset, u32 length of the window (stored; 2^32-1: left out),
//!                  u32 CRC-32 of the decoded bytes, u64 number of LF
//! u64 end          decoded offset at which the last chunk ends
//! u64 end          bit of the file at which the last chunk ends
//! windows          those of gzip as raw deflate
//! u32 CRC-32       of all that precedes
//! ```

use std::io;
use std::ops::Range;

use millstream_wire::{Decoder, Encoder, Malformed};

use crate::codec::Codec;
use crate::crc::Crc32;
use crate::error::DecodeError;

/// The signature of an encoded index.
pub const MAGIC: &[u8; 8] = b"MSINDEX1";
/// Bytes of a chunk's entry.
const ENTRY: usize = 32;
const LEFT_OUT: u32 = u32::MAX;
/// Maximum decoded bytes of a chunk. A file with a longer deflate block has no index.
pub(crate) const LONGEST: u64 = 64 << 20;
/// Maximum bytes of the file that a chunk is decoded from, which a task holds. Incompressible text takes little
/// more than its own length; but there can be any number of members and frames without text, and skippable
/// frames of any length.
pub(crate) const LONGEST_SPAN: u64 = 2 * LONGEST;
/// Maximum bytes of a file, compressed and decoded: Java's integers are signed.
const LONGEST_FILE: u64 = i64::MAX as u64;
/// Maximum bytes of a row ([`Index::slice`]).
const LONGEST_ROW: u64 = 2 << 30;

/// An index of a file, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub(crate) codec: Codec,
    pub(crate) size: u64,
    pub(crate) length: u64,
    pub(crate) lines: u64,
    pub(crate) chunks: Vec<Chunk>,
    /// Decoded offset and bit of the file after the last chunk.
    pub(crate) end: (u64, u64),
    pub(crate) windows: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its start in the file.
    pub(crate) bit: u64,
    /// Its start in the decoded bytes.
    pub(crate) start: u64,
    pub(crate) window: Window,
    pub(crate) crc: u32,
    /// Number of LF.
    pub(crate) lines: u64,
}

/// The bytes before a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// At this position in [`Index::windows`], raw deflate data; empty if no byte is needed.
    Stored(Range<usize>),
    /// Omitted: the chunk is decoded after the one before it.
    LeftOut,
}

/// Bytes that are not an index, or not one of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an index, or a damaged one")]
pub struct NotAnIndex;

impl From<Malformed> for NotAnIndex {
    fn from(_: Malformed) -> Self {
        NotAnIndex
    }
}

impl Index {
    /// The index of a file of `size` bytes that decode to nothing.
    pub(crate) fn of_nothing(codec: Codec, size: u64) -> Self {
        Index { codec, size, length: 0, lines: 0, chunks: Vec::new(), end: (0, 0), windows: Vec::new() }
    }

    /// The codec of the file.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Bytes of the compressed file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Decoded bytes of the whole file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Number of LF in the whole file.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Decoded bytes of a chunk.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn range(&self, chunk: usize) -> Range<u64> {
        self.chunks[chunk].start..self.chunks.get(chunk + 1).map_or(self.end.0, |next| next.start)
    }

    /// Bytes of the file that a chunk is decoded from.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn compressed(&self, chunk: usize) -> Range<u64> {
        let end = self.chunks.get(chunk + 1).map_or(self.end.1, |next| next.bit);
        self.chunks[chunk].bit / 8..end.div_ceil(8)
    }

    /// Whether a chunk can be decoded without the one before it.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn has_window(&self, chunk: usize) -> bool {
        self.chunks[chunk].window != Window::LeftOut
    }

    /// The chunk that has the byte at a decoded offset; `None` if this index has none.
    pub fn chunk_at(&self, offset: u64) -> Option<usize> {
        let after = self.chunks.partition_point(|chunk| chunk.start <= offset);
        (after > 0 && offset < self.end.0).then(|| after - 1)
    }

    /// The best end of a range of decoded bytes that begins at `start`: near `end`, so that readers of adjacent ranges
    /// do not decode the same chunk; and after `start`, unless that is the end of the file.
    pub fn cut(&self, start: u64, end: u64) -> u64 {
        let begins = |at: usize| self.chunks.get(at).map_or(self.length, |chunk| chunk.start);
        let after = self.chunks.partition_point(|chunk| chunk.start <= end);
        let (before, next) = (begins(after.saturating_sub(1)), begins(after));
        if before > start && end.saturating_sub(before) <= next.saturating_sub(end) { before } else { next }
    }

    /// The part of the index needed to read the rows that begin in a range of decoded bytes: its chunks, and the chunks
    /// after it in which the last row ends, without their windows.
    pub fn slice(&self, range: Range<u64>) -> Index {
        let first = self.chunk_at(range.start).unwrap_or(self.chunks.len());
        let until = range.end.saturating_add(LONGEST_ROW);
        let beyond = self.chunks.partition_point(|chunk| chunk.start < until).max(first);
        // Only gzip windows are worth omitting.
        let is_long = self.codec == Codec::Gzip;
        let mut windows = Vec::new();
        let chunks: Vec<_> = self.chunks[first..beyond]
            .iter()
            .enumerate()
            .map(|(i, chunk)| {
                let window = match &chunk.window {
                    Window::Stored(at) if i == 0 || chunk.start < range.end || at.is_empty() || !is_long => {
                        let start = windows.len();
                        windows.extend_from_slice(&self.windows[at.clone()]);
                        Window::Stored(start..windows.len())
                    }
                    _ => Window::LeftOut,
                };
                Chunk { window, ..chunk.clone() }
            })
            .collect();
        let end = self.chunks.get(beyond).map_or(self.end, |next| (next.start, next.bit));
        Index { chunks, windows, end, ..*self }
    }

    /// The index as bytes.
    ///
    /// # Panics
    /// If it has more than 2³² chunks.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::with_capacity(64 + self.chunks.len() * ENTRY + self.windows.len());
        out.bytes(MAGIC);
        out.u8(self.codec.code());
        out.u64(self.size);
        out.u64(self.length);
        out.u64(self.lines);
        out.u32(u32::try_from(self.chunks.len()).expect("chunks are large"));
        for chunk in &self.chunks {
            out.u64(chunk.bit);
            out.u64(chunk.start);
            out.u32(match &chunk.window {
                Window::Stored(at) => at.len() as u32,
                Window::LeftOut => LEFT_OUT,
            });
            out.u32(chunk.crc);
            out.u64(chunk.lines);
        }
        out.u64(self.end.0);
        out.u64(self.end.1);
        out.bytes(&self.windows);
        let mut bytes = out.into_bytes();
        bytes.extend_from_slice(&Crc32::of(&bytes).value().to_le_bytes());
        bytes
    }

    /// The index that [`Index::encode`] encoded.
    ///
    /// # Errors
    /// [`NotAnIndex`] for any other bytes; a decoded index can still be wrong about the file.
    pub fn decode(bytes: &[u8]) -> Result<Index, NotAnIndex> {
        let (bytes, crc) = bytes.split_last_chunk().ok_or(NotAnIndex)?;
        if Crc32::of(bytes).value() != u32::from_le_bytes(*crc) {
            return Err(NotAnIndex);
        }
        let mut input = Decoder::new(bytes);
        if input.bytes(MAGIC.len())? != MAGIC {
            return Err(NotAnIndex);
        }
        let codec = Codec::from_code(input.u8()?).ok_or(NotAnIndex)?;
        let (size, length, lines, count) = (input.u64()?, input.u64()?, input.u64()?, input.u32()? as usize);
        if count > bytes.len() / ENTRY {
            return Err(NotAnIndex);
        }
        let (mut chunks, mut stored) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let (bit, start) = (input.u64()?, input.u64()?);
            let window = match input.u32()? {
                LEFT_OUT => Window::LeftOut,
                window => {
                    let at = stored;
                    stored += window as usize;
                    Window::Stored(at..stored)
                }
            };
            chunks.push(Chunk { bit, start, window, crc: input.u32()?, lines: input.u64()? });
        }
        let end = (input.u64()?, input.u64()?);
        let windows = input.bytes(stored)?.to_vec();
        input.end()?;
        let index = Index { codec, size, length, lines, chunks, end, windows };
        if index.is_plausible() { Ok(index) } else { Err(NotAnIndex) }
    }

    /// Whether the chunks cover the whole file; those of a [`slice`](Index::slice) need not. No chunks cover a
    /// file that decodes to nothing.
    pub fn is_whole(&self) -> bool {
        self.chunks.first().map_or(self.length == 0, |first| first.start == 0 && self.end.0 == self.length)
    }

    /// The error for an offset in the file at which the chunk does not match.
    pub(crate) fn damaged(&self, offset: u64) -> io::Error {
        DecodeError::invalid(self.codec, offset, "its index is damaged")
    }

    /// Whether chunks are in order, not too long, and within the file.
    pub(crate) fn is_plausible(&self) -> bool {
        let ends = self.chunks.iter().skip(1).map(|next| (next.start, next.bit)).chain([self.end]);
        self.codec.has_index()
            && self.size.max(self.length) <= LONGEST_FILE
            && self.end.0 <= self.length
            && self.end.1.div_ceil(8) <= self.size
            && self.chunks.first().is_none_or(|first| first.window != Window::LeftOut)
            && self.chunks.iter().zip(ends).all(|(chunk, (end, bit))| {
                let has_window = chunk.window != Window::LeftOut || self.codec == Codec::Gzip;
                let is_forward = chunk.start < end && chunk.bit < bit;
                has_window
                    && is_forward
                    && end - chunk.start <= LONGEST
                    && bit.div_ceil(8) - chunk.bit / 8 <= LONGEST_SPAN
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(chunks: &[(u64, u64)], end: (u64, u64), length: u64, size: u64) -> Index {
        let chunk = |&(start, bit): &(u64, u64)| {
            let window = Window::Stored(0..0);
            Chunk { bit, start, window, crc: 0, lines: 0 }
        };
        let chunks = chunks.iter().map(chunk).collect();
        Index { chunks, end, length, ..Index::of_nothing(Codec::Zstd, size) }
    }

    #[test]
    fn an_index_of_a_part_of_a_file_is_not_whole() {
        for (index, is_whole) in [
            (index(&[], (0, 0), 0, 9), true),
            (index(&[(0, 0), (5, 40)], (9, 80), 9, 10), true),
            (index(&[(5, 40)], (9, 80), 9, 10), false),
            (index(&[(0, 0)], (5, 40), 9, 10), false),
            (index(&[], (0, 0), 9, 10), false),
            (index(&[], (9, 80), 9, 10), false),
        ] {
            assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(&index), "slices are sent to tasks");
            assert_eq!(index.is_whole(), is_whole, "{index:?}");
            for at in 0..12 {
                assert!(index.cut(0, at) <= 9);
            }
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_of_no_index() {
        let most = 2 * LONGEST;
        for (index, is_one) in [
            (index(&[(0, 0)], (9, most * 8), 9, most), true),
            (index(&[(0, 0)], (9, most * 8 + 1), 9, most + 1), false),
            (index(&[(0, 7)], (LONGEST, 80), LONGEST, 10), true),
            (index(&[(0, 7)], (LONGEST + 1, 80), LONGEST + 1, 10), false),
            (index(&[(0, 0)], (9, 80), 1 << 63, 10), false),
            (index(&[(0, 0)], (9, 80), 9, 1 << 63), false),
        ] {
            assert_eq!(Index::decode(&index.encode()).is_ok(), is_one, "{index:?}");
        }
    }
}
