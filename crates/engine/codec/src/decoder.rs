//! Decodes a whole file of any codec.

use std::fmt;
use std::io::{self, Read};

use crate::bzip2::Bzip2Reader;
use crate::codec::Codec;
use crate::gzip::GzipReader;
use crate::lz4::Lz4Reader;
use crate::snappy::SnappyReader;
use crate::zlib::ZlibReader;
use crate::zstd::ZstdReader;

/// Reads the decoded bytes of a compressed file: those of all its members, streams or frames. An empty file decodes to
/// no bytes.
///
/// A truncated or damaged file is an error, as far as the format allows detecting it: all checksums are checked.
/// Memory is bounded, whatever the file claims.
pub struct Decoder<R: Read> {
    format: Format<R>,
    has_failed: bool,
}

enum Format<R: Read> {
    Gzip(GzipReader<R>),
    Bzip2(Bzip2Reader<R>),
    Zstd(ZstdReader<R>),
    Lz4(Lz4Reader<R>),
    Snappy(SnappyReader<R>),
    Zlib(ZlibReader<R>),
}

impl<R: Read> Decoder<R> {
    /// Decodes `input`, which need not be buffered.
    pub fn new(codec: Codec, input: R) -> Self {
        let format = match codec {
            Codec::Gzip => Format::Gzip(GzipReader::new(input)),
            Codec::Bzip2 => Format::Bzip2(Bzip2Reader::new(input)),
            Codec::Zstd => Format::Zstd(ZstdReader::new(input)),
            Codec::Lz4 => Format::Lz4(Lz4Reader::new(input)),
            Codec::Snappy => Format::Snappy(SnappyReader::new(input)),
            Codec::Deflate => Format::Zlib(ZlibReader::new(input)),
        };
        Decoder { format, has_failed: false }
    }
}

impl<R: Read> Read for Decoder<R> {
    /// # Errors
    /// Those of the input, and a [`DecodeError`](crate::DecodeError) in an error of kind `InvalidData` or
    /// `UnexpectedEof`. Nothing can be read after an error.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if self.has_failed {
            return Err(io::Error::other("an earlier read has failed"));
        }
        let read = match &mut self.format {
            Format::Gzip(reader) => reader.read(out),
            Format::Bzip2(reader) => reader.read(out),
            Format::Zstd(reader) => reader.read(out),
            Format::Lz4(reader) => reader.read(out),
            Format::Snappy(reader) => reader.read(out),
            Format::Zlib(reader) => reader.read(out),
        };
        self.has_failed = read.is_err();
        read
    }
}

impl<R: Read> fmt::Debug for Decoder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("has_failed", &self.has_failed).finish_non_exhaustive()
    }
}

/// Decodes arbitrary bytes. The first selects the codec; at most 64 MiB are decoded from the rest.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_decoder(bytes: &[u8]) {
    let [first, rest @ ..] = bytes else { return };
    let Some(codec) = Codec::from_code(first % 6 + 1) else { return };
    let mut decoder = Decoder::new(codec, rest);
    let (mut buffer, mut decoded) = (vec![0; 1 << 16], 0);
    while decoded < 64 << 20 {
        match decoder.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => decoded += n,
            Err(error) => {
                let kind = error.kind();
                let is_damage = error.downcast::<crate::DecodeError>().is_ok();
                assert!(
                    is_damage && matches!(kind, io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
                );
                assert!(decoder.read(&mut buffer).is_err());
                return;
            }
        }
    }
}

/// The decoded bytes of a file, for tests; an error must be a [`DecodeError`](crate::DecodeError).
#[cfg(test)]
pub(crate) fn decode(codec: Codec, file: &[u8]) -> Result<Vec<u8>, crate::DecodeError> {
    let mut decoded = Vec::new();
    match Decoder::new(codec, file).read_to_end(&mut decoded) {
        Ok(_) => Ok(decoded),
        Err(error) => Err(error.downcast().expect("a DecodeError")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoder, Form};

    const SAMPLES: [(Codec, &str); 5] = [
        (Codec::Gzip, "hadoop-gz.hex"),
        (Codec::Bzip2, "hadoop-bz2.hex"),
        (Codec::Lz4, "hadoop-lz4.hex"),
        (Codec::Snappy, "hadoop-snappy.hex"),
        (Codec::Deflate, "hadoop-deflate.hex"),
    ];

    #[test]
    fn files_that_hadoop_wrote() {
        let lines: Vec<_> = (0..40).map(|n| format!("{} a line of text\n", n % 3)).collect();
        for (codec, name) in SAMPLES {
            let decoded = decode(codec, &millstream_wire::vector(name));
            assert_eq!(decoded.as_deref(), Ok(lines.concat().as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_file_of_no_bytes_has_no_bytes() {
        for code in 1..=6 {
            let codec = Codec::from_code(code).expect("a codec");
            assert_eq!(decode(codec, b"").as_deref(), Ok(&b""[..]), "{codec:?}");
        }
    }

    /// In some of these, Hadoop finds neither a row nor an error.
    #[test]
    fn a_file_of_another_format_is_an_error() {
        let files = [&b"plain text\nof two lines\n"[..], b"%PDF-1.4 \x01\x02\x03\x04", b"\xfd7zXZ\0\0\0\0\0"];
        for code in 1..=6 {
            let codec = Codec::from_code(code).expect("a codec");
            for file in files {
                assert!(decode(codec, file).is_err(), "{codec:?} {file:?}");
            }
        }
    }

    #[test]
    fn damage_is_reported_with_its_offset() {
        let mut file = millstream_wire::vector("hadoop-deflate.hex");
        let length = file.len() as u64;
        let truncated = decode(Codec::Deflate, &file[..20]).expect_err("cut off");
        assert_eq!(truncated.to_string(), "damaged deflate data at byte 20: the file ends too early");
        file.extend_from_slice(b"garbage");
        let garbage = decode(Codec::Deflate, &file).expect_err("garbage");
        assert_eq!((garbage.codec, garbage.reason.as_str()), (Codec::Deflate, "incorrect header check"));
        assert!((length..=length + 2).contains(&garbage.offset), "{garbage}");
    }

    /// Each of the first 15 bytes of the samples takes each value, each other byte every fifth.
    #[test]
    fn damaged_files_never_panic() {
        let zstd =
            (Codec::Zstd, Encoder::new(Form::Zstd, None).encode(&b"a line of text\n".repeat(40)).bytes);
        let samples = SAMPLES.map(|(codec, name)| (codec, millstream_wire::vector(name)));
        for (codec, file) in samples.into_iter().chain([zstd]) {
            let mut bytes = vec![codec.code() - 1];
            bytes.extend(file);
            for at in 1..bytes.len() {
                let kept = bytes[at];
                for value in (0..=255).step_by(if at < 16 { 1 } else { 5 }) {
                    bytes[at] = value;
                    fuzz_decoder(&bytes);
                }
                bytes[at] = kept;
            }
        }
    }

    #[test]
    fn decoders_can_move_to_other_threads() {
        fn check<T: Send>(_: T) {}
        check(Decoder::new(Codec::Zstd, &b""[..]));
    }
}
