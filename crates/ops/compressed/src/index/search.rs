//! The traversal that finds compressed files, or directories that may have indexes.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use millstream_vfs::{Dir, Errno, Fields, FileKind, Result, SymlinkBehavior, Volume};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, Visitor};

use super::names::BESIDE;
use super::store::reopen;
use super::{Cause, Location, Run, Task, divisible};
use millstream_text::hidden::IgnoredNames;
use millstream_text::names::split;

/// A task for a thread.
pub(super) enum Job<D> {
    /// Build the index of a file.
    Build(Found<D>),
    /// Remove indexes of files in a directory.
    Prune {
        /// [`None`] if the directory has no files.
        dir: Option<D>,
        /// Its path, which ends with a slash, or nothing for the current directory.
        directory: Vec<u8>,
        /// The file whose indexes are examined; [`None`] for all.
        only: Option<CString>,
    },
}

/// A compressed file.
pub(super) struct Found<D> {
    pub(super) dir: Arc<D>,
    /// The path of `dir`, as above.
    pub(super) directory: Vec<u8>,
    pub(super) name: CString,
    /// Size when it was found.
    pub(super) size: u64,
    pub(super) is_operand: bool,
}

pub(super) struct Search<'a, V: Volume> {
    pub(super) run: &'a Run<'a, V>,
    pub(super) queue: SyncSender<Job<V::Dir>>,
}

/// Whether a directory has been handed to a thread, or must not be.
type Handed = AtomicBool;

impl<V: Volume> Search<'_, V> {
    fn send(&self, job: Job<V::Dir>) {
        // The threads end after the traversal, unless they panic.
        let _ = self.queue.send(job);
    }

    fn operand(
        &self,
        entry: &Entry<'_, V, Handed>,
        descend: &mut Descend<'_, V, Handed>,
    ) -> std::result::Result<(), Cause> {
        let path = entry.name().to_bytes();
        let metadata = entry.metadata(Fields::KIND | Fields::SIZE);
        if metadata.is_ok_and(|metadata| metadata.kind() == FileKind::Directory) {
            if self.run.options.import.is_some() {
                return Err(Cause::ImportForDirectory);
            }
            descend.into_entry(entry, Handed::default());
            return Ok(());
        }
        let (parent, name) = split(path);
        let open = || entry.handle().open_dir_for_names(&parent, SymlinkBehavior::Follow);
        let directory = path[..path.len() - name.to_bytes().len()].to_vec();
        let job = match (self.run.options.task, metadata) {
            (Task::Prune, Err(error)) if error.errno != Errno::NOENT => return Err(error.into()),
            (Task::Prune, _) => Job::Prune { dir: Some(open()?), directory, only: Some(name) },
            (Task::Make { .. }, Ok(metadata)) if metadata.kind() != FileKind::File => {
                return Err(Cause::NotAFile);
            }
            (Task::Make { .. }, Ok(_)) if divisible(name.to_bytes()).is_none() => {
                return Err(Cause::NotDivisible);
            }
            (Task::Make { .. }, metadata) => {
                let size = metadata?.size;
                self.found(Found { dir: Arc::new(open()?), directory, name, size, is_operand: true })
            }
        };
        self.send(job);
        Ok(())
    }

    fn found(&self, found: Found<V::Dir>) -> Job<V::Dir> {
        self.run.activity.begun_bytes.fetch_add(found.size, Ordering::Relaxed);
        Job::Build(found)
    }

    fn entry(
        &self,
        chunk: &Chunk<'_, V, Handed>,
        entry: &Entry<'_, V, Handed>,
        dir: &mut Option<Arc<V::Dir>>,
        descend: &mut Descend<'_, V, Handed>,
    ) -> Result<()> {
        if IgnoredNames::Hidden.ignores(entry.name().to_bytes()) {
            return Ok(());
        }
        match entry.kind()? {
            FileKind::Directory => descend.into_entry(entry, Handed::default()),
            FileKind::File => self.file(chunk, entry, dir)?,
            _ => {}
        }
        Ok(())
    }

    fn file(
        &self,
        chunk: &Chunk<'_, V, Handed>,
        entry: &Entry<'_, V, Handed>,
        dir: &mut Option<Arc<V::Dir>>,
    ) -> Result<()> {
        let Task::Make { min_size } = self.run.options.task else { return Ok(()) };
        if divisible(entry.name().to_bytes()).is_none() {
            return Ok(());
        }
        let metadata = entry.metadata(Fields::KIND | Fields::SIZE)?;
        if metadata.kind() == FileKind::File && metadata.size >= min_size {
            let dir = match dir {
                Some(dir) => Arc::clone(dir),
                None => Arc::clone(dir.insert(Arc::new(reopen(chunk.handle())?))),
            };
            let (directory, name) = (prefix(chunk.directory()), entry.name().to_owned());
            self.send(self.found(Found { dir, directory, name, size: metadata.size, is_operand: false }));
        }
        Ok(())
    }

    /// Looks for indexes of files in the directory of a chunk, once.
    fn prune(&self, chunk: &Chunk<'_, V, Handed>) -> Result<()> {
        if self.run.options.task != Task::Prune {
            return Ok(());
        }
        let is_due = match self.run.options.location {
            Location::Beside => chunk.entries().any(|entry| entry.name() == BESIDE),
            Location::Directory { .. } => !chunk.directory().state().swap(true, Ordering::Relaxed),
        };
        if is_due {
            let dir = Some(reopen(chunk.handle())?);
            self.send(Job::Prune { dir, directory: prefix(chunk.directory()), only: None });
        }
        Ok(())
    }
}

