//! Moving the bytes of a file.
//!
//! ```text
//!  clone the whole file ──► copy_range (the volume copies) ──► read and write
//!        └ a pair of devices that cannot do it is not tried again; a single file that cannot falls back alone
//! ```
//!
//! A file with less allocated space than its length is copied one data extent at a time, and the gaps stay holes. With
//! `--sparse=always`, every block of zeros becomes a hole too. Small files are read and written in two calls: a read
//! that returns less than the buffer holds means end of file.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use millstream_vfs::{At, Errno, Error, Fields, File, Metadata, Operation, Result};

use super::methods::{Means, Methods};
use super::options::{DataOptions, Reflink, Sparse};
use super::throttle::Throttle;
use millstream_operation::activity::Activity;

/// Files of at most this many bytes are read and written at once.
const SMALL: u64 = 128 << 10;
/// Bytes read at once otherwise.
const BUFFER: usize = 256 << 10;
/// Bytes that the volume is asked to copy at once, so that progress shows and a cancellation is seen.
const RANGE: u64 = 16 << 20;
/// Zeros are looked for in blocks of this size.
const BLOCK: usize = 4096;

/// What pairs of devices, source and destination, cannot do.
#[derive(Debug, Default)]
pub(crate) struct Abilities {
    missing: RwLock<HashMap<(u64, u64), Missing>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Missing {
    clone: bool,
    copy_range: bool,
}

impl Abilities {
    fn missing(&self, devices: (u64, u64)) -> Missing {
        let missing = self.missing.read().unwrap_or_else(PoisonError::into_inner);
        missing.get(&devices).copied().unwrap_or_default()
    }

    fn note(&self, devices: (u64, u64), note: impl FnOnce(&mut Missing)) {
        let mut missing = self.missing.write().unwrap_or_else(PoisonError::into_inner);
        note(missing.entry(devices).or_default());
    }
}

/// Whether an error says that a pair of devices cannot do something, with any file.
fn is_inability(errno: Errno) -> bool {
    matches!(errno, Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY)
}

/// Whether an error says that something cannot be done with a file, so that another way is worth trying.
fn is_unsuitable(errno: Errno) -> bool {
    is_inability(errno) || matches!(errno, Errno::INVAL | Errno::PERM | Errno::TXTBSY)
}

/// Moves data.
#[derive(Debug)]
pub(crate) struct Mover<'a> {
    options: DataOptions,
    activity: &'a Activity,
    throttle: Option<Throttle>,
    abilities: Abilities,
}

/// A file to be copied, and its copy.
#[derive(Debug)]
pub(crate) struct Pair<'a, F> {
    pub(crate) source: &'a F,
    pub(crate) metadata: &'a Metadata,
    pub(crate) destination: &'a F,
    /// Device of the copy.
    pub(crate) device: u64,
    /// Where it is noted how the data was moved.
    pub(crate) methods: &'a Methods,
    /// Bytes that have been copied.
    pub(crate) moved: &'a AtomicU64,
    /// Where it ended too early.
    pub(crate) end: &'a EarlyEnd,
}

/// Where reading found the end of a file before the length that it was said to have, if it did: it has become shorter,
/// or is said to have a length that it does not have, as files of sysfs are.
#[derive(Debug)]
pub(crate) struct EarlyEnd(AtomicU64);

impl Default for EarlyEnd {
    fn default() -> Self {
        EarlyEnd(AtomicU64::new(u64::MAX))
    }
}

impl EarlyEnd {
    fn note(&self, offset: u64) {
        self.0.fetch_min(offset, Ordering::Relaxed);
    }

    fn offset(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<F> Pair<'_, F> {
    fn devices(&self) -> (u64, u64) {
        (self.metadata.dev, self.device)
    }

    /// Whether the file has less space than length.
    pub(crate) fn has_holes(&self) -> bool {
        self.metadata.blocks.saturating_mul(512) < self.metadata.size
    }
}

impl<'a> Mover<'a> {
    pub(crate) fn new(options: DataOptions, activity: &'a Activity) -> Self {
        let throttle = options.bytes_per_second.map(Throttle::new);
        Mover { options, activity, throttle, abilities: Abilities::default() }
    }

