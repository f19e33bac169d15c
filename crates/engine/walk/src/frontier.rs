//! The queues of pending tasks.
//!
//! [`Stealing`]: every worker has its own stack, from which others steal the oldest task. [`Stacked`]: all workers
//! share one stack, so directories start roughly in output order. While too much output is waiting, only the directory
//! whose output is next may start.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crossbeam_deque::{Steal, Stealer, Worker as Deque};
use millstream_vfs::{Dir, DirentBatch, Volume};

use crate::Directory;
use crate::sequence::Sequence;

/// Filled in by each worker when it starts.
type StealerSlot<V, S> = OnceLock<Stealer<Task<V, S>>>;
type CursorOf<V> = <<V as Volume>::Dir as Dir>::Cursor;

/// A piece of work.
#[derive(Debug)]
pub(crate) enum Task<V: Volume, S> {
    /// Open a directory and read it.
    Open(Arc<Directory<V, S>>),
    /// Continue to read a directory.
    Resume(Box<Reading<V, S>>),
    /// Visit some of a directory's entries.
    Part(Part<V, S>),
}

/// A partly read directory.
#[derive(Debug)]
pub(crate) struct Reading<V: Volume, S> {
    pub(crate) directory: Arc<Directory<V, S>>,
    pub(crate) handle: Arc<V::Dir>,
    pub(crate) cursor: CursorOf<V>,
    /// Index of the next entry.
    pub(crate) next_index: u64,
    /// Size of the next batch.
    pub(crate) batch_bytes: usize,
    pub(crate) ahead: Ahead,
    /// Whether the handle counts against the budget, so that it may stay open while the reading waits.
    pub(crate) kept: bool,
}

/// The state of the batch after the one being visited.
#[derive(Debug, Default)]
pub(crate) enum Ahead {
    #[default]
    Unread,
    Read(DirentBatch),
    /// There is no further batch.
    End,
}

/// Entries to visit.
#[derive(Debug)]
pub(crate) struct Part<V: Volume, S> {
    pub(crate) directory: Arc<Directory<V, S>>,
    pub(crate) handle: Arc<V::Dir>,
    pub(crate) batch: Arc<DirentBatch>,
    pub(crate) range: Range<usize>,
    pub(crate) first_index: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queues of pending tasks.
#[derive(Debug)]
pub(crate) enum Frontier<V: Volume, S> {
    Stealing(Stealing<V, S>),
    Stacked(Stacked<V, S>),
}

/// A worker's end of the frontier.
#[derive(Debug)]
pub(crate) struct Local<V: Volume, S> {
    own: Deque<Task<V, S>>,
    index: usize,
}

impl<V: Volume, S> Frontier<V, S> {
    pub(crate) fn stealing(workers: usize) -> Self {
        Frontier::Stealing(Stealing {
            stealers: (0..workers).map(|_| OnceLock::new()).collect(),
            waiting: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            gate: Mutex::default(),
            wake: Condvar::new(),
        })
    }

    pub(crate) fn stacked() -> Self {
        Frontier::Stacked(Stacked {
            stacks: Mutex::new(Stacks { starts: Vec::new(), parts: Vec::new() }),
            waiting: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            held_back: AtomicBool::new(false),
            idle: AtomicUsize::new(0),
            wake: Condvar::new(),
        })
    }

    /// The local end of worker `index`.
    pub(crate) fn local(&self, index: usize) -> Local<V, S> {
        let own = Deque::new_lifo();
        if let Frontier::Stealing(stealing) = self {
            stealing.stealers[index].get_or_init(|| own.stealer());
        }
        Local { own, index }
    }

    /// Adds tasks; this worker takes the last one first.
    pub(crate) fn push(&self, local: &Local<V, S>, tasks: impl ExactSizeIterator<Item = Task<V, S>>) {
        match self {
            Frontier::Stealing(stealing) => stealing.push(local, tasks),
            Frontier::Stacked(stacked) => stacked.push(tasks),
        }
    }

