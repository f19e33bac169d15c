//! Compressed files with an index, which read like the decoded files.
//!
//! The chunks of the index are decoded as they are asked for, each once, though many reads touch it, possibly on
//! several threads, and though a line may end in the next one. A chunk is forgotten when all parts that begin before
//! its end have been read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::{memchr, memchr_iter};
use millstream_codec::{Index, WINDOW, decode_chunk};
use millstream_version::Version;
use millstream_vfs::{Errno, Error, Operation, Result};

use crate::error::Cause;
use crate::file_reader::check_size;
use crate::lines::Separator;
use crate::range::{BYTE_ORDER_MARK, find_lines};
use crate::source::{Compression, FileRange, Source, SourceFile};
use crate::stream::cause;

/// Most bytes of memory that are kept for other chunks, because the system takes as long to provide it as decoding
/// takes: as many chunks of usual length as a remote source has readers.
const SPARE: usize = 72 << 20;
/// Most bytes of the file that are read at once.
const PORTION: u64 = 16 << 20;
/// Bytes that stay in a processor's cache while they are searched for one thing after the other.
const CACHED: usize = 128 << 10;

/// An open file that reads like plain text.
#[derive(Debug)]
pub(crate) enum Opened<F> {
    /// What it is.
    Plain(F),
    /// Decoded by its index.
    Decoded(Box<Decoded<F>>),
}

/// Opens the file of a range, which has this index in the scan.
///
/// # Errors
/// Those of [`Source::open`].
pub(crate) fn open<S: Source>(source: &S, index: usize, range: &FileRange) -> Result<Opened<S::File>> {
    let file = source.open(index, range)?;
    Ok(match &range.compression {
        Compression::Indexed(index) => Opened::Decoded(Box::new(Decoded::new(file, index, range.start))),
        Compression::None | Compression::Whole(_) | Compression::Indexing(_) | Compression::Blocks { .. } => {
            Opened::Plain(file)
        }
    })
}

impl<F> Opened<F> {
    /// The file itself.
    pub(crate) fn raw(&self) -> &F {
        match self {
            Opened::Plain(file) => file,
            Opened::Decoded(decoded) => &decoded.file,
        }
    }

    /// What is wrong with its data, if a read has failed for that.
    pub(crate) fn damage(&self) -> Option<Cause> {
        match self {
            Opened::Plain(_) => None,
            Opened::Decoded(decoded) => decoded.damage(),
        }
    }

    /// Says that a part has been read, and returns how many bytes of the file were read for it, if that is not its
    /// length.
    pub(crate) fn finish(&self, part: Range<u64>) -> Option<u64> {
        match self {
            Opened::Plain(_) => None,
            Opened::Decoded(decoded) => Some(decoded.finish(part)),
        }
    }
}

impl<F: SourceFile> Opened<F> {
    /// How many lines belong to a part ([`read_lines`](crate::range::read_lines)), if that can be told without reading
    /// them to a buffer.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn count_lines(&self, part: Range<u64>, separator: &Separator) -> Result<Option<u64>> {
        match self {
            Opened::Plain(_) => Ok(None),
            Opened::Decoded(decoded) => decoded.count_lines(part, separator),
        }
    }

    /// The lines that belong to a part, if they are in memory already in one piece.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn lines(&self, part: Range<u64>, separator: &Separator) -> Result<Option<Lines>> {
        match self {
            Opened::Plain(_) => Ok(None),
            Opened::Decoded(decoded) => decoded.lines(part, separator),
        }
    }
}

impl<F: SourceFile> SourceFile for Opened<F> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match self {
            Opened::Plain(file) => file.read_at(buffer, offset),
            Opened::Decoded(decoded) => decoded.read_at(buffer, offset),
        }
    }

    fn last_start(&self) -> Result<u64> {
        match self {
            Opened::Plain(file) => file.last_start(),
            Opened::Decoded(decoded) => Ok(decoded.index.length()),
        }
    }

    fn version(&self) -> Result<Version> {
        self.raw().version()
    }
}

/// Lines in a chunk.
#[derive(Debug)]
pub(crate) struct Lines {
    decoded: Arc<Vec<u8>>,
    found: Range<usize>,
}

impl Lines {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.decoded[self.found.clone()]
    }
}

/// A file that is decoded by its index.
#[derive(Debug)]
pub(crate) struct Decoded<F> {
    file: F,
    index: Arc<Index>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    chunks: BTreeMap<usize, Arc<Slot>>,
    /// All parts that begin before this offset have been read.
    finished: u64,
    /// Parts that have been read after others that have not.
    ahead: BTreeSet<(u64, u64)>,
    /// Memory for other chunks.
    spare: Vec<Vec<u8>>,
    /// Bytes of the file that have been read and not been told.
    read: u64,
    damage: Option<Cause>,
}

/// A chunk, once it is decoded, by the holder of the lock. Others read it at the same time.
type Slot = Mutex<Option<Arc<Vec<u8>>>>;

