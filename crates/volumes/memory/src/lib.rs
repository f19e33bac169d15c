#![forbid(unsafe_code)]
//! A volume in memory with injected errors, for tests.
//!
//! ```text
//! MemoryVolume ── fail(path, operation, errno) ──► faults ─┐ checked before every call on a handle
//!      └── create_dir, write, symlink, … ──► tree ─────────┴─► MemoryDir, MemoryFile
//! ```
//!
//! It shows that [`Volume`] can be implemented without the kernel and outside `millstream-vfs`. It also fails exactly
//! as a test asks, which no real file system does: `EIO` from the second read of a directory, `EACCES` for root, a name
//! that is listed but gone. The caller is privileged: permissions are stored and reported, but not enforced.
//!
//! One lock protects the tree, and nothing is ever freed. A directory lists its names in descending order, so that a
//! test notices code that takes them for sorted.

mod dir;
mod faults;
mod file;
pub mod random;
mod tree;

use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_vfs::{Capabilities, Errno, FileKind, Metadata, NodeKind, Operation, SymlinkBehavior, Volume};

pub use dir::{Cursor, MemoryDir};
pub use file::MemoryFile;

use faults::Faults;
use tree::{Content, ROOT, Tree};

/// State shared by all handles of a volume.
#[derive(Debug, Default)]
struct Shared {
    tree: Mutex<Tree>,
    faults: Mutex<Faults>,
}

impl Shared {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A volume in memory. Its own methods take paths from the root, with or without a leading slash, and are not subject
/// to injected errors.
#[derive(Clone, Debug)]
pub struct MemoryVolume {
    shared: Arc<Shared>,
    max_open_dirs: usize,
}

impl Default for MemoryVolume {
    fn default() -> Self {
        MemoryVolume { shared: Arc::default(), max_open_dirs: 1 << 16 }
    }
}

impl MemoryVolume {
    /// The same volume with another limit on open directories.
    #[must_use]
    pub fn with_max_open_dirs(self, max_open_dirs: usize) -> Self {
        MemoryVolume { max_open_dirs, ..self }
    }

    /// Makes `operation` fail at `path` from now on. Opening and reading a directory are operations at its own path.
    pub fn fail(&self, path: impl AsRef<[u8]>, operation: Operation, errno: Errno) {
        self.fail_after(0, path, operation, errno);
    }

    /// As [`MemoryVolume::fail`], after `calls` successful calls.
    pub fn fail_after(&self, calls: usize, path: impl AsRef<[u8]>, operation: Operation, errno: Errno) {
        self.shared.faults().add(path.as_ref(), Some(operation), calls, errno);
    }

    /// Makes one call fail, of any operation at any path, after `calls` successful ones.
    pub fn fail_call(&self, calls: usize, errno: Errno) {
        self.shared.faults().set_next(calls, errno);
    }

    /// Withdraws [`MemoryVolume::fail_call`]. Returns whether that call has not been made.
    pub fn fail_no_call(&self) -> bool {
        self.shared.faults().take_next()
    }

    /// Makes every operation on `path` fail as if it had been removed after its directory was read.
    pub fn vanish(&self, path: impl AsRef<[u8]>) {
        self.shared.faults().add(path.as_ref(), None, 0, Errno::NOENT);
    }

    /// Creates a directory.
    ///
    /// # Errors
    /// As `mkdir(2)`.
    pub fn create_dir(&self, path: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.shared.tree().create(ROOT, path.as_ref(), FileKind::Directory, 0o755, Content::Nothing).map(drop)
    }

    /// Writes a file with these contents, creating it if necessary.
    ///
    /// # Errors
    /// As `open(2)`.
    pub fn write(&self, path: impl AsRef<[u8]>, contents: &[u8]) -> Result<(), Errno> {
        let mut tree = self.shared.tree();
        let ino = match tree.find(ROOT, path.as_ref(), SymlinkBehavior::Follow) {
            Err(Errno::NOENT) => {
                tree.create(ROOT, path.as_ref(), FileKind::File, 0o644, Content::Data(Vec::new()))?
            }
            found => found?,
        };
        *tree.data_mut(ino)? = contents.to_vec();
        Ok(())
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As `symlink(2)`.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<(), Errno> {
        let target = Content::Target(target.as_ref().to_vec());
        self.shared.tree().create(ROOT, path.as_ref(), FileKind::Symlink, 0o777, target).map(drop)
    }

    /// Creates a pipe, a socket or a device.
    ///
    /// # Errors
    /// As `mknod(2)`.
    pub fn create_node(&self, path: impl AsRef<[u8]>, kind: NodeKind) -> Result<(), Errno> {
        self.shared.tree().create_node(ROOT, path.as_ref(), kind, 0o644)
    }

    /// Creates a hard link.
    ///
    /// # Errors
    /// As `link(2)`.
    pub fn hard_link(&self, path: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<(), Errno> {
        let mut tree = self.shared.tree();
        let ino = tree.find(ROOT, path.as_ref(), SymlinkBehavior::NoFollow)?;
        tree.link(ino, ROOT, new.as_ref())
    }

    /// Renames.
    ///
    /// # Errors
    /// As `rename(2)`.
    pub fn rename(&self, path: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.shared.tree().rename(ROOT, path.as_ref(), ROOT, new.as_ref())
    }

    /// Sets permission bits.
    ///
    /// # Errors
    /// As `chmod(2)`.
    pub fn set_mode(&self, path: impl AsRef<[u8]>, mode: u32) -> Result<(), Errno> {
        self.shared.tree().set_mode(ROOT, path.as_ref(), mode, SymlinkBehavior::Follow)
    }

    /// All attributes.
    ///
    /// # Errors
    /// As `stat(2)`.
    pub fn metadata(&self, path: impl AsRef<[u8]>, symlinks: SymlinkBehavior) -> Result<Metadata, Errno> {
        let tree = self.shared.tree();
        Ok(tree.metadata(tree.find(ROOT, path.as_ref(), symlinks)?))
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// As `open(2)`.
    pub fn read(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Errno> {
        let tree = self.shared.tree();
        Ok(tree.data(tree.find(ROOT, path.as_ref(), SymlinkBehavior::Follow)?)?.to_vec())
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// As `readlink(2)`.
    pub fn read_link(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Errno> {
        let tree = self.shared.tree();
        tree.target(tree.find(ROOT, path.as_ref(), SymlinkBehavior::NoFollow)?)
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// As `opendir(3)`.
    pub fn names(&self, path: impl AsRef<[u8]>) -> Result<Vec<CString>, Errno> {
        let tree = self.shared.tree();
        let names = tree.entries(tree.find(ROOT, path.as_ref(), SymlinkBehavior::Follow)?)?;
        Ok(names.keys().map(|name| CString::new(&name[..]).expect("names come as C strings")).collect())
    }
}

impl Volume for MemoryVolume {
    type Dir = MemoryDir;

    fn base(&self) -> MemoryDir {
        MemoryDir::new(Arc::clone(&self.shared), ROOT)
    }

    fn max_open_dirs(&self) -> usize {
        self.max_open_dirs
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }
}