    /// Copies all of a file of a known length, in one thread.
    pub(crate) fn whole<F: File>(&self, pair: &Pair<'_, F>, buffer: &mut Vec<u8>) -> Result<u64> {
        if self.clone(pair)? {
            return Ok(pair.metadata.size);
        }
        let small = pair.metadata.size <= SMALL && self.throttle.is_none();
        if small && self.options.sparse != Sparse::Always && !pair.has_holes() {
            return self.small(pair, buffer);
        }
        self.range(pair, 0, pair.metadata.size, buffer)?;
        self.tail(pair, buffer)
    }

    /// Makes the copy share its data; whether that was done.
    pub(crate) fn clone<F: File>(&self, pair: &Pair<'_, F>) -> Result<bool> {
        let must = match self.options.reflink {
            Reflink::Never => return Ok(false),
            Reflink::Always => true,
            Reflink::Auto => false,
        };
        if !must
            && (pair.metadata.size == 0
                || self.options.sparse != Sparse::Auto
                || self.abilities.missing(pair.devices()).clone)
        {
            if self.abilities.missing(pair.devices()).clone {
                pair.methods.note(Means::CloneRefused);
            }
            return Ok(false);
        }
        match pair.destination.clone_from(pair.source) {
            Ok(()) => {
                // No data moves that a bound could be on.
                self.count(pair, pair.metadata.size);
                pair.methods.note(Means::Clone);
                Ok(true)
            }
            Err(error) if must => Err(error),
            Err(error) => {
                pair.methods.note(Means::CloneRefused);
                if is_inability(error.errno) {
                    self.abilities.note(pair.devices(), |missing| missing.clone = true);
                }
                Ok(false)
            }
        }
    }

    fn small<F: File>(&self, pair: &Pair<'_, F>, buffer: &mut Vec<u8>) -> Result<u64> {
        let room = pair.metadata.size as usize + 1;
        if buffer.len() < room {
            buffer.resize(room.max(16 << 10), 0);
        }
        let n = pair.source.read(buffer, At::Offset(0))?;
        pair.destination.write_all(&buffer[..n], At::Offset(0))?;
        pair.methods.note(Means::ReadAndWrite);
        self.moved(pair, n as u64);
        // As long as it was said to be, and no more: that is all of it. Files of /proc are said to be empty.
        if n as u64 == pair.metadata.size && n > 0 { Ok(n as u64) } else { self.rest(pair, n as u64, buffer) }
    }

    /// Whether the copy gets no holes, so that its space can be taken in advance.
    pub(crate) fn fills<F>(&self, pair: &Pair<'_, F>) -> bool {
        !pair.has_holes() && self.options.sparse != Sparse::Always
    }

    /// What is in the file beyond the length it was said to have, or beyond an early end; its length.
    pub(crate) fn tail<F: File>(&self, pair: &Pair<'_, F>, buffer: &mut Vec<u8>) -> Result<u64> {
        // It may have become shorter meanwhile.
        let size = pair.source.metadata(Fields::SIZE)?.size.min(pair.metadata.size);
        self.rest(pair, size.min(pair.end.offset()), buffer)
    }

    /// Copies from `offset` to the end, wherever that is; the length of the file.
    fn rest<F: File>(&self, pair: &Pair<'_, F>, mut offset: u64, buffer: &mut Vec<u8>) -> Result<u64> {
        self.grow(buffer);
        loop {
            let n = pair.source.read(buffer, At::Offset(offset))?;
            if n == 0 {
                return Ok(offset);
            }
            pair.destination.write_all(&buffer[..n], At::Offset(offset))?;
            pair.methods.note(Means::ReadAndWrite);
            self.moved(pair, n as u64);
            offset += n as u64;
        }
    }

    /// Copies what can be read from a pipe or device, or what goes into one.
    pub(crate) fn stream<F: File>(&self, source: &F, destination: &F, buffer: &mut Vec<u8>) -> Result<u64> {
        self.grow(buffer);
        let mut total = 0;
        loop {
            let n = source.read(buffer, At::Cursor)?;
            if n == 0 {
                return Ok(total);
            }
            destination.write_all(&buffer[..n], At::Cursor)?;
            self.activity.begun_bytes.fetch_add(n as u64, Ordering::Relaxed);
            self.pass(n as u64);
            total += n as u64;
        }
    }

