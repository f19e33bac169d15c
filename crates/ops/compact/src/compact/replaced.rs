//! Files that compactions in place replaced, kept for a time so that they can be put back.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Errno, Error, File, FileKind, RemoveKind, SymlinkBehavior, Volume};

use super::CompactError;
use super::hidden::{find_hidden, kept_as};
use super::in_place::HIDDEN;
use super::journal::{Journal, ManifestEntry, Planned};
use super::kept::{is_link, stamped};
use super::paths::parent_below;
use super::record::{Record, Replacement};
use super::staging::{
    RECORD, Staging, c_string, entries, lock_unchanged, make_dir, path_below, read_file, remove_entries,
    write_file,
};
use super::work::{Done, Work, checksum_name};

/// The replaced files of a compaction.
pub(super) const FILES: &CStr = c"files";
/// The outputs of a compaction that is being undone.
pub(super) const UNDONE: &CStr = c"undone";
/// Once this file exists, the compaction will be undone.
pub(super) const UNDOING: &CStr = c".undoing";

/// The suffixes of staging directories and of those that keep replaced files.
const STAGING_END: &[u8] = b"-compact";
const KEPT_END: &[u8] = b"-replaced";

/// The kept files of one compaction.
pub(super) struct Generation<D> {
    pub(super) number: u64,
    pub(super) dir: D,
    pub(super) path: CString,
}

/// The directory that keeps the files of the compactions with this staging directory.
pub(super) fn kept_path(staging: &CStr) -> CString {
    let path = staging.to_bytes();
    c_string([path.strip_suffix(STAGING_END).unwrap_or(path), KEPT_END].concat())
}

impl<V: Volume> Staging<V> {
    /// Records the files that are about to be replaced.
    pub(super) fn write_record(&self, journal: &Journal, keep_until: i64) -> Result<(), CompactError> {
        let number = self.generations()?.iter().map(|kept| kept.number).max().unwrap_or(0) + 1;
        let mut replacements = Vec::with_capacity(journal.outputs.len());
        for planned in &journal.outputs {
            let output =
                stamped(&self.out, &planned.staged).map_err(|error| self.failed(&planned.staged, error))?;
            let inputs = self.manifest(&planned.staged)?.unwrap_or_default();
            replacements.push(Replacement { planned: planned.clone(), output, inputs });
        }
        let record = Record { number, keep_until, root: journal.root.clone(), replacements };
        write_file(&self.dir, RECORD, &record.encode()).map_err(|error| self.failed(RECORD, error))
    }

    /// The compaction whose undoing has begun: outputs have been moved away, and their inputs are not back.
    pub(super) fn partly_undone(&self) -> Result<Option<Generation<V::Dir>>, CompactError> {
        partly_undone(self.generations()?)
    }

    /// The compactions whose replaced files are kept, oldest first.
    pub(super) fn generations(&self) -> Result<Vec<Generation<V::Dir>>, CompactError> {
        generations(&self.base, &kept_path(&self.path))
    }

    /// Removes the kept files of a compaction.
    pub(super) fn forget(&self, kept: &Generation<V::Dir>) -> Result<(), CompactError> {
        let failed = |error| CompactError::Volume { path: kept.path.clone(), error };
        // The record and the mark go last: without them, the remaining files could not be identified.
        for name in [UNDONE, FILES] {
            match kept.dir.open_dir(name, SymlinkBehavior::NoFollow) {
                Err(error) if error.is_vanished() => {}
                opened => {
                    opened.and_then(|dir| remove_entries(&dir)).map_err(failed)?;
                    kept.dir.remove(name, RemoveKind::Directory).map_err(failed)?;
                }
            }
        }
        remove_entries(&kept.dir).map_err(failed)?;
        let all = kept_path(&self.path);
        self.base.remove(&kept.path, RemoveKind::Directory).map_err(failed)?;
        match self.base.remove(&all, RemoveKind::Directory) {
            Err(error) if !error.is_vanished() && !matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST) => {
                Err(CompactError::Volume { path: all, error })
            }
            _ => Ok(()),
        }
    }
}

impl<D: Dir> Generation<D> {
    /// Whether the compaction is already being undone.
    pub(super) fn is_undoing(&self) -> Result<bool, CompactError> {
        let found = find_hidden(&self.dir, UNDOING);
        Ok(found.map_err(|error| self.failed(UNDOING, error))?.is_some())
    }

