//! The layout of a block, which Java's `NativeListing` documents.

use millstream_vfs::{FileKind, Metadata};
use millstream_wire::Encoder;

/// Alignment in bytes of a block and of its columns.
const ALIGNMENT: usize = 8;

/// The block is followed by another of the same directory.
pub(super) const FLAG_MORE: u32 = 1;
/// The block stands for a root that is not a directory.
pub(super) const FLAG_NOT_DIRECTORY: u32 = 2;
/// There are checksum files in the directory.
pub(super) const FLAG_CHECKSUMS: u32 = 4;

/// Entries in columns.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) first_index: u64,
    pub(super) sizes: Vec<i64>,
    pub(super) times: Vec<i64>,
    pub(super) directories: Vec<u8>,
    pub(super) name_ends: Vec<usize>,
    pub(super) names: Vec<u8>,
}

impl Columns {
    pub(super) fn push(&mut self, name: &[u8], metadata: &Metadata) {
        self.sizes.push(i64::try_from(metadata.size).unwrap_or(i64::MAX));
        self.times.push(metadata.mtime.as_millis());
        self.directories.push(u8::from(metadata.kind() == FileKind::Directory));
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
    }

    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }
}

/// The part of a block before the columns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Header<'a> {
    pub(super) root: u64,
    pub(super) flags: u32,
    pub(super) errno: i32,
    pub(super) unexamined: u32,
    pub(super) listed_at_millis: u32,
    pub(super) path: &'a [u8],
    pub(super) position: &'a [u8],
}

impl Header<'_> {
    /// A block with the concatenated `parts`.
    pub(super) fn block(&self, parts: &[Columns]) -> Vec<u8> {
        let count: usize = parts.iter().map(Columns::len).sum();
        let names_len: usize = parts.iter().map(|p| p.names.len()).sum();
        let fields = [
            self.root as u32,
            self.flags,
            self.errno as u32,
            count as u32,
            self.path.len() as u32,
            names_len as u32,
            self.unexamined,
            self.listed_at_millis,
            self.position.len() as u32,
        ];
        let texts_len = self.path.len() + self.position.len() + names_len;
        let mut block = Encoder::with_capacity(fields.len() * 4 + texts_len + count * 21 + 2 * ALIGNMENT);
        fields.iter().for_each(|&field| block.u32(field));
        block.bytes(self.path);
        block.bytes(self.position);
        block.pad_to(ALIGNMENT);
        parts.iter().flat_map(|p| &p.sizes).for_each(|&size| block.i64(size));
        parts.iter().flat_map(|p| &p.times).for_each(|&time| block.i64(time));
        let mut before = 0;
        for part in parts {
            part.name_ends.iter().for_each(|end| block.u32((before + end) as u32));
            before += part.names.len();
        }
        parts.iter().for_each(|p| block.bytes(&p.directories));
        parts.iter().for_each(|p| block.bytes(&p.names));
        block.pad_to(ALIGNMENT);
        block.into_bytes()
    }
}
