//! A compaction in place is undone: the replaced files get their names again, and the outputs are removed.
//!
//! First everything is compared with the record. If an output has changed, or a name is taken, nothing is done. Then a mark is
//! written, and from then on the next call completes what this one has begun. In each directory the outputs are moved away, one by
//! one, and their inputs moved back; after each output has been moved away, it must still be the one that was recorded.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Errno, Error, Fields, File, RemoveKind, SymlinkBehavior, Volume};

use super::CompactError;
use super::in_place::hidden_name;
use super::kept::{change, is_link, is_same};
use super::outcome::{Left, Reason};
use super::paths::parent_below;
use super::record::{Record, Replacement};
use super::replaced::{FILES, Generation, UNDOING, UNDONE, exchanged_index};
use super::staging::{RECORD, Staging, c_string, entries, make_dir, path_below, remove_entries, write_file};
use super::work::{Done, checksum_name};

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The compaction is undone.
    Real,
    /// It is checked whether it can be undone.
    Dry,
}

/// What was undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Number of outputs that were removed.
    pub outputs: u64,
    /// Number of replaced files that were put back.
    pub restored: u64,
    /// Files that were put back under another name, or not at all.
    pub left: Vec<Left>,
}

/// Undoes the latest compaction with this staging directory whose replaced files are kept, or the rest of it if an earlier call was
/// interrupted. `should_continue` is called before each step. There must be no journal.
///
/// # Errors
/// If there is none, if files have changed since, and if `should_continue` returns false.
pub fn undo<V: Volume>(
    staging: &Staging<V>,
    attempt: Attempt,
    should_continue: &dyn Fn() -> bool,
) -> Result<Undone, CompactError> {
    let kept = staging.generations()?.pop().ok_or(CompactError::NothingKept)?;
    let is_begun = kept.is_undoing()?;
    let Some(record) = kept.record()? else {
        if !is_begun {
            return Err(CompactError::NothingKept);
        }
        // An earlier attempt was interrupted at its end.
        staging.forget(&kept)?;
        return Ok(Undone::default());
    };
    let undoing = Undoing::new(staging, &kept, &record, should_continue)?;
    if !is_begun {
        undoing.check()?;
    }
    if attempt == Attempt::Dry {
        return Ok(undoing.prediction());
    }
    if !is_begun {
        undoing.step()?;
        write_file(&kept.dir, UNDOING, b"").map_err(|error| undoing.failed(UNDOING, error))?;
        kept.dir.as_file().and_then(|dir| dir.sync()).map_err(|error| undoing.failed(UNDOING, error))?;
    }
    let (undone, changed) = undoing.put_back()?;
    staging.sync_volume()?;
    undoing.step()?;
    if changed.is_empty() {
        staging.forget(&kept)?
    } else {
        undoing.keep_only(&changed)?
    }
    Ok(undone)
}

