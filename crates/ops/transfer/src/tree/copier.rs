//! The data of copies into a tree.

use std::cell::RefCell;
use std::sync::LazyLock;

use millstream_system::concurrency::Budget;
use millstream_vfs::{Error, File};
use millstream_walk::Cancellation;

use crate::transfer::copy_workers::{CHUNK, Watch};
use crate::transfer::data::{Mover, Pair};
use crate::transfer::file::{CopyError, FileCopy, SourceChange};
use crate::transfer::options::{DataOptions, Reflink, Sparse, Verification};
use crate::transfer::parts::share;
use millstream_operation::activity::Activity;

/// Most threads that large files get besides those that have them, for all files of a tree together.
const THREADS: usize = 8;

/// Nobody watches single copies.
static UNWATCHED: LazyLock<Activity> = LazyLock::new(Activity::default);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function with the buffer of this thread.
pub(super) fn with_buffer<R>(run: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    BUFFER.with_borrow_mut(run)
}

/// Moves the data of copies into a tree, and remembers between which devices that can be done how. A large file is
/// copied in chunks, by several threads if the calls of one wait.
#[derive(Debug)]
pub(super) struct Copier {
    mover: Mover<'static>,
    sparse: Sparse,
    pub(super) threads: Budget,
}

impl Copier {
    pub(super) fn new(sparse: Sparse, bytes_per_second: Option<u64>, cancellation: Cancellation) -> Self {
        let options = DataOptions { reflink: Reflink::Auto, sparse, bytes_per_second, cancellation };
        Copier { mover: Mover::new(options, &UNWATCHED), sparse, threads: Budget::new(THREADS) }
    }

    /// Copies the data; the length, what has become of the source, and the checksum if it was computed.
    pub(super) fn fill<F: File>(
        &self,
        copy: &FileCopy<F>,
        verification: Verification,
    ) -> Result<(u64, SourceChange, Option<u128>), CopyError> {
        with_buffer(|buffer| self.fill_by(copy, verification, buffer))
    }

    fn fill_by<F: File>(
        &self,
        copy: &FileCopy<F>,
        verification: Verification,
        buffer: &mut Vec<u8>,
    ) -> Result<(u64, SourceChange, Option<u128>), CopyError> {
        let pair = copy.pair();
        let bytes = if pair.metadata.size > CHUNK {
            self.in_chunks(&pair, buffer)
        } else {
            self.mover.whole(&pair, buffer)
        }?;
        copy.finish_data(bytes, self.sparse)?;
        let change = copy.change(bytes)?;
        // What is not complete cannot be like its source.
        let verifies = verification == Verification::Checksum && change == SourceChange::Unchanged;
        let checksum = if verifies { Some(copy.compare(&copy.destination, buffer)?) } else { None };
        Ok((bytes, change, checksum))
    }

    fn in_chunks<F: File>(&self, pair: &Pair<'_, F>, buffer: &mut Vec<u8>) -> Result<u64, Error> {
        if self.mover.clone(pair)? {
            return Ok(pair.metadata.size);
        }
        let (size, mut watch, mut is_alone) = (pair.metadata.size, Watch::start(), true);
        let wants_more = || {
            let has_waited = watch.has_waited();
            if has_waited && std::mem::take(&mut is_alone) && self.mover.fills(pair) {
                // Chunks no longer come in order. Where space cannot be taken in advance it is taken as it comes.
                let _ = pair.destination.allocate(size);
            }
            has_waited
        };
        share(&self.threads, size.div_ceil(CHUNK), buffer, wants_more, |chunk, buffer| {
            let start = chunk * CHUNK;
            self.mover.range(pair, start, (start + CHUNK).min(size), buffer)
        })?;
        self.mover.tail(pair, buffer)
    }
}
