//! Concatenated bzip2 streams: whole files and parts of them.
//!
//! ```text
//! stream:  "BZh1" to "BZh9", block…, 48 bits of signature, u32 checksum
//! block:   48 bits of signature, u32 checksum, …    not aligned to bytes
//! ```
//!
//! A block does not depend on earlier ones, so a file can be split without an index: a block belongs to the range of
//! bytes in which its signature begins. A block ends at the signature of the next block, or of the end of the stream;
//! the library gets it as a stream of one block, and checks its checksum:
//!
//! ```text
//! "BZh9"  the block, moved to the next byte  the signature of an end  the block's checksum, which is that of the stream
//! ```
//!
//! The bits of a signature can also occur within a block. Decoding up to there fails, and the block ends at a later
//! signature.
//!
//! Hadoop reads the blocks wherever in the file their signature is, and ignores everything else: the headers of
//! streams, their checksums, and bytes between streams. Here streams must be complete, and streams that are read from
//! their beginning must have the right checksum. Only bytes after the last stream are skipped, as by the `bzip2`
//! command, unless they are a damaged stream or contain a block that Hadoop would have read.
//!
//! As in Hadoop, a block with a wrong checksum is returned before the error, if it can be decoded at all: where damage
//! is ignored, its lines are rows. So is a block whose end is cut off or damaged. Damage between blocks, in a stream's
//! header or checksum, is an error after the blocks that follow it, since Hadoop skips it. After a damaged block the
//! next one can be decoded: Hadoop, which splits files at other offsets, may find it at the beginning of a split.

use std::io::{self, Read};

use bzip2::{Decompress, Status};

use crate::codec::Codec;
use crate::compressed::Compressed;
use crate::error::DecodeError;

const MAGIC: &[u8; 3] = b"BZh";
const BLOCK: u64 = 0x3141_5926_5359;
const STREAM_END: u64 = 0x1772_4538_5090;
const SIGNATURE_BITS: usize = 48;
const CRC_BITS: usize = 32;
/// Bytes of a stream's header.
const HEADER: usize = 4;
/// Bytes of a stream's header and of the signature that follows it.
const HEAD: usize = 10;
/// Maximum bytes of a block: 900,000 symbols in codes of up to 20 bits, and the code tables.
const LONGEST_BLOCK: u64 = 900_000 * 20 / 8 + 100_000;
/// How many signatures are tried as the end of a block. One within a block is as unlikely as a checksum that matches by
/// chance.
const MOST_ENDS: usize = 8;
/// Bytes by which the memory for a decoded block grows.
const GROWTH: usize = 1 << 20;
/// Bytes of one read.
const PORTION: usize = 256 << 10;

/// Decodes a file.
pub(crate) struct Bzip2Reader<R> {
    blocks: Bzip2Blocks<R>,
    block: Vec<u8>,
    /// How much of the block has been returned.
    next: usize,
}

impl<R: Read> Bzip2Reader<R> {
    pub(crate) fn new(input: R) -> Self {
        Bzip2Reader { blocks: Bzip2Blocks::new(input, 0, u64::MAX), block: Vec::new(), next: 0 }
    }
}

impl<R: Read> Read for Bzip2Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.next == self.block.len() {
            self.next = 0;
            if self.blocks.next_block(&mut self.block)?.is_none() {
                return self.blocks.passed_over().map_or(Ok(0), Err);
            }
        }
        let n = out.len().min(self.block.len() - self.next);
        out[..n].copy_from_slice(&self.block[self.next..self.next + n]);
        self.next += n;
        Ok(n)
    }
}

/// Decodes the blocks that begin in a range of a file.
#[derive(Debug)]
pub struct Bzip2Blocks<R> {
    compressed: Compressed<R>,
    /// The bytes of the file from the offset `base` on.
    buffer: Vec<u8>,
    base: u64,
    /// The end of the range.
    end: u64,
    next: Next,
    /// The checksum of the stream's blocks so far; `None` if some were not decoded.
    stream_crc: Option<u32>,
    /// The damage in the last block that was returned.
    failure: Option<io::Error>,
    /// The first damage between blocks that was skipped.
    passed: Option<io::Error>,
}

/// The next thing to read.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// A header at this offset, of the file's first stream or of another one.
    Header { offset: u64, is_first: bool },
    /// The first block in the range whose signature begins at this bit or later.
    BlockFrom(u64),
    /// A block whose signature begins at this bit.
    Block(u64),
    /// The end of a stream, whose signature begins at this bit.
    StreamEnd(u64),
    /// Nothing.
    End,
}

/// A signature that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Block(u64),
    StreamEnd(u64),
}

