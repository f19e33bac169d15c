//! The last steps of a compaction: the finished outputs replace the files they were made of.
//!
//! ```text
//! staging directory (hidden, on the same volume, locked)
//!   out/       outputs, each with a manifest: its input files, and their state when they were read
//!   .journal   the destination of each output: once this file exists, the compaction will be completed
//!   swap/      directories and inputs that were exchanged with their replacements and may have to be exchanged back
//!   old/       replaced files and directories, to be removed or kept
//!   .record    the replacements of the replaced files, if these are kept
//! kept directory (hidden, next to the staging directory)
//!   N/files/   the replaced files of the Nth compaction
//!   N/.record  their directories and replacements: `undo.rs` puts them back
//! ```
//!
//! The files in it have hidden names (`hidden.rs`), except in `swap` and `old`: a directory that is exchanged has the
//! names for readers.
//!
//! If a directory holds only files, a new directory is prepared with the outputs and links to all files that stay. The
//! two directories are then exchanged in one step, so a listing shows all of the old state or all of the new one. In
//! any other directory the inputs of each output are moved away one by one and the output gets its name.
//!
//! Only then are the inputs compared with the manifest, because nobody can reach them by name any more. If they have
//! changed, the step is undone.
//!
//! Every step can be repeated. Whoever finds a journal completes it. Whoever finds a staging directory without a
//! journal removes it, because nothing has been replaced yet.

mod apply;
mod hidden;
mod in_place;
mod journal;
mod kept;
mod manifest;
mod new_tree;
mod obstacles;
mod outcome;
mod parallel;
mod paths;
mod record;
mod replaced;
mod staging;
mod swap;
mod undo;
mod work;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;

use std::ffi::CString;

use millstream_vfs::Error;

use millstream_text::quote::shell_word;

pub use apply::apply;
pub use journal::{Journal, Kind, Malformed, Manifest, ManifestEntry, Planned};
pub use manifest::ListedFile;
pub use obstacles::obstacles;
pub use outcome::{Applied, Left, Reason};
pub use replaced::{has_kept, predict_purge, purge};
pub use staging::{Staging, has_journal};
pub use undo::{Undone, predict_undo, undo, undo_command};

pub(crate) use paths::parent_below;
pub(crate) use replaced::has_undoing;
pub(crate) use staging::entries;
pub(crate) use swap::like_the_old;

/// Why a compaction cannot continue. The next one completes the steps already begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// Another compaction is running.
    #[error("another compaction is running in {}", path.to_string_lossy())]
    Busy {
        /// The staging directory.
        path: CString,
    },
    /// The volume failed.
    #[error("{}: {error}", path.to_string_lossy())]
    Volume {
        /// The path of the failed operation.
        path: CString,
        /// Why.
        error: Error,
    },
    /// An input has changed since it was listed.
    #[error("{}: has changed since it was listed", path.to_string_lossy())]
    Changed {
        /// The input.
        path: CString,
    },
    /// The journal is invalid.
    #[error("{}: {malformed}", path.to_string_lossy())]
    Malformed {
        /// The journal.
        path: CString,
        /// Why.
        malformed: Malformed,
    },
    /// There are moved files, but no journal that records their origin.
    #[error("{}: contains data files but no journal; move them back by hand", path.to_string_lossy())]
    Orphans {
        /// The directory that holds them.
        path: CString,
    },
    /// The undoing of an earlier compaction has begun but not ended.
    #[error("{}: an earlier compaction is only partly undone; run --undo again first", path.to_string_lossy())]
    PartlyUndone {
        /// The directory that keeps its files.
        path: CString,
    },
    /// No replaced files are kept.
    #[error("no files replaced by an earlier compaction have been kept")]
    NothingKept,
    /// Files have changed since the compaction, so it cannot be undone.
    #[error("cannot be undone, and nothing was changed: {}", list(reasons))]
    NotUndoable {
        /// A sentence about each file or directory.
        reasons: Vec<String>,
    },
    /// Files or directories are immutable or append-only, so an undoing can neither move nor remove files.
    #[error(
        "cannot be undone, and nothing was changed: immutable and append-only files cannot be moved; first run chattr -i -a {}",
        words(paths)
    )]
    Immovable {
        /// Their paths.
        paths: Vec<CString>,
    },
    /// An output was written to after the undoing had moved it away, and its other lines are back.
    #[error("{}: was written to while the compaction was undone; move this file away, add its new lines by hand, and run --undo again", path.to_string_lossy())]
    WrittenTo {
        /// The output.
        path: CString,
    },
    /// It was stopped.
    #[error("interrupted")]
    Interrupted,
}

/// Maximum number of files or sentences in a message.
const SHOWN: usize = 5;

/// The first few of several paths, as words of a shell's command line.
fn words(paths: &[CString]) -> String {
    let shown =
        paths.iter().take(SHOWN).map(|path| shell_word(path.to_bytes())).collect::<Vec<_>>().join(&b' ');
    let shown = String::from_utf8_lossy(&shown);
    match paths.len().saturating_sub(SHOWN) {
        0 => shown.into_owned(),
        more => format!("{shown} (and {more} more)"),
    }
}

/// The first few of several sentences.
fn list(reasons: &[String]) -> String {
    let shown = reasons.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    match reasons.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
