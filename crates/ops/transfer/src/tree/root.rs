//! A tree as it is opened: its root, and the operations on single entries.

use std::ffi::{CStr, CString};
use std::sync::{Arc, OnceLock};

use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, MountBehavior, NodeKind, Operation,
    RemoveKind, SymlinkBehavior, Volume,
};
use millstream_walk::Cancellation;

use super::at::At;
use super::attributes::{Gathered, Wanted, amend, first_supported};
use super::copier::Copier;
use super::entry::Entry;
use super::error::TreeError;
use crate::transfer::attributes::{Attributes, XattrValues};
use crate::transfer::options::{Preserve, Sparse, Xattrs};

const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;

/// What copies into a tree carry besides contents and the attributes that are named for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Whether to copy extended attributes.
    pub xattrs: bool,
    /// Whether to copy access control lists.
    pub acls: bool,
    /// Where to make holes.
    pub sparse: Sparse,
    /// How many bytes are copied at most, by all threads together.
    pub bytes_per_second: Option<u64>,
}

/// Something that is no file and no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special<'a> {
    /// A symbolic link that leads there.
    Symlink(&'a CStr),
    /// A device, a pipe or a socket.
    Node(NodeKind),
}

/// One tree of a volume.
#[derive(Debug)]
pub struct Tree<V: Volume> {
    pub(super) volume: V,
    path: CString,
    root: OnceLock<Arc<V::Dir>>,
    carried: Carried,
    pub(super) copier: Copier,
    cancellation: Cancellation,
}

pub(super) type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

impl<V: Volume> Tree<V> {
    /// The tree at `path`, which need not exist yet.
    pub fn new(volume: V, path: CString, carried: Carried) -> Self {
        let cancellation = Cancellation::default();
        let copier = Copier::new(carried.sparse, carried.bytes_per_second, cancellation.clone());
        Tree { volume, path, root: OnceLock::new(), carried, copier, cancellation }
    }