    /// The record of what was replaced; [`None`] if the compaction has not ended.
    pub(super) fn record(&self) -> Result<Option<Record>, CompactError> {
        let name = find_hidden(&self.dir, RECORD).map_err(|error| self.failed(RECORD, error))?;
        let Some(name) = name else { return Ok(None) };
        let text = read_file(&self.dir, &name).map_err(|error| self.failed(&name, error))?;
        let path = || path_below(&self.path, &name);
        Record::decode(&text)
            .map(Some)
            .map_err(|malformed| CompactError::Malformed { path: path(), malformed })
    }

    /// Whether its files may be removed at `now`, in seconds since 1970, or at any time.
    fn is_over(&self, now: Option<i64>) -> Result<bool, CompactError> {
        let is_late = match now {
            None => true,
            Some(now) => self.record()?.is_none_or(|record| record.keep_until <= now),
        };
        Ok(is_late && !self.is_undoing()?)
    }

    fn failed(&self, name: &CStr, error: Error) -> CompactError {
        CompactError::Volume { path: path_below(&self.path, name), error }
    }
}

/// The compactions whose replaced files are kept in the directory `path`, oldest first.
pub(super) fn generations<D: Dir>(base: &D, path: &CStr) -> Result<Vec<Generation<D>>, CompactError> {
    let failed = |error| CompactError::Volume { path: path.to_owned(), error };
    let kept = match base.open_dir(path, SymlinkBehavior::NoFollow) {
        Err(error) if error.errno == Errno::NOENT => return Ok(Vec::new()),
        opened => opened.map_err(failed)?,
    };
    let mut found = Vec::new();
    for (name, _) in entries(&kept).map_err(failed)? {
        let Some(number) = name.to_str().ok().and_then(|name| name.parse().ok()) else { continue };
        let dir = kept.open_dir(&name, SymlinkBehavior::NoFollow).map_err(failed)?;
        found.push(Generation { number, dir, path: path_below(path, &name) });
    }
    found.sort_by_key(|kept| kept.number);
    Ok(found)
}

