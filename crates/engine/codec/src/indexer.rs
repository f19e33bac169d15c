//! Builds the index of a file in one pass, and decodes with it.
//!
//! A chunk ends at the first point after enough bytes where a decoder can start: in gzip, at the end of a deflate block
//! or of a member; in the other formats, between frames or independent blocks. Checksums of gzip members are combined
//! from those of chunks, so the bytes are read once for both, while they are in the processor's cache.

use std::fmt;
use std::io::{self, Read};

use memchr::memchr_iter;

use crate::codec::Codec;
use crate::compressed::STEP;
use crate::crc::Crc32;
use crate::deflate::{Wrapper, deflated};
use crate::error::DecodeError;
use crate::gzip::Members;
use crate::index::{Chunk, Index, LONGEST, LONGEST_SPAN, Window};
use crate::inflate::{Stop, WINDOW};
use crate::lz4::Lz4Reader;
use crate::restart::Restart;
use crate::snappy::SnappyReader;
use crate::zstd::{ZstdReader, decode_frames};

/// Decoded bytes after which a chunk ends: enough that an index has at most a thousandth of the size of the decoded
/// file.
pub const SPACING: u64 = 8 << 20;
/// Compression of windows; higher levels take longer than decoding does.
const WINDOW_LEVEL: i32 = 1;

/// Decodes a file from its beginning, and builds its index.
pub struct Indexer<R: Read> {
    format: Format<R>,
    chunks: Chunks,
    /// The error after the bytes that have been returned.
    failure: Option<io::Error>,
}

enum Format<R: Read> {
    Gzip(Box<Gzip<R>>),
    Zstd(ZstdReader<R>),
    Lz4(Lz4Reader<R>),
    Snappy(SnappyReader<R>),
}

/// The members of a gzip file.
struct Gzip<R> {
    members: Members<R>,
    tail: Tail,
}

/// The last bytes of a gzip member, at most [`WINDOW`].
#[derive(Debug, Default)]
pub(crate) struct Tail(Vec<u8>);

impl Tail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if bytes.len() >= WINDOW {
            self.0.clear();
        } else if self.0.len() + bytes.len() > 2 * WINDOW {
            self.0.drain(..self.0.len() - WINDOW);
        }
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(WINDOW)..]);
    }

    /// Begins a member.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The window of a chunk that begins here, in its stored form.
    pub(crate) fn window(&self) -> Vec<u8> {
        let window = &self.0[self.0.len().saturating_sub(WINDOW)..];
        if window.is_empty() { Vec::new() } else { deflated(window, WINDOW_LEVEL, Wrapper::None) }
    }
}

impl<R: Read> Indexer<R> {
    /// Decodes `input`, a whole file; chunks have at least `spacing` bytes, except the last. [`SPACING`] is the usual
    /// value. `None` if files of this codec have no index ([`Codec::has_index`]).
    pub fn new(codec: Codec, input: R, spacing: u64) -> Option<Self> {
        let format = match codec {
            Codec::Gzip => {
                Format::Gzip(Box::new(Gzip { members: Members::new(input), tail: Tail::default() }))
            }
            Codec::Zstd => Format::Zstd(ZstdReader::new(input)),
            Codec::Lz4 => Format::Lz4(Lz4Reader::new(input)),
            Codec::Snappy => Format::Snappy(SnappyReader::new(input)),
            Codec::Bzip2 | Codec::Deflate => return None,
        };
        Some(Indexer { format, chunks: Chunks::new(codec, spacing), failure: None })
    }

    /// Reads to the end of the file, or until it turns out not to be splittable; returns the result of
    /// [`Indexer::finish`]. `should_continue` is called from time to time.
    ///
    /// # Errors
    /// Those of a read; and one of kind [`Interrupted`](io::ErrorKind::Interrupted) if it should not
    /// continue.
    pub fn run(mut self, mut should_continue: impl FnMut() -> bool) -> io::Result<Option<Index>> {
        let mut buffer = vec![0; STEP];
        while self.read(&mut buffer)? > 0 && !self.is_undivided() {
            if !should_continue() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(self.finish())
    }

    /// The index, after the end of the file has been read; `None` if the file is not splittable: it has a deflate
    /// block, or a frame without independent blocks, that is too long for a chunk, or too many bytes with hardly any
    /// text.
    pub fn finish(self) -> Option<Index> {
        let size = match &self.format {
            Format::Gzip(gzip) => gzip.members.input.offset(),
            Format::Zstd(reader) => reader.offset(),
            Format::Lz4(reader) => reader.offset(),
            Format::Snappy(reader) => reader.offset(),
        };
        self.chunks.finish(size)
    }

    /// Whether the part read so far shows that the file is not splittable.
    pub fn is_undivided(&self) -> bool {
        self.chunks.is_undivided
    }
}

/// The checksums of all members or frames whose last byte has been read are right.
impl<R: Read> Read for Indexer<R> {
    /// # Errors
    /// Those of the input, and those of a [`DecodeError`].
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (chunks, mut filled) = (&mut self.chunks, 0);
        let read = match &mut self.format {
            Format::Gzip(gzip) => gzip.read(output, &mut filled, chunks),
            Format::Zstd(reader) => read(reader, output, &mut filled, chunks),
            Format::Lz4(reader) => read(reader, output, &mut filled, chunks),
            Format::Snappy(reader) => read(reader, output, &mut filled, chunks),
        };
        match read {
            Err(failure) if filled > 0 => self.failure = Some(failure),
            read => read?,
        }
        Ok(filled)
    }
}

