//! Directories: made before their contents, given their attributes after them; then what the source does not have is
//! noted.

use std::cell::OnceCell;
use std::ffi::CStr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use millstream_rsync_rules::itemize::{Difference, Update};
use millstream_vfs::{
    Capabilities, Dir, Errno, Error, Fields, File, FileKind, Metadata, Operation, RemoveKind,
    SymlinkBehavior, Volume,
};
use millstream_walk::Other;

use super::item::{Item, Rank, State, Visit};
use super::itemize::Change;
use super::level::{Level, Target};
use super::options::{FileSystems, Missing, Present, Recursion};
use super::pass::Purpose;
use super::removal::Removals;
use super::report::{Notice, Problem, Trouble};
use super::stats::count;
use super::syncer::Syncer;
use crate::transfer::Identity;
use crate::transfer::attributes::Before;
use crate::transfer::buffers::Buffers;
use crate::transfer::place::{Origin, Original, Place};
use crate::transfer::report::Done;
use millstream_rsync_rules::files::Membership;

impl<'p, V: Volume> Syncer<'_, 'p, V> {
    /// Makes or finds the copy of a directory; returns it if its contents are to be synchronized.
    pub(super) fn directory(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: &Metadata,
        membership: Option<Membership>,
        rank: Rank,
    ) -> Done<Option<State<'p, V>>> {
        let Visit { item, entry, .. } = visit;
        if self.skip_directory(item) {
            return Ok(None);
        }
        if !item.below.is_empty() && self.is_destination(source) {
            self.counterpart(item);
            return Err(self.trouble(item, Trouble::IntoItself, None));
        }
        let found = self.found(item)?;
        if found.is_none() && self.options.missing == Missing::Skipped {
            return Ok(None);
        }
        let is_other = found.is_some_and(|found| found.kind() != FileKind::Directory);
        if is_other && self.options.present == Present::Left {
            return Err(self.trouble(item, Trouble::FileInTheWay, None));
        }
        let is_there = found.is_some_and(|found| found.kind() == FileKind::Directory);
        let (xattrs, found_xattrs) = match is_there {
            true => self.both_xattrs(visit)?,
            false if self.attributes.gathers() => {
                let mut report = |trouble, errno| {
                    self.trouble(item, trouble, Some(errno));
                };
                (self.attributes.gather_named(entry.handle(), entry.name(), &mut report), Vec::new())
            }
            false => Default::default(),
        };
        let is_left = membership.is_some_and(|membership| membership.leaves_root(item.below));
        let is_decided = rank == Rank::Merged || is_left;
        let identity = source.identity();
        // An earlier operand with the same destination has decided what it is like.
        let (source, xattrs) = match found.as_ref().filter(|_| is_decided && is_there) {
            Some(found) => (found, found_xattrs.clone()),
            None => (source, xattrs),
        };
        let (origin, differs) = match found.filter(|_| is_there) {
            Some(found) => {
                let differs = self.options.difference((source, &xattrs), (&found, &found_xattrs));
                if !is_decided {
                    self.tell(buffers, item, Change::new(FileKind::Directory, Update::Attributes, differs));
                }
                (Origin::Found, differs)
            }
            // An earlier operand would have made it.
            None if is_decided && !is_left && !self.is_real() => (Origin::Imagined, Difference::NEW),
            None => {
                if found.is_some() {
                    self.remove_file(item)?;
                }
                (self.make_directory(buffers, item, source, is_left)?, Difference::NEW)
            }
        };
        let found = found.filter(|_| is_there).map(|found| match is_left {
            true => found,
            false => self.inheriting(item, source, found),
        });
        let place = self.copy_of(item, source, origin);
        place.xattrs.get_or_init(|| xattrs);
        let above = Some(Arc::clone(item.level));
        let level = Level::new(above, place, found, differs, found_xattrs);
        self.open_up(&level, 0o500);
        if item.below.is_empty() {
            self.note_roots(item, &level, identity)?;
        }
        Ok(self.entered(item, level, membership, source))
    }

    /// The copy of a directory.
    pub(super) fn copy_of(
        &self,
        item: &Item<'_, 'p, V>,
        source: &Metadata,
        origin: Origin,
    ) -> Arc<Place<V::Dir>> {
        let parent = &item.level.place;
        let device = if item.below.is_empty() { source.dev } else { parent.device };
        let original = Original { metadata: source, device, operand: item.operand };
        Place::copy_of(original, parent, item.name, item.target.symlinks_of(item.below), origin)
    }

    /// Makes new entries of a directory inherit its group, or not, as those of its source do: by the time that it gets
    /// its other permissions, they are there. Returns the directory as it is then.
    fn inheriting(&self, item: &Item<'_, 'p, V>, source: &Metadata, found: Metadata) -> Metadata {
        const INHERITS: u32 = 0o2000;
        if !self.is_real() || !self.options.preserve.mode || (found.mode ^ source.mode) & INHERITS == 0 {
            return found;
        }
        let mode = found.mode ^ INHERITS;
        let set =
            item.level.place.handle(self.budget).and_then(|place| {
                place.set_mode(item.name, mode & 0o7777, item.target.symlinks_of(item.below))
            });
        // Where that fails, setting all of the mode fails, too, and is reported.
        if set.is_ok() { Metadata { mode, ..found } } else { found }
    }

    /// Remembers an operand that is a directory, and its copy.
    fn note_roots(&self, item: &Item<'_, 'p, V>, level: &Level<'p, V::Dir>, source: Identity) -> Done<()> {
        item.target.identity.get_or_init(|| source);
        if level.place.origin == Origin::Imagined {
            return Ok(());
        }
        level.place.handle(self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let mut destinations = self.destinations.write().unwrap_or_else(PoisonError::into_inner);
        destinations.extend(level.place.identity());
        Ok(())
    }

    /// Whether a directory of a source is the destination of one.
    fn is_destination(&self, source: &Metadata) -> bool {
        let destinations = self.destinations.read().unwrap_or_else(PoisonError::into_inner);
        destinations.contains(&source.identity())
    }

    /// A directory whose contents are to be synchronized; none if they are not, and it is done.
    pub(super) fn entered(
        &self,
        item: &Item<'_, 'p, V>,
        mut level: Level<'p, V::Dir>,
        membership: Option<Membership>,
        source: &Metadata,
    ) -> Option<State<'p, V>> {
        // A list of files says nothing about the directory that they are in.
        level.is_left = membership.is_some_and(|membership| membership.leaves_root(item.below));
        level.is_partial = membership.is_some_and(|membership| !self.enters_all(membership));
        let is_root_of_contents = item.below.is_empty() && item.target.prefix.is_empty();
        let is_entered = match membership {
            Some(membership) => membership.is_parent || self.enters_all(membership),
            None => self.options.recursion == Recursion::Recursive || is_root_of_contents,
        };
        let is_other_device =
            self.options.file_systems == FileSystems::One && source.dev != level.place.device;
        let level = Arc::new(level);
        level.place.begin();
        if is_root_of_contents && self.targets.len() > 1 {
            level.place.begin();
            self.roots.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&level));
        }
        if is_entered && !is_other_device {
            return Some(level);
        }
        self.done_in(&level);
        None
    }

    /// Whether all entries of a directory that a list names take part.
    fn enters_all(&self, membership: Membership) -> bool {
        let is_whole = membership.is_listed || membership.is_below;
        membership.has_contents || (is_whole && self.options.recursion == Recursion::Recursive)
    }

    /// Removes what is in the way of a directory.
    fn remove_file(&self, item: &Item<'_, 'p, V>) -> Done<()> {
        if !self.is_real() {
            return Ok(());
        }
        self.within(item.level, |place| place.remove(item.name, RemoveKind::File))
            .map_err(self.failed(item, Trouble::Remove))
    }

    fn make_directory(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        source: &Metadata,
        is_left: bool,
    ) -> Done<Origin> {
        let mut origin = Origin::Imagined;
        let is_destination = item.below.is_empty() && item.target.prefix.is_empty();
        if self.is_real() {
            // The sticky bit is kept with the other permissions only.
            let kept = if self.options.preserve.mode { 0o1777 } else { 0o777 };
            // A list that does not name it says nothing about its attributes.
            let mode = if is_left { 0o777 } else { self.attributes_of(source).creation_mode(source) & kept };
            let made = self.within(item.level, |place| place.create_dir(item.name, mode));
            if is_destination && made.is_err() {
                count(&self.watchers.counters.unmade);
            }
            made.map_err(self.failed(item, Trouble::CreateDirectory))?;
            origin = Origin::Made;
        }
        if is_destination {
            self.write(buffers);
            self.notice(&Notice::Created(&item.target.path));
        }
        if !is_left {
            count(&self.watchers.counters.created);
            self.tell(buffers, item, Change::new(FileKind::Directory, Update::Create, Difference::NEW));
        }
        Ok(origin)
    }

    /// One item of a directory is done. After the last one the directory gets its attributes, and so on upwards.
    pub(super) fn done_in(&self, level: &Level<'p, V::Dir>) {
        for level in level.ancestors() {
            if !level.place.done() {
                break;
            }
            self.finish_directory(level);
            level.place.close(self.budget);
        }
    }

    /// All operands have been traversed: the destination gets the attributes of the first one whose contents go into
    /// it. Others may have changed them meanwhile.
    pub(super) fn finish_roots(&self, purpose: Purpose) {
        let roots = std::mem::take(&mut *self.roots.lock().unwrap_or_else(PoisonError::into_inner));
        let mut levels = roots.iter().chain(self.targets.iter().map(|target| &target.level));
        let is_changed = purpose != Purpose::Deletion && levels.any(|level| level.has_changed());
        if let (true, Some(first)) = (is_changed, roots.first()) {
            first.note_change();
        }
        roots.iter().rev().for_each(|level| self.done_in(level));
    }

    /// Everything in a directory is done: sets its attributes, if any differ or may have been changed.
    fn finish_directory(&self, level: &Level<'p, V::Dir>) {
        let Some(source) = &level.place.source else { return };
        let is_touched = level.has_changed() || level.is_widened() || !level.differs.is_empty();
        if level.place.origin == Origin::Imagined || !is_touched || !self.is_real() {
            return;
        }
        if level.is_left {
            return self.restore_mode(level);
        }
        if let Err(error) = self.set_directory(level, source) {
            let trouble = match error.operation {
                Operation::CreateDir => Trouble::CreateDirectory,
                _ => Trouble::OpenDestinationDirectory,
            };
            self.directory_trouble(level, trouble, error);
        }
    }

    /// Gives a directory that gets no attributes the permissions back that it had.
    fn restore_mode(&self, level: &Level<'p, V::Dir>) {
        let (true, Some(found), Some(parent)) = (level.is_widened(), level.found, &level.parent) else {
            return;
        };
        let set = parent.place.handle(self.budget).and_then(|parent| {
            parent.set_mode(level.place.name(), found.mode & 0o7777, SymlinkBehavior::NoFollow)
        });
        if let Err(error) = set {
            self.directory_trouble(level, Trouble::Mode, error);
        }
    }

    fn set_directory(&self, level: &Level<'p, V::Dir>, source: &Metadata) -> Result<(), Error> {
        let attributes = self.attributes_of(source);
        let mut report = |trouble, errno| {
            self.directory_trouble(level, trouble, Error::new(Operation::Stat, errno));
        };
        let handle = level.place.handle(self.budget)?;
        if level.place.origin == Origin::Made {
            handle.complete()?;
        }
        let xattrs = level.place.xattrs.get().map_or(&[][..], Vec::as_slice);
        let is_new = level.place.origin == Origin::Made;
        let file = match (handle.as_file(), &level.parent) {
            (Ok(file), _) => file,
            (Err(error), None) => return Err(error),
            (Err(_), Some(parent)) => {
                // Its owner may not read it: all is done by its name.
                let parent = parent.place.handle(self.budget)?;
                let found = handle.own_metadata(Fields::STAT)?;
                let (wanted, present) = (xattrs.to_vec(), level.found_xattrs.clone());
                let (source, found) = ((source, &wanted), (&found, &present));
                attributes.amend(&*parent, level.place.name(), source, found, &mut report);
                return Ok(());
            }
        };
        let mut metadata = file.metadata(Fields::STAT)?;
        let mut is_widened = level.is_widened();
        for (name, _) in &level.found_xattrs {
            if xattrs.iter().any(|(wanted, _)| wanted == name) {
                continue;
            }
            let mut removed = file.remove_xattr(name);
            if removed.is_err_and(|error| error.errno == Errno::ACCESS) {
                // Removing them needs write permission; the mode is set afterwards.
                metadata.mode |= 0o200;
                is_widened = true;
                removed = file.set_mode(metadata.mode & 0o7777).and_then(|()| file.remove_xattr(name));
            }
            if let Err(error) =
                removed.or_else(|error| if error.errno == Errno::NODATA { Ok(()) } else { Err(error) })
            {
                report(Trouble::Xattr, error.errno);
            }
        }
        let may_have_acl = !is_new
            || level
                .parent
                .as_ref()
                .is_some_and(|above| attributes.may_inherit_acl(&above.place, self.budget));
        let before = Before {
            metadata: &metadata,
            made_with: level.place.made_with(),
            fresh: is_new || is_widened,
            may_have_acl,
            lacks_attribute: false,
            replaced_mode: level.found.map(|found| found.mode),
        };
        attributes.set(&file, source, xattrs, before, &mut report);
        Ok(())
    }

    fn directory_trouble(&self, level: &Level<'p, V::Dir>, trouble: Trouble, error: Error) {
        let (source, destination) = self.directory_paths(level);
        let errno = Some(error.errno);
        let problem = Problem { trouble, source: &source, destination: &destination, errno };
        self.watchers.problem(&problem);
    }

    /// Paths of a directory and its copy.
    fn directory_paths(&self, level: &Level<'p, V::Dir>) -> (Vec<u8>, Vec<u8>) {
        let mut names: Vec<&CStr> = level
            .ancestors()
            .take_while(|level| level.place.source.is_some())
            .map(|level| level.place.name())
            .collect();
        // The last one belongs to the operand itself.
        names.pop();
        names.reverse();
        let below = names.iter().map(|name| name.to_bytes()).collect::<Vec<_>>().join(&b'/');
        let target = &self.targets[level.place.operand];
        (target.source_path(&below), target.destination_path(&below))
    }

    /// All entries of a directory of the source have been compared: notes those that only the destination has, if they
    /// may be deleted, and removes what a run that was killed has left.
    pub(super) fn end_of_directory(
        &self,
        level: &Level<'p, V::Dir>,
        operand: usize,
        below: &[u8],
        notes_deletions: bool,
    ) {
        if level.found.is_none() || level.is_unlisted() {
            return;
        }
        if let Some(Ok(other)) = level.other.get() {
            self.remove_leftovers(level, other);
        }
        if notes_deletions {
            self.note_rest(level, operand, below);
        }
    }

    /// Removes temporary files of runs that were killed.
    fn remove_leftovers(&self, level: &Level<'p, V::Dir>, other: &Other<'_>) {
        let temporaries = &self.options.temporaries;
        let renames = OnceCell::new();
        let has_renames = || {
            level
                .place
                .handle(self.budget)
                .is_ok_and(|place| place.capabilities(c".").contains(Capabilities::RENAME))
        };
        let is_leftover = |name: &CStr| temporaries.is_temporary(name) && *renames.get_or_init(has_renames);
        for (name, _) in other.take_those(is_leftover) {
            let is_abandoned = level.place.handle(self.budget).is_ok_and(|place| {
                let found = place.metadata(&name, SymlinkBehavior::NoFollow, Fields::CTIME);
                found.is_ok_and(|found| temporaries.is_abandoned(&name, found.ctime))
            });
            if is_abandoned && self.is_real() {
                // A leftover does no harm.
                let _ = self.within(level, |place| place.remove(&name, RemoveKind::File));
            }
        }
    }

    /// Nothing is deleted at all: what the other sources do not have may be what this one lacks.
    fn refuse_empty_source(&self, target: &Target<'p, V::Dir>) {
        self.has_empty_source.store(true, Ordering::Relaxed);
        count(&self.watchers.counters.errors);
        self.notice(&Notice::EmptySource(target.source.to_bytes()));
    }

    /// Nothing of a volume is deleted that is mounted in the destination.
    fn keep_mounted(&self, level: &Level<'p, V::Dir>) {
        if let Some(mounted) = level.untold_mount() {
            self.notice(&Notice::Mounted(&self.directory_paths(mounted).1));
        }
    }

    /// Notes the entries that only the destination has.
    fn note_rest(&self, level: &Level<'p, V::Dir>, operand: usize, below: &[u8]) {
        if !self.options.deletes() || level.is_partial {
            return;
        }
        let other = match level.other.get_or_init(|| self.read_other(level)) {
            Ok(other) => other,
            Err(error) => {
                return self.directory_trouble(level, Trouble::OpenDestinationDirectory, *error);
            }
        };
        let target = &self.targets[operand];
        let is_empty_source = below.is_empty() && level.is_empty();
        if !other.is_whole() && is_empty_source {
            return self.refuse_empty_source(target);
        }
        if !other.is_whole() {
            return match level.is_mounted {
                true => self.keep_mounted(level),
                false => self.deletions.note(operand, below, None),
            };
        }
        let directory = if below.is_empty() { Vec::new() } else { [below, b"/"].concat() };
        let removals = Removals {
            options: self.options,
            deletions: self.deletions,
            watchers: self.watchers,
            target,
            directory: &directory,
            is_operand: false,
            is_in_the_way: false,
        };
        let rest: Vec<Box<CStr>> = other
            .take_rest()
            .into_iter()
            .filter(|(name, kind)| {
                let is_directory = *kind == FileKind::Directory;
                removals.is_filtered_in(name.to_bytes(), is_directory, false)
            })
            .map(|(name, _)| name)
            .collect();
        if rest.is_empty() {
            return;
        }
        if level.is_mounted {
            return self.keep_mounted(level);
        }
        if is_empty_source {
            return self.refuse_empty_source(target);
        }
        self.deletions.note(operand, below, Some(&rest));
    }
}
