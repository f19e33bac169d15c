//! The files of data sets, packed for Spark.
//!
//! ```text
//!  traversal (its own threads)                                   the consumer's thread
//!  visit: names and attributes ─► parts kept with the directory
//!  end_of_directory: parts in directory order ─► blocks ─► bounded queue ─► Enumeration::next: whole blocks
//! ```
//!
//! A directory is delivered whole, in the order in which the volume lists it, because Spark takes some decisions by the
//! first file; directories are delivered as they are done, with their position, by which the consumer can put them in the
//! order of a serial traversal. The consumer may stop at any time: dropping the [`Enumeration`] ends the traversal, and a
//! thread that hangs in the volume is not waited for.
//!
//! Memory: what waits for the consumer is bounded ([`MAX_QUEUED_BYTES`], and a block of at most [`MAX_BLOCK_ENTRIES`] for
//! every worker); what is being listed is not: each directory is held until its last entry is known.
//!
//! The layout of a block is that of Java's `NativeListing`, which documents it; `tests::block_is_the_shared_vector` and
//! Java's `DirectoryListingTest` hold both sides to one example.

use std::collections::VecDeque;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream_vfs::{Errno, Fields, FileKind, Metadata, Volume};
use millstream_walk::{
    Cancellation, Chunk, Descend, Directory, Entry, FanOut, Fault, FollowPolicy, Place, Threads, Visitor,
    WalkOptions, walk,
};

/// Bytes of blocks that may wait for the consumer before the traversal pauses.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// Bytes that one call of [`Enumeration::next`] delivers, if no single block is larger.
const MAX_DELIVERY_BYTES: usize = 1 << 20;
/// Entries in one block; a larger directory comes in several.
const MAX_BLOCK_ENTRIES: usize = 1 << 20;
/// How long a producer waits for room before it looks whether the enumeration was cancelled.
const ROOM_POLL: Duration = Duration::from_millis(50);

/// The block is followed by another of the same directory.
const FLAG_MORE: u32 = 1;
/// The block stands for a root that is no directory.
const FLAG_NOT_DIRECTORY: u32 = 2;
/// There are checksum files in the directory.
const FLAG_CHECKSUMS: u32 = 4;

/// How deep to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The entries of the roots.
    Roots,
    /// Everything below the roots.
    Tree,
}

/// Whether subdirectories are entries of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subdirectories {
    /// They are reported with their attributes.
    Report,
    /// Only files are reported.
    Omit,
}

/// Which names do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredNames {
    /// Hadoop's checksum files.
    Checksums,
    /// Those that Spark ignores in a data set, checksum files among them.
    Hidden,
}

impl IgnoredNames {
    fn ignores(self, name: &[u8]) -> bool {
        match self {
            IgnoredNames::Checksums => is_checksum_file(name),
            IgnoredNames::Hidden => is_hidden_from_spark(name),
        }
    }
}

fn is_checksum_file(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(b".crc")
}

/// Spark's rule, from its `HadoopFSUtils.shouldFilterOutPathName`.
fn is_hidden_from_spark(name: &[u8]) -> bool {
    if name.starts_with(b"_metadata") || name.starts_with(b"_common_metadata") {
        return false;
    }
    name.starts_with(b".")
        || (name.starts_with(b"_") && !name.contains(&b'='))
        || name.ends_with(b"._COPYING_")
}

/// What to enumerate.
#[derive(Clone, Copy, Debug)]
pub struct EnumerateOptions {
    /// How deep to go.
    pub depth: Depth,
    /// Whether subdirectories are reported.
    pub subdirectories: Subdirectories,
    /// Names left out, and not descended into.
    pub ignored: IgnoredNames,
    /// Number of workers.
    pub threads: Threads,
}

/// What [`Enumeration::next`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One or more whole blocks.
    Blocks(Vec<u8>),
    /// Nothing came within the time.
    NotYet,
    /// Everything has been delivered.
    End,
}

/// The traversal panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the enumeration failed: {0}")]
pub struct Panicked(String);

/// A running enumeration.
#[derive(Debug)]
pub struct Enumeration {
    queue: Arc<Queue>,
    cancellation: Cancellation,
}

