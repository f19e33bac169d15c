//! Makes the index of a gzip file in one pass, and decodes from it.
//!
//! The file is decoded block by block. At the first end of a block or of a member after enough bytes, a chunk ends. Checksums of
//! members are put together from those of chunks, so the bytes are read once for both, while they are in the processor's cache.

use std::io::{self, Read};

use crc32fast::Hasher;
use memchr::memchr_iter;

use crate::codec::Codec;
use crate::error::DecodeError;
use crate::gzip::Members;
use crate::index::{Chunk, Index, LONGEST, Window};
use crate::inflate::{Stop, WINDOW};

/// Decoded bytes after which a chunk ends: so many that an index has a thousandth of the size of the decoded file or less.
pub const SPACING: u64 = 8 << 20;
/// Bytes that are decoded before their checksum is computed.
const STEP: usize = 256 << 10;
/// Compression of windows; higher levels take longer than decoding does.
pub(crate) const WINDOW_LEVEL: i32 = 1;

/// Decodes a gzip file from its beginning, and makes its index.
#[derive(Debug)]
pub struct Indexer<R> {
    members: Members<R>,
    spacing: u64,
    /// The chunks that have ended.
    index: Index,
    current: Current,
    /// The last bytes of the member, [`WINDOW`] if it has as many.
    tail: Vec<u8>,
    /// Whether a block was too long for a chunk.
    is_undivided: bool,
}

/// The chunk that is being decoded.
#[derive(Debug, Default)]
struct Current {
    /// The bit of the file where it begins.
    bit: u64,
    /// The bytes before it that it may refer to.
    window: Vec<u8>,
    length: u64,
    crc: Hasher,
    lines: u64,
}

impl<R: Read> Indexer<R> {
    /// Decodes `input`, a whole file; chunks have at least `spacing` bytes, but for the last. [`SPACING`] is the usual value.
    pub fn new(input: R, spacing: u64) -> Self {
        let index = Index {
            codec: Codec::Gzip,
            size: 0,
            length: 0,
            lines: 0,
            chunks: Vec::new(),
            end: (0, 0),
            windows: Vec::new(),
        };
        Indexer {
            members: Members::new(input),
            // So that a chunk has the whole window of the next one.
            spacing: spacing.clamp(WINDOW as u64, LONGEST / 2),
            index,
            current: Current::default(),
            tail: Vec::with_capacity(2 * WINDOW),
            is_undivided: false,
        }
    }

    /// The index, after the end of the file has been read; `None` if a block of deflate is too long for a chunk.
    pub fn finish(mut self) -> Option<Index> {
        if self.current.length > 0 {
            self.end_chunk(self.position(0));
        }
        self.index.size = self.members.input.offset();
        (!self.is_undivided).then_some(self.index)
    }

    /// Whether the file cannot be divided, as far as it has been read.
    pub fn is_undivided(&self) -> bool {
        self.is_undivided
    }

    /// The bit of the file that is read next.
    fn position(&self, unused_bits: u8) -> u64 {
        self.members.input.offset() * 8 - u64::from(unused_bits)
    }

    /// Takes note of decoded bytes, all of one member.
    fn add(&mut self, bytes: &[u8]) {
        let mut crc = Hasher::new();
        crc.update(bytes);
        self.members.check.add_checked(&crc, bytes.len() as u64);
        self.current.crc.combine(&crc);
        self.current.length += bytes.len() as u64;
        self.current.lines += memchr_iter(b'\n', bytes).count() as u64;
        if bytes.len() >= WINDOW {
            self.tail.clear();
        } else if self.tail.len() + bytes.len() > 2 * WINDOW {
            self.tail.drain(..self.tail.len() - WINDOW);
        }
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(WINDOW)..]);
    }

    /// Ends a chunk; the next one begins at this bit, with the bytes in `tail` before it.
    fn end_chunk(&mut self, bit: u64) {
        let current = std::mem::take(&mut self.current);
        let index = &mut self.index;
        let first = index.windows.len();
        if !current.window.is_empty() {
            index.windows.extend(deflated(&current.window, WINDOW_LEVEL));
        }
        index.chunks.push(Chunk {
            bit: current.bit,
            start: index.length,
            window: Window::Stored(first..index.windows.len()),
            crc: current.crc.finalize(),
            lines: current.lines,
        });
        index.length += current.length;
        index.lines += current.lines;
        index.end = (index.length, bit);
        self.current.bit = bit;
        self.current.window.extend_from_slice(&self.tail[self.tail.len().saturating_sub(WINDOW)..]);
    }
}

/// The checksums of all members whose last byte has been read are right.
impl<R: Read> Read for Indexer<R> {
    /// # Errors
    /// Those of the input, and those of a [`DecodeError`].
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < output.len() {
            if !self.members.is_inside() {
                self.tail.clear();
                if self.current.length == 0 {
                    // A member of which nothing was left is passed over.
                    self.current.bit = self.position(0);
                    self.current.window.clear();
                }
            }
            if !self.members.enter()? {
                break;
            }
            let until = output.len().min(filled + STEP);
            let (written, stop) = self.members.inflate(&mut output[filled..until], true)?;
            self.add(&output[filled..filled + written]);
            filled += written;
            let unused_bits = match stop {
                Stop::Inside => {
                    self.is_undivided |= self.current.length > LONGEST;
                    continue;
                }
                Stop::BlockEnd { unused_bits } => unused_bits,
                Stop::StreamEnd => {
                    self.members.leave()?;
                    self.tail.clear();
                    0
                }
            };
            if self.current.length >= self.spacing {
                self.end_chunk(self.position(unused_bits));
            }
        }
        Ok(filled)
    }
}

