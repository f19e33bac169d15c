//! Runs the readers and puts their batches in order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream_codec::Index;
use millstream_system::concurrency::{Budget, Lap, Meter};
use millstream_vfs::{Errno, Error, Operation};

use crate::batch::{Batch, Buffer};
use crate::distinct::{Added, DistinctRows};
use crate::error::ScanError;
use crate::shared::SharedFiles;
use crate::source::{FileRange, Source, SourceFile};
use crate::unit::{Counts, Output, Rest, ScanOptions, Unit, UnitReader};

/// Whether reading waits is not judged before this much wall time.
const JUDGED_AFTER: Duration = Duration::from_micros(500);
/// How often reading is measured, at most, before its unit is done: that takes two system calls, and tiny files in the
/// page cache take 10 µs each.
const SHORTEST_LAP: Duration = Duration::from_micros(100);
/// Batches of a unit that may be read ahead, if it has several.
const AHEAD_OF_UNIT: usize = 4;
/// Units per reader that may be read ahead of their turn.
const AHEAD_PER_READER: usize = 2;
/// Most bytes of units that are read ahead of their turn. Eight parts of 8 MiB fit, even if the last part of a file is
/// larger.
const AHEAD_BYTES: u64 = 72 << 20;

/// A call returns after this time even without rows, so that the caller can stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// Progress of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the ranges read so far.
    pub bytes: u64,
    /// Files opened.
    pub files: u64,
    /// Missing files that were skipped.
    pub missing: u64,
    /// Time that the caller spent waiting for other readers.
    pub waited: Duration,
    /// Threads that read ahead.
    pub readers: usize,
}

/// A running scan. Dropping it stops the readers; a reader inside a system call ends when the call returns.
#[derive(Debug)]
pub struct Scan<S: Source> {
    shared: Arc<Shared<S>>,
    current: Option<Batch>,
    distinct: DistinctRows,
    scratch: Buffer,
    waited: Duration,
}

#[derive(Debug)]
struct Shared<S: Source> {
    source: S,
    ranges: Vec<FileRange>,
    units: Vec<Unit>,
    files: SharedFiles<S::File>,
    options: ScanOptions,
    state: Mutex<State<S::File>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<F: SourceFile> {
    /// All units before this one have been taken by a reader.
    claimed: usize,
    /// All units before this one have been delivered.
    delivered: usize,
    /// Bytes of the units that have been taken and not been delivered.
    ahead_bytes: u64,
    /// What has been read of units, in order.
    done: HashMap<usize, VecDeque<Done>>,
    /// Units of which a part has been read, and that nobody is reading.
    rest: BTreeMap<usize, Rest<F>>,
    /// Batches for reuse.
    spare: Vec<Batch>,
    readers: usize,
    stopped: bool,
    used: Lap,
    counts: Counts,
    indexes: Vec<(usize, Index)>,
}

/// A batch of a unit.
#[derive(Debug)]
struct Done {
    read: Result<Batch, ScanError>,
    is_last: bool,
}

impl<F: SourceFile> Default for State<F> {
    fn default() -> Self {
        State {
            claimed: 0,
            delivered: 0,
            ahead_bytes: 0,
            done: HashMap::new(),
            rest: BTreeMap::new(),
            spare: Vec::new(),
            readers: 0,
            stopped: false,
            used: Lap::default(),
            counts: Counts::default(),
            indexes: Vec::new(),
        }
    }
}

impl<S: Source> Scan<S> {
    /// Scans `ranges` of files in `source`, in their order. Nothing is read before the first call of
    /// [`Scan::next_batch`].
    pub fn new(source: S, ranges: Vec<FileRange>, options: ScanOptions) -> Self {
        let units = Unit::cut(&ranges, &options, S::PORTIONS);
        let (files, state, changed) = (SharedFiles::default(), Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { source, ranges, units, files, options, state, changed });
        let distinct = DistinctRows::default();
        Scan { shared, current: None, distinct, scratch: Buffer::default(), waited: Duration::ZERO }
    }