    /// Ends copies into the tree that are under way, with `ECANCELED`.
    pub fn cancel(&self) {
        self.cancellation.cancel();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    pub(super) fn preserve(&self) -> Preserve {
        let xattrs = if self.carried.xattrs { Xattrs::Required } else { Xattrs::Ignore };
        Preserve { acls: self.carried.acls, xattrs, ..Preserve::NONE }
    }

    /// Which extended attributes are carried.
    pub(super) fn carried(&self) -> Attributes {
        Wanted::default().attributes(self.preserve())
    }

    /// What copies in this tree carry of an entry of another one that has the same path.
    fn gathered(&self, from: Option<&Tree<V>>, path: &[u8]) -> Result<Gathered, TreeError> {
        let carried = self.carried();
        let Some(from) = from.filter(|_| carried.gathers()) else { return Ok(Gathered::NOTHING) };
        let mut values = XattrValues::new();
        let gathered = from.named(path).and_then(|(above, name)| {
            first_supported(|report| values = carried.gather_named(&*above, &name, report))
        });
        gathered.map_err(TreeError::of(path))?;
        Ok(Gathered { values, preserve: self.preserve() })
    }

    /// The directory and the name of an entry; the root is `.` in itself.
    fn named(&self, path: &[u8]) -> Result<(Arc<V::Dir>, CString), Error> {
        if path.is_empty() {
            return Ok((self.root()?, c".".to_owned()));
        }
        let at = At::of(path).map_err(|_| Error::new(Operation::Stat, Errno::INVAL))?;
        Ok((self.above(&at)?, at.name))
    }

    pub(super) fn root(&self) -> Result<Arc<V::Dir>, Error> {
        if let Some(root) = self.root.get() {
            return Ok(Arc::clone(root));
        }
        let opened = self.volume.base().open_dir_for_names(&self.path, SymlinkBehavior::Follow)?;
        Ok(Arc::clone(self.root.get_or_init(|| Arc::new(opened))))
    }

    /// The directory at a path.
    pub(super) fn directory(&self, path: &CStr, mounts: MountBehavior) -> Result<Arc<V::Dir>, Error> {
        let root = self.root()?;
        if path.is_empty() { Ok(root) } else { root.open_below(path, mounts).map(Arc::new) }
    }

    /// The entry at a path; none if there is nothing. At the root, a link is followed.
    ///
    /// # Errors
    /// If that is not known, or if the root cannot be opened.
    pub fn status(&self, path: &[u8]) -> Result<Option<Entry>, TreeError> {
        let found = if path.is_empty() {
            let root = self.volume.base().metadata(&self.path, SymlinkBehavior::Follow, Entry::FIELDS);
            root.and_then(|metadata| self.examined_root(metadata))
        } else {
            let at = At::of(path)?;
            // That nothing is there is only known if there is a root.
            self.root().map_err(TreeError::of(path))?;
            self.above(&at).and_then(|above| Entry::examine(&*above, &at.name, &self.carried()))
        };
        match found {
            Err(error) if is_absent(error) => Ok(None),
            found => found.map(Some).map_err(TreeError::of(path)),
        }
    }

    fn examined_root(&self, metadata: Metadata) -> Result<Entry, Error> {
        let carried = self.carried();
        if carried.gathers() && metadata.kind() == FileKind::Directory {
            return Entry::with_attributes(&*self.root()?, c".", (metadata, Vec::new()), &carried);
        }
        Ok(Entry { metadata, target: Vec::new(), acls: None, xattrs: None })
    }

    /// Opens a file for reading at offsets.
    ///
    /// # Errors
    /// Those of opening it; `EINVAL` if it is no regular file.
    pub fn open(&self, path: &[u8]) -> Result<FileOf<V>, TreeError> {
        self.open_file(path).map(|(file, _)| file)
    }

    pub(super) fn open_file(&self, path: &[u8]) -> Result<(FileOf<V>, Metadata), TreeError> {
        let at = At::of(path)?;
        let opened = self.above(&at).and_then(|above| {
            let file = above.open_file(&at.name, Access::Read, LINK)?;
            let metadata = file.metadata(Fields::STAT)?;
            let is_file = metadata.kind() == FileKind::File;
            if is_file { Ok((file, metadata)) } else { Err(Error::new(Operation::OpenFile, Errno::INVAL)) }
        });
        opened.map_err(TreeError::of(path))
    }

    /// The directory that an entry is in.
    pub(super) fn above(&self, at: &At) -> Result<Arc<V::Dir>, Error> {
        self.directory(&at.parent, MountBehavior::Enter)
    }

    /// Makes a directory, and those above it that are missing, up to and above the root. One that exists stays as it
    /// is.
    ///
    /// # Errors
    /// Those of making it; `ENOTDIR` or `ELOOP` if something above it is no directory, `EEXIST` if it is none itself.
    pub fn make_directory(&self, path: &[u8]) -> Result<(), TreeError> {
        if path.is_empty() {
            return self.make_root(self.path.to_bytes()).map_err(TreeError::of(path));
        }
        let at = At::of(path)?;
        let make = || self.above(&at)?.create_dir(&at.name, 0o777);
        let made = match make() {
            Err(error) if error.errno == Errno::NOENT => {
                self.make_directory(at.parent.to_bytes())?;
                make()
            }
            made => made,
        };
        match made {
            Err(error) if error.errno == Errno::EXIST => {
                let found = self.above(&at).and_then(|above| above.metadata(&at.name, LINK, Fields::KIND));
                let is_directory = found.map_err(TreeError::of(path))?.kind() == FileKind::Directory;
                if is_directory { Ok(()) } else { Err(TreeError::of(path)(error)) }
            }
            made => made.map_err(TreeError::of(path)),
        }
    }

    /// Makes the root, or a directory above it.
    fn make_root(&self, path: &[u8]) -> Result<(), Error> {
        // A part of a path without NUL has none.
        let name = CString::new(path).unwrap_or_default();
        let base = self.volume.base();
        match base.create_dir(&name, 0o777) {
            Err(error) if error.errno == Errno::EXIST => Ok(()),
            Err(error) if error.errno == Errno::NOENT => {
                let slash = path.iter().rposition(|&b| b == b'/').filter(|&at| at > 0);
                self.make_root(&path[..slash.ok_or(error)?])?;
                base.create_dir(&name, 0o777)
            }
            made => made,
        }
    }

    /// Makes something that replaces whatever is there, except for a directory. It is made under the name `temporary`
    /// first. Extended attributes that are carried are those of the same path in the tree `from`. An attribute that it
    /// could not get is returned.
    ///
    /// # Errors
    /// Those of making it or of the rename. Then it does not exist.
    pub fn make_special(
        &self,
        path: &[u8],
        special: Special<'_>,
        temporary: &CStr,
        (from, wanted): (Option<&Tree<V>>, &Wanted),
    ) -> Result<Option<TreeError>, TreeError> {
        let at = At::of(path)?;
        let gathered = self.gathered(from, path)?;
        let made = self.above(&at).and_then(|above| {
            match special {
                Special::Symlink(target) => above.create_symlink(temporary, target)?,
                // Nobody else may use it before it has the mode that is wanted.
                Special::Node(kind) => above.create_node(temporary, kind, 0o600)?,
            }
            let amended = amend(&*above, temporary, wanted, &gathered);
            above.rename(temporary, &above, &at.name).inspect_err(|_| {
                // The first error is the one to know.
                let _ = above.remove(temporary, RemoveKind::File);
            })?;
            Ok(amended.err().map(TreeError::of(path)))
        });
        made.map_err(TreeError::of(path))
    }

    /// Makes a hard link to the entry at `other`, in the place of whatever is there, except for a directory. It is made
    /// under the name `temporary` first.
    ///
    /// # Errors
    /// Those of making it, or of the rename. Then it does not exist.
    pub fn make_hard_link(&self, path: &[u8], other: &[u8], temporary: &CStr) -> Result<(), TreeError> {
        let (at, other) = (At::of(path)?, At::of(other)?);
        let made = self.above(&at).and_then(|above| {
            self.above(&other)?.hard_link(&other.name, LINK, &above, temporary)?;
            let renamed = above.rename(temporary, &above, &at.name);
            // Renaming one name of an entry to another one does nothing, and both stay.
            let _ = above.remove(temporary, RemoveKind::File);
            renamed
        });
        made.map_err(TreeError::of(path))
    }

    /// Sets those attributes of an entry that differ. A link gets its own. Extended attributes that are carried are
    /// those of the same path in the tree `from`.
    ///
    /// # Errors
    /// The first of any call; the others are made nevertheless.
    pub fn set_attributes(
        &self,
        path: &[u8],
        (from, wanted): (Option<&Tree<V>>, &Wanted),
    ) -> Result<(), TreeError> {
        let (gathered, failed) = match self.gathered(from, path) {
            Ok(gathered) => (gathered, Ok(())),
            Err(error) => (Gathered::NOTHING, Err(error)),
        };
        let set = self.named(path).and_then(|(above, name)| amend(&*above, &name, wanted, &gathered));
        failed.and(set.map_err(TreeError::of(path)))
    }
}

/// Whether an error says that nothing is at a path.
pub(super) fn is_absent(error: Error) -> bool {
    matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}
