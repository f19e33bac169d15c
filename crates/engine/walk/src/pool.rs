//! The workers: the tasks, and the threads that run them.
//!
//! The calling thread is the first worker. Others start when tasks wait, no worker is idle and the current target
//! ([`WorkerTarget`]) allows one more, so that a small tree costs no thread. A worker beyond the target stops taking
//! tasks until it rises again; the tasks on its stack can be stolen.

use std::ffi::CString;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use millstream_vfs::{Capabilities, Dir, DirentBatch, Errno, Error, Operation, ReadState, Result, Volume};

use crate::frontier::{Ahead, Frontier, Local, Part, Reading, Task};
use crate::handles::{HandleBudget, RECENT, Recent};
use crate::indices::Indices;
use crate::sequence::Sequence;
use crate::worker_target::{WorkerMeter, WorkerTarget};
use crate::{
    Chunk, Descend, Descent, Directory, FanOut, Fault, FaultSite, FollowPolicy, HandleRetention, Order,
    Visitor, WalkOptions,
};

/// First batch of a directory, in bytes: about 1,000 entries, one request on FUSE and NFS for most directories. FUSE
/// allocates pages for all of it at every call.
const FIRST_BATCH: usize = 32 << 10;
/// No Linux file system has entries that take more bytes of a batch.
const LONGEST_RECORD: usize = 280;
/// Batches of a large directory that its reader visits itself.
const INLINE_BATCH: usize = 1 << 20;
/// Batches of a large directory that are handed to others; every worker may hold one.
const SHARED_BATCH: usize = 256 << 10;
/// Most entries in one chunk.
const MAX_CHUNK: usize = 1024;
/// Handles that a worker may hold in addition to those that directories keep: its recent ones, and both ends of a step.
const HANDLES_PER_WORKER: usize = RECENT + 2;
/// Stack of a worker; visits are shallow, and 256 of them should not look large in a container.
const WORKER_STACK: usize = 1 << 20;

/// Statistics of a traversal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkStats {
    /// Directories opened.
    pub directories: u64,
    /// The largest number of workers.
    pub threads_peak: usize,
    /// Handles opened to get back to directories whose handle had been closed.
    pub reopened: u64,
}

/// The statistics of several consecutive traversals.
impl AddAssign for WalkStats {
    fn add_assign(&mut self, later: WalkStats) {
        self.directories += later.directories;
        self.threads_peak = self.threads_peak.max(later.threads_peak);
        self.reopened += later.reopened;
    }
}

/// Traverses `operands` with `visitor` until all is done or the options' cancellation is called.
///
/// The calling thread takes part. Panics of a visitor end the traversal and are passed on.
pub fn walk<X: Visitor>(
    volume: &X::Volume,
    operands: &[CString],
    visitor: &X,
    options: &WalkOptions,
) -> WalkStats {
    walk_from(volume, volume.base(), operands, visitor, options)
}

/// As [`walk`], with operands that are paths from the directory `base`.
pub fn walk_from<X: Visitor>(
    volume: &X::Volume,
    base: <X::Volume as Volume>::Dir,
    operands: &[CString],
    visitor: &X,
    options: &WalkOptions,
) -> WalkStats {
    let root = Directory::of_operands(base, visitor.root_state());
    let handles = volume.max_open_dirs().saturating_sub(options.reserved_handles);
    // At least a third is left for directories to keep.
    let most = (handles * 2 / 3 / HANDLES_PER_WORKER).max(1);
    let worker_target =
        WorkerTarget::new(options.threads, most, !volume.capabilities().contains(Capabilities::PROMPT));
    let budget = HandleBudget::new(handles.saturating_sub(worker_target.max() * HANDLES_PER_WORKER));
    let (frontier, sequence) = match options.order {
        Order::Completion => (Frontier::stealing(worker_target.max()), None),
        Order::DepthFirst { max_waiting_bytes } => {
            (Frontier::stacked(), Some(Sequence::new(&root, max_waiting_bytes)))
        }
    };
    let pool = Pool {
        visitor,
        options,
        frontier,
        sequence,
        budget,
        worker_target,
        emit: Mutex::default(),
        indices: Indices::default(),
        directories: AtomicU64::new(0),
        reopened: AtomicU64::new(0),
        over: AtomicBool::new(false),
        surplus: Mutex::default(),
        surplus_wake: Condvar::new(),
    };
    thread::scope(|scope| {
        pool.frontier.begin();
        Worker::new(&pool, scope, 0).run(|first| {
            first.visit_operands(&root, operands);
            pool.frontier.done();
        });
    });
    WalkStats {
        directories: pool.directories.load(Ordering::Relaxed),
        threads_peak: pool.indices.in_use(),
        reopened: pool.reopened.load(Ordering::Relaxed),
    }
}

