//! LZ4: frames as the `lz4` command writes them, or Hadoop's blocks. The first bytes decide which.
//!
//! Hadoop does not read frames: it takes their first bytes for the length of a truncated block, and returns nothing.
//!
//! ```text
//! frame:   magic, flags, block size, [u64 content size], [u32 dictionary], u8 checksum of these,
//!          block…, u32 0, [u32 checksum of the content]
//! block:   u32 length, whose highest bit means uncompressed; bytes, [u32 checksum of them]
//! legacy:  magic, block…                    of 8 MiB; no end mark
//! ```
//!
//! Numbers are little-endian, checksums are xxHash-32. Blocks of a frame may refer to the 64 KiB before them.

use std::io::{self, Read};

use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use xxhash_rust::xxh32::{Xxh32, xxh32};

use crate::codec::Codec;
use crate::compressed::Compressed;
use crate::hadoop::{HadoopBlocks, Raw};
use crate::pending::Pending;
use crate::restart::Restart;

const FRAME: u32 = 0x184d_2204;
const LEGACY: u32 = 0x184c_2102;
const SKIPPABLE: u32 = 0x184d_2a50;
const SKIPPABLE_MASK: u32 = 0xffff_fff0;

const VERSION_MASK: u8 = 0xc0;
const VERSION: u8 = 0x40;
const INDEPENDENT: u8 = 0x20;
const BLOCK_CHECKSUM: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const CONTENT_CHECKSUM: u8 = 0x04;
const RESERVED: u8 = 0x02;
const DICTIONARY: u8 = 0x01;

/// Flags and block size of written frames.
const WRITTEN: [u8; 2] = [VERSION | INDEPENDENT | CONTENT_SIZE | CONTENT_CHECKSUM, 0x70];
const WRITTEN_BLOCK: usize = 4 << 20;
/// Bytes of their headers.
const WRITTEN_HEADER: usize = 15;

const UNCOMPRESSED: u32 = 1 << 31;
/// Instead of the length of a block.
const FRAME_END: [u8; 4] = [0; 4];
const LEGACY_BLOCK: usize = 8 << 20;
/// Bytes that a block may refer to.
const WINDOW: usize = 64 << 10;

/// The states of [`Restart::restart_state`] that are one byte; that of an independent block of a frame is the
/// two bytes of the frame's header.
const BEFORE_HADOOP_BLOCK: u8 = 0;
const BEFORE_FRAME: u8 = 1;
const BEFORE_LEGACY_BLOCK: u8 = 2;

/// Decodes a file.
pub(crate) struct Lz4Reader<R> {
    compressed: Compressed<R>,
    format: Format,
}

enum Format {
    /// Unknown until the first bytes are read.
    Unknown,
    Frames(Box<Frames>),
    Hadoop(HadoopBlocks),
}

impl<R: Read> Lz4Reader<R> {
    pub(crate) fn new(input: R) -> Self {
        Lz4Reader { compressed: Compressed::new(Codec::Lz4, input), format: Format::Unknown }
    }

    /// Decodes from an offset of the file, where `input` begins, and where [`Restart::restart_state`] was
    /// `state`. `None` if there is no such state.
    pub(crate) fn at(offset: u64, input: R, state: &[u8]) -> Option<Self> {
        let frames = |current| Format::Frames(Box::new(Frames { current, ..Frames::default() }));
        let format = match *state {
            [] => Format::Unknown,
            [BEFORE_HADOOP_BLOCK] => Format::Hadoop(HadoopBlocks::before(Raw::Lz4)),
            [BEFORE_FRAME] => frames(Current::None),
            [BEFORE_LEGACY_BLOCK] => frames(Current::Legacy),
            [flags, sizes] => frames(Current::Frame(Frame::from_inside(flags, sizes)?)),
            _ => return None,
        };
        Some(Lz4Reader { compressed: Compressed::at(Codec::Lz4, offset, input), format })
    }
}

impl<R: Read> Restart for Lz4Reader<R> {
    fn offset(&self) -> u64 {
        self.compressed.offset()
    }