impl<F> Decoded<F> {
    fn new(file: F, index: &Arc<Index>, start: u64) -> Self {
        let state = State {
            chunks: BTreeMap::new(),
            finished: start,
            ahead: BTreeSet::new(),
            spare: Vec::new(),
            read: 0,
            damage: None,
        };
        Decoded { file, index: Arc::clone(index), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn damage(&self) -> Option<Cause> {
        self.lock().damage.clone()
    }

    fn finish(&self, part: Range<u64>) -> u64 {
        let state = &mut *self.lock();
        state.ahead.insert((part.start, part.end));
        while let Some(&(start, end)) = state.ahead.first()
            && start <= state.finished
        {
            state.ahead.pop_first();
            state.finished = state.finished.max(end);
        }
        while let Some(oldest) = state.chunks.first_entry()
            && self.index.range(*oldest.key()).end <= state.finished
        {
            let decoded = Arc::into_inner(oldest.remove()).and_then(|slot| slot.into_inner().ok().flatten());
            state.spare.extend(decoded.and_then(Arc::into_inner));
        }
        let mut kept = 0;
        state.spare.retain(|chunk| {
            kept += chunk.capacity();
            kept <= SPARE
        });
        std::mem::take(&mut state.read)
    }
}

impl<F: SourceFile> Decoded<F> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let Some(chunk) = self.index.chunk_at(offset) else {
            let is_at_end = offset >= self.index.length();
            // The index of a part says nothing of what is two gigabytes away.
            return if is_at_end { Ok(0) } else { Err(Error::new(Operation::Read, Errno::OVERFLOW)) };
        };
        let decoded = self.chunk(chunk)?;
        let bytes = &decoded[(offset - self.index.range(chunk).start) as usize..];
        let n = bytes.len().min(buffer.len());
        buffer[..n].copy_from_slice(&bytes[..n]);
        Ok(n)
    }

    /// The lines that belong to a part ([`find_lines`]), where they were decoded; `None` if they are in several chunks.
    fn lines(&self, part: Range<u64>, separator: &Separator) -> Result<Option<Lines>> {
        let Some(chunk) = self.index.chunk_at(part.start) else { return Ok(None) };
        let range = self.index.range(chunk);
        if part.end >= range.end {
            return Ok(None);
        }
        let decoded = self.chunk(chunk)?;
        let (start, end) = ((part.start - range.start) as usize, (part.end - range.start) as usize);
        let found = find_lines(&decoded[start..], part.start, end - start, separator, false);
        Ok(found.map(|found| Lines { decoded, found: start + found.start..start + found.end }))
    }

    /// Counts separators where the text is decoded. Where there is no CR, or only one byte separates lines, each of
    /// them begins a line that belongs to the part, unless the file ends there.
    fn count_lines(&self, part: Range<u64>, separator: &Separator) -> Result<Option<u64>> {
        let (byte, has_other_newlines) = match separator {
            Separator::AnyNewline => (b'\n', true),
            Separator::Bytes(bytes) if separator.is_one_byte() => (bytes[0], false),
            Separator::Bytes(_) => return Ok(None),
        };
        let end = part.end.min(self.index.length());
        let (mut at, mut last, mut is_simple) = (part.start, None, part.start < end);
        let mut lines = u64::from(part.start == 0);
        while at < end && is_simple {
            let beyond = || Error::new(Operation::Read, Errno::OVERFLOW);
            let chunk = self.index.chunk_at(at).ok_or_else(beyond)?;
            let range = self.index.range(chunk);
            let until = end.min(range.end);
            let decoded = self.chunk(chunk)?;
            is_simple = at > 0 || !decoded.starts_with(BYTE_ORDER_MARK);
            let bytes = &decoded[(at - range.start) as usize..(until - range.start) as usize];
            for cached in bytes.chunks(CACHED) {
                is_simple &= !has_other_newlines || memchr(b'\r', cached).is_none();
                lines += memchr_iter(byte, cached).count() as u64;
            }
            last = bytes.last().copied();
            at = until;
        }
        let is_ended = end == self.index.length() && last == Some(byte);
        Ok(is_simple.then(|| lines - u64::from(is_ended)))
    }

    /// A decoded chunk.
    fn chunk(&self, chunk: usize) -> Result<Arc<Vec<u8>>> {
        let slot = Arc::clone(self.lock().chunks.entry(chunk).or_default());
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decoded) = &*slot {
            return Ok(Arc::clone(decoded));
        }
        // A chunk refers to those before it only, so no two wait for each other.
        let before = if self.index.has_window(chunk) { Arc::default() } else { self.chunk(chunk - 1)? };
        let before = &before[before.len().saturating_sub(WINDOW)..];
        let range = self.index.compressed(chunk);
        let compressed = self.compressed(range)?;
        let mut bytes = self.lock().spare.pop().unwrap_or_default();
        match decode_chunk(&self.index, chunk, &compressed, before, &mut bytes).map_err(cause) {
            Ok(()) => Ok(Arc::clone(slot.insert(Arc::new(bytes)))),
            Err(Cause::Damaged(mut damage)) => {
                damage.reason += "; if the file is intact, it was replaced after it was listed and must be \
                                  listed again, or its index belongs to another file and must be removed";
                Err(self.damaged(Cause::Damaged(damage)))
            }
            Err(_) => Err(Error::new(Operation::Read, Errno::IO)),
        }
    }

    /// Notes what is wrong with the data; for a reader who only knows errors of files.
    fn damaged(&self, cause: Cause) -> Error {
        self.lock().damage = Some(cause);
        Error::new(Operation::Read, Errno::IO)
    }

    /// The bytes of the file in `range`, fewer if it ends before.
    fn compressed(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let (mut bytes, mut left) = (Vec::new(), range.end - range.start);
        while left > 0 {
            let filled = bytes.len();
            // The index may be wrong about the file's size, so memory is for what is there.
            bytes.resize(filled + left.min(PORTION) as usize, 0);
            let n = self.file.read_at(&mut bytes[filled..], range.start + filled as u64)?;
            bytes.truncate(filled + n);
            left -= n as u64;
            if n == 0 {
                check_size(&self.file, self.index.size()).map_err(|cause| self.damaged(cause))?;
                break;
            }
        }
        self.lock().read += bytes.len() as u64;
        Ok(bytes)
    }
}
