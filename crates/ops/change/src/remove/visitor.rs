//! The visitor: unlinks files, and removes directories when it leaves them.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use millstream_vfs::{
    Dir, DirentBatch, Errno, Error, Fields, FileKind, Operation, ReadState, RemoveKind, Result,
    SymlinkBehavior, Volume, is_writable,
};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, Visitor};

use super::turn::Turns;
use super::{
    Cause, Directories, Execution, FileSystems, Guard, Options, Pass, PreserveRoot, Prompts, Question, Sink,
    Step,
};
use millstream_operation::activity::Activity;
use millstream_text::operands::ends_in_dots;

/// How often a directory is read again if it was not empty after all listed entries were removed. On a file system
/// whose listing skips every other entry during removals, a million entries need 20 passes.
const MAX_PASSES: u32 = 64;
/// Buffer size for checking whether a directory has any entries.
const PEEK: usize = 1024;

pub(super) struct Remover<'a, V: Volume> {
    pub(super) options: &'a Options,
    pub(super) sink: &'a dyn Sink,
    pub(super) turns: Turns<'a>,
    pub(super) activity: &'a Activity,
    pub(super) pass: Pass,
    pub(super) prompts: Prompts,
    /// For each operand, whether anything of it is left.
    pub(super) left: &'a [AtomicBool],
    pub(super) base: V::Dir,
    pub(super) root_identity: OnceLock<Result<(u64, u64)>>,
    pub(super) guard: Option<&'a dyn Guard>,
}

/// A directory being emptied.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Something below stays for good: the directory is not removed, and nothing is reported about it.
    pub(super) stays: AtomicBool,
    /// The user wanted to keep something in it.
    pub(super) spared: AtomicBool,
    /// Why it could not be opened.
    pub(super) unreadable: OnceLock<Errno>,
    /// Device of the operand.
    pub(super) device: u64,
    pub(super) write_protected: bool,
    /// Something in it has been removed since it was opened.
    pub(super) progressed: AtomicBool,
    pub(super) passes: AtomicU32,
    pub(super) again: AtomicBool,
}

/// A worker's buffers.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) lines: Vec<u8>,
    pub(super) path: Vec<u8>,
}

/// The outcome of an entry.
pub(super) enum Outcome {
    Removed(RemoveKind),
    Descended,
    /// The user wants to keep it.
    Spared,
    /// It stays, and so do its ancestors.
    Stays,
}

/// The outcome of a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    /// It must be asked in a later pass.
    Later,
}

pub(super) type Done = std::result::Result<Outcome, Cause>;

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        Cause::Failed(error)
    }
}

impl<'a, V: Volume> Remover<'a, V> {
    pub(super) fn new(
        volume: &V,
        options: &'a Options,
        sink: &'a dyn Sink,
        activity: &'a Activity,
        pass: Pass,
        left: &'a [AtomicBool],
    ) -> Self {
        let prompts = if pass == Pass::Unasked { Prompts::Never } else { options.prompts };
        let base = volume.base();
        let (turns, root_identity) = (Turns::new(sink), OnceLock::new());
        Remover { options, sink, turns, activity, pass, prompts, left, base, root_identity, guard: None }
    }