impl Enumeration {
    /// Starts to enumerate `roots` on threads of its own; symbolic links are followed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start<V: Volume>(
        volume: V,
        roots: Vec<CString>,
        options: EnumerateOptions,
    ) -> std::io::Result<Self> {
        let cancellation = Cancellation::default();
        let queue = Arc::new(Queue::new(cancellation.clone()));
        let producer = Arc::clone(&queue);
        let walk_options = WalkOptions {
            threads: options.threads,
            follow: FollowPolicy::Always,
            cancellation: cancellation.clone(),
            ..WalkOptions::default()
        };
        thread::Builder::new().name("millstream-list".into()).spawn(move || {
            let visitor = Packer { options, queue: &producer, volume: std::marker::PhantomData };
            let run = AssertUnwindSafe(|| walk(&volume, &roots, &visitor, &walk_options));
            let outcome = catch_unwind(run).map(drop).map_err(|panic| Panicked(panic_message(&*panic)));
            producer.end(outcome);
        })?;
        Ok(Enumeration { queue, cancellation })
    }

    /// The next blocks; waits for them at most `timeout`.
    ///
    /// # Errors
    /// [`Panicked`] at the end, if the traversal did.
    pub fn next(&self, timeout: Duration) -> Result<Delivery, Panicked> {
        self.queue.take(timeout)
    }
}

impl Drop for Enumeration {
    fn drop(&mut self) {
        self.cancellation.cancel();
        self.queue.wake_all();
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic").to_owned()
}

/// Blocks on their way to the consumer.
#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    cancellation: Cancellation,
}

#[derive(Debug, Default)]
struct QueueState {
    blocks: VecDeque<Vec<u8>>,
    bytes: usize,
    outcome: Option<Result<(), Panicked>>,
}

impl Queue {
    fn new(cancellation: Cancellation) -> Self {
        Queue { state: Mutex::default(), changed: Condvar::new(), cancellation }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        self.changed.notify_all();
    }

    /// Waits for room, unless nobody will take the block any more.
    fn put(&self, block: Vec<u8>) {
        let mut state = self.lock();
        while state.bytes > MAX_QUEUED_BYTES && !self.cancellation.is_cancelled() {
            state = self.changed.wait_timeout(state, ROOM_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.bytes += block.len();
        state.blocks.push_back(block);
        self.wake_all();
    }

    fn end(&self, outcome: Result<(), Panicked>) {
        self.lock().outcome = Some(outcome);
        self.wake_all();
    }

    fn take(&self, timeout: Duration) -> Result<Delivery, Panicked> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if !state.blocks.is_empty() {
                let delivery = state.deliver();
                self.wake_all();
                return Ok(Delivery::Blocks(delivery));
            }
            if let Some(outcome) = &state.outcome {
                return outcome.clone().map(|()| Delivery::End);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Delivery::NotYet);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl QueueState {
    fn deliver(&mut self) -> Vec<u8> {
        let mut delivery = self.blocks.pop_front().unwrap_or_default();
        while let Some(next) = self.blocks.front() {
            if delivery.len() + next.len() > MAX_DELIVERY_BYTES {
                break;
            }
            delivery.extend_from_slice(next);
            self.blocks.pop_front();
        }
        self.bytes -= delivery.len();
        delivery
    }
}

/// Entries in columns.
#[derive(Debug, Default)]
struct Columns {
    first_index: u64,
    sizes: Vec<i64>,
    times: Vec<i64>,
    directories: Vec<u8>,
    name_ends: Vec<usize>,
    names: Vec<u8>,
}

impl Columns {
    fn push(&mut self, name: &[u8], metadata: &Metadata) {
        self.sizes.push(i64::try_from(metadata.size).unwrap_or(i64::MAX));
        self.times.push(metadata.mtime.as_millis());
        self.directories.push(u8::from(metadata.kind() == FileKind::Directory));
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
    }

    fn len(&self) -> usize {
        self.sizes.len()
    }
}

/// The part of a block before the columns.
#[derive(Clone, Copy, Debug, Default)]
struct Header<'a> {
    root: u64,
    flags: u32,
    errno: i32,
    unexamined: u32,
    listed_at_millis: u32,
    path: &'a [u8],
    position: &'a [u8],
}

impl Header<'_> {
    /// Appends a block with the concatenated `parts`.
    fn write_block(&self, parts: &[Columns], block: &mut Vec<u8>) {
        let count: usize = parts.iter().map(Columns::len).sum();
        let names_len: usize = parts.iter().map(|p| p.names.len()).sum();
        let fields = [
            self.root as u32,
            self.flags,
            self.errno as u32,
            count as u32,
            self.path.len() as u32,
            names_len as u32,
            self.unexamined,
            self.listed_at_millis,
            self.position.len() as u32,
        ];
        block.reserve(fields.len() * 4 + self.path.len() + self.position.len() + count * 21 + names_len + 16);
        fields.iter().for_each(|f| block.extend_from_slice(&f.to_le_bytes()));
        block.extend_from_slice(self.path);
        block.extend_from_slice(self.position);
        pad(block);
        parts.iter().flat_map(|p| &p.sizes).for_each(|s| block.extend_from_slice(&s.to_le_bytes()));
        parts.iter().flat_map(|p| &p.times).for_each(|t| block.extend_from_slice(&t.to_le_bytes()));
        let mut before = 0;
        for part in parts {
            part.name_ends.iter().for_each(|e| block.extend_from_slice(&((before + e) as u32).to_le_bytes()));
            before += part.names.len();
        }
        parts.iter().for_each(|p| block.extend_from_slice(&p.directories));
        parts.iter().for_each(|p| block.extend_from_slice(&p.names));
        pad(block);
    }
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(8), 0);
}

