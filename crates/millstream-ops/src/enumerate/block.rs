//! The layout of a block, which Java's `NativeListing` documents.

use millstream_vfs::{FileKind, Metadata};

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
    /// Appends a block with the concatenated `parts`.
    pub(super) fn write_block(&self, parts: &[Columns], block: &mut Vec<u8>) {
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
        block.reserve(fields.len() * 4 + self.path.len() + self.position.len() + count * 21 + names_len + 16);
        fields.iter().for_each(|f| block.extend_from_slice(&f.to_le_bytes()));
        block.extend_from_slice(self.path);
        block.extend_from_slice(self.position);
        pad(block);
        parts.iter().flat_map(|p| &p.sizes).for_each(|s| block.extend_from_slice(&s.to_le_bytes()));
        parts.iter().flat_map(|p| &p.times).for_each(|t| block.extend_from_slice(&t.to_le_bytes()));
        let mut before = 0;
        for part in parts {
            part.name_ends.iter().for_each(|e| block.extend_from_slice(&((before + e) as u32).to_le_bytes()));
            before += part.names.len();
        }
        parts.iter().for_each(|p| block.extend_from_slice(&p.directories));
        parts.iter().for_each(|p| block.extend_from_slice(&p.names));
        pad(block);
    }
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(8), 0);
}
