//! Sorting of entries.
//!
//! An entry is sorted by a [`Position`] of 16 bytes: the position of its row and the first eight bytes of its key,
//! which decide most comparisons without access to the row. In the order of a language the keys come from `strxfrm`,
//! once per name.

use std::cmp::Ordering;

use millstream_system::locale::Collation;
use millstream_vfs::FileKind;

use super::options::{ListOptions, SortKey};
use super::rows::{EntryView, Part};
use super::version;

/// The position of an entry, and the beginning of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    prefix: u64,
    part: u32,
    row: u32,
}

impl Position {
    /// The entry.
    pub fn entry(self, parts: &[Part]) -> EntryView<'_> {
        parts[self.part as usize].entry(self.row as usize)
    }
}

/// All entries of `parts`, in the order that the options request; `width` is the columns of a name.
pub fn sorted(
    parts: &[Part],
    options: &ListOptions,
    width: impl Fn(&EntryView<'_>) -> usize,
) -> Vec<Position> {
    let mut positions = in_directory_order(parts);
    if options.sort == SortKey::None {
        return positions;
    }
    let keys = Keys::new(parts, options);
    for (ordinal, position) in positions.iter_mut().enumerate() {
        position.prefix = match options.sort {
            SortKey::Width => width(&position.entry(parts)) as u64,
            _ => keys.prefix(position.entry(parts), ordinal, options),
        };
    }
    positions.sort_unstable_by(|a, b| {
        let order = keys.compare(parts, options.sort, a, b);
        let order = if options.reverse { order.reverse() } else { order };
        // Equal entries stay in the order of the directory.
        order.then_with(|| (a.part, a.row).cmp(&(b.part, b.row)))
    });
    if options.directories_first {
        let (directories, others): (Vec<_>, Vec<_>) =
            positions.into_iter().partition(|position| leads_to_directory(&position.entry(parts)));
        positions = directories;
        positions.extend(others);
    }
    positions
}

fn in_directory_order(parts: &[Part]) -> Vec<Position> {
    let mut positions = Vec::with_capacity(parts.iter().map(Part::len).sum());
    for (index, part) in parts.iter().enumerate() {
        let part_index = index as u32;
        positions.extend((0..part.len()).map(|row| Position {
            prefix: 0,
            part: part_index,
            row: row as u32,
        }));
    }
    positions
}

fn leads_to_directory(entry: &EntryView<'_>) -> bool {
    entry.kind() == FileKind::Directory
        || entry.facts().is_some_and(|f| FileKind::from_mode(f.target_mode()) == FileKind::Directory)
}

/// Precomputed keys, for orders in which the names cannot be compared directly.
struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends, by ordinal; empty if names are compared themselves.
    ends: Vec<usize>,
    /// Ordinal of the first row of each part.
    part_starts: Vec<usize>,
}

impl Keys {
    fn new(parts: &[Part], options: &ListOptions) -> Keys {
        let mut keys =
            Keys { bytes: Vec::new(), ends: Vec::new(), part_starts: Vec::with_capacity(parts.len()) };
        let mut ordinal = 0;
        for part in parts {
            keys.part_starts.push(ordinal);
            ordinal += part.len();
        }
        let by_language = options.locale.collation() == Collation::Language;
        if options.sort == SortKey::Extension || (by_language && options.sort != SortKey::Version) {
            keys.ends.reserve(ordinal);
            for entry in parts.iter().flat_map(Part::entries) {
                keys.push(&entry, options);
            }
        }
        keys
    }

    fn push(&mut self, entry: &EntryView<'_>, options: &ListOptions) {
        let by_language = options.locale.collation() == Collation::Language;
        if options.sort == SortKey::Extension {
            let name = entry.name();
            if let Some(dot) = name.iter().rposition(|&b| b == b'.') {
                let extension = &entry.name_with_nul().to_bytes_with_nul()[dot..];
                match std::ffi::CStr::from_bytes_with_nul(extension) {
                    Ok(text) if by_language => options.locale.sort_key(text, &mut self.bytes),
                    _ => self.bytes.extend_from_slice(&name[dot..]),
                }
            }
            // No key contains a zero byte, so it can separate the parts.
            self.bytes.push(0);
        }
        if by_language {
            options.locale.sort_key(entry.name_with_nul(), &mut self.bytes);
        } else {
            self.bytes.extend_from_slice(entry.name());
        }
        self.ends.push(self.bytes.len());
    }

    fn key<'a>(&'a self, entry: EntryView<'a>, ordinal: usize) -> &'a [u8] {
        match self.ends.get(ordinal) {
            Some(&end) => &self.bytes[ordinal.checked_sub(1).map_or(0, |before| self.ends[before])..end],
            None => entry.name(),
        }
    }

