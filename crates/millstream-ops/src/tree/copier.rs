//! The data of copies into a tree.

use std::cell::RefCell;
use std::sync::LazyLock;

use millstream_vfs::File;
use millstream_walk::Cancellation;

use crate::activity::Activity;
use crate::transfer::data::Mover;
use crate::transfer::file::{CopyError, FileCopy, SourceChange};
use crate::transfer::options::{DataOptions, Reflink, Sparse, Verification};

/// Nobody watches single copies.
static UNWATCHED: LazyLock<Activity> = LazyLock::new(Activity::default);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Moves the data of copies into a tree, and remembers between which devices that can be done how.
#[derive(Debug)]
pub(super) struct Copier {
    mover: Mover<'static>,
    sparse: Sparse,
}

impl Copier {
    pub(super) fn new(sparse: Sparse, bytes_per_second: Option<u64>, cancellation: Cancellation) -> Self {
        let options = DataOptions { reflink: Reflink::Auto, sparse, bytes_per_second, cancellation };
        Copier { mover: Mover::new(options, &UNWATCHED), sparse }
    }

    /// Copies the data; the length, what has become of the source, and the checksum if it was computed.
    pub(super) fn fill<F: File>(
        &self,
        copy: &FileCopy<F>,
        verification: Verification,
    ) -> Result<(u64, SourceChange, Option<u128>), CopyError> {
        BUFFER.with_borrow_mut(|buffer| self.fill_by(copy, verification, buffer))
    }

    fn fill_by<F: File>(
        &self,
        copy: &FileCopy<F>,
        verification: Verification,
        buffer: &mut Vec<u8>,
    ) -> Result<(u64, SourceChange, Option<u128>), CopyError> {
        let bytes = self.mover.whole(&copy.pair(), buffer)?;
        copy.finish_data(bytes, self.sparse)?;
        let change = copy.change(bytes)?;
        // What is not complete cannot be like its source.
        let verifies = verification == Verification::Checksum && change == SourceChange::Unchanged;
        let checksum = if verifies { Some(copy.compare(&copy.destination, buffer)?) } else { None };
        Ok((bytes, change, checksum))
    }
}
