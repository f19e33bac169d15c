//! What all parts of a synchronization share.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use millstream_vfs::{Dir, Errno, Error, Fields, FileKind, Metadata, SymlinkBehavior, Volume};
use millstream_walk::{Counterpart, Other, Pairing};

use super::deletions::Deletions;
use super::item::{Item, Leader, State, Visit};
use super::itemize::Change;
use super::level::{Level, Target};
use super::load::Load;
use super::options::{Execution, Options};
use super::report::{Notice, Problem, Trouble};
use super::stats::count;
use super::watchers::Watchers;
use crate::transfer::Identity;
use crate::transfer::attributes::Attributes;
use crate::transfer::buffers::Buffers;
use crate::transfer::copy_workers::{AbandonOnPanic, CopyWorkers};
use crate::transfer::data::Mover;
use crate::transfer::links::Links;
use crate::transfer::options::Preserve;
use crate::transfer::place::{Budget, Origin, Shares};
use crate::transfer::report::{Done, Reported};

/// What the update of the destination shares with the deletion.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, 'p> {
    pub(super) budget: &'a Budget,
    pub(super) pairing: &'p Pairing,
    pub(super) deletions: &'a Deletions,
    pub(super) protected: &'a HashSet<Identity>,
}

/// A synchronization that runs.
pub(super) struct Syncer<'a, 'p, V: Volume> {
    pub(super) volume: &'a V,
    pub(super) options: &'a Options,
    pub(super) targets: &'a [Target<'p, V::Dir>],
    pub(super) attributes: Attributes,
    untimed: Attributes,
    pub(super) budget: &'a Budget,
    pub(super) pairing: &'p Pairing,
    pub(super) links: Links<Leader<V::Dir>>,
    /// Files of the destination with several names, and the file of the source whose copy each is.
    owners: Mutex<HashMap<Identity, Identity>>,
    /// The operands, and the directories that lead to them: none is removed.
    pub(super) protected: &'a HashSet<Identity>,
    /// Directories that are the copies of operands.
    pub(super) destinations: RwLock<HashSet<Identity>>,
    /// The destination's level for each operand whose contents go into it, if there are several operands: finished
    /// after all of them.
    pub(super) roots: Mutex<Vec<State<'p, V>>>,
    /// Whether a source is an empty directory.
    pub(super) has_empty_source: AtomicBool,
    pub(super) mover: Mover<'a>,
    pub(super) workers: CopyWorkers<Load<'p, V>>,
    pub(super) deletions: &'a Deletions,
    pub(super) watchers: Watchers<'a>,
}

