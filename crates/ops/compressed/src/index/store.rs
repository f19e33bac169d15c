//! The directories that keep indexes. An index appears in them once it is complete. It has the permissions of
//! the file, because it contains some of the text.

use std::ffi::{CStr, CString};

use millstream_codec::Index;
use millstream_version::Version;
use millstream_vfs::{
    Access, At, Dir, DirentBatch, Errno, Fields, File, FileKind, Metadata, ReadState, RemoveKind, Result,
    SymlinkBehavior, Volume,
};

use super::names::{self, BESIDE, checksum_name, index_name, temporary_name};
use super::{Cause, Effect, Location, Run, Task};
use millstream_operation::content::take_after;
use millstream_text::names::rename_new;

/// Mode of a directory for indexes; the process's mask applies.
const DIRECTORY_MODE: u32 = 0o777;
/// Bytes of a file or of directory entries in one read.
const BATCH: usize = 64 << 10;

/// Where indexes are.
pub(super) enum Store<D> {
    /// Next to each file.
    Beside,
    /// All in one directory.
    Directory {
        /// [`None`] if it does not exist and is not to be created.
        dir: Option<D>,
        /// Its sorted contents, for [`Task::Prune`].
        names: Vec<CString>,
    },
}

impl<V: Volume> Run<'_, V> {
    /// Opens the directory for all indexes, if there is one. An error comes with its path. To build indexes, it is
    /// created.
    pub(super) fn open_store(&self) -> std::result::Result<Store<V::Dir>, (Vec<u8>, Cause)> {
        let Location::Directory { path, .. } = &self.options.location else { return Ok(Store::Beside) };
        let creates = matches!(self.options.task, Task::Make { .. }) && self.options.effect == Effect::Real;
        let open = || Ok(open(&self.base, path, SymlinkBehavior::Follow)?);
        let opened = if creates { open_or_create(&self.base, path, None, open) } else { open() };
        let store = opened.and_then(|dir| {
            let is_read = self.options.task == Task::Prune;
            let names = dir.as_ref().filter(|_| is_read).map_or(Ok(Vec::new()), entries)?;
            Ok(Store::Directory { dir, names })
        });
        store.map_err(|cause| (path.to_bytes().to_vec(), not_kept(cause)))
    }

    /// The directory with the indexes of files in `dir`, if it exists.
    pub(super) fn open_for(
        &self,
        store: &Store<V::Dir>,
        dir: Option<&V::Dir>,
    ) -> std::result::Result<Option<V::Dir>, Cause> {
        match store {
            Store::Beside => dir.map_or(Ok(None), open_beside),
            Store::Directory { dir, .. } => Ok(dir.as_ref().map(reopen).transpose()?),
        }
    }

    /// The prefix of the names of indexes of files in a directory.
    pub(super) fn prefix(&self, directory: &[u8]) -> Vec<u8> {
        match &self.options.location {
            Location::Beside => Vec::new(),
            Location::Directory { working_directory, .. } => names::prefix(working_directory, directory),
        }
    }

    /// The name of the index of a version of a file in a directory.
    pub(super) fn index_name(&self, directory: &[u8], name: &CStr, version: &Version) -> CString {
        index_name(&self.prefix(directory), name, version)
    }

    /// Stores an index. It gets the owner and the permissions of the file.
    pub(super) fn save(
        &self,
        store: &Store<V::Dir>,
        dir: &V::Dir,
        name: &CStr,
        index: &[u8],
        owner: (&<V::Dir as Dir>::File, &Metadata),
    ) -> std::result::Result<(), Cause> {
        let index_directory = match store {
            Store::Beside => open_or_create(dir, BESIDE, Some(dir), || open_beside(dir)),
            Store::Directory { .. } => self.open_for(store, None),
        }?;
        if let Some(index_directory) = index_directory {
            write_atomically(&index_directory, name, index, owner, Existing::Replace)?;
        }
        Ok(())
    }
}

/// How to treat an existing file with the name of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// It is replaced.
    Replace,
    /// It stays, and the new one is not written.
    Refuse,
}

/// Writes a file in a directory, which appears once it is complete, with the owner and the permissions of another file.
///
/// # Errors
/// Those of the directory; `EEXIST` for a name that exists, if that is refused.
pub(super) fn write_atomically<D: Dir>(
    dir: &D,
    name: &CStr,
    content: &[u8],
    owner: (&D::File, &Metadata),
    existing: Existing,
) -> Result<()> {
    let temporary = temporary_name();
    let file = dir.create_file(&temporary, 0o600)?;
    let written = write(&file, content, owner)
        // Hadoop would compare the file with the checksums of another one.
        .and_then(|()| remove_if_there(dir, &checksum_name(name)))
        .and_then(|()| match existing {
            Existing::Replace => dir.rename(&temporary, dir, name),
            Existing::Refuse => rename_new(dir, &temporary, dir, name),
        });
    if written.is_err() {
        // The first error is more informative.
        let _ = dir.remove(&temporary, RemoveKind::File);
    }
    written
}

