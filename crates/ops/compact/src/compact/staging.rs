//! The staging directory.

use std::ffi::{CStr, CString};

use millstream_vfs::{
    Access, At, Dir, DirentBatch, Errno, Error, Fields, File, FileKind, ReadState, RemoveKind, Result,
    SymlinkBehavior, Volume,
};

use super::CompactError;
use super::hidden::{find_hidden, hide, visible};
use super::journal::{Journal, Kind, Manifest};

const LOCK: &CStr = c".lock";
const JOURNAL: &CStr = c".journal";
const NEW_JOURNAL: &CStr = c".journal.new";
const OUT: &CStr = c"out";
const SWAP: &CStr = c"swap";
const OLD: &CStr = c"old";
/// The record of the replaced files and their replacements.
pub(super) const RECORD: &CStr = c".record";
/// The suffix of manifests' names.
const MANIFEST: &[u8] = b".inputs";
/// The prefix of the lists of kept files; no output has such a name.
const KEPT: &[u8] = b".kept-";

/// Bytes of directory entries read at once.
const BATCH: usize = 64 << 10;

/// The staging directory of one compaction, locked against others.
#[derive(Debug)]
pub struct Staging<V: Volume> {
    pub(super) base: V::Dir,
    pub(super) path: CString,
    pub(super) dir: V::Dir,
    pub(super) out: V::Dir,
    pub(super) swap: V::Dir,
    pub(super) old: V::Dir,
    /// Closing it releases the lock.
    _lock: <V::Dir as Dir>::File,
    /// The lock of earlier versions, if there is one.
    _earlier_lock: Option<<V::Dir as Dir>::File>,
}

impl<V: Volume> Staging<V> {
    /// Opens the directory `path` on `volume`, creating it if needed, and locks it.
    ///
    /// # Errors
    /// Those of the volume, and if another compaction holds the lock.
    pub fn open(volume: &V, path: &CStr) -> std::result::Result<Self, CompactError> {
        let base = volume.base();
        loop {
            let failed = |error| not_opened(path, error);
            let (dir, lock) = Self::try_open(&base, path).map_err(failed)?;
            // The previous owner of the lock may have removed the directory before releasing it.
            let ino = |metadata: Result<millstream_vfs::Metadata>| metadata.ok().map(|m| m.identity());
            let named = ino(dir.metadata(LOCK, SymlinkBehavior::NoFollow, Fields::INO));
            if named.is_none() || named != ino(lock.metadata(Fields::INO)) {
                continue;
            }
            let earlier_lock = lock_existing(&dir, &visible(LOCK)).map_err(failed)?;
            // The journal last: its existence means that the record is complete.
            hide(&dir, &[RECORD, JOURNAL]).map_err(failed)?;
            let room = |name: &CStr| make_dir(&dir, name).map_err(failed);
            let (out, swap, old) = (room(OUT)?, room(SWAP)?, room(OLD)?);
            let path = path.to_owned();
            return Ok(Staging { base, path, dir, out, swap, old, _lock: lock, _earlier_lock: earlier_lock });
        }
    }

    fn try_open(base: &V::Dir, path: &CStr) -> Result<(V::Dir, <V::Dir as Dir>::File)> {
        let dir = make_dir(base, path)?;
        let lock = match dir.create_file(LOCK, 0o600) {
            Err(error) if error.errno == Errno::EXIST => {
                dir.open_file(LOCK, Access::Write, SymlinkBehavior::NoFollow)
            }
            made => made,
        }?;
        lock.try_lock()?;
        Ok((dir, lock))
    }

