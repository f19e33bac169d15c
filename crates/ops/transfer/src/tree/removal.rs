//! Removing entries and whole trees.

use std::sync::{Mutex, PoisonError};

use millstream_vfs::{
    Dir, Errno, Error, Fields, FileKind, MountBehavior, Operation, RemoveKind, SymlinkBehavior, Volume,
};
use millstream_walk::Threads;

use super::at::At;
use super::error::TreeError;
use super::root::{Tree, is_absent};
use millstream_change::remove::{Cause, Execution, Guard, Options, Problem, Question, Sink, remove_below};
use millstream_operation::activity::Activity;

/// The result of removing one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Done,
    /// There was nothing.
    Gone,
    /// It is a directory with something in it.
    NotEmpty,
    /// It stays, because it is a mount point, or below one.
    Mounted,
}

/// Threads that remove one tree; others do the same next to them.
const THREADS: usize = 4;

impl<V: Volume> Tree<V> {
    /// Removes a file, a link, or an empty directory, unless it belongs to something that is mounted below the root.
    ///
    /// # Errors
    /// That of the call.
    pub fn remove(&self, path: &[u8]) -> Result<Removed, TreeError> {
        let at = At::of(path)?;
        self.root().map_err(TreeError::of(path))?;
        let removed = self.directory(&at.parent, MountBehavior::Refuse).and_then(|above| {
            remove_entry(&*above, &at).or_else(|error| match error.errno {
                Errno::BUSY
                    if above.metadata(&at.name, SymlinkBehavior::NoFollow, Fields::KIND)?.is_mount_root =>
                {
                    Err(Error::new(error.operation, Errno::XDEV))
                }
                _ => Err(error),
            })
        });
        match removed {
            Ok(()) => Ok(Removed::Done),
            Err(error) if is_absent(error) => Ok(Removed::Gone),
            Err(error) => match error.errno {
                Errno::NOTEMPTY | Errno::EXIST => Ok(Removed::NotEmpty),
                Errno::XDEV => Ok(Removed::Mounted),
                _ => Err(TreeError::of(path)(error)),
            },
        }
    }

    /// Removes an entry with all that is in it, except for what is mounted there. Nothing happens if it does not exist.
    ///
    /// # Errors
    /// The first error, or the first mount point in it; all else is removed.
    pub fn remove_tree(&self, path: &[u8]) -> Result<(), TreeError> {
        let at = At::of(path)?;
        let failed = TreeError::of(path);
        let above = match self.directory(&at.parent, MountBehavior::Enter) {
            Err(error) if is_absent(error) => return Ok(()),
            above => above.map_err(&failed)?,
        };
        match remove_entry(&*above, &at) {
            Err(error) if matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => {}
            Err(error) if error.errno == Errno::NOENT => return Ok(()),
            removed => return removed.map_err(failed),
        }
        let options = Options::whole_trees(Execution::Real, Threads::Fixed(THREADS));
        let emptying = Emptying { above: at.parent.to_bytes(), first: Mutex::default() };
        let handle = above.open_dir_for_names(c".", SymlinkBehavior::NoFollow).map_err(&failed)?;
        let seen = (&emptying as &dyn Sink, &Activity::default());
        let is_gone = remove_below(&self.volume, handle, &at.name, &options, &emptying, seen);
        match emptying.first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if is_gone => Ok(()),
            None => Err(failed(Error::new(Operation::Remove, Errno::NOTEMPTY))),
        }
    }
}

fn remove_entry<D: Dir>(above: &D, at: &At) -> Result<(), Error> {
    let removed = above.remove(&at.name, RemoveKind::File);
    let is_directory = |error: &Error| match error.errno {
        Errno::ISDIR => true,
        // That is what POSIX wants instead.
        Errno::PERM => {
            let found = above.metadata(&at.name, SymlinkBehavior::NoFollow, Fields::KIND);
            found.is_ok_and(|found| found.kind() == FileKind::Directory)
        }
        _ => false,
    };
    match removed {
        Err(error) if is_directory(&error) => above.remove(&at.name, RemoveKind::Directory),
        removed => removed,
    }
}

/// Lets everything go that is not mounted, and keeps the first problem.
struct Emptying<'a> {
    /// Path of the directory that the removed one is in.
    above: &'a [u8],
    first: Mutex<Option<TreeError>>,
}

impl Guard for Emptying<'_> {
    fn admits(&self, _path: &[u8], _is_directory: bool) -> bool {
        true
    }

    fn take(&self) -> bool {
        true
    }

    fn opens_directories(&self) -> bool {
        false
    }

    fn removed(&self, _path: &[u8], _kind: RemoveKind) {}
}

impl Sink for Emptying<'_> {
    fn lines(&self, _lines: &[u8]) {}

    fn problem(&self, problem: &Problem<'_>) {
        let slash = if self.above.is_empty() { &b""[..] } else { b"/" };
        let path = [self.above, slash, problem.path].concat();
        let error = match problem.cause {
            Cause::Failed(error) | Cause::UnknownParent(error) => TreeError::of(&path)(error),
            Cause::OtherDevice | Cause::MountPoint => TreeError::Mounted { path },
            Cause::Dots | Cause::Root => TreeError::of(&path)(Error::new(Operation::Remove, Errno::PERM)),
            Cause::Cycle => TreeError::of(&path)(Error::new(Operation::OpenDir, Errno::LOOP)),
        };
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn approve(&self, _question: &Question<'_>) -> bool {
        false
    }
}
