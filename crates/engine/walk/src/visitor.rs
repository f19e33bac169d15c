//! The visitor of a traversal, and the entries it is given.

use std::cell::OnceCell;
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use millstream_vfs::{
    Dir, Dirent, DirentBatch, DirentIter, Errno, Error, Fields, FileKind, Metadata, Result, SymlinkBehavior,
    Volume,
};

use crate::{Directory, FollowPolicy};

/// How the entries of a large directory are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOut {
    /// Chunks go to other workers. For visits that call the volume (a stat, a removal).
    Parallel,
    /// The worker that read a batch visits it, while another may read the next. For visits that only use name and type.
    Inline,
    /// As [`FanOut::Inline`], in directory order: a batch is visited before the next is read.
    Sequential,
    /// Entry by entry: each subtree is left before the next entry is visited. For [`crate::Order::Completion`] with one
    /// thread. Directories beyond the budget of handles are still visited as a whole before the subtrees below them.
    InOrder,
}

/// The consumer of a traversal.
///
/// For each directory, and first of all for the virtual one that holds the operands, the calls are:
/// [`visit`](Visitor::visit) for every chunk of its entries, possibly on several workers at once;
/// [`end_of_directory`](Visitor::end_of_directory) once, after the last of them; [`emit`](Visitor::emit), one at a time
/// for the whole traversal; [`leave`](Visitor::leave) after every directory below it has been left. A `visit`
/// happens-before every call for the directories that it descended into.
pub trait Visitor: Sync {
    /// The volume that is traversed.
    type Volume: Volume;
    /// State that the visitor keeps for each directory.
    type State: Send + Sync;
    /// State that the visitor keeps for each worker: buffers, counters.
    type Worker: Send;

    /// Creates the state of the virtual directory that holds the operands.
    fn root_state(&self) -> Self::State;

    /// Creates the state of one worker.
    fn worker(&self) -> Self::Worker;

    /// How the entries of a large directory are visited.
    fn fan_out(&self) -> FanOut;

    /// Visits entries, and descends into the directories that are wanted.
    fn visit(
        &self,
        worker: &mut Self::Worker,
        chunk: &Chunk<'_, Self::Volume, Self::State>,
        descend: &mut Descend<'_, Self::Volume, Self::State>,
    );

    /// All entries of `directory` have been visited, or it could not be opened ([`Visitor::fault`] has reported that).
    /// May descend into entries remembered from the visits, and write the directory's block of output.
    fn end_of_directory(
        &self,
        _worker: &mut Self::Worker,
        _directory: &Arc<Directory<Self::Volume, Self::State>>,
        _descend: &mut Descend<'_, Self::Volume, Self::State>,
        _block: &mut Vec<u8>,
    ) {
    }

    /// Takes a directory's block of output, in the order of the traversal's options. Empty blocks are not emitted.
    fn emit(&self, _block: &[u8]) {}

    /// The subtree of `directory` is done.
    fn leave(&self, _worker: &mut Self::Worker, _directory: &Arc<Directory<Self::Volume, Self::State>>) {}

    /// Whether to open and visit `directory`, which has just been left, once more, before its parent is left. For
    /// [`crate::Order::Completion`] only.
    fn again(&self, _directory: &Directory<Self::Volume, Self::State>) -> bool {
        false
    }

    /// Something failed; the traversal continues.
    fn fault(
        &self,
        worker: &mut Self::Worker,
        place: &FaultSite<'_, Self::Volume, Self::State>,
        fault: &Fault,
    );

    /// How long the calling worker has slept since it began because the visitor wanted it to, which does not count as
    /// waiting for the volume.
    fn slept(&self) -> Duration {
        Duration::ZERO
    }

    /// The worker will not be used any more.
    fn finish(&self, _worker: Self::Worker) {}
}

/// A failure during a traversal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An operation of the volume failed.
    #[error("{0}")]
    Volume(#[from] Error),
    /// A followed symbolic link leads to a directory that contains it.
    #[error("file system loop: this directory is the same as {}", .ancestor.escape_ascii())]
    Loop {
        /// Path of the ancestor that is the same directory.
        ancestor: Vec<u8>,
    },
}

/// Where a fault happened.
#[derive(Debug)]
pub enum FaultSite<'a, V: Volume, S> {
    /// At a directory as a whole: it could not be opened, or not be read completely.
    Directory(&'a Arc<Directory<V, S>>),
    /// At an entry of a directory.
    Entry(&'a Entry<'a, V, S>),
}

