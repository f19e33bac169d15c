//! Removal of indexes that no reader will look for again.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use millstream_codec::INDEX_MAGIC;
use millstream_version::Version;
use millstream_vfs::{
    Access, At, Dir, Errno, Fields, File, FileKind, RemoveKind, Result, SymlinkBehavior, Volume,
};

use super::names::{self, BESIDE, HIDDEN, IndexedFile, checksum_name, is_temporary};
use super::store::{Store, entries, remove_if_there};
use super::{Action, Cause, Effect, Event, Location, Reason, Run};
use millstream_text::names::c_string;

/// The signature of Hadoop's checksum files.
const CHECKSUMS: &[u8] = b"crc\0";
/// Writing an index never takes longer.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

impl<V: Volume> Run<'_, V> {
    /// Removes indexes of files in a directory, or of one of them. Without `dir` the directory is empty.
    pub(super) fn prune(
        &self,
        dir: Option<&V::Dir>,
        directory: &[u8],
        only: Option<&CStr>,
        store: &Store<V::Dir>,
    ) {
        if let Err(cause) = self.prune_directory(dir, directory, only, store) {
            self.problem(directory, &cause);
        }
    }

    fn prune_directory(
        &self,
        dir: Option<&V::Dir>,
        directory: &[u8],
        only: Option<&CStr>,
        store: &Store<V::Dir>,
    ) -> std::result::Result<(), Cause> {
        let Some(index_directory) = self.open_for(store, dir)? else { return Ok(()) };
        let prefix = self.prefix(directory);
        let listed = match store {
            Store::Beside => &entries(&index_directory)?[..],
            Store::Directory { names, .. } => names,
        };
        let mut has_removed = false;
        let mut files = dir.map(Files::new);
        for (name, is_hidden, file, version) in indexes(listed, &prefix) {
            if only.is_some_and(|only| !file.is(only.to_bytes())) {
                continue;
            }
            let reason =
                if is_hidden { stale(files.as_mut(), &file, &version)? } else { Some(Reason::Visible) };
            if let Some(reason) = reason {
                has_removed |= self.remove(&index_directory, directory, name, reason);
            }
        }
        if let (Store::Beside, None) = (store, only) {
            has_removed |= self.prune_incomplete(&index_directory, directory, listed)?;
        }
        match (store, dir) {
            (Store::Beside, Some(dir)) if has_removed => Ok(remove_if_empty(dir)?),
            _ => Ok(()),
        }
    }

    /// Removes incomplete indexes from the directory for all indexes.
    pub(super) fn prune_temporaries(&self, store: &Store<V::Dir>) {
        let Store::Directory { dir: Some(index_directory), names } = store else { return };
        if let Err(error) = self.prune_incomplete(index_directory, b"", names) {
            self.problem(&self.index_directory_path(b""), &error.into());
        }
    }

    /// Whether any was removed.
    fn prune_incomplete(
        &self,
        index_directory: &V::Dir,
        directory: &[u8],
        listed: &[CString],
    ) -> Result<bool> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut has_removed = false;
        for name in listed.iter().filter(|name| is_temporary(name.to_bytes())) {
            let metadata = match index_directory.metadata(name, SymlinkBehavior::NoFollow, Fields::MTIME) {
                Err(error) if error.errno == Errno::NOENT => continue,
                metadata => metadata?,
            };
            if matches!(self.options.location, Location::Directory { .. }) && !is_ours(index_directory, name)?
            {
                continue;
            }
            let age = now.as_secs().saturating_sub(u64::try_from(metadata.mtime.sec).unwrap_or(0));
            if age > ABANDONED.as_secs() {
                has_removed |= self.remove(index_directory, directory, name, Reason::Incomplete);
            }
        }
        Ok(has_removed)
    }

    /// Whether it was removed.
    fn remove(&self, index_directory: &V::Dir, directory: &[u8], name: &CStr, reason: Reason) -> bool {
        let path = [&self.index_directory_path(directory), name.to_bytes()].concat();
        let removed = match self.options.effect {
            Effect::DryRun => Ok(()),
            Effect::Real => remove_if_there(index_directory, name)
                .and_then(|()| remove_if_there(index_directory, &checksum_name(name))),
        };
        match removed {
            Ok(()) => self.sink.event(Event { path: &path, action: Action::Removed(reason) }),
            Err(error) => self.problem(&path, &error.into()),
        }
        removed.is_ok() && self.options.effect == Effect::Real
    }

    /// The path of the directory with the indexes of files in a directory, ending with a slash.
    fn index_directory_path(&self, directory: &[u8]) -> Vec<u8> {
        match &self.options.location {
            Location::Beside => [directory, BESIDE.to_bytes(), b"/"].concat(),
            Location::Directory { path, .. } => {
                [path.to_bytes().strip_suffix(b"/").unwrap_or(path.to_bytes()), b"/"].concat()
            }
        }
    }
}

