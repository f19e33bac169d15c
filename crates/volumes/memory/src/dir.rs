//! Directory handles.

use std::ffi::{CStr, CString};
use std::ops::Bound;
use std::sync::{Arc, MutexGuard};

use millstream_vfs::{
    Access, Capabilities, Dir, Dirent, DirentBatch, Errno, Error, Fields, FileKind, Intended, Metadata,
    MountBehavior, NodeKind, Operation, Ownership, Permission, ReadState, RemoveKind, Result,
    SymlinkBehavior, Timestamp, User, open_by_names,
};

use crate::Shared;
use crate::file::MemoryFile;
use crate::tree::{Content, Ino, Node, Tree};

/// An open directory.
#[derive(Debug)]
pub struct MemoryDir {
    shared: Arc<Shared>,
    ino: Ino,
}

/// Position of a reader in a directory.
#[derive(Debug, Default)]
pub struct Cursor {
    /// How many of `.` and `..` have been listed.
    dots: usize,
    /// The last listed name.
    last: Option<Vec<u8>>,
}

fn failed<T>(operation: Operation, result: std::result::Result<T, Errno>) -> Result<T> {
    result.map_err(|errno| Error::new(operation, errno))
}

impl MemoryDir {
    pub(crate) fn new(shared: Arc<Shared>, ino: Ino) -> Self {
        MemoryDir { shared, ino }
    }

    /// Path of `name` from the root; for an empty name, the path of this directory.
    fn path(&self, name: &[u8]) -> Vec<u8> {
        match name {
            b"" => self.shared.tree().path_of(self.ino),
            [b'/', ..] => name.to_vec(),
            name => [&self.shared.tree().path_of(self.ino)[..], b"/", name].concat(),
        }
    }

    /// Calls `act`, unless an error is injected here.
    fn attempt<T>(
        &self,
        operation: Operation,
        name: &[u8],
        act: impl FnOnce(MutexGuard<'_, Tree>) -> std::result::Result<T, Errno>,
    ) -> Result<T> {
        if !self.shared.faults().is_empty() {
            let path = self.path(name);
            self.shared.faults().check(operation, &path)?;
        }
        failed(operation, act(self.shared.tree()))
    }

    /// Applies `change` to a node.
    fn change<T>(
        &self,
        operation: Operation,
        name: &CStr,
        symlinks: SymlinkBehavior,
        change: impl FnOnce(&mut Node) -> std::result::Result<T, Errno>,
    ) -> Result<T> {
        self.attempt(operation, name.to_bytes(), |mut tree| {
            let ino = tree.find(self.ino, name.to_bytes(), symlinks)?;
            let changed = change(tree.node_mut(ino))?;
            tree.node_mut(ino).touch();
            Ok(changed)
        })
    }

    fn file(&self, name: &[u8], ino: Ino) -> MemoryFile {
        MemoryFile::new(Arc::clone(&self.shared), ino, self.path(name))
    }
}

impl Dir for MemoryDir {
    type Cursor = Cursor;
    type File = MemoryFile;

    fn open_dir(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        self.attempt(Operation::OpenDir, name.to_bytes(), |tree| {
            let ino = tree.find(self.ino, name.to_bytes(), symlinks)?;
            tree.entries(ino)?;
            Ok(MemoryDir::new(Arc::clone(&self.shared), ino))
        })
    }

    fn open_dir_for_names(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        self.open_dir(name, symlinks)
    }

    fn open_below(&self, path: &CStr, mounts: MountBehavior) -> Result<Self> {
        open_by_names(self, path, mounts)
    }

    fn open_parent(&self) -> Result<Self> {
        let parent = self.shared.tree().parent(self.ino);
        Ok(MemoryDir::new(Arc::clone(&self.shared), parent))
    }

    fn metadata(&self, name: &CStr, symlinks: SymlinkBehavior, _: Fields) -> Result<Metadata> {
        self.attempt(Operation::Stat, name.to_bytes(), |tree| {
            Ok(tree.metadata(tree.find(self.ino, name.to_bytes(), symlinks)?))
        })
    }

