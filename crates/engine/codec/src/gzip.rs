//! gzip files: concatenated members (RFC 1952).
//!
//! Zeros after a member are padding: tapes and some copying programs fill their last block with them, and `gzip` skips
//! them, too. Hadoop treats them as damage. Anything else there must be another member.

use std::io::{self, Read};

use crate::codec::Codec;
use crate::compressed::{Compressed, STEP};
use crate::crc::Crc32;
use crate::inflate::{Inflater, Stop};

pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];
const DEFLATE: u8 = 8;

const FHCRC: u8 = 2;
const FEXTRA: u8 = 4;
const FNAME: u8 = 8;
const FCOMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// Decodes the members of a file.
#[derive(Debug)]
pub(crate) struct GzipReader<R> {
    members: Members<R>,
    /// The error after the bytes that have been returned.
    failure: Option<io::Error>,
}

impl<R: Read> GzipReader<R> {
    pub(crate) fn new(input: R) -> Self {
        GzipReader { members: Members::new(input), failure: None }
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let room = output.len().min(STEP);
        while room > 0 && self.members.enter()? {
            let (written, stop) = self.members.inflate(&mut output[..room], false)?;
            self.members.check.add(&output[..written]);
            if stop == Stop::StreamEnd {
                match self.members.leave() {
                    Err(failure) if written > 0 => self.failure = Some(failure),
                    left => left?,
                }
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}

/// The trailer that a member must have.
#[derive(Debug, Default)]
pub(crate) struct Check {
    crc: Crc32,
    length: u64,
}

impl Check {
    /// Adds more bytes of the member.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// Adds the bytes of the member that follow these.
    pub(crate) fn append(&mut self, next: &Check) {
        self.crc.combine(&next.crc);
        self.length += next.length;
    }

    /// Why these are not the bytes that the trailer describes.
    pub(crate) fn compare(self, trailer: Trailer) -> Result<(), &'static str> {
        if trailer.crc != self.crc.value() {
            return Err("checksum mismatch");
        }
        // RFC 1952: the length modulo 2^32.
        if trailer.length != self.length as u32 {
            return Err("length mismatch");
        }
        Ok(())
    }
}

/// The contents of a trailer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trailer {
    pub(crate) crc: u32,
    /// Modulo 2³².
    pub(crate) length: u32,
    /// The offset after the trailer.
    pub(crate) offset: u64,
}

/// The deflate streams of a file's members, with headers and trailers.
#[derive(Debug)]
pub(crate) struct Members<R> {
    pub(crate) input: Compressed<R>,
    inflater: Inflater,
    is_inside: bool,
    pub(crate) check: Check,
}

impl<R: Read> Members<R> {
    pub(crate) fn new(input: R) -> Self {
        Members::at(0, input)
    }

    /// The members from the header at an offset of the file, where `input` begins.
    pub(crate) fn at(offset: u64, input: R) -> Self {
        Members {
            input: Compressed::at(Codec::Gzip, offset, input),
            inflater: Inflater::new(),
            is_inside: false,
            check: Check::default(),
        }
    }

    /// The members from the block that begins at this bit, 0 to 7, of the byte at an offset of the file, where `input`
    /// begins; `window` is decoded before it.
    ///
    /// # Errors
    /// Those of the input, and if it is empty.
    pub(crate) fn inside(offset: u64, input: R, window: &[u8], bit: u8) -> io::Result<Self> {
        let mut members = Members { is_inside: true, ..Members::at(offset, input) };
        let (bits, value) = match bit {
            0 => (0, 0),
            _ => (8 - bit, members.input.array::<1>()?[0] >> bit),
        };
        members.inflater.resume(window, bits, value);
        Ok(members)
    }

    /// Whether the next byte belongs to a member's data rather than to a header.
    pub(crate) fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// Reads the header of the next member, unless one is being read. Returns false at the end of the file.
    ///
    /// # Errors
    /// Those of the input, and if the next bytes are not a header.
    pub(crate) fn enter(&mut self) -> io::Result<bool> {
        if !self.is_inside {
            if self.input.peek()?.is_empty() || self.input.offset() > 0 && self.pass_padding()? {
                return Ok(false);
            }
            self.header()?;
            self.inflater.reset();
            (self.is_inside, self.check) = (true, Check::default());
        }
        Ok(true)
    }

    /// Decodes some bytes of a member, which the caller adds to [`Members::check`]. After the last it calls
    /// [`Members::leave`].
    ///
    /// # Errors
    /// Those of the input, and if the data is damaged or ends.
    pub(crate) fn inflate(&mut self, output: &mut [u8], stops_at_blocks: bool) -> io::Result<(usize, Stop)> {
        let input = self.input.peek()?;
        let is_at_end = input.is_empty();
        match self.inflater.inflate(input, output, stops_at_blocks) {
            Ok(step) => {
                self.input.consume(step.read);
                if is_at_end && step.written == 0 && step.stop == Stop::Inside {
                    return Err(self.input.truncated());
                }
                Ok((step.written, step.stop))
            }
            Err(reason) => Err(self.input.invalid(reason)),
        }
    }

    /// Reads a member's trailer.
    ///
    /// # Errors
    /// Those of the input, and if the member does not match the trailer.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        let trailer = self.trailer()?;
        std::mem::take(&mut self.check).compare(trailer).map_err(|reason| self.input.invalid(reason))
    }

    /// Reads the trailer of a member that has not been decoded from its beginning.
    ///
    /// # Errors
    /// Those of the input.
    pub(crate) fn pass(&mut self) -> io::Result<()> {
        self.trailer().map(drop)
    }

    /// Reads a member's trailer, which the caller checks.
    ///
    /// # Errors
    /// Those of the input.
    pub(crate) fn trailer(&mut self) -> io::Result<Trailer> {
        self.is_inside = false;
        let (crc, length) = (self.u32()?, self.u32()?);
        Ok(Trailer { crc, length, offset: self.input.offset() })
    }

    /// Skips zeros after a member. Returns whether the file ends there.
    fn pass_padding(&mut self) -> io::Result<bool> {
        loop {
            let next = self.input.peek()?;
            let is_over = next.is_empty();
            let zeros = next.iter().take_while(|byte| **byte == 0).count();
            self.input.consume(zeros);
            if zeros == 0 {
                return Ok(is_over);
            }
        }
    }

    fn header(&mut self) -> io::Result<()> {
        let mut crc = Crc32::new();
        let fixed: [u8; 10] = self.bytes(&mut crc)?;
        if fixed[..2] != MAGIC {
            return Err(self.input.invalid("not gzip"));
        }
        let flags = fixed[3];
        if fixed[2] != DEFLATE || flags & RESERVED != 0 {
            return Err(self.input.invalid("a header of an unknown type"));
        }
        if flags & FEXTRA != 0 {
            let mut extra = vec![0; u16::from_le_bytes(self.bytes(&mut crc)?).into()];
            self.input.exact(&mut extra)?;
            crc.update(&extra);
        }
        for text in [FNAME, FCOMMENT] {
            while flags & text != 0 && self.bytes(&mut crc)? != [0] {}
        }
        if flags & FHCRC != 0 {
            let expected = crc.value() as u16;
            if u16::from_le_bytes(self.bytes(&mut crc)?) != expected {
                return Err(self.input.invalid("checksum mismatch in a header"));
            }
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, crc: &mut Crc32) -> io::Result<[u8; N]> {
        let bytes = self.input.array()?;
        crc.update(&bytes);
        Ok(bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.bytes(&mut Crc32::new())?))
    }
}