/// Raw deflate.
pub(crate) fn deflated(bytes: &[u8], level: i32) -> Vec<u8> {
    let mut deflate = zlib_rs::Deflate::new(level, false, 15);
    let mut out = vec![0; zlib_rs::compress_bound(bytes.len())];
    let status = deflate.compress(bytes, &mut out, zlib_rs::DeflateFlush::Finish);
    assert_eq!(status, Ok(zlib_rs::Status::StreamEnd), "there is room");
    out.truncate(deflate.total_out() as usize);
    out
}

/// Decodes a chunk to `decoded`, replacing what it holds. `compressed` is the part of the file that [`Index::compressed`] tells.
/// `before` is the end of the chunk before it, 32 KiB if it has as many; it does not matter if [`Index::has_window`].
///
/// # Errors
/// Those of a [`DecodeError`], if the bytes are not those that the index was made of; then `decoded` is empty.
///
/// # Panics
/// If there is no such chunk.
pub fn decode_chunk(
    index: &Index,
    chunk: usize,
    compressed: &[u8],
    before: &[u8],
    decoded: &mut Vec<u8>,
) -> io::Result<()> {
    let result = decode(index, chunk, compressed, before, decoded);
    if result.is_err() {
        decoded.clear();
    }
    result
}

fn decode(
    index: &Index,
    chunk: usize,
    compressed: &[u8],
    before: &[u8],
    decoded: &mut Vec<u8>,
) -> io::Result<()> {
    let (entry, range, first) = (&index.chunks[chunk], index.range(chunk), index.compressed(chunk).start);
    let mut stored = [0; WINDOW];
    let mut members = match &entry.window {
        Window::Stored(at) if at.is_empty() => Members::at(first, compressed),
        window => {
            let window = match window {
                Window::Stored(at) => inflated(&index.windows[at.clone()], &mut stored)
                    .ok_or_else(|| DecodeError::invalid(Codec::Gzip, first, "its index is damaged"))?,
                Window::LeftOut => before,
            };
            Members::inside(first, compressed, window, (entry.bit % 8) as u8)?
        }
    };
    // It is no more than `LONGEST`.
    decoded.resize((range.end - range.start) as usize, 0);
    let (mut filled, mut crc) = (0, Hasher::new());
    while filled < decoded.len() {
        if !members.enter()? {
            return Err(DecodeError::truncated(Codec::Gzip, members.input.offset()));
        }
        let until = decoded.len().min(filled + STEP);
        let (written, stop) = members.inflate(&mut decoded[filled..until], false)?;
        crc.update(&decoded[filled..filled + written]);
        filled += written;
        if stop == Stop::StreamEnd {
            members.pass()?;
        }
    }
    if crc.finalize() != entry.crc {
        let reason = "the CRC of a chunk is not that of its index";
        return Err(DecodeError::invalid(Codec::Gzip, first, reason));
    }
    Ok(())
}

/// The bytes of a window that is raw deflate; `None` if it is none.
pub(crate) fn inflated<'a>(window: &[u8], out: &'a mut [u8; WINDOW]) -> Option<&'a [u8]> {
    let mut inflate = zlib_rs::Inflate::new(false, 15);
    let status = inflate.decompress(window, out, zlib_rs::InflateFlush::Finish);
    let length = inflate.total_out() as usize;
    (status == Ok(zlib_rs::Status::StreamEnd)).then(|| &out[..length])
}

/// Takes arbitrary bytes for an index, and for a file to decode by it. They get the checksum that an index has to have.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_index(bytes: &[u8]) {
    let Ok(index) = Index::decode(&[bytes, &crc32fast::hash(bytes).to_le_bytes()].concat()) else { return };
    assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(&index));
    assert!(Index::decode(&index.slice(0..index.length()).encode()).is_ok());
    for chunk in 0..index.chunks().min(3) {
        // A file of which the index is wrong gives no byte.
        let mut decoded = Vec::new();
        if decode_chunk(&index, chunk, bytes, &[], &mut decoded).is_err() {
            assert!(decoded.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_indexes_are_found() {
        let text: Vec<u8> = (0..200_000_u64)
            .flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44).to_le_bytes())
            .collect();
        let gz = [
            &b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..],
            &deflated(&text, 6),
            &crc32fast::hash(&text).to_le_bytes(),
        ]
        .concat();
        let gz = [&gz[..], &(text.len() as u32).to_le_bytes()].concat();
        let mut indexer = Indexer::new(&gz[..], 1);
        io::copy(&mut indexer, &mut io::sink()).expect("well-formed");
        let index = indexer.finish().expect("short blocks");
        assert!(index.chunks() > 3 && index.lines() > 0, "{}", index.chunks());
        let bytes = index.encode();
        let unchecked = &bytes[..bytes.len() - 4];
        for at in 0..unchecked.len().min(400) {
            for flipped in [1, 0x80, 0xff] {
                let mut bad = unchecked.to_vec();
                bad[at] ^= flipped;
                assert!(Index::decode(&bad).is_err(), "the checksum is missing");
                fuzz_index(&bad);
            }
            fuzz_index(&unchecked[..at]);
        }
    }
}
