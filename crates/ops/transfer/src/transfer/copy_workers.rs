//! Threads that move the data of large files.
//!
//! The traversal opens both ends of a large file and leaves it here, so that it can go on, and so that the large files
//! of one directory are copied side by side. A copy worker takes a file whole, chunk after chunk. If its calls wait (a
//! server, a disk) rather than compute, idle copy workers join it, and there may be more of them; the file's space is
//! then taken in advance, as chunks no longer come in order. Where calls compute, as between two files in the page
//! cache, more than one thread on a file would only contend for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use millstream_system::concurrency::{Lap, Meter, cpus};
use millstream_vfs::{Error, File, Result};
use millstream_walk::{Cancellation, Threads};

use super::buffers::Buffers;
use super::data::{Mover, Pair};
use super::links::Links;
use super::throttle::slept;

/// Files from this size on are left to the copy workers.
pub(crate) const LARGE: u64 = 8 << 20;
/// A copy worker's share of a large file.
pub(crate) const CHUNK: u64 = 64 << 20;
/// Most files that wait.
const WAITING: usize = 64;
/// Most copy workers unless the user sets the number of threads.
const MOST: usize = 32;

/// What an operation knows of a large file that is to be copied.
pub(crate) trait Load: Send + Sync {
    type File: File;

    /// Its two ends.
    fn pair(&self) -> Pair<'_, Self::File>;
}

/// A large file to be copied.
#[derive(Debug)]
pub(crate) struct LargeFile<L> {
    pub(crate) load: L,
    size: u64,
    next_chunk: AtomicU64,
    /// Copy workers at work on it.
    helpers: AtomicUsize,
    is_shared: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl<L: Load> LargeFile<L> {
    pub(crate) fn new(load: L) -> Arc<Self> {
        let size = load.pair().metadata.size;
        Arc::new(LargeFile {
            load,
            size,
            next_chunk: AtomicU64::new(0),
            helpers: AtomicUsize::new(1),
            is_shared: AtomicBool::new(false),
            failure: Mutex::default(),
        })
    }

    fn chunks(&self) -> u64 {
        self.size.div_ceil(CHUNK)
    }

    fn has_chunks(&self) -> bool {
        self.next_chunk.load(Ordering::Relaxed) < self.chunks()
    }

    fn take_chunk(&self) -> Option<(u64, u64)> {
        let chunk = self.next_chunk.fetch_add(1, Ordering::Relaxed);
        let start = chunk.checked_mul(CHUNK).filter(|&start| start < self.size)?;
        Some((start, (start + CHUNK).min(self.size)))
    }

    /// All chunks are done: the rest of a file that has grown; the length of its data.
    fn end(&self, mover: &Mover<'_>, buffer: &mut Vec<u8>) -> Result<u64> {
        let failure = *self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.map_or_else(|| mover.tail(&self.load.pair(), buffer), Err)
    }

    fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.next_chunk.store(self.chunks(), Ordering::Relaxed);
    }
}

/// Takes a file that a copy worker is done with, the buffers of that worker, and the length of its data or what failed.
pub(crate) type Deliver<'d, L> = &'d mut dyn FnMut(&L, &mut Buffers, Result<u64>);

/// What can start another copy worker.
pub(crate) trait StartsWorkers {
    /// Starts a thread that calls [`CopyWorkers::run_worker`]; whether there is one.
    fn start_worker(&self) -> bool;
}

/// Starts a thread of `scope` that runs `run_worker`, if `threads` allows one more; whether it did.
pub(crate) fn start_in<'s>(
    scope: &'s Scope<'s, '_>,
    threads: Threads,
    run_worker: impl FnOnce() + Send + 's,
) -> bool {
    let Some(permit) = threads.leave() else { return false };
    let worker = move || {
        let _permit = permit;
        run_worker();
    };
    thread::Builder::new().spawn_scoped(scope, worker).is_ok()
}

