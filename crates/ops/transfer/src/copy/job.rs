//! The state of one copy, from the decision to the end.

use std::ffi::CString;

use millstream_vfs::{Dir, Errno, Fields, FileKind, Metadata, Volume};

use super::item::OwnedItem;
use crate::transfer::Identity;
use crate::transfer::copy_workers;
use crate::transfer::data::Pair;
use crate::transfer::file::FileCopy;
use crate::transfer::temporaries::Temporary;

pub(super) type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// The existing file at the destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Present {
    /// Metadata of the name itself.
    pub(super) link: Metadata,
    /// Metadata of its target; [`None`] for a dangling symbolic link.
    pub(super) target: Option<Metadata>,
    /// Whether it is a symbolic link to a name that does not exist.
    pub(super) dangles: bool,
    /// Why the target of a symbolic link could not be examined.
    pub(super) unreachable: Option<Errno>,
}

impl Present {
    pub(super) fn is_link(&self) -> bool {
        self.link.kind() == FileKind::Symlink
    }

    pub(super) fn is_directory(&self) -> bool {
        self.link.kind() == FileKind::Directory
    }
}

/// Whether the name of a copy is in use by something that the copy replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameState {
    /// It is not, or what is there gets the contents.
    Free,
    /// It is, until the new link or node has been made and takes the name.
    Taken,
}

/// One copy.
#[derive(Debug)]
pub(super) struct Job<V: Volume> {
    /// Metadata of the source.
    pub(super) metadata: Metadata,
    /// The open source, if it has been opened.
    pub(super) source: Option<FileOf<V>>,
    /// The existing file that is overwritten.
    pub(super) reused: Option<Present>,
    /// What happens to an existing file that is not overwritten.
    pub(super) name: NameState,
    /// The backup of the existing file.
    pub(super) backup: Option<CString>,
    /// Whether other names of the source wait for the copy.
    pub(super) is_claimed: bool,
}

impl<V: Volume> Job<V> {
    /// A job for a source that has been examined and possibly opened.
    pub(super) fn of(metadata: Metadata, source: Option<FileOf<V>>) -> Self {
        Job { metadata, source, reused: None, name: NameState::Free, backup: None, is_claimed: false }
    }
}

/// The making of a copy whose two ends are open.
#[derive(Debug)]
pub(super) struct Transfer<V: Volume> {
    pub(super) job: Job<V>,
    pub(super) copy: FileCopy<FileOf<V>>,
    /// The name until all is done.
    pub(super) temporary: Option<Temporary>,
}

impl<V: Volume> Transfer<V> {
    /// The inode that the name of the copy stands for: a link that was written through stays.
    pub(super) fn inode(&self) -> Option<Identity> {
        match &self.job.reused {
            Some(present) if present.is_link() => Some(present.link.identity()),
            _ => self.copy.before.fields.contains(Fields::INO).then(|| self.copy.before.identity()),
        }
    }
}

/// A large file that the copy workers get.
#[derive(Debug)]
pub(super) struct Load<V: Volume> {
    pub(super) transfer: Transfer<V>,
    pub(super) item: OwnedItem<V>,
}

impl<V: Volume> copy_workers::Load for Load<V> {
    type File = FileOf<V>;

    fn pair(&self) -> Pair<'_, FileOf<V>> {
        self.transfer.copy.pair()
    }
}
