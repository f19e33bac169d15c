//! Snappy: Hadoop's blocks, or the framing format that other tools write. The first bytes decide which.

use std::io::{self, Read};

use snap::read::FrameDecoder;

use crate::codec::Codec;
use crate::compressed::Compressed;
use crate::hadoop::{HadoopBlocks, Raw};
use crate::restart::Restart;

/// The start of the framing format: a chunk with the name of the format, 6 bytes long. As the length of a block it is
/// negative.
const FRAMED: [u8; 4] = [0xff, 6, 0, 0];

/// Decodes a file.
pub(crate) struct SnappyReader<R: Read> {
    state: State<R>,
}

enum State<R: Read> {
    Start(Compressed<R>),
    Hadoop(Compressed<R>, HadoopBlocks),
    Framed(Box<FrameDecoder<Framed<R>>>),
    /// At the end, or after an error.
    End,
}

impl<R: Read> SnappyReader<R> {
    pub(crate) fn new(input: R) -> Self {
        SnappyReader::at(0, input)
    }

    /// Decodes from Hadoop's block at an offset of the file, where `input` begins; or the whole file.
    pub(crate) fn at(offset: u64, input: R) -> Self {
        SnappyReader { state: State::Start(Compressed::at(Codec::Snappy, offset, input)) }
    }

    fn start(mut compressed: Compressed<R>) -> io::Result<State<R>> {
        let Some(field) = compressed.array_or_end()? else { return Ok(State::End) };
        if field == FRAMED {
            let framed = Framed { first: field.len(), compressed, has_failed: false };
            return Ok(State::Framed(Box::new(FrameDecoder::new(framed))));
        }
        let blocks = HadoopBlocks::new(Raw::Snappy(snap::raw::Decoder::new()), field, &compressed)?;
        Ok(State::Hadoop(compressed, blocks))
    }
}

impl<R: Read> Restart for SnappyReader<R> {
    fn offset(&self) -> u64 {
        match &self.state {
            State::Start(compressed) | State::Hadoop(compressed, _) => compressed.offset(),
            State::Framed(decoder) => decoder.get_ref().compressed.offset(),
            State::End => 0,
        }
    }

    fn restart_state(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(match &self.state {
            State::Hadoop(_, blocks) => blocks.is_between().then(Vec::new),
            State::Start(_) | State::Framed(_) | State::End => None,
        })
    }
}

impl<R: Read> Read for SnappyReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let State::Start(_) = self.state
            && let State::Start(compressed) = std::mem::replace(&mut self.state, State::End)
        {
            self.state = Self::start(compressed)?;
        }
        match &mut self.state {
            State::Start(_) | State::End => Ok(0),
            State::Hadoop(compressed, blocks) => blocks.read(compressed, out),
            State::Framed(decoder) => decoder.read(out).map_err(|error| decoder.get_ref().explain(error)),
        }
    }
}

/// The bytes from [`FRAMED`] on.
struct Framed<R> {
    /// The last bytes of [`FRAMED`], this many, have not been read.
    first: usize,
    compressed: Compressed<R>,
    /// The input has failed.
    has_failed: bool,
}

impl<R: Read> Framed<R> {
    /// An error of the decoder, or of the input, which it passes on.
    fn explain(&self, error: io::Error) -> io::Error {
        if self.has_failed {
            error
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            self.compressed.truncated()
        } else {
            self.compressed.invalid(error.to_string())
        }
    }
}

impl<R: Read> Read for Framed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.first > 0 {
            let n = out.len().min(self.first);
            out[..n].copy_from_slice(&FRAMED[FRAMED.len() - self.first..][..n]);
            self.first -= n;
            return Ok(n);
        }
        let read = self.compressed.up_to(out);
        self.has_failed = read.is_err();
        read
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use snap::write::FrameEncoder;

    use super::*;
    use crate::decoder::decode;

    fn framed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).expect("memory");
        encoder.into_inner().expect("memory")
    }

    #[test]
    fn the_framing_format_is_decoded() {
        let text = b"some text\n".repeat(20_000);
        let file = framed(&text);
        assert_eq!(decode(Codec::Snappy, &file).as_deref(), Ok(&text[..]));
        assert_eq!(decode(Codec::Snappy, &[&file[..], &file].concat()).as_deref(), Ok(&text.repeat(2)[..]));
        assert_eq!(decode(Codec::Snappy, &file[..10]).as_deref(), Ok(&b""[..]));
        let skipped = [&file[..10], &[0x80, 3, 0, 0, 1, 2, 3, 0xfe, 1, 0, 0, 0], &file[10..]].concat();
        assert_eq!(decode(Codec::Snappy, &skipped).as_deref(), Ok(&text[..]));
    }

    #[test]
    fn damage_in_the_framing_format_is_reported() {
        let file = framed(b"some text\n");
        let last = file.len() - 1;
        for (file, reason) in [
            (file[..last].to_vec(), "the file ends too early"),
            (file[..9].to_vec(), "the file ends too early"),
            ([&file[..], &[0]].concat(), "the file ends too early"),
            ([&file[..last], b"x"].concat(), "bad checksum"),
            ([&file[..], &[2, 0, 0, 0]].concat(), "unsupported chunk type"),
        ] {
            let error = decode(Codec::Snappy, &file).expect_err("damaged");
            assert!(error.reason.contains(reason), "{error} {file:x?}");
        }
    }
}
