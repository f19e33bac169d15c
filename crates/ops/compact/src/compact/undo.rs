//! Undoes a compaction in place: the replaced files get their names back, and the outputs are removed.
//!
//! First everything is compared with the record. If an output has changed, or a name is taken, nothing is done. Then a
//! mark is written, and from then on the next call completes this undoing. In each directory the outputs are moved
//! away, one by one, and their inputs moved back; after each output has been moved away, it must still be the one that
//! was recorded. So it is compared again before it is removed: a writer may have had it open.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Errno, Error, Fields, File, RemoveKind, SymlinkBehavior, Volume};

use super::CompactError;
use super::ManifestEntry;
use super::hidden::{find_kept, hide};
use super::in_place::hidden_name;
use super::kept::{are_links, change, is_same};
use super::outcome::{Left, Reason};
use super::paths::parent_below;
use super::record::{Record, Replacement};
use super::replaced::{FILES, Generation, UNDOING, UNDONE, exchanged_index, generations, kept_path};
use super::staging::{
    RECORD, Staging, c_string, entries, lock_unchanged, make_dir, path_below, remove_entries, write_file,
};
use super::work::{Done, checksum_name, lacks_checksum, may_move_checksum};
use millstream_text::names::rename_new;
use millstream_text::quote::shell_word;

/// The result of undoing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Number of outputs that were removed.
    pub outputs: u64,
    /// Number of replaced files that were put back.
    pub restored: u64,
    /// Files that were put back under another name, or not at all.
    pub left: Vec<Left>,
}

/// Undoes the latest compaction with this staging directory whose replaced files are kept, or the rest of it if an
/// earlier call was interrupted. `should_continue` is called before each step. There must be no journal.
///
/// # Errors
/// If there is none, if files have changed since, and if `should_continue` returns false.
pub fn undo<V: Volume>(
    staging: &Staging<V>,
    should_continue: &dyn Fn() -> bool,
) -> Result<Undone, CompactError> {
    let kept = staging.generations()?.pop().ok_or(CompactError::NothingKept)?;
    hide(&kept.dir, &[RECORD, UNDOING])
        .map_err(|error| CompactError::Volume { path: kept.path.clone(), error })?;
    let is_begun = kept.is_undoing()?;
    let Some(record) = kept.record()? else {
        if !is_begun {
            return Err(CompactError::NothingKept);
        }
        // An earlier attempt was interrupted at its end.
        staging.forget(&kept)?;
        return Ok(Undone::default());
    };
    let undoing = Undoing::<V>::new(&staging.base, &kept, &record, should_continue)?;
    undoing.check(is_begun)?;
    if !is_begun {
        undoing.step()?;
        write_file(&kept.dir, UNDOING, b"").map_err(|error| undoing.failed(UNDOING, error))?;
        kept.dir.as_file().and_then(|dir| dir.sync()).map_err(|error| undoing.failed(UNDOING, error))?;
    }
    let (undone, changed) = undoing.put_back()?;
    staging.sync_volume()?;
    undoing.step()?;
    undoing.refuse_written()?;
    if changed.is_empty() {
        staging.forget(&kept)?
    } else {
        undoing.keep_only(&changed)?
    }
    Ok(undone)
}

/// The result that [`undo`] would have; nothing is changed. `staging` is the path of the staging directory on `volume`.
/// There must be no journal.
///
/// # Errors
/// Those of [`undo`] that are known in advance, and if another compaction holds the lock.
pub fn predict_undo<V: Volume>(volume: &V, staging: &CStr) -> Result<Undone, CompactError> {
    let base = volume.base();
    let _locks = lock_unchanged(&base, staging)?;
    let kept = generations(&base, &kept_path(staging))?.pop().ok_or(CompactError::NothingKept)?;
    let is_begun = kept.is_undoing()?;
    match kept.record()? {
        Some(record) => {
            let undoing = Undoing::<V>::new(&base, &kept, &record, &|| true)?;
            undoing.check(is_begun)?;
            Ok(undoing.prediction())
        }
        None if is_begun => Ok(Undone::default()),
        None => Err(CompactError::NothingKept),
    }
}

/// The command that undoes the latest compaction in place of the directory `tree`.
pub fn undo_command(tree: &[u8]) -> Vec<u8> {
    [b"millstream compact --undo ", &shell_word(tree)[..]].concat()
}

/// An output whose inputs are to be put back.
struct Pending<'a, D> {
    replacement: &'a Replacement,
    /// The directory of the inputs.
    from: D,
    /// Its path.
    from_path: CString,
}

/// Obstacles to putting inputs back.
#[derive(Default)]
struct Obstacles {
    /// Paths of files and directories that are immutable or append-only.
    immovable: BTreeSet<CString>,
    /// A sentence about each other obstacle.
    others: Vec<String>,
}