/// The path of a directory with the slash after which names follow.
fn prefix<V: Volume>(directory: &Directory<V, Handed>) -> Vec<u8> {
    let mut path = Vec::new();
    directory.write_prefix(&mut path);
    path
}

impl<V: Volume> Visitor for Search<'_, V> {
    type Volume = V;
    type State = Handed;
    type Worker = ();

    fn root_state(&self) -> Handed {
        Handed::new(true)
    }

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, V, Handed>, descend: &mut Descend<'_, V, Handed>) {
        let is_root = chunk.directory().parent().is_none();
        let mut dir = None;
        let mut tally = self.run.activity.tally();
        for entry in chunk.entries() {
            let visited = if is_root {
                self.operand(&entry, descend)
            } else {
                self.entry(chunk, &entry, &mut dir, descend).map_err(Cause::from)
            };
            if let Err(cause) = visited {
                let mut path = Vec::new();
                entry.write_path(&mut path);
                self.run.problem(&path, &cause);
            }
            tally.add();
        }
        drop(tally);
        if let Err(error) = if is_root { Ok(()) } else { self.prune(chunk) } {
            self.run.problem(&prefix(chunk.directory()), &error.into());
        }
    }

    fn end_of_directory(
        &self,
        (): &mut (),
        directory: &Arc<Directory<V, Handed>>,
        _descend: &mut Descend<'_, V, Handed>,
        _block: &mut Vec<u8>,
    ) {
        if directory.parent().is_none() {
            return;
        }
        self.run.activity.add_directory();
        let is_shared = matches!(self.run.options.location, Location::Directory { .. });
        if self.run.options.task == Task::Prune && is_shared && !directory.state().load(Ordering::Relaxed) {
            self.send(Job::Prune { dir: None, directory: prefix(directory), only: None });
        }
    }

    fn fault(&self, (): &mut (), place: &FaultSite<'_, V, Handed>, fault: &Fault) {
        if let FaultSite::Directory(directory) = place {
            directory.state().store(true, Ordering::Relaxed);
        }
        let mut path = Vec::new();
        place.write_path(&mut path);
        self.run.problem(
            &path,
            &match fault {
                Fault::Volume(error) => Cause::Volume(*error),
                Fault::Loop { .. } => Cause::Loop,
            },
        );
    }
}
