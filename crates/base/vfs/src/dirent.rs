//! Batches of directory entries.
//!
//! A batch has the record format of Linux's `getdents64(2)`: the POSIX volume reads straight into it, and a batch of a
//! large directory goes to other threads as a single allocation. A record consists of the inode number (`u64`), an
//! opaque `u64`, the record length (`u16`), `d_type` (`u8`), the name with a NUL, and padding, all in native byte
//! order.

use std::ffi::CStr;
use std::ops::Range;

use crate::FileKind;

const NAME_AT: usize = 19;
/// The longest name in a record, whose length has 16 bits.
const MAX_NAME: usize = 65_000;

/// One entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirent<'a> {
    /// The name, without a path.
    pub name: &'a CStr,
    /// Inode number from the directory entry; for a mount point, that of the directory underneath.
    pub ino: u64,
    /// Type of the entry, [`FileKind::Unknown`] if the volume does not report it.
    pub kind: FileKind,
}

/// Packed directory entries with a fixed capacity in bytes.
#[derive(Debug, Default)]
pub struct DirentBatch {
    bytes: Vec<u8>,
    len: usize,
    dots: Dots,
}

/// Whether `.` and `..` count as entries: not if a directory lists them, always if a user names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Dots {
    #[default]
    Skip,
    Keep,
}

impl DirentBatch {
    /// An empty batch of `capacity` bytes. A record takes up to 27 bytes more than its name.
    pub fn with_capacity(capacity: usize) -> Self {
        DirentBatch { bytes: vec![0; capacity], len: 0, dots: Dots::Skip }
    }

    /// A batch of exactly these names, with unknown types: for instance the operands of a command.
    ///
    /// A name is cut after 65,000 bytes. That is longer than any volume allows, so it fails as too long either way.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a CStr>) -> Self {
        let mut batch = DirentBatch { dots: Dots::Keep, ..DirentBatch::default() };
        names.into_iter().for_each(|name| batch.push(name.to_bytes()));
        batch
    }

    fn push(&mut self, name: &[u8]) {
        let name = &name[..name.len().min(MAX_NAME)];
        let record = (NAME_AT + name.len() + 1).next_multiple_of(8);
        self.bytes.truncate(self.len);
        self.bytes.extend_from_slice(&[0; 16]);
        // MAX_NAME keeps the record below 2^16.
        self.bytes.extend_from_slice(&(record as u16).to_ne_bytes());
        self.bytes.push(FileKind::Unknown.dirent_type());
        self.bytes.extend_from_slice(name);
        self.len += record;
        self.bytes.resize(self.len, 0);
    }

    /// Size of the buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes in use.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch holds no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Empties the batch and keeps its capacity. A volume that adds entries one by one starts with this.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds an entry if it fits, and returns whether it did. The name must not exceed 65,000 bytes.
    pub fn add(&mut self, entry: Dirent<'_>) -> bool {
        let name = entry.name.to_bytes_with_nul();
        let record = (NAME_AT + name.len()).next_multiple_of(8);
        let Some(room) = self.bytes.get_mut(self.len..self.len + record) else { return false };
        let Ok(length) = u16::try_from(record) else { return false };
        room[..8].copy_from_slice(&entry.ino.to_ne_bytes());
        room[8..16].fill(0);
        room[16..18].copy_from_slice(&length.to_ne_bytes());
        room[18] = entry.kind.dirent_type();
        room[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
        self.len += record;
        true
    }

    /// Lets `read` fill the buffer with records in the kernel's format; it returns the number of bytes filled.
    ///
    /// # Errors
    /// That of `read`; the batch is empty then.
    pub fn fill<E>(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
        self.len = 0;
        self.len = read(&mut self.bytes)?.min(self.bytes.len());
        Ok(self.len)
    }

    /// Takes the entries and leaves an empty batch. If they fill only a small part of the buffer, they are copied and
    /// the batch keeps the buffer: copying them costs less than the page faults of a new one.
    #[must_use]
    pub fn take_entries(&mut self) -> DirentBatch {
        if self.len > self.capacity() / 4 {
            return std::mem::take(self);
        }
        let taken = DirentBatch { bytes: self.bytes[..self.len].to_vec(), len: self.len, dots: self.dots };
        self.len = 0;
        taken
    }

    /// All entries.
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len)
    }

    /// The entries of a range from [`DirentBatch::split`].
    pub fn range(&self, range: Range<usize>) -> Iter<'_> {
        Iter { bytes: &self.bytes[range], dots: self.dots }
    }

    /// Splits the batch into ranges of at most `entries` entries. Returns each range with its number of entries, in
    /// which `.` and `..` count even if they are not delivered.
    pub fn split(&self, entries: usize) -> Vec<(Range<usize>, usize)> {
        let mut ranges = Vec::new();
        let (mut start, mut at, mut count) = (0, 0, 0);
        while at < self.len {
            at += record_len(&self.bytes[at..]);
            count += 1;
            if count == entries {
                ranges.push((start..at, count));
                (start, count) = (at, 0);
            }
        }
        if count > 0 {
            ranges.push((start..at, count));
        }
        ranges
    }

    /// The number of records, including `.` and `..`.
    pub fn count(&self) -> usize {
        let (mut at, mut count) = (0, 0);
        while at < self.len {
            at += record_len(&self.bytes[at..]);
            count += 1;
        }
        count
    }
}

