//! The bytes of a file one after another, which threads fetch ahead where every answer takes a while.
//!
//! ```text
//! FileReader ──takes the next part──► fetched parts, in their order ◄──each fetches one part── up to `most` threads
//!     └─ doubles the window while it has to wait, so a decoder that is slower than the place holds few parts
//! ```
//!
//! Only the listed bytes are fetched ahead. What follows them is asked for when it is needed: a file may have become
//! longer, and a part of a file needs bytes after its end.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use millstream_system::concurrency::Budget;
use millstream_vfs::{Errno, Error, Operation, Result};

use crate::error::Cause;
use crate::source::SourceFile;

/// In place of where a file ends.
const NO_END: u64 = u64::MAX;
/// Parts in the window at first.
const FIRST_WINDOW: usize = 2;

/// Reads a file from one place on.
#[derive(Debug)]
pub(crate) struct FileReader<F: SourceFile> {
    file: Arc<F>,
    /// Where the next request begins.
    offset: u64,
    buffer: Vec<u8>,
    ready: Range<usize>,
    ahead: Option<ReadAhead<F>>,
    /// The size of the file when it was listed.
    size: u64,
    ended_at: Arc<AtomicU64>,
}

/// Tells whether a file has become shorter since it was listed, also while its reader belongs to a decoder.
#[derive(Debug)]
pub(crate) struct Ending<F> {
    file: Arc<F>,
    size: u64,
    /// Where the reader has found the end of the file; [`NO_END`] if it has not.
    ended_at: Arc<AtomicU64>,
}

impl<F: SourceFile> Ending<F> {
    /// # Errors
    /// [`Cause::Shortened`], if the reader has found the end of the file before its size; and those of the place.
    pub(crate) fn check(&self) -> std::result::Result<(), Cause> {
        let (end, at) = (self.size, self.ended_at.load(Ordering::Relaxed));
        match at {
            // Nothing is no compressed file, also where a shorter version of a file may be read.
            0 if end > 0 => Err(Cause::Shortened { size: 0, end }),
            at if at < end => check_size(&*self.file, end),
            _ => Ok(()),
        }
    }
}

/// Compares the present size of a file whose reader met its end before `end`, its size when it was listed.
///
/// # Errors
/// [`Cause::Shortened`], and those of the place.
pub(crate) fn check_size<F: SourceFile>(file: &F, end: u64) -> std::result::Result<(), Cause> {
    let size = file.last_start()?;
    // What the kernel makes up has fewer bytes than it says.
    if size < end { Err(Cause::Shortened { size, end }) } else { Ok(()) }
}

impl<F: SourceFile> FileReader<F> {
    /// Reads `file`, which had `size` bytes when it was listed, from the start of `range` on. A request asks for at
    /// most `portion` bytes. Up to `most_ahead` requests are made ahead within `range`; none if that is fewer than two.
    pub(crate) fn new(file: F, range: Range<u64>, size: u64, portion: usize, most_ahead: usize) -> Self {
        let (file, portion) = (Arc::new(file), portion.max(1));
        let is_ahead = most_ahead > 1 && range.end.saturating_sub(range.start) > portion as u64;
        let ahead = is_ahead.then(|| ReadAhead::new(&file, range.clone(), portion, most_ahead));
        let (buffer, ready, ended_at) = (vec![0; portion], 0..0, Arc::new(AtomicU64::new(NO_END)));
        FileReader { file, offset: range.start, buffer, ready, ahead, size, ended_at }
    }

    /// Tells whether the file has become shorter.
    pub(crate) fn ending(&self) -> Ending<F> {
        Ending { file: Arc::clone(&self.file), size: self.size, ended_at: Arc::clone(&self.ended_at) }
    }