    /// Copies the bytes from `start` to `end`, holes as the options have it.
    pub(crate) fn range<F: File>(
        &self,
        pair: &Pair<'_, F>,
        start: u64,
        end: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if self.options.sparse == Sparse::Never || !pair.has_holes() {
            return self.dense(pair, start, end, buffer);
        }
        let mut at = start;
        while at < end {
            let data = match pair.source.next_data(at) {
                Ok(Some(data)) if data < end => data,
                Ok(_) => {
                    pair.methods.note(Means::SkipHoles);
                    break;
                }
                // The volume does not know about holes.
                Err(_) => return self.dense(pair, at, end, buffer),
            };
            pair.methods.note(Means::SkipHoles);
            let hole = match pair.source.next_hole(data) {
                Ok(hole) => hole.min(end),
                Err(error) if error.errno == Errno::NXIO => {
                    pair.end.note(data);
                    break;
                }
                Err(error) => return Err(error),
            };
            self.dense(pair, data, hole, buffer)?;
            at = hole;
        }
        Ok(())
    }

    fn dense<F: File>(&self, pair: &Pair<'_, F>, start: u64, end: u64, buffer: &mut Vec<u8>) -> Result<()> {
        let mut at = start;
        if self.options.may_offload() {
            if self.abilities.missing(pair.devices()).copy_range {
                pair.methods.note(Means::OffloadRefused);
            } else {
                at = self.by_volume(pair, start, end)?;
            }
        }
        self.grow(buffer);
        while at < end {
            if self.options.cancellation.is_cancelled() {
                return Err(Error::new(Operation::Write, Errno::CANCELED));
            }
            let room = (end - at).min(buffer.len() as u64).min(self.piece()) as usize;
            let n = pair.source.read(&mut buffer[..room], At::Offset(at))?;
            if n == 0 {
                pair.end.note(at);
                return Ok(());
            }
            self.write(pair.destination, &buffer[..n], at)?;
            pair.methods.note(Means::ReadAndWrite);
            self.moved(pair, n as u64);
            at += n as u64;
        }
        Ok(())
    }

    /// Has the volume copy; where it stopped being able to.
    fn by_volume<F: File>(&self, pair: &Pair<'_, F>, start: u64, end: u64) -> Result<u64> {
        let mut at = start;
        while at < end && !self.options.cancellation.is_cancelled() {
            match pair.destination.copy_range(pair.source, at, (end - at).min(RANGE).min(self.piece())) {
                // The end, or a file that has no data to be copied that way.
                Ok(0) => break,
                Ok(n) => {
                    pair.methods.note(Means::Offload);
                    self.moved(pair, n);
                    at += n;
                }
                Err(error) if is_unsuitable(error.errno) => {
                    pair.methods.note(Means::OffloadRefused);
                    if is_inability(error.errno) {
                        self.abilities.note(pair.devices(), |missing| missing.copy_range = true);
                    }
                    break;
                }
                Err(error) => return Err(self.blame(pair, at, error)),
            }
        }
        Ok(at)
    }

    /// The volume's copying fails without telling on which side; reading tells.
    fn blame<F: File>(&self, pair: &Pair<'_, F>, at: u64, error: Error) -> Error {
        match pair.source.read(&mut [0], At::Offset(at)) {
            Err(read) => read,
            Ok(_) => Error::new(Operation::Write, error.errno),
        }
    }

    fn write<F: File>(&self, destination: &F, bytes: &[u8], at: u64) -> Result<()> {
        if self.options.sparse != Sparse::Always {
            return destination.write_all(bytes, At::Offset(at));
        }
        for (index, block) in bytes.chunks(BLOCK).enumerate() {
            if block.iter().any(|&b| b != 0) {
                destination.write_all(block, At::Offset(at + (index * BLOCK) as u64))?;
            }
        }
        Ok(())
    }

    fn grow(&self, buffer: &mut Vec<u8>) {
        if buffer.len() < BUFFER {
            buffer.resize(BUFFER, 0);
        }
    }

    fn piece(&self) -> u64 {
        self.throttle.as_ref().map_or(u64::MAX, Throttle::piece)
    }