    fn device_within(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<u64> {
        self.metadata(name, symlinks, Fields::INO).map(|metadata| metadata.dev)
    }

    fn identity(&self) -> Result<(u64, u64)> {
        Ok(self.shared.tree().metadata(self.ino).identity())
    }

    fn own_metadata(&self, _: Fields) -> Result<Metadata> {
        self.attempt(Operation::Stat, b"", |tree| Ok(tree.metadata(self.ino)))
    }

    fn read_entries(&self, cursor: &mut Cursor, batch: &mut DirentBatch) -> Result<ReadState> {
        batch.clear();
        self.attempt(Operation::ReadDir, b"", |tree| {
            let (names, parent) = (tree.entries(self.ino)?, tree.parent(self.ino));
            for (name, ino) in [(c".", self.ino), (c"..", parent)].into_iter().skip(cursor.dots) {
                if !batch.add(Dirent { name, ino: ino as u64 + 1, kind: FileKind::Directory }) {
                    break;
                }
                cursor.dots += 1;
            }
            let below = cursor.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
            for (name, &ino) in names.range((Bound::Unbounded, below)).rev() {
                let listed = CString::new(&name[..]).map_err(|_| Errno::INVAL)?;
                let kind = tree.node(ino).kind;
                if !batch.add(Dirent { name: &listed, ino: ino as u64 + 1, kind }) {
                    // As in the kernel, a batch too small for one entry is the caller's mistake.
                    return if batch.is_empty() { Err(Errno::INVAL) } else { Ok(ReadState::More) };
                }
                cursor.last = Some(name.clone());
            }
            Ok(if batch.is_empty() { ReadState::End } else { ReadState::More })
        })
    }

    fn read_link(&self, name: &CStr) -> Result<Vec<u8>> {
        self.attempt(Operation::ReadLink, name.to_bytes(), |tree| {
            tree.target(tree.find(self.ino, name.to_bytes(), SymlinkBehavior::NoFollow)?)
        })
    }

    fn list_xattr(&self, name: &CStr, names: &mut Vec<u8>) -> Result<()> {
        self.attempt(Operation::ListXattr, name.to_bytes(), |tree| {
            let ino = tree.find(self.ino, name.to_bytes(), SymlinkBehavior::NoFollow)?;
            names.extend(tree.node(ino).xattrs.keys().flat_map(|name| [name, &b"\0"[..]].concat()));
            Ok(())
        })
    }

    fn get_xattr(&self, name: &CStr, attribute: &CStr, symlinks: SymlinkBehavior) -> Result<Vec<u8>> {
        self.attempt(Operation::GetXattr, name.to_bytes(), |tree| {
            let ino = tree.find(self.ino, name.to_bytes(), symlinks)?;
            tree.node(ino).xattrs.get(attribute.to_bytes()).cloned().ok_or(Errno::NODATA)
        })
    }

    fn set_xattr(&self, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()> {
        self.change(Operation::SetXattr, name, SymlinkBehavior::NoFollow, |node| {
            if node.kind == FileKind::Symlink && attribute.to_bytes().starts_with(b"user.") {
                return Err(Errno::PERM);
            }
            node.xattrs.insert(attribute.to_bytes().to_vec(), value.to_vec());
            Ok(())
        })
    }

    fn remove_xattr(&self, name: &CStr, attribute: &CStr) -> Result<()> {
        self.change(Operation::SetXattr, name, SymlinkBehavior::NoFollow, |node| {
            let is_list = attribute.to_bytes().starts_with(b"system.posix_acl_");
            match node.xattrs.remove(attribute.to_bytes()) {
                None if !is_list => Err(Errno::NODATA),
                _ => Ok(()),
            }
        })
    }

    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()> {
        let kind = match kind {
            RemoveKind::File => FileKind::File,
            RemoveKind::Directory => FileKind::Directory,
        };
        self.attempt(Operation::Remove, name.to_bytes(), |mut tree| {
            tree.remove(self.ino, name.to_bytes(), kind)
        })
    }

    fn open_file(&self, name: &CStr, access: Access, symlinks: SymlinkBehavior) -> Result<MemoryFile> {
        let ino = self.attempt(Operation::OpenFile, name.to_bytes(), |mut tree| {
            let ino = tree.find(self.ino, name.to_bytes(), symlinks)?;
            match (tree.node(ino).kind, access) {
                (FileKind::Symlink, _) => return Err(Errno::LOOP),
                (FileKind::Directory, Access::Write | Access::Truncate | Access::WriteStream) => {
                    return Err(Errno::ISDIR);
                }
                (FileKind::File, Access::Truncate) => tree.data_mut(ino)?.clear(),
                _ => {}
            }
            Ok(ino)
        })?;
        Ok(self.file(name.to_bytes(), ino))
    }

    fn create_file(&self, name: &CStr, mode: u32) -> Result<MemoryFile> {
        let ino = self.attempt(Operation::CreateFile, name.to_bytes(), |mut tree| {
            tree.create(self.ino, name.to_bytes(), FileKind::File, mode, Content::Data(Vec::new()))
        })?;
        Ok(self.file(name.to_bytes(), ino))
    }

    fn create_staged(&self, name: &CStr, mode: u32, _: &Intended<'_>) -> Result<MemoryFile> {
        self.create_file(name, mode)
    }

    fn complete(&self) -> Result<()> {
        Ok(())
    }

    fn capabilities(&self, _: &CStr) -> Capabilities {
        Capabilities::all()
    }

    fn beside_files(&self) -> Result<Self> {
        self.open_dir_for_names(c".", SymlinkBehavior::NoFollow)
    }

    fn as_file(&self) -> Result<MemoryFile> {
        self.attempt(Operation::OpenFile, b"", |_| Ok(()))?;
        Ok(self.file(b"", self.ino))
    }

    fn create_dir(&self, name: &CStr, mode: u32) -> Result<()> {
        self.attempt(Operation::CreateDir, name.to_bytes(), |mut tree| {
            tree.create(self.ino, name.to_bytes(), FileKind::Directory, mode, Content::Nothing).map(drop)
        })
    }

    fn create_symlink(&self, name: &CStr, target: &CStr) -> Result<()> {
        let content = Content::Target(target.to_bytes().to_vec());
        self.attempt(Operation::CreateSymlink, name.to_bytes(), |mut tree| {
            tree.create(self.ino, name.to_bytes(), FileKind::Symlink, 0o777, content).map(drop)
        })
    }

    fn create_node(&self, name: &CStr, kind: NodeKind, mode: u32) -> Result<()> {
        self.attempt(Operation::CreateNode, name.to_bytes(), |mut tree| {
            tree.create_node(self.ino, name.to_bytes(), kind, mode)
        })
    }

    fn hard_link(&self, name: &CStr, symlinks: SymlinkBehavior, other: &Self, new_name: &CStr) -> Result<()> {
        self.attempt(Operation::HardLink, name.to_bytes(), |mut tree| {
            let ino = tree.find(self.ino, name.to_bytes(), symlinks)?;
            tree.link(ino, other.ino, new_name.to_bytes())
        })
    }

    fn rename_new(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        match other.metadata(new_name, SymlinkBehavior::NoFollow, Fields::INO) {
            Err(error) if error.errno == Errno::NOENT => self.rename(name, other, new_name),
            Err(error) => Err(error),
            Ok(_) => Err(Error::new(Operation::Rename, Errno::EXIST)),
        }
    }

    fn rename(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        self.attempt(Operation::Rename, name.to_bytes(), |mut tree| {
            tree.rename(self.ino, name.to_bytes(), other.ino, new_name.to_bytes())
        })
    }

    fn exchange(&self, name: &CStr, other: &Self, other_name: &CStr) -> Result<()> {
        self.attempt(Operation::Rename, name.to_bytes(), |mut tree| {
            tree.exchange(self.ino, name.to_bytes(), other.ino, other_name.to_bytes())
        })
    }

    fn set_times(&self, name: &CStr, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        self.change(Operation::SetTimes, name, SymlinkBehavior::NoFollow, |node| {
            (node.atime, node.mtime) = (atime, mtime);
            Ok(())
        })
    }

    /// The caller may do everything, except execute a file without an execute bit.
    fn permits(&self, name: &CStr, permission: Permission, _: User) -> Result<bool> {
        self.attempt(Operation::CheckAccess, name.to_bytes(), |tree| {
            let node = tree.node(tree.find(self.ino, name.to_bytes(), SymlinkBehavior::Follow)?);
            let executes = node.kind == FileKind::Directory || node.mode & 0o111 != 0;
            Ok(permission != Permission::Execute || executes)
        })
    }

    fn path_for_children(&self) -> Result<CString> {
        Err(Error::new(Operation::OpenDir, Errno::OPNOTSUPP))
    }

    fn set_mode(&self, name: &CStr, mode: u32, symlinks: SymlinkBehavior) -> Result<()> {
        self.attempt(Operation::SetMode, name.to_bytes(), |mut tree| {
            tree.set_mode(self.ino, name.to_bytes(), mode, symlinks)
        })
    }

    fn set_owner(&self, name: &CStr, owner: Ownership, symlinks: SymlinkBehavior) -> Result<()> {
        self.change(Operation::SetOwner, name, symlinks, |node| {
            node.uid = owner.uid.unwrap_or(node.uid);
            node.gid = owner.gid.unwrap_or(node.gid);
            Ok(())
        })
    }
}