/// Releases the waiters if a thread panics; otherwise they would wait for ever for work that it had begun.
#[derive(Debug)]
pub(crate) struct AbandonOnPanic<'a, L: Load, C> {
    pub(crate) cancellation: &'a Cancellation,
    pub(crate) links: &'a Links<C>,
    pub(crate) workers: &'a CopyWorkers<L>,
}

impl<L: Load, C> Drop for AbandonOnPanic<'_, L, C> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.cancellation.cancel();
            self.links.abandon();
            self.workers.abandon();
        }
    }
}

#[derive(Debug)]
struct Queue<L> {
    waiting: VecDeque<Arc<LargeFile<L>>>,
    active: Vec<Arc<LargeFile<L>>>,
    workers: usize,
    idle: usize,
    most: usize,
    is_closed: bool,
}

/// The large files that wait and are worked on.
#[derive(Debug)]
pub(crate) struct CopyWorkers<L> {
    queue: Mutex<Queue<L>>,
    changed: Condvar,
    limit: usize,
    /// Most files that wait; each has two open descriptors.
    most_waiting: usize,
}

impl<L: Load> CopyWorkers<L> {
    /// At most `waiting_files` wait, and there are at most `workers`, besides what the options allow.
    pub(crate) fn new(threads: Threads, waiting_files: usize, workers: usize) -> Self {
        let cpus = cpus();
        let (most, limit) = match threads {
            Threads::Fixed(n) => (n, n),
            Threads::Adaptive { max } => (cpus.min(max), MOST.min(max)),
        };
        let queue = Queue {
            waiting: VecDeque::new(),
            active: Vec::new(),
            workers: 0,
            idle: 0,
            most: most.min(workers).max(1),
            is_closed: false,
        };
        CopyWorkers {
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            limit: limit.min(workers).max(1),
            most_waiting: waiting_files.min(WAITING),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<L>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a file to the copy workers; it comes back if too many wait already, or there is nobody to carry it.
    pub(crate) fn offer(
        &self,
        load: Arc<LargeFile<L>>,
        starter: &dyn StartsWorkers,
    ) -> std::result::Result<(), Arc<LargeFile<L>>> {
        let mut queue = self.lock();
        if queue.waiting.len() >= self.most_waiting {
            return Err(load);
        }
        if queue.idle == 0 {
            self.start_more(&mut queue, starter);
        }
        if queue.workers == 0 {
            return Err(load);
        }
        queue.waiting.push_back(load);
        self.changed.notify_one();
        Ok(())
    }

    /// Starts a copy worker if there may be one more.
    fn start_more(&self, queue: &mut Queue<L>, starter: &dyn StartsWorkers) {
        if queue.workers < queue.most && starter.start_worker() {
            queue.workers += 1;
        }
    }

    /// Runs a traversal that leaves files here, and then works as a copy worker by `run_worker` until none is left.
    pub(crate) fn during<R>(&self, traverse: impl FnOnce() -> R, run_worker: impl FnOnce()) -> R {
        self.reopen();
        let result = traverse();
        self.close();
        run_worker();
        result
    }

    /// The traversal is over: copy workers end when there is nothing left.
    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// A thread is gone, and what it carried with it: nothing more is carried.
    fn abandon(&self) {
        let mut queue = self.lock();
        queue.waiting.clear();
        queue.active.clear();
        queue.is_closed = true;
        self.changed.notify_all();
    }

    /// Lets the next traversal leave files here.
    fn reopen(&self) {
        let mut queue = self.lock();
        (queue.is_closed, queue.workers) = (false, 0);
    }

    /// A file, or a part in one; waited for.
    fn take(&self) -> Option<Arc<LargeFile<L>>> {
        let mut queue = self.lock();
        loop {
            if let Some(load) = queue.waiting.pop_front() {
                queue.active.push(Arc::clone(&load));
                return Some(load);
            }
            let shared = queue.active.iter().find(|l| l.is_shared.load(Ordering::Relaxed) && l.has_chunks());
            if let Some(load) = shared {
                // Counted under the lock, under which the last hand leaves.
                load.helpers.fetch_add(1, Ordering::Relaxed);
                return Some(Arc::clone(load));
            }
            if queue.is_closed && queue.active.is_empty() {
                return None;
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// A copy worker finds no more chunks in a file. Whether it was the last one at it.
    fn put_down(&self, load: &Arc<LargeFile<L>>) -> bool {
        let mut queue = self.lock();
        let is_last = load.helpers.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last {
            queue.active.retain(|active| !Arc::ptr_eq(active, load));
        }
        is_last
    }

    /// Lets others join a file whose calls wait, and have more of them.
    fn share(&self, load: &LargeFile<L>, starter: &dyn StartsWorkers) {
        let mut queue = self.lock();
        load.is_shared.store(true, Ordering::Relaxed);
        queue.most = (queue.most * 2).min(self.limit);
        let wanted = queue.most.min(load.chunks() as usize);
        for _ in queue.idle..wanted {
            self.start_more(&mut queue, starter);
        }
        self.changed.notify_all();
    }
}

/// Tells whether the calls of a thread wait.
pub(crate) struct Watch {
    meter: Meter,
    used: Lap,
    slept: Duration,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Watch { meter: Meter::start_with_run_queue(), used: Lap::default(), slept: slept() }
    }

    /// Whether more than half of the time since the start went by waiting for something other than a CPU. Time that
    /// the bound on bytes took does not count.
    pub(crate) fn has_waited(&mut self) -> bool {
        let before = std::mem::replace(&mut self.slept, slept());
        self.used += self.meter.lap_without(self.slept - before, |_| true);
        self.used.is_waiting()
    }
}

impl<L: Load> CopyWorkers<L> {
    /// Works as a copy worker until there is nothing left to carry. `deliver` is given each file that is done with.
    pub(crate) fn run_worker(&self, mover: &Mover<'_>, starter: &dyn StartsWorkers, deliver: Deliver<'_, L>) {
        let mut buffers = Buffers::default();
        while let Some(large) = self.take() {
            self.help(mover, &mut buffers.data, &large, starter);
            if self.put_down(&large) {
                let moved = large.end(mover, &mut buffers.data);
                deliver(&large.load, &mut buffers, moved);
                self.changed.notify_all();
            }
        }
    }

    /// Carries a file alone, here and now; the length of its data.
    pub(crate) fn carry(
        &self,
        mover: &Mover<'_>,
        buffer: &mut Vec<u8>,
        large: &Arc<LargeFile<L>>,
    ) -> Result<u64> {
        struct Nobody;
        impl StartsWorkers for Nobody {
            fn start_worker(&self) -> bool {
                false
            }
        }
        self.help(mover, buffer, large, &Nobody);
        large.end(mover, buffer)
    }

    fn help(
        &self,
        mover: &Mover<'_>,
        buffer: &mut Vec<u8>,
        large: &Arc<LargeFile<L>>,
        starter: &dyn StartsWorkers,
    ) {
        let pair = large.load.pair();
        let is_first = large.next_chunk.load(Ordering::Relaxed) == 0;
        if is_first {
            match mover.clone(&pair) {
                Ok(false) => {}
                Ok(true) => large.next_chunk.store(large.chunks(), Ordering::Relaxed),
                Err(error) => large.fail(error),
            }
        }
        let mut watch = Watch::start();
        while let Some((start, end)) = large.take_chunk() {
            if let Err(error) = mover.range(&pair, start, end, buffer) {
                large.fail(error);
            }
            let is_alone = !large.is_shared.load(Ordering::Relaxed);
            if is_alone && large.has_chunks() && watch.has_waited() {
                if mover.fills(&pair) {
                    // Where space cannot be taken in advance it is taken as it comes.
                    let _ = pair.destination.allocate(large.size);
                }
                self.share(large, starter);
            }
        }
    }
}
