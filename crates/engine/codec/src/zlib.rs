//! Concatenated zlib streams (RFC 1950), as Hadoop's `DefaultCodec` writes and reads them.

use std::io::{self, Read};

use zlib_rs::{Inflate, InflateError, InflateFlush, Status};

use crate::codec::Codec;
use crate::compressed::{Compressed, STEP};

const WINDOW_BITS: u8 = 15;

/// Decodes a file.
pub(crate) struct ZlibReader<R> {
    compressed: Compressed<R>,
    inflate: Inflate,
    is_inside: bool,
    /// The error after the bytes that have been returned.
    failure: Option<io::Error>,
}

impl<R: Read> ZlibReader<R> {
    pub(crate) fn new(input: R) -> Self {
        let compressed = Compressed::new(Codec::Deflate, input);
        ZlibReader { compressed, inflate: Inflate::new(true, WINDOW_BITS), is_inside: false, failure: None }
    }
}

impl<R: Read> Read for ZlibReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let room = out.len().min(STEP);
        loop {
            let next = self.compressed.peek()?;
            let is_at_end = next.is_empty();
            if !self.is_inside {
                if is_at_end {
                    return Ok(0);
                }
                self.inflate.reset(true);
                self.is_inside = true;
            }
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(next, &mut out[..room], InflateFlush::NoFlush);
            self.compressed.consume((self.inflate.total_in() - before.0) as usize);
            let written = (self.inflate.total_out() - before.1) as usize;
            match status {
                Ok(Status::StreamEnd) => self.is_inside = false,
                Ok(Status::Ok | Status::BufError) if is_at_end && written == 0 => {
                    return Err(self.compressed.truncated());
                }
                Ok(Status::Ok | Status::BufError) => {}
                Err(InflateError::NeedDict { .. }) => {
                    return Err(self.compressed.invalid("a dictionary is needed"));
                }
                Err(error) => {
                    let reason = self.inflate.error_message().unwrap_or(error.as_str());
                    let failure = self.compressed.invalid(reason);
                    if written == 0 {
                        return Err(failure);
                    }
                    self.failure = Some(failure);
                }
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::decode;

    const EMPTY: [u8; 8] = [0x78, 0x9c, 3, 0, 0, 0, 0, 1];
    const X: [u8; 9] = [0x78, 0x9c, 0xab, 0, 0, 0, 0x79, 0, 0x79];

    #[test]
    fn streams_follow_each_other() {
        let file = [&EMPTY[..], &X, &EMPTY, &EMPTY, &X].concat();
        assert_eq!(decode(Codec::Deflate, &file).as_deref(), Ok(&b"xx"[..]));
    }

    #[test]
    fn damaged_streams() {
        for (file, reason) in [
            (X[..8].to_vec(), "the file ends too early"),
            ([&X[..], &[0]].concat(), "the file ends too early"),
            ([&X[..], &[0; 10]].concat(), "unknown compression method"),
            ([&X[..], b"text"].concat(), "incorrect header check"),
            ([&X[..8], &[0]].concat(), "incorrect data check"),
            ([&[0x78, 0xbb, 0, 0, 0, 1], &X[2..]].concat(), "a dictionary is needed"),
        ] {
            assert_eq!(decode(Codec::Deflate, &file).expect_err("damaged").reason, reason, "{file:x?}");
        }
    }
}