/// An output whose inputs are to be put back.
struct Pending<'a, D> {
    replacement: &'a Replacement,
    /// Has the inputs.
    from: D,
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
        staging: &Staging<V>,
        kept: &'a Generation<V::Dir>,
        record: &'a Record,
        should_continue: &'a dyn Fn() -> bool,
    ) -> Done<Self> {
        let failed = |error| CompactError::Volume { path: path_below(&kept.path, FILES), error };
        let root = staging.base.open_dir(&record.root, SymlinkBehavior::Follow);
        let root = root.map_err(|error| CompactError::Volume { path: record.root.clone(), error })?;
        let mut pending = Vec::new();
        let files = match kept.dir.open_dir(FILES, SymlinkBehavior::NoFollow) {
            // It is removed when everything has been put back.
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
                    pending.push(Pending { replacement, from });
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

    /// Refuses if anything is not as the compaction left it.
    fn check(&self) -> Done<()> {
        let mut reasons = Vec::new();
        for pending in &self.pending {
            let path = self.path_of(pending.replacement);
            match self.directory_of(pending.replacement) {
                Ok(dir) => reasons.extend(obstacles(&dir, &path, pending)),
                Err(error) => reasons.push(format!("{}: {error}", path.to_string_lossy())),
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(CompactError::NotUndoable { reasons }) }
    }

    fn prediction(&self) -> Undone {
        let restored =
            self.pending.iter().map(|pending| pending.replacement.inputs.entries.len() as u64).sum();
        Undone { outputs: self.pending.len() as u64, restored, left: Vec::new() }
    }

    /// Also returns the staged names of outputs that changed at the last moment and stay, with their inputs where they are kept.
    fn put_back(&self) -> Done<(Undone, HashSet<&CStr>)> {
        let (mut undone, mut changed) = (Undone::default(), HashSet::new());
        let away = make_dir(&self.kept.dir, UNDONE).map_err(|error| self.failed(UNDONE, error))?;
        for pending in &self.pending {
            let path = self.path_of(pending.replacement);
            let failed = |error| CompactError::Volume { path: path.clone(), error };
            let dir = self.directory_of(pending.replacement).map_err(failed)?;
            match self.take_away(&dir, &away, pending.replacement) {
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

    /// Ends the undoing, except for some outputs, which can be undone later. The others stay in the record, without inputs, because a
    /// directory's number is its place there.
    fn keep_only(&self, staged: &HashSet<&CStr>) -> Done<()> {
        const NEW: &CStr = c"record.new";
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

    /// Moves an output out of its directory, unless an earlier attempt has done so.
    fn take_away(&self, dir: &V::Dir, away: &V::Dir, replacement: &Replacement) -> Result<(), Stopped> {
        let staged = &replacement.planned.staged;
        match away.metadata(staged, SymlinkBehavior::NoFollow, Fields::INO) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_vanished() => {}
            Err(error) => return Err(Stopped::Failed(error)),
        }
        change(dir, &replacement.output).map_err(|reason| match reason {
            Reason::Failed(error) => Stopped::Failed(error),
            reason => Stopped::Changed(reason),
        })?;
        if !(self.should_continue)() {
            return Err(Stopped::Interrupted);
        }
        dir.rename(&replacement.output.name, away, staged).map_err(Stopped::Failed)?;
        let moved = super::ManifestEntry { name: staged.clone(), ..replacement.output.clone() };
        change(away, &moved).map_err(|reason| match reason {
            Reason::Failed(error) => Stopped::Failed(error),
            // Somebody wrote to it at the last moment.
            _ => match away.rename_new(staged, dir, &replacement.output.name) {
                Ok(()) => Stopped::Changed(Reason::Changed(replacement.output.name.clone())),
                Err(error) => Stopped::Failed(error),
            },
        })
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
            if is_same(&pending.from, entry).map_err(failed)? {
                self.step()?;
                let taken = move_new(&pending.from, &entry.name, dir).map_err(failed)?;
                if let Some(reason) = taken {
                    undone.left.push(Left { directory: path.to_owned(), inputs: 1, reason });
                }
            }
            let checksum = checksum_name(&entry.name);
            match pending.from.rename(&checksum, dir, &checksum) {
                Err(error) if !error.is_vanished() => return Err(failed(error)),
                _ => undone.restored += 1,
            }
        }
        Ok(())
    }
}

/// Whether an output replaced its inputs: the compaction may have left these.
fn was_replaced<D: Dir>(kept: &Generation<D>, replacement: &Replacement, from: &D) -> Result<bool, Error> {
    for entry in &replacement.inputs.entries {
        if is_same(from, entry)? {
            return Ok(true);
        }
    }
    let taken_away = c_string([UNDONE.to_bytes(), b"/", replacement.planned.staged.to_bytes()].concat());
    match kept.dir.metadata(&taken_away, SymlinkBehavior::NoFollow, Fields::INO) {
        Ok(_) => Ok(true),
        Err(error) if error.is_vanished() => Ok(false),
        Err(error) => Err(error),
    }
}

enum Stopped {
    Interrupted,
    Failed(Error),
    Changed(Reason),
}

/// What prevents the inputs of an output from being put back.
fn obstacles<D: Dir>(dir: &D, path: &CStr, pending: &Pending<'_, D>) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |name: &CStr, why: &str| {
        found.push(format!("{} {why}", path_below(path, name).to_string_lossy()));
    };
    let output = &pending.replacement.output;
    if change(dir, output).is_err() {
        add(&output.name, "has changed since the compaction");
    }
    for entry in &pending.replacement.inputs.entries {
        if entry.name != output.name
            && dir.metadata(&entry.name, SymlinkBehavior::NoFollow, Fields::INO).is_ok()
        {
            add(&entry.name, "exists again");
        }
        if change(&pending.from, entry).is_err() {
            add(&entry.name, "is no longer kept as it was");
        }
    }
    found
}

/// Moves a file to another directory, under another name if its own is taken; returns this reason then.
fn move_new<D: Dir>(from: &D, name: &CStr, to: &D) -> Result<Option<Reason>, Error> {
    let mut target = name.to_owned();
    for number in 1.. {
        let moved = match from.rename_new(name, to, &target) {
            Err(error) if matches!(error.errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => from
                .hard_link(name, SymlinkBehavior::NoFollow, to, &target)
                .and_then(|()| from.remove(name, RemoveKind::File)),
            moved => moved,
        };
        match moved {
            Ok(()) => return Ok((target.as_c_str() != name).then(|| Reason::Taken(name.to_owned()))),
            // An earlier attempt ended between the two calls.
            Err(error) if error.errno == Errno::EXIST && is_link(from, to, name)? => {
                from.remove(name, RemoveKind::File)?;
                return Ok(None);
            }
            Err(error) if error.errno == Errno::EXIST => {
                target = c_string([name.to_bytes(), b".restored-", number.to_string().as_bytes()].concat());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