    fn count<F: File>(&self, pair: &Pair<'_, F>, bytes: u64) {
        pair.moved.fetch_add(bytes, Ordering::Relaxed);
        self.activity.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn moved<F: File>(&self, pair: &Pair<'_, F>, bytes: u64) {
        pair.moved.fetch_add(bytes, Ordering::Relaxed);
        self.pass(bytes);
    }

    /// Counts bytes, and waits until they may pass.
    fn pass(&self, bytes: u64) {
        self.activity.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(throttle) = &self.throttle {
            throttle.pass(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use millstream_vfs::Timestamp;

    use super::*;
    use millstream_walk::Cancellation;

    use crate::transfer::attributes::trouble_of;
    use crate::transfer::report::Trouble;

    fn options(reflink: Reflink, bytes_per_second: Option<u64>) -> DataOptions {
        DataOptions { reflink, sparse: Sparse::Auto, bytes_per_second, cancellation: Cancellation::default() }
    }

    /// A file in memory, some of whose calls fail.
    #[derive(Debug, Default)]
    struct Odd {
        data: Mutex<Vec<u8>>,
        clone: Option<Errno>,
        copy_range: Option<Errno>,
        hole: Option<Errno>,
        stat: Option<Errno>,
        /// The length that it is said to have, if that is another one.
        said: Option<u64>,
    }

    impl Odd {
        fn holding(data: &[u8]) -> Self {
            Odd { data: Mutex::new(data.to_vec()), ..Odd::default() }
        }

        fn data(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
            self.data.lock().expect("not poisoned")
        }
    }

    fn unless<T>(failing: Option<Errno>, operation: Operation, value: T) -> Result<T> {
        failing.map_or(Ok(value), |errno| Err(Error::new(operation, errno)))
    }

    fn metadata(size: u64, blocks: u64) -> Metadata {
        Metadata { size, blocks, ..Metadata::default() }
    }

    /// How data was moved, and how much.
    type Tally = (Methods, AtomicU64, EarlyEnd);

    fn pair<'a>(
        source: &'a Odd,
        metadata: &'a Metadata,
        destination: &'a Odd,
        (methods, moved, end): &'a Tally,
    ) -> Pair<'a, Odd> {
        Pair { source, metadata, destination, device: 1, methods, moved, end }
    }

    impl File for Odd {
        fn metadata(&self, _: Fields) -> Result<Metadata> {
            let length = self.said.unwrap_or(self.data().len() as u64);
            unless(self.stat, Operation::Stat, metadata(length, 1))
        }
        fn read(&self, buffer: &mut [u8], at: At) -> Result<usize> {
            let At::Offset(offset) = at else { unreachable!("regular files are read at offsets") };
            let data = self.data();
            let rest = data.get(offset as usize..).unwrap_or_default();
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        }
        fn write_all(&self, bytes: &[u8], at: At) -> Result<()> {
            let At::Offset(offset) = at else { unreachable!("regular files are written at offsets") };
            let mut data = self.data();
            let end = offset as usize + bytes.len();
            let length = data.len().max(end);
            data.resize(length, 0);
            data[offset as usize..end].copy_from_slice(bytes);
            Ok(())
        }
        fn copy_range(&self, source: &Self, offset: u64, length: u64) -> Result<u64> {
            unless(self.copy_range, Operation::Write, ())?;
            let mut buffer = vec![0; length.min(1 << 20) as usize];
            let n = source.read(&mut buffer, At::Offset(offset))?;
            self.write_all(&buffer[..n], At::Offset(offset)).map(|()| n as u64)
        }
        fn clone_from(&self, source: &Self) -> Result<()> {
            unless(self.clone, Operation::Clone, ())?;
            *self.data() = source.data().clone();
            Ok(())
        }
        fn next_data(&self, offset: u64) -> Result<Option<u64>> {
            unless(self.said.map(|_| Errno::INVAL), Operation::Read, Some(offset))
        }
        fn next_hole(&self, _: u64) -> Result<u64> {
            unless(self.hole, Operation::Read, self.data().len() as u64)
        }
        fn set_len(&self, _: u64) -> Result<()> {
            unreachable!("data only")
        }
        fn allocate(&self, _: u64) -> Result<()> {
            unreachable!("data only")
        }
        fn flush(&self) -> Result<()> {
            unreachable!("data only")
        }
        fn close(self) -> Result<()> {
            unreachable!("data only")
        }
        fn sync(&self) -> Result<()> {
            unreachable!("data only")
        }
        fn sync_volume(&self) -> Result<()> {
            unreachable!("data only")
        }
        fn try_lock(&self) -> Result<()> {
            unreachable!("data only")
        }
        fn list_xattr(&self, _: &mut Vec<u8>) -> Result<()> {
            unreachable!("data only")
        }
        fn xattr(&self, _: &CStr) -> Result<Vec<u8>> {
            unreachable!("data only")
        }
        fn set_xattr(&self, _: &CStr, _: &[u8]) -> Result<()> {
            unreachable!("data only")
        }
        fn remove_xattr(&self, _: &CStr) -> Result<()> {
            unreachable!("data only")
        }
        fn set_mode(&self, _: u32) -> Result<()> {
            unreachable!("data only")
        }
        fn set_owner(&self, _: Option<u32>, _: Option<u32>) -> Result<()> {
            unreachable!("data only")
        }
        fn set_times(&self, _: Timestamp, _: Timestamp) -> Result<()> {
            unreachable!("data only")
        }
    }

    #[test]
    fn an_odd_file_does_not_speak_for_its_devices() {
        for (errno, speaks) in [
            (Errno::XDEV, true),
            (Errno::OPNOTSUPP, true),
            (Errno::NOSYS, true),
            (Errno::NOTTY, true),
            (Errno::INVAL, false),
            (Errno::PERM, false),
            (Errno::TXTBSY, false),
        ] {
            let activity = Activity::default();
            let mover = Mover::new(options(Reflink::Auto, None), &activity);
            let bytes = vec![7; 300_000];
            let source = Odd::holding(&bytes);
            let destination = Odd { clone: Some(errno), copy_range: Some(errno), ..Odd::default() };
            let metadata = metadata(300_000, 600);
            let tally = Tally::default();
            let pair = pair(&source, &metadata, &destination, &tally);
            assert_eq!(mover.whole(&pair, &mut Vec::new()), Ok(300_000), "{errno}");
            assert_eq!(*destination.data(), bytes, "{errno}");
            let missing = mover.abilities.missing(pair.devices());
            assert_eq!((missing.clone, missing.copy_range), (speaks, speaks), "{errno}");
        }
    }

    #[test]
    fn clones_are_counted_and_not_waited_for() {
        let activity = Activity::default();
        let mover = Mover::new(options(Reflink::Auto, Some(1000)), &activity);
        let (source, destination) = (Odd::holding(&[7; 100_000]), Odd::default());
        let metadata = metadata(100_000, 200);
        let tally = Tally::default();
        let pair = pair(&source, &metadata, &destination, &tally);
        let started = Instant::now();
        assert_eq!(mover.whole(&pair, &mut Vec::new()), Ok(100_000));
        assert!(started.elapsed() < Duration::from_secs(20));
        assert_eq!(activity.bytes.load(Ordering::Relaxed), 100_000);
    }

    #[test]
    fn a_sparse_file_that_becomes_shorter_ends_there() {
        let activity = Activity::default();
        let mover = Mover::new(options(Reflink::Never, None), &activity);
        let source = Odd { hole: Some(Errno::NXIO), ..Odd::holding(b"") };
        let (destination, metadata) = (Odd::default(), metadata(300_000, 8));
        let tally = Tally::default();
        let pair = pair(&source, &metadata, &destination, &tally);
        assert_eq!(mover.whole(&pair, &mut Vec::new()), Ok(0));
    }

    /// Files of sysfs are said to have a page.
    #[test]
    fn a_file_ends_where_reading_does() {
        for (sparse, blocks) in [(Sparse::Auto, 600), (Sparse::Auto, 8), (Sparse::Always, 600)] {
            for (length, said) in [(0, 100), (5, 4096), (270_000, 300_000)] {
                let activity = Activity::default();
                let mover = Mover::new(DataOptions { sparse, ..options(Reflink::Never, None) }, &activity);
                let bytes = vec![7; length];
                let source = Odd { said: Some(said), ..Odd::holding(&bytes) };
                let (destination, metadata, tally) =
                    (Odd::default(), metadata(said, blocks), Tally::default());
                let pair = pair(&source, &metadata, &destination, &tally);
                assert_eq!(mover.whole(&pair, &mut Vec::new()), Ok(length as u64), "{blocks} {said}");
                assert_eq!(*destination.data(), bytes);
            }
        }
    }

    #[test]
    fn a_source_that_cannot_be_examined_is_an_error_of_reading() {
        let activity = Activity::default();
        let mover = Mover::new(options(Reflink::Never, None), &activity);
        let source = Odd { stat: Some(Errno::STALE), ..Odd::holding(b"x") };
        let (destination, metadata) = (Odd::default(), metadata(300_000, 600));
        let tally = Tally::default();
        let pair = pair(&source, &metadata, &destination, &tally);
        let error = mover.whole(&pair, &mut Vec::new()).expect_err("fstat fails");
        assert_eq!((trouble_of(error), error.errno), (Trouble::Read, Errno::STALE));
    }
}
