//! Hadoop's blocks of LZ4 and Snappy (`BlockCompressorStream`).
//!
//! ```text
//! file:   block…
//! block:  u32 decoded length, chunk…        until the chunks have that length
//! chunk:  u32 length, raw LZ4 or Snappy     numbers are big-endian
//! ```
//!
//! There are no checksums and no signature, and Hadoop treats an end of the file anywhere as the end of the data: it
//! loses the contents of a truncated block, and everything after a block of length 0, the form of an empty file. Here a
//! truncated block is an error, and the blocks after an empty one are decoded.

use std::io::{self, Read};

use lz4_flex::block::DecompressError;

use crate::compressed::Compressed;
use crate::pending::Pending;

/// Maximum decoded bytes of a chunk. Hadoop's writer and reader have buffers of 256 KiB by default.
const LONGEST_CHUNK: usize = 64 << 20;
/// The length of chunk for which memory is allocated at first.
const USUAL_CHUNK: usize = 256 << 10;
/// Maximum decoded bytes per compressed byte.
const LZ4_RATIO: usize = 255;
const SNAPPY_RATIO: usize = 22;

/// The format of a chunk.
pub(crate) enum Raw {
    Lz4,
    Snappy(snap::raw::Decoder),
}

/// Decodes blocks.
pub(crate) struct HadoopBlocks {
    raw: Raw,
    /// Bytes of the block that have not been decoded.
    left: usize,
    chunk: Vec<u8>,
    pending: Pending,
}

/// A chunk that cannot be decoded.
enum Damage {
    TooLong,
    Invalid(String),
}

impl HadoopBlocks {
    /// Decodes blocks; the first begins with the field `length`, already read.
    pub(crate) fn new<R: Read>(raw: Raw, length: [u8; 4], compressed: &Compressed<R>) -> io::Result<Self> {
        let left = block_length(length, compressed)?;
        Ok(HadoopBlocks { left, ..HadoopBlocks::before(raw) })
    }

    /// Decodes the next blocks.
    pub(crate) fn before(raw: Raw) -> Self {
        HadoopBlocks { raw, left: 0, chunk: Vec::new(), pending: Pending::default() }
    }

    /// Whether the whole block has been returned.
    pub(crate) fn is_between(&self) -> bool {
        self.left == 0 && self.pending.is_empty()
    }

    pub(crate) fn read<R: Read>(
        &mut self,
        compressed: &mut Compressed<R>,
        out: &mut [u8],
    ) -> io::Result<usize> {
        loop {
            let n = self.pending.take(out);
            if n > 0 {
                return Ok(n);
            }
            if self.left > 0 {
                let n = self.read_chunk(compressed, out)?;
                if n > 0 {
                    return Ok(n);
                }
            } else {
                match compressed.array_or_end()? {
                    Some(length) => self.left = block_length(length, compressed)?,
                    None => return Ok(0),
                }
            }
        }
    }

    fn read_chunk<R: Read>(&mut self, compressed: &mut Compressed<R>, out: &mut [u8]) -> io::Result<usize> {
        let length = u32::from_be_bytes(compressed.array()?) as usize;
        // Incompressible data gets a few bytes longer.
        if length == 0 || length > LONGEST_CHUNK + LONGEST_CHUNK / 6 + 32 {
            return Err(compressed.invalid(format!("an invalid chunk length of {length} bytes")));
        }
        compressed.block(length, &mut self.chunk)?;
        let decoded = match &mut self.raw {
            Raw::Lz4 => lz4(&self.chunk, self.left, &mut self.pending, out),
            Raw::Snappy(decoder) => snappy(decoder, &self.chunk, self.left, &mut self.pending, out),
        };
        match decoded {
            Ok((decoded, n)) => {
                self.left -= decoded;
                Ok(n)
            }
            Err(Damage::TooLong) => Err(compressed.invalid("a chunk is longer than its block, or too long")),
            Err(Damage::Invalid(reason)) => Err(compressed.invalid(reason)),
        }
    }
}

fn block_length<R: Read>(field: [u8; 4], compressed: &Compressed<R>) -> io::Result<usize> {
    let length = i32::from_be_bytes(field);
    // Java's integers are signed.
    usize::try_from(length)
        .map_err(|_| compressed.invalid(format!("an invalid block length of {length} bytes")))
}

