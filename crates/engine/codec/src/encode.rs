//! Compresses text in splittable forms: a file is a sequence of small parts that are decoded independently.
//!
//! | form | a part | after the last part | documented by |
//! |---|---|---|---|
//! | bgzf (`.gz`) | a gzip member of up to 65,280 bytes, whose extra field `BC` tells its size | an empty member | the SAM specification, 4.1 |
//! | seekable Zstandard (`.zst`) | a frame of up to 8 MiB, with a checksum | a skippable frame with the sizes of all frames | `contrib/seekable_format` of zstd |
//! | LZ4 frames (`.lz4`) | a frame of up to 8 MiB, with its size and a checksum | nothing | the LZ4 frame format 1.6 |
//!
//! Any decoder of the codec reads them. [`Encoder::encode`] compresses a block of text to one part, in bgzf to several.
//! Blocks are independent, so threads can encode many of them concurrently.

use std::io;

use zstd_safe::{CCtx, CParameter, get_error_name};

use crate::codec::Codec;
use crate::crc::Crc32;
use crate::deflate::{Wrapper, deflated};
use crate::index::LONGEST;
use crate::lz4::{self, encode_frame};

/// Maximum bytes of text that are encoded at once.
pub const BLOCK: usize = 8 << 20;

/// Maximum bytes of text of a bgzf member, as in htslib: compressed or not, the member is shorter than 64 KiB.
const MEMBER: usize = 0xff00;
/// A member's header up to its size, which follows.
const MEMBER_HEADER: [u8; 16] = *b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0";
/// An empty member.
const BGZF_END: &[u8; 28] = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";
/// Bytes of a member that are not deflate data.
const MEMBER_AROUND: usize = 26;

const SEEK_TABLE: u32 = 0x184d_2a5e;
const SEEKABLE: [u8; 4] = 0x8f92_eab1_u32.to_le_bytes();
/// Bytes before the entries of a seek table, and after them.
const SEEK_TABLE_HEADER: u64 = 8;
const SEEK_TABLE_FOOTER: usize = 9;
/// Bits of the footer's descriptor: entries have checksums; reserved.
const ENTRY_CHECKSUMS: u8 = 0x80;
const DESCRIPTOR_RESERVED: u8 = 0x7c;
/// Entries of a seek table in one read.
const ENTRIES: u64 = 8192;

/// A splittable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// gzip.
    Bgzf,
    /// Zstandard.
    Zstd,
    /// LZ4.
    Lz4,
}

impl Form {
    /// The codec that decodes it.
    pub fn codec(self) -> Codec {
        match self {
            Form::Bgzf => Codec::Gzip,
            Form::Zstd => Codec::Zstd,
            Form::Lz4 => Codec::Lz4,
        }
    }

    /// The splittable form of a codec's files, if there is one.
    pub fn of(codec: Codec) -> Option<Form> {
        [Form::Bgzf, Form::Zstd, Form::Lz4].into_iter().find(|form| form.codec() == codec)
    }

    /// The levels of compression, of which the second is the usual one; LZ4 has none.
    pub fn levels(self) -> Option<(i32, i32, i32)> {
        match self {
            Form::Bgzf => Some((1, 6, 9)),
            Form::Zstd => Some((1, 3, 19)),
            Form::Lz4 => None,
        }
    }

    /// Whether a file of `size` bytes is in this form, judged by a few of its bytes: in bgzf the header of
    /// the first member and the last member; in Zstandard the seek table, whose frames must make up the file
    /// and have no more than 64 MiB of text each; in LZ4 the headers of all frames and the lengths of all
    /// blocks. `read` gets an offset and a number of bytes, and returns those, or fewer at the end of the
    /// file.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn is_of(
        self,
        size: u64,
        mut read: impl FnMut(u64, usize) -> io::Result<Vec<u8>>,
    ) -> io::Result<bool> {
        match self {
            Form::Bgzf => {
                let end = size.saturating_sub(BGZF_END.len() as u64);
                Ok(read(0, MEMBER_HEADER.len())? == MEMBER_HEADER && read(end, BGZF_END.len())? == BGZF_END)
            }
            Form::Zstd => has_seek_table(size, read),
            Form::Lz4 => lz4::has_small_frames(size, BLOCK as u64, read),
        }
    }
}

/// Compresses blocks of text.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    form: Form,
    level: i32,
}

/// A compressed block.
#[derive(Debug)]
pub struct Encoded {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// Bytes of text.
    text: usize,
}

impl Encoder {
    /// Compresses in a form, at one of its [`Form::levels`].
    pub fn new(form: Form, level: Option<i32>) -> Self {
        let level = form.levels().map_or(0, |(least, usual, most)| level.unwrap_or(usual).clamp(least, most));
        Encoder { form, level }
    }

