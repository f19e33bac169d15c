//! The nodes of the directories that get lines or that lines depend on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_vfs::{FileKind, Metadata, Timestamp};

use super::TimeField;

/// Sums over files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    /// In units of 512 bytes.
    pub(super) blocks: u64,
    pub(super) inodes: u64,
    pub(super) latest: Timestamp,
}

impl Totals {
    /// The totals of nothing, with a time older than any other.
    pub(super) const ZERO: Totals =
        Totals { bytes: 0, blocks: 0, inodes: 0, latest: Timestamp { sec: i64::MIN, nsec: 0 } };

    /// The totals of one file.
    pub(super) fn of(metadata: &Metadata, time: Option<TimeField>) -> Self {
        let latest = match time {
            None => Totals::ZERO.latest,
            Some(TimeField::Modified) => metadata.mtime,
            Some(TimeField::Accessed) => metadata.atime,
            Some(TimeField::Changed) => metadata.ctime,
        };
        // POSIX does not define the size of other files.
        let has_size = matches!(metadata.kind(), FileKind::File | FileKind::Symlink);
        let bytes = if has_size { metadata.size } else { 0 };
        Totals { bytes, blocks: metadata.blocks, inodes: 1, latest }
    }

    /// The latest time; without any file it is shown as 1970.
    pub(super) fn shown_time(&self) -> Timestamp {
        if self.latest == Totals::ZERO.latest { Timestamp { sec: 0, nsec: 0 } } else { self.latest }
    }

    pub(super) fn add(&mut self, other: &Totals) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.inodes += other.inodes;
        self.latest = self.latest.max(other.latest);
    }
}

/// A directory, or an operand that is not one.
#[derive(Debug, Default)]
pub(super) struct Node {
    contents: Mutex<Contents>,
}

/// A chain of any depth is dropped without recursion, also when a survey is abandoned.
impl Drop for Node {
    fn drop(&mut self) {
        let contents = |node: &mut Node| {
            let contents = node.contents.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut contents.children)
        };
        let mut below = contents(self);
        while let Some(child) = below.pop() {
            if let Some(mut node) = Arc::into_inner(child.node) {
                below.append(&mut contents(&mut node));
            }
        }
    }
}

/// The contents of a [`Node`].
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) kind: NodeKind,
    /// Totals of the directory itself, its files with one link, and everything below it that has no node.
    pub(super) own: Totals,
    /// Inodes with several links, by their number in the table of inodes.
    pub(super) links: Links,
    /// The same with names, if they get lines.
    pub(super) linked_files: Vec<LinkedFile>,
    /// The other files that get lines.
    pub(super) files: FileLines,
    /// Subdirectories that have nodes. A directory may be a child of several.
    pub(super) children: Vec<Child>,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A directory.
    #[default]
    Directory,
    /// An operand that is not a directory; it gets a line unless it is counted elsewhere.
    File,
    /// A directory that has been reported, or must not be because it contains itself.
    Spent,
}

impl Default for Totals {
    fn default() -> Self {
        Totals::ZERO
    }
}

/// A path of an inode with several links.
#[derive(Debug)]
pub(super) struct LinkedFile {
    pub(super) inode: u32,
    pub(super) name: Box<[u8]>,
}

/// A directory inside another.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) name: Box<[u8]>,
    pub(super) node: Arc<Node>,
}

