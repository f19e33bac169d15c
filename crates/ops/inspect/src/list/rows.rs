//! Compact storage of a directory until its last entry is known.
//!
//! Each chunk of the traversal becomes a [`Part`]: its names in one allocation, a [`Row`] of 24 bytes each and, if the
//! listing shows attributes, 64 bytes of [`Facts`]. With the 16 bytes of a sort key, a sorted listing of names takes 40
//! bytes per entry plus its name, and `-l` takes 104. Targets of links come on top. A part is never moved or merged:
//! the order is an array of references to rows.

use std::ffi::CStr;
use std::ops::Range;

use millstream_vfs::{FileKind, Metadata, Timestamp};

/// Entries of one directory, from one chunk of the traversal.
#[derive(Debug, Default)]
pub struct Part {
    /// Position of the chunk within the directory.
    pub first_index: u64,
    names: Vec<u8>,
    rows: Vec<Row>,
    facts: Vec<Facts>,
    targets: Vec<u8>,
    /// Security contexts, one for each of `facts` where the listing shows them.
    contexts: Vec<Box<[u8]>>,
    /// Operands that could not be examined. As in GNU ls, they count when deciding whether quotes are aligned.
    pub missing: Vec<Box<[u8]>>,
}

/// One entry.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    name_at: u32,
    name_len: u16,
    /// Type, of the target where links are followed.
    kind: FileKind,
    /// Type that the directory lists.
    listed: FileKind,
    /// Index into the facts of the part, [`NO_FACTS`] if none were fetched.
    facts: u32,
    /// For an operand, its position on the command line.
    operand: u32,
    /// Inode number.
    ino: u64,
}

/// Older than the oldest time that file systems report for an unknown time.
const UNKNOWN_TIME: Timestamp = Timestamp { sec: -1, nsec: 0 };

const NO_FACTS: u32 = u32::MAX;

/// Attributes of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Type and permission bits.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes; for a device its number.
    pub size: u64,
    /// Allocated space, in units of 512 bytes.
    pub blocks: u64,
    /// The time that is shown or sorted by; [`UNKNOWN_TIME`] if it is not known.
    pub time: Timestamp,
    time_known: bool,
    /// Access control list or security context.
    pub access: AccessMarker,
    /// Whether it has capabilities, if these have a color.
    pub is_capable: bool,
    /// The state of a link's target.
    pub link: LinkState,
    target_at: u32,
    target_len: u16,
    target_mode: u16,
}

/// The character after the permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMarker {
    /// Nothing.
    None,
    /// `.`: a security context and nothing else.
    Context,
    /// `+`: an access control list.
    List,
}

/// The state of a link's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is not a link, or its target was not read.
    NotRead,
    /// The target was read and nothing more.
    Read,
    /// The target exists.
    Exists,
    /// The target is missing.
    Missing,
}

impl Facts {
    /// From the volume's metadata; `time` is the one to be shown, if it is known.
    pub fn new(metadata: &Metadata, time: Option<Timestamp>) -> Self {
        let device = matches!(metadata.kind(), FileKind::CharDevice | FileKind::BlockDevice);
        Facts {
            mode: metadata.mode,
            nlink: u32::try_from(metadata.nlink).unwrap_or(u32::MAX),
            uid: metadata.uid,
            gid: metadata.gid,
            size: if device { metadata.rdev } else { metadata.size },
            blocks: metadata.blocks,
            time: time.unwrap_or(UNKNOWN_TIME),
            time_known: time.is_some(),
            access: AccessMarker::None,
            is_capable: false,
            link: LinkState::NotRead,
            target_at: 0,
            target_len: 0,
            target_mode: 0,
        }
    }

    /// Whether it is a device, so that its size is a number of one.
    pub fn is_device(&self) -> bool {
        matches!(FileKind::from_mode(self.mode), FileKind::CharDevice | FileKind::BlockDevice)
    }

    /// Size in bytes, of a device 0.
    pub fn file_size(&self) -> u64 {
        if self.is_device() { 0 } else { self.size }
    }

    /// Whether the volume knows the time.
    pub fn time_known(&self) -> bool {
        self.time_known
    }

    /// Type and permission bits of a link's target, 0 if they are not known.
    pub fn target_mode(&self) -> u32 {
        u32::from(self.target_mode)
    }
}

impl Part {
    /// An empty part.
    pub fn new(first_index: u64) -> Self {
        Part { first_index, ..Part::default() }
    }

    /// Adds an entry without attributes: the type that its directory lists, and that of the target where links are
    /// followed.
    pub fn push(&mut self, name: &CStr, (listed, kind): (FileKind, FileKind), ino: u64) {
        // A chunk's names are in one batch, which is far smaller than 4 GiB, and each fits a dirent.
        let name_at = self.names.len() as u32;
        let name_len = name.to_bytes().len() as u16;
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.rows.push(Row { name_at, name_len, kind, listed, facts: NO_FACTS, operand: 0, ino });
    }