struct Undoing<'a, V: Volume> {
    kept: &'a Generation<V::Dir>,
    record: &'a Record,
    root: V::Dir,
    pending: Vec<Pending<'a, V::Dir>>,
    should_continue: &'a dyn Fn() -> bool,
}

impl<'a, V: Volume> Undoing<'a, V> {
    fn new(
        base: &V::Dir,
        kept: &'a Generation<V::Dir>,
        record: &'a Record,
        should_continue: &'a dyn Fn() -> bool,
    ) -> Done<Self> {
        let failed = |error| CompactError::Volume { path: path_below(&kept.path, FILES), error };
        let root = base.open_dir(&record.root, SymlinkBehavior::Follow);
        let root = root.map_err(|error| CompactError::Volume { path: record.root.clone(), error })?;
        let mut pending = Vec::new();
        let files = match kept.dir.open_dir(FILES, SymlinkBehavior::NoFollow) {
            // It is removed after everything has been put back.
            Err(error) if error.is_vanished() => {
                return Ok(Undoing { kept, record, root, pending, should_continue });
            }
            opened => opened.map_err(failed)?,
        };
        let places: Vec<CString> =
            entries(&files).map_err(failed)?.into_iter().map(|(name, _)| name).collect();
        let directories = record.replacements.chunk_by(|a, b| a.planned.directory == b.planned.directory);
        for (index, replacements) in directories.enumerate() {
            let exchanged = places.iter().find(|name| exchanged_index(name) == Some(index));
            for replacement in replacements {
                let hidden = hidden_name(&replacement.planned);
                let Some(place) = places.iter().find(|name| **name == hidden).or(exchanged) else { continue };
                let from = files.open_dir(place, SymlinkBehavior::NoFollow).map_err(failed)?;
                if was_replaced(kept, replacement, &from).map_err(failed)? {
                    let from_path = path_below(&path_below(&kept.path, FILES), place);
                    pending.push(Pending { replacement, from, from_path });
                }
            }
        }
        Ok(Undoing { kept, record, root, pending, should_continue })
    }

    fn step(&self) -> Done<()> {
        if (self.should_continue)() { Ok(()) } else { Err(CompactError::Interrupted) }
    }

    fn failed(&self, name: &CStr, error: Error) -> CompactError {
        CompactError::Volume { path: path_below(&self.kept.path, name), error }
    }

    fn path_of(&self, replacement: &Replacement) -> CString {
        path_below(&self.record.root, &replacement.planned.directory)
    }

    fn directory_of(&self, replacement: &Replacement) -> Result<V::Dir, Error> {
        let directory = &replacement.planned.directory;
        if directory.is_empty() {
            return self.root.open_dir(c".", SymlinkBehavior::NoFollow);
        }
        let (parent, name) = parent_below(&self.root, directory)?;
        parent.open_dir(&name, SymlinkBehavior::NoFollow)
    }

    /// Refuses if a file cannot be moved and, unless the undoing has begun, if anything has changed since the
    /// compaction.
    fn check(&self, is_begun: bool) -> Done<()> {
        let mut found = Obstacles::default();
        let away = self.kept.dir.open_dir(UNDONE, SymlinkBehavior::NoFollow).ok();
        for pending in &self.pending {
            let path = self.path_of(pending.replacement);
            match self.directory_of(pending.replacement) {
                Ok(dir) => found.add_all(&dir, &path, pending),
                Err(error) => found.others.push(format!("{}: {error}", path.to_string_lossy())),
            }
            if let Some(away) = &away
                && let Err(Reason::Immovable(name)) = change(away, &moved(pending.replacement))
            {
                found.immovable.insert(path_below(&path_below(&self.kept.path, UNDONE), &name));
            }
        }
        if !found.immovable.is_empty() {
            return Err(CompactError::Immovable { paths: found.immovable.into_iter().collect() });
        }
        if is_begun || found.others.is_empty() {
            return Ok(());
        }
        Err(CompactError::NotUndoable { reasons: found.others })
    }

    fn prediction(&self) -> Undone {
        let restored =
            self.pending.iter().map(|pending| pending.replacement.inputs.entries.len() as u64).sum();
        Undone { outputs: self.pending.len() as u64, restored, left: Vec::new() }
    }