struct Pool<'w, X: Visitor> {
    visitor: &'w X,
    options: &'w WalkOptions,
    frontier: Frontier<X::Volume, X::State>,
    sequence: Option<Sequence<X::Volume, X::State>>,
    budget: HandleBudget,
    worker_target: WorkerTarget,
    /// Held while a block is emitted in order of completion.
    emit: Mutex<()>,
    indices: Indices,
    directories: AtomicU64,
    reopened: AtomicU64,
    over: AtomicBool,
    surplus: Mutex<()>,
    surplus_wake: Condvar,
}

impl<X: Visitor> Pool<'_, X> {
    fn cancelled(&self) -> bool {
        self.options.cancellation.is_cancelled()
    }

    /// Counts directories that are to be read.
    fn descend(&self, directories: usize) {
        if let Some(census) = &self.options.census {
            census.descend(directories);
        }
    }

    /// Counts a directory as read.
    fn read_to_end(&self) {
        if let Some(census) = &self.options.census {
            census.read_to_end();
        }
    }

    /// Waits while there are more workers than the target; worker 0 never waits.
    fn wait_while_surplus(&self, index: usize) {
        let mut surplus = self.surplus.lock().unwrap_or_else(PoisonError::into_inner);
        while index >= self.worker_target.target() && !self.over.load(Ordering::Acquire) {
            surplus = self.surplus_wake.wait(surplus).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets surplus workers check the target again.
    fn wake_surplus(&self) {
        let _surplus = self.surplus.lock().unwrap_or_else(PoisonError::into_inner);
        self.surplus_wake.notify_all();
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_surplus();
    }
}

/// Without it the other workers would wait forever for the lost task.
struct AbandonOnPanic<'s, 'w, X: Visitor>(&'s Pool<'w, X>);

impl<X: Visitor> Drop for AbandonOnPanic<'_, '_, X> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.options.cancellation.cancel();
            self.0.frontier.abandon();
            self.0.end();
        }
    }
}

struct Worker<'w, 's, 'e, X: Visitor> {
    pool: &'s Pool<'w, X>,
    scope: &'s thread::Scope<'s, 'e>,
    index: usize,
    local: Local<X::Volume, X::State>,
    own: X::Worker,
    batch: DirentBatch,
    /// An empty batch to read ahead with.
    spare: DirentBatch,
    meter: WorkerMeter,
    found: Vec<Arc<Directory<X::Volume, X::State>>>,
    recent: Recent<X::Volume, X::State>,
}

type Dirs<X> = Arc<Directory<<X as Visitor>::Volume, <X as Visitor>::State>>;
type Handle<X> = Arc<<<X as Visitor>::Volume as Volume>::Dir>;

