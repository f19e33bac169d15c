//! Shared parts of all ways to publish outputs: interruptible steps, the remaining outputs, and moving files without
//! losing any.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

use millstream_vfs::{Access, Dir, Errno, Error, Fields, File, FileKind, SymlinkBehavior, Volume};

use super::CompactError;
use super::journal::{Manifest, ManifestEntry, Planned};
use super::kept::change;
use super::outcome::{Applied, Left, Reason};
use super::parallel::in_parallel;
use super::staging::{Staging, c_string, path_below};
use millstream_operation::content::take_after;

/// Manifests with fewer entries are checked by one thread.
pub(super) const MANY: usize = 512;

pub(super) struct Work<'a, V: Volume> {
    pub(super) staging: &'a Staging<V>,
    pub(super) root: V::Dir,
    pub(super) root_path: &'a CStr,
    pub(super) should_continue: &'a (dyn Fn() -> bool + Sync),
    /// Threads for the files of one directory.
    pub(super) inner_threads: usize,
}

/// An output whose inputs are still to be replaced.
pub(super) struct Due<'a> {
    pub(super) planned: &'a Planned,
    pub(super) manifest: Manifest,
}

/// A destination directory, with its parent and name.
pub(super) struct Destination<'a, D> {
    pub(super) dir: D,
    pub(super) parent: &'a D,
    pub(super) name: &'a CStr,
    /// Its path, for messages.
    pub(super) path: CString,
}

pub(super) type Done<T> = Result<T, CompactError>;

impl<V: Volume> Work<'_, V> {
    /// Called before every change.
    pub(super) fn step(&self) -> Done<()> {
        if (self.should_continue)() { Ok(()) } else { Err(CompactError::Interrupted) }
    }

    pub(super) fn path_of(&self, directory: &CStr) -> CString {
        path_below(self.root_path, directory)
    }

    pub(super) fn failed(&self, path: &CStr) -> impl Fn(Error) -> CompactError {
        let path = path.to_owned();
        move |error| CompactError::Volume { path: path.clone(), error }
    }

    pub(super) fn exists(&self, dir: &V::Dir, name: &CStr) -> Result<bool, Error> {
        match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO) {
            Ok(_) => Ok(true),
            Err(error) if error.is_vanished() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn drop_output(&self, output: &Planned) -> Done<()> {
        self.staging.drop_output(&output.staged).map_err(|error| self.staging.failed(&output.staged, error))
    }

    /// The outputs still to be resolved.
    pub(super) fn due<'p>(&self, outputs: &'p [Planned]) -> Done<Vec<Due<'p>>> {
        let mut due = Vec::new();
        for planned in outputs {
            if let Some(manifest) = self.staging.manifest(&planned.staged)? {
                due.push(Due { planned, manifest });
            }
        }
        Ok(due)
    }

    pub(super) fn leave_one(
        &self,
        due: &Due<'_>,
        path: &CStr,
        reason: Reason,
        applied: &mut Applied,
    ) -> Done<()> {
        self.step()?;
        let inputs = due.manifest.entries.len() as u64;
        applied.left.push(Left { directory: path.to_owned(), inputs, reason });
        self.drop_output(due.planned)
    }

    /// Why one of the files has changed.
    pub(super) fn first_changed(&self, dir: &V::Dir, files: &[ManifestEntry]) -> Option<Reason> {
        let chunks: Vec<_> = files.chunks(MANY).collect();
        let found = in_parallel(&chunks, self.inner_threads, |_, chunk| {
            chunk
                .iter()
                .find_map(|entry| change(dir, entry).and_then(|()| may_move_checksum(dir, entry)).err())
        });
        found.into_iter().flatten().next()
    }

    /// The output gets the permissions and, where permitted, the owner of its first input.
    pub(super) fn take_over_mode(&self, dir: &V::Dir, due: &Due<'_>) {
        let Some(first) = due.manifest.entries.first() else { return };
        // A failure is harmless: the output then belongs to the user who runs the compaction.
        let _ = dir.open_file(&first.name, Access::Read, SymlinkBehavior::NoFollow).and_then(|input| {
            let metadata = input.metadata(Fields::MODE | Fields::UID | Fields::GID)?;
            let output =
                self.staging.out.open_file(&due.planned.staged, Access::Read, SymlinkBehavior::NoFollow)?;
            take_after(&output, &input, &metadata)
        });
    }

    /// Moves an entry to `to`, under another name if a newer entry there has its own.
    pub(super) fn put_back(
        &self,
        from: &V::Dir,
        name: &CStr,
        kind: FileKind,
        to: &V::Dir,
    ) -> Result<(), Error> {
        let changed = |dir: &V::Dir| match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::MTIME) {
            Ok(metadata) => Ok(Some(metadata.mtime)),
            Err(error) if error.is_vanished() => Ok(None),
            Err(error) => Err(error),
        };
        let mut target = name.to_owned();
        if changed(to)?.is_some() {
            if kind != FileKind::Directory && changed(from)? >= changed(to)? {
                return from.rename(name, to, name);
            }
            let mut number = 0;
            while self.exists(to, &target)? {
                number += 1;
                target = c_string([name.to_bytes(), b".restored-", number.to_string().as_bytes()].concat());
            }
        }
        from.rename(name, to, &target)
    }

    pub(super) fn count(&self, due: &Due<'_>, applied: &mut Applied) -> Done<()> {
        applied.outputs += 1;
        applied.replaced += due.manifest.entries.len() as u64;
        // An output without a manifest is already resolved.
        self.step()?;
        self.drop_output(due.planned)
    }
}

/// The checksum file of an input goes where the input goes.
pub(super) fn may_move_checksum<D: Dir>(dir: &D, entry: &ManifestEntry) -> Result<(), Reason> {
    let name = checksum_name(&entry.name);
    match dir.metadata(&name, SymlinkBehavior::NoFollow, Fields::KIND) {
        Ok(found) if found.is_immovable => Err(Reason::Immovable(name)),
        _ => Ok(()),
    }
}

/// Hadoop's checksum file of a file.
pub(super) fn checksum_name(name: &CStr) -> CString {
    c_string([b".", name.to_bytes(), b".crc"].concat())
}

/// Whether an error means that there is no checksum file: the name of a file may be too long to have one.
pub(super) fn lacks_checksum(error: Error) -> bool {
    error.is_vanished() || error.errno == Errno::NAMETOOLONG
}

/// The inputs and their checksum files.
pub(super) fn replaced_names(due: &[Due<'_>]) -> HashSet<CString> {
    let inputs = due.iter().flat_map(|due| &due.manifest.entries).map(|entry| &entry.name);
    inputs.flat_map(|name| [name.clone(), checksum_name(name)]).collect()
}
