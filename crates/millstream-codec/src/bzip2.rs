//! bzip2 streams one after the other.
//!
//! Hadoop reads the blocks of text files wherever in the file their signature is, and looks at nothing else: not at the headers of
//! streams, not at their checksums, nor at what is between them. Here streams must be whole. Only what follows the last one is
//! passed over, as by the `bzip2` command, unless it is a damaged stream or has a block that Hadoop would have read.
//!
//! ```text
//! stream:  "BZh1" to "BZh9", block…, 48 bits of signature, u32 checksum
//! block:   48 bits of signature, u32 checksum, …    not aligned to bytes
//! ```

use std::io::{self, Read};

use bzip2::{Decompress, Status};

use crate::codec::Codec;
use crate::compressed::Compressed;

const MAGIC: &[u8; 3] = b"BZh";
const BLOCK: u64 = 0x3141_5926_5359;
const STREAM_END: u64 = 0x1772_4538_5090;
const SIGNATURE_BITS: u32 = 48;
/// Bytes of a stream's header.
const HEADER: usize = 4;
/// Bytes of a stream's header and of the signature that follows it.
const HEAD: usize = 10;

/// Decodes a file.
pub(crate) struct Bzip2Reader<R> {
    compressed: Compressed<R>,
    stream: Option<Decompress>,
    /// A stream has been found.
    is_bzip2: bool,
}

/// What a stream can begin with.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    Block,
    /// The end, without a block.
    End,
    /// The file ends before that is known.
    CutOff,
    /// Neither, after the header of a stream.
    Damaged,
    /// Not the header of a stream.
    Other,
}

impl<R: Read> Bzip2Reader<R> {
    pub(crate) fn new(input: R) -> Self {
        Bzip2Reader { compressed: Compressed::new(Codec::Bzip2, input), stream: None, is_bzip2: false }
    }

    /// Begins with the next stream that has a block; `None` at the end of the file.
    fn next_stream(&mut self) -> io::Result<Option<Decompress>> {
        loop {
            let mut head = [0; HEAD];
            let length = self.compressed.up_to(&mut head)?;
            match Head::of(&head[..length]) {
                _ if length == 0 => return Ok(None),
                Head::Block => {
                    self.is_bzip2 = true;
                    let mut stream = Decompress::new(false);
                    self.decompress(&mut stream, &head, &mut [])?;
                    debug_assert_eq!(stream.total_in(), HEAD as u64);
                    return Ok(Some(stream));
                }
                // The library would allocate the memory of a block.
                Head::End => {
                    self.is_bzip2 = true;
                    if self.compressed.array()? != [0; 4] {
                        return Err(self.compressed.invalid("the checksum of an empty stream is not 0"));
                    }
                }
                Head::CutOff => return Err(self.compressed.truncated()),
                Head::Damaged => return Err(self.compressed.invalid("a stream has no block and no end")),
                Head::Other if self.is_bzip2 => return self.pass_rest(&head[..length]).map(|()| None),
                Head::Other => return Err(self.compressed.invalid("not bzip2")),
            }
        }
    }

    /// Passes over the rest of the file, which begins with `first`.
    fn pass_rest(&mut self, first: &[u8]) -> io::Result<()> {
        let mut bits = u64::MAX;
        let mut has_block = has_block(&mut bits, first);
        while !has_block {
            let next = self.compressed.peek()?;
            if next.is_empty() {
                return Ok(());
            }
            has_block = self::has_block(&mut bits, next);
            let length = next.len();
            self.compressed.consume(length);
        }
        Err(self.compressed.invalid("a block after the end of a stream"))
    }

    fn decompress(&self, stream: &mut Decompress, input: &[u8], out: &mut [u8]) -> io::Result<Status> {
        stream.decompress(input, out).map_err(|error| self.compressed.invalid(reason(&error)))
    }
}

impl<R: Read> Read for Bzip2Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stream.is_none() {
                self.stream = self.next_stream()?;
            }
            let Some(stream) = &mut self.stream else { return Ok(0) };
            let next = self.compressed.peek()?;
            let is_at_end = next.is_empty();
            let before = (stream.total_in(), stream.total_out());
            let status = stream.decompress(next, out);
            let written = (stream.total_out() - before.1) as usize;
            self.compressed.consume((stream.total_in() - before.0) as usize);
            match status {
                Ok(Status::StreamEnd) => self.stream = None,
                Ok(Status::MemNeeded) => return Err(io::ErrorKind::OutOfMemory.into()),
                Ok(_) if is_at_end && written == 0 => return Err(self.compressed.truncated()),
                Ok(_) => {}
                Err(error) => return Err(self.compressed.invalid(reason(&error))),
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
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

/// Whether the signature of a block ends in `bytes`, at any bit; `bits` are those before.
fn has_block(bits: &mut u64, bytes: &[u8]) -> bool {
    const MASK: u64 = (1 << SIGNATURE_BITS) - 1;
    bytes.iter().any(|&byte| {
        *bits = *bits << 8 | u64::from(byte);
        (0..8).any(|shift| *bits >> shift & MASK == BLOCK)
    })
}

fn reason(error: &bzip2::Error) -> &'static str {
    match error {
        bzip2::Error::Data => "invalid data, or a checksum is another one",
        bzip2::Error::DataMagic => "not bzip2",
        _ => "an error of the decoder",
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
            (with(5), "a stream has no block and no end"),
            ([X.to_vec(), with(5)].concat(), "a stream has no block and no end"),
            (with(12), "invalid data, or a checksum is another one"),
            (with(X.len() - 3), "invalid data, or a checksum is another one"),
            (X[..X.len() - 1].to_vec(), "the file ends too early"),
            ([&X[..], b"BZh"].concat(), "the file ends too early"),
            ([X.to_vec(), with(0)].concat(), "a block after the end of a stream"),
            ([&X[..], b"garbage", &X].concat(), "a block after the end of a stream"),
            ([&EMPTY[..13], &[1]].concat(), "the checksum of an empty stream is not 0"),
        ] {
            assert_eq!(decode(Codec::Bzip2, &file).expect_err("damaged").reason, reason, "{file:x?}");
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
    fn a_block_is_found_at_any_bit() {
        for shift in 0..8 {
            let bytes = (u128::from(BLOCK) << shift << 24).to_be_bytes();
            let (start, rest) = bytes.split_at(9);
            let mut bits = u64::MAX;
            assert!(has_block(&mut bits, start) | has_block(&mut bits, rest), "{shift}");
            assert!(!has_block(&mut u64::MAX.clone(), rest));
        }
    }
}