/// The bytes that a stream can begin with.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    Block,
    /// The end, without a block.
    End,
    /// The file ends too early to know.
    CutOff,
    /// Neither, after the header of a stream.
    Damaged,
    /// Not the header of a stream.
    Other,
}

impl<R: Read> Bzip2Blocks<R> {
    /// The blocks of a file; `input` reads its bytes from `start` on. Blocks that begin at `start` or later, and before
    /// `end`, are in the range.
    pub fn new(input: R, start: u64, end: u64) -> Self {
        let next =
            if start == 0 { Next::Header { offset: 0, is_first: true } } else { Next::BlockFrom(start * 8) };
        let compressed = Compressed::at(Codec::Bzip2, start, input);
        Bzip2Blocks {
            compressed,
            buffer: Vec::new(),
            base: start,
            end,
            next,
            stream_crc: None,
            failure: None,
            passed: None,
        }
    }

    /// Decodes the next block to `decoded`, replacing its contents. Returns whether it is in the range; `None` at the
    /// end of the file, and if no block is in the range.
    ///
    /// # Errors
    /// Those of the input, and those of a [`DecodeError`], after everything that can be decoded of a damaged block has
    /// been returned. The next block is then the next one in the range that can be found.
    pub fn next_block(&mut self, decoded: &mut Vec<u8>) -> io::Result<Option<bool>> {
        decoded.clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        loop {
            // After an error, only a damaged block is followed by others.
            match std::mem::replace(&mut self.next, Next::End) {
                Next::Header { offset, is_first } => self.next = self.enter(offset, is_first)?,
                Next::BlockFrom(bit) => self.next = self.find_block(bit)?,
                Next::Block(bit) => {
                    self.next = Next::BlockFrom(bit + SIGNATURE_BITS as u64);
                    self.next = self.decode(bit, decoded)?;
                    return Ok(Some(bit < self.end.saturating_mul(8)));
                }
                Next::StreamEnd(bit) => self.next = self.leave(bit)?,
                Next::End => return Ok(None),
            }
        }
    }

    /// The first damage between blocks that was skipped, an error with a [`DecodeError`]. To be called after the last
    /// block.
    pub fn passed_over(&mut self) -> Option<io::Error> {
        self.passed.take()
    }

    /// Reads the header of a stream at an offset.
    fn enter(&mut self, offset: u64, is_first: bool) -> io::Result<Next> {
        self.forget_before(offset);
        let at = self.index(offset * 8) / 8;
        while self.buffer.len() < at + HEAD && self.more()? {}
        let head = &self.buffer[at..self.buffer.len().min(at + HEAD)];
        self.stream_crc = Some(0);
        let signature = (offset + HEADER as u64) * 8;
        match Head::of(head) {
            _ if head.is_empty() => Ok(Next::End),
            Head::Block => Ok(Next::Block(signature)),
            Head::End => Ok(Next::StreamEnd(signature)),
            Head::CutOff => Err(self.compressed.truncated()),
            Head::Other if is_first => self.pass_to_block(offset, Some("not bzip2")),
            Head::Damaged => self.pass_to_block(offset, Some("a stream has neither a block nor an end")),
            Head::Other => self.pass_to_block(offset, None),
        }
    }

    /// Skips bytes that are not the beginning of a stream, to the next block. They count as damaged if they look like
    /// one (`reason`), or if a block follows.
    fn pass_to_block(&mut self, offset: u64, reason: Option<&str>) -> io::Result<Next> {
        let found = self.find(offset * 8, u64::MAX, false)?;
        if let Some(reason) = reason.or(found.map(|_| "a block after the end of a stream")) {
            self.passed.get_or_insert(DecodeError::passed_over(Codec::Bzip2, offset, reason));
            self.stream_crc = None;
        }
        Ok(match found {
            Some(Found::Block(bit)) => Next::Block(bit),
            _ => Next::End,
        })
    }

    /// The first block in the range that begins at a bit or later.
    fn find_block(&mut self, from: u64) -> io::Result<Next> {
        match self.find(from, self.end.saturating_mul(8), false)? {
            Some(Found::Block(bit)) => Ok(Next::Block(bit)),
            _ => Ok(Next::End),
        }
    }

    /// Skips the end of a stream, which begins at this bit.
    fn leave(&mut self, bit: u64) -> io::Result<Next> {
        let offset = (bit + (SIGNATURE_BITS + CRC_BITS) as u64).div_ceil(8);
        while self.base + (self.buffer.len() as u64) < offset {
            if !self.more()? {
                return Err(self.compressed.truncated());
            }
        }
        let crc = self.bits(self.index(bit) + SIGNATURE_BITS, CRC_BITS);
        if self.stream_crc.is_some_and(|expected| expected != crc) {
            let reason = "checksum mismatch in a stream";
            self.passed.get_or_insert(DecodeError::passed_over(Codec::Bzip2, offset, reason));
        }
        Ok(Next::Header { offset, is_first: false })
    }