impl Node {
    pub(super) fn new(kind: NodeKind, own: Totals) -> Arc<Self> {
        Arc::new(Node { contents: Mutex::new(Contents { kind, own, ..Contents::default() }) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the contents out for the report; `None` if that has been done before, or must not be done.
    pub(super) fn spend(&self) -> Option<Contents> {
        let mut contents = self.lock();
        if contents.kind == NodeKind::Spent {
            return None;
        }
        Some(std::mem::replace(&mut *contents, Contents { kind: NodeKind::Spent, ..Contents::default() }))
    }
}

/// A set of inode numbers, as a vector that is deduplicated whenever it has doubled.
#[derive(Debug, Default)]
pub(super) struct Links {
    inodes: Vec<u32>,
    distinct: usize,
}

impl Links {
    const SMALL: usize = 512;

    pub(super) fn push(&mut self, inode: u32) {
        if self.inodes.len() >= 2 * self.distinct.max(Self::SMALL) {
            self.inodes.sort_unstable();
            self.inodes.dedup();
            self.distinct = self.inodes.len();
        }
        self.inodes.push(inode);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.inodes.iter().copied()
    }
}

/// Packed lines of files: name, NUL, then the numbers in seven bits per byte.
#[derive(Debug, Default)]
pub(super) struct FileLines {
    packed: Vec<u8>,
}

impl FileLines {
    pub(super) fn push(&mut self, name: &[u8], totals: &Totals) {
        self.packed.extend_from_slice(name);
        self.packed.push(0);
        push_number(&mut self.packed, totals.bytes);
        push_number(&mut self.packed, totals.blocks);
        let timed = totals.latest != Totals::ZERO.latest;
        push_number(&mut self.packed, u64::from(timed));
        if timed {
            self.packed.extend_from_slice(&totals.latest.sec.to_ne_bytes());
            push_number(&mut self.packed, totals.latest.nsec.into());
        }
    }

    pub(super) fn append(&mut self, other: &mut FileLines) {
        self.packed.append(&mut other.packed);
    }

    /// Offsets of the lines, sorted by name.
    pub(super) fn sorted(&self) -> Vec<usize> {
        let mut starts = Vec::new();
        let mut at = 0;
        while at < self.packed.len() {
            starts.push(at);
            at = self.read(at).2;
        }
        starts.sort_unstable_by(|&a, &b| self.name(a).cmp(self.name(b)));
        starts
    }

    /// The name of the line that begins at `start`.
    pub(super) fn name(&self, start: usize) -> &[u8] {
        let rest = &self.packed[start..];
        let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The line that begins at `start`.
    pub(super) fn get(&self, start: usize) -> (&[u8], Totals) {
        let (name, totals, _) = self.read(start);
        (name, totals)
    }

    fn read(&self, start: usize) -> (&[u8], Totals, usize) {
        let name = self.name(start);
        let mut rest = &self.packed[start + name.len() + 1..];
        let mut totals = Totals { inodes: 1, ..Totals::ZERO };
        totals.bytes = read_number(&mut rest);
        totals.blocks = read_number(&mut rest);
        if read_number(&mut rest) == 1
            && let Some((sec, after)) = rest.split_first_chunk()
        {
            rest = after;
            let nsec = u32::try_from(read_number(&mut rest)).unwrap_or(0);
            totals.latest = Timestamp { sec: i64::from_ne_bytes(*sec), nsec };
        }
        (name, totals, self.packed.len() - rest.len())
    }
}

fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_lines_come_back_sorted() {
        let latest = Timestamp { sec: -5, nsec: 999_999_999 };
        let lines = [
            (&b"b"[..], Totals { bytes: 0, blocks: 0, inodes: 1, ..Totals::ZERO }),
            (b"a\xff", Totals { bytes: u64::MAX, blocks: 127, inodes: 1, ..Totals::ZERO }),
            (b"a", Totals { bytes: 128, blocks: 1 << 40, inodes: 1, latest }),
        ];
        let mut packed = FileLines::default();
        for (name, totals) in &lines {
            packed.push(name, totals);
        }
        let read: Vec<_> = packed.sorted().into_iter().map(|at| packed.get(at)).collect();
        assert_eq!(read, [lines[2], lines[1], lines[0]]);
    }

    #[test]
    fn links_are_a_set() {
        let mut links = Links::default();
        for i in 0..100_000 {
            links.push(i % 700);
        }
        assert!(links.inodes.len() <= 1400);
        let mut distinct: Vec<_> = links.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 700);
    }

    #[test]
    fn a_deep_chain_is_dropped_on_a_small_stack() {
        let mut node = Node::new(NodeKind::Directory, Totals::ZERO);
        for _ in 0..200_000 {
            let above = Node::new(NodeKind::Directory, Totals::ZERO);
            above.lock().children.push(Child { name: b"d".as_slice().into(), node });
            node = above;
        }
        let dropping = std::thread::Builder::new().stack_size(128 << 10).spawn(move || drop(node));
        dropping.expect("a thread").join().expect("dropped");
    }

    #[test]
    fn a_node_is_spent_once() {
        let node = Node::new(NodeKind::Directory, Totals { inodes: 1, ..Totals::ZERO });
        assert_eq!(node.spend().map(|c| c.own.inodes), Some(1));
        assert!(node.spend().is_none());
    }
}