    /// Also returns the staged names of outputs that changed at the last moment and stay, with their inputs where they
    /// are kept.
    fn put_back(&self) -> Done<(Undone, HashSet<&CStr>)> {
        let (mut undone, mut changed) = (Undone::default(), HashSet::new());
        let away = make_dir(&self.kept.dir, UNDONE).map_err(|error| self.failed(UNDONE, error))?;
        for pending in &self.pending {
            let path = self.path_of(pending.replacement);
            let failed = |error| CompactError::Volume { path: path.clone(), error };
            let dir = self.directory_of(pending.replacement).map_err(failed)?;
            match self.take_away(&dir, &away, pending) {
                Err(Stopped::Interrupted) => return Err(CompactError::Interrupted),
                Err(Stopped::Failed(error)) => return Err(failed(error)),
                Err(Stopped::Changed(reason)) => {
                    let inputs = pending.replacement.inputs.entries.len() as u64;
                    undone.left.push(Left { directory: path, inputs, reason });
                    changed.insert(pending.replacement.planned.staged.as_c_str());
                    continue;
                }
                Ok(()) => undone.outputs += 1,
            }
            self.restore(&dir, &path, pending, &mut undone)?;
        }
        Ok((undone, changed))
    }

    /// Ends the undoing, except for some outputs, which can be undone later. The others stay in the record, without
    /// inputs, because a directory's number is its position there.
    fn keep_only(&self, staged: &HashSet<&CStr>) -> Done<()> {
        const NEW: &CStr = c".record.new";
        let mut record = self.record.clone();
        for one in &mut record.replacements {
            if !staged.contains(one.planned.staged.as_c_str()) {
                one.inputs.entries.clear();
            }
        }
        let dir = &self.kept.dir;
        write_file(dir, NEW, &record.encode())
            .and_then(|()| dir.rename(NEW, dir, RECORD))
            .and_then(|()| remove_entries(&make_dir(dir, UNDONE)?))
            .and_then(|()| dir.remove(UNDOING, RemoveKind::File))
            .map_err(|error| self.failed(RECORD, error))
    }

    /// Moves an output out of its directory, unless an earlier attempt has done so. If it was written to at the last
    /// moment it gets its name back, as long as all inputs are kept.
    fn take_away(&self, dir: &V::Dir, away: &V::Dir, pending: &Pending<'_, V::Dir>) -> Result<(), Stopped> {
        let Replacement { planned, output, inputs } = pending.replacement;
        if !has(away, &planned.staged).map_err(Stopped::Failed)? {
            change(dir, output).map_err(Stopped::from)?;
            if !(self.should_continue)() {
                return Err(Stopped::Interrupted);
            }
            dir.rename(&output.name, away, &planned.staged).map_err(Stopped::Failed)?;
        }
        let Err(reason) = change(away, &moved(pending.replacement)) else { return Ok(()) };
        for entry in &inputs.entries {
            if find_kept(&pending.from, entry).map_err(Stopped::Failed)?.is_none() {
                // Some lines are back; `refuse_written` reports the others.
                return Ok(());
            }
        }
        if let Reason::Failed(error) = reason {
            return Err(Stopped::Failed(error));
        }
        move_to(away, &planned.staged, dir, &output.name).map_err(Stopped::Failed)?;
        Err(Stopped::Changed(Reason::Changed(output.name.clone())))
    }

    /// Refuses to remove outputs that were written to after they had been moved away.
    fn refuse_written(&self) -> Done<()> {
        let away = make_dir(&self.kept.dir, UNDONE).map_err(|error| self.failed(UNDONE, error))?;
        for replacement in &self.record.replacements {
            let path = || path_below(&path_below(&self.kept.path, UNDONE), &replacement.planned.staged);
            let is_there = has(&away, &replacement.planned.staged);
            if is_there.map_err(|error| CompactError::Volume { path: path(), error })? {
                change(&away, &moved(replacement)).map_err(|reason| match reason {
                    Reason::Failed(error) => CompactError::Volume { path: path(), error },
                    _ => CompactError::WrittenTo { path: path() },
                })?;
            }
        }
        Ok(())
    }

    fn restore(
        &self,
        dir: &V::Dir,
        path: &CStr,
        pending: &Pending<'_, V::Dir>,
        undone: &mut Undone,
    ) -> Done<()> {
        let failed = |error| CompactError::Volume { path: path.to_owned(), error };
        for entry in &pending.replacement.inputs.entries {
            if let Some(name) = find_kept(&pending.from, entry).map_err(failed)? {
                self.step()?;
                let is_taken = move_new((&pending.from, &name), dir, &entry.name).map_err(failed)?;
                if is_taken {
                    let reason = Reason::Taken(entry.name.clone());
                    undone.left.push(Left { directory: path.to_owned(), inputs: 1, reason });
                }
            }
            restore_checksum(&pending.from, entry, dir).map_err(failed)?;
            undone.restored += 1;
        }
        Ok(())
    }
}

fn has<D: Dir>(dir: &D, name: &CStr) -> Result<bool, Error> {
    match dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO) {
        Ok(_) => Ok(true),
        Err(error) if error.is_vanished() => Ok(false),
        Err(error) => Err(error),
    }
}