/// Decodes a chunk of at most `left` bytes. Returns its length, and how many bytes of it are in `out`.
fn lz4(chunk: &[u8], left: usize, pending: &mut Pending, out: &mut [u8]) -> Result<(usize, usize), Damage> {
    // The chunk does not record its decoded length, so memory grows until it suffices.
    let most = left.min(LONGEST_CHUNK).min(chunk.len() * LZ4_RATIO);
    let mut room = most.min(USUAL_CHUNK.max(out.len()));
    loop {
        let mut decoded = 0;
        let result = pending.decode(out, room, |out| {
            decoded = lz4_flex::block::decompress_into(chunk, out)?;
            Ok(decoded)
        });
        match result {
            Ok(n) => return Ok((decoded, n)),
            Err(DecompressError::OutputTooSmall { .. }) if room < most => room = most.min(2 * room),
            Err(DecompressError::OutputTooSmall { .. }) => return Err(Damage::TooLong),
            Err(error) => return Err(Damage::Invalid(error.to_string())),
        }
    }
}

/// As [`lz4`].
fn snappy(
    decoder: &mut snap::raw::Decoder,
    chunk: &[u8],
    left: usize,
    pending: &mut Pending,
    out: &mut [u8],
) -> Result<(usize, usize), Damage> {
    let invalid = |error: snap::Error| Damage::Invalid(error.to_string());
    let length = snap::raw::decompress_len(chunk).map_err(invalid)?;
    if length > left.min(LONGEST_CHUNK).min(chunk.len() * SNAPPY_RATIO) {
        return Err(Damage::TooLong);
    }
    let n = pending.decode(out, length, |out| decoder.decompress(chunk, out)).map_err(invalid)?;
    Ok((length, n))
}

#[cfg(test)]
mod tests {
    use crate::codec::Codec;
    use crate::decoder::decode;

    /// A block whose length is the sum of its chunks' lengths, or another one.
    fn block(length: u32, chunks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = length.to_be_bytes().to_vec();
        for chunk in chunks {
            bytes.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
            bytes.extend_from_slice(chunk);
        }
        bytes
    }

    /// Of less than 15 bytes.
    fn literals(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Lz4 => [&[(bytes.len() as u8) << 4], bytes].concat(),
            _ => [&[bytes.len() as u8, (bytes.len() as u8 - 1) << 2], bytes].concat(),
        }
    }

    #[test]
    fn blocks_have_any_number_of_chunks() {
        for codec in [Codec::Lz4, Codec::Snappy] {
            let (one, two) = (literals(codec, b"one\n"), literals(codec, b"two\n"));
            for (file, expected) in [
                (block(4, &[&one]), &b"one\n"[..]),
                (block(8, &[&one, &two]), b"one\ntwo\n"),
                ([block(4, &[&one]), block(8, &[&two, &one])].concat(), b"one\ntwo\none\n"),
                (block(0, &[]), b""),
                ([block(0, &[]), block(4, &[&two])].concat(), b"two\n"),
                ([block(4, &[&two]), block(0, &[]), block(0, &[])].concat(), b"two\n"),
            ] {
                assert_eq!(decode(codec, &file).as_deref(), Ok(expected), "{codec:?} {file:?}");
            }
        }
    }

    #[test]
    fn blocks_are_as_long_as_they_say() {
        for codec in [Codec::Lz4, Codec::Snappy] {
            let chunk = literals(codec, b"one\n");
            for (file, reason) in [
                (block(5, &[&chunk]), "the file ends too early"),
                (block(3, &[&chunk]), "a chunk is longer than its block, or too long"),
                (block(4, &[]), "the file ends too early"),
                (block(4, &[b""]), "an invalid chunk length of 0 bytes"),
                (block(u32::MAX, &[&chunk]), "an invalid block length of -1 bytes"),
                (
                    [&block(4, &[])[..], &[0x7f, 0, 0, 0, 1]].concat(),
                    "an invalid chunk length of 2130706432 bytes",
                ),
                ([&block(4, &[&chunk])[..], &[0]].concat(), "the file ends too early"),
            ] {
                let error = decode(codec, &file).expect_err("damaged");
                assert_eq!(error.reason, reason, "{codec:?} {file:?}");
            }
        }
    }

    /// A chunk that Hadoop's codecs cannot write unless their buffers are enlarged.
    #[test]
    fn long_chunks_are_decoded() {
        // A literal, and as many repetitions as it takes.
        let length: usize = 5 << 20;
        let mut chunk = vec![0x1f, b'x', 1, 0];
        let (full, rest) = ((length - 1 - 19 - 5) / 255, (length - 1 - 19 - 5) % 255);
        chunk.extend(std::iter::repeat_n(255, full));
        chunk.push(rest as u8);
        chunk.extend(b"\x50xxxxx");
        let decoded = decode(Codec::Lz4, &block(length as u32, &[&chunk])).expect("a block");
        assert!(decoded.len() == length && decoded.iter().all(|&byte| byte == b'x'));
    }
}
