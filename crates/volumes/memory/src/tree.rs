//! The nodes of the volume and their names.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use millstream_vfs::{Errno, Fields, FileKind, Metadata, NodeKind, SymlinkBehavior, Timestamp};

/// Index of a node, one less than its inode number.
pub(crate) type Ino = usize;

/// The root directory.
pub(crate) const ROOT: Ino = 0;

/// The volume's `st_dev`; no kernel assigns such a number.
const DEVICE: u64 = 0x4d45_4d00_0000_0001;
const MAX_LINKS_FOLLOWED: u32 = 40;
const NAME_MAX: usize = 255;
const BLOCK: usize = 4096;

/// A file of any type.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: FileKind,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub atime: Timestamp,
    pub mtime: Timestamp,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub is_locked: bool,
    nlink: u64,
    rdev: u64,
    ctime: Timestamp,
    btime: Timestamp,
    content: Content,
}

/// The content of a node.
#[derive(Debug)]
pub(crate) enum Content {
    /// None, as for a device. Also given when creating a directory, which then gets its entries.
    Nothing,
    /// The data of a file.
    Data(Vec<u8>),
    /// The target of a symbolic link.
    Target(Vec<u8>),
    /// The entries of a directory, and its parent and name.
    Entries { parent: Ino, name: Vec<u8>, names: BTreeMap<Vec<u8>, Ino> },
}

/// All nodes.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Self {
        let content = Content::Entries { parent: ROOT, name: Vec::new(), names: BTreeMap::new() };
        Tree { nodes: vec![Node::new(FileKind::Directory, 0o755, 0, content)] }
    }
}

impl Node {
    fn new(kind: FileKind, mode: u32, rdev: u64, content: Content) -> Self {
        let now = now();
        Node {
            kind,
            mode,
            uid: 0,
            gid: 0,
            atime: now,
            mtime: now,
            xattrs: BTreeMap::new(),
            is_locked: false,
            nlink: 1,
            rdev,
            ctime: now,
            btime: now,
            content,
        }
    }

    /// Records that the attributes have changed.
    pub fn touch(&mut self) {
        self.ctime = now();
    }
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { sec: i64::try_from(now.as_secs()).unwrap_or(i64::MAX), nsec: now.subsec_nanos() }
}

impl Tree {
    pub fn node(&self, ino: Ino) -> &Node {
        &self.nodes[ino]
    }

    pub fn node_mut(&mut self, ino: Ino) -> &mut Node {
        &mut self.nodes[ino]
    }

    pub fn metadata(&self, ino: Ino) -> Metadata {
        let node = self.node(ino);
        let (size, subdirectories) = match &node.content {
            Content::Nothing => (0, 0),
            Content::Data(bytes) | Content::Target(bytes) => (bytes.len(), 0),
            Content::Entries { names, .. } => {
                let is_directory = |ino: &&Ino| self.node(**ino).kind == FileKind::Directory;
                (BLOCK, 1 + names.values().filter(is_directory).count())
            }
        };
        let blocks = if node.kind == FileKind::Symlink { 0 } else { size.div_ceil(BLOCK) * (BLOCK / 512) };
        Metadata {
            fields: Fields::STAT | Fields::BTIME,
            mode: u32::from(node.kind.dirent_type()) << 12 | node.mode,
            nlink: node.nlink + subdirectories as u64,
            uid: node.uid,
            gid: node.gid,
            dev: DEVICE,
            rdev: node.rdev,
            ino: ino as u64 + 1,
            size: size as u64,
            blocks: blocks as u64,
            block_size: BLOCK as u32,
            is_mount_root: false,
            is_immovable: false,
            atime: node.atime,
            mtime: node.mtime,
            ctime: node.ctime,
            btime: node.btime,
        }
    }