impl<R: Read> fmt::Debug for Indexer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexer").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}

/// Decodes frames or blocks. `filled` is how much of `output` has been written, also after an error.
fn read(
    reader: &mut impl Restart,
    output: &mut [u8],
    filled: &mut usize,
    chunks: &mut Chunks,
) -> io::Result<()> {
    while *filled < output.len() {
        let until = output.len().min(*filled + STEP);
        let n = reader.read(&mut output[*filled..until])?;
        if n == 0 {
            break;
        }
        chunks.add(&output[*filled..*filled + n]);
        *filled += n;
        if chunks.is_long_enough()
            && let Some(state) = reader.restart_state()?
        {
            chunks.end_chunk(reader.offset() * 8, state);
        }
    }
    Ok(())
}

impl<R: Read> Gzip<R> {
    /// As [`read`].
    fn read(&mut self, output: &mut [u8], filled: &mut usize, chunks: &mut Chunks) -> io::Result<()> {
        while *filled < output.len() {
            if !self.members.is_inside() {
                self.tail.clear();
                chunks.begin(self.position(0), Vec::new());
            }
            if !self.members.enter()? {
                break;
            }
            let until = output.len().min(*filled + STEP);
            let (written, stop) = self.members.inflate(&mut output[*filled..until], true)?;
            self.add(&output[*filled..*filled + written], chunks);
            *filled += written;
            let unused_bits = match stop {
                Stop::Inside => continue,
                Stop::BlockEnd { unused_bits } => unused_bits,
                Stop::StreamEnd => {
                    self.members.leave()?;
                    self.tail.clear();
                    0
                }
            };
            if chunks.is_long_enough() {
                chunks.end_chunk(self.position(unused_bits), self.tail.window());
            }
        }
        Ok(())
    }

    /// The bit of the file that is read next.
    fn position(&self, unused_bits: u8) -> u64 {
        self.members.input.offset() * 8 - u64::from(unused_bits)
    }

    /// Records decoded bytes, all of one member.
    fn add(&mut self, bytes: &[u8], chunks: &mut Chunks) {
        chunks.add(bytes);
        self.members.check.add(bytes);
        self.tail.add(bytes);
    }
}

/// The chunks of a file, or of a part of one, as far as it has been decoded.
#[derive(Debug)]
pub(crate) struct Chunks {
    spacing: u64,
    /// Complete chunks.
    pub(crate) index: Index,
    current: Current,
    /// Whether a chunk has become too long, decoded or as a part of the file.
    pub(crate) is_undivided: bool,
}

/// The chunk that is being decoded.
#[derive(Debug, Default)]
struct Current {
    /// The bit of the file where it begins.
    bit: u64,
    /// The data that the index keeps for a decoder that starts there.
    window: Vec<u8>,
    length: u64,
    crc: Crc32,
    lines: u64,
}

impl Chunks {
    pub(crate) fn new(codec: Codec, spacing: u64) -> Self {
        let index = Index::of_nothing(codec, 0);
        let spacing = Chunks::usable_spacing(spacing);
        Chunks { spacing, index, current: Current::default(), is_undivided: false }
    }

    /// The number of bytes with which a gzip chunk contains the whole window of the next one, and is not too long.
    pub(crate) fn usable_spacing(wanted: u64) -> u64 {
        wanted.clamp(WINDOW as u64, LONGEST / 2)
    }