    /// The next batch, which replaces the previous one. It is empty if no rows were found for a while. `None` at the
    /// end.
    ///
    /// # Errors
    /// The first error in the order of the ranges; it ends the scan.
    pub fn next_batch(&mut self) -> Result<Option<&Batch>, ScanError> {
        self.next_batch_while(&mut || true)
    }

    /// Like [`Scan::next_batch`], but stops when `should_continue` returns false. It is called after each file, and
    /// while waiting for other readers.
    ///
    /// # Errors
    /// [`ScanError::is_interrupted`] after `should_continue` returned false; otherwise as [`Scan::next_batch`].
    pub fn next_batch_while(
        &mut self,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<&Batch>, ScanError> {
        let shared = Arc::clone(&self.shared);
        let mut own = UnitReader::new(&shared.options, std::mem::take(&mut self.scratch));
        let found = match shared.options.output {
            Output::Distinct => self.find_distinct(&shared, &mut own, should_continue),
            Output::Values | Output::Count => self.find_batch(&shared, &mut own, should_continue),
        };
        self.scratch = own.scratch;
        Ok(found?.map(|batch| &*self.current.insert(batch)))
    }

    /// Collects the distinct rows of batches until they are a batch.
    fn find_distinct(
        &mut self,
        shared: &Arc<Shared<S>>,
        own: &mut UnitReader<'_>,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Batch>, ScanError> {
        let since = Instant::now();
        while let Some(batch) = self.find_batch(shared, own, should_continue)? {
            match self.distinct.add(batch) {
                Added::Collected(read) => shared.state().keep(read),
                Added::PassedOn(batch) => return Ok(Some(batch)),
            }
            if self.distinct.is_full() {
                return Ok(self.distinct.take());
            }
            if since.elapsed() > PATIENCE {
                return Ok(Some(Batch::default()));
            }
        }
        // After an error or a stop, what has been collected is not all.
        Ok(if shared.state().stopped { None } else { self.distinct.take() })
    }

    fn find_batch(
        &mut self,
        shared: &Arc<Shared<S>>,
        own: &mut UnitReader<'_>,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Batch>, ScanError> {
        let since = Instant::now();
        let mut state = shared.state();
        if let Some(read) = self.current.take() {
            state.keep(read);
        }
        loop {
            if state.stopped || state.delivered == shared.units.len() {
                return Ok(None);
            }
            let turn = state.delivered;
            // Unlocked: the answer may take a while, and readers must not wait for it.
            drop(state);
            let is_wanted = should_continue();
            state = shared.state();
            if !is_wanted {
                state.stopped = true;
                shared.changed.notify_all();
                return Err(ScanError::interrupted(shared.units[turn].range()));
            }
            if let Some(done) = state.next_done() {
                if done.is_last {
                    state.ahead_bytes -= shared.units[turn].bytes(&shared.ranges);
                }
                shared.changed.notify_all();
                match done.read {
                    Ok(batch) if batch.rows > 0 || since.elapsed() > PATIENCE => return Ok(Some(batch)),
                    Ok(batch) => state.keep(batch),
                    Err(error) => {
                        state.stopped = true;
                        return Err(error);
                    }
                }
            } else if !shared.has_readers(&mut state)
                && let Some(claim) = state.claim(&shared.units, &shared.ranges)
            {
                // Until the next batch is ready, this thread reads like the others.
                state = shared.read_next(own, state, claim, should_continue);
            } else if since.elapsed() > PATIENCE {
                return Ok(Some(Batch::default()));
            } else {
                let waiting = Instant::now();
                state = shared.wait(state);
                self.waited += waiting.elapsed();
            }
        }
    }

    /// Ends the scan: readers stop and batches read ahead are freed. The current batch stays valid.
    pub fn stop(&mut self) {
        let mut state = self.shared.state();
        state.stopped = true;
        state.done.clear();
        state.rest.clear();
        state.spare.clear();
        self.shared.files.close();
        self.shared.changed.notify_all();
    }

    /// The current batch; `None` before the first one and after an error.
    pub fn batch(&self) -> Option<&Batch> {
        self.current.as_ref()
    }

    /// The indexes that have been made ([`Compression::Indexing`](crate::Compression::Indexing)) since the last call,
    /// each with its range.
    pub fn take_indexes(&mut self) -> Vec<(usize, Index)> {
        std::mem::take(&mut self.shared.state().indexes)
    }

    /// Progress so far.
    pub fn progress(&self) -> Progress {
        let state = self.shared.state();
        let Counts { bytes, files, missing } = state.counts;
        Progress { bytes, files, missing, waited: self.waited, readers: state.readers }
    }
}

impl<S: Source> Drop for Scan<S> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<F: SourceFile> State<F> {
    /// The next batch in order, if it has been read.
    fn next_done(&mut self) -> Option<Done> {
        let unit = self.delivered;
        let done = self.done.get_mut(&unit)?.pop_front()?;
        if done.is_last {
            self.done.remove(&unit);
            self.delivered += 1;
        }
        Some(done)
    }

