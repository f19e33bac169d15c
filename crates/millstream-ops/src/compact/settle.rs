//! Outputs take the place of their inputs.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use millstream_vfs::{
    Dir, Errno, Error, Fields, File, FileKind, Metadata, Ownership, RemoveKind, SymlinkBehavior, Volume,
};

use super::CompactError;
use super::journal::{Kind, Manifest, ManifestEntry, Planned};
use super::kept::{Kept, change, is_gone, is_link, is_same, stamped};
use super::staging::{Staging, c_string, entries, make_dir, path_below, remove_entries};

/// Manifests of fewer entries are looked through by one thread.
const MANY: usize = 512;

/// What has been done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Outputs that are in their places.
    pub outputs: u64,
    /// Files that they took the place of.
    pub replaced: u64,
    /// Outputs that are not in their places: their inputs are as they were.
    pub left: Vec<Left>,
}

/// Inputs that were left as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Path of their directory.
    pub directory: CString,
    /// How many.
    pub inputs: u64,
    /// Why.
    pub reason: Reason,
}

/// Why inputs were left as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One of them is not what it was when it was read.
    Changed(CString),
    /// One of them is a symbolic link.
    Link(CString),
    /// The place of the output is taken.
    Taken(CString),
    /// The directory cannot be changed, or is not there any more.
    Failed(Error),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Changed(name) => write!(f, "{} has changed since it was read", name.to_string_lossy()),
            Reason::Link(name) => write!(f, "{} is a symbolic link", name.to_string_lossy()),
            Reason::Taken(name) => write!(f, "there is a {} already", name.to_string_lossy()),
            Reason::Failed(error) => error.fmt(f),
        }
    }
}

/// Does what the journal in `staging` tells, or the rest of it, with up to `threads` threads; `going_on` is asked before each step.
///
/// # Errors
/// If there is no going on; the journal stays then.
pub fn apply<V: Volume>(
    staging: &Staging<V>,
    threads: usize,
    going_on: &(dyn Fn() -> bool + Sync),
) -> Result<Applied, CompactError> {
    let Some(journal) = staging.journal()? else { return Ok(Applied::default()) };
    let root = staging
        .base
        .open_dir(&journal.root, SymlinkBehavior::Follow)
        .map_err(|error| CompactError::Volume { path: journal.root.clone(), error })?;
    let directories: Vec<_> = journal.outputs.chunk_by(|a, b| a.directory == b.directory).collect();
    let threads = threads.max(1);
    let inner_threads = (threads / directories.len().max(1)).max(1);
    let work = Work { staging, root, root_path: &journal.root, going_on, inner_threads };
    let done = in_parallel(&directories, threads, |index, outputs| match journal.kind {
        Kind::InPlace => work.replace(index, outputs),
        Kind::New => work.reveal(outputs),
    });
    let mut applied = Applied::default();
    for part in done {
        let part = part?;
        applied.outputs += part.outputs;
        applied.replaced += part.replaced;
        applied.left.extend(part.left);
    }
    staging.sync_volume()?;
    work.remove_old(threads)?;
    staging.finish()?;
    Ok(applied)
}

/// Calls `f` with every item, and its index, on up to `threads` threads.
fn in_parallel<T: Sync, R: Send>(items: &[T], threads: usize, f: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    if threads < 2 || items.len() < 2 {
        return items.iter().enumerate().map(|(i, item)| f(i, item)).collect();
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = f(index, item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

struct Work<'a, V: Volume> {
    staging: &'a Staging<V>,
    root: V::Dir,
    root_path: &'a CStr,
    going_on: &'a (dyn Fn() -> bool + Sync),
    /// Threads for the files of one directory.
    inner_threads: usize,
}

/// An output whose inputs are still to be replaced.
struct Due<'a> {
    planned: &'a Planned,
    manifest: Manifest,
}

/// A directory, and where it is.
struct Place<'a, D> {
    dir: D,
    parent: &'a D,
    name: &'a CStr,
    /// Its path, for messages.
    path: CString,
}

/// Whether a directory could change places with a new one.
enum Exchange {
    Done,
    /// This is as it was before.
    NotPossible,
}

type Done<T> = Result<T, CompactError>;

