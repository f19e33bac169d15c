//! Readers and the order of their batches.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream_system::usage::{ThreadUsage, thread_usage};
use millstream_vfs::{Errno, Error, Operation, Volume};

use crate::batch::{Batch, Buffer};
use crate::error::ScanError;
use crate::range::FileRange;
use crate::unit::{Counts, ScanOptions, Unit, UnitReader};

/// Wall time per CPU time from which reading counts as waiting.
const WAITING_RATIO: f64 = 2.0;
/// No judgement is made of less wall time than this.
const JUDGED_AFTER: Duration = Duration::from_micros(500);
/// Units for each reader that may be done before their turn.
const AHEAD_PER_READER: usize = 2;

/// A call that has found no rows for so long returns, so that the caller can see whether it still wants any.
const PATIENCE: Duration = Duration::from_millis(100);

/// What a scan has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the ranges.
    pub bytes: u64,
    /// Files that were opened.
    pub files: u64,
    /// Files that were not there and were left out.
    pub missing: u64,
    /// Time that the caller spent waiting for other readers.
    pub waited: Duration,
    /// Threads that read ahead.
    pub readers: usize,
}

/// A scan that runs. Dropping it stops the readers; those that are in a call end when it does.
#[derive(Debug)]
pub struct Scan<V: Volume> {
    shared: Arc<Shared<V>>,
    current: Option<Batch>,
    scratch: Buffer,
    waited: Duration,
}

#[derive(Debug)]
struct Shared<V: Volume> {
    base: V::Dir,
    ranges: Vec<FileRange>,
    units: Vec<Unit>,
    options: ScanOptions,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Units before this one are being read, or have been.
    claimed: usize,
    /// Units before this one have been handed over.
    delivered: usize,
    done: HashMap<usize, Result<Batch, ScanError>>,
    /// Batches to be filled again.
    spare: Vec<Batch>,
    readers: usize,
    stopped: bool,
    wall: Duration,
    cpu: Duration,
    counts: Counts,
}

impl<V: Volume> Scan<V> {
    /// Scans `ranges` on `volume`, in their order. Nothing is read before the first call of [`Scan::next_batch`].
    pub fn new(volume: &V, ranges: Vec<FileRange>, options: ScanOptions) -> Self {
        let units = Unit::cut(&ranges, &options);
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { base: volume.base(), ranges, units, options, state, changed });
        Scan { shared, current: None, scratch: Buffer::default(), waited: Duration::ZERO }
    }

    /// The next batch; it takes the place of the one before. It has no rows if none were found for a while. `None` at the end.
    ///
    /// # Errors
    /// The first one, in the order of the ranges; the scan is over then.
    pub fn next_batch(&mut self) -> Result<Option<&Batch>, ScanError> {
        self.next_batch_while(&mut || true)
    }

    /// As [`Scan::next_batch`], as long as `goes_on` says so, which is asked after each file and while other readers are waited for.
    ///
    /// # Errors
    /// [`ScanError::is_interrupted`] once it says no; otherwise as [`Scan::next_batch`].
    pub fn next_batch_while(
        &mut self,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<&Batch>, ScanError> {
        let shared = Arc::clone(&self.shared);
        let mut own = UnitReader::new(&shared.options, std::mem::take(&mut self.scratch));
        let found = self.find_batch(&shared, &mut own, goes_on);
        self.scratch = own.scratch;
        Ok(found?.map(|batch| &*self.current.insert(batch)))
    }

    fn find_batch(
        &mut self,
        shared: &Arc<Shared<V>>,
        own: &mut UnitReader<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Batch>, ScanError> {
        let since = Instant::now();
        let mut state = shared.state();
        state.spare.extend(self.current.take());
        loop {
            if state.stopped || state.delivered == shared.units.len() {
                return Ok(None);
            }
            let turn = state.delivered;
            // Readers must not wait for the answer, which may take its time.
            drop(state);
            let is_wanted = goes_on();
            state = shared.state();
            if !is_wanted {
                state.stopped = true;
                shared.changed.notify_all();
                return Err(ScanError::interrupted(shared.units[turn].range()));
            }
            if let Some(done) = state.done.remove(&turn) {
                state.delivered += 1;
                shared.changed.notify_all();
                match done {
                    Ok(batch) if batch.rows > 0 || since.elapsed() > PATIENCE => return Ok(Some(batch)),
                    Ok(batch) => state.spare.push(batch),
                    Err(error) => {
                        state.stopped = true;
                        return Err(error);
                    }
                }
            } else if state.may_claim(&shared.units) {
                // This thread is a reader like the others, until its turn has come.
                state = shared.read_next(own, state, goes_on);
            } else if since.elapsed() > PATIENCE {
                return Ok(Some(Batch::default()));
            } else {
                let waiting = Instant::now();
                state = shared.wait(state);
                self.waited += waiting.elapsed();
            }
        }
    }

    /// Ends the scan: readers stop, and what they have read ahead is freed. The last batch stays as it is.
    pub fn stop(&mut self) {
        let mut state = self.shared.state();
        state.stopped = true;
        state.done.clear();
        state.spare.clear();
        self.shared.changed.notify_all();
    }

    /// The batch that was fetched last; `None` before the first one and after an error.
    pub fn batch(&self) -> Option<&Batch> {
        self.current.as_ref()
    }

    /// What has been done so far.
    pub fn progress(&self) -> Progress {
        let state = self.shared.state();
        let Counts { bytes, files, missing } = state.counts;
        Progress { bytes, files, missing, waited: self.waited, readers: state.readers }
    }
}

impl<V: Volume> Drop for Scan<V> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn may_claim(&self, units: &[Unit]) -> bool {
        self.claimed < units.len() && self.claimed <= self.delivered + AHEAD_PER_READER * self.readers
    }

    /// How many threads should read ahead.
    fn wanted_readers(&self, most: usize) -> usize {
        let cpu = self.cpu.max(Duration::from_micros(1));
        let ratio = self.wall.as_secs_f64() / cpu.as_secs_f64();
        if self.wall < JUDGED_AFTER || ratio < WAITING_RATIO { 0 } else { ((2.0 * ratio) as usize).min(most) }
    }
}

