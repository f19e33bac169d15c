//! The subject of an evaluation: an entry during a visit, or a directory that is being left.

use std::cell::OnceCell;
use std::ffi::CStr;

use millstream_vfs::{
    self as vfs, Dir, Errno, Fields, FileKind, Metadata, SECURITY_CONTEXT, SymlinkBehavior,
};

/// A file, as seen from the directory that holds it.
pub(super) struct Subject<'a, D> {
    /// The name; for an operand the path as the user gave it.
    pub name: &'a CStr,
    /// The directory that holds it.
    pub handle: &'a D,
    /// Distinguishes that directory from all others while it is traversed.
    pub directory: usize,
    /// Distance from the operand.
    pub depth: u32,
    /// Index of the operand that it is or is below.
    pub operand: u64,
    /// Type that the directory lists, without following a link.
    pub listed: FileKind,
    /// Whether links are followed here.
    pub symlinks: SymlinkBehavior,
    metadata: OnceCell<Result<Metadata, Errno>>,
}

impl<'a, D: Dir> Subject<'a, D> {
    /// A file that has not been examined yet.
    pub fn new(
        name: &'a CStr,
        handle: &'a D,
        directory: usize,
        depth: u32,
        operand: u64,
        listed: FileKind,
        symlinks: SymlinkBehavior,
    ) -> Self {
        Subject { name, handle, directory, depth, operand, listed, symlinks, metadata: OnceCell::new() }
    }

    /// With known metadata.
    pub fn with_metadata(self, metadata: Option<Metadata>) -> Self {
        if let Some(metadata) = metadata {
            let _ = self.metadata.set(Ok(metadata));
        }
        self
    }

    /// Metadata, fetched with `fields` the first time; every caller must ask for all that is ever needed.
    ///
    /// # Errors
    /// Why it cannot be read; [`Fetched::Now`] the first time.
    pub fn metadata(&self, fields: Fields) -> Result<&Metadata, Fetched> {
        self.metadata_by(fields, |fields| self.handle.metadata(self.name, self.symlinks, fields))
    }

    fn metadata_by(
        &self,
        fields: Fields,
        examine: impl FnOnce(Fields) -> vfs::Result<Metadata>,
    ) -> Result<&Metadata, Fetched> {
        let first = self.metadata.get().is_none();
        match self.metadata.get_or_init(|| self.fetch(fields, examine)) {
            Ok(metadata) => Ok(metadata),
            Err(errno) if first => Err(Fetched::Now(*errno)),
            Err(_) => Err(Fetched::Before),
        }
    }

    /// Whether reading metadata has failed.
    pub fn is_unreachable(&self) -> bool {
        self.metadata.get().is_some_and(Result::is_err)
    }

    fn fetch(
        &self,
        fields: Fields,
        examine: impl FnOnce(Fields) -> vfs::Result<Metadata>,
    ) -> Result<Metadata, Errno> {
        match examine(fields) {
            // A dangling link counts as itself.
            Err(error) if self.symlinks == SymlinkBehavior::Follow && error.errno == Errno::NOENT => {
                self.fetch_link(fields).map_err(|_| error.errno)
            }
            other => other.map_err(|error| error.errno),
        }
    }

    fn fetch_link(&self, fields: Fields) -> Result<Metadata, Errno> {
        self.handle.metadata(self.name, SymlinkBehavior::NoFollow, fields).map_err(|error| error.errno)
    }

    /// After a link was found to lead through something that is not a directory: the same subject, for the
    /// link itself.
    pub fn standing_for_link(self, fields: Fields) -> Self {
        let metadata = self.fetch_link(fields | Fields::KIND).ok();
        Subject { metadata: OnceCell::new(), ..self }.with_metadata(metadata)
    }

    /// The type, that of the target where links are followed.
    ///
    /// # Errors
    /// As [`Subject::metadata`].
    pub fn kind(&self, fields: Fields) -> Result<FileKind, Fetched> {
        self.kind_by(fields, |fields| self.handle.metadata(self.name, self.symlinks, fields))
    }

    /// [`Subject::kind`], with the call that examines the subject if it is examined now.
    ///
    /// # Errors
    /// As [`Subject::metadata`].
    pub fn kind_by(
        &self,
        fields: Fields,
        examine: impl FnOnce(Fields) -> vfs::Result<Metadata>,
    ) -> Result<FileKind, Fetched> {
        let decided = match self.listed {
            FileKind::Unknown => false,
            FileKind::Symlink => self.symlinks == SymlinkBehavior::NoFollow,
            _ => true,
        };
        if decided {
            return Ok(self.listed);
        }
        self.metadata_by(fields | Fields::KIND, examine).map(Metadata::kind)
    }

    /// The security context, without the NUL that ends it.
    ///
    /// # Errors
    /// `ENODATA` if there is none.
    pub fn security_context(&self) -> Result<Vec<u8>, Errno> {
        let mut context =
            self.handle.get_xattr(self.name, SECURITY_CONTEXT, self.symlinks).map_err(|error| error.errno)?;
        if context.last() == Some(&0) {
            context.pop();
        }
        Ok(context)
    }

    /// The last component of the name, without an operand's trailing slashes; for the root, a slash.
    pub fn base_name(&self) -> std::borrow::Cow<'a, CStr> {
        let bytes = self.name.to_bytes();
        if self.depth > 0 || !bytes.contains(&b'/') {
            return self.name.into();
        }
        let (_, last) = super::exec::split_operand(bytes);
        let end = last.iter().rposition(|&b| b != b'/').map_or(1, |at| at + 1);
        std::ffi::CString::new(&last[..end.min(last.len())]).expect("part of a C string").into()
    }
}

/// Why there is no metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// Reading it has just failed: to be reported.
    Now(Errno),
    /// Reading it had failed before, which was reported.
    Before,
}