    fn prefix(&self, entry: EntryView<'_>, ordinal: usize, options: &ListOptions) -> u64 {
        match options.sort {
            SortKey::None | SortKey::Version | SortKey::Width => 0,
            SortKey::Name | SortKey::Extension => first_bytes(self.key(entry, ordinal)),
            SortKey::Size => !entry.facts().map_or(0, |f| f.file_size()),
            // Seconds as an unsigned number in the same order, newest first.
            SortKey::Time => !(entry.facts().map_or(0, |f| f.time.sec).cast_unsigned() ^ (1 << 63)),
        }
    }

    fn compare(&self, parts: &[Part], sort: SortKey, a: &Position, b: &Position) -> Ordering {
        a.prefix.cmp(&b.prefix).then_with(|| {
            let (ea, eb) = (a.entry(parts), b.entry(parts));
            let by_time = |e: &EntryView<'_>| e.facts().map_or(0, |f| f.time.nsec);
            match sort {
                SortKey::Version => {
                    version::compare(ea.name(), eb.name()).then_with(|| ea.name().cmp(eb.name()))
                }
                SortKey::Time => {
                    by_time(&eb).cmp(&by_time(&ea)).then_with(|| self.compare_keys(ea, eb, a, b))
                }
                _ => self.compare_keys(ea, eb, a, b),
            }
        })
    }

    fn compare_keys(&self, ea: EntryView<'_>, eb: EntryView<'_>, a: &Position, b: &Position) -> Ordering {
        let ordinal = |position: &Position| self.part_starts[position.part as usize] + position.row as usize;
        self.key(ea, ordinal(a)).cmp(self.key(eb, ordinal(b)))
    }
}

/// The first eight bytes as a number that compares as they do; missing bytes count as zero.
fn first_bytes(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::super::rows::Facts;
    use super::*;
    use millstream_system::locale::Locale;
    use millstream_vfs::{Metadata, Timestamp};

    /// Names with a size, and the seconds and nanoseconds of a time, in two parts.
    fn parts(entries: &[(&str, u64, i64, u32)]) -> Vec<Part> {
        let mut parts = vec![Part::new(0), Part::new(1)];
        let half = entries.len() / 2;
        for (i, (name, size, sec, nsec)) in entries.iter().enumerate() {
            let part = &mut parts[usize::from(i >= half)];
            part.push(&CString::new(*name).expect("no NUL"), (FileKind::File, FileKind::File), 0);
            let metadata = Metadata { size: *size, ..Metadata::default() };
            part.set_facts(Facts::new(&metadata, Some(Timestamp { sec: *sec, nsec: *nsec })));
        }
        parts
    }

    fn order(sort: SortKey, reverse: bool, entries: &[(&str, u64, i64, u32)]) -> Vec<String> {
        let locale = Locale::from_environment();
        let options = ListOptions { sort, reverse, ..ListOptions::new(locale) };
        let parts = parts(entries);
        let names = sorted(&parts, &options, |entry| entry.name().len())
            .into_iter()
            .map(|p| p.entry(&parts).name().to_vec());
        names.map(|n| String::from_utf8(n).expect("ASCII")).collect()
    }

    #[test]
    fn sort_keys() {
        let entries = [
            ("b.c", 5, 10, 1),
            ("aaaaaaaab", 7, 10, 2),
            ("a.d", 5, -3, 0),
            ("aaaaaaaaa", 0, 99, 0),
            ("c10", 1, 0, 0),
            ("c9", 1, 0, 0),
        ];
        for (sort, expected) in [
            (SortKey::None, "b.c aaaaaaaab a.d aaaaaaaaa c10 c9"),
            (SortKey::Name, "a.d aaaaaaaaa aaaaaaaab b.c c10 c9"),
            (SortKey::Extension, "aaaaaaaaa aaaaaaaab c10 c9 b.c a.d"),
            (SortKey::Version, "a.d aaaaaaaaa aaaaaaaab b.c c9 c10"),
            (SortKey::Width, "c9 a.d b.c c10 aaaaaaaaa aaaaaaaab"),
            (SortKey::Size, "aaaaaaaab a.d b.c c10 c9 aaaaaaaaa"),
            (SortKey::Time, "aaaaaaaaa aaaaaaaab b.c c10 c9 a.d"),
        ] {
            assert_eq!(order(sort, false, &entries).join(" "), expected, "{sort:?}");
        }
        assert_eq!(order(SortKey::Name, true, &entries).join(" "), "c9 c10 b.c aaaaaaaab aaaaaaaaa a.d");
    }

    #[test]
    fn reversal_keeps_equal_entries_in_directory_order() {
        let entries = [("x", 1, 0, 0), ("x", 2, 0, 0), ("y", 3, 0, 0)];
        assert_eq!(order(SortKey::Name, true, &entries), ["y", "x", "x"]);
    }
}
