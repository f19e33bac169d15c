//! A file whose data is being copied.

use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{Dir, Metadata, Volume};

use super::item::OwnedItem;
use crate::transfer::Identity;
use crate::transfer::carriers;
use crate::transfer::data::Pair;
use crate::transfer::file::FileCopy;
use crate::transfer::temporaries::Temporary;

/// What was decided about a file whose data is to be copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What the destination had under its name.
    pub(super) found: Option<Metadata>,
    pub(super) differs: Difference,
    /// The inode of the source, if other names of it wait for the copy.
    pub(super) claim: Option<Identity>,
}

/// Both ends of a file, open.
#[derive(Debug)]
pub(super) struct Ends<F> {
    pub(super) copy: FileCopy<F>,
    /// The name of the copy until all is done.
    pub(super) temporary: Temporary,
}

/// A large file, which carriers get.
#[derive(Debug)]
pub(super) struct Load<'p, V: Volume> {
    pub(super) item: OwnedItem<'p, V>,
    pub(super) plan: Plan,
    pub(super) ends: Ends<<V::Dir as Dir>::File>,
}

impl<V: Volume> carriers::Load for Load<'_, V> {
    type File = <V::Dir as Dir>::File;

    fn pair(&self) -> Pair<'_, Self::File> {
        self.ends.copy.pair()
    }
}