impl<'a, 'p, V: Volume> Syncer<'a, 'p, V> {
    pub(super) fn new(
        volume: &'a V,
        targets: &'a [Target<'p, V::Dir>],
        watchers: Watchers<'a>,
        shared: Shared<'a, 'p>,
    ) -> Self {
        let Shared { budget, pairing, deletions, protected } = shared;
        let options = watchers.options;
        let shares = Shares::of(volume);
        let attributes = Attributes::new(options.attributes());
        let mut untimed = attributes;
        untimed.options.preserve = Preserve { timestamps: false, ..attributes.options.preserve };
        Syncer {
            volume,
            options,
            targets,
            attributes,
            untimed,
            budget,
            pairing,
            links: Links::default(),
            owners: Mutex::default(),
            protected,
            destinations: RwLock::default(),
            roots: Mutex::default(),
            has_empty_source: AtomicBool::new(false),
            mover: Mover::new(options.data(), watchers.activity),
            workers: CopyWorkers::new(options.threads, shares.waiting_files, shares.workers),
            deletions,
            watchers,
        }
    }

    pub(super) fn is_real(&self) -> bool {
        self.options.execution == Execution::Real
    }

    /// How attributes of entries of a kind are set.
    pub(super) fn attributes_of(&self, source: &Metadata) -> Attributes {
        let mut attributes =
            if self.options.sets_time(source.kind()) { self.attributes } else { self.untimed };
        attributes.options.preserve.group &= self.options.user.may_set_group(source.gid);
        attributes
    }

    pub(super) fn notice(&self, notice: &Notice<'_>) {
        if matches!(notice, Notice::Vanished(_) | Notice::Grown(_) | Notice::Changing(_)) {
            count(&self.watchers.counters.moving);
        }
        self.watchers.sink.notice(notice);
    }

    /// Reports a failure that concerns an entry.
    pub(super) fn trouble(&self, item: &Item<'_, 'p, V>, trouble: Trouble, errno: Option<Errno>) -> Reported {
        let source = item.target.source_path(item.below);
        let destination = item.target.destination_path(item.below);
        let problem = Problem { trouble, source: &source, destination: &destination, errno };
        self.watchers.problem(&problem)
    }

    /// Reports the error of a call.
    pub(super) fn failed(&self, item: &Item<'_, 'p, V>, trouble: Trouble) -> impl Fn(Error) -> Reported {
        let item = *item;
        move |error| self.trouble(&item, trouble, Some(error.errno))
    }

    /// Reports a change of an entry.
    pub(super) fn tell(&self, buffers: &mut Buffers, item: &Item<'_, 'p, V>, change: Change<'_>) {
        let name = item.target.transfer_name(item.below);
        let change = Change { name: &name, ..change };
        let Options { report, execution, high_bytes, .. } = *self.options;
        report.change(&change, execution, high_bytes, &mut buffers.lines);
        buffers.write_some(|lines| self.watchers.sink.lines(lines));
    }

    /// Writes the lines.
    pub(super) fn write(&self, buffers: &mut Buffers) {
        buffers.write(|lines| self.watchers.sink.lines(lines));
    }

    /// What every thread of the synchronization holds.
    pub(super) fn abandon_on_panic(&self) -> AbandonOnPanic<'_, Load<'p, V>, Leader<V::Dir>> {
        AbandonOnPanic {
            cancellation: &self.options.cancellation,
            links: &self.links,
            workers: &self.workers,
        }
    }

    /// The entry of the destination, if there is one.
    pub(super) fn found(&self, item: &Item<'_, 'p, V>) -> Done<Option<Metadata>> {
        match item.level.place.origin {
            Origin::Made | Origin::Imagined => return Ok(None),
            Origin::Found => {}
        }
        if self.counterpart(item) == Counterpart::Missing {
            return Ok(None);
        }
        let found = item
            .level
            .place
            .handle(self.budget)
            .map_err(self.failed(item, Trouble::OpenDestinationDirectory))?
            .metadata(item.name, item.target.symlinks_of(item.below), Fields::STAT);
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(self.trouble(item, Trouble::StatDestination, Some(error.errno))),
        }
    }

    /// Whether it is known, without looking, that the destination does not have an entry.
    pub(super) fn is_missing(&self, item: &Item<'_, 'p, V>) -> bool {
        match item.level.place.origin {
            Origin::Made => true,
            Origin::Found if item.level.found.is_none() => false,
            Origin::Found => {
                let other = item.level.other.get_or_init(|| self.read_other(item.level));
                other.as_ref().is_ok_and(|other| other.look(item.name) == Counterpart::Missing)
            }
            Origin::Imagined => false,
        }
    }

    /// What the directory of the destination lists under the name of an entry.
    pub(super) fn counterpart(&self, item: &Item<'_, 'p, V>) -> Counterpart {
        if item.below.is_empty() || item.level.found.is_none() {
            return Counterpart::Unknown;
        }
        let other = item.level.other.get_or_init(|| self.read_other(item.level));
        other.as_ref().map_or(Counterpart::Unknown, |other| other.take(item.name))
    }

    /// The names of the directory of the destination, which was found.
    pub(super) fn read_other(&self, level: &Level<'p, V::Dir>) -> Result<Other<'p>, Error> {
        let directory = level.place.handle(self.budget)?;
        // The handle may not be for listing.
        let listing = directory.open_dir(c".", SymlinkBehavior::NoFollow)?;
        self.pairing.read(&listing)
    }

    /// Whether a file of the destination with several names is the copy of `source` alone. If it is that of another
    /// file, too, neither its data nor its attributes may be changed for this one.
    pub(super) fn owns(&self, source: &Metadata, found: &Metadata) -> bool {
        if found.nlink < 2 || found.kind() == FileKind::Directory {
            return true;
        }
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        *owners.entry(found.identity()).or_insert(source.identity()) == source.identity()
    }

    /// Calls `make`, which makes or removes something in a directory of the destination. If its owner may not do that,
    /// and is the process, he gets the permission until the directory is done.
    pub(super) fn within<T>(
        &self,
        level: &Level<'p, V::Dir>,
        make: impl Fn(&Arc<V::Dir>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let handle = level.place.handle(self.budget);
        let made = handle.and_then(|handle| make(&handle));
        let made = match made {
            Err(error) if error.errno == Errno::ACCESS && self.widen(level) => {
                level.place.handle(self.budget).and_then(|handle| make(&handle))
            }
            made => made,
        };
        if made.is_ok() {
            level.note_change();
        }
        made
    }

    /// Gives the owner of a directory of the destination all permissions if he lacks one of those `needed`, and is the
    /// process.
    pub(super) fn open_up(&self, level: &Level<'p, V::Dir>, needed: u32) {
        let lacks_permission = level.found.is_some_and(|found| found.mode & needed != needed);
        if self.is_real() && !self.options.is_superuser() && lacks_permission {
            // Where that fails, what needs them is reported.
            self.widen(level);
        }
    }

    /// Gives the owner of a directory all permissions; whether that was done.
    fn widen(&self, level: &Level<'p, V::Dir>) -> bool {
        let (Some(found), Some(parent)) = (level.found, &level.parent) else { return false };
        let _gate = level.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if level.is_widened() {
            return true;
        }
        let mode = found.mode & 0o7777 | 0o700;
        let is_done = found.mode & 0o700 != 0o700
            && parent.place.handle(self.budget).is_ok_and(|parent| {
                parent.set_mode(level.place.name(), mode, SymlinkBehavior::NoFollow).is_ok()
            });
        if is_done {
            level.note_widened();
        }
        is_done
    }

    /// The metadata of an entry of the source, if it is still there.
    pub(super) fn source_of(&self, visit: &Visit<'_, 'p, V>) -> Done<Option<Metadata>> {
        let Visit { item, entry, .. } = visit;
        match entry.metadata(Fields::STAT) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.errno == Errno::NOENT && !item.below.is_empty() => {
                self.vanished(item);
                Ok(None)
            }
            Err(error) => Err(self.trouble(item, Trouble::StatSource, Some(error.errno))),
        }
    }

    pub(super) fn vanished(&self, item: &Item<'_, 'p, V>) {
        self.notice(&Notice::Vanished(&item.target.source_path(item.below)));
    }

    /// Renames what was made under a temporary name.
    pub(super) fn take_name(&self, item: &Item<'_, 'p, V>, temporary: &CStr) -> Result<(), Error> {
        self.within(item.level, |place| place.rename(temporary, place, item.name))
    }
}
