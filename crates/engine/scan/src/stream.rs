//! Compressed files that are decoded from their beginning to their end.
//!
//! Such a file has any length, so its lines come in pieces: each ends after the last separator that has been decoded,
//! and the bytes after that begin the next piece.

use std::io::{self, Read};
use std::ops::Range;

use millstream_codec::{Codec, DamageKind, DecodeError, Decoder, Index, Indexer, SPACING};
use millstream_vfs::{Errno, Error, Operation};

use crate::batch::Buffer;
use crate::divided::DividedLines;
use crate::error::Cause;
use crate::file_reader::{Ending, FileReader};
use crate::lines::Separator;
use crate::range::BYTE_ORDER_MARK;
use crate::source::SourceFile;

/// Decoded bytes of a piece, as many as a processor keeps close, unless a line is longer.
pub(crate) const PIECE: usize = 1 << 20;

/// Treatment of damaged bzip2 blocks, around which others can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Fail.
    Fail,
    /// Deliver all lines that no damage cuts, and fail at the end of the file or of its part.
    PassOver,
}

/// An open file and how far it has been decoded.
#[derive(Debug)]
pub(crate) struct Stream<F: SourceFile> {
    decoding: Decoding<F>,
    ending: Ending<F>,
    /// The beginning of a line.
    carry: Vec<u8>,
    /// Where in the decoded bytes the carry begins.
    offset: u64,
    is_at_end: bool,
    /// Why there are no more pieces, though this is not the end.
    failed: Option<Cause>,
    /// Damage after which decoding has continued: an error at the end.
    passed_over: Option<Cause>,
}

/// How far a buffer has been filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    /// With as many bytes as were asked for, or to the end of the file.
    Wanted,
    /// Up to damage: the line there is cut, and the bytes that come next belong to another one.
    ToDamage,
}

#[derive(Debug)]
enum Decoding<F: SourceFile> {
    Only(Box<Decoder<FileReader<F>>>),
    /// A part of the file.
    Divided(Box<DividedLines<FileReader<F>>>, Damage),
    /// The index is made as well.
    Indexing(Box<Indexer<FileReader<F>>>),
    /// It has been made, and the file read.
    Over,
}

impl<F: SourceFile> Stream<F> {
    /// Decodes what `reader` reads, a whole file.
    pub(crate) fn new(reader: FileReader<F>, codec: Codec) -> Self {
        let ending = reader.ending();
        Stream::of(Decoding::Only(Box::new(Decoder::new(codec, reader))), ending)
    }

    /// The lines of a part of a file, a range of its bytes, of which `reader` reads the first one next.
    pub(crate) fn divided(
        reader: FileReader<F>,
        part: Range<u64>,
        separator: &Separator,
        damage: Damage,
    ) -> Self {
        let ending = reader.ending();
        let lines = DividedLines::new(reader, part.start, part.end, separator.clone());
        // Where in the decoded bytes it begins is not known; this is 0 for the first part only.
        Stream { offset: part.start, ..Stream::of(Decoding::Divided(Box::new(lines), damage), ending) }
    }

    /// As [`Stream::new`], and makes an index; `None` if the codec has none.
    pub(crate) fn indexing(reader: FileReader<F>, codec: Codec) -> Option<Self> {
        let ending = reader.ending();
        let indexer = Indexer::new(codec, reader, SPACING)?;
        Some(Stream::of(Decoding::Indexing(Box::new(indexer)), ending))
    }

    /// The index, if it has been made, all has been read, and it has not been taken.
    pub(crate) fn take_index(&mut self) -> Option<Index> {
        match std::mem::replace(&mut self.decoding, Decoding::Over) {
            Decoding::Indexing(indexer) => indexer.finish(),
            Decoding::Only(_) | Decoding::Divided(..) | Decoding::Over => None,
        }
    }

    fn of(decoding: Decoding<F>, ending: Ending<F>) -> Self {
        Stream {
            decoding,
            ending,
            carry: Vec::new(),
            offset: 0,
            is_at_end: false,
            failed: None,
            passed_over: None,
        }
    }