impl<V: Volume> Work<'_, V> {
    /// To be asked before something is changed.
    fn step(&self) -> Done<()> {
        if (self.going_on)() { Ok(()) } else { Err(CompactError::Interrupted) }
    }

    fn path_of(&self, directory: &CStr) -> CString {
        path_below(self.root_path, directory)
    }

    fn failed(&self, path: &CStr) -> impl Fn(Error) -> CompactError {
        let path = path.to_owned();
        move |error| CompactError::Volume { path: path.clone(), error }
    }

    /// Outputs get their names in a tree in which they replace nothing.
    fn reveal(&self, outputs: &[Planned]) -> Done<Applied> {
        let mut applied = Applied::default();
        let Some(first) = outputs.first() else { return Ok(applied) };
        let path = self.path_of(&first.directory);
        let dir = self.make_path(&first.directory);
        for output in outputs {
            self.step()?;
            let Some(manifest) = self.staging.manifest(&output.staged)? else { continue };
            let revealed = match &dir {
                Err(error) => Err(Reason::Failed(*error)),
                Ok(dir) => self.reveal_in(dir, output),
            };
            match revealed {
                Ok(()) => applied.outputs += 1,
                Err(reason) => {
                    let inputs = manifest.entries.len() as u64;
                    applied.left.push(Left { directory: path.clone(), inputs, reason });
                }
            }
            self.drop_output(output)?;
        }
        Ok(applied)
    }

    fn reveal_in(&self, dir: &V::Dir, output: &Planned) -> Result<(), Reason> {
        let is_staged = self.exists(&self.staging.out, &output.staged).map_err(Reason::Failed)?;
        if !is_staged {
            // An earlier attempt did it.
            return Ok(());
        }
        if self.exists(dir, &output.name).map_err(Reason::Failed)? {
            return Err(Reason::Taken(output.name.clone()));
        }
        self.staging.out.rename(&output.staged, dir, &output.name).map_err(Reason::Failed)
    }

    fn make_path(&self, path: &CStr) -> Result<V::Dir, Error> {
        let mut dir = self.root.open_dir(c".", SymlinkBehavior::NoFollow)?;
        for name in names(path) {
            dir = match dir.create_dir(&name, 0o777) {
                Err(error) if error.errno != Errno::EXIST => return Err(error),
                _ => dir.open_dir(&name, SymlinkBehavior::NoFollow)?,
            };
        }
        Ok(dir)
    }

    fn exists(&self, dir: &V::Dir, name: &CStr) -> Result<bool, Error> {
        match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO) {
            Ok(_) => Ok(true),
            Err(error) if error.is_vanished() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn drop_output(&self, output: &Planned) -> Done<()> {
        self.staging.drop_output(&output.staged).map_err(|error| self.staging.failed(&output.staged, error))
    }

    /// Outputs of one directory take the place of their inputs.
    fn replace(&self, index: usize, outputs: &[Planned]) -> Done<Applied> {
        let mut applied = Applied::default();
        let Some(first) = outputs.first() else { return Ok(applied) };
        let path = self.path_of(&first.directory);
        let parents = self.parent_of(&first.directory);
        let opened = parents.and_then(|(parent, name)| {
            let dir = parent.open_dir(&name, SymlinkBehavior::NoFollow)?;
            Ok((parent, name, dir))
        });
        let (parent, name, dir) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.leave(outputs, &path, &Reason::Failed(error), &mut applied)?;
                return Ok(applied);
            }
        };
        let place = Place { dir, parent: &parent, name: &name, path };
        if let Some((swapped, ino)) = self.swapped(index)? {
            let swap = self.staging.swap.open_dir(&swapped, SymlinkBehavior::NoFollow);
            let swap = swap.map_err(self.failed(&swapped))?;
            let own = swap.identity().map_err(self.failed(&swapped))?;
            if own.1 == ino {
                // The other attempt ended after the exchange.
                let due = self.due(outputs)?;
                self.settle_exchanged(&place, &swap, &place.dir, &swapped, &due, &mut applied)?;
                return Ok(applied);
            }
            self.undo_preparation(&place, &swap, &swapped, outputs)?;
        }
        let begun = outputs.iter().any(|output| self.hidden_exists(output).unwrap_or(true));
        if !begun {
            let mut due = Vec::new();
            for one in self.due(outputs)? {
                let staged = &one.planned.staged;
                if self.exists(&self.staging.out, staged).map_err(self.failed(staged))? {
                    due.push(one);
                } else {
                    // An earlier attempt ended when it had done all but to note it.
                    self.count(&one, &mut applied)?;
                }
            }
            let due = self.unchanged_only(&place, due, &mut applied)?;
            if due.is_empty() {
                return Ok(applied);
            }
            if let Exchange::Done = self.exchange(index, &place, &due, &mut applied)? {
                return Ok(applied);
            }
        }
        for output in outputs {
            self.replace_one_by_one(&place, output, &mut applied)?;
        }
        Ok(applied)
    }

    /// The directory that holds the one of this path, and its name there.
    fn parent_of(&self, path: &CStr) -> Result<(V::Dir, CString), Error> {
        if path.is_empty() {
            let (parent, name) = split_last(self.root_path);
            return Ok((self.staging.base.open_dir(&parent, SymlinkBehavior::Follow)?, name));
        }
        parent_below(&self.root, path)
    }

    /// The outputs that are not settled.
    fn due<'p>(&self, outputs: &'p [Planned]) -> Done<Vec<Due<'p>>> {
        let mut due = Vec::new();
        for planned in outputs {
            if let Some(manifest) = self.staging.manifest(&planned.staged)? {
                due.push(Due { planned, manifest });
            }
        }
        Ok(due)
    }

    fn leave(&self, outputs: &[Planned], path: &CStr, reason: &Reason, applied: &mut Applied) -> Done<()> {
        for due in self.due(outputs)? {
            self.leave_one(&due, path, reason.clone(), applied)?;
        }
        Ok(())
    }

    fn leave_one(&self, due: &Due<'_>, path: &CStr, reason: Reason, applied: &mut Applied) -> Done<()> {
        self.step()?;
        let inputs = due.manifest.entries.len() as u64;
        applied.left.push(Left { directory: path.to_owned(), inputs, reason });
        self.drop_output(due.planned)
    }

    /// Leaves those whose inputs are not what they were.
    fn unchanged_only<'p>(
        &self,
        place: &Place<'_, V::Dir>,
        due: Vec<Due<'p>>,
        applied: &mut Applied,
    ) -> Done<Vec<Due<'p>>> {
        let mut unchanged = Vec::new();
        for due in due {
            match self.first_changed(&place.dir, &due.manifest.entries) {
                None => unchanged.push(due),
                Some(reason) => self.leave_one(&due, &place.path, reason, applied)?,
            }
        }
        Ok(unchanged)
    }

    /// Why one of the files is not what it was.
    fn first_changed(&self, dir: &V::Dir, files: &[ManifestEntry]) -> Option<Reason> {
        let chunks: Vec<_> = files.chunks(MANY).collect();
        let found = in_parallel(&chunks, self.inner_threads, |_, chunk| {
            chunk.iter().find_map(|entry| change(dir, entry).err())
        });
        found.into_iter().flatten().next()
    }

    /// Directories of the directory `index` in `swap`, and the inode number of the one that it is to replace.
    fn swapped(&self, index: usize) -> Done<Option<(CString, u64)>> {
        let prefix = format!("{index}.");
        let all = entries(&self.staging.swap).map_err(self.failed(c"swap"))?;
        Ok(all.into_iter().find_map(|(name, _)| {
            let ino = name.to_str().ok()?.strip_prefix(&prefix)?.parse().ok()?;
            Some((name, ino))
        }))
    }

    fn hidden_exists(&self, output: &Planned) -> Result<bool, Error> {
        self.exists(&self.staging.swap, &hidden_name(output))
    }

    /// Prepares a directory and lets it change places with that of the inputs.
    fn exchange(
        &self,
        index: usize,
        place: &Place<'_, V::Dir>,
        due: &[Due<'_>],
        applied: &mut Applied,
    ) -> Done<Exchange> {
        if !place.parent.is_writable(place.name).unwrap_or(false) {
            return Ok(Exchange::NotPossible);
        }
        let Ok(listed) = entries(&place.dir) else { return Ok(Exchange::NotPossible) };
        if listed.iter().any(|(_, kind)| *kind == FileKind::Directory) {
            return Ok(Exchange::NotPossible);
        }
        let Ok(metadata) = place.dir.own_metadata(Fields::STAT) else { return Ok(Exchange::NotPossible) };
        let name = c_string(format!("{index}.{}", metadata.ino).into_bytes());
        self.step()?;
        let Ok(new) = make_dir(&self.staging.swap, &name) else { return Ok(Exchange::NotPossible) };
        let all: Vec<_> = due.iter().map(|due| due.planned.clone()).collect();
        let prepared = self.prepare(place, &new, &name, &metadata, &listed, due);
        let exchanged = match prepared {
            Err(Stop::Interrupted) => return Err(CompactError::Interrupted),
            Err(Stop::Failed) => false,
            Ok(()) => {
                self.step()?;
                place.parent.exchange(place.name, &self.staging.swap, &name).is_ok()
            }
        };
        if !exchanged {
            self.undo_preparation(place, &new, &name, &all)?;
            return Ok(Exchange::NotPossible);
        }
        let swapped = self.staging.swap.metadata(&name, SymlinkBehavior::NoFollow, Fields::INO);
        if swapped.map_err(self.failed(&name))?.ino != metadata.ino {
            // Somebody had given the directory's name to another.
            place.parent.exchange(place.name, &self.staging.swap, &name).map_err(self.failed(&place.path))?;
            self.undo_preparation(place, &new, &name, &all)?;
            return Ok(Exchange::NotPossible);
        }
        self.settle_exchanged(place, &place.dir, &new, &name, due, applied)?;
        Ok(Exchange::Done)
    }

    /// Makes `new` what the directory is to be.
    fn prepare(
        &self,
        place: &Place<'_, V::Dir>,
        new: &V::Dir,
        swapped: &CStr,
        metadata: &Metadata,
        listed: &[(CString, FileKind)],
        due: &[Due<'_>],
    ) -> Result<(), Stop> {
        for due in due {
            self.step()?;
            self.take_over_mode(&place.dir, due);
            self.staging.out.rename(&due.planned.staged, new, &due.planned.name)?;
        }
        let replaced = replaced_names(due);
        let kept = listed.iter().map(|(name, _)| name).filter(|name| !replaced.contains(*name));
        let kept =
            Manifest { entries: kept.map(|name| stamped(&place.dir, name)).collect::<Result<_, _>>()? };
        self.staging.note_kept(swapped, &kept)?;
        for entry in &kept.entries {
            self.step()?;
            place.dir.hard_link(&entry.name, SymlinkBehavior::NoFollow, new, &entry.name)?;
            if !is_same(new, entry)? {
                // Somebody has replaced it since.
                return Err(Stop::Failed);
            }
        }
        self.step()?;
        like_the_old(&place.dir, new, metadata)?;
        new.as_file()?.sync()?;
        Ok(())
    }

    /// The output gets the mode and, where permitted, the owner of its first input.
    fn take_over_mode(&self, dir: &V::Dir, due: &Due<'_>) {
        let Some(first) = due.manifest.entries.first() else { return };
        let fields = Fields::MODE | Fields::UID | Fields::GID;
        let (out, staged) = (&self.staging.out, &due.planned.staged);
        // An output that belongs to whoever compacts is no loss.
        let _ = dir.metadata(&first.name, SymlinkBehavior::NoFollow, fields).and_then(|of| {
            let own = out.metadata(staged, SymlinkBehavior::NoFollow, fields)?;
            if (own.uid, own.gid) != (of.uid, of.gid) {
                let owner = Ownership { uid: Some(of.uid), gid: Some(of.gid) };
                out.set_owner(staged, owner, SymlinkBehavior::NoFollow)?;
            }
            out.set_mode(staged, of.mode & 0o7777, SymlinkBehavior::NoFollow)
        });
    }

    /// Brings back what was prepared in a directory that has not changed places, or has done so twice.
    fn undo_preparation(
        &self,
        place: &Place<'_, V::Dir>,
        new: &V::Dir,
        name: &CStr,
        outputs: &[Planned],
    ) -> Done<()> {
        let failed = self.failed(&place.path);
        let kept = self.kept(name)?;
        // It may have got the mode of one that may not be written.
        new.as_file().and_then(|dir| dir.set_mode(0o700)).map_err(&failed)?;
        for (entry, kind) in entries(new).map_err(&failed)? {
            self.step()?;
            if let Some(output) = outputs.iter().find(|output| output.name == entry) {
                new.rename(&entry, &self.staging.out, &output.staged).map_err(&failed)?;
            } else if kept.has_unchanged(new, &entry) || is_link(&place.dir, new, &entry).map_err(&failed)? {
                new.remove(&entry, RemoveKind::File).map_err(&failed)?;
            } else {
                self.put_back(new, &entry, kind, &place.dir).map_err(&failed)?;
            }
        }
        self.step()?;
        self.staging.swap.remove(name, RemoveKind::Directory).map_err(self.failed(name))
    }

    /// The files of which the directory `swapped` has got links.
    fn kept(&self, swapped: &CStr) -> Done<Kept> {
        let entries = self.staging.kept(swapped)?.entries;
        Ok(Kept(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect()))
    }

    /// Removes from `other` the links of kept files that are no longer in `tree`, where people could reach them by name.
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

    /// Moves an entry to `to`, by another name if its own is taken there by something younger.
    fn put_back(&self, from: &V::Dir, name: &CStr, kind: FileKind, to: &V::Dir) -> Result<(), Error> {
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

    /// `old` and `new` have changed places: keeps that if the inputs are what they were.
    fn settle_exchanged(
        &self,
        place: &Place<'_, V::Dir>,
        old: &V::Dir,
        new: &V::Dir,
        name: &CStr,
        due: &[Due<'_>],
        applied: &mut Applied,
    ) -> Done<()> {
        let failed = self.failed(&place.path);
        let kept = self.kept(name)?;
        for changed in due {
            let Some(reason) = self.first_changed(old, &changed.manifest.entries) else { continue };
            self.step()?;
            // Before, since whoever finishes this after an interruption cannot tell any more; after, since then nobody
            // reaches the new one.
            self.forget_removed(&kept, new, old)?.map_err(&failed)?;
            place.parent.exchange(place.name, &self.staging.swap, name).map_err(&failed)?;
            self.forget_removed(&kept, new, old)?.map_err(&failed)?;
            let back = Place {
                dir: old.open_dir(c".", SymlinkBehavior::NoFollow).map_err(&failed)?,
                path: place.path.clone(),
                ..*place
            };
            let all: Vec<_> = due.iter().map(|due| due.planned.clone()).collect();
            self.undo_preparation(&back, new, name, &all)?;
            for due in due {
                self.leave_one(due, &place.path, reason.clone(), applied)?;
            }
            return Ok(());
        }
        let replaced = replaced_names(due);
        for (entry, kind) in entries(old).map_err(&failed)? {
            let is_known = replaced.contains(&entry) || kept.has(old, &entry).map_err(&failed)?;
            if !is_known && !is_link(old, new, &entry).map_err(&failed)? {
                // It came after the directory had been listed, maybe in the place of a file that was there.
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

    fn count(&self, due: &Due<'_>, applied: &mut Applied) -> Done<()> {
        applied.outputs += 1;
        applied.replaced += due.manifest.entries.len() as u64;
        // Without a manifest it is settled.
        self.step()?;
        self.drop_output(due.planned)
    }

    /// Moves the inputs of an output away, and gives it its name.
    fn replace_one_by_one(
        &self,
        place: &Place<'_, V::Dir>,
        output: &Planned,
        applied: &mut Applied,
    ) -> Done<()> {
        let failed = self.failed(&place.path);
        let Some(manifest) = self.staging.manifest(&output.staged)? else { return Ok(()) };
        let due = Due { planned: output, manifest };
        let name = hidden_name(output);
        let is_staged = self.exists(&self.staging.out, &output.staged).map_err(&failed)?;
        if is_staged {
            self.step()?;
            let hidden = make_dir(&self.staging.swap, &name).map_err(&failed)?;
            self.take_over_mode(&place.dir, &due);
            if let Err(reason) = self.hide_and_reveal(place, &hidden, &due)? {
                for (entry, kind) in entries(&hidden).map_err(&failed)? {
                    self.step()?;
                    self.put_back(&hidden, &entry, kind, &place.dir).map_err(&failed)?;
                }
                self.step()?;
                self.staging.swap.remove(&name, RemoveKind::Directory).map_err(&failed)?;
                return self.leave_one(&due, &place.path, reason, applied);
            }
        }
        self.step()?;
        match self.staging.swap.rename(&name, &self.staging.old, &name) {
            Err(error) if !error.is_vanished() => return Err(failed(error)),
            _ => {}
        }
        self.count(&due, applied)
    }

    fn hide_and_reveal(
        &self,
        place: &Place<'_, V::Dir>,
        hidden: &V::Dir,
        due: &Due<'_>,
    ) -> Done<Result<(), Reason>> {
        for entry in &due.manifest.entries {
            if change(hidden, entry).is_ok() {
                continue;
            }
            if let Err(reason) = change(&place.dir, entry) {
                return Ok(Err(reason));
            }
            self.step()?;
            if let Err(error) = place.dir.rename(&entry.name, hidden, &entry.name) {
                return Ok(Err(Reason::Failed(error)));
            }
            let checksum = checksum_name(&entry.name);
            match place.dir.rename(&checksum, hidden, &checksum) {
                Err(error) if !error.is_vanished() => return Ok(Err(Reason::Failed(error))),
                _ => {}
            }
        }
        if let Some(reason) = self.first_changed(hidden, &due.manifest.entries) {
            return Ok(Err(reason));
        }
        match self.exists(&place.dir, &due.planned.name) {
            Ok(false) => {}
            Ok(true) => return Ok(Err(Reason::Taken(due.planned.name.clone()))),
            Err(error) => return Ok(Err(Reason::Failed(error))),
        }
        self.step()?;
        let revealed = self.staging.out.rename(&due.planned.staged, &place.dir, &due.planned.name);
        Ok(revealed.map_err(Reason::Failed))
    }

    /// Removes what has been replaced.
    fn remove_old(&self, threads: usize) -> Done<()> {
        let failed = self.failed(c"old");
        let all = entries(&self.staging.old).map_err(&failed)?;
        let removed = in_parallel(&all, threads, |_, (name, _)| {
            self.step()?;
            let dir = self.staging.old.open_dir(name, SymlinkBehavior::NoFollow).map_err(&failed)?;
            let files = entries(&dir).map_err(&failed)?;
            let chunks: Vec<_> = files.chunks(MANY).collect();
            let inner = (threads / all.len()).max(1);
            let parts = in_parallel(&chunks, inner, |_, chunk| {
                self.step()?;
                chunk.iter().try_for_each(|(file, kind)| match kind {
                    FileKind::Directory => Ok(()),
                    _ => match dir.remove(file, RemoveKind::File) {
                        Err(error) if !error.is_vanished() => Err(failed(error)),
                        _ => Ok(()),
                    },
                })
            });
            parts.into_iter().collect::<Done<()>>()?;
            self.step()?;
            remove_entries(&dir).map_err(&failed)
        });
        removed.into_iter().collect()
    }
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

/// Gives a directory the attributes of the one that it is to replace.
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
            // What the system has set already need not be permitted.
            if target.xattr(name).ok().as_ref() != Some(&value) {
                target.set_xattr(name, &value)?;
            }
        }
    }
    Ok(())
}

/// Where the inputs of an output are while it gets its name.
fn hidden_name(output: &Planned) -> CString {
    c_string([output.staged.to_bytes(), b".hidden"].concat())
}

/// The file in which Hadoop keeps checksums of another.
fn checksum_name(name: &CStr) -> CString {
    c_string([b".", name.to_bytes(), b".crc"].concat())
}

/// The inputs, and the files with their checksums.
fn replaced_names(due: &[Due<'_>]) -> HashSet<CString> {
    let inputs = due.iter().flat_map(|due| &due.manifest.entries).map(|entry| &entry.name);
    inputs.flat_map(|name| [name.clone(), checksum_name(name)]).collect()
}

fn names(path: &CStr) -> impl Iterator<Item = CString> {
    path.to_bytes().split(|&b| b == b'/').filter(|name| !name.is_empty()).map(|name| c_string(name.to_vec()))
}

/// The directory that holds the entry of this path below `root`, no part of it a symbolic link, and the entry's name.
pub(crate) fn parent_below<D: Dir>(root: &D, path: &CStr) -> Result<(D, CString), Error> {
    let mut all: Vec<_> = names(path).collect();
    let last = all.pop().unwrap_or_default();
    let mut dir = root.open_dir(c".", SymlinkBehavior::NoFollow)?;
    for name in all {
        dir = dir.open_dir(&name, SymlinkBehavior::NoFollow)?;
    }
    Ok((dir, last))
}

fn split_last(path: &CStr) -> (CString, CString) {
    let bytes = path.to_bytes();
    let trimmed = &bytes[..bytes.len() - bytes.iter().rev().take_while(|&&b| b == b'/').count()];
    let at = trimmed.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
    let parent = if at == 0 { b"." } else { &trimmed[..at] };
    (c_string(parent.to_vec()), c_string(trimmed[at..].to_vec()))
}