fn write<F: File>(file: &F, content: &[u8], (owner, metadata): (&F, &Metadata)) -> Result<()> {
    take_after(file, owner, metadata)?;
    file.write_all(content, At::Offset(0))?;
    file.flush()
}

/// The size of an index and the index, if it belongs to the file with this metadata. Another one is ignored, and
/// rebuilt.
pub(super) fn load<D: Dir>(dir: &D, name: &CStr, of: &Metadata) -> Option<(u64, Index)> {
    let file = dir.open_file(name, Access::Read, SymlinkBehavior::NoFollow).ok()?;
    let creator = file.metadata(Fields::UID).ok()?.uid;
    if !is_trusted(creator, of) {
        return None;
    }
    let bytes = content(&file, longest_index(of.size)).ok()?;
    let index = Index::decode(&bytes).ok().filter(|index| index.is_whole() && index.size() == of.size)?;
    Some((bytes.len() as u64, index))
}

/// Whether an index that belongs to this user is used for the file. The checksums in an index come from its creator, so
/// it could omit text: in a shared directory, anyone could change what others read from the file.
fn is_trusted(creator: u32, file: &Metadata) -> bool {
    const SUPERUSER: u32 = 0;
    [file.uid, rustix::process::geteuid().as_raw(), SUPERUSER].contains(&creator)
}

/// Maximum bytes of an index of a file of this size: for each chunk, which has some bytes of the file, it has
/// 32 bytes, and the compressed window. Java, which reads indexes into arrays, takes no more than 2 GiB.
fn longest_index(size: u64) -> u64 {
    size.saturating_mul(4).saturating_add(1 << 20).min(i32::MAX as u64)
}

/// The first `most` bytes of a file.
pub(super) fn content<F: File>(file: &F, most: u64) -> Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; BATCH]);
    loop {
        let at = bytes.len() as u64;
        let wanted = (most - at).min(BATCH as u64) as usize;
        match file.read(&mut buffer[..wanted], At::Offset(at))? {
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
    found.sort_unstable();
    Ok(found)
}

fn open<D: Dir>(parent: &D, name: &CStr, symlinks: SymlinkBehavior) -> Result<Option<D>> {
    match parent.open_dir(name, symlinks) {
        Err(error) if error.errno == Errno::NOENT => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens the directory for indexes next to the files of a directory, if there is one. A symbolic link is not
/// followed: the owner of the files could make an administrator, who builds indexes for them, write elsewhere.
fn open_beside<D: Dir>(dir: &D) -> std::result::Result<Option<D>, Cause> {
    open(dir, BESIDE, SymlinkBehavior::NoFollow).map_err(|error| {
        let metadata = dir.metadata(BESIDE, SymlinkBehavior::NoFollow, Fields::KIND);
        let is_link = metadata.is_ok_and(|metadata| metadata.kind() == FileKind::Symlink);
        if is_link { Cause::Linked } else { error.into() }
    })
}

/// Opens a directory for indexes with `open`; creates it if it does not exist. One next to `files` is then given to
/// their owner.
fn open_or_create<D: Dir>(
    parent: &D,
    name: &CStr,
    files: Option<&D>,
    open: impl Fn() -> std::result::Result<Option<D>, Cause>,
) -> std::result::Result<Option<D>, Cause> {
    if let Some(dir) = open()? {
        return Ok(Some(dir));
    }
    match parent.create_dir(name, DIRECTORY_MODE) {
        Err(error) if error.errno == Errno::EXIST => {}
        Err(error) => return Err(error.into()),
        Ok(()) => {
            let made = open()?;
            if let (Some(made), Some(files)) = (&made, files) {
                hand_over(made, files);
            }
            return Ok(made);
        }
    }
    open()
}

/// Gives a new directory for indexes to the owner of the files' directory, who builds other indexes there later. The
/// open directory is changed, not the name: the owner could have put a link there meanwhile, or another user's
/// directory, which would not be empty.
fn hand_over<D: Dir>(made: &D, files: &D) {
    let is_empty = entries(made).is_ok_and(|names| names.is_empty());
    if is_empty && let (Ok(owner), Ok(made)) = (files.own_metadata(Fields::STAT), made.as_file()) {
        // Only an administrator may, and only administrators build indexes for others.
        let _ = made.set_owner(Some(owner.uid), Some(owner.gid));
    }
}

/// Why an index cannot be stored.
pub(super) fn not_kept(cause: Cause) -> Cause {
    match cause {
        Cause::Volume(error) => Cause::NotKept(error),
        cause => cause,
    }
}

/// Another handle of a directory.
pub(super) fn reopen<D: Dir>(dir: &D) -> Result<D> {
    dir.open_dir_for_names(c".", SymlinkBehavior::NoFollow)
}