    /// Compresses a block of text, of up to [`BLOCK`] bytes.
    ///
    /// # Panics
    /// If the block is larger.
    pub fn encode(&self, text: &[u8]) -> Encoded {
        assert!(text.len() <= BLOCK, "a block has 8 MiB at most");
        let bytes = match self.form {
            Form::Bgzf => text.chunks(MEMBER).flat_map(|text| member(text, self.level)).collect(),
            Form::Zstd => zstd_frame(text, self.level),
            Form::Lz4 => encode_frame(text),
        };
        Encoded { bytes, text: text.len() }
    }

    /// The bytes after the last block of a file.
    pub fn end(&self, blocks: &Sizes) -> Vec<u8> {
        match self.form {
            Form::Bgzf => BGZF_END.to_vec(),
            Form::Zstd => seek_table(&blocks.0),
            Form::Lz4 => Vec::new(),
        }
    }
}

/// The sizes of a file's blocks, which its end records.
#[derive(Debug, Default)]
pub struct Sizes(Vec<(u32, u32)>);

impl Sizes {
    /// Records the next block.
    pub fn add(&mut self, block: &Encoded) {
        // Neither is much more than `BLOCK`.
        self.0.push((block.bytes.len() as u32, block.text as u32));
    }
}

fn member(text: &[u8], level: i32) -> Vec<u8> {
    let mut out = [&MEMBER_HEADER[..], &[0; 2]].concat();
    let start = out.len();
    let compressed = deflated(text, level, Wrapper::None);
    if compressed.len() + MEMBER_AROUND > usize::from(u16::MAX) {
        stored(text, &mut out);
    } else {
        out.extend(compressed);
    }
    let size = (out.len() + MEMBER_AROUND - start - 1) as u16;
    out[start - 2..start].copy_from_slice(&size.to_le_bytes());
    out.extend(Crc32::of(text).value().to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    out
}

/// Appends stored (uncompressed) deflate data.
fn stored(text: &[u8], out: &mut Vec<u8>) {
    let length = text.len() as u16;
    out.push(1);
    out.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
    out.extend_from_slice(text);
}

fn zstd_frame(text: &[u8], level: i32) -> Vec<u8> {
    let mut context = CCtx::create();
    let mut frame = vec![0; zstd_safe::compress_bound(text.len())];
    let compressed = context
        .set_parameter(CParameter::CompressionLevel(level))
        .and_then(|_| context.set_parameter(CParameter::ChecksumFlag(true)))
        .and_then(|_| context.compress2(&mut frame[..], text));
    // The parameters are valid and there is room; only memory could run out.
    let length = compressed.unwrap_or_else(|code| panic!("zstd: {}", get_error_name(code)));
    frame.truncate(length);
    frame
}

fn seek_table(frames: &[(u32, u32)]) -> Vec<u8> {
    let length = (frames.len() * 8 + SEEK_TABLE_FOOTER) as u32;
    let mut table = [SEEK_TABLE.to_le_bytes(), length.to_le_bytes()].concat();
    table.extend(
        frames.iter().flat_map(|(compressed, text)| [compressed.to_le_bytes(), text.to_le_bytes()].concat()),
    );
    table.extend((frames.len() as u32).to_le_bytes());
    // Without checksums, which the frames have.
    table.push(0);
    table.extend(SEEKABLE);
    table
}

/// Whether a file ends with a seek table of all its frames, none of which is too long.
fn has_seek_table(size: u64, mut read: impl FnMut(u64, usize) -> io::Result<Vec<u8>>) -> io::Result<bool> {
    let entries_end = size.saturating_sub(SEEK_TABLE_FOOTER as u64);
    let footer = read(entries_end, SEEK_TABLE_FOOTER)?;
    let Some((count, [descriptor, magic @ ..])) = footer.split_first_chunk() else { return Ok(false) };
    if magic != SEEKABLE || descriptor & DESCRIPTOR_RESERVED != 0 {
        return Ok(false);
    }
    let entry: u64 = if descriptor & ENTRY_CHECKSUMS == 0 { 8 } else { 12 };
    let entries = u64::from(u32::from_le_bytes(*count)) * entry;
    let Some(frames_end) = entries_end.checked_sub(entries + SEEK_TABLE_HEADER) else { return Ok(false) };
    let length = ((entries + SEEK_TABLE_FOOTER as u64) as u32).to_le_bytes();
    if read(frames_end, SEEK_TABLE_HEADER as usize)? != [SEEK_TABLE.to_le_bytes(), length].concat() {
        return Ok(false);
    }
    let (mut at, mut frames) = (entries_end - entries, 0);
    while at < entries_end {
        let wanted = (entries_end - at).min(ENTRIES * entry) as usize;
        let read = read(at, wanted)?;
        for entry in read.chunks_exact(entry as usize) {
            let number = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| entry[at + i])));
            if number(4) > LONGEST {
                return Ok(false);
            }
            frames += number(0);
        }
        if read.len() < wanted {
            return Ok(false);
        }
        at += wanted as u64;
    }
    Ok(frames == frames_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::decode;

    const FORMS: [Form; 3] = [Form::Bgzf, Form::Zstd, Form::Lz4];

    fn file(encoder: &Encoder, blocks: &[&[u8]]) -> Vec<u8> {
        let (mut file, mut sizes) = (Vec::new(), Sizes::default());
        for block in blocks {
            let encoded = encoder.encode(block);
            sizes.add(&encoded);
            file.extend(encoded.bytes);
        }
        file.extend(encoder.end(&sizes));
        file
    }

    /// Incompressible bytes.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn is_of(form: Form, file: &[u8]) -> bool {
        let read = |offset: u64, length: usize| {
            let rest = &file[file.len().min(offset as usize)..];
            Ok(rest[..rest.len().min(length)].to_vec())
        };
        form.is_of(file.len() as u64, read).expect("memory")
    }

    #[test]
    fn blocks_are_decoded() {
        let (text, noise) = (b"some text\n".repeat(50_000), noise(200_000));
        for form in FORMS {
            let all: [&[&[u8]]; 5] = [&[], &[b""], &[b"x"], &[&text, &noise], &[&noise, b"", &text]];
            for blocks in all {
                let made = file(&Encoder::new(form, None), blocks);
                assert_eq!(decode(form.codec(), &made), Ok(blocks.concat()), "{form:?}");
                assert!(is_of(form, &made) || made.is_empty(), "{form:?} of {} blocks", blocks.len());
                for cut in 1..made.len().min(40) {
                    assert!(!is_of(form, &made[..made.len() - cut]), "{form:?} without {cut} bytes");
                }
            }
        }
    }

    #[test]
    fn members_tell_their_sizes() {
        let made = file(&Encoder::new(Form::Bgzf, Some(9)), &[&noise(300_000), &b"text\n".repeat(100_000)]);
        let (mut at, mut members) = (0, 0);
        while at < made.len() {
            assert_eq!(made[at..at + 16], MEMBER_HEADER);
            at += usize::from(u16::from_le_bytes([made[at + 16], made[at + 17]])) + 1;
            members += 1;
        }
        assert_eq!(
            (at, members),
            (made.len(), 300_000_usize.div_ceil(MEMBER) + 500_000_usize.div_ceil(MEMBER) + 1)
        );
        let mut plain = Vec::new();
        stored(b"text", &mut plain);
        assert_eq!(plain, b"\x01\x04\0\xfb\xfftext");
    }

    #[test]
    fn files_of_other_forms_are_told_apart() {
        let gz = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0";
        for form in FORMS {
            assert!(!is_of(form, gz) && !is_of(form, b""), "{form:?}");
        }
    }

    #[test]
    fn a_seek_table_must_tell_of_all_frames() {
        let encoder = Encoder::new(Form::Zstd, None);
        let good = file(&encoder, &[b"one", b"two"]);
        assert!(is_of(Form::Zstd, &good));
        assert!(!is_of(Form::Zstd, &good.repeat(2)), "the first half is in no table");
        let frame = encoder.encode(b"one").bytes;
        let of_length = |text: u32| {
            let table = seek_table(&[(frame.len() as u32, text)]);
            is_of(Form::Zstd, &[&frame[..], &table].concat())
        };
        assert!(of_length(64 << 20) && !of_length((64 << 20) + 1));
        let table = seek_table(&[(frame.len() as u32, 3)]);
        let mut with_checksum =
            [&frame[..], &table[..4], &21_u32.to_le_bytes(), &table[8..16], &[0; 4]].concat();
        with_checksum.extend([&table[16..20], &[ENTRY_CHECKSUMS], &SEEKABLE].concat());
        assert!(is_of(Form::Zstd, &with_checksum));
    }

    #[test]
    fn all_frames_of_lz4_must_be_small() {
        let small = file(&Encoder::new(Form::Lz4, None), &[&b"text\n".repeat(1_000_000), b"", b"end"]);
        assert!(is_of(Form::Lz4, &small));
        let large = encode_frame(&vec![b'x'; BLOCK + 1]);
        assert!(!is_of(Form::Lz4, &[&small[..], &large].concat()));
        assert!(!is_of(Form::Lz4, &[&small[..], b"garbage"].concat()));
    }
}