    /// Adds decoded bytes to the chunk.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let current = &mut self.current;
        current.crc.update(bytes);
        current.length += bytes.len() as u64;
        current.lines += memchr_iter(b'\n', bytes).count() as u64;
        self.is_undivided |= current.length > LONGEST;
    }

    pub(crate) fn is_long_enough(&self) -> bool {
        self.current.length >= self.spacing
    }

    /// Lets the chunk begin at this bit, and need this window, if it has no bytes yet.
    pub(crate) fn begin(&mut self, bit: u64, window: Vec<u8>) {
        if self.current.length == 0 {
            (self.current.bit, self.current.window) = (bit, window);
        }
    }

    /// Ends the last chunk, if it has any bytes.
    pub(crate) fn end(&mut self, bit: u64) {
        if self.current.length > 0 {
            self.end_chunk(bit, Vec::new());
        }
    }

    /// Ends the chunk; the next one begins at this bit, and needs `window`.
    pub(crate) fn end_chunk(&mut self, bit: u64, window: Vec<u8>) {
        let next = Current { bit, window, ..Current::default() };
        let current = std::mem::replace(&mut self.current, next);
        self.is_undivided |= bit.div_ceil(8) - current.bit / 8 > LONGEST_SPAN;
        let index = &mut self.index;
        let first = index.windows.len();
        index.windows.extend(current.window);
        index.chunks.push(Chunk {
            bit: current.bit,
            start: index.length,
            window: Window::Stored(first..index.windows.len()),
            crc: current.crc.value(),
            lines: current.lines,
        });
        index.length += current.length;
        index.lines += current.lines;
        index.end = (index.length, bit);
    }

    fn finish(mut self, size: u64) -> Option<Index> {
        self.end(size * 8);
        self.index.size = size;
        // It is (nearly) one frame.
        self.is_undivided |= self.index.chunks.len() == 1 && self.index.length > 2 * self.spacing;
        // Empty members before a chunk lengthen the part of the file of the chunk before it.
        (!self.is_undivided && self.index.is_plausible()).then_some(self.index)
    }
}

/// Decodes a chunk to `decoded`, replacing its contents. `compressed` is the part of the file given by
/// [`Index::compressed`]. `before` is the end of the chunk before it, up to 32 KiB; it does not matter if
/// [`Index::has_window`].
///
/// # Errors
/// Those of a [`DecodeError`], if the bytes are not those that were indexed; then `decoded` is empty.
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
    let stored = match &entry.window {
        Window::Stored(at) => Some(&index.windows[at.clone()]),
        Window::LeftOut => None,
    };
    let damaged = || index.damaged(first);
    // It is no more than `LONGEST`.
    let length = (range.end - range.start) as usize;
    if decoded.capacity() < length {
        // Growing it would copy bytes that are not needed; with some extra, the next chunk will fit, too.
        *decoded = vec![0; length + length / 8];
    }
    decoded.resize(length, 0);
    let crc = match index.codec {
        Codec::Gzip => {
            let mut window = [0; WINDOW];
            let members = match stored {
                Some([]) => Members::at(first, compressed),
                stored => {
                    let window = match stored {
                        Some(stored) => inflated(stored, &mut window).ok_or_else(damaged)?,
                        None => before,
                    };
                    Members::inside(first, compressed, window, (entry.bit % 8) as u8)?
                }
            };
            fill_from_members(members, decoded)?
        }
        Codec::Zstd => match decode_frames(compressed, decoded) {
            true => Crc32::of(decoded),
            // The error says what is wrong, and where.
            false => fill(ZstdReader::at(first, compressed), decoded, index.codec)?,
        },
        Codec::Snappy => fill(SnappyReader::at(first, compressed), decoded, index.codec)?,
        Codec::Lz4 => {
            let reader = Lz4Reader::at(first, compressed, stored.unwrap_or_default()).ok_or_else(damaged)?;
            fill(reader, decoded, index.codec)?
        }
        Codec::Bzip2 | Codec::Deflate => return Err(damaged()),
    };
    if crc.value() != entry.crc {
        let reason = "the CRC of a chunk is not that of its index";
        return Err(DecodeError::invalid(index.codec, first, reason));
    }
    Ok(())
}

/// Fills `decoded`, and returns its checksum. The reader gets all the remaining room, so that it decodes long blocks in
/// place.
fn fill(mut reader: impl Restart, decoded: &mut [u8], codec: Codec) -> io::Result<Crc32> {
    let (mut filled, mut crc) = (0, Crc32::new());
    while filled < decoded.len() {
        let n = reader.read(&mut decoded[filled..])?;
        if n == 0 {
            return Err(DecodeError::truncated(codec, reader.offset()));
        }
        crc.update(&decoded[filled..filled + n]);
        filled += n;
    }
    Ok(crc)
}