    /// The journal, if an earlier compaction wrote one and did not complete it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn journal(&self) -> std::result::Result<Option<Journal>, CompactError> {
        match read_file(&self.dir, JOURNAL) {
            Ok(text) => Journal::decode(&text)
                .map(Some)
                .map_err(|malformed| CompactError::Malformed { path: self.path_of(JOURNAL), malformed }),
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(self.failed(JOURNAL, error)),
        }
    }

    /// Removes the leftovers of a compaction that wrote no journal.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn clear(&self) -> std::result::Result<(), CompactError> {
        let mut is_empty = true;
        for (name, _) in entries(&self.swap).map_err(|error| self.failed(SWAP, error))? {
            // A failed preparation has left an empty one.
            is_empty &= self.swap.remove(&name, RemoveKind::Directory).is_ok();
        }
        if !is_empty {
            return Err(CompactError::Orphans { path: self.path_of(SWAP) });
        }
        for (dir, name) in [(&self.out, OUT), (&self.old, OLD)] {
            remove_entries(dir).map_err(|error| self.failed(name, error))?;
        }
        let earlier = visible(NEW_JOURNAL);
        for name in [NEW_JOURNAL, earlier.as_c_str(), RECORD] {
            match self.dir.remove(name, RemoveKind::File) {
                Err(error) if !error.is_vanished() => return Err(self.failed(name, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the journal: from now on the compaction will be completed.
    ///
    /// # Errors
    /// If it cannot be written; then there is no journal.
    pub fn commit(&self, journal: &Journal) -> std::result::Result<(), CompactError> {
        if let Kind::InPlace { keep_until } = journal.kind {
            if let Some(kept) = self.partly_undone()? {
                return Err(CompactError::PartlyUndone { path: kept.path });
            }
            keep_until.map_or(Ok(()), |time| self.write_record(journal, time))?;
        }
        write_file(&self.dir, NEW_JOURNAL, &journal.encode())
            .and_then(|()| self.out.as_file()?.sync())
            .and_then(|()| self.dir.rename(NEW_JOURNAL, &self.dir, JOURNAL))
            .and_then(|()| self.dir.as_file()?.sync())
            .map_err(|error| self.failed(JOURNAL, error))
    }

    /// Removes the journal: everything in it is done.
    pub(super) fn finish(&self) -> std::result::Result<(), CompactError> {
        self.dir.remove(JOURNAL, RemoveKind::File).map_err(|error| self.failed(JOURNAL, error))
    }

    /// Flushes the volume, so that everything on it survives a crash of the machine.
    pub(super) fn sync_volume(&self) -> std::result::Result<(), CompactError> {
        self.dir.as_file().and_then(|dir| dir.sync_volume()).map_err(|error| self.failed(c"", error))
    }

    /// Removes the directory. It stays until an undoing is finished: for users who may not read the directory of the
    /// kept files, it is the only sign of the undoing.
    ///
    /// # Errors
    /// As [`Staging::clear`]. Files that are still open on NFS stay until the next compaction.
    pub fn close(self) -> std::result::Result<(), CompactError> {
        self.clear()?;
        if self.partly_undone()?.is_some() {
            return Ok(());
        }
        let earlier_lock = visible(LOCK);
        for (name, kind) in [
            (OUT, RemoveKind::Directory),
            (SWAP, RemoveKind::Directory),
            (OLD, RemoveKind::Directory),
            (earlier_lock.as_c_str(), RemoveKind::File),
            (LOCK, RemoveKind::File),
        ] {
            match self.dir.remove(name, kind) {
                Ok(()) => {}
                Err(error) if error.is_vanished() => {}
                Err(error) if is_busy(error) => return Ok(()),
                Err(error) => return Err(self.failed(name, error)),
            }
        }
        match self.base.remove(&self.path, RemoveKind::Directory) {
            Err(error) if !error.is_vanished() && !is_busy(error) => Err(self.failed(c"", error)),
            _ => Ok(()),
        }
    }

    pub(super) fn path_of(&self, name: &CStr) -> CString {
        path_below(&self.path, name)
    }

    pub(super) fn failed(&self, name: &CStr, error: Error) -> CompactError {
        CompactError::Volume { path: self.path_of(name), error }
    }

    /// The manifest of the output `staged`, if it has one.
    pub(super) fn manifest(&self, staged: &CStr) -> std::result::Result<Option<Manifest>, CompactError> {
        let name = manifest_name(staged);
        match read_file(&self.out, &name) {
            Ok(text) => Manifest::decode(&text)
                .map(Some)
                .map_err(|malformed| CompactError::Malformed { path: self.path_of(&name), malformed }),
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(self.failed(&name, error)),
        }
    }

    /// Records the files that the directory `swapped` in `swap` is about to get links to.
    pub(super) fn note_kept(&self, swapped: &CStr, kept: &Manifest) -> Result<()> {
        let name = kept_name(swapped);
        match self.out.remove(&name, RemoveKind::File) {
            Err(error) if !error.is_vanished() => Err(error),
            _ if kept.entries.is_empty() => Ok(()),
            _ => write_file(&self.out, &name, &kept.encode()),
        }
    }

    /// Reads that record. If it is incomplete, no link has been made.
    pub(super) fn kept(&self, swapped: &CStr) -> std::result::Result<Manifest, CompactError> {
        let name = kept_name(swapped);
        let listed = hide(&self.out, &[name.as_c_str()]).and_then(|()| read_file(&self.out, &name));
        match listed {
            Ok(text) => Ok(Manifest::decode(&text).unwrap_or_default()),
            Err(error) if error.errno == Errno::NOENT => Ok(Manifest::default()),
            Err(error) => Err(self.failed(&name, error)),
        }
    }

    /// Drops an output: its inputs stay.
    pub(super) fn drop_output(&self, staged: &CStr) -> Result<()> {
        for name in [staged, &manifest_name(staged)] {
            match self.out.remove(name, RemoveKind::File) {
                Err(error) if !error.is_vanished() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Manifest {
    /// Writes the manifest next to the output `output`, a path on `volume`.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn write_beside<V: Volume>(&self, volume: &V, output: &CStr) -> Result<()> {
        write_file(&volume.base(), &manifest_name(output), &self.encode())
    }
}

fn manifest_name(output: &CStr) -> CString {
    c_string([output.to_bytes(), MANIFEST].concat())
}

fn kept_name(swapped: &CStr) -> CString {
    c_string([KEPT, swapped.to_bytes()].concat())
}

/// `bytes` up to the first NUL; names contain none.
pub(super) fn c_string(mut bytes: Vec<u8>) -> CString {
    bytes.truncate(bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

pub(super) fn path_below(path: &CStr, name: &CStr) -> CString {
    if name.is_empty() || path.is_empty() {
        return if path.is_empty() { name } else { path }.to_owned();
    }
    c_string([path.to_bytes(), b"/", name.to_bytes()].concat())
}

/// Whether a compaction has begun to move files but not ended. `staging` is the path of its staging directory.
///
/// # Errors
/// If that cannot be determined.
pub fn has_journal<D: Dir>(base: &D, staging: &CStr) -> Result<bool> {
    match base.open_dir(staging, SymlinkBehavior::NoFollow) {
        Err(error) if error.is_vanished() || error.errno == Errno::NOTDIR => Ok(false),
        opened => Ok(find_hidden(&opened?, JOURNAL)?.is_some()),
    }
}

/// Locks the staging directory `path` against others, if it exists, and changes nothing.
pub(super) fn lock_unchanged<D: Dir>(
    base: &D,
    path: &CStr,
) -> std::result::Result<Vec<D::File>, CompactError> {
    let locks = [LOCK, &visible(LOCK)].map(|name| lock_existing(base, &path_below(path, name)).transpose());
    locks.into_iter().flatten().collect::<Result<_>>().map_err(|error| not_opened(path, error))
}

fn lock_existing<D: Dir>(dir: &D, name: &CStr) -> Result<Option<D::File>> {
    match dir.open_file(name, Access::Write, SymlinkBehavior::NoFollow) {
        Err(error) if error.is_vanished() => Ok(None),
        opened => opened.and_then(|file| file.try_lock().map(|()| Some(file))),
    }
}

/// Why the staging directory `path` was not opened.
fn not_opened(path: &CStr, error: Error) -> CompactError {
    match error.errno {
        Errno::AGAIN => CompactError::Busy { path: path.to_owned() },
        _ => CompactError::Volume { path: path.to_owned(), error },
    }
}

/// A file in the directory is still open: NFS keeps it under another name.
fn is_busy(error: Error) -> bool {
    matches!(error.errno, Errno::NOTEMPTY | Errno::BUSY | Errno::EXIST)
}

/// Opens the directory `name`, creating it if needed.
pub(super) fn make_dir<D: Dir>(parent: &D, name: &CStr) -> Result<D> {
    match parent.create_dir(name, 0o700) {
        Err(error) if error.errno != Errno::EXIST => Err(error),
        _ => parent.open_dir(name, SymlinkBehavior::NoFollow),
    }
}

pub(super) fn read_file<D: Dir>(dir: &D, name: &CStr) -> Result<Vec<u8>> {
    let file = dir.open_file(name, Access::Read, SymlinkBehavior::NoFollow)?;
    let mut text = vec![0; file.metadata(Fields::SIZE)?.size as usize + 1];
    let mut length = 0;
    loop {
        let n = file.read(&mut text[length..], At::Offset(length as u64))?;
        length += n;
        if n == 0 {
            break;
        }
        if length == text.len() {
            text.resize(2 * length, 0);
        }
    }
    text.truncate(length);
    Ok(text)
}

pub(super) fn write_file<D: Dir>(dir: &D, name: &CStr, text: &[u8]) -> Result<()> {
    match dir.remove(name, RemoveKind::File) {
        Err(error) if !error.is_vanished() => return Err(error),
        _ => {}
    }
    let file = dir.create_file(name, 0o600)?;
    file.write_all(text, At::Offset(0))?;
    file.sync()
}

/// The entries of a directory, with their types.
pub(crate) fn entries<D: Dir>(dir: &D) -> Result<Vec<(CString, FileKind)>> {
    // A handle can be listed only once.
    let dir = dir.open_dir(c".", SymlinkBehavior::NoFollow)?;
    let (mut found, mut cursor) = (Vec::new(), D::Cursor::default());
    let mut batch = DirentBatch::with_capacity(BATCH);
    while dir.read_entries(&mut cursor, &mut batch)? == ReadState::More {
        found.extend(batch.iter().map(|entry| (entry.name.to_owned(), entry.kind)));
    }
    for (name, kind) in found.iter_mut().filter(|(_, kind)| *kind == FileKind::Unknown) {
        *kind = dir.metadata(name, SymlinkBehavior::NoFollow, Fields::KIND)?.kind();
    }
    Ok(found)
}

/// Removes the contents of a directory. Busy files stay.
pub(super) fn remove_entries<D: Dir>(dir: &D) -> Result<()> {
    for (name, kind) in entries(dir)? {
        let removed = match kind {
            FileKind::Directory => dir
                .open_dir(&name, SymlinkBehavior::NoFollow)
                .and_then(|below| remove_entries(&below))
                .and_then(|()| dir.remove(&name, RemoveKind::Directory)),
            _ => dir.remove(&name, RemoveKind::File),
        };
        match removed {
            Err(error) if !error.is_vanished() && !is_busy(error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