    /// Decodes the block that begins at a bit. Returns the next thing to read.
    fn decode(&mut self, bit: u64, decoded: &mut Vec<u8>) -> io::Result<Next> {
        self.forget_before(bit / 8);
        let mut from = bit + SIGNATURE_BITS as u64;
        let limit = bit + LONGEST_BLOCK * 8;
        let (mut failure, mut unchecked) = (None, Vec::new());
        for _ in 0..MOST_ENDS {
            let Some(found) = self.find(from, limit, true)? else { break };
            let (Found::Block(end) | Found::StreamEnd(end)) = found;
            match self.decode_to(bit, end, decoded) {
                Ok(()) => {
                    let crc = self.bits(self.index(bit) + SIGNATURE_BITS, CRC_BITS);
                    self.stream_crc = self.stream_crc.map(|stream| stream.rotate_left(1) ^ crc);
                    return Ok(match found {
                        Found::Block(next) => Next::Block(next),
                        Found::StreamEnd(end) => Next::StreamEnd(end),
                    });
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    // The library compares checksums after it has decoded all of a block.
                    if unchecked.is_empty() {
                        std::mem::swap(&mut unchecked, decoded);
                    }
                }
            }
            from = end + 1;
        }
        self.stream_crc = None;
        *decoded = unchecked;
        let end_of_file = self.base + self.buffer.len() as u64;
        let is_cut_off = end_of_file < limit / 8;
        if is_cut_off && decoded.is_empty() {
            // The library returns a complete block, and then fails at the bytes that should have followed it.
            _ = self.decode_to(bit, end_of_file * 8, decoded);
        }
        let failure = match failure {
            Some(failure) => failure,
            None if is_cut_off => self.compressed.truncated(),
            None => invalid(bit / 8, "a block without an end"),
        };
        if decoded.is_empty() {
            return Err(failure);
        }
        self.failure = Some(failure);
        Ok(Next::BlockFrom(bit + SIGNATURE_BITS as u64))
    }

    /// Decodes the block between two bits.
    fn decode_to(&self, start: u64, end: u64, decoded: &mut Vec<u8>) -> io::Result<()> {
        let stream = self.as_stream(self.index(start), self.index(end));
        let mut library = Decompress::new(false);
        decoded.clear();
        loop {
            decoded.reserve(GROWTH);
            let before = (library.total_in(), library.total_out());
            let status = library.decompress_vec(&stream[before.0 as usize..], decoded);
            match status {
                Ok(Status::StreamEnd) if library.total_in() == stream.len() as u64 => return Ok(()),
                Ok(Status::MemNeeded) => return Err(io::ErrorKind::OutOfMemory.into()),
                Ok(Status::StreamEnd) => return Err(invalid(start / 8, "a block ends too early")),
                Ok(_) if (library.total_in(), library.total_out()) == before => {
                    return Err(invalid(start / 8, "a block without an end"));
                }
                Ok(_) => {}
                Err(error) => return Err(invalid(start / 8, reason(&error))),
            }
        }
    }

    /// A stream of the block between two bits of the buffer.
    fn as_stream(&self, start: usize, end: usize) -> Vec<u8> {
        let crc = self.bits(start + SIGNATURE_BITS, CRC_BITS);
        let bits = end - start;
        let mut out = Vec::with_capacity(HEADER + bits / 8 + 16);
        out.extend_from_slice(b"BZh9");
        let (whole, shift) = (&self.buffer[start / 8..], start % 8);
        out.extend((0..bits / 8).map(|i| match shift {
            0 => whole[i],
            _ => whole[i] << shift | whole[i + 1] >> (8 - shift),
        }));
        // Some bits are left, to which the end is appended.
        let left = bits % 8;
        let first = u128::from(self.bits(end - left, left));
        let length = left + SIGNATURE_BITS + CRC_BITS;
        let last = (first << SIGNATURE_BITS | u128::from(STREAM_END)) << CRC_BITS | u128::from(crc);
        out.extend_from_slice(&(last << (128 - length)).to_be_bytes()[..length.div_ceil(8)]);
        out
    }