impl<V: Volume> Shared<V> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, or for as long as a caller has patience.
    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Claims a unit and reads it.
    fn read_next<'s>(
        self: &'s Arc<Self>,
        own: &mut UnitReader<'_>,
        mut state: MutexGuard<'s, State>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> MutexGuard<'s, State> {
        let unit = state.claimed;
        state.claimed += 1;
        let mut batch = state.spare.pop().unwrap_or_default();
        drop(state);
        let mut meter = Meter::start();
        let read = catch_unwind(AssertUnwindSafe(|| {
            own.read(&self.base, &self.ranges, self.units[unit], &mut batch, || {
                self.report(&mut meter) && goes_on()
            })
        }));
        self.report(&mut meter);
        let read = read.unwrap_or_else(|_| {
            // The message has been printed by the panic.
            let cause = Error::new(Operation::Read, Errno::IO).into();
            Err(ScanError { range: batch.range, cause })
        });
        let counts = std::mem::take(&mut own.counts);
        let mut state = self.state();
        state.counts.bytes += counts.bytes;
        state.counts.files += counts.files;
        state.counts.missing += counts.missing;
        if !state.stopped {
            state.done.insert(unit, read.map(|()| batch));
        }
        self.changed.notify_all();
        state
    }

    /// Tells how long reading took, and starts readers if it waits. Returns whether the scan goes on.
    fn report(self: &Arc<Self>, meter: &mut Meter) -> bool {
        let (wall, cpu) = meter.lap();
        let mut state = self.state();
        state.wall += wall;
        state.cpu += cpu;
        let left = self.units.len() - state.claimed;
        let wanted = state.wanted_readers(self.options.max_readers).min(left);
        let missing = wanted.saturating_sub(state.readers);
        if state.stopped {
            return false;
        }
        state.readers += missing;
        drop(state);
        for _ in 0..missing {
            let shared = Arc::clone(self);
            let started =
                thread::Builder::new().name("millstream-scan".into()).spawn(move || shared.read_ahead());
            if started.is_err() {
                // The process may have no more threads: those that there are do the work.
                self.state().readers -= 1;
            }
        }
        true
    }

    fn read_ahead(self: Arc<Self>) {
        let mut own = UnitReader::new(&self.options, Buffer::default());
        let mut state = self.state();
        while !state.stopped && state.claimed < self.units.len() {
            state = match state.may_claim(&self.units) {
                true => self.read_next(&mut own, state, &mut || true),
                false => self.wait(state),
            };
        }
    }
}

/// Wall and CPU time of a thread.
struct Meter {
    since: Instant,
    usage: ThreadUsage,
}

impl Meter {
    fn start() -> Self {
        Meter { since: Instant::now(), usage: thread_usage() }
    }

    /// What has passed since the last time. Of wall time in which the thread never waited, only in line for a CPU, what it
    /// had of the CPU: on a busy machine data in the page cache must not look like a slow disk.
    fn lap(&mut self) -> (Duration, Duration) {
        let next = Meter::start();
        let cpu = Duration::from_nanos(next.usage.cpu_ns.saturating_sub(self.usage.cpu_ns));
        let wall = if next.usage.waits > self.usage.waits { next.since - self.since } else { cpu };
        *self = next;
        (wall, cpu)
    }
}
