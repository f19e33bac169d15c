//! Files that nobody sees yet.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use millstream_vfs::{
    At as Position, Dir, Errno, Error, Fields, File, Metadata, Operation, RemoveKind, Timestamp, Volume,
};

use super::at::At;
use super::attributes::{Wanted, first_error};
use super::error::TreeError;
use super::root::{FileOf, Tree};
use crate::transfer::attributes::{Attributes, Before, XattrValues};
use crate::transfer::options::Preserve;

/// A file under a temporary name. Dropping it removes it, unless it has been installed.
#[derive(Debug)]
pub struct Staged<V: Volume> {
    directory: Arc<V::Dir>,
    temporary: CString,
    name: CString,
    path: Vec<u8>,
    /// None while its data is being copied, and once it is closed.
    pub(super) file: Option<FileOf<V>>,
    /// What it is like before it gets its attributes.
    pub(super) before: Metadata,
    wanted: Wanted,
    pub(super) attributes: Attributes,
    pub(super) xattrs: XattrValues,
    is_installed: bool,
}

impl<V: Volume> Staged<V> {
    fn open(&self) -> Result<&FileOf<V>, TreeError> {
        let closed = Error::new(Operation::Write, Errno::BADF);
        self.file.as_ref().ok_or_else(|| TreeError::of(&self.path)(closed))
    }

    /// Writes all of `bytes` at an offset.
    ///
    /// # Errors
    /// That of the call.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<(), TreeError> {
        self.open()?.write_all(bytes, Position::Offset(offset)).map_err(TreeError::of(&self.path))
    }

    /// Reads what has been written; the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// That of the call.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize, TreeError> {
        self.open()?.read(buffer, Position::Offset(offset)).map_err(TreeError::of(&self.path))
    }

    /// Sets the time that the file gets when it is installed.
    pub fn keep_time(&mut self, mtime: Timestamp) {
        self.wanted.mtime = Some(mtime);
    }

    /// Gives the file its attributes and its name, in the place of whatever is there except for a directory. An
    /// attribute that it could not get is returned: that is no reason to have no copy.
    ///
    /// # Errors
    /// The first of any other call. Then the file is removed, and what was there stays.
    pub fn install(mut self) -> Result<Option<TreeError>, TreeError> {
        let installed = self.finish().map_err(TreeError::of(&self.path));
        self.is_installed = installed.is_ok();
        installed.map(|lacking| lacking.map(TreeError::of(&self.path)))
    }

    fn finish(&mut self) -> Result<Option<Error>, Error> {
        let Some(file) = self.file.take() else { return Err(Error::new(Operation::Write, Errno::BADF)) };
        let metadata = self.wanted.over(&self.before);
        let mut attributes = self.attributes;
        attributes.options.preserve.timestamps = false;
        let before = Before {
            metadata: &self.before,
            made_with: None,
            fresh: true,
            may_have_acl: attributes.options.preserve.acls,
            lacks_attribute: false,
            // Without a mode that is wanted, it keeps the one that it was made with.
            replaced_mode: Some(self.before.mode),
        };
        let set = first_error(|report| attributes.set(&file, &metadata, &self.xattrs, before, report));
        // What is written when the file is closed would change its time again.
        file.close()?;
        if self.wanted.mtime.is_some() {
            self.directory.set_times(&self.temporary, metadata.atime, metadata.mtime)?;
        }
        self.directory.rename(&self.temporary, &self.directory, &self.name)?;
        Ok(set.err())
    }
}

impl<V: Volume> Drop for Staged<V> {
    fn drop(&mut self) {
        if !self.is_installed {
            // If it cannot be removed, the next synchronization finds it.
            let _ = self.directory.remove(&self.temporary, RemoveKind::File);
        }
    }
}

impl<V: Volume> Tree<V> {
    /// Creates an empty file under the name `temporary` in the directory of `path`, whose name and attributes it gets
    /// when it is installed. If it gets a mode then, nobody can open it before who may not do so then.
    ///
    /// # Errors
    /// Those of creating it.
    pub fn stage(&self, path: &[u8], temporary: &CStr, wanted: &Wanted) -> Result<Staged<V>, TreeError> {
        let at = At::of(path)?;
        let directory = self.above(&at).map_err(TreeError::of(path))?;
        let carries_acls = self.preserve().acls;
        let mode = wanted.mode.map_or(0o666, |last| if carries_acls { 0o600 } else { mode_at_first(last) });
        let file = directory.create_file(temporary, mode).map_err(TreeError::of(path))?;
        let mut staged = Staged {
            directory,
            temporary: temporary.to_owned(),
            name: at.name,
            path: path.to_owned(),
            file: None,
            before: Metadata::default(),
            wanted: *wanted,
            attributes: wanted.attributes(Preserve::NONE),
            xattrs: XattrValues::new(),
            is_installed: false,
        };
        staged.before = file.metadata(Fields::STAT).map_err(TreeError::of(path))?;
        staged.file = Some(file);
        Ok(staged)
    }
}

/// The mode to make a file with that will have the mode `last`. It is that one, which saves setting it, if it does not
/// matter for anybody else which owner and group the file has until it gets its own.
fn mode_at_first(last: u32) -> u32 {
    let (owner, group, others) = (last >> 6 & 7, last >> 3 & 7, last & 7);
    let is_independent = group == others && others & !owner == 0;
    if last & 0o7000 == 0 && is_independent && owner & 2 != 0 { last } else { 0o600 }
}

#[cfg(test)]
mod tests {
    use super::mode_at_first;

    #[test]
    fn files_are_made_with_their_mode_unless_it_depends_on_the_group() {
        for (last, first) in [
            (0o644, 0o644),
            (0o600, 0o600),
            (0o755, 0o755),
            (0o666, 0o666),
            (0o640, 0o600),
            (0o664, 0o600),
            (0o604, 0o600),
            (0o646, 0o600),
            (0o266, 0o600),
            (0o4755, 0o600),
            (0o444, 0o600),
            (0, 0o600),
        ] {
            assert_eq!(mode_at_first(last), first, "{last:o}");
        }
    }
}