/// As [`fill`].
fn fill_from_members(mut members: Members<&[u8]>, decoded: &mut [u8]) -> io::Result<Crc32> {
    let (mut filled, mut crc) = (0, Crc32::new());
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
    Ok(crc)
}

/// The bytes of a window that is raw deflate data; `None` if it is not.
pub(crate) fn inflated<'a>(window: &[u8], out: &'a mut [u8; WINDOW]) -> Option<&'a [u8]> {
    let mut inflate = zlib_rs::Inflate::new(false, 15);
    let status = inflate.decompress(window, out, zlib_rs::InflateFlush::Finish);
    let length = inflate.total_out() as usize;
    (status == Ok(zlib_rs::Status::StreamEnd)).then(|| &out[..length])
}

/// Treats arbitrary bytes as an index, and as a file to decode with it. They get the checksum that an index must have.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_index(bytes: &[u8]) {
    let Ok(index) = Index::decode(&[bytes, &Crc32::of(bytes).value().to_le_bytes()].concat()) else { return };
    assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(&index));
    assert!(Index::decode(&index.slice(0..index.length()).encode()).is_ok());
    for at in [0, 1, index.length() / 2, index.length(), u64::MAX] {
        index.cut(0, at);
        index.cut(at, at);
    }
    if index.is_whole() {
        let ranges: Vec<_> = (0..index.chunks()).map(|chunk| index.range(chunk)).collect();
        let end = ranges.iter().fold(0, |end, range| if range.start == end { range.end } else { u64::MAX });
        assert_eq!(end, index.length(), "its chunks cover the file");
        assert!(index.length() <= i64::MAX as u64);
    }
    for chunk in 0..index.chunks().min(3) {
        // A file with a wrong index yields no byte.
        let mut decoded = Vec::new();
        if decode_chunk(&index, chunk, bytes, &[], &mut decoded).is_err() {
            assert!(decoded.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoder, Form};

    /// A skippable frame can be of any length. A task that reads the chunk would hold it.
    #[test]
    fn a_file_of_hardly_any_text_cannot_be_divided() {
        let frame = Encoder::new(Form::Zstd, None).encode(&b"text\n".repeat(10_000)).bytes;
        for (length, is_divided) in [(1 << 20, true), (LONGEST_SPAN as u32, false)] {
            let header = [0x184d_2a50_u32.to_le_bytes(), length.to_le_bytes()].concat();
            let input = frame.chain(&header[..]).chain(io::repeat(0).take(length.into())).chain(&frame[..]);
            let index =
                Indexer::new(Codec::Zstd, input, 1).expect("an index").run(|| true).expect("well-formed");
            assert_eq!(index.is_some(), is_divided, "{length} bytes between two frames");
        }
    }

    /// Empty members belong to the chunk before them, which a task has to read.
    #[test]
    fn a_file_of_many_empty_members_cannot_be_divided() {
        let text = Encoder::new(Form::Bgzf, None).encode(&b"text\n".repeat(10_000)).bytes;
        // With an extra field, which is longer than all of an empty member.
        let header = [&b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\xff\xff"[..], &[0; 0xffff]].concat();
        let empty = [&header[..], b"\x03\0", &[0; 8]].concat();
        for (count, is_divided) in [(1, true), (LONGEST_SPAN as usize / empty.len() + 1, false)] {
            let file = [&text[..], &empty.repeat(count), &text].concat();
            let index =
                Indexer::new(Codec::Gzip, &file[..], 1).expect("an index").run(|| true).expect("well-formed");
            assert_eq!(index.is_some(), is_divided, "{count} empty members");
        }
    }

    #[test]
    fn an_indexer_stops_when_it_should() {
        let frame = Encoder::new(Form::Zstd, None).encode(b"text").bytes;
        let stopped = Indexer::new(Codec::Zstd, &frame[..], 1).expect("an index").run(|| false);
        assert_eq!(stopped.map_err(|error| error.kind()), Err(io::ErrorKind::Interrupted));
    }

    #[test]
    fn wrong_indexes_are_found() {
        let text: Vec<u8> = (0..200_000_u64)
            .flat_map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44).to_le_bytes())
            .collect();
        let gz = [
            &b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..],
            &deflated(&text, 6, Wrapper::None),
            &Crc32::of(&text).value().to_le_bytes(),
        ]
        .concat();
        let gz = [&gz[..], &(text.len() as u32).to_le_bytes()].concat();
        let mut indexer = Indexer::new(Codec::Gzip, &gz[..], 1).expect("an index");
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
