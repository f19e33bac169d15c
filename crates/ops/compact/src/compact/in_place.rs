//! Outputs replace their inputs: a new directory is exchanged with the old one, or the files are replaced one by one.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Error, RemoveKind, SymlinkBehavior, Volume};

use super::journal::Planned;
use super::kept::change;
use super::obstacles::why_kept;
use super::outcome::{Applied, Reason};
use super::paths::{parent_below, split_last};
use super::staging::{c_string, entries, make_dir};
use super::swap::Exchange;
use super::work::{Destination, Done, Due, Work, checksum_name, lacks_checksum};
use millstream_operation::sticky::restricted_user;

impl<V: Volume> Work<'_, V> {
    /// Replaces the inputs of one directory by their outputs.
    pub(super) fn replace(&self, index: usize, outputs: &[Planned]) -> Done<Applied> {
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
        let destination = Destination { dir, parent: &parent, name: &name, path };
        if let Some((swapped, ino)) = self.swapped(index)? {
            let swap = self.staging.swap.open_dir(&swapped, SymlinkBehavior::NoFollow);
            let swap = swap.map_err(self.failed(&swapped))?;
            let own = swap.identity().map_err(self.failed(&swapped))?;
            if own.1 == ino {
                // The other attempt ended after the exchange.
                let due = self.due(outputs)?;
                self.resolve_exchanged(&destination, &swap, &destination.dir, &swapped, &due, &mut applied)?;
                return Ok(applied);
            }
            self.undo_preparation(&destination, &swap, &swapped, outputs)?;
        }
        let begun = outputs.iter().any(|output| self.hidden_exists(output).unwrap_or(true));
        if !begun {
            let mut due = Vec::new();
            for one in self.due(outputs)? {
                let staged = &one.planned.staged;
                if self.exists(&self.staging.out, staged).map_err(self.failed(staged))? {
                    due.push(one);
                } else {
                    // An earlier attempt was interrupted after the last step, before it could record it.
                    self.count(&one, &mut applied)?;
                }
            }
            let due = self.unchanged_only(&destination, due, &mut applied)?;
            if due.is_empty() {
                return Ok(applied);
            }
            if let Exchange::Done = self.exchange(index, &destination, &due, &mut applied)? {
                return Ok(applied);
            }
        }
        for output in outputs {
            self.replace_one_by_one(&destination, output, &mut applied)?;
        }
        Ok(applied)
    }

    /// Opens the parent directory of this path; also returns the entry's name.
    fn parent_of(&self, path: &CStr) -> Result<(V::Dir, CString), Error> {
        if path.is_empty() {
            let (parent, name) = split_last(self.root_path);
            return Ok((self.staging.base.open_dir(&parent, SymlinkBehavior::Follow)?, name));
        }
        parent_below(&self.root, path)
    }

    /// The directory in `swap` for the directory `index`, and the inode number of the directory that it replaces.
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

    /// Moves the inputs of an output away and gives the output its name.
    fn replace_one_by_one(
        &self,
        destination: &Destination<'_, V::Dir>,
        output: &Planned,
        applied: &mut Applied,
    ) -> Done<()> {
        let failed = self.failed(&destination.path);
        let Some(manifest) = self.staging.manifest(&output.staged)? else { return Ok(()) };
        let due = Due { planned: output, manifest };
        let name = hidden_name(output);
        let is_staged = self.exists(&self.staging.out, &output.staged).map_err(&failed)?;
        if is_staged {
            self.step()?;
            let hidden = make_dir(&self.staging.swap, &name).map_err(&failed)?;
            self.take_over_mode(&destination.dir, &due);
            if let Err(reason) = self.hide_and_reveal(destination, &hidden, &due)? {
                for (entry, kind) in entries(&hidden).map_err(&failed)? {
                    self.step()?;
                    self.put_back(&hidden, &entry, kind, &destination.dir).map_err(&failed)?;
                }
                self.step()?;
                self.staging.swap.remove(&name, RemoveKind::Directory).map_err(&failed)?;
                return self.leave_one(&due, &destination.path, reason, applied);
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
        destination: &Destination<'_, V::Dir>,
        hidden: &V::Dir,
        due: &Due<'_>,
    ) -> Done<Result<(), Reason>> {
        for entry in &due.manifest.entries {
            if change(hidden, entry).is_ok() {
                continue;
            }
            if let Err(reason) = change(&destination.dir, entry) {
                return Ok(Err(reason));
            }
            self.step()?;
            if let Err(error) = destination.dir.rename(&entry.name, hidden, &entry.name) {
                return Ok(Err(Reason::Failed(error)));
            }
            let checksum = checksum_name(&entry.name);
            match destination.dir.rename(&checksum, hidden, &checksum) {
                Err(error) if !lacks_checksum(error) => return Ok(Err(Reason::Failed(error))),
                _ => {}
            }
        }
        if let Some(reason) = self.first_changed(hidden, &due.manifest.entries) {
            return Ok(Err(reason));
        }
        match self.exists(&destination.dir, &due.planned.name) {
            Ok(false) => {}
            Ok(true) => return Ok(Err(Reason::Taken(due.planned.name.clone()))),
            Err(error) => return Ok(Err(Reason::Failed(error))),
        }
        self.step()?;
        let revealed = self.staging.out.rename(&due.planned.staged, &destination.dir, &due.planned.name);
        Ok(revealed.map_err(Reason::Failed))
    }

    fn leave(&self, outputs: &[Planned], path: &CStr, reason: &Reason, applied: &mut Applied) -> Done<()> {
        for due in self.due(outputs)? {
            self.leave_one(&due, path, reason.clone(), applied)?;
        }
        Ok(())
    }

    /// Drops the outputs whose inputs have changed, or must stay.
    fn unchanged_only<'p>(
        &self,
        destination: &Destination<'_, V::Dir>,
        due: Vec<Due<'p>>,
        applied: &mut Applied,
    ) -> Done<Vec<Due<'p>>> {
        let user = restricted_user(&destination.dir).ok().flatten();
        let mut unchanged = Vec::new();
        for due in due {
            let entries = &due.manifest.entries;
            let of_others = || {
                user.and_then(|user| {
                    entries.iter().find_map(|entry| why_kept(&destination.dir, &entry.name, user))
                })
            };
            match self.first_changed(&destination.dir, entries).or_else(of_others) {
                None => unchanged.push(due),
                Some(reason) => self.leave_one(&due, &destination.path, reason, applied)?,
            }
        }
        Ok(unchanged)
    }
}

/// The suffix of those directories' names.
pub(super) const HIDDEN: &[u8] = b".hidden";

/// The name in `swap` of the directory that holds the inputs of an output while the output gets its name.
pub(super) fn hidden_name(output: &Planned) -> CString {
    c_string([output.staged.to_bytes(), HIDDEN].concat())
}
