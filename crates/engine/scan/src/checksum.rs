//! The checksum files of Hadoop's local file system.
//!
//! `.NAME.crc` holds `crc\0`, the number of bytes in a chunk, and the CRC-32 of each chunk. All numbers are big-endian.
//! The format is defined by Hadoop's `ChecksumFileSystem`, which ignores a file with a different magic number.

use std::ops::Range;

use millstream_codec::Crc32;
use millstream_vfs::Result;

use crate::batch::Buffer;
use crate::source::{FileRange, Source, SourceFile};

const HEADER: usize = 8;
const MAGIC: &[u8] = b"crc\0";
const SUM: usize = 4;
/// Bytes per read of the file.
const BLOCK: u64 = 1 << 20;

/// Checks the chunks that `part` of `file` touches. Returns the offset of the first chunk whose checksum differs or is
/// missing, `None` if all match or there is no checksum file.
pub(crate) fn mismatch<S: Source>(
    source: &S,
    range: &FileRange,
    file: &S::File,
    part: Range<u64>,
    buffer: &mut Buffer,
) -> Result<Option<u64>> {
    let Some(sums) = source.open_checksums(range)? else { return Ok(None) };
    fill(&sums, 0, HEADER, buffer)?;
    let chunk = match buffer.strip_prefix(MAGIC).and_then(sum_at(0)) {
        None | Some(0) => return Ok(None),
        Some(chunk) => u64::from(chunk),
    };
    let chunks = part.start / chunk..part.end.div_ceil(chunk);
    let length = (chunks.end - chunks.start) as usize * SUM;
    fill(&sums, HEADER as u64 + chunks.start * SUM as u64, length, buffer)?;
    let expected = buffer.to_vec();
    let mut found = Chunks { size: chunk, crc: Crc32::new(), hashed: 0, sums: Vec::new() };
    let (mut offset, end) = (chunks.start * chunk, chunks.end.saturating_mul(chunk));
    while offset < end {
        fill(file, offset, BLOCK.min(end - offset) as usize, buffer)?;
        if buffer.is_empty() {
            break;
        }
        found.add(buffer);
        offset += buffer.len() as u64;
    }
    let differs = |(index, sum)| sum_at(index)(&expected) != Some(sum);
    let first = found.finish().into_iter().enumerate().position(differs);
    Ok(first.map(|index| (chunks.start + index as u64) * chunk))
}

/// Computes the checksums of consecutive chunks.
struct Chunks {
    size: u64,
    crc: Crc32,
    /// Bytes hashed of the current chunk.
    hashed: u64,
    sums: Vec<u32>,
}

impl Chunks {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let left = usize::try_from(self.size - self.hashed).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(left.min(bytes.len()));
            self.crc.update(now);
            self.hashed += now.len() as u64;
            if self.hashed == self.size {
                self.end_chunk();
            }
            bytes = rest;
        }
    }

    fn end_chunk(&mut self) {
        self.sums.push(std::mem::take(&mut self.crc).value());
        self.hashed = 0;
    }

    fn finish(mut self) -> Vec<u32> {
        if self.hashed > 0 {
            self.end_chunk();
        }
        self.sums
    }
}

fn sum_at(index: usize) -> impl Fn(&[u8]) -> Option<u32> {
    move |bytes| bytes.get(index * SUM..)?.first_chunk().map(|sum| u32::from_be_bytes(*sum))
}

/// Reads `count` bytes at `offset`, fewer only at the end of the file.
fn fill<F: SourceFile>(file: &F, offset: u64, count: usize, buffer: &mut Buffer) -> Result<()> {
    buffer.clear();
    while buffer.len() < count {
        let filled = buffer.len();
        let n = file.read_at(buffer.room(count - filled), offset + filled as u64)?;
        if n == 0 {
            break;
        }
        buffer.fill(n);
    }
    Ok(())
}
