//! The checksums that Hadoop's local file system keeps beside a file.
//!
//! `.NAME.crc` holds `crc\0`, the number of bytes in a chunk, and the CRC-32 of each chunk, all numbers big-endian; the format is
//! that of Hadoop's `ChecksumFileSystem`, which ignores a file with another beginning.

use std::ffi::CString;
use std::ops::Range;

use millstream_vfs::{Access, At, Dir, Errno, File, Result, SymlinkBehavior};

use crate::batch::Buffer;

const HEADER: usize = 8;
const MAGIC: &[u8] = b"crc\0";

/// Checksums of a file.
#[derive(Debug)]
pub(crate) struct Checksums {
    chunk: u64,
    sums: Vec<u8>,
}

/// Why data is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Where the chunk begins.
    pub(crate) offset: u64,
}

impl Checksums {
    /// Those of the file at `path`, if it has any.
    pub(crate) fn of<D: Dir>(base: &D, path: &CString) -> Result<Option<Self>> {
        let file = match base.open_file(&beside(path), Access::Read, SymlinkBehavior::Follow) {
            Err(error) if error.errno == Errno::NOENT => return Ok(None),
            opened => opened?,
        };
        let mut sums = Vec::new();
        let mut block = [0; 4096];
        loop {
            match file.read(&mut block, At::Offset(sums.len() as u64))? {
                0 => break,
                n => sums.extend_from_slice(&block[..n]),
            }
        }
        let chunk = sums.get(4..HEADER).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        if !sums.starts_with(MAGIC) || chunk == 0 {
            return Ok(None);
        }
        sums.drain(..HEADER);
        Ok(Some(Checksums { chunk: chunk.into(), sums }))
    }

    /// Reads the chunks that `part` touches; the first one whose checksum is another, or is missing.
    pub(crate) fn check<F: File>(
        &self,
        file: &F,
        part: Range<u64>,
        buffer: &mut Buffer,
    ) -> Result<std::result::Result<(), Mismatch>> {
        let mut offset = part.start - part.start % self.chunk;
        while offset < part.end {
            buffer.clear();
            while (buffer.len() as u64) < self.chunk {
                let filled = buffer.len();
                let room = buffer.room(self.chunk as usize - filled);
                let n = file.read(room, At::Offset(offset + filled as u64))?;
                if n == 0 {
                    break;
                }
                buffer.fill(n);
            }
            let at = (offset / self.chunk) as usize * 4;
            let expected = self.sums.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
            if expected != Some(crc32fast::hash(buffer)) {
                return Ok(Err(Mismatch { offset }));
            }
            offset += self.chunk;
        }
        Ok(Ok(()))
    }
}

fn beside(path: &CString) -> CString {
    let path = path.to_bytes();
    let name = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let beside = [&path[..name], b".", &path[name..], b".crc"].concat();
    // A C string holds no NUL, nor do the additions.
    CString::new(beside).unwrap_or_default()
}
