//! Files that several units read.
//!
//! The parts of a large range are read by different threads, and some long after others. They share one open file, so
//! that all rows come from one version of it: a file that is replaced or removed meanwhile is read to its end, as by a
//! program that opened it once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use millstream_vfs::Result;

use crate::decoded::{self, Opened};
use crate::source::{FileRange, Source};

type Once<F> = Arc<OnceLock<Result<Opened<F>>>>;

/// The open files of ranges that are read in parts.
#[derive(Debug)]
pub(crate) struct SharedFiles<F> {
    open: Mutex<HashMap<usize, Shared<F>>>,
}

#[derive(Debug)]
struct Shared<F> {
    file: Once<F>,
    /// Parts that have not been read.
    left: u64,
}

impl<F> Default for SharedFiles<F> {
    fn default() -> Self {
        SharedFiles { open: Mutex::default() }
    }
}

impl<F> SharedFiles<F> {
    /// Calls `read` with the file of range `index`, which is opened for the first of its `parts` parts, and closed
    /// after the last. A failure to open it is that of every part.
    pub(crate) fn with<S: Source<File = F>, T>(
        &self,
        source: &S,
        (index, range): (usize, &FileRange),
        parts: u64,
        read: impl FnOnce(&Result<Opened<F>>) -> T,
    ) -> T {
        let file = {
            let mut open = self.lock();
            let shared = open.entry(index).or_insert_with(|| Shared { file: Arc::default(), left: parts });
            shared.left -= 1;
            match shared.left {
                0 => open.remove(&index).map(|shared| shared.file).unwrap_or_default(),
                _ => Arc::clone(&shared.file),
            }
        };
        read(file.get_or_init(|| decoded::open(source, index, range)))
    }

    /// Closes all files that nobody is reading.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Shared<F>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
