//! The table of inodes that must be counted once: numbered, and sharded over many locks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tree::Totals;

/// Device and inode number.
pub(super) type Identity = (u64, u64);
/// A map by identity.
pub(super) type IdentityMap<T> = HashMap<Identity, T, BuildHasherDefault<IdentityHasher>>;

/// Mixes the two numbers of an identity by multiplication; they come from the kernel, not from an adversary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn hash(identity: Identity) -> u64 {
    let mut hasher = IdentityHasher::default();
    hasher.write_u64(identity.0);
    hasher.write_u64(identity.1);
    hasher.finish()
}

const SHARDS: usize = 64;

/// Values by identity, spread over locks.
#[derive(Debug)]
pub(super) struct Sharded<T> {
    shards: [Mutex<T>; SHARDS],
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Sharded { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl<T> Sharded<T> {
    fn shard(&self, index: usize) -> MutexGuard<'_, T> {
        self.shards[index % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part that holds `identity`, locked.
    pub(super) fn lock(&self, identity: Identity) -> MutexGuard<'_, T> {
        self.shard(shard_of(identity))
    }
}

/// The high bits choose the shard; the map in it uses the low ones.
fn shard_of(identity: Identity) -> usize {
    (hash(identity) >> 32) as usize % SHARDS
}

/// The inodes seen with several links.
#[derive(Debug, Default)]
pub(super) struct Inodes {
    shards: Sharded<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    numbers: IdentityMap<u32>,
    /// The totals that each inode adds when it is counted; `None` after that.
    uncounted: Vec<Option<Totals>>,
}

impl Inodes {
    /// The number of an inode; the first call for an inode stores its totals.
    pub(super) fn number(&self, identity: Identity, totals: &Totals) -> u32 {
        let index = shard_of(identity);
        let shard = &mut *self.shards.shard(index);
        let place = match shard.numbers.entry(identity) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(vacant) => {
                shard.uncounted.push(Some(*totals));
                *vacant.insert(shard.uncounted.len() as u32 - 1)
            }
        };
        place * SHARDS as u32 + index as u32
    }

    /// The totals to add for an inode: its own the first time, nothing after that.
    pub(super) fn count(&self, number: u32) -> Option<Totals> {
        let (place, index) = (number as usize / SHARDS, number as usize % SHARDS);
        self.shards.shard(index).uncounted[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_counted_once() {
        let inodes = Inodes::default();
        let totals = |bytes| Totals { bytes, inodes: 1, ..Totals::ZERO };
        let numbers: Vec<_> = (0..10_000).map(|i| inodes.number((1, i), &totals(i))).collect();
        for (i, &number) in numbers.iter().enumerate() {
            assert_eq!(inodes.number((1, i as u64), &totals(0)), number);
            assert_eq!(inodes.count(number), Some(totals(i as u64)));
            assert_eq!(inodes.count(number), None);
        }
        assert_ne!(inodes.number((2, 5), &totals(5)), numbers[5]);
    }

    #[test]
    fn neighbours_spread_over_the_shards() {
        let mut used = [0u32; SHARDS];
        (0..6400).for_each(|i| used[shard_of((64_768, i))] += 1);
        assert!(used.iter().all(|&n| (50..200).contains(&n)), "{used:?}");
    }
}
