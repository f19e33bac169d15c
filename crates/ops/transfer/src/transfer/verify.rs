//! Comparison of source and copy by reading both again.

use millstream_vfs::{At, File, Result};
use xxhash_rust::xxh3::Xxh3;

/// The checksum and the length of a file's contents.
pub(crate) fn checksum<F: File>(file: &F, buffer: &mut Vec<u8>) -> Result<(u128, u64)> {
    const BUFFER: usize = 256 << 10;
    if buffer.len() < BUFFER {
        buffer.resize(BUFFER, 0);
    }
    let mut hasher = Xxh3::new();
    let mut offset = 0;
    loop {
        match file.read(buffer, At::Offset(offset))? {
            0 => return Ok((hasher.digest128(), offset)),
            n => {
                hasher.update(&buffer[..n]);
                offset += n as u64;
            }
        }
    }
}