impl<V: Volume, S> FaultSite<'_, V, S> {
    /// Appends the path, starting with the operand as the user gave it.
    pub fn write_path(&self, path: &mut Vec<u8>) {
        match self {
            FaultSite::Directory(directory) => directory.write_path(path),
            FaultSite::Entry(entry) => entry.write_path(path),
        }
    }
}

/// Consecutive entries of one directory.
#[derive(Debug)]
pub struct Chunk<'a, V: Volume, S> {
    pub(crate) directory: &'a Arc<Directory<V, S>>,
    pub(crate) handle: &'a V::Dir,
    pub(crate) batch: &'a DirentBatch,
    pub(crate) range: Range<usize>,
    pub(crate) first_index: u64,
    pub(crate) follow: FollowPolicy,
}

impl<'a, V: Volume, S> Chunk<'a, V, S> {
    /// The directory.
    pub fn directory(&self) -> &'a Arc<Directory<V, S>> {
        self.directory
    }

    /// The directory's handle.
    pub fn handle(&self) -> &'a V::Dir {
        self.handle
    }

    /// The entries, in the order in which the volume listed them.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a, V, S>> {
        self.entries_of(self.batch.range(self.range.clone()))
    }

    /// The entries and, where the volume lists them, `.` and `..`.
    pub fn entries_and_dots(&self) -> impl Iterator<Item = Entry<'a, V, S>> {
        self.entries_of(self.batch.range(self.range.clone()).with_dots())
    }

    fn entries_of(&self, dirents: DirentIter<'a>) -> impl Iterator<Item = Entry<'a, V, S>> {
        let (directory, handle, follow) = (self.directory, self.handle, self.follow);
        let mut index = self.first_index;
        dirents.map(move |dirent| {
            let entry = Entry { directory, handle, dirent, index, follow, metadata: OnceCell::new() };
            index += 1;
            entry
        })
    }

    /// Position of the first entry within the directory; sorting chunks by it gives directory order.
    pub fn first_index(&self) -> u64 {
        self.first_index
    }
}

/// One entry of a directory, or one operand.
#[derive(Debug)]
pub struct Entry<'a, V: Volume, S> {
    directory: &'a Arc<Directory<V, S>>,
    handle: &'a V::Dir,
    dirent: Dirent<'a>,
    index: u64,
    follow: FollowPolicy,
    metadata: OnceCell<Metadata>,
}