    /// Gives the operand added last its position on the command line.
    pub fn set_operand(&mut self, operand: u64) {
        if let Some(row) = self.rows.last_mut() {
            row.operand = u32::try_from(operand).unwrap_or(u32::MAX);
        }
    }

    /// Gives the entry added last its attributes.
    pub fn set_facts(&mut self, facts: Facts) {
        let index = self.facts.len() as u32;
        if let Some(row) = self.rows.last_mut() {
            row.facts = index;
            self.facts.push(facts);
        }
    }

    /// Gives the attributes added last their security context; to be called for all entries with attributes, or for
    /// none.
    pub fn set_context(&mut self, context: Vec<u8>) {
        self.contexts.push(context.into());
    }

    /// Gives the attributes added last the target of a link.
    pub fn set_target(&mut self, target: &[u8], target_mode: u32, state: LinkState) {
        let Some(facts) = self.facts.last_mut() else { return };
        facts.target_at = self.targets.len() as u32;
        facts.target_len = target.len().min(usize::from(u16::MAX)) as u16;
        facts.target_mode = target_mode as u16;
        facts.link = state;
        self.targets.extend_from_slice(&target[..usize::from(facts.target_len)]);
    }

    /// Frees unused capacity.
    pub fn shrink(&mut self) {
        self.names.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.facts.shrink_to_fit();
        self.targets.shrink_to_fit();
    }

    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.missing.is_empty()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The entry at `index`.
    pub fn entry(&self, index: usize) -> EntryView<'_> {
        EntryView { part: self, row: &self.rows[index] }
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = EntryView<'_>> {
        self.rows.iter().map(|row| EntryView { part: self, row })
    }
}

/// One entry with all its known properties.
#[derive(Clone, Copy, Debug)]
pub struct EntryView<'a> {
    part: &'a Part,
    row: &'a Row,
}

impl<'a> EntryView<'a> {
    /// The name.
    pub fn name(&self) -> &'a [u8] {
        let at = self.row.name_at as usize;
        &self.part.names[at..at + usize::from(self.row.name_len)]
    }

    /// The name with the NUL after it.
    pub fn name_with_nul(&self) -> &'a CStr {
        let range: Range<usize> =
            self.row.name_at as usize..self.row.name_at as usize + usize::from(self.row.name_len) + 1;
        CStr::from_bytes_with_nul(&self.part.names[range]).unwrap_or(c"")
    }

    /// The type, of the target where links are followed.
    pub fn kind(&self) -> FileKind {
        self.row.kind
    }

    /// The type that the directory lists.
    pub fn listed_kind(&self) -> FileKind {
        self.row.listed
    }

    /// Inode number.
    pub fn ino(&self) -> u64 {
        self.row.ino
    }

    /// For an operand, its position on the command line.
    pub fn operand(&self) -> u64 {
        u64::from(self.row.operand)
    }

    /// The attributes, if they were fetched.
    pub fn facts(&self) -> Option<&'a Facts> {
        self.part.facts.get(self.row.facts as usize)
    }

    /// The security context; `?` if there is none.
    pub fn context(&self) -> &'a [u8] {
        self.part.contexts.get(self.row.facts as usize).map_or(b"?", |context| context)
    }

    /// The target of a link, if it was read.
    pub fn target(&self) -> Option<&'a [u8]> {
        let facts = self.facts().filter(|facts| facts.link != LinkState::NotRead)?;
        let at = facts.target_at as usize;
        Some(&self.part.targets[at..at + usize::from(facts.target_len)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were_pushed() {
        let mut part = Part::new(7);
        part.push(c"plain", (FileKind::Unknown, FileKind::File), 1);
        part.push(c"link", (FileKind::Symlink, FileKind::Symlink), 2);
        let metadata = Metadata { mode: 0o120_777, nlink: 1, size: 3, ..Metadata::default() };
        part.set_facts(Facts::new(&metadata, None));
        part.set_target(b"abc", 0o100_644, LinkState::Exists);
        let (plain, link) = (part.entry(0), part.entry(1));
        assert_eq!((plain.name(), plain.name_with_nul(), plain.ino()), (&b"plain"[..], c"plain", 1));
        assert!(plain.facts().is_none() && plain.target().is_none());
        assert_eq!(
            (link.name(), link.kind(), link.target()),
            (&b"link"[..], FileKind::Symlink, Some(&b"abc"[..]))
        );
        assert_eq!(link.facts().map(|f| (f.size, f.target_mode())), Some((3, 0o100_644)));
    }

    #[test]
    fn an_entry_takes_the_documented_space() {
        assert_eq!(size_of::<Row>(), 24);
        assert_eq!(size_of::<Facts>(), 64);
    }
}
