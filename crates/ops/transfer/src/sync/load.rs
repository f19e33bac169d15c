//! A file whose data is being copied.

use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{Dir, Metadata, Volume};

use super::item::OwnedItem;
use crate::transfer::Identity;
use crate::transfer::copy_workers;
use crate::transfer::data::Pair;
use crate::transfer::file::FileCopy;
use crate::transfer::temporaries::Temporary;

/// A source that has been examined, and possibly opened.
#[derive(Debug)]
pub(super) struct Examined<F> {
    pub(super) metadata: Metadata,
    pub(super) file: Option<F>,
}

/// What was decided about a file whose data is to be copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What the destination had under its name.
    pub(super) found: Option<Metadata>,
    pub(super) differs: Difference,
    /// The inode of the source, if other names of it wait for the copy.
    pub(super) claim: Option<Identity>,
}

/// The making of a copy whose two ends are open.
#[derive(Debug)]
pub(super) struct Transfer<F> {
    pub(super) plan: Plan,
    pub(super) copy: FileCopy<F>,
    /// The name of the copy until all is done.
    pub(super) temporary: Temporary,
}

/// A large file, which copy workers get.
#[derive(Debug)]
pub(super) struct Load<'p, V: Volume> {
    pub(super) item: OwnedItem<'p, V>,
    pub(super) transfer: Transfer<<V::Dir as Dir>::File>,
}

impl<V: Volume> copy_workers::Load for Load<'_, V> {
    type File = <V::Dir as Dir>::File;

    fn pair(&self) -> Pair<'_, Self::File> {
        self.transfer.copy.pair()
    }
}