    fn request(&mut self) -> Result<()> {
        let part = self.ahead.as_ref().and_then(|ahead| ahead.take(self.offset, &mut self.buffer));
        let n = match part {
            Some(fetched) => fetched?,
            None => {
                self.ahead = None;
                self.file.read_at(&mut self.buffer, self.offset)?
            }
        };
        (self.ready, self.offset) = (0..n, self.offset + n as u64);
        if n == 0 {
            self.ended_at.store(self.offset, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl<F: SourceFile> Read for FileReader<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() {
            self.request().map_err(io::Error::other)?;
        }
        let ready = &self.buffer[self.ready.clone()];
        let n = ready.len().min(out.len());
        out[..n].copy_from_slice(&ready[..n]);
        self.ready.start += n;
        Ok(n)
    }
}

/// Threads that fetch the parts of a file. Dropping it ends them; one inside a request ends with that.
#[derive(Debug)]
struct ReadAhead<F: SourceFile>(Arc<Shared<F>>);

#[derive(Debug)]
struct Shared<F: SourceFile> {
    file: Arc<F>,
    listed: Range<u64>,
    portion: usize,
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The next part that nobody fetches begins here.
    claimed: u64,
    /// The next part that is taken begins here.
    taken: u64,
    /// Parts that have been fetched, by their offsets.
    fetched: BTreeMap<u64, Result<Vec<u8>>>,
    /// Most parts that are fetched or have been, and not been taken.
    window: usize,
    threads: usize,
    is_stopped: bool,
    /// Memory for other parts.
    spare: Vec<Vec<u8>>,
}

impl<F: SourceFile> ReadAhead<F> {
    fn new(file: &Arc<F>, listed: Range<u64>, portion: usize, most: usize) -> Self {
        let state = State {
            claimed: listed.start,
            taken: listed.start,
            fetched: BTreeMap::new(),
            window: FIRST_WINDOW.min(most),
            threads: 0,
            is_stopped: false,
            spare: Vec::new(),
        };
        let (file, state, changed) = (Arc::clone(file), Mutex::new(state), Condvar::new());
        ReadAhead(Arc::new(Shared { file, listed, portion, most, state, changed }))
    }

    /// Exchanges `buffer` for the part at `offset`. Returns the part's length, or `None` if no part begins there or no
    /// thread can be started: the caller has to read.
    fn take(&self, offset: u64, buffer: &mut Vec<u8>) -> Option<Result<usize>> {
        let shared = &self.0;
        let mut state = shared.state();
        if offset != state.taken || offset >= shared.listed.end {
            return None;
        }
        shared.start_threads(&mut state);
        if !state.fetched.contains_key(&offset) {
            state.window = (2 * state.window).min(shared.most);
            shared.start_threads(&mut state);
            shared.changed.notify_all();
        }
        let part = loop {
            if let Some(part) = state.fetched.remove(&offset) {
                break part;
            }
            if state.claimed == offset && state.threads == 0 {
                return None;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.taken = shared.end_of(offset);
        shared.changed.notify_all();
        Some(part.map(|mut part| {
            let n = part.len();
            part.resize(shared.portion, 0);
            state.spare.push(std::mem::replace(buffer, part));
            n
        }))
    }
}

impl<F: SourceFile> Drop for ReadAhead<F> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_stopped = true;
        state.fetched.clear();
        state.spare.clear();
        self.0.changed.notify_all();
    }
}

impl<F: SourceFile> Shared<F> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the part that begins at `offset` ends.
    fn end_of(&self, offset: u64) -> u64 {
        self.listed.end.min(offset + self.portion as u64)
    }

    /// Starts a thread for each part in the window, as far as there are parts left and the process may have more
    /// threads.
    fn start_threads(self: &Arc<Self>, state: &mut State) {
        let left = (self.listed.end - state.claimed).div_ceil(self.portion as u64);
        let wanted = left.min(state.window as u64) as usize;
        while state.threads < wanted && self.start_thread() {
            state.threads += 1;
        }
    }

    fn start_thread(self: &Arc<Self>) -> bool {
        let Some(permit) = Budget::of_process().take() else { return false };
        let shared = Arc::clone(self);
        let fetcher = move || {
            let _permit = permit;
            shared.fetch_parts();
        };
        thread::Builder::new().name("millstream-ahead".into()).spawn(fetcher).is_ok()
    }

    fn fetch_parts(&self) {
        let mut state = self.state();
        while !state.is_stopped && state.claimed < self.listed.end {
            let window = self.portion as u64 * state.window as u64;
            if state.claimed >= state.taken.saturating_add(window) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (offset, mut part) = (state.claimed, state.spare.pop().unwrap_or_default());
            state.claimed = self.end_of(offset);
            drop(state);
            let fetched = catch_unwind(AssertUnwindSafe(|| self.fetch(offset, &mut part)));
            // The panic has printed its message.
            let fetched = fetched.unwrap_or(Err(Error::new(Operation::Read, Errno::IO)));
            state = self.state();
            // Nothing after a failure is wanted.
            state.is_stopped |= fetched.is_err();
            state.fetched.insert(offset, fetched.map(|()| part));
            self.changed.notify_all();
        }
        state.threads -= 1;
        self.changed.notify_all();
    }

    /// Replaces `part` by the bytes at `offset`, fewer if the file ends before the end of the part.
    fn fetch(&self, offset: u64, part: &mut Vec<u8>) -> Result<()> {
        part.resize((self.end_of(offset) - offset) as usize, 0);
        let mut filled = 0;
        while filled < part.len() {
            match self.file.read_at(&mut part[filled..], offset + filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        part.truncate(filled);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use millstream_version::Version;

    use super::*;

    const PORTION: usize = 1000;

    /// A place that answers after a while, with fewer bytes than asked for.
    #[derive(Debug, Default)]
    struct Slow {
        bytes: Vec<u8>,
        /// Reads from this offset on fail, or panic.
        fails_at: Option<u64>,
        panics: bool,
        /// A shorter version may be read.
        is_replaced: bool,
        requests: AtomicUsize,
        in_flight: AtomicUsize,
        most_in_flight: AtomicUsize,
    }

    impl Slow {
        fn of(length: usize) -> Self {
            Slow { bytes: (0..length).map(|i| (i * i / 7) as u8).collect(), ..Slow::default() }
        }
    }

    #[derive(Debug)]
    struct Handle(Arc<Slow>);

    impl SourceFile for Handle {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
            let file = &self.0;
            file.requests.fetch_add(1, Ordering::SeqCst);
            let now = file.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            file.most_in_flight.fetch_max(now, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
            file.in_flight.fetch_sub(1, Ordering::SeqCst);
            if file.fails_at.is_some_and(|at| offset >= at) {
                assert!(!file.panics, "as asked for");
                return Err(Error::new(Operation::Read, Errno::IO));
            }
            let rest = &file.bytes[file.bytes.len().min(offset as usize)..];
            let n = rest.len().min(buffer.len()).min(700);
            buffer[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        }

        fn last_start(&self) -> Result<u64> {
            Ok(if self.0.is_replaced { u64::MAX } else { self.0.bytes.len() as u64 })
        }

        fn version(&self) -> Result<Version> {
            Ok(Version::default())
        }
    }

    fn read(file: &Arc<Slow>, listed: Range<u64>, most_ahead: usize) -> (Vec<u8>, io::Result<usize>) {
        let mut found = Vec::new();
        let read =
            FileReader::new(Handle(Arc::clone(file)), listed, 0, PORTION, most_ahead).read_to_end(&mut found);
        (found, read)
    }

    #[test]
    fn bytes_are_those_of_the_file_whatever_was_listed() {
        for length in [0, 1, 999, 1000, 1001, 25_300] {
            let file = Arc::new(Slow::of(length));
            for listed in [0, 1, 1000, 1001, 9_999, 25_000, 25_300, 30_000] {
                for start in [0, 1, 700, 1000] {
                    for most in [0, 2, 8] {
                        let (found, read) = read(&file, start..listed.max(start), most);
                        let expected = &file.bytes[length.min(start as usize)..];
                        assert!(
                            read.is_ok() && found == expected,
                            "{length} bytes from {start}, {listed} listed, {most} ahead: {}",
                            found.len()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_file_is_compared_with_its_size() {
        for (length, is_replaced, size, found) in [
            (1000, false, 1000, None),
            (1500, false, 1000, None),
            (999, false, 1000, Some(999)),
            (0, false, 1000, Some(0)),
            (999, true, 1000, None),
            (0, true, 1000, Some(0)),
            (0, false, 0, None),
        ] {
            let file = Arc::new(Slow { is_replaced, ..Slow::of(length) });
            let mut reader = FileReader::new(Handle(file), 0..size, size, PORTION, 0);
            let ending = reader.ending();
            assert_eq!(ending.check(), Ok(()), "nothing has been read");
            reader.read_to_end(&mut Vec::new()).expect("readable");
            let expected = found.map_or(Ok(()), |found| Err(Cause::Shortened { size: found, end: size }));
            assert_eq!(ending.check(), expected, "{length} of {size} bytes, {is_replaced}");
        }
    }

    #[test]
    fn several_requests_are_in_flight_and_no_more_than_allowed() {
        for (most, expected) in [(0, 1..=1), (1, 1..=1), (2, 2..=2), (6, 3..=6)] {
            let file = Arc::new(Slow::of(40_000));
            let (found, _) = read(&file, 0..40_000, most);
            assert_eq!(found, file.bytes);
            let in_flight = file.most_in_flight.load(Ordering::SeqCst);
            assert!(expected.contains(&in_flight), "{in_flight} of {most}");
        }
    }

    #[test]
    fn a_decoder_that_is_slow_holds_few_parts() {
        let file = Arc::new(Slow::of(100_000));
        let mut reader = FileReader::new(Handle(Arc::clone(&file)), 0..100_000, 100_000, PORTION, 8);
        let mut out = [0; PORTION];
        reader.read_exact(&mut out).expect("readable");
        thread::sleep(Duration::from_millis(200));
        // Each part takes two requests, the window has four, and one has been taken.
        assert_eq!(file.requests.load(Ordering::SeqCst), 2 * (4 + 1));
        drop(reader);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(file.requests.load(Ordering::SeqCst), 2 * (4 + 1), "nobody reads on");
        assert_eq!(Arc::strong_count(&file), 1, "the file is closed");
    }

    #[test]
    fn a_failure_comes_after_the_bytes_before_it() {
        for panics in [false, true] {
            let file = Arc::new(Slow { fails_at: Some(5000), panics, ..Slow::of(20_000) });
            let (found, read) = read(&file, 0..20_000, 8);
            assert!(read.is_err(), "a failure is no end of the file");
            assert_eq!(found, file.bytes[..5000]);
        }
    }
}