/// What is known of a directory before it is done.
#[derive(Debug, Default)]
struct Listing {
    parts: Mutex<Vec<Columns>>,
    unexamined: AtomicU32,
    errno: AtomicI32,
    has_checksums: AtomicBool,
    listed_at_millis: u32,
    /// The index of each directory on the way here among its parent's entries, from the root's, as big-endian u32:
    /// sorted by this, a directory is followed by its subtrees, in the order in which it lists them.
    position: Vec<u8>,
}

impl Listing {
    fn of<V: Volume>(directory: &Entry<'_, V, Listing>) -> Self {
        let index = directory.index() as u32;
        let mut position = directory.directory().state().position.clone();
        position.extend_from_slice(&index.to_be_bytes());
        Listing { listed_at_millis: monotonic_millis(), position, ..Listing::default() }
    }

    fn take_parts(&self) -> Vec<Columns> {
        let mut parts = std::mem::take(&mut *self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        parts.sort_unstable_by_key(|p| p.first_index);
        parts
    }
}

/// The clock of Java's `System.nanoTime`, in milliseconds, modulo 2^32.
fn monotonic_millis() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.wrapping_mul(1000).wrapping_add(now.tv_nsec / 1_000_000) as u32
}

struct Packer<'a, V> {
    options: EnumerateOptions,
    queue: &'a Queue,
    volume: std::marker::PhantomData<fn(V)>,
}