    /// Has `guard` decide about each entry.
    pub(super) fn guarded_by(mut self, guard: &'a dyn Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Whether the guard, if there is one, lets an entry go.
    fn is_admitted(&self, own: &mut Buffers, entry: &Entry<'_, V, Node>) -> Result<bool> {
        let Some(guard) = self.guard else { return Ok(true) };
        own.path.clear();
        entry.write_path(&mut own.path);
        Ok(guard.admits(&own.path, entry.kind()? == FileKind::Directory))
    }

    /// Whether one more entry may be removed.
    fn may_remove(&self) -> bool {
        self.guard.is_none_or(|guard| guard.take())
    }

    /// Whether an entry may be unlinked before its type is known.
    fn may_try(&self) -> bool {
        self.prompts == Prompts::Never && self.options.execution == Execution::Real && self.guard.is_none()
    }

    fn operand(
        &self,
        own: &mut Buffers,
        entry: &Entry<'_, V, Node>,
        descend: &mut Descend<'_, V, Node>,
    ) -> Done {
        if !self.is_admitted(own, entry)? {
            return Ok(Outcome::Stays);
        }
        let failed = match self.may_try().then(|| entry.handle().remove(entry.name(), RemoveKind::File)) {
            Some(Ok(())) => return Ok(Outcome::Removed(RemoveKind::File)),
            Some(Err(error)) if error.errno == Errno::NOENT => return Err(error.into()),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let metadata = entry.metadata(Fields::KIND | Fields::INO | Fields::SIZE);
        let metadata = metadata.map_err(|error| match failed {
            // A read-only file system reports that before it checks whether the file exists.
            Some(failed) if failed.errno == Errno::ROFS => error,
            // Otherwise the first error is more informative than the failed stat.
            Some(failed) => failed,
            None => error,
        })?;
        if metadata.kind() != FileKind::Directory {
            return failed.map_or_else(|| self.file(own, entry), |error| Err(error.into()));
        }
        let refused = |errno| Cause::Failed(Error::new(Operation::Remove, errno));
        match self.options.directories {
            Directories::Refuse => return Err(refused(Errno::ISDIR)),
            // The removal itself shows whether it is empty, unless the directory may not be read.
            Directories::Empty if self.options.execution == Execution::DryRun => {
                if let Contents::Some = contents(entry) {
                    return Err(refused(Errno::NOTEMPTY));
                }
            }
            Directories::Empty => {}
            Directories::Recursive => self.check_operand(entry, metadata.identity())?,
        }
        let device = match self.options.file_systems {
            FileSystems::One => device_within(entry)?,
            FileSystems::All => metadata.dev,
        };
        self.directory(own, entry, device, descend)
    }

    /// Refuses operands that must not be removed.
    fn check_operand(
        &self,
        entry: &Entry<'_, V, Node>,
        identity: (u64, u64),
    ) -> std::result::Result<(), Cause> {
        if ends_in_dots(entry.name()) {
            return Err(Cause::Dots);
        }
        if self.options.preserve_root == PreserveRoot::Off {
            return Ok(());
        }
        let root = self.root_identity.get_or_init(|| {
            let root = self.base.metadata(c"/", SymlinkBehavior::NoFollow, Fields::INO);
            root.map(|metadata| metadata.identity())
        });
        if (*root)? == identity {
            return Err(Cause::Root);
        }
        if self.options.preserve_root == PreserveRoot::MountPoints {
            let device = device_within(entry)?;
            let above = parent_of(entry.name());
            match entry.handle().metadata(&above, SymlinkBehavior::Follow, Fields::INO) {
                Ok(above) if above.dev == device => {}
                Ok(_) => return Err(Cause::MountPoint),
                Err(error) => return Err(Cause::UnknownParent(error)),
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        own: &mut Buffers,
        entry: &Entry<'_, V, Node>,
        descend: &mut Descend<'_, V, Node>,
    ) -> Done {
        if !self.is_admitted(own, entry)? {
            return Ok(Outcome::Stays);
        }
        let device = entry.directory().state().device;
        match entry.listed_kind() {
            FileKind::Directory => self.directory(own, entry, device, descend),
            FileKind::Unknown if self.may_try() => {
                let tried = entry.handle().remove(entry.name(), RemoveKind::File);
                match tried {
                    Err(_) if entry.kind() == Ok(FileKind::Directory) => {
                        self.directory(own, entry, device, descend)
                    }
                    tried => Ok(tried.map(|()| Outcome::Removed(RemoveKind::File))?),
                }
            }
            FileKind::Unknown if entry.kind()? == FileKind::Directory => {
                self.directory(own, entry, device, descend)
            }
            _ => self.file(own, entry),
        }
    }

    fn file(&self, own: &mut Buffers, entry: &Entry<'_, V, Node>) -> Done {
        let write_protected = self.prompts != Prompts::Never
            && entry.kind()? != FileKind::Symlink
            && is_write_protected(entry.handle(), entry.name());
        if self.asks(write_protected) {
            let metadata = entry.metadata(Fields::KIND | Fields::SIZE)?;
            let step = Step::Remove { kind: metadata.kind(), size: metadata.size };
            match self.ask(own, &FaultSite::Entry(entry), step, write_protected) {
                Answer::Yes => {}
                Answer::No => return Ok(Outcome::Spared),
                Answer::Later => return Ok(Outcome::Stays),
            }
        }
        self.unlink(entry, RemoveKind::File).map_err(|cause| match self.pass {
            // A file that cannot be examined either is a separate case: GNU rm asks about the directory all the same.
            Pass::Ordered => entry.metadata(Fields::SIZE).map_or_else(Cause::from, |_| cause),
            _ => cause,
        })
    }

    /// Refuses mount points, also those of the same device, if there is a guard.
    fn refuse_mounts(&self, entry: &Entry<'_, V, Node>) -> std::result::Result<(), Cause> {
        let is_mounted = self.guard.is_some() && entry.link_metadata(Fields::MODE)?.is_mount_root;
        if is_mounted { Err(Cause::OtherDevice) } else { Ok(()) }
    }

    /// A directory below an operand on `device`, or the operand itself.
    fn directory(
        &self,
        own: &mut Buffers,
        entry: &Entry<'_, V, Node>,
        device: u64,
        descend: &mut Descend<'_, V, Node>,
    ) -> Done {
        self.refuse_mounts(entry)?;
        let write_protected =
            self.prompts != Prompts::Never && is_write_protected(entry.handle(), entry.name());
        if self.asks(write_protected) {
            entry.metadata(Fields::KIND | Fields::INO)?;
            let contents = contents(entry);
            let only_empty = self.options.directories == Directories::Empty;
            let step = match contents {
                Contents::None => Step::Remove { kind: FileKind::Directory, size: 0 },
                Contents::Unknown(_) if only_empty => Step::Attempt,
                Contents::Unknown(error) => return Err(error.into()),
                Contents::Some if only_empty => {
                    return Err(Error::new(Operation::Remove, Errno::ISDIR).into());
                }
                Contents::Some => Step::Descend,
            };
            if self.ask(own, &FaultSite::Entry(entry), step, write_protected) != Answer::Yes {
                return Ok(Outcome::Stays);
            }
            if contents == Contents::None {
                return self.unlink(entry, RemoveKind::Directory);
            }
        }
        if self.options.directories == Directories::Empty {
            return self.unlink(entry, RemoveKind::Directory);
        }
        if self.options.file_systems == FileSystems::One && device_within(entry)? != device {
            return if contents(entry) == Contents::None {
                self.unlink(entry, RemoveKind::Directory)
            } else {
                Err(Cause::OtherDevice)
            };
        }
        if self.guard.is_some_and(|guard| guard.opens_directories()) {
            open_up(entry);
        }
        descend.into_entry(entry, Node { device, write_protected, ..Node::default() });
        Ok(Outcome::Descended)
    }

    fn unlink(&self, entry: &Entry<'_, V, Node>, kind: RemoveKind) -> Done {
        if !self.may_remove() {
            return Ok(Outcome::Stays);
        }
        if self.options.execution == Execution::Real {
            entry.handle().remove(entry.name(), kind)?;
        }
        Ok(Outcome::Removed(kind))
    }

    fn asks(&self, write_protected: bool) -> bool {
        match self.prompts {
            Prompts::Never => false,
            Prompts::WriteProtected => write_protected,
            Prompts::Always => true,
        }
    }

    fn ask(
        &self,
        own: &mut Buffers,
        place: &FaultSite<'_, V, Node>,
        step: Step,
        write_protected: bool,
    ) -> Answer {
        if self.pass == Pass::Sweep {
            return Answer::Later;
        }
        own.path.clear();
        place.write_path(&mut own.path);
        match self.sink.approve(&Question { step, write_protected, path: &own.path }) {
            true => Answer::Yes,
            false => Answer::No,
        }
    }

    /// Removes an emptied directory.
    fn remove_left(
        &self,
        own: &mut Buffers,
        directory: &Arc<Directory<V, Node>>,
        parent: &Directory<V, Node>,
    ) -> Done {
        let node = directory.state();
        if self.asks(node.write_protected) {
            let step = Step::Remove { kind: FileKind::Directory, size: 0 };
            match self.ask(own, &FaultSite::Directory(directory), step, node.write_protected) {
                Answer::Yes => {}
                Answer::No => return Ok(Outcome::Spared),
                Answer::Later => return Ok(Outcome::Stays),
            }
        }
        if !self.may_remove() {
            return Ok(Outcome::Stays);
        }
        if self.options.execution == Execution::DryRun {
            return match node.unreadable.get() {
                Some(&errno) => Err(Error::new(Operation::OpenDir, errno).into()),
                None => Ok(Outcome::Removed(RemoveKind::Directory)),
            };
        }
        let removed =
            parent.handle().and_then(|parent| parent.remove(directory.name(), RemoveKind::Directory));
        match removed {
            Ok(()) => Ok(Outcome::Removed(RemoveKind::Directory)),
            Err(error) if is_not_empty(error) => match node.unreadable.get() {
                Some(&errno) => Err(Error::new(Operation::OpenDir, errno).into()),
                None if node.is_worth_another_pass() => {
                    node.again.store(true, Ordering::Relaxed);
                    Ok(Outcome::Descended)
                }
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}

impl Node {
    fn is_worth_another_pass(&self) -> bool {
        self.progressed.swap(false, Ordering::Relaxed)
            && !self.spared.load(Ordering::Relaxed)
            && self.passes.fetch_add(1, Ordering::Relaxed) < MAX_PASSES
    }
}

impl<V: Volume> Visitor for Remover<'_, V> {
    type Volume = V;
    type State = Node;
    type Worker = Buffers;

    fn root_state(&self) -> Node {
        Node::default()
    }

    fn worker(&self) -> Buffers {
        self.activity.add_thread();
        Buffers::default()
    }

    fn fan_out(&self) -> FanOut {
        if self.pass == Pass::Ordered { FanOut::InOrder } else { FanOut::Parallel }
    }

    fn visit(&self, own: &mut Buffers, chunk: &Chunk<'_, V, Node>, descend: &mut Descend<'_, V, Node>) {
        let directory = chunk.directory();
        let are_operands = directory.parent().is_none();
        let mut tally = self.activity.tally();
        for entry in chunk.entries() {
            let operand = entry.operand();
            let done = match are_operands {
                true => self.operand(own, &entry, descend),
                false => self.entry(own, &entry, descend),
            };
            let is_done = are_operands && !matches!(done, Ok(Outcome::Descended));
            self.conclude(own, &FaultSite::Entry(&entry), directory, operand, done);
            if is_done {
                self.flush(own, operand);
                self.turns.done(operand);
            }
            tally.add();
        }
        self.flush(own, directory.operand().unwrap_or_default());
    }

    fn leave(&self, own: &mut Buffers, directory: &Arc<Directory<V, Node>>) {
        let (Some(parent), Some(operand)) = (directory.parent(), directory.operand()) else { return };
        let node = directory.state();
        self.activity.add_directory();
        node.again.store(false, Ordering::Relaxed);
        if !node.stays.load(Ordering::Relaxed) {
            let done = self.remove_left(own, directory, parent);
            self.conclude(own, &FaultSite::Directory(directory), parent, operand, done);
            self.flush(own, operand);
        }
        if directory.depth() == Some(0) && !node.again.load(Ordering::Relaxed) {
            self.turns.done(operand);
        }
    }

    fn again(&self, directory: &Directory<V, Node>) -> bool {
        directory.state().again.load(Ordering::Relaxed)
    }

    fn fault(&self, own: &mut Buffers, place: &FaultSite<'_, V, Node>, fault: &Fault) {
        let FaultSite::Directory(directory) = place else { return };
        let Fault::Volume(error) = fault else { return self.cycle(own, directory) };
        if error.operation == Operation::OpenDir {
            // It may be empty: the attempt to remove it when leaving shows that.
            let _ = directory.state().unreadable.set(error.errno);
        } else {
            let operand = directory.operand().unwrap_or_default();
            self.report(own, place, operand, Cause::Failed(*error));
            self.keep(directory, operand);
            self.flush(own, operand);
        }
    }
}

/// Gives the owner of a directory all permissions. If that fails, the removal reports it.
fn open_up<V: Volume>(entry: &Entry<'_, V, Node>) {
    const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
    if let Ok(found) = entry.link_metadata(Fields::MODE)
        && found.mode & 0o700 != 0o700
    {
        let _ = entry.handle().set_mode(entry.name(), found.mode & 0o7777 | 0o700, LINK);
    }
}

fn is_not_empty(error: Error) -> bool {
    matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST)
}

/// Whether a file is known to be write-protected; otherwise the removal will show it.
fn is_write_protected(handle: &impl Dir, name: &CStr) -> bool {
    is_writable(handle, name) == Ok(false)
}

fn device_within<V: Volume>(entry: &Entry<'_, V, Node>) -> Result<u64> {
    entry.handle().device_within(entry.name(), SymlinkBehavior::NoFollow)
}

/// Whether a directory has entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    None,
    Some,
    /// It cannot be opened.
    Unknown(Error),
}

/// Whether a directory lists any entries; if listing fails, it may have some.
fn contents<V: Volume>(entry: &Entry<'_, V, Node>) -> Contents {
    let directory = match entry.handle().open_dir(entry.name(), SymlinkBehavior::NoFollow) {
        Ok(directory) => directory,
        Err(error) => return Contents::Unknown(error),
    };
    let mut cursor = Default::default();
    let mut batch = DirentBatch::with_capacity(PEEK);
    loop {
        match directory.read_entries(&mut cursor, &mut batch) {
            Ok(ReadState::More) if batch.iter().next().is_none() => {}
            Ok(ReadState::End) => return Contents::None,
            Ok(ReadState::More) | Err(_) => return Contents::Some,
        }
    }
}

/// The parent of the directory `operand`.
fn parent_of(operand: &CStr) -> CString {
    CString::new([operand.to_bytes(), b"/.."].concat()).unwrap_or_default()
}