fn partly_undone<D: Dir>(all: Vec<Generation<D>>) -> Result<Option<Generation<D>>, CompactError> {
    for kept in all {
        if kept.is_undoing()? {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

/// Whether files kept in the directory `kept` are being put back, or were when the undoing was interrupted.
///
/// # Errors
/// If that cannot be determined.
pub(crate) fn has_undoing<D: Dir>(base: &D, kept: &CStr) -> Result<bool, CompactError> {
    Ok(partly_undone(generations(base, kept)?)?.is_some())
}

/// Whether files are kept that a compaction replaced. `staging` is the path of its staging directory on `volume`.
///
/// # Errors
/// If that cannot be determined.
pub fn has_kept<V: Volume>(volume: &V, staging: &CStr) -> Result<bool, CompactError> {
    Ok(!generations(&volume.base(), &kept_path(staging))?.is_empty())
}

/// Removes the kept files of compactions whose time is over at `now`, in seconds since 1970, or of all. Returns the
/// number of these compactions. There must be no journal.
///
/// # Errors
/// If something cannot be read or removed.
pub fn purge<V: Volume>(staging: &Staging<V>, now: Option<i64>) -> Result<u64, CompactError> {
    let mut removed = 0;
    for kept in staging.generations()? {
        if kept.is_over(now)? {
            staging.forget(&kept)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The number of compactions whose files [`purge`] would remove; nothing is changed. `staging` is the path of their
/// staging directory on `volume`.
///
/// # Errors
/// If something cannot be read, and if another compaction holds the lock.
pub fn predict_purge<V: Volume>(volume: &V, staging: &CStr, now: Option<i64>) -> Result<u64, CompactError> {
    let base = volume.base();
    let _locks = lock_unchanged(&base, staging)?;
    let mut removed = 0;
    for kept in generations(&base, &kept_path(staging))? {
        removed += u64::from(kept.is_over(now)?);
    }
    Ok(removed)
}

impl<V: Volume> Work<'_, V> {
    /// Moves the replaced files to where they are kept. `directories` are those of the journal.
    pub(super) fn keep_old(&self, directories: &[&[Planned]]) -> Done<()> {
        let failed = self.failed(c"old");
        let staging = self.staging;
        let Some(record) = self.record()? else { return Ok(()) };
        let path = kept_path(&staging.path);
        let kept_failed = self.failed(&path);
        let has_begun = staging.generations()?.iter().any(|kept| kept.number == record.number);
        if !has_begun && entries(&staging.old).map_err(&failed)?.is_empty() {
            // Nothing was replaced; there is nothing to undo.
            return staging.dir.remove(RECORD, RemoveKind::File).map_err(failed);
        }
        let kept = make_dir(&staging.base, &path).map_err(&kept_failed)?;
        self.step()?;
        let generation =
            make_dir(&kept, &c_string(record.number.to_string().into_bytes())).map_err(&kept_failed)?;
        let files = make_dir(&generation, FILES).map_err(&kept_failed)?;
        let known: HashMap<_, _> =
            record.replacements.iter().map(|one| (one.planned.staged.as_c_str(), one)).collect();
        for (name, _) in entries(&staging.old).map_err(&failed)? {
            self.hide_replaced(&name, directories, &known)?;
            self.step()?;
            staging.old.rename(&name, &files, &name).map_err(&failed)?;
        }
        self.step()?;
        match staging.dir.rename(RECORD, &generation, RECORD) {
            Err(error) if !error.is_vanished() => return Err(failed(error)),
            _ => {}
        }
        for dir in [&files, &generation, &kept] {
            dir.as_file().and_then(|dir| dir.sync()).map_err(&kept_failed)?;
        }
        self.step()
    }

    /// Opens a directory of the tree by its path. The handle of the root may be that of the directory that was
    /// exchanged.
    fn directory(&self, path: &CStr) -> Result<V::Dir, Error> {
        let root = self.staging.base.open_dir(self.root_path, SymlinkBehavior::Follow)?;
        let (parent, name) = parent_below(&root, path)?;
        parent.open_dir(if name.is_empty() { c"." } else { &name }, SymlinkBehavior::NoFollow)
    }

    fn record(&self) -> Done<Option<Record>> {
        match read_file(&self.staging.dir, RECORD) {
            Ok(text) => Record::decode(&text).map(Some).map_err(|malformed| CompactError::Malformed {
                path: self.staging.path_of(RECORD),
                malformed,
            }),
            // An earlier attempt has moved it, and all files before it.
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(self.staging.failed(RECORD, error)),
        }
    }

    /// Gives the replaced files in this entry of `old` hidden names. `known` are the replacements by their staged
    /// names.
    fn hide_replaced(
        &self,
        name: &CStr,
        directories: &[&[Planned]],
        known: &HashMap<&CStr, &Replacement>,
    ) -> Done<()> {
        let failed = self.failed(c"old");
        let dir = self.staging.old.open_dir(name, SymlinkBehavior::NoFollow).map_err(&failed)?;
        let outputs = exchanged_index(name).and_then(|index| directories.get(index));
        let here: Vec<_> = match outputs {
            Some(outputs) => outputs.iter().filter_map(|one| known.get(one.staged.as_c_str())).collect(),
            None => hidden_output(name).and_then(|staged| known.get(staged.as_c_str())).into_iter().collect(),
        };
        let replaced: Vec<_> = here.into_iter().flat_map(|one| &one.inputs.entries).collect();
        if let Some(first) = outputs.and_then(|outputs| outputs.first()) {
            self.strip(&dir, &first.directory, &replaced)?;
        }
        for entry in replaced {
            self.step()?;
            match dir.rename(&entry.name, &dir, &kept_as(entry)) {
                Err(error) if !error.is_vanished() => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the links to files that stay from a directory that was exchanged. Inputs of outputs that were left are
    /// among them.
    fn strip(&self, dir: &V::Dir, directory: &CStr, replaced: &[&ManifestEntry]) -> Done<()> {
        let failed = self.failed(c"old");
        let names: HashSet<CString> = replaced.iter().copied().flat_map(names_of).collect();
        // It may have the mode of a directory that is not writable.
        dir.as_file().and_then(|dir| dir.set_mode(0o700)).map_err(&failed)?;
        let tree = self.directory(directory).ok();
        for (entry, kind) in entries(dir).map_err(&failed)? {
            let stays = match &tree {
                Some(tree) => is_link(tree, dir, &entry).map_err(&failed)?,
                None => false,
            };
            if kind != FileKind::Directory && (stays || !names.contains(&entry)) {
                self.step()?;
                dir.remove(&entry, RemoveKind::File).map_err(&failed)?;
            }
        }
        Ok(())
    }
}

/// The index of the directory in the journal, if this is the name of one that was exchanged.
pub(super) fn exchanged_index(name: &CStr) -> Option<usize> {
    let (index, ino) = name.to_str().ok()?.split_once('.')?;
    ino.parse::<u64>().ok()?;
    index.parse().ok()
}

/// The staged name of the output, if this is the name of the directory with its inputs.
fn hidden_output(name: &CStr) -> Option<CString> {
    name.to_bytes().strip_suffix(HIDDEN).map(|staged| c_string(staged.to_vec()))
}

/// An input's name, the one under which it is kept, and that of its checksum file.
fn names_of(input: &ManifestEntry) -> [CString; 3] {
    [input.name.clone(), kept_as(input), checksum_name(&input.name)]
}