    fn restart_state(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(match &mut self.format {
            Format::Unknown => None,
            Format::Hadoop(blocks) => blocks.is_between().then(|| vec![BEFORE_HADOOP_BLOCK]),
            Format::Frames(frames) => frames.restart_state(&mut self.compressed)?,
        })
    }
}

impl<R: Read> Read for Lz4Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let compressed = &mut self.compressed;
        if let Format::Unknown = self.format {
            let Some(field) = compressed.array_or_end()? else { return Ok(0) };
            let magic = u32::from_le_bytes(field);
            self.format = if matches!(magic, FRAME | LEGACY) || magic & SKIPPABLE_MASK == SKIPPABLE {
                let mut frames = Box::<Frames>::default();
                frames.enter(magic, compressed)?;
                Format::Frames(frames)
            } else {
                Format::Hadoop(HadoopBlocks::new(Raw::Lz4, field, compressed)?)
            };
        }
        match &mut self.format {
            Format::Unknown => Ok(0),
            Format::Frames(frames) => frames.read(compressed, out),
            Format::Hadoop(blocks) => blocks.read(compressed, out),
        }
    }
}

/// Decodes frames.
#[derive(Default)]
struct Frames {
    current: Current,
    block: Vec<u8>,
    /// The last bytes of the frame, at most [`WINDOW`], if blocks may refer to them.
    window: Vec<u8>,
    pending: Pending,
}

#[derive(Default)]
enum Current {
    #[default]
    None,
    Frame(Frame),
    Legacy,
}

struct Frame {
    flags: u8,
    /// The byte of the header with the size of blocks.
    sizes: u8,
    longest_block: usize,
    content_size: Option<u64>,
    /// Bytes so far.
    length: u64,
    /// The checksum of all bytes; `None` if some were not decoded.
    checksum: Option<Xxh32>,
}

impl Frames {
    fn read<R: Read>(&mut self, compressed: &mut Compressed<R>, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.pending.take(out);
            if n > 0 {
                return Ok(n);
            }
            let n = match self.current {
                Current::Frame(_) => self.read_block(compressed, out)?,
                Current::Legacy => match compressed.array_or_end()?.map(u32::from_le_bytes) {
                    None => return Ok(0),
                    Some(length) => self.read_legacy_block(length, compressed, out)?,
                },
                Current::None => match compressed.array_or_end()?.map(u32::from_le_bytes) {
                    None => return Ok(0),
                    Some(magic) => {
                        self.enter(magic, compressed)?;
                        0
                    }
                },
            };
            if n > 0 {
                return Ok(n);
            }
        }
    }

    /// As [`Restart::restart_state`].
    fn restart_state<R: Read>(&mut self, compressed: &mut Compressed<R>) -> io::Result<Option<Vec<u8>>> {
        if !self.pending.is_empty() {
            return Ok(None);
        }
        if let Current::Frame(frame) = &self.current
            && compressed.next_is(FRAME_END)?
        {
            compressed.consume(FRAME_END.len());
            frame.check_end(compressed)?;
            self.current = Current::None;
        }
        Ok(match &self.current {
            Current::None => Some(vec![BEFORE_FRAME]),
            Current::Legacy => Some(vec![BEFORE_LEGACY_BLOCK]),
            Current::Frame(frame) if frame.flags & INDEPENDENT != 0 => Some(vec![frame.flags, frame.sizes]),
            Current::Frame(_) => None,
        })
    }

    /// Begins a frame after its magic.
    fn enter<R: Read>(&mut self, magic: u32, compressed: &mut Compressed<R>) -> io::Result<()> {
        self.current = match magic {
            FRAME => Current::Frame(Frame::read_header(compressed)?),
            LEGACY => Current::Legacy,
            _ if magic & SKIPPABLE_MASK == SKIPPABLE => {
                let length = u32::from_le_bytes(compressed.array()?);
                compressed.skip(length)?;
                Current::None
            }
            _ => return Err(compressed.invalid("not an LZ4 frame")),
        };
        self.window.clear();
        Ok(())
    }

    fn read_block<R: Read>(&mut self, compressed: &mut Compressed<R>, out: &mut [u8]) -> io::Result<usize> {
        let Current::Frame(frame) = &mut self.current else { return Ok(0) };
        let field = u32::from_le_bytes(compressed.array()?);
        if field == 0 {
            frame.check_end(compressed)?;
            self.current = Current::None;
            return Ok(0);
        }
        let length = (field & !UNCOMPRESSED) as usize;
        if length > frame.longest_block {
            return Err(compressed.invalid(format!("an invalid block length of {length} bytes")));
        }
        compressed.block(length, &mut self.block)?;
        if frame.flags & BLOCK_CHECKSUM != 0
            && u32::from_le_bytes(compressed.array()?) != xxh32(&self.block, 0)
        {
            return Err(compressed.invalid("checksum mismatch in a block"));
        }
        let (block, window) = (&self.block, &mut self.window);
        let decoded = self.pending.decode(out, frame.longest_block, |out| {
            let n = if field & UNCOMPRESSED != 0 {
                out[..length].copy_from_slice(block);
                length
            } else {
                decompress_into_with_dict(block, out, window)?
            };
            frame.add(&out[..n], window);
            Ok::<_, lz4_flex::block::DecompressError>(n)
        });
        decoded.map_err(|error| compressed.invalid(error.to_string()))
    }

    /// Reads a block after its length, or begins a frame whose magic is in its place.
    fn read_legacy_block<R: Read>(
        &mut self,
        length: u32,
        compressed: &mut Compressed<R>,
        out: &mut [u8],
    ) -> io::Result<usize> {
        let longest = lz4_flex::block::get_maximum_output_size(LEGACY_BLOCK);
        if length as usize > longest {
            return self.enter(length, compressed).map(|()| 0);
        }
        compressed.block(length as usize, &mut self.block)?;
        let decoded = self.pending.decode(out, LEGACY_BLOCK, |out| decompress_into(&self.block, out));
        decoded.map_err(|error| compressed.invalid(error.to_string()))
    }
}

