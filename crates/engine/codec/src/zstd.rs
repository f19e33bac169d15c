//! Concatenated Zstandard frames, with skippable frames between them (RFC 8878).

use std::io::{self, Read};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use crate::codec::Codec;
use crate::compressed::{Compressed, STEP};
use crate::restart::Restart;

/// Frames that refer to more than 128 MiB before them are refused, as by the `zstd` command: they take as much memory.
const LONGEST_WINDOW_LOG: u32 = 27;
/// The library's error for them: ZSTD_error_frameParameter_windowTooLarge of zstd_errors.h.
const WINDOW_TOO_LARGE: usize = 16_usize.wrapping_neg();

/// Bytes of the header of a block, and of the checksum of a frame.
const BLOCK_HEADER: usize = 3;
const CHECKSUM: usize = 4;

/// Decodes a file.
///
/// The library discards the output of a call that fails. So it gets one block in a call, and the header of the next one
/// in another call: then all blocks before damage are returned.
pub(crate) struct ZstdReader<R> {
    compressed: Compressed<R>,
    context: DCtx<'static>,
    /// Bytes that the library asks for next: a block and the header of the one after it, or something shorter. 0
    /// between frames.
    wanted: usize,
}

impl<R: Read> ZstdReader<R> {
    pub(crate) fn new(input: R) -> Self {
        ZstdReader::at(0, input)
    }

    /// Decodes from the frame at an offset of the file, where `input` begins.
    pub(crate) fn at(offset: u64, input: R) -> Self {
        let mut context = DCtx::create();
        let set = context.set_parameter(DParameter::WindowLogMax(LONGEST_WINDOW_LOG));
        debug_assert!(set.is_ok(), "27 is valid");
        ZstdReader { compressed: Compressed::at(Codec::Zstd, offset, input), context, wanted: 0 }
    }

    fn is_inside(&self) -> bool {
        self.wanted > 0
    }

    /// Decodes some of the next bytes, of one frame. Returns how many bytes were written to `out`.
    fn step(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let next = self.compressed.peek()?;
        let portion = if self.wanted > BLOCK_HEADER { self.wanted - BLOCK_HEADER } else { BLOCK_HEADER };
        let (mut input, mut output) =
            (InBuffer::around(&next[..portion.min(next.len())]), OutBuffer::around(out));
        let left = self.context.decompress_stream(&mut output, &mut input);
        let (read, written) = (input.pos(), output.pos());
        self.compressed.consume(read);
        self.wanted = left.map_err(|code| self.compressed.invalid(reason(code)))?;
        Ok(written)
    }
}

impl<R: Read> Restart for ZstdReader<R> {
    fn offset(&self) -> u64 {
        self.compressed.offset()
    }

    fn restart_state(&mut self) -> io::Result<Option<Vec<u8>>> {
        // Only the checksum of the frame may be left.
        while self.is_inside() && self.wanted <= CHECKSUM {
            let before = self.offset();
            self.step(&mut [])?;
            if self.offset() == before {
                break;
            }
        }
        Ok((!self.is_inside()).then(Vec::new))
    }
}

impl<R: Read> Read for ZstdReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = out.len().min(STEP);
        loop {
            let is_at_end = self.compressed.peek()?.is_empty();
            if is_at_end && !self.is_inside() {
                return Ok(0);
            }
            let written = self.step(&mut out[..room])?;
            if written > 0 {
                return Ok(written);
            }
            if is_at_end && self.is_inside() {
                return Err(self.compressed.truncated());
            }
        }
    }
}

fn reason(code: usize) -> &'static str {
    match code {
        WINDOW_TOO_LARGE => "a frame needs more than 128 MiB of memory; zstd -d --long=31 can decompress it",
        _ => get_error_name(code),
    }
}

/// Decodes whole frames directly to `decoded`. Returns whether they are well-formed and fill it exactly.
pub(crate) fn decode_frames(frames: &[u8], decoded: &mut [u8]) -> bool {
    DCtx::create().decompress(decoded, frames) == Ok(decoded.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::decode;
    use crate::{Encoder, Form};

    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    /// A frame of one uncompressed block, without a checksum.
    const X: [u8; 10] = [MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], 0x20, 1, 0x09, 0, 0, b'x'];

    fn skippable(content: &[u8]) -> Vec<u8> {
        [&0x184d_2a53_u32.to_le_bytes()[..], &(content.len() as u32).to_le_bytes(), content].concat()
    }

    /// A frame of one empty block, with a window of 2 to this power.
    fn with_window(log: u8) -> Vec<u8> {
        [&MAGIC[..], &[0, (log - 10) << 3, 1, 0, 0]].concat()
    }

    #[test]
    fn frames_follow_each_other() {
        for (file, expected) in [
            ([&X[..], &X].concat(), &b"xx"[..]),
            ([&skippable(b"comment")[..], &X, &skippable(b"")].concat(), b"x"),
            (skippable(b"comment"), b""),
            ([with_window(27), X.to_vec()].concat(), b"x"),
        ] {
            assert_eq!(decode(Codec::Zstd, &file).as_deref(), Ok(expected), "{file:x?}");
        }
    }

    /// If the input is read in portions, the end of a frame may be read after its text.
    #[test]
    fn a_decoder_can_start_after_each_frame() {
        let frame = Encoder::new(Form::Zstd, None).encode(b"a line of text\n").bytes;
        for before in 128 * 1024 - frame.len() - 4..128 * 1024 {
            let mut file = skippable(&vec![0; before]);
            let mut expected = Vec::new();
            for _ in 0..3 {
                file.extend(&frame);
                expected.push(file.len() as u64);
            }
            let mut reader = ZstdReader::new(&file[..]);
            let (mut buffer, mut found) = ([0; 100], Vec::new());
            while reader.read(&mut buffer).expect("well-formed") > 0 {
                found.extend(reader.restart_state().expect("well-formed").map(|_| reader.offset()));
            }
            assert_eq!(found, expected, "after {before} bytes");
        }
    }

    #[test]
    fn damaged_frames() {
        for (file, reason) in [
            (X[..9].to_vec(), "the file ends too early"),
            ([&X[..], &[0x28]].concat(), "the file ends too early"),
            ([&X[..], &[0]].concat(), "Unknown frame descriptor"),
            (skippable(b"comment")[..9].to_vec(), "the file ends too early"),
            ([&X[..], b"some text"].concat(), "Unknown frame descriptor"),
            (
                with_window(28),
                "a frame needs more than 128 MiB of memory; zstd -d --long=31 can decompress it",
            ),
            ([&MAGIC[..], &[0x21, 7, 1, 0x09, 0, 0, b'x']].concat(), "Dictionary mismatch"),
        ] {
            assert_eq!(decode(Codec::Zstd, &file).expect_err("damaged").reason, reason, "{file:x?}");
        }
    }
}