    /// Takes a unit that may be read now: the first of those of which more batches are wanted, or the next one.
    fn claim(&mut self, units: &[Unit], ranges: &[FileRange]) -> Option<(usize, Option<Rest<F>>)> {
        let is_wanted = |unit: &&usize| self.done.get(unit).is_none_or(|done| done.len() < AHEAD_OF_UNIT);
        if let Some(unit) = self.rest.keys().find(is_wanted).copied() {
            return Some((unit, self.rest.remove(&unit)));
        }
        if !self.may_claim(units, ranges) {
            return None;
        }
        let unit = self.claimed;
        self.claimed += 1;
        self.ahead_bytes += units[unit].bytes(ranges);
        Some((unit, None))
    }

    /// Whether the next unit may be read now.
    fn may_claim(&self, units: &[Unit], ranges: &[FileRange]) -> bool {
        let Some(next) = units.get(self.claimed) else { return false };
        let is_its_turn = self.claimed == self.delivered;
        is_its_turn
            || (self.claimed <= self.delivered + AHEAD_PER_READER * self.readers
                && self.ahead_bytes + next.bytes(ranges) <= AHEAD_BYTES)
    }

    /// Keeps a batch for reuse.
    fn keep(&mut self, batch: Batch) {
        if batch.is_kept() {
            self.spare.push(batch);
        }
    }

    /// How many threads should read ahead.
    fn wanted_readers(&self, most: usize) -> usize {
        let is_waiting = self.used.wall >= JUDGED_AFTER && self.used.is_waiting();
        if is_waiting { ((2.0 * self.used.ratio()) as usize).min(most) } else { 0 }
    }
}

impl<S: Source> Shared<S> {
    fn state(&self) -> MutexGuard<'_, State<S::File>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, for at most [`PATIENCE`].
    fn wait<'s>(&self, state: MutexGuard<'s, State<S::File>>) -> MutexGuard<'s, State<S::File>> {
        self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether the caller leaves all reading to readers. Starts the first ones.
    fn has_readers(self: &Arc<Self>, state: &mut State<S::File>) -> bool {
        let first =
            S::PORTIONS.first_readers.min(self.options.max_readers).min(self.units.len() - state.claimed);
        while state.readers < first && self.start_reader() {
            state.readers += 1;
        }
        S::PORTIONS.first_readers > 0 && state.readers > 0
    }