    pub fn entries(&self, ino: Ino) -> Result<&BTreeMap<Vec<u8>, Ino>, Errno> {
        match &self.node(ino).content {
            Content::Entries { names, .. } => Ok(names),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn entries_mut(&mut self, ino: Ino) -> Result<&mut BTreeMap<Vec<u8>, Ino>, Errno> {
        let node = &mut self.nodes[ino];
        (node.mtime, node.ctime) = (now(), now());
        match &mut node.content {
            Content::Entries { names, .. } => Ok(names),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub fn data(&self, ino: Ino) -> Result<&[u8], Errno> {
        match &self.node(ino).content {
            Content::Data(data) => Ok(data),
            Content::Entries { .. } => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    /// The data, for changing it.
    pub fn data_mut(&mut self, ino: Ino) -> Result<&mut Vec<u8>, Errno> {
        let node = &mut self.nodes[ino];
        (node.mtime, node.ctime) = (now(), now());
        match &mut node.content {
            Content::Data(data) => Ok(data),
            Content::Entries { .. } => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub fn target(&self, ino: Ino) -> Result<Vec<u8>, Errno> {
        match &self.node(ino).content {
            Content::Target(target) => Ok(target.clone()),
            _ => Err(Errno::INVAL),
        }
    }

    pub fn parent(&self, ino: Ino) -> Ino {
        match &self.node(ino).content {
            Content::Entries { parent, .. } => *parent,
            _ => ROOT,
        }
    }

    /// Path of a directory from the root, whose own path is empty.
    pub fn path_of(&self, directory: Ino) -> Vec<u8> {
        let mut parts = Vec::new();
        let mut at = directory;
        while let Content::Entries { parent, name, .. } = &self.node(at).content
            && at != ROOT
        {
            parts.push([b"/", &name[..]].concat());
            at = *parent;
        }
        parts.into_iter().rev().flatten().collect()
    }

    /// The node at a path.
    pub fn find(&self, from: Ino, path: &[u8], symlinks: SymlinkBehavior) -> Result<Ino, Errno> {
        let mut links = MAX_LINKS_FOLLOWED;
        self.follow(from, path, symlinks, &mut links)
    }

    fn follow(
        &self,
        from: Ino,
        path: &[u8],
        symlinks: SymlinkBehavior,
        links: &mut u32,
    ) -> Result<Ino, Errno> {
        let is_directory = path.ends_with(b"/");
        let mut at = if path.starts_with(b"/") { ROOT } else { from };
        let mut parts = path.split(|&b| b == b'/').filter(|part| !part.is_empty()).peekable();
        if parts.peek().is_none() && !is_directory {
            return if path.is_empty() && from == ROOT { Ok(ROOT) } else { Err(Errno::NOENT) };
        }
        while let Some(part) = parts.next() {
            let next = self.step(at, part)?;
            let follows = symlinks == SymlinkBehavior::Follow || is_directory || parts.peek().is_some();
            at = match &self.node(next).content {
                Content::Target(target) if follows => {
                    *links = links.checked_sub(1).ok_or(Errno::LOOP)?;
                    self.follow(at, target, SymlinkBehavior::Follow, links)?
                }
                _ => next,
            };
        }
        if is_directory { self.entries(at).map(|_| at) } else { Ok(at) }
    }

    fn step(&self, at: Ino, name: &[u8]) -> Result<Ino, Errno> {
        let entries = self.entries(at)?;
        match name {
            b"." => Ok(at),
            b".." => Ok(self.parent(at)),
            name if name.len() > NAME_MAX => Err(Errno::NAMETOOLONG),
            name => entries.get(name).copied().ok_or(Errno::NOENT),
        }
    }

    /// The directory that holds the last component of a path, and that component.
    fn locate<'p>(&self, from: Ino, path: &'p [u8]) -> Result<(Ino, &'p [u8]), Errno> {
        let end = path.iter().rposition(|&b| b != b'/').map_or(0, |last| last + 1);
        let start = path[..end].iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        let name = &path[start..end];
        let directory = match &path[..start] {
            b"" => from,
            above => self.find(from, above, SymlinkBehavior::Follow)?,
        };
        match name {
            b"" => Err(Errno::NOENT),
            b"." | b".." => Err(Errno::INVAL),
            name if name.len() > NAME_MAX => Err(Errno::NAMETOOLONG),
            name => Ok((directory, name)),
        }
    }

    /// Creates a node under a new name.
    pub fn create(
        &mut self,
        from: Ino,
        path: &[u8],
        kind: FileKind,
        mode: u32,
        content: Content,
    ) -> Result<Ino, Errno> {
        let (parent, name) = self.locate(from, path)?;
        if self.entries(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        let content = match kind {
            FileKind::Directory => Content::Entries { parent, name: name.to_vec(), names: BTreeMap::new() },
            _ => content,
        };
        let ino = self.nodes.len();
        self.nodes.push(Node::new(kind, mode & 0o7777, 0, content));
        self.entries_mut(parent)?.insert(name.to_vec(), ino);
        Ok(ino)
    }

    pub fn create_node(&mut self, from: Ino, path: &[u8], kind: NodeKind, mode: u32) -> Result<(), Errno> {
        let (kind, rdev) = match kind {
            NodeKind::Fifo => (FileKind::Fifo, 0),
            NodeKind::Socket => (FileKind::Socket, 0),
            NodeKind::CharDevice(device) => (FileKind::CharDevice, device),
            NodeKind::BlockDevice(device) => (FileKind::BlockDevice, device),
        };
        let ino = self.create(from, path, kind, mode, Content::Nothing)?;
        self.nodes[ino].rdev = rdev;
        Ok(())
    }

    /// Creates a hard link of a node.
    pub fn link(&mut self, ino: Ino, from: Ino, path: &[u8]) -> Result<(), Errno> {
        if self.node(ino).kind == FileKind::Directory {
            return Err(Errno::PERM);
        }
        let (parent, name) = self.locate(from, path)?;
        if self.entries(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        self.entries_mut(parent)?.insert(name.to_vec(), ino);
        self.nodes[ino].nlink += 1;
        self.nodes[ino].touch();
        Ok(())
    }

    /// Removes a name.
    pub fn remove(&mut self, from: Ino, path: &[u8], wanted: FileKind) -> Result<(), Errno> {
        let (parent, name) = self.locate(from, path)?;
        let ino = self.step(parent, name)?;
        match (&self.node(ino).content, wanted) {
            (Content::Entries { names, .. }, FileKind::Directory) if !names.is_empty() => {
                return Err(Errno::NOTEMPTY);
            }
            (Content::Entries { .. }, FileKind::Directory) => {}
            (Content::Entries { .. }, _) => return Err(Errno::ISDIR),
            (_, FileKind::Directory) => return Err(Errno::NOTDIR),
            _ => {}
        }
        self.forget(parent, name)
    }

    fn forget(&mut self, parent: Ino, name: &[u8]) -> Result<(), Errno> {
        let ino = self.entries_mut(parent)?.remove(name).ok_or(Errno::NOENT)?;
        self.nodes[ino].nlink -= 1;
        self.nodes[ino].touch();
        Ok(())
    }

    /// Whether `ino` is `directory` or below it.
    fn is_within(&self, mut ino: Ino, directory: Ino) -> bool {
        while ino != directory {
            if ino == ROOT {
                return false;
            }
            ino = self.parent(ino);
        }
        true
    }

    pub fn rename(&mut self, from: Ino, path: &[u8], to: Ino, new: &[u8]) -> Result<(), Errno> {
        let (parent, name) = self.locate(from, path)?;
        let (new_parent, new_name) = self.locate(to, new)?;
        let ino = self.step(parent, name)?;
        let is_directory = self.node(ino).kind == FileKind::Directory;
        if is_directory && self.is_within(new_parent, ino) {
            return Err(Errno::INVAL);
        }
        match self.step(new_parent, new_name) {
            Ok(there) if there == ino => return Ok(()),
            Ok(there) => match (is_directory, self.entries(there)) {
                (true, Err(_)) => return Err(Errno::NOTDIR),
                (false, Ok(_)) => return Err(Errno::ISDIR),
                (true, Ok(names)) if !names.is_empty() => return Err(Errno::NOTEMPTY),
                _ => self.forget(new_parent, new_name)?,
            },
            Err(_) => {}
        }
        self.entries_mut(parent)?.remove(name);
        self.put(ino, new_parent, new_name)
    }

    /// Adds a node to a directory, and updates the node's parent and name.
    fn put(&mut self, ino: Ino, directory: Ino, new_name: &[u8]) -> Result<(), Errno> {
        self.entries_mut(directory)?.insert(new_name.to_vec(), ino);
        self.nodes[ino].touch();
        if let Content::Entries { parent, name, .. } = &mut self.nodes[ino].content {
            (*parent, *name) = (directory, new_name.to_vec());
        }
        Ok(())
    }

    /// Exchanges the names of two nodes.
    pub fn exchange(&mut self, from: Ino, path: &[u8], other: Ino, other_path: &[u8]) -> Result<(), Errno> {
        let (parent, name) = self.locate(from, path)?;
        let (other_parent, other_name) = self.locate(other, other_path)?;
        let (one, two) = (self.step(parent, name)?, self.step(other_parent, other_name)?);
        let is_directory = |ino: Ino| self.node(ino).kind == FileKind::Directory;
        if is_directory(one) && self.is_within(other_parent, one)
            || is_directory(two) && self.is_within(parent, two)
        {
            return Err(Errno::INVAL);
        }
        self.put(two, parent, name)?;
        self.put(one, other_parent, other_name)
    }

    pub fn set_mode(
        &mut self,
        from: Ino,
        path: &[u8],
        mode: u32,
        symlinks: SymlinkBehavior,
    ) -> Result<(), Errno> {
        let ino = self.find(from, path, symlinks)?;
        if self.node(ino).kind == FileKind::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        self.nodes[ino].mode = mode & 0o7777;
        self.nodes[ino].touch();
        Ok(())
    }
}
