//! The other side of a traversal of two trees at once.
//!
//! One tree is traversed; for each of its directories, the visitor has the directory of the same path in the other
//! tree, and looks up its entries here. The other directory's names are read once, before the first entry is compared,
//! and each name that is looked up is removed: the names left at the end are in the other directory only. Neither side
//! needs an order, so nothing is sorted.
//!
//! Memory is bounded: nothing is kept of directories with more names than all of them may hold together. The caller
//! then looks up each name itself, and finds the names that are in the other directory only by listing it later
//! ([`Other::is_whole`]).

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use millstream_vfs::{Dir, DirentBatch, FileKind, ReadState, Result};

/// Bytes read of a directory at once.
const BATCH: usize = 32 << 10;

/// The limit of names that all directories of a traversal may hold of the other side.
#[derive(Debug)]
pub struct Pairing {
    room: AtomicUsize,
}

/// The entry of the other directory with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// Nothing.
    Missing,
    /// An entry, with the type that the directory lists.
    Present(FileKind),
    /// It must be looked up.
    Unknown,
}

/// The names of a directory that have not been looked up.
#[derive(Debug)]
pub struct Other<'p> {
    pairing: &'p Pairing,
    names: Option<Mutex<HashMap<Box<CStr>, FileKind>>>,
    held: usize,
}

impl Pairing {
    /// Directories hold at most this many names together.
    pub fn new(names: usize) -> Self {
        Pairing { room: AtomicUsize::new(names) }
    }

    /// Reads the names of `directory`, a handle that has not been read from.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn read<D: Dir>(&self, directory: &D) -> Result<Other<'_>> {
        let mut other = Other { pairing: self, names: None, held: 0 };
        let (mut cursor, mut batch) = (D::Cursor::default(), DirentBatch::with_capacity(BATCH));
        let mut names = HashMap::new();
        while directory.read_entries(&mut cursor, &mut batch)? == ReadState::More {
            let found = batch.iter().count();
            let take = |room: usize| room.checked_sub(found);
            if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                self.room.fetch_add(std::mem::take(&mut other.held), Ordering::Relaxed);
                return Ok(other);
            }
            other.held += found;
            names.extend(batch.iter().map(|entry| (Box::from(entry.name), entry.kind)));
        }
        other.names = Some(Mutex::new(names));
        Ok(other)
    }
}

impl Other<'_> {
    /// Whether all names are known.
    pub fn is_whole(&self) -> bool {
        self.names.is_some()
    }

    /// The entry with a name, unless it has been taken out.
    pub fn look(&self, name: &CStr) -> Counterpart {
        let Some(names) = &self.names else { return Counterpart::Unknown };
        let names = names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(name).map_or(Counterpart::Missing, |kind| Counterpart::Present(*kind))
    }

    /// Takes out the entry with a name.
    pub fn take(&self, name: &CStr) -> Counterpart {
        let Some(names) = &self.names else { return Counterpart::Unknown };
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(name).map_or(Counterpart::Missing, Counterpart::Present)
    }

    /// Takes out those of the remaining names that are wanted.
    pub fn take_those(&self, wanted: impl Fn(&CStr) -> bool) -> Vec<(Box<CStr>, FileKind)> {
        let Some(names) = &self.names else { return Vec::new() };
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        names.extract_if(|name, _| wanted(name)).collect()
    }

    /// Takes out the remaining names.
    pub fn take_rest(&self) -> Vec<(Box<CStr>, FileKind)> {
        let Some(names) = &self.names else { return Vec::new() };
        names.lock().unwrap_or_else(PoisonError::into_inner).drain().collect()
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        self.pairing.room.fetch_add(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use millstream_posix::PosixVolume;
    use millstream_vfs::{SymlinkBehavior, Volume};

    use super::*;

    #[test]
    fn names_are_taken_once_and_the_rest_is_left() {
        let scratch = tempfile::tempdir().expect("scratch");
        for name in ["a", "b", "c"] {
            std::fs::write(scratch.path().join(name), "").expect("written");
        }
        let path = CString::new(scratch.path().as_os_str().as_bytes()).expect("no NUL");
        let directory = || PosixVolume.base().open_dir(&path, SymlinkBehavior::Follow).expect("opens");
        let pairing = Pairing::new(3);
        let other = pairing.read(&directory()).expect("read");
        assert!(other.is_whole());
        assert_eq!(other.look(c"b"), Counterpart::Present(FileKind::File));
        assert_eq!(other.take(c"b"), Counterpart::Present(FileKind::File));
        assert_eq!((other.take(c"b"), other.take(c"x")), (Counterpart::Missing, Counterpart::Missing));
        let second = pairing.read(&directory()).expect("read");
        assert!(!second.is_whole(), "there is no room left");
        assert_eq!(second.take(c"a"), Counterpart::Unknown);
        let rest: HashSet<_> = other.take_rest().into_iter().map(|(name, _)| name).collect();
        assert_eq!(rest, HashSet::from([Box::from(c"a"), Box::from(c"c")]));
        drop((other, second));
        assert!(pairing.read(&directory()).expect("read").is_whole(), "the room is free again");
    }
}