/// Length of the record at the start of `bytes`. Never zero, so a loop over records ends whatever the bytes are.
fn record_len(bytes: &[u8]) -> usize {
    if bytes.len() <= NAME_AT {
        return bytes.len();
    }
    let length = usize::from(u16::from_ne_bytes([bytes[16], bytes[17]]));
    length.clamp(NAME_AT + 1, bytes.len())
}

/// Treats arbitrary bytes as the records of a directory, for the fuzzer.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_records(bytes: &[u8]) {
    let batch = DirentBatch { bytes: bytes.to_vec(), len: bytes.len(), dots: Dots::Keep };
    let parts = batch.split(3);
    assert_eq!(parts.iter().map(|(_, count)| count).sum::<usize>(), batch.count());
    assert_eq!(parts.last().map_or(0, |(range, _)| range.end), bytes.len());
    assert!(batch.iter().count() <= batch.count());
}

/// Iterator over the entries of a batch.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    dots: Dots,
}

impl<'a> Iter<'a> {
    /// Includes `.` and `..` where the directory lists them.
    #[must_use]
    pub fn with_dots(self) -> Self {
        Iter { dots: Dots::Keep, ..self }
    }

    fn next_record(&mut self) -> Option<Dirent<'a>> {
        if self.bytes.len() <= NAME_AT {
            return None;
        }
        let (record, rest) = self.bytes.split_at(record_len(self.bytes));
        self.bytes = rest;
        let ino = record[..8].try_into().map(u64::from_ne_bytes).ok()?;
        let name = CStr::from_bytes_until_nul(&record[NAME_AT..]).ok()?;
        Some(Dirent { name, ino, kind: FileKind::from_dirent_type(record[18]) })
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Dirent<'a>;

    fn next(&mut self) -> Option<Dirent<'a>> {
        loop {
            let entry = self.next_record()?;
            if self.dots == Dots::Keep || (entry.name != c"." && entry.name != c"..") {
                return Some(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(names: &[&CStr]) -> DirentBatch {
        DirentBatch::from_names(names.iter().copied())
    }

    #[test]
    fn names_come_back_in_order_and_byte_for_byte() {
        let names = [c"a", c"with\nnewline", c"\xff\xfe", c"/an/absolute/operand", c""];
        let read: Vec<_> = batch(&names).iter().map(|e| e.name.to_owned()).collect();
        assert_eq!(read, names.map(|n| n.to_owned()));
    }

    #[test]
    fn entries_are_added_while_there_is_room() {
        let entry = |name, ino| Dirent { name, ino, kind: FileKind::Directory };
        let mut batch = DirentBatch::with_capacity(64);
        for round in 0..2 {
            assert!(batch.add(entry(c"a-name", round)) && batch.add(entry(c"b", 7)));
            assert!(!batch.add(entry(c"one-too-many", 8)));
            assert_eq!(batch.iter().collect::<Vec<_>>(), [entry(c"a-name", round), entry(c"b", 7)]);
            assert_eq!((batch.count(), batch.capacity()), (2, 64));
            batch.clear();
            assert!(batch.is_empty());
        }
    }

    #[test]
    fn split_covers_every_entry_once() {
        let batch = batch(&[c"a", c"bb", c"ccc", c"dddd", c"eeeee"]);
        assert_eq!(batch.count(), 5);
        for size in 1..7 {
            let parts = batch.split(size);
            assert!(parts.iter().all(|(_, n)| *n <= size));
            let joined: Vec<_> = parts.iter().flat_map(|(r, _)| batch.range(r.clone())).collect();
            assert_eq!(joined, batch.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn few_entries_are_copied_many_take_the_buffer() {
        for (used, kept) in [(96, 4096), (3000, 0)] {
            let mut source = batch(&[&std::ffi::CString::new(vec![b'x'; used - 24]).expect("no NUL")]);
            let entries: Vec<_> = source.iter().map(|e| e.name.to_owned()).collect();
            source.bytes.resize(4096, 0);
            let taken = source.take_entries();
            assert_eq!(taken.iter().map(|e| e.name.to_owned()).collect::<Vec<_>>(), entries);
            assert_eq!((source.len(), source.capacity()), (0, kept));
        }
    }

    #[test]
    fn dots_of_a_directory_are_delivered_on_request() {
        let mut listed = batch(&[c".", c"a", c".."]);
        listed.dots = Dots::Skip;
        let names = |entries: Iter<'_>| entries.map(|e| e.name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(listed.iter()), [c"a".to_owned()]);
        assert_eq!(names(listed.iter().with_dots()), [c".", c"a", c".."].map(|n| n.to_owned()));
    }

    #[test]
    fn malformed_records_do_not_panic() {
        for length in [0, 1, 17, 18, 19, 20, 27, 40] {
            fuzz_records(&vec![0; length]);
            fuzz_records(&vec![0xff; length]);
        }
    }

    #[test]
    fn overlong_name_is_cut_and_spares_the_others() {
        let long = std::ffi::CString::new(vec![b'x'; 70_000]).expect("no NUL");
        let batch = batch(&[c"before", &long, c"after"]);
        let lengths: Vec<_> = batch.iter().map(|e| e.name.count_bytes()).collect();
        assert_eq!(lengths, [6, MAX_NAME, 5]);
    }
}
