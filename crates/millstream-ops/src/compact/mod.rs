//! The last steps of a compaction: outputs that are complete take the place of the files that they were made of.
//!
//! ```text
//! staging directory (hidden, on the same volume, locked)
//!   out/      outputs, each with its manifest: which files it was made of, and what these were when they were read
//!   journal   which output goes where: from the moment it has this name the compaction is finished, whatever happens
//!   swap/     directories and inputs that have changed places with what replaces them, but may have to change back
//!   old/      what has been replaced: to be removed
//! ```
//!
//! Where a directory holds files alone, a new one with the outputs, and links of all that stays, changes places with it, at
//! once; whoever lists it sees all of the old or all of the new. Elsewhere the inputs of one output are moved away one by one, and
//! the output is given its name. Only then it is looked whether they still are what was read: nothing reaches them by name any more. If not, all
//! goes back. Each step can be done again, so whoever finds a journal finishes what it tells, and whoever finds a staging
//! directory without one removes it: nothing has happened yet.

mod apply;
mod in_place;
mod journal;
mod kept;
mod manifest;
mod new_tree;
mod outcome;
mod parallel;
mod paths;
mod staging;
mod swap;
mod work;

#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Error, FileKind, SymlinkBehavior, Volume};

pub use apply::apply;
pub use journal::{Journal, Kind, Malformed, Manifest, ManifestEntry, Planned};
pub use manifest::ListedFile;
pub use outcome::{Applied, Left, Reason};
pub use staging::Staging;

pub(crate) use paths::parent_below;
pub(crate) use staging::entries;
pub(crate) use swap::like_the_old;

/// Why a compaction cannot go on. What has begun is finished by the next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// Another one is at work.
    #[error("another compaction is at work in {}", path.to_string_lossy())]
    Busy {
        /// The staging directory.
        path: CString,
    },
    /// The volume failed.
    #[error("{}: {error}", path.to_string_lossy())]
    Volume {
        /// What it was about.
        path: CString,
        /// Why.
        error: Error,
    },
    /// An input is not what it was when it was listed.
    #[error("{}: has changed since it was listed", path.to_string_lossy())]
    Changed {
        /// The input.
        path: CString,
    },
    /// The journal is none.
    #[error("{}: {malformed}", path.to_string_lossy())]
    Malformed {
        /// The journal.
        path: CString,
        /// Why.
        malformed: Malformed,
    },
    /// Files that were moved away, and no journal that tells where they belong.
    #[error("{}: holds files of a data set but no journal; move them back by hand", path.to_string_lossy())]
    Orphans {
        /// Where they are.
        path: CString,
    },
    /// It was asked to end.
    #[error("interrupted")]
    Interrupted,
}

/// Names of the symbolic links in the directory `path` on `volume`: files that would not be replaced.
///
/// # Errors
/// If the directory cannot be read.
pub fn links<V: Volume>(volume: &V, path: &CStr) -> Result<Vec<CString>, CompactError> {
    let listed = volume.base().open_dir(path, SymlinkBehavior::Follow).and_then(|dir| entries(&dir));
    let listed = listed.map_err(|error| CompactError::Volume { path: path.to_owned(), error })?;
    Ok(listed.into_iter().filter(|(_, kind)| *kind == FileKind::Symlink).map(|(name, _)| name).collect())
}
