//! Distinct rows, and how often each occurs.
//!
//! Rows that are only counted by value need not leave the scan one by one. They are collected in a hash table until
//! they fill a batch; then the table starts anew, so a row may come again in a later batch. If the first table shows
//! that most rows differ, collecting them does not pay, and batches are passed on as they are.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::batch::{Batch, Line};

/// Bytes of a batch of distinct rows, about; also the size from which a batch is passed on as it is.
const FULL: usize = 16 << 20;
/// What a distinct row takes besides its bytes.
const ENTRY_BYTES: usize = 32;
/// Rows are collected as long as each occurs so often in a table, on average.
const WORTHWHILE: u64 = 2;
/// From so many rows in the table on, it counts as full if most of them occurred only once, up to then: fewer than five
/// in four.
const JUDGED_FROM: usize = 1 << 15;

/// A row, and how often it occurs.
#[derive(Clone, Copy, Debug)]
struct Entry {
    line: Line,
    count: u64,
}

/// The distinct rows of several batches.
#[derive(Debug)]
pub(crate) struct DistinctRows {
    entries: HashTable<Entry>,
    /// The bytes of the entries.
    rows: Batch,
    /// Random, so that nobody can write files whose rows collide.
    seed: u64,
    collected: u64,
    passes: bool,
}

/// What has become of a batch.
#[derive(Debug)]
pub(crate) enum Added {
    /// Its rows are collected.
    Collected(Batch),
    /// It is not worth it; each row has the count 1.
    PassedOn(Batch),
}

impl Default for DistinctRows {
    fn default() -> Self {
        let seed = RandomState::new().hash_one(0);
        DistinctRows { entries: HashTable::new(), rows: Batch::default(), seed, collected: 0, passes: false }
    }
}

impl DistinctRows {
    /// Collects the rows of a batch, or passes it on.
    pub(crate) fn add(&mut self, mut batch: Batch) -> Added {
        if self.passes || batch.bytes().len() > FULL {
            batch.counts.clear();
            batch.counts.resize(batch.lines().len(), 1);
            return Added::PassedOn(batch);
        }
        self.rows.range = batch.range;
        self.collected += batch.rows();
        for row in batch.iter() {
            self.add_row(row);
        }
        Added::Collected(batch)
    }

    fn add_row(&mut self, row: &[u8]) {
        let DistinctRows { entries, rows, seed, .. } = self;
        let hash = |row: &[u8]| xxh3_64_with_seed(row, *seed);
        let found =
            entries.entry(hash(row), |entry| rows.at(entry.line) == row, |entry| hash(rows.at(entry.line)));
        match found {
            Place::Occupied(mut entry) => entry.get_mut().count += 1,
            Place::Vacant(place) => {
                let line = rows.store(row);
                place.insert(Entry { line, count: 1 });
            }
        }
    }

    /// Whether [`DistinctRows::take`] is due.
    pub(crate) fn is_full(&self) -> bool {
        let count = self.entries.len();
        let is_unique = count >= JUDGED_FROM && self.collected < count as u64 * 5 / 4;
        is_unique || self.rows.bytes().len() + count * ENTRY_BYTES >= FULL
    }

    /// What has been collected; `None` if there is nothing.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        if self.entries.is_empty() {
            return None;
        }
        let mut batch = std::mem::take(&mut self.rows);
        self.passes = self.collected < self.entries.len() as u64 * WORTHWHILE;
        self.collected = 0;
        for Entry { line, count } in self.entries.drain() {
            batch.lines.push(line);
            batch.counts.push(count);
        }
        batch.rows = batch.lines.len() as u64;
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn batch(rows: &[&[u8]]) -> Batch {
        let mut batch = Batch::default();
        rows.iter().for_each(|row| batch.add(row));
        batch.rows = rows.len() as u64;
        batch
    }

    fn counts(batch: &Batch) -> HashMap<Vec<u8>, u64> {
        let counted: HashMap<_, _> =
            batch.iter().map(<[u8]>::to_vec).zip(batch.counts().iter().copied()).collect();
        assert_eq!(counted.len(), batch.lines().len(), "each row comes once");
        counted
    }

    #[test]
    fn rows_are_counted_across_batches() {
        let mut distinct = DistinctRows::default();
        assert!(matches!(distinct.add(batch(&[b"a", b"", b"b", b"a", b"\xff"])), Added::Collected(_)));
        assert!(matches!(distinct.add(batch(&[])), Added::Collected(_)));
        assert!(matches!(distinct.add(batch(&[b"", b"a", b"aa"])), Added::Collected(_)));
        let taken = distinct.take().expect("rows");
        let expected = [(&b"a"[..], 3), (b"", 2), (b"b", 1), (b"\xff", 1), (b"aa", 1)];
        assert_eq!(counts(&taken), expected.map(|(row, count)| (row.to_vec(), count)).into());
        assert_eq!(taken.occurrences(), 8);
        assert!(distinct.take().is_none());
        assert!(matches!(distinct.add(batch(&[b"a"])), Added::PassedOn(_)), "most rows differed");
    }

    #[test]
    fn a_table_is_as_large_as_a_batch_may_be() {
        let mut distinct = DistinctRows::default();
        let mut number = 0;
        while !distinct.is_full() {
            let rows: Vec<_> = (number..number + 1000).map(|n: u64| n.to_le_bytes()).collect();
            let rows: Vec<&[u8]> = rows.iter().flat_map(|row| [&row[..]; 2]).collect();
            assert!(matches!(distinct.add(batch(&rows)), Added::Collected(_)));
            number += 1000;
        }
        let taken = distinct.take().expect("rows");
        assert_eq!(taken.rows(), number);
        assert!(counts(&taken).values().all(|&count| count == 2));
        assert!((FULL / 2..FULL * 2).contains(&(taken.bytes().len() + taken.lines().len() * ENTRY_BYTES)));
        assert!(matches!(distinct.add(batch(&[b"a"])), Added::Collected(_)), "each row came twice");
    }

    #[test]
    fn rows_that_occur_once_are_found_out_early() {
        let mut distinct = DistinctRows::default();
        let rows: Vec<_> = (0..JUDGED_FROM as u64).map(u64::to_le_bytes).collect();
        let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
        assert!(matches!(distinct.add(batch(&rows[1..])), Added::Collected(_)) && !distinct.is_full());
        assert!(matches!(distinct.add(batch(&rows[..1])), Added::Collected(_)) && distinct.is_full());
        assert_eq!(distinct.take().expect("rows").rows(), rows.len() as u64);
        assert!(matches!(distinct.add(batch(&rows)), Added::PassedOn(_)));
    }

    #[test]
    fn huge_rows_are_passed_on() {
        let mut distinct = DistinctRows::default();
        assert!(matches!(distinct.add(batch(&[b"a"])), Added::Collected(_)));
        let huge = vec![b'x'; FULL + 1];
        let Added::PassedOn(passed) = distinct.add(batch(&[&huge, &huge])) else { panic!("collected") };
        assert_eq!(passed.counts(), [1, 1]);
        assert_eq!(counts(&distinct.take().expect("rows")), HashMap::from([(b"a".to_vec(), 1)]));
    }
}
