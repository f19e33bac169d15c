//! `io.millstream.hadoop.FileRanges`, which documents the format.

use std::ffi::CString;

const DIRECTORY: u8 = b'd';
const FILE: u8 = b'f';

/// A packed range of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    directory: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) may_have_checksums: bool,
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Size of the file when it was listed.
    pub(crate) size: u64,
    pub(crate) mtime_ms: i64,
}

impl Packed<'_> {
    /// The file's path; `None` if it contains a NUL.
    pub(crate) fn path(&self) -> Option<CString> {
        CString::new([self.directory, b"/", self.name].concat()).ok()
    }
}

/// The ranges in `packed`; `None` if it is malformed.
pub(crate) fn unpack(mut packed: &[u8]) -> Option<Vec<Packed<'_>>> {
    let mut ranges = Vec::new();
    let (mut directory, mut may_have_checksums) = (&[][..], true);
    while let Some(tag) = take::<1>(&mut packed) {
        let name = prefixed(&mut packed)?;
        match tag {
            [DIRECTORY] => {
                directory = name;
                may_have_checksums = take::<1>(&mut packed)? != [0];
            }
            [FILE] => {
                ranges.push(Packed {
                    directory,
                    name,
                    may_have_checksums,
                    start: u64::from_le_bytes(take(&mut packed)?),
                    length: u64::from_le_bytes(take(&mut packed)?),
                    size: u64::from_le_bytes(take(&mut packed)?),
                    mtime_ms: i64::from_le_bytes(take(&mut packed)?),
                });
                // Versions are known to the file systems that Java reads.
                prefixed(&mut packed)?;
            }
            _ => return None,
        }
    }
    packed.is_empty().then_some(ranges)
}

fn prefixed<'a>(packed: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(packed)?) as usize;
    let (taken, rest) = packed.split_at_checked(length)?;
    *packed = rest;
    Some(taken)
}

fn take<const N: usize>(packed: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = packed.split_first_chunk()?;
    *packed = rest;
    Some(*taken)
}