    /// At most 32 bits of the buffer, which must have them.
    fn bits(&self, from: usize, count: usize) -> u32 {
        let mut bytes = [0; 8];
        let first = from / 8;
        let there = &self.buffer[first..self.buffer.len().min(first + 8)];
        bytes[..there.len()].copy_from_slice(there);
        let bits = u64::from_be_bytes(bytes) << (from % 8);
        if count == 0 { 0 } else { (bits >> (64 - count)) as u32 }
    }

    /// The first signature that begins at `from` or a later bit, and before `limit`: of a block, or also of an end, for
    /// which all bytes are kept.
    fn find(&mut self, from: u64, limit: u64, or_end: bool) -> io::Result<Option<Found>> {
        let mut next = (from / 8 - self.base) as usize;
        let (mut bits, mut known) = (0_u64, 0);
        loop {
            for &byte in &self.buffer[next.min(self.buffer.len())..] {
                bits = bits << 8 | u64::from(byte);
                next += 1;
                known = (known + 8).min(u64::BITS as usize);
                for shift in (0..=(known.saturating_sub(SIGNATURE_BITS)).min(7)).rev() {
                    let Some(kind) = signature(bits >> shift, or_end) else { continue };
                    let begin = (self.base + next as u64) * 8 - (shift + SIGNATURE_BITS) as u64;
                    if begin >= from {
                        return Ok((begin < limit).then(|| kind(begin)));
                    }
                }
                if (self.base + next as u64) * 8 >= limit.saturating_add(u64::BITS.into()) {
                    return Ok(None);
                }
            }
            if !or_end {
                // Another signature may have begun.
                let kept = next.saturating_sub(size_of_val(&bits));
                self.forget_before(self.base + kept as u64);
                next -= kept;
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// The position in the buffer of a bit of the file.
    fn index(&self, bit: u64) -> usize {
        (bit - self.base * 8) as usize
    }

    fn forget_before(&mut self, offset: u64) {
        let count = (offset - self.base) as usize;
        self.buffer.drain(..count.min(self.buffer.len()));
        self.base = offset;
    }

    /// Reads more bytes; returns whether there are any.
    fn more(&mut self) -> io::Result<bool> {
        let before = self.buffer.len();
        while self.buffer.len() < before + PORTION {
            let next = self.compressed.peek()?;
            if next.is_empty() {
                break;
            }
            self.buffer.extend_from_slice(next);
            let count = next.len();
            self.compressed.consume(count);
        }
        Ok(self.buffer.len() > before)
    }
}

/// The signature that the last bits are, if any.
fn signature(bits: u64, or_end: bool) -> Option<fn(u64) -> Found> {
    match bits & ((1 << SIGNATURE_BITS) - 1) {
        BLOCK => Some(Found::Block),
        STREAM_END if or_end => Some(Found::StreamEnd),
        _ => None,
    }
}

fn invalid(offset: u64, reason: &str) -> io::Error {
    DecodeError::invalid(Codec::Bzip2, offset, reason)
}

impl Head {
    /// Of at most [`HEAD`] bytes, fewer only at the end of the file.
    fn of(bytes: &[u8]) -> Head {
        let expected = |level: u8, signature: u64| {
            let mut head = [0; HEAD];
            head[..3].copy_from_slice(MAGIC);
            head[3] = level;
            head[4..].copy_from_slice(&signature.to_be_bytes()[2..]);
            head
        };
        let level = match bytes.get(3) {
            Some(level @ b'1'..=b'9') => *level,
            Some(_) => return Head::Other,
            None => b'9',
        };
        let (block, end) = (expected(level, BLOCK), expected(level, STREAM_END));
        if bytes == block {
            Head::Block
        } else if bytes == end {
            Head::End
        } else if block.starts_with(bytes) || end.starts_with(bytes) {
            Head::CutOff
        } else if block.starts_with(&bytes[..bytes.len().min(HEADER)]) {
            Head::Damaged
        } else {
            Head::Other
        }
    }
}

fn reason(error: &bzip2::Error) -> &'static str {
    match error {
        bzip2::Error::Data => "invalid data, or a checksum mismatch",
        bzip2::Error::DataMagic => "not bzip2",
        _ => "a decoder error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::decode;

    const EMPTY: &[u8; 14] = b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0";
    /// The two bytes "x" and LF.
    const X: [u8; 39] = *b"BZh91AY&SY+>\xcf\x7f\x00\x00\x00\xc0\x80\x00\x10\x00@\x20\x00!\x00\x82\xb1w$S\x85\x09\x02\xb3\xec\xf7\xf0";

    #[test]
    fn streams_follow_each_other() {
        let file = [&EMPTY[..], &X, EMPTY, EMPTY, &X].concat();
        assert_eq!(decode(Codec::Bzip2, &file).as_deref(), Ok(&b"x\nx\n"[..]));
    }

    /// As by the `bzip2` command, and by Hadoop.
    #[test]
    fn what_follows_the_last_stream_is_passed_over() {
        for rest in [&b"some text"[..], b"\0", &[0; 1000], &[0xff; 300_000], b"BZip"] {
            let decoded = decode(Codec::Bzip2, &[&X[..], rest].concat());
            assert_eq!(decoded.as_deref(), Ok(&b"x\n"[..]), "{} bytes", rest.len());
        }
    }

    #[test]
    fn damaged_streams() {
        let with = |at: usize| [&X[..at], &[!X[at]], &X[at + 1..]].concat();
        for (file, reason) in [
            (b"some text".to_vec(), "not bzip2"),
            (with(0), "not bzip2"),
            (with(5), "a stream has neither a block nor an end"),
            ([X.to_vec(), with(5)].concat(), "a stream has neither a block nor an end"),
            (with(12), "invalid data, or a checksum mismatch"),
            (with(X.len() - 3), "checksum mismatch in a stream"),
            (X[..X.len() - 1].to_vec(), "the file ends too early"),
            ([&X[..], b"BZh"].concat(), "the file ends too early"),
            ([X.to_vec(), with(0)].concat(), "a block after the end of a stream"),
            ([&X[..], b"garbage", &X].concat(), "a block after the end of a stream"),
            ([&EMPTY[..13], &[1]].concat(), "checksum mismatch in a stream"),
        ] {
            assert_eq!(decode(Codec::Bzip2, &file).expect_err("damaged").reason, reason, "{file:x?}");
        }
    }

    /// As in Hadoop, which ignores this damage. In the first two files, the signature of the end is cut off, or wrong.
    #[test]
    fn blocks_before_and_after_damage_are_returned() {
        let with = |at: usize| [&X[..at], &[!X[at]], &X[at + 1..]].concat();
        for (file, text) in [
            (X[..X.len() - 5].to_vec(), "x\n"),
            (with(X.len() - 8), "x\n"),
            ([&with(X.len() - 3)[..], &X].concat(), "x\nx\n"),
            ([&X[..], &with(0), &X].concat(), "x\nx\nx\n"),
            ([&X[..], &with(5), &X].concat(), "x\nx\n"),
            ([&X[..], &[0; 512], &X].concat(), "x\nx\n"),
            ([&X[..], b"garbage", &X].concat(), "x\nx\n"),
        ] {
            let mut decoded = Vec::new();
            Bzip2Reader::new(&file[..]).read_to_end(&mut decoded).expect_err("damaged");
            assert_eq!(String::from_utf8_lossy(&decoded), text, "{file:x?}");
        }
    }

    #[test]
    fn blocks_end_whatever_is_wrong() {
        let file = [&X[..], &X, &X].concat();
        let cut = (0..file.len()).map(|end| file[..end].to_vec());
        let damaged = (0..file.len()).map(|at| [&file[..at], &[!file[at]], &file[at + 1..]].concat());
        for file in cut.chain(damaged) {
            let mut blocks = Bzip2Blocks::new(&file[..], 0, u64::MAX);
            let mut results = std::iter::from_fn(|| blocks.next_block(&mut Vec::new()).transpose());
            assert!(results.by_ref().take(7).count() < 7, "{file:x?}");
        }
    }

    #[test]
    fn beginnings_of_streams() {
        for (bytes, head) in [
            (&b"BZh91AY&SY"[..], Head::Block),
            (b"BZh1\x17\x72\x45\x38\x50\x90", Head::End),
            (b"BZh01AY&SY", Head::Other),
            (b"BZh91AY&SX", Head::Damaged),
            (b"BZh9 x", Head::Damaged),
            (b"BZh91AY&S", Head::CutOff),
            (b"BZ", Head::CutOff),
            (b"BZip", Head::Other),
            (b"\0", Head::Other),
        ] {
            assert_eq!(Head::of(bytes), head, "{bytes:?}");
        }
    }

    #[test]
    fn a_signature_is_found_at_any_bit() {
        for shift in 0..8 {
            let bytes = (u128::from(BLOCK) << shift << 24).to_be_bytes();
            for start in [0, 9, 10] {
                let mut blocks = Bzip2Blocks::new(&bytes[start..], start as u64, u64::MAX);
                let begin = 128 - 48 - 24 - shift;
                let expected = (begin >= 8 * start).then_some(Found::Block(begin as u64));
                assert_eq!(
                    blocks.find(8 * start as u64, u64::MAX, false).expect("memory"),
                    expected,
                    "{shift} {start}"
                );
            }
        }
    }
}
