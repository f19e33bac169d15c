//! Exchanges a new directory with the inputs' directory, and recovers an exchange that was interrupted.

use std::ffi::{CStr, CString};

use millstream_vfs::{
    Dir, Errno, Error, Fields, File, FileKind, Metadata, RemoveKind, SymlinkBehavior, Volume, is_writable,
};

use super::CompactError;
use super::journal::{Manifest, Planned};
use super::kept::{Kept, is_gone, is_link, is_same, stamped};
use super::outcome::Applied;
use super::staging::{c_string, entries, make_dir};
use super::work::{Destination, Done, Due, Work, replaced_names};

/// Whether a directory could be exchanged with a new one.
pub(super) enum Exchange {
    Done,
    /// The directory is unchanged, for this reason.
    NotPossible,
}

/// Why a preparation ended.
enum Stop {
    Interrupted,
    Failed,
}

impl From<Error> for Stop {
    fn from(_: Error) -> Self {
        Stop::Failed
    }
}

impl From<CompactError> for Stop {
    fn from(_: CompactError) -> Self {
        Stop::Interrupted
    }
}

impl<V: Volume> Work<'_, V> {
    /// Prepares a directory and exchanges it with that of the inputs.
    pub(super) fn exchange(
        &self,
        index: usize,
        destination: &Destination<'_, V::Dir>,
        due: &[Due<'_>],
        applied: &mut Applied,
    ) -> Done<Exchange> {
        if !is_writable(destination.parent, destination.name).unwrap_or(false) {
            return Ok(Exchange::NotPossible);
        }
        let Ok(listed) = entries(&destination.dir) else { return Ok(Exchange::NotPossible) };
        if listed.iter().any(|(_, kind)| *kind == FileKind::Directory) {
            return Ok(Exchange::NotPossible);
        }
        let Ok(metadata) = destination.dir.own_metadata(Fields::STAT) else {
            return Ok(Exchange::NotPossible);
        };
        let name = c_string(format!("{index}.{}", metadata.ino).into_bytes());
        self.step()?;
        let Ok(new) = make_dir(&self.staging.swap, &name) else { return Ok(Exchange::NotPossible) };
        let all: Vec<_> = due.iter().map(|due| due.planned.clone()).collect();
        let prepared = self.prepare(destination, &new, &name, &metadata, &listed, due);
        let exchanged = match prepared {
            Err(Stop::Interrupted) => return Err(CompactError::Interrupted),
            Err(Stop::Failed) => false,
            Ok(()) => {
                self.step()?;
                destination.parent.exchange(destination.name, &self.staging.swap, &name).is_ok()
            }
        };
        if !exchanged {
            self.undo_preparation(destination, &new, &name, &all)?;
            return Ok(Exchange::NotPossible);
        }
        let swapped = self.staging.swap.metadata(&name, SymlinkBehavior::NoFollow, Fields::INO);
        if swapped.map_err(self.failed(&name))?.ino != metadata.ino {
            // Another process had given the directory's name to another directory.
            destination
                .parent
                .exchange(destination.name, &self.staging.swap, &name)
                .map_err(self.failed(&destination.path))?;
            self.undo_preparation(destination, &new, &name, &all)?;
            return Ok(Exchange::NotPossible);
        }
        self.resolve_exchanged(destination, &destination.dir, &new, &name, due, applied)?;
        Ok(Exchange::Done)
    }

    /// Fills `new` with everything that the directory is to hold.
    fn prepare(
        &self,
        destination: &Destination<'_, V::Dir>,
        new: &V::Dir,
        swapped: &CStr,
        metadata: &Metadata,
        listed: &[(CString, FileKind)],
        due: &[Due<'_>],
    ) -> Result<(), Stop> {
        for due in due {
            self.step()?;
            self.take_over_mode(&destination.dir, due);
            self.staging.out.rename(&due.planned.staged, new, &due.planned.name)?;
        }
        let replaced = replaced_names(due);
        let kept = listed.iter().map(|(name, _)| name).filter(|name| !replaced.contains(*name));
        let kept =
            Manifest { entries: kept.map(|name| stamped(&destination.dir, name)).collect::<Result<_, _>>()? };
        self.staging.note_kept(swapped, &kept)?;
        for entry in &kept.entries {
            self.step()?;
            destination.dir.hard_link(&entry.name, SymlinkBehavior::NoFollow, new, &entry.name)?;
            if !is_same(new, entry)? {
                // It has been replaced since.
                return Err(Stop::Failed);
            }
        }
        self.step()?;
        like_the_old(&destination.dir, new, metadata)?;
        new.as_file()?.sync()?;
        Ok(())
    }

    /// Undoes the preparation of a directory that was not exchanged, or was exchanged back.
    pub(super) fn undo_preparation(
        &self,
        destination: &Destination<'_, V::Dir>,
        new: &V::Dir,
        name: &CStr,
        outputs: &[Planned],
    ) -> Done<()> {
        let failed = self.failed(&destination.path);
        let kept = self.kept(name)?;
        // It may already have the mode of a directory that is not writable.
        new.as_file().and_then(|dir| dir.set_mode(0o700)).map_err(&failed)?;
        for (entry, kind) in entries(new).map_err(&failed)? {
            self.step()?;
            if let Some(output) = outputs.iter().find(|output| output.name == entry) {
                new.rename(&entry, &self.staging.out, &output.staged).map_err(&failed)?;
            } else if kept.has_unchanged(new, &entry)
                || is_link(&destination.dir, new, &entry).map_err(&failed)?
            {
                new.remove(&entry, RemoveKind::File).map_err(&failed)?;
            } else {
                self.put_back(new, &entry, kind, &destination.dir).map_err(&failed)?;
            }
        }
        self.step()?;
        self.staging.swap.remove(name, RemoveKind::Directory).map_err(self.failed(name))
    }

    /// The files that the directory `swapped` has links to.
    fn kept(&self, swapped: &CStr) -> Done<Kept> {
        let entries = self.staging.kept(swapped)?.entries;
        Ok(Kept(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect()))
    }

    /// Removes from `other` the links to kept files that are no longer in `tree`; otherwise a removed file could still
    /// be reached by name.
    fn forget_removed(&self, kept: &Kept, tree: &V::Dir, other: &V::Dir) -> Done<Result<(), Error>> {
        for name in kept.0.keys() {
            match is_gone(tree, name) {
                Ok(true) if kept.has_unchanged(other, name) => {
                    self.step()?;
                    if let Err(error) = other.remove(name, RemoveKind::File) {
                        return Ok(Err(error));
                    }
                }
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    /// `old` and `new` have been exchanged: keeps the exchange if the inputs are unchanged.
    pub(super) fn resolve_exchanged(
        &self,
        destination: &Destination<'_, V::Dir>,
        old: &V::Dir,
        new: &V::Dir,
        name: &CStr,
        due: &[Due<'_>],
        applied: &mut Applied,
    ) -> Done<()> {
        let failed = self.failed(&destination.path);
        let kept = self.kept(name)?;
        for changed in due {
            let Some(reason) = self.first_changed(old, &changed.manifest.entries) else { continue };
            self.step()?;
            // Once before the exchange is undone, because after an interruption removals can no longer be detected;
            // once after it, because then nobody reaches the new directory.
            self.forget_removed(&kept, new, old)?.map_err(&failed)?;
            destination.parent.exchange(destination.name, &self.staging.swap, name).map_err(&failed)?;
            self.forget_removed(&kept, new, old)?.map_err(&failed)?;
            let back = Destination {
                dir: old.open_dir(c".", SymlinkBehavior::NoFollow).map_err(&failed)?,
                path: destination.path.clone(),
                ..*destination
            };
            let all: Vec<_> = due.iter().map(|due| due.planned.clone()).collect();
            self.undo_preparation(&back, new, name, &all)?;
            for due in due {
                self.leave_one(due, &destination.path, reason.clone(), applied)?;
            }
            return Ok(());
        }
        let replaced = replaced_names(due);
        for (entry, kind) in entries(old).map_err(&failed)? {
            let is_known = replaced.contains(&entry) || kept.has(old, &entry).map_err(&failed)?;
            if !is_known && !is_link(old, new, &entry).map_err(&failed)? {
                // It was created after the directory had been listed, and may have replaced an existing file.
                self.step()?;
                if kept.has_unchanged(new, &entry) {
                    new.remove(&entry, RemoveKind::File).map_err(&failed)?;
                }
                self.put_back(old, &entry, kind, new).map_err(&failed)?;
            }
        }
        self.forget_removed(&kept, old, new)?.map_err(&failed)?;
        self.step()?;
        self.staging.swap.rename(name, &self.staging.old, name).map_err(&failed)?;
        for due in due {
            self.count(due, applied)?;
        }
        Ok(())
    }
}

/// Gives a directory the attributes of the one that it replaces.
pub(crate) fn like_the_old<D: Dir>(old: &D, new: &D, metadata: &Metadata) -> Result<(), Error> {
    let (source, target) = (old.as_file()?, new.as_file()?);
    let own = target.metadata(Fields::STAT)?;
    if (own.uid, own.gid) != (metadata.uid, metadata.gid) {
        target.set_owner(Some(metadata.uid), Some(metadata.gid))?;
    }
    target.set_mode(metadata.mode & 0o7777)?;
    let mut names = Vec::new();
    match source.list_xattr(&mut names) {
        Err(error) if error.errno == Errno::OPNOTSUPP => return Ok(()),
        listed => listed?,
    }
    for name in names.split_inclusive(|&b| b == 0) {
        if let Ok(name) = CStr::from_bytes_with_nul(name) {
            let value = source.xattr(name)?;
            // No permission is needed for attributes that the system has already set.
            if target.xattr(name).ok().as_ref() != Some(&value) {
                target.set_xattr(name, &value)?;
            }
        }
    }
    Ok(())
}