/// An output after it was moved away.
fn moved(replacement: &Replacement) -> ManifestEntry {
    ManifestEntry { name: replacement.planned.staged.clone(), ..replacement.output.clone() }
}

/// Whether an output replaced its inputs: the compaction may have left them.
fn was_replaced<D: Dir>(kept: &Generation<D>, replacement: &Replacement, from: &D) -> Result<bool, Error> {
    for entry in &replacement.inputs.entries {
        if find_kept(from, entry)?.is_some() {
            return Ok(true);
        }
    }
    let taken_away = c_string([UNDONE.to_bytes(), b"/", replacement.planned.staged.to_bytes()].concat());
    has(&kept.dir, &taken_away)
}

enum Stopped {
    Interrupted,
    Failed(Error),
    Changed(Reason),
}

impl From<Reason> for Stopped {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Failed(error) => Stopped::Failed(error),
            reason => Stopped::Changed(reason),
        }
    }
}

impl Obstacles {
    /// Adds the obstacles to putting the inputs of an output back in `dir`, whose path is `path`.
    fn add_all<D: Dir>(&mut self, dir: &D, path: &CStr, pending: &Pending<'_, D>) {
        let Pending { replacement, from, from_path } = pending;
        for (directory, path) in [(dir, path), (from, from_path.as_c_str())] {
            if directory.own_metadata(Fields::KIND).is_ok_and(|found| found.is_immovable) {
                self.immovable.insert(path.to_owned());
            }
        }
        let output = &replacement.output;
        self.add(change(dir, output), path, (path, &output.name), "has changed since the compaction");
        for entry in &replacement.inputs.entries {
            let name = &entry.name;
            if *name != output.name && dir.metadata(name, SymlinkBehavior::NoFollow, Fields::INO).is_ok() {
                self.add(Err(Reason::Taken(name.clone())), path, (path, name), "exists again");
            }
            let kept = find_kept(from, entry).ok().flatten().ok_or(Reason::Changed(name.clone()));
            let state = kept.and_then(|name| change(from, &ManifestEntry { name, ..entry.clone() }));
            let state = state.and_then(|()| may_move_checksum(from, entry));
            self.add(state, from_path, (path, name), "is no longer kept as it was");
        }
    }

    /// Adds a file if there is a reason. If the file cannot be moved, it is in the directory `path`; otherwise `named`
    /// has its directory and name for the message.
    fn add(&mut self, state: Result<(), Reason>, path: &CStr, named: (&CStr, &CStr), why: &str) {
        match state {
            Ok(()) => {}
            Err(Reason::Immovable(name)) => drop(self.immovable.insert(path_below(path, &name))),
            Err(_) => self.others.push(format!("{} {why}", path_below(named.0, named.1).to_string_lossy())),
        }
    }
}

/// The name of a file that is put back, or its nth substitute.
fn numbered(name: &CStr, number: u64) -> CString {
    match number {
        0 => name.to_owned(),
        _ => c_string([name.to_bytes(), b".restored-", number.to_string().as_bytes()].concat()),
    }
}

/// Moves a file to `name` in another directory, or to a substitute if that is taken; returns whether it was.
fn move_new<D: Dir>((from, kept): (&D, &CStr), to: &D, name: &CStr) -> Result<bool, Error> {
    for number in 0.. {
        match move_to(from, kept, to, &numbered(name, number)) {
            Err(error) if error.errno == Errno::EXIST => {}
            moved => return moved.map(|()| number > 0),
        }
    }
    Ok(false)
}

/// Gives a file a name that no other file has.
fn move_to<D: Dir>(from: &D, name: &CStr, to: &D, target: &CStr) -> Result<(), Error> {
    match rename_new(from, name, to, target) {
        // An earlier attempt ended between a hard link and a removal.
        Err(error) if error.errno == Errno::EXIST && are_links((from, name), (to, target))? => {
            from.remove(name, RemoveKind::File)
        }
        moved => moved,
    }
}

/// Puts the checksum file of a file next to it, under the file's new name. Checksums of other files stay.
fn restore_checksum<D: Dir>(from: &D, entry: &ManifestEntry, to: &D) -> Result<(), Error> {
    for name in (0..).map(|number| numbered(&entry.name, number)) {
        let target = ManifestEntry { name, ..entry.clone() };
        if is_same(to, &target)? {
            return match move_to(from, &checksum_name(&entry.name), to, &checksum_name(&target.name)) {
                Err(error) if error.errno != Errno::EXIST && !lacks_checksum(error) => Err(error),
                _ => Ok(()),
            };
        }
        if !has(to, &target.name)? {
            break;
        }
    }
    Ok(())
}