impl<V: Volume> Packer<'_, V> {
    const FIELDS: Fields = Fields::KIND.union(Fields::SIZE).union(Fields::MTIME);

    fn visit_root(&self, entry: &Entry<'_, V, Listing>, descend: &mut Descend<'_, V, Listing>) {
        let errno = match entry.metadata(Self::FIELDS) {
            Ok(m) if m.kind() == FileKind::Directory => return descend.into_entry(entry, Listing::of(entry)),
            Ok(m) if m.kind() != FileKind::Symlink => return self.send_file_root(entry, &m),
            Ok(_dangling) => Errno::NOENT,
            Err(e) => e.errno,
        };
        let position = (entry.index() as u32).to_be_bytes();
        let header = Header { root: entry.index(), errno: errno.raw_os_error(), ..Header::default() };
        self.send(Header { path: entry.name().to_bytes(), position: &position, ..header }, &[]);
    }

    fn send_file_root(&self, entry: &Entry<'_, V, Listing>, metadata: &Metadata) {
        let path = entry.name().to_bytes();
        let slash = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        let (parent, name) = (&path[..slash.max(1).min(path.len())], &path[(slash + 1).min(path.len())..]);
        let mut columns = Columns::default();
        if !self.options.ignored.ignores(name) {
            columns.push(name, metadata);
        }
        let position = (entry.index() as u32).to_be_bytes();
        let header = Header { root: entry.index(), flags: FLAG_NOT_DIRECTORY, ..Header::default() };
        let listed_at_millis = monotonic_millis();
        self.send(Header { path: parent, position: &position, listed_at_millis, ..header }, &[columns]);
    }

    fn visit_entry(
        &self,
        entry: &Entry<'_, V, Listing>,
        columns: &mut Columns,
        descend: &mut Descend<'_, V, Listing>,
    ) {
        let wanted_without_stat = self.options.subdirectories == Subdirectories::Omit;
        if wanted_without_stat && entry.listed_kind() == FileKind::Directory {
            return self.descend(entry, descend);
        }
        match entry.metadata(Self::FIELDS) {
            Ok(m) if m.kind() == FileKind::Symlink => {} // dangling: to Java it does not exist
            Ok(m) => {
                let is_directory = m.kind() == FileKind::Directory;
                if !is_directory || self.options.subdirectories == Subdirectories::Report {
                    columns.push(entry.name().to_bytes(), &m);
                }
                if is_directory {
                    self.descend(entry, descend);
                }
            }
            // What Java's File.exists denies: gone, a loop of links, behind a directory that may not be searched.
            Err(e) if e.is_vanished() || matches!(e.errno, Errno::LOOP | Errno::ACCESS | Errno::NOTDIR) => {}
            Err(_) => {
                entry.directory().state().unexamined.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn descend(&self, entry: &Entry<'_, V, Listing>, descend: &mut Descend<'_, V, Listing>) {
        if self.options.depth == Depth::Tree {
            descend.into_entry(entry, Listing::of(entry));
        }
    }

    fn send(&self, header: Header<'_>, parts: &[Columns]) {
        let mut block = Vec::new();
        header.write_block(parts, &mut block);
        self.queue.put(block);
    }

    /// Sends a directory in blocks of at most [`MAX_BLOCK_ENTRIES`], give or take a part.
    fn send_directory(&self, header: Header<'_>, parts: &[Columns]) {
        let mut start = 0;
        let mut entries = 0;
        for end in 1..parts.len() {
            entries += parts[end - 1].len();
            if entries + parts[end].len() > MAX_BLOCK_ENTRIES {
                self.send(Header { flags: header.flags | FLAG_MORE, ..header }, &parts[start..end]);
                (start, entries) = (end, 0);
            }
        }
        self.send(header, &parts[start..]);
    }
}

impl<V: Volume> Visitor for Packer<'_, V> {
    type Volume = V;
    type State = Listing;
    type Worker = ();

    fn worker(&self) {}

    fn root_state(&self) -> Listing {
        Listing::default()
    }

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, V, Listing>, descend: &mut Descend<'_, V, Listing>) {
        if chunk.directory().parent().is_none() {
            return chunk.entries().for_each(|entry| self.visit_root(&entry, descend));
        }
        let mut columns = Columns::default();
        for (i, entry) in chunk.entries().enumerate() {
            if i == 0 {
                columns.first_index = entry.index();
            }
            let name = entry.name().to_bytes();
            if !self.options.ignored.ignores(name) {
                self.visit_entry(&entry, &mut columns, descend);
            } else if is_checksum_file(name) {
                chunk.directory().state().has_checksums.store(true, Ordering::Relaxed);
            }
        }
        if columns.len() > 0 {
            let listing = chunk.directory().state();
            listing.parts.lock().unwrap_or_else(PoisonError::into_inner).push(columns);
        }
    }

    fn end_of_directory(
        &self,
        (): &mut (),
        directory: &Arc<Directory<V, Listing>>,
        _descend: &mut Descend<'_, V, Listing>,
        _block: &mut Vec<u8>,
    ) {
        let Some(root) = directory.operand() else { return };
        let listing = directory.state();
        let mut path = Vec::new();
        directory.write_path(&mut path);
        let header = Header {
            root,
            flags: if listing.has_checksums.load(Ordering::Relaxed) { FLAG_CHECKSUMS } else { 0 },
            errno: listing.errno.load(Ordering::Relaxed),
            unexamined: listing.unexamined.load(Ordering::Relaxed),
            listed_at_millis: listing.listed_at_millis,
            path: &path,
            position: &listing.position,
        };
        let parts = listing.take_parts();
        self.send_directory(header, if header.errno == 0 { &parts } else { &[] });
    }

    fn fault(&self, (): &mut (), place: &Place<'_, V, Listing>, fault: &Fault) {
        let errno = match fault {
            Fault::Volume(e) => e.errno,
            Fault::Loop { .. } => Errno::LOOP,
        };
        if let Place::Directory(directory) = place {
            directory.state().errno.store(errno.raw_os_error(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