impl<'w: 's, 's, 'e, X: Visitor> Worker<'w, 's, 'e, X> {
    fn new(pool: &'s Pool<'w, X>, scope: &'s thread::Scope<'s, 'e>, index: usize) -> Self {
        Worker {
            pool,
            scope,
            index,
            local: pool.frontier.local(index),
            own: pool.visitor.worker(),
            batch: DirentBatch::default(),
            spare: DirentBatch::default(),
            meter: WorkerMeter::start(),
            found: Vec::new(),
            recent: Recent::default(),
        }
    }

    /// Does `first`, then tasks until there are no more.
    fn run(mut self, first: impl FnOnce(&mut Self)) {
        let _abandon = AbandonOnPanic(self.pool);
        first(&mut self);
        while let Some(task) = self.next_task() {
            // The worker that pushed tasks may have seen an idle one, which takes only one of them.
            self.start_worker_if_wanted();
            self.meter.restart(&self.pool.worker_target);
            if !matches!(task, Task::Open(_)) {
                self.recent.let_go();
            }
            match task {
                Task::Open(directory) => self.open(directory),
                Task::Resume(reading) => self.read(*reading),
                Task::Part(part) => self.visit_part(part),
            }
            self.report();
            self.pool.frontier.done();
        }
        self.pool.end();
        self.pool.reopened.fetch_add(self.recent.reopened, Ordering::Relaxed);
        self.pool.visitor.finish(self.own);
    }

    /// Reports to the worker target, and starts more workers if it asks for them.
    fn report(&mut self) {
        if self.meter.report(&self.pool.worker_target, self.pool.visitor.slept()) {
            self.pool.wake_surplus();
            self.start_worker_if_wanted();
        }
    }

    fn next_task(&mut self) -> Option<Task<X::Volume, X::State>> {
        if self.index >= self.pool.worker_target.target() {
            self.recent.let_go();
            self.pool.wait_while_surplus(self.index);
        }
        self.pool.frontier.next(&self.local, self.pool.sequence.as_ref(), || self.recent.let_go())
    }

    /// Makes tasks visible, and starts a worker if none is idle.
    fn push(&mut self, tasks: impl ExactSizeIterator<Item = Task<X::Volume, X::State>>) {
        self.pool.frontier.push(&self.local, tasks);
        self.start_worker_if_wanted();
    }

    fn start_worker_if_wanted(&self) {
        let pool = self.pool;
        if !pool.frontier.wants_workers() {
            return;
        }
        let Some(index) = pool.indices.take(pool.worker_target.target()) else { return };
        let scope = self.scope;
        let started = pool.options.threads.leave().is_some_and(|permit| {
            let worker = move || {
                let _permit = permit;
                // Each new worker looks whether one more is wanted, so that many start at once.
                Worker::new(pool, scope, index).run(|worker| worker.start_worker_if_wanted());
            };
            thread::Builder::new().stack_size(WORKER_STACK).spawn_scoped(scope, worker).is_ok()
        });
        if !started {
            // No thread can be started: the running ones do the work.
            pool.indices.give_back(index);
        }
    }

    fn visit_operands(&mut self, root: &Dirs<X>, operands: &[CString]) {
        let Some(handle) = root.slot.get() else { return };
        self.batch = DirentBatch::from_names(operands.iter().map(CString::as_c_str));
        if self.is_shared(self.batch.count()) {
            self.share_batch(root, &handle, 0);
        } else {
            self.visit_batch(root, &handle, 0);
        }
        self.batch = DirentBatch::default();
        self.part_done(root, None);
    }

    fn open(&mut self, directory: Dirs<X>) {
        let opened = if self.pool.cancelled() { None } else { Some(self.open_handle(&directory)) };
        self.child_opened(&directory);
        match opened {
            None => {
                self.pool.read_to_end();
                self.part_done(&directory, None);
            }
            Some(Err(fault)) => {
                self.pool.read_to_end();
                self.pool.visitor.fault(&mut self.own, &FaultSite::Directory(&directory), &fault);
                self.part_done(&directory, None);
            }
            Some(Ok(handle)) => {
                self.pool.directories.fetch_add(1, Ordering::Relaxed);
                let kept = self.pool.budget.keep(&directory, &handle);
                match kept {
                    true => self.recent.let_go(),
                    false => self.recent.hold(&directory, &handle),
                }
                let cursor = Default::default();
                self.read(Reading {
                    directory,
                    handle,
                    cursor,
                    next_index: 0,
                    batch_bytes: FIRST_BATCH,
                    ahead: Ahead::Unread,
                    kept,
                });
            }
        }
    }

    fn open_handle(&mut self, directory: &Dirs<X>) -> std::result::Result<Handle<X>, Fault> {
        let parent = directory.parent().ok_or(Error::new(Operation::OpenDir, Errno::INVAL))?;
        let above = self.recent.reach(parent)?;
        let handle = above.open_dir(directory.name(), directory.symlinks)?;
        if self.pool.options.descent == Descent::Operands {
            return Ok(Arc::new(handle));
        }
        let identity = handle.identity()?;
        directory.identity.get_or_init(|| identity);
        let above = match self.pool.options.follow {
            FollowPolicy::Always => {
                directory.ancestors().skip(1).find(|a| a.identity.get() == Some(&identity))
            }
            FollowPolicy::Operands | FollowPolicy::Never => parent.enclosing(identity),
        };
        if let Some(above) = above {
            let mut ancestor = Vec::new();
            above.write_path(&mut ancestor);
            return Err(Fault::Loop { ancestor });
        }
        Ok(Arc::new(handle))
    }

    /// Tells the parent that one child less waits for its handle.
    fn child_opened(&self, directory: &Dirs<X>) {
        if let Some(parent) = directory.parent() {
            self.opened_one(parent);
        }
    }

    fn opened_one(&self, directory: &Dirs<X>) {
        if directory.opened_one() && self.pool.options.retention == HandleRetention::UntilChildrenOpen {
            self.pool.budget.release(directory);
        }
    }

    fn read(&mut self, mut reading: Reading<X::Volume, X::State>) {
        if matches!(reading.ahead, Ahead::Unread) && self.batch.capacity() != reading.batch_bytes {
            self.batch = DirentBatch::with_capacity(reading.batch_bytes);
        }
        while let Some(count) = self.read_batch(&mut reading) {
            let shared = reading.kept && self.is_shared(count);
            let (directory, handle) = (Arc::clone(&reading.directory), Arc::clone(&reading.handle));
            let first_index = reading.next_index;
            reading.next_index += count as u64;
            let large = self.batch.len() >= FIRST_BATCH / 2;
            let in_sequence = self.pool.visitor.fan_out() == FanOut::Sequential;
            if reading.kept && (shared || large) && !in_sequence {
                // A large directory: the rest of it goes below the tasks of this batch, and may be done before them.
                // Outside the budget it is read to its end first, so that its handle does not wait open.
                directory.add_parts(1);
                if large {
                    let largest = if shared { SHARED_BATCH } else { INLINE_BATCH };
                    reading.batch_bytes = (self.batch.capacity() * 8).min(largest);
                }
                self.push([Task::Resume(Box::new(reading))].into_iter());
                if shared {
                    self.share_batch(&directory, &handle, first_index);
                } else {
                    self.visit_batch(&directory, &handle, first_index);
                }
                return self.part_done(&directory, Some(handle));
            }
            self.visit_batch(&directory, &handle, first_index);
            if large && self.batch.capacity() < INLINE_BATCH {
                self.batch = DirentBatch::with_capacity(INLINE_BATCH);
            }
        }
        self.part_done(&reading.directory, Some(reading.handle));
    }

    /// Fills the worker's batch; returns the number of entries, `None` when there are no more.
    fn read_batch(&mut self, reading: &mut Reading<X::Volume, X::State>) -> Option<usize> {
        match std::mem::take(&mut reading.ahead) {
            Ahead::Unread => {
                let mut batch = std::mem::take(&mut self.batch);
                let has_more = self.read_entries(reading, &mut batch);
                self.batch = batch;
                if !has_more {
                    return None;
                }
            }
            Ahead::Read(_) if self.pool.cancelled() => {
                self.pool.read_to_end();
                return None;
            }
            Ahead::Read(batch) => self.batch = batch,
            Ahead::End => return None,
        }
        if self.pool.options.census.is_some() && self.batch.len() + LONGEST_RECORD <= self.batch.capacity() {
            // Likely the last batch. Knowing that before the visits takes the same call as learning it after them.
            let mut batch = match self.spare.capacity() {
                0 => DirentBatch::with_capacity(FIRST_BATCH),
                _ => std::mem::take(&mut self.spare),
            };
            if self.read_entries(reading, &mut batch) {
                reading.ahead = Ahead::Read(batch);
            } else {
                reading.ahead = Ahead::End;
                self.spare = batch;
            }
        }
        Some(self.batch.count())
    }

    /// Reads the next entries of a directory into `batch`; returns whether there are any.
    fn read_entries(&mut self, reading: &mut Reading<X::Volume, X::State>, batch: &mut DirentBatch) -> bool {
        if self.pool.cancelled() {
            self.pool.read_to_end();
            return false;
        }
        let read: Result<ReadState> = reading.handle.read_entries(&mut reading.cursor, batch);
        if self.pool.worker_target.is_starting() {
            // The end of the task may be far away.
            self.report();
        }
        let has_more = match read {
            Ok(state) => state == ReadState::More,
            Err(error) => {
                let place = FaultSite::Directory(&reading.directory);
                self.pool.visitor.fault(&mut self.own, &place, &Fault::Volume(error));
                false
            }
        };
        if !has_more {
            self.pool.read_to_end();
        } else if let Some(census) = &self.pool.options.census {
            census.list(batch, self.pool.options.follow);
        }
        has_more
    }

    fn is_shared(&self, count: usize) -> bool {
        let Pool { worker_target, visitor, frontier, .. } = self.pool;
        match visitor.fan_out() {
            FanOut::Inline | FanOut::Sequential => false,
            FanOut::InOrder => true,
            FanOut::Parallel => {
                worker_target.max() > 1
                    && count > 2 * worker_target.min_chunk()
                    && (worker_target.calls_wait() || frontier.is_hungry(worker_target.target()))
            }
        }
    }

    /// Cuts the worker's batch into chunks for all workers.
    fn share_batch(&mut self, directory: &Dirs<X>, handle: &Handle<X>, first_index: u64) {
        let batch = Arc::new(self.batch.take_entries());
        let worker_target = &self.pool.worker_target;
        let size = match self.pool.visitor.fan_out() {
            FanOut::InOrder => 1,
            _ => (batch.count() / (2 * worker_target.target())).clamp(worker_target.min_chunk(), MAX_CHUNK),
        };
        let mut index = first_index;
        let parts: Vec<_> = batch
            .split(size)
            .into_iter()
            .map(|(range, count)| {
                let (directory, handle, batch) =
                    (Arc::clone(directory), Arc::clone(handle), Arc::clone(&batch));
                let part = Part { directory, handle, batch, range, first_index: index };
                index += count as u64;
                Task::Part(part)
            })
            .collect();
        directory.add_parts(parts.len());
        self.push(parts.into_iter().rev());
    }

    /// Visits the worker's batch here and now.
    fn visit_batch(&mut self, directory: &Dirs<X>, handle: &Handle<X>, first_index: u64) {
        let batch = std::mem::take(&mut self.batch);
        self.visit(directory, handle, &batch, 0..batch.len(), first_index);
        self.batch = batch;
    }

    fn visit_part(&mut self, part: Part<X::Volume, X::State>) {
        if !self.pool.cancelled() {
            self.visit(&part.directory, &part.handle, &part.batch, part.range, part.first_index);
        }
        self.part_done(&part.directory, Some(part.handle));
    }

    fn visit(
        &mut self,
        directory: &Dirs<X>,
        handle: &Handle<X>,
        batch: &DirentBatch,
        range: std::ops::Range<usize>,
        first_index: u64,
    ) {
        let follow = self.pool.options.follow;
        let chunk = Chunk { directory, handle: &**handle, batch, range: range.clone(), first_index, follow };
        let mut descend = Descend { directory, found: &mut self.found, follow };
        self.pool.visitor.visit(&mut self.own, &chunk, &mut descend);
        if let Some(census) = &self.pool.options.census {
            census.visited(batch, range, follow, self.found.len());
        }
        self.publish(directory);
    }

    /// Makes tasks of the directories that were descended into; the first is taken first.
    fn publish(&mut self, directory: &Dirs<X>) {
        if self.found.is_empty() {
            return;
        }
        directory.add_children(self.found.len());
        if let Some(sequence) = &self.pool.sequence {
            sequence.add_children(directory, &self.found);
        }
        let mut found = std::mem::take(&mut self.found);
        self.push(found.drain(..).rev().map(Task::Open));
        self.found = found;
    }

    /// A part of the directory's own entries is done; the last one ends the directory.
    fn part_done(&mut self, directory: &Dirs<X>, handle: Option<Handle<X>>) {
        if !directory.part_done() {
            return;
        }
        let mut block = Vec::new();
        let follow = self.pool.options.follow;
        let mut descend = Descend { directory, found: &mut self.found, follow };
        self.pool.visitor.end_of_directory(&mut self.own, directory, &mut descend, &mut block);
        self.pool.descend(self.found.len());
        self.publish(directory);
        self.emit(directory, block);
        self.opened_one(directory);
        self.left_one(directory, handle);
    }

    fn emit(&mut self, directory: &Dirs<X>, block: Vec<u8>) {
        let visitor = self.pool.visitor;
        match &self.pool.sequence {
            Some(sequence) => {
                sequence.finish(directory, block);
                sequence.advance(|block| {
                    if !block.is_empty() {
                        visitor.emit(block)
                    }
                });
                self.pool.frontier.output_moved();
            }
            None if block.is_empty() => {}
            None => {
                let _one_at_a_time = self.pool.emit.lock().unwrap_or_else(PoisonError::into_inner);
                visitor.emit(&block);
            }
        }
    }

    /// The directory's own entries, or a child, are done: leaves it if that was the last, then maybe its parent.
    fn left_one(&mut self, directory: &Dirs<X>, mut handle: Option<Handle<X>>) {
        let mut directory = Arc::clone(directory);
        while directory.left_one() {
            // The parent's handle is open while the visitor acts on it.
            handle = self.handle_above(&directory, handle);
            self.pool.visitor.leave(&mut self.own, &directory);
            self.pool.budget.release(&directory);
            if self.pool.visitor.again(&directory) {
                directory.renew();
                self.pool.descend(1);
                return self.push([Task::Open(directory)].into_iter());
            }
            let Some(parent) = directory.parent() else { return };
            directory = Arc::clone(parent);
        }
    }

    /// The handle of the parent of a directory that is being left, if it will be needed. `own` is the latter's handle.
    fn handle_above(&mut self, directory: &Dirs<X>, own: Option<Handle<X>>) -> Option<Handle<X>> {
        let parent = directory.parent()?;
        let above = parent.slot.get();
        if above.is_some() {
            return above;
        }
        if let Some(own) = own.or_else(|| directory.slot.get()) {
            // The next directory to be opened is likely to be near.
            self.recent.hold(directory, &own);
        }
        match self.pool.options.retention {
            HandleRetention::UntilLeft => self.recent.reach(parent).ok(),
            HandleRetention::UntilChildrenOpen => None,
        }
    }
}