    /// The next task; calls `before_sleep` before waiting for one. `None` when no task is left and none can come.
    pub(crate) fn next(
        &self,
        local: &Local<V, S>,
        sequence: Option<&Sequence<V, S>>,
        before_sleep: impl FnMut(),
    ) -> Option<Task<V, S>> {
        match self {
            Frontier::Stealing(stealing) => stealing.next(local, before_sleep),
            Frontier::Stacked(stacked) => stacked.next(sequence, before_sleep),
        }
    }

    /// Starts work that was not pushed as a task; [`Frontier::done`] ends it.
    pub(crate) fn begin(&self) {
        let unfinished = match self {
            Frontier::Stealing(stealing) => &stealing.unfinished,
            Frontier::Stacked(stacked) => &stacked.unfinished,
        };
        unfinished.fetch_add(1, Ordering::SeqCst);
    }

    /// A task from [`Frontier::next`] is done, and its follow-up tasks have been pushed.
    pub(crate) fn done(&self) {
        match self {
            Frontier::Stealing(stealing) => stealing.done(),
            Frontier::Stacked(stacked) => stacked.done(),
        }
    }

    fn counts(&self) -> (usize, usize) {
        let (waiting, idle) = match self {
            Frontier::Stealing(s) => (&s.waiting, &s.idle),
            Frontier::Stacked(s) => (&s.waiting, &s.idle),
        };
        (waiting.load(Ordering::Relaxed), idle.load(Ordering::Relaxed))
    }

    /// Whether tasks are waiting and no worker is idle.
    pub(crate) fn wants_workers(&self) -> bool {
        let (waiting, idle) = self.counts();
        idle == 0 && (waiting as isize) > 0
    }

    /// Whether some of `workers` workers are idle, or soon will be.
    pub(crate) fn is_hungry(&self, workers: usize) -> bool {
        let (waiting, idle) = self.counts();
        idle > 0 || (waiting as isize) < workers as isize
    }

    /// Ends the traversal: a worker has died, and its task is lost.
    pub(crate) fn abandon(&self) {
        match self {
            Frontier::Stealing(stealing) => {
                stealing.unfinished.store(0, Ordering::SeqCst);
                let _gate = lock(&stealing.gate);
                stealing.wake.notify_all();
            }
            Frontier::Stacked(stacked) => {
                stacked.unfinished.store(0, Ordering::SeqCst);
                let _stacks = lock(&stacked.stacks);
                stacked.wake.notify_all();
            }
        }
    }

    /// Output has advanced; wakes the workers that were held back.
    pub(crate) fn output_moved(&self) {
        if let Frontier::Stacked(stacked) = self
            && stacked.held_back.swap(false, Ordering::AcqRel)
        {
            let _stacks = lock(&stacked.stacks);
            stacked.wake.notify_all();
        }
    }
}

/// One stack per worker.
#[derive(Debug)]
pub(crate) struct Stealing<V: Volume, S> {
    stealers: Box<[StealerSlot<V, S>]>,
    /// Tasks in the stacks.
    waiting: AtomicUsize,
    /// Workers that are asleep or about to be.
    idle: AtomicUsize,
    /// Tasks in the stacks or in progress.
    unfinished: AtomicUsize,
    gate: Mutex<()>,
    wake: Condvar,
}

impl<V: Volume, S> Stealing<V, S> {
    fn push(&self, local: &Local<V, S>, tasks: impl ExactSizeIterator<Item = Task<V, S>>) {
        let n = tasks.len();
        self.unfinished.fetch_add(n, Ordering::AcqRel);
        tasks.for_each(|task| local.own.push(task));
        // An idle worker increments `idle` before it reads `waiting`; this increments `waiting` before it reads `idle`.
        // So one of the two sees the other.
        self.waiting.fetch_add(n, Ordering::SeqCst);
        let idle = self.idle.load(Ordering::SeqCst);
        if idle > 0 {
            let _gate = lock(&self.gate);
            (0..n.min(idle)).for_each(|_| self.wake.notify_one());
        }
    }

    fn next(&self, local: &Local<V, S>, mut before_sleep: impl FnMut()) -> Option<Task<V, S>> {
        loop {
            if let Some(task) = local.own.pop().or_else(|| self.steal(local.index)) {
                // A push may count its tasks after they were taken; wrapping keeps the sum right.
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                return Some(task);
            }
            before_sleep();
            if !self.sleep() {
                return None;
            }
        }
    }

