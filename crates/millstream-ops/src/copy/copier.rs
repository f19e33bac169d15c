//! What all parts of the copying share.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use millstream_vfs::{Errno, Error, Volume};

use super::Shares;
use super::attributes::Attributes;
use super::carriers::Carriers;
use super::data::Mover;
use super::item::{Item, Target};
use super::links::Links;
use super::options::{Options, Trace};
use super::place::{Budget, Place};
use super::report::{Problem, Sink, Trouble};
use super::trace::{Action, Step};
use crate::activity::Activity;

/// Something went wrong and has been reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// The outcome of something that reports its own errors.
pub(super) type Done<T> = Result<T, Reported>;

pub(super) type Identity = (u64, u64);

/// Buffers of a thread.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Lines and records that have not been written yet.
    pub(super) lines: Vec<u8>,
    /// Data on its way.
    pub(super) data: Vec<u8>,
}

/// A directory that an operand is, or was copied to.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) operand: usize,
    pub(super) role: Role,
}

/// Which end of the copying a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    Destination,
}

/// What has been done for operands so far; operands that could meet are copied one after the other.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Directories at the top of the trees.
    pub(super) tops: HashMap<Identity, Top>,
    /// Operands, by their inodes and the last components of their paths.
    pub(super) sources: HashMap<(Identity, Vec<u8>), Vec<usize>>,
    /// Files and links made for operands, with the paths that they were made under. Further names of a copy are none.
    pub(super) made: HashSet<(Identity, Vec<u8>)>,
}

/// A copying that runs.
#[derive(Debug)]
pub(super) struct Copier<'a, V: Volume> {
    pub(super) options: &'a Options,
    pub(super) targets: &'a [Target<V::Dir>],
    pub(super) activity: &'a Activity,
    pub(super) attributes: Attributes,
    pub(super) budget: Budget,
    pub(super) links: Links<V::Dir>,
    pub(super) mover: Mover<'a>,
    pub(super) carriers: Carriers<V>,
    progress: Mutex<Progress>,
    sink: Shared<'a>,
    base: V::Dir,
}

/// Counts a problem and tells it.
pub(super) fn report(problem: &Problem<'_>, trace: Trace, sink: &dyn Sink, activity: &Activity) -> Reported {
    activity.add_error();
    sink.problem(problem);
    let mut record = Vec::new();
    trace.problem(problem, &mut record);
    if !record.is_empty() {
        sink.lines(&record);
    }
    Reported
}

/// Without it other threads would wait for ever for what a thread that panics has begun.
#[derive(Debug)]
pub(super) struct AbandonOnPanic<'s, 'a, V: Volume>(pub(super) &'s Copier<'a, V>);

impl<V: Volume> Drop for AbandonOnPanic<'_, '_, V> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.options.cancellation.cancel();
            self.0.links.abandon();
            self.0.carriers.abandon();
        }
    }
}

/// A sink that can be shown in debugging.
struct Shared<'a>(&'a dyn Sink);

impl std::fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

/// Lines are written when there are this many bytes of them.
const LINES: usize = 8 << 10;

impl<'a, V: Volume> Copier<'a, V> {
    pub(super) fn new(
        volume: &V,
        targets: &'a [Target<V::Dir>],
        options: &'a Options,
        sink: &'a dyn Sink,
        activity: &'a Activity,
        budget: Budget,
    ) -> Self {
        let shares = Shares::of(volume);
        Copier {
            options,
            targets,
            activity,
            attributes: Attributes::new(options),
            budget,
            links: Links::default(),
            mover: Mover::new(options, activity),
            carriers: Carriers::new(options.threads, shares.waiting_files, shares.carriers),
            progress: Mutex::default(),
            sink: Shared(sink),
            base: volume.base(),
        }
    }

    pub(super) fn sink(&self) -> &'a dyn Sink {
        self.sink.0
    }

    /// The handle that paths of operands are relative to.
    pub(super) fn base(&self) -> &V::Dir {
        &self.base
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a problem with known paths.
    pub(super) fn problem(&self, problem: &Problem<'_>) -> Reported {
        report(problem, self.options.trace, self.sink(), self.activity)
    }

    /// Reports what went wrong with an entry.
    pub(super) fn trouble(&self, item: &Item<'_, V>, trouble: Trouble, errno: Option<Errno>) -> Reported {
        let (source, destination) = (item.source_path(self.targets), item.destination_path(self.targets));
        self.problem(&Problem { trouble, source: &source, destination: &destination, errno })
    }

    /// Makes an error of a call a reported one.
    pub(super) fn failed(&self, item: &Item<'_, V>, trouble: Trouble) -> impl Fn(Error) -> Reported {
        let item = *item;
        move |error| self.trouble(&item, trouble, Some(error.errno))
    }

    /// Tells what has been done with an entry.
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

    /// Tells that the existing file was removed.
    pub(super) fn tell_removed(&self, lines: &mut Vec<u8>, item: &Item<'_, V>) {
        if self.options.trace != Trace::Nothing {
            self.options.trace.removed(&item.destination_path(self.targets), self.options.effect, lines);
        }
    }

    /// Writes the lines if there are enough of them.
    pub(super) fn write_some(&self, buffers: &mut Buffers) {
        if buffers.lines.len() >= LINES {
            self.write(buffers);
        }
    }

    /// Writes the lines.
    pub(super) fn write(&self, buffers: &mut Buffers) {
        if !buffers.lines.is_empty() {
            self.sink().lines(&buffers.lines);
            buffers.lines.clear();
        }
    }

    /// Something in a directory has been done: if that was the last, its attributes are set, and so on upwards.
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
