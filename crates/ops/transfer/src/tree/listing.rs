//! Listings of single directories.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, DirentBatch, Errno, Error, MountBehavior, ReadState, SymlinkBehavior, Volume};

use super::at::At;
use super::entry::Entry;
use super::error::TreeError;
use super::root::Tree;
use crate::transfer::attributes::Attributes;

/// Bytes of names that are read at once.
const BATCH: usize = 32 << 10;

/// A directory that is being listed.
#[derive(Debug)]
pub struct Listing<V: Volume> {
    directory: V::Dir,
    path: Vec<u8>,
    mount: Option<Vec<u8>>,
    carried: Attributes,
    cursor: <V::Dir as Dir>::Cursor,
    batch: DirentBatch,
}

impl<V: Volume> Listing<V> {
    /// The path of the mount point that the directory is, or is below; none if it is in the same file system, and the
    /// same part of it, as the root.
    pub fn mount(&self) -> Option<&[u8]> {
        self.mount.as_deref()
    }

    /// Passes the next entries on, or why one cannot be examined; whether there may be more. Entries that have vanished
    /// since the directory was read are left out.
    ///
    /// # Errors
    /// That of reading the directory.
    pub fn next(&mut self, take: &mut dyn FnMut(&CStr, Result<Entry, Error>)) -> Result<bool, TreeError> {
        let read = self.directory.read_entries(&mut self.cursor, &mut self.batch);
        if read.map_err(TreeError::of(&self.path))? == ReadState::End {
            return Ok(false);
        }
        for dirent in self.batch.iter() {
            match Entry::examine(&self.directory, dirent.name, &self.carried) {
                Err(error) if error.errno == Errno::NOENT => {}
                found => take(dirent.name, found),
            }
        }
        Ok(true)
    }
}

impl<V: Volume> Tree<V> {
    /// Begins to list a directory.
    ///
    /// # Errors
    /// Those of opening it; `ENOTDIR` or `ELOOP` if it is no directory, or if a name of the path is a link.
    pub fn list(&self, path: &[u8]) -> Result<Listing<V>, TreeError> {
        let failed = TreeError::of(path);
        let whole = if path.is_empty() { CString::default() } else { At::of(path)?.whole() };
        let (handle, mount) = match self.directory(&whole, MountBehavior::Refuse) {
            Err(error) if error.errno == Errno::XDEV => {
                let mount = self.mount_above(path).map_err(&failed)?;
                (self.directory(&whole, MountBehavior::Enter), mount)
            }
            handle => (handle, None),
        };
        let directory = handle.and_then(|handle| handle.open_dir(c".", SymlinkBehavior::NoFollow));
        Ok(Listing {
            directory: directory.map_err(failed)?,
            path: path.to_owned(),
            mount,
            carried: self.carried(),
            cursor: Default::default(),
            batch: DirentBatch::with_capacity(BATCH),
        })
    }

    /// The first mount point on a path.
    fn mount_above(&self, path: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        for end in slashes.chain([path.len()]) {
            // The path has no NUL.
            let above = CString::new(&path[..end]).unwrap_or_default();
            match self.directory(&above, MountBehavior::Refuse) {
                Err(error) if error.errno == Errno::XDEV => return Ok(Some(path[..end].to_owned())),
                opened => opened?,
            };
        }
        Ok(None)
    }
}
