//! Compressed-file indexes, with which several Spark tasks share a file: built before Spark reads the files, and
//! removed when the files are gone.
//!
//! ```text
//! search.rs   the traversal: compressed files, or directories that may have indexes ─► a bounded queue
//! build.rs    threads that take files from the queue: decode ─► the index
//! prune.rs    threads that take directories: indexes whose files are gone or have changed
//! store.rs    the directories that keep indexes; names.rs: their names
//! ```
//!
//! There are as many threads as CPUs, and each file is read once, from beginning to end, by one thread; with an index
//! to import, all threads read the one file. Everything in a directory is accessed through the handle that the
//! traversal opened. Symbolic links are followed, as Spark follows them.

mod build;
mod names;
mod prune;
mod search;
mod store;

use std::ffi::CString;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use millstream_codec::{Codec, DecodeError};
use millstream_vfs::{Error, Volume};
use millstream_walk::{FollowPolicy, WalkOptions, walk};

use millstream_operation::activity::Activity;
pub use millstream_operation::content::Effect;
use search::Search;

/// Maximum files or directories that wait for a thread. Each may hold a directory open.
const WAITING: usize = 128;

/// What to do with the files or directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Build the indexes of operands, and of other files of at least this size.
    Make {
        /// Bytes of the smallest file.
        min_size: u64,
    },
    /// Remove indexes of versions of files that no longer exist, and leftovers of interrupted runs.
    Prune,
}

/// Where indexes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a directory next to each file.
    Beside,
    /// All in one directory.
    Directory {
        /// Its path.
        path: CString,
        /// The base of relative operands: the names of indexes depend on absolute paths.
        working_directory: Vec<u8>,
    },
}

/// How indexes are built or removed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The task.
    pub task: Task,
    /// Whether it is done or only reported.
    pub effect: Effect,
    /// Where indexes are.
    pub location: Location,
    /// Number of threads that decode files.
    pub threads: usize,
    /// Path of another program's index of the one file, with which several threads decode the file.
    pub import: Option<CString>,
    /// Whether gztool's index is written next to each gzip file, too.
    pub export: bool,
}

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Path, starting with the operand as the user gave it: of the compressed file, or of the file that is removed or
    /// exported.
    pub path: &'a [u8],
    /// An action, done or to be reported.
    pub action: Action,
}

/// An action, done or to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The index would be built.
    WouldMake,
    /// The index was built.
    Made(Summary),
    /// There already was an index.
    Kept(Summary),
    /// gztool's index was written, or would be.
    Exported,
    /// It was not written, because the file is not gzip.
    NotExported,
    /// The file, which is below an operand, has no index, because it is not splittable.
    Undivided,
    /// An index, or a leftover of an interrupted run, was removed, or would be.
    Removed(Reason),
}

/// The contents of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Bytes of the compressed file.
    pub size: u64,
    /// Decoded bytes.
    pub decoded: u64,
    /// Line feeds.
    pub lines: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
}

/// Why something is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file is gone.
    FileGone,
    /// The file has changed.
    FileChanged,
    /// It was not completed.
    Incomplete,
    /// An earlier version of Millstream wrote it, under a name that other programs treat as data.
    Visible,
}

