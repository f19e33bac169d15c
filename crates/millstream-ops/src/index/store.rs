//! The directories that keep indexes. An index appears in them once it is complete, and only who may read the file may read it,
//! because it contains some of the text.

use std::ffi::{CStr, CString};

use millstream_codec::Index;
use millstream_vfs::{
    Access, At, Dir, DirentBatch, Errno, Error, File, Metadata, Ownership, ReadState, RemoveKind, Result,
    SymlinkBehavior, Volume,
};

use super::names::{self, BESIDE, Version, checksum_name, index_name, temporary_name};
use super::{Effect, Place, Run, Task};
use crate::content::take_after;

/// Mode of a directory for indexes; the process's mask applies.
const DIRECTORY_MODE: u32 = 0o777;
/// Bytes of a file or of directory entries read at once.
const BATCH: usize = 64 << 10;

/// Where indexes are.
pub(super) enum Store<D> {
    /// Beside each file.
    Beside,
    /// All in one directory.
    Directory {
        /// [`None`] if it does not exist and is not to be made.
        dir: Option<D>,
        /// What is in it, in order, for [`Task::Prune`].
        names: Vec<CString>,
    },
}

impl<V: Volume> Run<'_, V> {
    /// Opens the directory for all indexes, if there is one. An error comes with its path. To make indexes, it is made.
    pub(super) fn open_store(&self) -> std::result::Result<Store<V::Dir>, (Vec<u8>, Error)> {
        let Place::Directory { path, .. } = &self.options.place else { return Ok(Store::Beside) };
        let makes = matches!(self.options.task, Task::Make { .. }) && self.options.effect == Effect::Real;
        let opened = if makes { self.open_or_make(&self.base, path, None) } else { open(&self.base, path) };
        let store = opened.and_then(|dir| {
            let is_read = self.options.task == Task::Prune;
            let mut names = dir.as_ref().filter(|_| is_read).map_or(Ok(Vec::new()), entries)?;
            names.sort_unstable();
            Ok(Store::Directory { dir, names })
        });
        store.map_err(|error| (path.to_bytes().to_vec(), error))
    }

    /// The directory that has the indexes of files in `dir`, if it exists.
    pub(super) fn open_for(&self, store: &Store<V::Dir>, dir: Option<&V::Dir>) -> Result<Option<V::Dir>> {
        match store {
            Store::Beside => dir.map_or(Ok(None), |dir| open(dir, BESIDE)),
            Store::Directory { dir, .. } => dir.as_ref().map(reopen).transpose(),
        }
    }

    fn open_or_make(&self, parent: &V::Dir, name: &CStr, owner: Option<&V::Dir>) -> Result<Option<V::Dir>> {
        if let Some(dir) = open(parent, name)? {
            return Ok(Some(dir));
        }
        match parent.create_dir(name, DIRECTORY_MODE) {
            Err(error) if error.errno == Errno::EXIST => {}
            Err(error) => return Err(error),
            Ok(()) => {
                // An administrator makes indexes for the owner of the files, who will make others there.
                let owner = owner.and_then(|dir| dir.own_metadata(millstream_vfs::Fields::STAT).ok());
                let ownership = owner.map(|owner| Ownership { uid: Some(owner.uid), gid: Some(owner.gid) });
                let _ = ownership.map(|owner| parent.set_owner(name, owner, SymlinkBehavior::NoFollow));
            }
        }
        open(parent, name)
    }

    /// What the names of indexes of files in a directory begin with.
    pub(super) fn prefix(&self, directory: &[u8]) -> Vec<u8> {
        match &self.options.place {
            Place::Beside => Vec::new(),
            Place::Directory { working_directory, .. } => names::prefix(working_directory, directory),
        }
    }

    /// The name of the index of a version of a file in a directory.
    pub(super) fn index_name(&self, directory: &[u8], name: &CStr, version: Version) -> CString {
        index_name(&self.prefix(directory), name, version)
    }

    /// Keeps an index. It gets the owner and the permissions of the file.
    pub(super) fn save(
        &self,
        store: &Store<V::Dir>,
        dir: &V::Dir,
        name: &CStr,
        index: &[u8],
        owner: (&<V::Dir as Dir>::File, &Metadata),
    ) -> Result<()> {
        let index_directory = match store {
            Store::Beside => self.open_or_make(dir, BESIDE, Some(dir)),
            Store::Directory { .. } => self.open_for(store, None),
        }?;
        index_directory
            .map_or(Ok(()), |index_directory| write_atomically(&index_directory, name, index, owner))
    }
}

/// Writes a file in a directory, which appears once it is complete, with the owner and the permissions of another file.
pub(super) fn write_atomically<D: Dir>(
    dir: &D,
    name: &CStr,
    content: &[u8],
    owner: (&D::File, &Metadata),
) -> Result<()> {
    let temporary = temporary_name();
    let file = dir.create_file(&temporary, 0o600)?;
    let kept = write(&file, content, owner)
        // Hadoop would compare the file with the checksums of another one.
        .and_then(|()| remove_if_there(dir, &checksum_name(name)))
        .and_then(|()| dir.rename(&temporary, dir, name));
    if kept.is_err() {
        // The first error says more.
        let _ = dir.remove(&temporary, RemoveKind::File);
    }
    kept
}

fn write<F: File>(file: &F, content: &[u8], (owner, metadata): (&F, &Metadata)) -> Result<()> {
    take_after(file, owner, metadata)?;
    file.write_all(content, At::Offset(0))?;
    file.flush()
}

/// Bytes of an index and the index, if it is one of a file of this size. One that is damaged is as none.
pub(super) fn load<D: Dir>(dir: &D, name: &CStr, size: u64) -> Option<(u64, Index)> {
    let file = dir.open_file(name, Access::Read, SymlinkBehavior::Follow).ok()?;
    let bytes = content(&file).ok()?;
    let index = Index::decode(&bytes).ok().filter(|index| index.size() == size)?;
    Some((bytes.len() as u64, index))
}

/// All bytes of a file.
pub(super) fn content<F: File>(file: &F) -> Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; BATCH]);
    loop {
        match file.read(&mut buffer, At::Offset(bytes.len() as u64))? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

pub(super) fn remove_if_there<D: Dir>(dir: &D, name: &CStr) -> Result<()> {
    match dir.remove(name, RemoveKind::File) {
        Err(error) if error.errno != Errno::NOENT => Err(error),
        _ => Ok(()),
    }
}

/// The names in a directory.
pub(super) fn entries<D: Dir>(dir: &D) -> Result<Vec<CString>> {
    let (mut cursor, mut batch, mut found) =
        (D::Cursor::default(), DirentBatch::with_capacity(BATCH), Vec::new());
    while dir.read_entries(&mut cursor, &mut batch)? == ReadState::More {
        found.extend(batch.iter().map(|dirent| dirent.name.to_owned()));
    }
    Ok(found)
}

fn open<D: Dir>(parent: &D, name: &CStr) -> Result<Option<D>> {
    match parent.open_dir(name, SymlinkBehavior::Follow) {
        Err(error) if error.errno == Errno::NOENT => Ok(None),
        opened => opened.map(Some),
    }
}

/// Another handle of a directory.
pub(super) fn reopen<D: Dir>(dir: &D) -> Result<D> {
    dir.open_dir_for_names(c".", SymlinkBehavior::NoFollow)
}
