//! `io.millstream.hadoop.reading.FileRanges`, which documents the format.

use std::ffi::CString;
use std::sync::Arc;

use millstream_codec::{Codec, Index};
use millstream_scan::{Compression, FileRange};
use millstream_version::{Tag, Version};
use millstream_vfs::Timestamp;
use millstream_wire::{Decoder, Malformed};

const DIRECTORY: u8 = b'd';
const FILE: u8 = b'f';
const COMPRESSED: u8 = b'c';
/// Added to a codec: an index is made.
const INDEXING: u8 = 0x80;
/// In place of a codec: a part of a bzip2 file.
const BLOCKS: u8 = 0x40;

/// A packed range of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    directory: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) may_have_checksums: bool,
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Size of the file when it was listed; the greatest number if it is not known.
    pub(crate) size: u64,
    pub(crate) mtime_ms: i64,
    /// The object store's name of the version that was listed, packed ([`Tag`]).
    pub(crate) tag: &'a [u8],
    /// How it is compressed: a codec, and an index or none (`millstream_codec::Index`).
    pub(crate) compression: Option<(u8, &'a [u8])>,
}

impl Packed<'_> {
    /// The file's path; `None` if it contains a NUL.
    pub(crate) fn path(&self) -> Option<CString> {
        CString::new([self.directory, b"/", self.name].concat()).ok()
    }

    /// The version of the file that was listed.
    pub(crate) fn version(&self) -> Version {
        Version {
            tag: Tag::packed(self.tag),
            ..Version::at(self.size, Timestamp::from_millis(self.mtime_ms))
        }
    }

    /// The range as a scan takes it; `None` if its path or its index are invalid.
    pub(crate) fn range(&self) -> Option<FileRange> {
        let Packed { start, length, may_have_checksums, .. } = *self;
        let compression = match self.compression {
            None => Compression::None,
            Some((BLOCKS, [])) => Compression::Blocks {
                size: if self.size == u64::MAX { start.saturating_add(length) } else { self.size },
            },
            Some((codec, [])) if codec & INDEXING != 0 => {
                Compression::Indexing(Codec::from_code(codec & !INDEXING)?)
            }
            Some((codec, [])) => Compression::Whole(Codec::from_code(codec)?),
            Some((_, index)) => Compression::Indexed(Arc::new(Index::decode(index).ok()?)),
        };
        Some(FileRange { path: self.path()?, start, length, may_have_checksums, compression })
    }
}

/// The ranges in `packed`.
///
/// # Errors
/// [`Malformed`] if it is not what Java encodes.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<Packed<'_>>, Malformed> {
    let mut packed = Decoder::new(packed);
    let mut ranges = Vec::new();
    let (mut directory, mut may_have_checksums) = (&[][..], true);
    while !packed.is_empty() {
        let tag = packed.u8()?;
        let name = packed.prefixed()?;
        match tag {
            DIRECTORY => {
                directory = name;
                may_have_checksums = packed.u8()? != 0;
            }
            FILE | COMPRESSED => {
                ranges.push(Packed {
                    directory,
                    name,
                    may_have_checksums,
                    start: packed.u64()?,
                    length: packed.u64()?,
                    size: packed.u64()?,
                    mtime_ms: packed.i64()?,
                    tag: packed.prefixed()?,
                    compression: match tag {
                        COMPRESSED => Some((packed.u8()?, packed.prefixed()?)),
                        _ => None,
                    },
                });
            }
            _ => return Err(Malformed),
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Java's test `rangesAreTheSharedVector` encodes these.
    #[test]
    fn ranges_are_the_shared_vector() {
        let bytes = millstream_wire::vector("file-ranges.hex");
        let ranges = unpack(&bytes).expect("well-formed");
        let [a, b, c] = ranges.as_slice() else { panic!("{ranges:?}") };
        assert_eq!(a.path().as_deref(), Some(c"/d e/\u{e9}.txt"));
        assert_eq!((a.start, a.length, a.size, a.mtime_ms, a.may_have_checksums), (1, 2, 1 << 40, -4, false));
        assert_eq!(a.version().tag.to_string(), "d41d8cd98f00b204e9800998ecf8427e-3");
        assert_eq!(b.path().as_deref(), Some(c"/b"));
        assert!(b.version().tag.is_none());
        assert_eq!((b.start, b.length, b.size, b.mtime_ms), (0, 5, u64::MAX, 0));
        assert_eq!(c.path().as_deref(), Some(c"/c.gz"));
        assert_eq!((c.start, c.length, c.compression), (7, 9, Some((1, &b"index"[..]))));
        assert_eq!((a.compression, b.compression), (None, None));
        assert!(unpack(&bytes[..bytes.len() - 1]).is_err());
    }
}