/// The indexes with a prefix among sorted names, each with its file: hidden ones, then those with the names of earlier
/// versions.
fn indexes<'a>(
    listed: &'a [CString],
    prefix: &'a [u8],
) -> impl Iterator<Item = (&'a CString, bool, IndexedFile, Version)> {
    [true, false].into_iter().flat_map(move |is_hidden| {
        let start = [if is_hidden { HIDDEN } else { b"" }, prefix].concat();
        let first = listed.partition_point(|name| name.to_bytes() < &start[..]);
        listed[first..]
            .iter()
            .map_while(move |name| Some((name, name.to_bytes().strip_prefix(&start[..])?)))
            .filter(move |(name, _)| name.to_bytes().starts_with(HIDDEN) == is_hidden)
            .filter_map(move |(name, own)| {
                let (file, version) = names::parse(own)?;
                Some((name, is_hidden, file, version))
            })
    })
}

/// Whether a file with the name of an incomplete index begins like one, or like Hadoop's checksum file of one. A
/// directory that the user names may have other hidden files with such names.
fn is_ours<D: Dir>(dir: &D, name: &CStr) -> Result<bool> {
    let expected: &[u8] = if name.to_bytes().ends_with(b".crc") { CHECKSUMS } else { INDEX_MAGIC };
    if dir.metadata(name, SymlinkBehavior::NoFollow, Fields::KIND)?.kind() != FileKind::File {
        return Ok(false);
    }
    let file = match dir.open_file(name, Access::Read, SymlinkBehavior::NoFollow) {
        Err(error) if error.errno == Errno::NOENT => return Ok(false),
        opened => opened?,
    };
    let mut beginning = vec![0; expected.len()];
    let length = file.read(&mut beginning, At::Offset(0))?;
    Ok(expected.starts_with(&beginning[..length]))
}

/// Removes the directory of indexes from the directory of their files.
fn remove_if_empty<D: Dir>(dir: &D) -> Result<()> {
    match dir.remove(BESIDE, RemoveKind::Directory) {
        Err(error) if matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// The files of a directory.
struct Files<'a, D> {
    dir: &'a D,
    /// By the short names in the names of indexes of files with long names; [`None`] until such an index is found.
    short: Option<HashMap<Vec<u8>, CString>>,
}

impl<'a, D: Dir> Files<'a, D> {
    fn new(dir: &'a D) -> Self {
        Files { dir, short: None }
    }

    /// The name of an index's file.
    fn name(&mut self, file: &IndexedFile) -> Result<Option<CString>> {
        let short = match file {
            IndexedFile::Named(name) => return Ok(Some(c_string(&[name]))),
            IndexedFile::Short(short) => short,
        };
        let listed = match self.short.take() {
            Some(listed) => listed,
            None => {
                entries(self.dir)?.into_iter().map(|name| (names::short(name.to_bytes()), name)).collect()
            }
        };
        Ok(self.short.insert(listed).get(short).cloned())
    }
}

/// Why an index does not match the current file, if it does not. Without `files` the directory is empty.
fn stale<D: Dir>(
    files: Option<&mut Files<'_, D>>,
    file: &IndexedFile,
    version: &Version,
) -> Result<Option<Reason>> {
    let Some(files) = files else { return Ok(Some(Reason::FileGone)) };
    let Some(name) = files.name(file)? else { return Ok(Some(Reason::FileGone)) };
    match files.dir.metadata(&name, SymlinkBehavior::Follow, Version::FIELDS) {
        Err(error) if error.errno == Errno::NOENT => Ok(Some(Reason::FileGone)),
        metadata => {
            Ok((!Version::of(&metadata?).in_millis().is_same(version)).then_some(Reason::FileChanged))
        }
    }
}

#[cfg(test)]
mod tests {
    use millstream_memory::MemoryVolume;
    use millstream_vfs::Operation;

    use super::*;

    /// Issue 36: each index with a short name listed it again.
    #[test]
    fn a_directory_is_listed_once_for_all_short_names() {
        let volume = MemoryVolume::default();
        volume.create_dir("d").expect("made");
        let long = [b'a', b'b'].map(|letter| vec![letter; 250]);
        for name in &long {
            volume.write([b"d/", &name[..]].concat(), b"").expect("written");
        }
        let dir = volume.base().open_dir(c"d", SymlinkBehavior::Follow).expect("opens");
        let mut files = Files::new(&dir);
        for name in &long {
            let found = files.name(&IndexedFile::Short(names::short(name)));
            assert_eq!(found, Ok(Some(c_string(&[name]))));
            volume.fail("d", Operation::ReadDir, Errno::IO);
        }
        assert_eq!(files.name(&IndexedFile::Short(names::short(b"gone"))), Ok(None));
    }
}
