//! Recompresses files in a splittable form.
//!
//! ```text
//! replace.rs    a file ─► a temporary one next to it, synced and verified ─► renamed ─► the old one removed
//! pipeline.rs   decoded text ─► blocks ─► encoders, one per CPU, shared by all files ─► written in order
//! ```
//!
//! **No text is lost**: at any moment there is the old file, or the new one, which has been decoded and compared by
//! checksum and length. The temporary file has one name for each source and is locked, so the next run removes the
//! leftovers of a killed one. If it finds both the old file and the new one, it compares them, and removes the old one.
//! If the old one certainly stays, the new one is removed: with both, readers of the directory would have each line
//! twice. If the old one may be gone, the new one stays.
//!
//! Files that the log of a table names, or another file in their directory, are left alone.

mod pipeline;
mod replace;

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use millstream_codec::{DecodeError, Form};
use millstream_vfs::{Dir, Error, Volume};

use millstream_compact::table_logs::{Certainty, Evidence, of_directory};
use millstream_operation::activity::Activity;
pub use millstream_operation::content::Effect;
use millstream_operation::content::damage;
use pipeline::{Pool, encode};
use replace::Replacer;

/// How to treat the old file, if the new one has another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// It is removed.
    Remove,
    /// It is kept.
    Keep,
}

/// How files are recompressed.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The form; by default that of the file's own codec, or else bgzf.
    pub form: Option<Form>,
    /// The level of compression; by default the usual one of the form.
    pub level: Option<i32>,
    /// How to treat old files.
    pub old: Old,
    /// Whether anything is changed.
    pub effect: Effect,
    /// Number of threads that encode.
    pub threads: usize,
    /// The absolute path of a directory, without links; [`None`] if it cannot be determined.
    pub real_path: fn(&CStr) -> Option<CString>,
}

/// The result for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It would be recompressed.
    WouldReplace,
    /// It was recompressed.
    Replaced {
        /// Bytes of the old file.
        before: u64,
        /// Bytes of the new file.
        after: u64,
        /// Bytes of the text.
        text: u64,
    },
    /// An earlier run had created the new file.
    Finished,
    /// It is in the form already, or an earlier run has created the new file and the old one is to be kept.
    Kept,
}

/// Why a file was not recompressed. It is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The file could not be read, or the new one not be written.
    #[error(transparent)]
    Volume(#[from] Error),
    /// It cannot be decoded.
    #[error(transparent)]
    Damaged(Box<DecodeError>),
    /// Not a regular file.
    #[error("not a regular file")]
    NotAFile,
    /// It has no codec's extension, and is not text either.
    #[error("it is {0}, not text")]
    Format(&'static str),
    /// There is another file with the new name.
    #[error("{} exists and contains different text", .0.escape_ascii())]
    Exists(Vec<u8>),
    /// There is a file with the new name that is not splittable as the new one would be.
    #[error("{} exists, but is not splittable", .0.escape_ascii())]
    OtherForm(Vec<u8>),
    /// There is a damaged file with the new name.
    #[error("{} exists, but cannot be decoded: {}", .0.escape_ascii(), .1)]
    Undecodable(Vec<u8>, Box<DecodeError>),
    /// There is something unreadable with the new name.
    #[error("{} exists, but cannot be read: {}", .0.escape_ascii(), .1)]
    Unreadable(Vec<u8>, Error),
    /// Another process is recompressing it.
    #[error("another process is compressing it")]
    Busy,
    /// It was written to, or replaced, meanwhile.
    #[error("it changed while it was read")]
    Changed,
    /// Another file contains the file's name, and the old file was to be replaced.
    #[error("{}", named(.0))]
    Named(Box<Evidence>),
    /// The old file is another user's, in a directory in which only owners remove files.
    #[error("only its owner may remove it from this directory, which has the sticky bit")]
    Sticky,
    /// The old file cannot be removed, and the new one has been.
    #[error("it cannot be removed, so the new file was removed again: {0}")]
    TakenBack(Error),
    /// The old file cannot be removed, and the new one exists.
    #[error("it cannot be removed, and {} has the same text, so readers find each line twice: {}", .0.escape_ascii(), .1)]
    Twice(Vec<u8>, Error),
    /// The new file decodes to other text.
    #[error("the new file does not decode to the same text")]
    NotVerified,
}

/// Receives the results. Calls come from several threads at once.
pub trait Sink: Sync {
    /// Something was done with the file `path`; `new` is the path of the new file.
    fn event(&self, path: &[u8], new: &[u8], action: &Action);

    /// Something failed; the work continues.
    fn problem(&self, path: &[u8], cause: &Cause);
}

/// Recompresses files.
pub fn run<V: Volume>(
    volume: &V,
    operands: &[CString],
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) {
    let base = volume.base();
    let (next, (pool, jobs)) = (AtomicUsize::new(0), Pool::new(options.threads));
    let logs = Logs::default();
    thread::scope(|scope| {
        for _ in 0..options.threads {
            activity.add_thread();
            let jobs = Arc::clone(&jobs);
            scope.spawn(move || encode(&jobs));
        }
        // If all encoders panic, nobody waits for them.
        drop(jobs);
        let work = || {
            while let Some(operand) = operands.get(next.fetch_add(1, Ordering::Relaxed)) {
                let path = operand.to_bytes();
                let replacer = Replacer { base: &base, options, pool: &pool, activity, logs: &logs };
                match replacer.replace(path) {
                    Ok((new, action)) => sink.event(path, &new, &action),
                    Err(cause) => {
                        activity.add_error();
                        sink.problem(path, &cause);
                    }
                }
                activity.add_entries(1);
            }
        };
        let files: Vec<_> = (0..options.threads.min(operands.len())).map(|_| scope.spawn(work)).collect();
        let panicked = files.into_iter().filter_map(|file| file.join().err()).next();
        pool.close();
        if let Some(panic) = panicked {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Why a file that is named elsewhere is left alone.
fn named(evidence: &Evidence) -> String {
    let [table, log] = [&evidence.table, &evidence.log].map(|bytes| String::from_utf8_lossy(bytes));
    match evidence.certainty {
        Certainty::Known => format!("{table} is {}, whose log ({log}) names its files", evidence.why),
        Certainty::Possible => format!("{table}/{log} names files in this directory"),
        Certainty::Unfinished | Certainty::PartlyUndone => evidence.to_string(),
    }
}

/// The evidence that files are named elsewhere, by directory.
#[derive(Debug, Default)]
struct Logs(Mutex<HashMap<CString, Option<Evidence>>>);

impl Logs {
    /// The evidence that files in the directory at a path are named elsewhere.
    fn of<D: Dir>(&self, base: &D, directory: &CStr, options: &Options) -> Option<Evidence> {
        let known =
            |logs: &Self| logs.0.lock().unwrap_or_else(PoisonError::into_inner).get(directory).cloned();
        if let Some(found) = known(self) {
            return found;
        }
        let found = (options.real_path)(directory).and_then(|path| of_directory(base, &path));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(directory.to_owned(), found.clone());
        found
    }
}

/// Why a file could not be decoded.
fn cause(error: io::Error) -> Cause {
    damage(error).map_or_else(Cause::Volume, Cause::Damaged)
}