    /// Reads a unit that was claimed, or a part of it.
    fn read_next<'s>(
        self: &'s Arc<Self>,
        own: &mut UnitReader<'_>,
        mut state: MutexGuard<'s, State<S::File>>,
        (unit, rest): (usize, Option<Rest<S::File>>),
        should_continue: &mut dyn FnMut() -> bool,
    ) -> MutexGuard<'s, State<S::File>> {
        let mut batch = state.spare.pop().unwrap_or_default();
        drop(state);
        let mut meter = Meter::start();
        let read = catch_unwind(AssertUnwindSafe(|| {
            let files = (&self.source, &self.files);
            own.read(files, &self.ranges, self.units[unit], rest, &mut batch, || {
                (meter.elapsed() < SHORTEST_LAP || self.report(&mut meter)) && should_continue()
            })
        }));
        self.report(&mut meter);
        let read = read.unwrap_or_else(|_| {
            // The panic has printed its message.
            let cause = Error::new(Operation::Read, Errno::IO).into();
            Err(ScanError { range: batch.range, cause })
        });
        let (counts, indexes) = (std::mem::take(&mut own.counts), std::mem::take(&mut own.indexes));
        let mut state = self.state();
        state.counts.bytes += counts.bytes;
        state.counts.files += counts.files;
        state.counts.missing += counts.missing;
        state.indexes.extend(indexes);
        if !state.stopped {
            let (read, rest) = match read {
                Ok(rest) => (Ok(batch), rest),
                Err(error) => (Err(error), None),
            };
            state.done.entry(unit).or_default().push_back(Done { read, is_last: rest.is_none() });
            state.rest.extend(rest.map(|rest| (unit, rest)));
        }
        self.changed.notify_all();
        state
    }

    /// Records how long reading took, and starts readers if it was waiting. Returns whether the scan continues.
    fn report(self: &Arc<Self>, meter: &mut Meter) -> bool {
        let lap = meter.lap();
        let mut state = self.state();
        state.used += lap;
        let left = self.units.len() - state.claimed;
        let wanted = state.wanted_readers(self.options.max_readers).min(left);
        let missing = wanted.saturating_sub(state.readers);
        if state.stopped {
            return false;
        }
        state.readers += missing;
        drop(state);
        let started = (0..missing).take_while(|_| self.start_reader()).count();
        if started < missing {
            // The limit of threads is reached: the existing readers do the work.
            self.state().readers -= missing - started;
        }
        true
    }

    /// Starts a thread that reads ahead; whether it may and can.
    fn start_reader(self: &Arc<Self>) -> bool {
        let Some(permit) = Budget::of_process().take() else { return false };
        let shared = Arc::clone(self);
        let reader = move || {
            let _permit = permit;
            shared.read_ahead();
        };
        thread::Builder::new().name("millstream-scan".into()).spawn(reader).is_ok()
    }

    fn read_ahead(self: Arc<Self>) {
        let mut own = UnitReader::new(&self.options, Buffer::default());
        let mut state = self.state();
        // A reader that has read a part of a unit goes on with it.
        while !state.stopped && (state.claimed < self.units.len() || !state.rest.is_empty()) {
            state = match state.claim(&self.units, &self.ranges) {
                Some(claim) => self.read_next(&mut own, state, claim, &mut || true),
                None => self.wait(state),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use millstream_posix::PosixVolume;
    use millstream_vfs::{Dir, Volume};

    use super::*;
    use crate::source::Compression;

    type OpenFile = <<PosixVolume as Volume>::Dir as Dir>::File;

    #[test]
    fn large_units_are_not_read_ahead_of_their_turn() {
        let length = 40 << 20;
        let file = FileRange {
            path: c"file".into(),
            start: 0,
            length,
            may_have_checksums: false,
            compression: Compression::None,
        };
        let ranges = vec![file; 9];
        let units: Vec<_> = (0..9).map(|first| Unit::Group { first, end: first + 1 }).collect();
        let claim = |claimed, delivered, ahead_bytes| {
            State::<OpenFile> { claimed, delivered, readers: 8, ahead_bytes, ..State::default() }
                .may_claim(&units, &ranges)
        };
        assert!(claim(0, 0, 0));
        assert!(!claim(2, 0, 2 * length), "that would be more than all may have");
        assert!(!claim(1, 0, length), "that too");
        assert!(claim(3, 3, 0), "the consumer waits for it, whatever its size");
        assert!(!claim(9, 9, 0), "there are no more");
    }
}