impl Frame {
    fn read_header<R: Read>(compressed: &mut Compressed<R>) -> io::Result<Self> {
        let mut header = Vec::with_capacity(14);
        let [flags, sizes] = compressed.array()?;
        header.extend([flags, sizes]);
        if flags & VERSION_MASK != VERSION || flags & RESERVED != 0 {
            return Err(compressed.invalid("a frame of an unknown type"));
        }
        let Some(longest_block) = longest_block(sizes) else {
            return Err(compressed.invalid("an unknown block size"));
        };
        let mut content_size = None;
        if flags & CONTENT_SIZE != 0 {
            let field = compressed.array()?;
            header.extend(field);
            content_size = Some(u64::from_le_bytes(field));
        }
        if flags & DICTIONARY != 0 {
            return Err(compressed.invalid("a dictionary is needed"));
        }
        let [checksum] = compressed.array()?;
        if checksum != (xxh32(&header, 0) >> 8) as u8 {
            return Err(compressed.invalid("checksum mismatch in a header"));
        }
        Ok(Frame { flags, sizes, longest_block, content_size, length: 0, checksum: Some(Xxh32::new(0)) })
    }

    /// A frame of independent blocks, some of which are not decoded.
    fn from_inside(flags: u8, sizes: u8) -> Option<Self> {
        let longest_block = longest_block(sizes)?;
        let frame = Frame { flags, sizes, longest_block, content_size: None, length: 0, checksum: None };
        (flags & INDEPENDENT != 0).then_some(frame)
    }

    /// Records a decoded block.
    fn add(&mut self, decoded: &[u8], window: &mut Vec<u8>) {
        self.length += decoded.len() as u64;
        if self.flags & CONTENT_CHECKSUM != 0
            && let Some(checksum) = &mut self.checksum
        {
            checksum.update(decoded);
        }
        if self.flags & INDEPENDENT == 0 {
            let kept = window.len().min(WINDOW.saturating_sub(decoded.len()));
            window.drain(..window.len() - kept);
            window.extend_from_slice(&decoded[decoded.len().saturating_sub(WINDOW)..]);
        }
    }