impl<'a, V: Volume, S> Entry<'a, V, S> {
    /// The name; for an operand, the path as the user gave it.
    pub fn name(&self) -> &'a CStr {
        self.dirent.name
    }

    /// The directory that holds the entry.
    pub fn directory(&self) -> &'a Arc<Directory<V, S>> {
        self.directory
    }

    /// The handle of the directory that holds the entry.
    pub fn handle(&self) -> &'a V::Dir {
        self.handle
    }

    /// Position within the directory, in the order in which the volume listed the entries. For an operand, its position
    /// on the command line, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Depth below the operand, which is at 0.
    pub fn depth(&self) -> u32 {
        self.directory.entry_depth()
    }

    /// Index of the operand that the entry is or is below.
    pub fn operand(&self) -> u64 {
        self.directory.operand().unwrap_or(self.index)
    }

    /// Inode number from the directory entry, 0 for an operand.
    pub fn ino(&self) -> u64 {
        self.dirent.ino
    }

    /// Type from the directory entry, without a call: possibly unknown, and never that of a link's target.
    pub fn listed_kind(&self) -> FileKind {
        self.dirent.kind
    }

    /// Whether this entry is followed if it is a symbolic link.
    pub fn symlinks(&self) -> SymlinkBehavior {
        self.follow.at_depth(self.depth())
    }

    /// Type of the entry, or of its target where links are followed. Calls the volume only if the directory entry does
    /// not have it.
    ///
    /// # Errors
    /// Those of [`Entry::metadata`].
    pub fn kind(&self) -> Result<FileKind> {
        let decided = match self.dirent.kind {
            FileKind::Unknown => false,
            FileKind::Symlink => self.symlinks() == SymlinkBehavior::NoFollow,
            _ => true,
        };
        if decided { Ok(self.dirent.kind) } else { self.metadata(Fields::KIND).map(|m| m.kind()) }
    }

    /// Metadata with at least `fields`: of the target where links are followed, of the link itself if it dangles. The
    /// first answer is cached, so the first request should ask for all fields that will be needed.
    ///
    /// # Errors
    /// Those of the volume's `metadata`.
    pub fn metadata(&self, fields: Fields) -> Result<Metadata> {
        if let Some(kept) = self.metadata.get().filter(|kept| kept.fields.contains(fields)) {
            return Ok(*kept);
        }
        let fetched = self.fetch_metadata(fields)?;
        // The answer to a second, larger request is not cached.
        let _ = self.metadata.set(fetched);
        Ok(fetched)
    }

    fn fetch_metadata(&self, fields: Fields) -> Result<Metadata> {
        let behavior = self.symlinks();
        match self.examine(behavior, fields) {
            Err(e)
                if behavior == SymlinkBehavior::Follow && matches!(e.errno, Errno::NOENT | Errno::LOOP) =>
            {
                // A dangling link counts as itself. If the link is gone too, the first error is more informative.
                self.handle.metadata(self.dirent.name, SymlinkBehavior::NoFollow, fields).map_err(|_| e)
            }
            result => result,
        }
    }

    /// Metadata of the entry itself, never of a link's target.
    ///
    /// # Errors
    /// Those of the volume's `metadata`.
    pub fn link_metadata(&self, fields: Fields) -> Result<Metadata> {
        match self.symlinks() {
            SymlinkBehavior::NoFollow => self.metadata(fields),
            SymlinkBehavior::Follow => {
                self.handle.metadata(self.dirent.name, SymlinkBehavior::NoFollow, fields)
            }
        }
    }

    /// Metadata of the entry with links followed, whatever the policy.
    ///
    /// # Errors
    /// As [`Entry::examine`].
    pub fn target_metadata(&self, fields: Fields) -> Result<Metadata> {
        self.examine(SymlinkBehavior::Follow, fields)
    }

    /// Metadata of the entry, or of its target, by one call that is not cached.
    ///
    /// # Errors
    /// Those of the volume's `metadata`; `ELOOP` also if the entry's path leads through more symbolic links than the
    /// volume follows on one path.
    pub fn examine(&self, symlinks: SymlinkBehavior, fields: Fields) -> Result<Metadata> {
        let by_path = symlinks == SymlinkBehavior::Follow
            && self.dirent.kind == FileKind::Symlink
            && self.directory.is_behind_link();
        match by_path.then(|| self.examine_by_path(fields)).flatten() {
            Some(examined) => examined,
            None => self.handle.metadata(self.dirent.name, symlinks, fields),
        }
    }

    /// Metadata of the target of a link in a directory that was itself reached through a link. From a handle, every
    /// link is the first one; only the path counts them all. [`None`] if the path is too long.
    fn examine_by_path(&self, fields: Fields) -> Option<Result<Metadata>> {
        let base = self.directory.operands().slot.get()?;
        let mut path = Vec::new();
        self.write_path(&mut path);
        let path = CString::new(path).ok()?;
        let examine = || base.metadata(&path, SymlinkBehavior::Follow, fields);
        let failed_with = |examined: &Result<Metadata>, errno| examined.is_err_and(|e| e.errno == errno);
        let mut examined = examine();
        if failed_with(&examined, Errno::LOOP) {
            // If something changed on the way, Linux starts again but does not reset the count.
            examined = examine();
        }
        (!failed_with(&examined, Errno::NAMETOOLONG)).then_some(examined)
    }

    /// The target of the symbolic link.
    ///
    /// # Errors
    /// Those of the volume's `read_link`.
    pub fn read_link(&self) -> Result<Vec<u8>> {
        self.handle.read_link(self.dirent.name)
    }

    /// Appends the path, starting with the operand as the user gave it.
    pub fn write_path(&self, path: &mut Vec<u8>) {
        self.directory.write_prefix(path);
        path.extend_from_slice(self.dirent.name.to_bytes());
    }
}

/// Collects the directories that a visit descends into. Their tasks become visible to other workers when the visit
/// returns.
#[derive(Debug)]
pub struct Descend<'a, V: Volume, S> {
    pub(crate) directory: &'a Arc<Directory<V, S>>,
    pub(crate) found: &'a mut Vec<Arc<Directory<V, S>>>,
    pub(crate) follow: FollowPolicy,
}

impl<V: Volume, S> Descend<'_, V, S> {
    /// Traverses `entry`, which must be a directory (or a link to one that the policy follows).
    pub fn into_entry(&mut self, entry: &Entry<'_, V, S>, state: S) {
        self.into_name(entry.name(), entry.listed_kind(), entry.operand(), state);
    }

    /// Traverses the entry `name`, remembered from a visit of this directory; `listed` and `operand` as
    /// [`Entry::listed_kind`] and [`Entry::operand`] gave them.
    pub fn into_name(&mut self, name: &CStr, listed: FileKind, operand: u64, state: S) {
        self.found.push(Directory::child(self.directory, (name, listed), operand, self.follow, state));
    }

    /// Whether this visit has descended into anything yet.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}