    fn steal(&self, thief: usize) -> Option<Task<V, S>> {
        let others = self.stealers.len();
        (1..others).find_map(|step| {
            let stealer = self.stealers[(thief + step) % others].get()?;
            loop {
                match stealer.steal() {
                    Steal::Success(task) => return Some(task),
                    Steal::Empty => return None,
                    Steal::Retry => {}
                }
            }
        })
    }

    /// Waits until there may be a task; returns false if none can come any more.
    fn sleep(&self) -> bool {
        self.idle.fetch_add(1, Ordering::SeqCst);
        let mut gate = lock(&self.gate);
        let more = loop {
            if (self.unfinished.load(Ordering::SeqCst) as isize) <= 0 {
                break false;
            }
            // A negative (wrapped) count: a push has not counted its tasks yet, and they are already taken.
            if (self.waiting.load(Ordering::SeqCst) as isize) > 0 {
                break true;
            }
            gate = self.wake.wait(gate).unwrap_or_else(PoisonError::into_inner);
        };
        drop(gate);
        self.idle.fetch_sub(1, Ordering::SeqCst);
        more
    }

    fn done(&self) {
        if self.unfinished.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _gate = lock(&self.gate);
            self.wake.notify_all();
        }
    }
}

/// One stack for all workers.
#[derive(Debug)]
pub(crate) struct Stacked<V: Volume, S> {
    stacks: Mutex<Stacks<V, S>>,
    waiting: AtomicUsize,
    unfinished: AtomicUsize,
    /// Whether a worker sleeps because too much output is waiting.
    held_back: AtomicBool,
    idle: AtomicUsize,
    wake: Condvar,
}

#[derive(Debug)]
struct Stacks<V: Volume, S> {
    /// Directories not started yet.
    starts: Vec<Arc<Directory<V, S>>>,
    /// Work on started directories, which is never held back.
    parts: Vec<Task<V, S>>,
}

impl<V: Volume, S> Stacked<V, S> {
    fn push(&self, tasks: impl ExactSizeIterator<Item = Task<V, S>>) {
        let n = tasks.len();
        self.unfinished.fetch_add(n, Ordering::AcqRel);
        let mut stacks = lock(&self.stacks);
        for task in tasks {
            match task {
                Task::Open(directory) => stacks.starts.push(directory),
                task => stacks.parts.push(task),
            }
        }
        self.count(&stacks);
        if self.idle.load(Ordering::Relaxed) > 0 {
            (0..n).for_each(|_| self.wake.notify_one());
        }
    }

    fn count(&self, stacks: &Stacks<V, S>) {
        self.waiting.store(stacks.starts.len() + stacks.parts.len(), Ordering::Relaxed);
    }

    fn next(&self, sequence: Option<&Sequence<V, S>>, mut before_sleep: impl FnMut()) -> Option<Task<V, S>> {
        let mut stacks = lock(&self.stacks);
        loop {
            let task = self.take(&mut stacks, sequence);
            self.count(&stacks);
            if task.is_some() || (self.unfinished.load(Ordering::SeqCst) as isize) <= 0 {
                return task;
            }
            before_sleep();
            self.idle.fetch_add(1, Ordering::Relaxed);
            stacks = self.wake.wait(stacks).unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn take(&self, stacks: &mut Stacks<V, S>, sequence: Option<&Sequence<V, S>>) -> Option<Task<V, S>> {
        if let Some(part) = stacks.parts.pop() {
            return Some(part);
        }
        while let Some(wanted) = sequence.and_then(Sequence::held_back_for) {
            if wanted.claim() {
                // Its entry stays on the stack and is skipped later.
                return Some(Task::Open(wanted));
            }
            if self.held_back.swap(true, Ordering::AcqRel) {
                return None;
            }
            // Check again now that `held_back` is set: output may have advanced in between.
        }
        while let Some(directory) = stacks.starts.pop() {
            if directory.claim() {
                return Some(Task::Open(directory));
            }
            // Claimed earlier: that task was counted with this entry.
        }
        None
    }

    fn done(&self) {
        if self.unfinished.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _stacks = lock(&self.stacks);
            self.wake.notify_all();
        }
    }
}
