//! The traversal's visitor: collects the entries of each directory and packs them once it is complete.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millstream_vfs::{Errno, Fields, FileKind, Metadata, Volume};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, Visitor};

use super::block::{Columns, FLAG_CHECKSUMS, FLAG_MORE, FLAG_NOT_DIRECTORY, Header};
use millstream_text::hidden::is_checksum_file;

use super::options::{Depth, EnumerateOptions, Subdirectories};
use super::queue::Queue;

/// Entries per block; a larger directory is split into several blocks.
pub(super) const MAX_BLOCK_ENTRIES: usize = 1 << 20;

/// The state of a directory until it is complete.
#[derive(Debug, Default)]
pub(super) struct Listing {
    parts: Mutex<Vec<Columns>>,
    unexamined: AtomicU32,
    errno: AtomicI32,
    has_checksums: AtomicBool,
    listed_at_millis: u32,
    /// The position of each ancestor among its parent's entries, from the root down, as big-endian u32. Sorted by this,
    /// a directory is followed by its subtrees in the order in which it lists them.
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

pub(super) struct Packer<'a, V> {
    pub(super) options: EnumerateOptions,
    pub(super) queue: &'a Queue,
    pub(super) volume: std::marker::PhantomData<fn(V)>,
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
            Ok(m) if m.kind() == FileKind::Symlink => {} // dangling: for Java it does not exist
            Ok(m) => {
                let is_directory = m.kind() == FileKind::Directory;
                if !is_directory || self.options.subdirectories == Subdirectories::Report {
                    columns.push(entry.name().to_bytes(), &m);
                }
                if is_directory {
                    self.descend(entry, descend);
                }
            }
            // Java's `File.exists` returns false for these: a vanished file, a loop of links, a file below a directory
            // without search permission.
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
        self.queue.put(header.block(parts));
    }

    /// Sends a directory in blocks of about [`MAX_BLOCK_ENTRIES`] entries; parts are not split.
    pub(super) fn send_directory(&self, header: Header<'_>, parts: &[Columns]) {
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

    fn fault(&self, (): &mut (), place: &FaultSite<'_, V, Listing>, fault: &Fault) {
        let errno = match fault {
            Fault::Volume(e) => e.errno,
            Fault::Loop { .. } => Errno::LOOP,
        };
        if let FaultSite::Directory(directory) = place {
            directory.state().errno.store(errno.raw_os_error(), Ordering::Relaxed);
        }
    }
}
