//! The state shared by all parts of a copy operation.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millstream_vfs::{Errno, Error, FileKind, Volume};

use super::item::{Copied, Item, Target};
use super::job::{Job, Load};
use super::options::{DirectoryLinks, Options, Trace};
use super::report::{Problem, Trouble};
use super::trace::{Action, Step};
use super::watchers::Watchers;
use crate::transfer::Identity;
use crate::transfer::attributes::Attributes;
use crate::transfer::buffers::Buffers;
use crate::transfer::copy_workers::{AbandonOnPanic, CopyWorkers};
use crate::transfer::data::Mover;
use crate::transfer::links::Links;
use crate::transfer::place::{Budget, Place, Shares};
use crate::transfer::report::Reported;

/// The source or destination directory of an operand.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) operand: usize,
    pub(super) role: Role,
}

/// Whether a directory is a source or a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    Destination,
}

/// The operands processed so far. Operands that could overlap are copied one after the other.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The top directories of the trees.
    pub(super) tops: HashMap<Identity, Top>,
    /// Operands, by inode and last path component.
    pub(super) sources: HashMap<(Identity, Vec<u8>), Vec<usize>>,
    /// Files and links created for operands, with their paths. Further links to a copy are not included.
    pub(super) made: HashSet<(Identity, Vec<u8>)>,
    /// Operands that were found to hold the copy of an operand.
    pub(super) into_itself: HashSet<usize>,
}

/// A copy operation in progress.
pub(super) struct Copier<'a, V: Volume> {
    pub(super) options: &'a Options,
    pub(super) targets: &'a [Target<V::Dir>],
    pub(super) attributes: Attributes,
    pub(super) budget: Budget,
    pub(super) links: Links<Copied<V::Dir>>,
    pub(super) mover: Mover<'a>,
    pub(super) workers: CopyWorkers<Load<V>>,
    /// Held while an existing file with several names is written to; the number of a lock is that of the inode.
    several_names: [Mutex<()>; NAME_LOCKS],
    pub(super) watchers: Watchers<'a>,
    progress: Mutex<Progress>,
    base: V::Dir,
}

/// Files with several names that can be written to at the same time.
const NAME_LOCKS: usize = 64;

impl<'a, V: Volume> Copier<'a, V> {
    pub(super) fn new(
        volume: &V,
        targets: &'a [Target<V::Dir>],
        watchers: Watchers<'a>,
        budget: Budget,
    ) -> Self {
        let options = watchers.options;
        let shares = Shares::of(volume);
        Copier {
            options,
            targets,
            attributes: Attributes::new(options.attributes()),
            budget,
            links: Links::default(),
            mover: Mover::new(options.data(), watchers.activity),
            workers: CopyWorkers::new(options.threads, shares.waiting_files, shares.workers),
            several_names: std::array::from_fn(|_| Mutex::default()),
            progress: Mutex::default(),
            watchers,
            base: volume.base(),
        }
    }

    /// The handle that operand paths are relative to.
    pub(super) fn base(&self) -> &V::Dir {
        &self.base
    }

    /// The inode of an existing file that another task may write to under another name.
    pub(super) fn other_names(&self, job: &Job<V>) -> Option<u64> {
        let present = job.reused?;
        let target = present.target.filter(|target| target.kind() == FileKind::File)?;
        let has_some =
            target.nlink > 1 || present.is_link() || self.options.directory_links == DirectoryLinks::Followed;
        has_some.then_some(target.ino)
    }

    /// Keeps other tasks from such a file, so that it gets the contents of one source as a whole.
    pub(super) fn alone(&self, job: &Job<V>) -> Option<MutexGuard<'_, ()>> {
        let lock = &self.several_names[self.other_names(job)? as usize % NAME_LOCKS];
        Some(lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a failure that concerns an entry.
    pub(super) fn trouble(&self, item: &Item<'_, V>, trouble: Trouble, errno: Option<Errno>) -> Reported {
        let (source, destination) = (item.source_path(self.targets), item.destination_path(self.targets));
        self.watchers.problem(&Problem { trouble, source: &source, destination: &destination, errno })
    }

    /// Reports the error of a call.
    pub(super) fn failed(&self, item: &Item<'_, V>, trouble: Trouble) -> impl Fn(Error) -> Reported {
        let item = *item;
        move |error| self.trouble(&item, trouble, Some(error.errno))
    }

    /// Reports an action on an entry.
    pub(super) fn tell(
        &self,
        lines: &mut Vec<u8>,
        item: &Item<'_, V>,
        action: Action,
        backup: Option<&[u8]>,
        bytes: Option<u64>,
    ) {
        if self.options.trace == Trace::Nothing {
            return;
        }
        let (source, destination) = (item.source_path(self.targets), item.destination_path(self.targets));
        let effect = self.options.effect;
        let step = Step { action, effect, source: &source, destination: &destination, backup, bytes };
        self.options.trace.step(&step, lines);
    }

    /// Reports that the existing file was removed.
    pub(super) fn tell_removed(&self, lines: &mut Vec<u8>, item: &Item<'_, V>) {
        if self.options.trace != Trace::Nothing {
            self.options.trace.removed(&item.destination_path(self.targets), self.options.effect, lines);
        }
    }

    /// Writes the lines if there are enough of them.
    pub(super) fn write_some(&self, buffers: &mut Buffers) {
        buffers.write_some(|lines| self.watchers.sink.lines(lines));
    }

    /// Writes the lines.
    pub(super) fn write(&self, buffers: &mut Buffers) {
        buffers.write(|lines| self.watchers.sink.lines(lines));
    }

    /// What every thread of the operation holds.
    pub(super) fn abandon_on_panic(&self) -> AbandonOnPanic<'_, Load<V>, Copied<V::Dir>> {
        AbandonOnPanic {
            cancellation: &self.options.cancellation,
            links: &self.links,
            workers: &self.workers,
        }
    }

    /// One item of a directory is done. After the last one the directory gets its attributes, and so on upwards.
    pub(super) fn done_in(&self, place: &Place<V::Dir>) {
        for place in place.ancestors() {
            if !place.done() {
                break;
            }
            self.finish_directory(place);
            place.close(&self.budget);
        }
    }
}
