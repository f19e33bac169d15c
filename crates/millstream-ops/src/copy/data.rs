//! Moving the bytes of one file into another.
//!
//! ```text
//!  clone the whole ──► copy_range (the volume copies) ──► read and write
//!        └ where it cannot, it is not asked again for that pair of devices
//! ```
//!
//! A file with less space than length is copied piece by piece of its data, and what is between stays a hole; so does,
//! with `--sparse=always`, every block of zeros. Small files are read and written at once: two calls, and the sign of
//! their end is that less came than there was room for.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLock};

use millstream_vfs::{At, Errno, Error, Fields, File, Metadata, Operation, Result};

use super::options::{Options, Reflink, Sparse};
use super::throttle::Throttle;
use crate::activity::Activity;

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
pub(super) struct Abilities {
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

/// Whether an error says that the volume cannot do something at all, so that another way is worth trying.
fn is_inability(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::XDEV
            | Errno::OPNOTSUPP
            | Errno::INVAL
            | Errno::NOSYS
            | Errno::NOTTY
            | Errno::PERM
            | Errno::TXTBSY
    )
}

/// Moves data.
#[derive(Debug)]
pub(super) struct Mover<'a> {
    options: &'a Options,
    activity: &'a Activity,
    throttle: Option<Throttle>,
    abilities: Abilities,
}

/// A file to be copied, and its copy.
#[derive(Debug)]
pub(super) struct Pair<'a, F> {
    pub(super) source: &'a F,
    pub(super) metadata: &'a Metadata,
    pub(super) destination: &'a F,
    /// Device of the copy.
    pub(super) device: u64,
}

impl<F> Pair<'_, F> {
    fn devices(&self) -> (u64, u64) {
        (self.metadata.dev, self.device)
    }

    /// Whether the file has less space than length.
    pub(super) fn has_holes(&self) -> bool {
        self.metadata.blocks.saturating_mul(512) < self.metadata.size
    }
}

impl<'a> Mover<'a> {
    pub(super) fn new(options: &'a Options, activity: &'a Activity) -> Self {
        let throttle = options.bytes_per_second.map(Throttle::new);
        Mover { options, activity, throttle, abilities: Abilities::default() }
    }

    /// Copies all of a file of a known length, in one thread.
    pub(super) fn whole<F: File>(&self, pair: &Pair<'_, F>, buffer: &mut Vec<u8>) -> Result<u64> {
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
    pub(super) fn clone<F: File>(&self, pair: &Pair<'_, F>) -> Result<bool> {
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
            return Ok(false);
        }
        match pair.destination.clone_from(pair.source) {
            Ok(()) => {
                self.moved(pair.metadata.size);
                Ok(true)
            }
            Err(error) if must => Err(error),
            Err(error) => {
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
        self.moved(n as u64);
        // As long as it was said to be, and no more: that is all of it. Files of /proc are said to be empty.
        if n as u64 == pair.metadata.size && n > 0 { Ok(n as u64) } else { self.rest(pair, n as u64, buffer) }
    }

    /// What is in the file beyond the length it was said to have; its length.
    pub(super) fn tail<F: File>(&self, pair: &Pair<'_, F>, buffer: &mut Vec<u8>) -> Result<u64> {
        // It may have become shorter meanwhile.
        let size = pair.source.metadata(Fields::SIZE)?.size.min(pair.metadata.size);
        self.rest(pair, size, buffer)
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
            self.moved(n as u64);
            offset += n as u64;
        }
    }

    /// Copies what can be read from a pipe or device, or what goes into one.
    pub(super) fn stream<F: File>(&self, source: &F, destination: &F, buffer: &mut Vec<u8>) -> Result<u64> {
        self.grow(buffer);
        let mut total = 0;
        loop {
            let n = source.read(buffer, At::Cursor)?;
            if n == 0 {
                return Ok(total);
            }
            destination.write_all(&buffer[..n], At::Cursor)?;
            self.moved(n as u64);
            total += n as u64;
        }
    }

    /// Copies the bytes from `start` to `end`, holes as the options have it.
    pub(super) fn range<F: File>(
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
                Ok(_) => break,
                // The volume does not know about holes.
                Err(_) => return self.dense(pair, at, end, buffer),
            };
            let hole = pair.source.next_hole(data)?.min(end);
            self.dense(pair, data, hole, buffer)?;
            at = hole;
        }
        Ok(())
    }

    fn dense<F: File>(&self, pair: &Pair<'_, F>, start: u64, end: u64, buffer: &mut Vec<u8>) -> Result<()> {
        let mut at = start;
        if self.options.sparse != Sparse::Always && !self.abilities.missing(pair.devices()).copy_range {
            at = self.by_volume(pair, start, end)?;
        }
        self.grow(buffer);
        while at < end {
            if self.options.cancellation.is_cancelled() {
                return Err(Error::new(Operation::Write, Errno::CANCELED));
            }
            let room = (end - at).min(buffer.len() as u64).min(self.piece()) as usize;
            let n = pair.source.read(&mut buffer[..room], At::Offset(at))?;
            if n == 0 {
                // It has become shorter meanwhile.
                return Ok(());
            }
            self.write(pair.destination, &buffer[..n], at)?;
            self.moved(n as u64);
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
                    self.moved(n);
                    at += n;
                }
                Err(error) if is_inability(error.errno) => {
                    self.abilities.note(pair.devices(), |missing| missing.copy_range = true);
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

    fn moved(&self, bytes: u64) {
        self.activity.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(throttle) = &self.throttle {
            throttle.pass(bytes);
        }
    }
}