    /// Checks a frame after its last block.
    fn check_end<R: Read>(&self, compressed: &mut Compressed<R>) -> io::Result<()> {
        if self.content_size.is_some_and(|size| size != self.length) {
            return Err(compressed.invalid("length mismatch in a frame"));
        }
        if self.flags & CONTENT_CHECKSUM != 0 {
            let expected = u32::from_le_bytes(compressed.array()?);
            if self.checksum.as_ref().is_some_and(|checksum| checksum.digest() != expected) {
                return Err(compressed.invalid("checksum mismatch in a frame"));
            }
        }
        Ok(())
    }
}

/// Decoded bytes of the longest block of a frame with this header.
fn longest_block(sizes: u8) -> Option<usize> {
    match sizes {
        0x40 => Some(64 << 10),
        0x50 => Some(256 << 10),
        0x60 => Some(1 << 20),
        0x70 => Some(4 << 20),
        _ => None,
    }
}

/// Whether a file of `size` bytes consists of frames as [`encode_frame`] writes them, each with a limited number
/// of bytes of text. Their headers and the lengths of their blocks are read.
pub(crate) fn has_small_frames(
    size: u64,
    most: u64,
    mut read: impl FnMut(u64, usize) -> io::Result<Vec<u8>>,
) -> io::Result<bool> {
    let begin = [&FRAME.to_le_bytes()[..], &WRITTEN].concat();
    let mut at = 0;
    while at < size {
        let header = read(at, WRITTEN_HEADER)?;
        let text = header.strip_prefix(&begin[..]).and_then(<[u8]>::first_chunk).copied();
        let Some(text) = text.map(u64::from_le_bytes).filter(|text| *text <= most) else { return Ok(false) };
        at += WRITTEN_HEADER as u64;
        for _ in 0..text.div_ceil(WRITTEN_BLOCK as u64) {
            let Ok(field) = read(at, 4)?.try_into() else { return Ok(false) };
            at += 4 + u64::from(u32::from_le_bytes(field) & !UNCOMPRESSED);
        }
        if read(at, FRAME_END.len())? != FRAME_END {
            return Ok(false);
        }
        // The checksum follows.
        at += 8;
    }
    Ok(at == size && size > 0)
}