/// Why there is no index, or something was not removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The file or directory could not be read, or an index not be removed.
    #[error(transparent)]
    Volume(#[from] Error),
    /// The file cannot be decoded.
    #[error(transparent)]
    Damaged(Box<DecodeError>),
    /// It cannot be decoded with the imported index.
    #[error("the imported index does not match the file: {0}")]
    Unfit(Box<DecodeError>),
    /// The imported file is not an index.
    #[error("{}: not an index of gztool, indexed_gzip, rapidgzip or bgzip", .0.escape_ascii())]
    NotForeign(Vec<u8>),
    /// The imported index could not be read.
    #[error("the index to import cannot be read: {0}")]
    NotImported(Error),
    /// The file is not gzip, and an index is to be imported.
    #[error("indexes of other programs can be imported only for gzip files")]
    OnlyGzip,
    /// It is a directory, and an index is to be imported.
    #[error("this is a directory, but the imported index belongs to a single file")]
    ImportForDirectory,
    /// gztool's index could not be written.
    #[error("gztool's index cannot be written: {0}")]
    NotExported(Error),
    /// gztool's index could not be created from the file's.
    #[error("gztool's index cannot be written: {0}")]
    Unexportable(Box<DecodeError>),
    /// Another file has the name of gztool's index.
    #[error("{} exists, and is not the index that would be written", .0.escape_ascii())]
    OtherIndex(Vec<u8>),
    /// A frame or deflate block of an operand is too long.
    #[error("it cannot be split, because it is a single frame or has a frame with more than 64 MiB of text")]
    Undivided,
    /// It was written to, or replaced, meanwhile.
    #[error("it changed while it was read")]
    Changed,
    /// Neither a file nor a directory.
    #[error("not a file")]
    NotAFile,
    /// Of another format.
    #[error("only .gz, .zst, .lz4 and .snappy files have indexes")]
    NotDivisible,
    /// The index could not be written.
    #[error("the index cannot be kept: {0}")]
    NotKept(Error),
    /// There is a link instead of the directory for indexes.
    #[error("_millstream beside it is a symbolic link, which is not followed")]
    Linked,
    /// Links form a loop.
    #[error("a symbolic link leads to a directory that contains it")]
    Loop,
}

/// Receives the results. Calls come from several threads at once.
pub trait Sink: Sync {
    /// Something was done.
    fn event(&self, event: Event<'_>);

    /// Something failed; the work continues.
    fn problem(&self, path: &[u8], cause: &Cause);
}

/// The state shared by the threads.
struct Run<'a, V: Volume> {
    base: V::Dir,
    options: &'a Options,
    sink: &'a dyn Sink,
    activity: &'a Activity,
}

impl<V: Volume> Run<'_, V> {
    fn problem(&self, path: &[u8], cause: &Cause) {
        self.activity.add_error();
        self.sink.problem(path, cause);
    }
}

/// Builds or removes indexes of the files that are operands, or are below operands.
pub fn run<V: Volume>(
    volume: &V,
    operands: &[CString],
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) {
    activity.expect(operands.len());
    let run = Run { base: volume.base(), options, sink, activity };
    let store = match run.open_store() {
        Ok(store) => store,
        Err((path, cause)) => return run.problem(&path, &cause),
    };
    let (queue, jobs) = sync_channel(WAITING);
    let jobs = Arc::new(Mutex::new(jobs));
    thread::scope(|scope| {
        for _ in 0..options.threads {
            activity.add_thread();
            let (run, store, jobs) = (&run, &store, Arc::clone(&jobs));
            scope.spawn(move || run.work(&jobs, store));
        }
        // If all threads panic, the traversal does not wait for them.
        drop(jobs);
        let search = Search { run: &run, queue };
        let walk_options =
            WalkOptions { follow: FollowPolicy::Always, census: activity.census(), ..WalkOptions::default() };
        walk(volume, operands, &search, &walk_options);
    });
    if options.task == Task::Prune {
        run.prune_temporaries(&store);
    }
}

/// The codec of a file that an index makes splittable.
fn divisible(name: &[u8]) -> Option<Codec> {
    Codec::split_name(name).map(|(codec, _)| codec).filter(|codec| codec.has_index())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use millstream_posix::PosixVolume;

    use super::*;
    use millstream_text::names::c_string;

    struct Panics;

    impl Sink for Panics {
        fn event(&self, _: Event<'_>) {
            panic!("the sink panics");
        }

        fn problem(&self, _: &[u8], _: &Cause) {}
    }

    #[test]
    fn the_traversal_does_not_wait_for_threads_that_have_panicked() {
        let scratch = tempfile::tempdir().expect("scratch");
        for n in 0..2 * WAITING {
            std::fs::write(scratch.path().join(format!("{n}.gz")), b"").expect("written");
        }
        let options = Options {
            task: Task::Make { min_size: 0 },
            effect: Effect::Real,
            location: Location::Beside,
            threads: 2,
            import: None,
            export: false,
        };
        let operands = [c_string(&[scratch.path().as_os_str().as_encoded_bytes()])];
        let activity = Activity::default();
        let run = AssertUnwindSafe(|| run(&PosixVolume, &operands, &options, &Panics, &activity));
        assert!(catch_unwind(run).is_err());
    }
}
