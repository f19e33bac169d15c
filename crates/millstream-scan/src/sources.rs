//! Files that several units read.
//!
//! The parts of a large range are read by different threads, and some long after others. They share one open file, so that
//! all rows come from one version of it: a file that is replaced or removed meanwhile is read to its end, as by a program that
//! opened it once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use millstream_vfs::{Access, Dir, Result, SymlinkBehavior};

use crate::range::FileRange;

type Opened<F> = Arc<OnceLock<Result<F>>>;

/// The open files of ranges that are read in parts.
#[derive(Debug)]
pub(crate) struct Sources<F> {
    open: Mutex<HashMap<usize, Source<F>>>,
}

#[derive(Debug)]
struct Source<F> {
    file: Opened<F>,
    /// Parts that have not been read.
    left: u64,
}

impl<F> Default for Sources<F> {
    fn default() -> Self {
        Sources { open: Mutex::default() }
    }
}

impl<F> Sources<F> {
    /// Calls `read` with the file of range `index`, which is opened for the first of its `parts` parts, and closed after the
    /// last. A failure to open it is that of every part.
    pub(crate) fn with<D: Dir<File = F>, T>(
        &self,
        base: &D,
        (index, range): (usize, &FileRange),
        parts: u64,
        read: impl FnOnce(&Result<F>) -> T,
    ) -> T {
        let file = {
            let mut open = self.lock();
            let source = open.entry(index).or_insert_with(|| Source { file: Arc::default(), left: parts });
            source.left -= 1;
            match source.left {
                0 => open.remove(&index).map(|source| source.file).unwrap_or_default(),
                _ => Arc::clone(&source.file),
            }
        };
        read(file.get_or_init(|| base.open_file(&range.path, Access::Read, SymlinkBehavior::Follow)))
    }

    /// Closes all files that nobody is reading.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Source<F>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
