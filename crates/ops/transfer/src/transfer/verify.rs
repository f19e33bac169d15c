//! Comparison of source and copy by reading both again.

use millstream_vfs::{At, File, Result};
use xxhash_rust::xxh3::Xxh3;

/// Whether a copy has the contents of `original`. One that cannot be opened or read does not count as the same.
///
/// # Errors
/// Those of reading the original.
pub(crate) fn has_same_data<F: File>(
    original: &F,
    open_copy: impl FnOnce() -> Result<F>,
    buffer: &mut Vec<u8>,
) -> Result<bool> {
    let expected = checksum(original, buffer)?;
    let found = open_copy().and_then(|copy| checksum(&copy, buffer));
    Ok(found.is_ok_and(|found| found == expected))
}

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