/// Compresses a text as a frame.
pub(crate) fn encode_frame(text: &[u8]) -> Vec<u8> {
    let mut frame = [&FRAME.to_le_bytes()[..], &WRITTEN, &(text.len() as u64).to_le_bytes()].concat();
    frame.push((xxh32(&frame[4..], 0) >> 8) as u8);
    for block in text.chunks(WRITTEN_BLOCK) {
        let compressed = lz4_flex::block::compress(block);
        let (field, bytes) = match compressed.len() < block.len() {
            true => (compressed.len() as u32, &compressed[..]),
            false => (block.len() as u32 | UNCOMPRESSED, block),
        };
        frame.extend(field.to_le_bytes());
        frame.extend_from_slice(bytes);
    }
    frame.extend(0_u32.to_le_bytes());
    frame.extend(xxh32(text, 0).to_le_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::decode;

    /// A frame of uncompressed blocks, with these flags in addition to the version.
    fn frame(flags: u8, blocks: &[&[u8]]) -> Vec<u8> {
        let content = blocks.concat();
        let mut frame = [&FRAME.to_le_bytes()[..], &[VERSION | flags, 0x40]].concat();
        if flags & CONTENT_SIZE != 0 {
            frame.extend((content.len() as u64).to_le_bytes());
        }
        if flags & DICTIONARY != 0 {
            frame.extend([0; 4]);
        }
        frame.push((xxh32(&frame[4..], 0) >> 8) as u8);
        for block in blocks {
            frame.extend((block.len() as u32 | UNCOMPRESSED).to_le_bytes());
            frame.extend_from_slice(block);
            if flags & BLOCK_CHECKSUM != 0 {
                frame.extend(xxh32(block, 0).to_le_bytes());
            }
        }
        frame.extend([0; 4]);
        if flags & CONTENT_CHECKSUM != 0 {
            frame.extend(xxh32(&content, 0).to_le_bytes());
        }
        frame
    }

    fn skippable(kind: u32, content: &[u8]) -> Vec<u8> {
        let (magic, length) = (SKIPPABLE + kind, content.len() as u32);
        [&magic.to_le_bytes()[..], &length.to_le_bytes(), content].concat()
    }

    const ALL: u8 = INDEPENDENT | BLOCK_CHECKSUM | CONTENT_SIZE | CONTENT_CHECKSUM;

    #[test]
    fn frames_of_all_kinds_follow_each_other() {
        let legacy = [&LEGACY.to_le_bytes()[..], &[4, 0, 0, 0, 0x30], b"abc"].concat();
        for (file, expected) in [
            (frame(0, &[b"one", b"two"]), &b"onetwo"[..]),
            (frame(ALL, &[b"one", b"two"]), b"onetwo"),
            (frame(ALL, &[]), b""),
            ([frame(ALL, &[]), frame(0, &[b"x"]), frame(ALL, &[])].concat(), b"x"),
            ([skippable(0, b"comment"), frame(0, &[b"x"]), skippable(15, b"")].concat(), b"x"),
            (skippable(3, b""), b""),
            (legacy.clone(), b"abc"),
            ([&legacy[..], &legacy, &frame(0, &[b"x"]), &legacy].concat(), b"abcabcxabc"),
            (LEGACY.to_le_bytes().to_vec(), b""),
        ] {
            assert_eq!(decode(Codec::Lz4, &file).as_deref(), Ok(expected), "{file:x?}");
        }
    }

    #[test]
    fn a_block_may_refer_to_those_before_it() {
        // Six bytes from six before, and a last literal.
        let block = [0x02, 6, 0, 0x10, b'!'];
        for (flags, expected) in [(0, Some(&b"abcdefabcdef!"[..])), (INDEPENDENT, None)] {
            let mut file = frame(flags, &[b"abc", b"def"]);
            file.truncate(file.len() - 4);
            file.extend((block.len() as u32).to_le_bytes());
            file.extend(block);
            file.extend([0; 4]);
            assert_eq!(decode(Codec::Lz4, &file).ok().as_deref(), expected);
        }
    }

    #[test]
    fn damaged_frames() {
        let good = frame(ALL, &[b"content"]);
        let with = |at: usize, value: u8| [&good[..at], &[value], &good[at + 1..]].concat();
        let block = good.len() - 23;
        for (file, reason) in [
            (with(4, 0x80), "a frame of an unknown type"),
            (with(4, good[4] | RESERVED), "a frame of an unknown type"),
            (with(5, 0x30), "an unknown block size"),
            (with(5, 0x41), "an unknown block size"),
            (with(6, good[6] ^ 1), "checksum mismatch in a header"),
            (frame(DICTIONARY, &[b"x"]), "a dictionary is needed"),
            (with(block + 4, b'C'), "checksum mismatch in a block"),
            (with(block + 2, 2), "an invalid block length of 131079 bytes"),
            (with(good.len() - 1, !good[good.len() - 1]), "checksum mismatch in a frame"),
            ([&good[..], b"garbage"].concat(), "not an LZ4 frame"),
            ([&good[..], &[0; 100]].concat(), "not an LZ4 frame"),
            ([&good[..], &[0]].concat(), "the file ends too early"),
            (skippable(0, b"")[..6].to_vec(), "the file ends too early"),
            ([&SKIPPABLE.to_le_bytes()[..], &[0xff; 100]].concat(), "the file ends too early"),
        ] {
            assert_eq!(decode(Codec::Lz4, &file).expect_err("damaged").reason, reason, "{file:x?}");
        }
        let mut short = frame(CONTENT_SIZE, &[b"content"]);
        short.splice(short.len() - 15..short.len() - 4, []);
        assert_eq!(decode(Codec::Lz4, &short).expect_err("short").reason, "length mismatch in a frame");
    }
}