    /// Where in the decoded bytes the next piece begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether there are no more pieces.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end && self.failed.is_none()
    }

    /// Adds the next piece to `buffer`. Returns where the lines in it are: all of it, but for a byte order mark. Whole
    /// lines before an error are a piece of their own, as in Hadoop, also where they were decoded from what later
    /// turned out to be damaged. So are all lines to the end, if damage before it has been passed over.
    ///
    /// # Errors
    /// Read errors, damaged data, and `EOVERFLOW` if a line does not fit in the buffer.
    pub(crate) fn next_lines(
        &mut self,
        separator: &Separator,
        buffer: &mut Buffer,
    ) -> Result<Range<usize>, Cause> {
        if let Some(cause) = self.failed.take() {
            return Err(cause);
        }
        let (start, is_first) = (buffer.len(), self.offset == 0);
        buffer.extend(&self.carry);
        self.carry.clear();
        let mut wanted = PIECE;
        let end = loop {
            let filled = self.fill(buffer, wanted);
            if self.is_at_end {
                break buffer.len();
            }
            let piece = &buffer[start..];
            match (filled, separator.last_end(piece)) {
                (Ok(Filled::Wanted), Some(end)) => {
                    self.carry.extend_from_slice(&piece[end..]);
                    break start + end;
                }
                // Searching anew costs as much as has been searched before. Not more than there is room for: the line
                // may end before that.
                (Ok(Filled::Wanted), None) => wanted = piece.len().min(Buffer::MAX - buffer.len()).max(1),
                // The line that is cut is no row.
                (Ok(Filled::ToDamage), end) => break start + end.unwrap_or(0),
                (Err(cause), Some(end)) => {
                    self.failed = Some(cause);
                    break start + end;
                }
                (Err(cause), None) => return Err(cause),
            }
        };
        buffer.truncate(end);
        self.offset += (end - start) as u64;
        let mark = is_first && buffer[start..].starts_with(BYTE_ORDER_MARK);
        Ok(start + if mark { BYTE_ORDER_MARK.len() } else { 0 }..end)
    }

    /// Adds the whole file to `buffer`.
    ///
    /// # Errors
    /// As [`Stream::next_lines`].
    pub(crate) fn append_whole(&mut self, buffer: &mut Buffer) -> Result<(), Cause> {
        while !self.is_at_end {
            self.fill(buffer, PIECE)?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Decodes up to `count` more bytes, fewer only at the end and where damage cuts a line.
    fn fill(&mut self, buffer: &mut Buffer, count: usize) -> Result<Filled, Cause> {
        let mut left = count;
        while left > 0 && !self.is_at_end {
            let free = Buffer::MAX - buffer.len();
            if free == 0 {
                return Err(Error::new(Operation::Read, Errno::OVERFLOW).into());
            }
            let room = buffer.room(left.min(free));
            let n = match &mut self.decoding {
                Decoding::Only(decoder) => decoder.read(room),
                Decoding::Divided(lines, _) => lines.read(room),
                Decoding::Indexing(indexer) => indexer.read(room),
                Decoding::Over => Ok(0),
            };
            // Where the file has become shorter, that is what is wrong, whatever the decoder makes of the rest.
            let n = match n {
                Ok(n @ 1..) => n,
                ended => {
                    self.ending.check()?;
                    match ended.map_err(cause) {
                        Ok(n) => n,
                        Err(Cause::Damaged(damage)) if damage.kind == DamageKind::PassedOver => {
                            self.passed_over.get_or_insert(Cause::Damaged(damage));
                            0
                        }
                        Err(Cause::Damaged(damage)) if self.continues_after_damage() => {
                            self.passed_over.get_or_insert(Cause::Damaged(damage));
                            return Ok(Filled::ToDamage);
                        }
                        Err(cause) => return Err(cause),
                    }
                }
            };
            buffer.fill(n);
            left -= n;
            if n == 0 {
                self.is_at_end = true;
                self.failed = self.passed_over.take();
            }
        }
        Ok(Filled::Wanted)
    }

    fn continues_after_damage(&self) -> bool {
        matches!(self.decoding, Decoding::Divided(_, Damage::PassOver))
    }
}

/// What failed: the file, or decoding.
pub(crate) fn cause(error: io::Error) -> Cause {
    match error.downcast::<DecodeError>() {
        Ok(damage) => Cause::Damaged(Box::new(damage)),
        Err(error) => error.downcast::<Error>().unwrap_or(Error::new(Operation::Read, Errno::IO)).into(),
    }
}
