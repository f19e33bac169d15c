//! Handles of the POSIX volume.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use millstream_vfs::{
    Access, Capabilities, Dir, DirentBatch, Error, Fields, Intended, Metadata, MountBehavior, NodeKind,
    Operation, Ownership, Permission, ReadState, RemoveKind, Result, SymlinkBehavior, Timestamp, User,
    Volume, open_by_names,
};
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, XattrFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Gid, Resource, Uid, getrlimit};

use crate::file::PosixFile;
use crate::stat::{statx, statx_of_mounted, times};
use crate::syscalls;

/// The file systems that the kernel has mounted.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixVolume;

/// Descriptors reserved for everything but directory handles: standard streams, outputs, pipes to children.
const RESERVED_FDS: u64 = 32;
/// Assumed limit if the process has none.
const UNLIMITED_FDS: u64 = 1 << 20;

impl Volume for PosixVolume {
    type Dir = PosixDir;

    fn base(&self) -> PosixDir {
        PosixDir { fd: None, is_for_names: false }
    }

    fn max_open_dirs(&self) -> usize {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED_FDS);
        usize::try_from(limit.saturating_sub(RESERVED_FDS).max(4)).unwrap_or(usize::MAX)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }
}

/// A directory file descriptor, or the current directory of the process.
#[derive(Debug)]
pub struct PosixDir {
    /// `None` is the base, `AT_FDCWD`.
    fd: Option<OwnedFd>,
    /// Whether it was opened without permission to list it.
    is_for_names: bool,
}

impl AsFd for PosixDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().map_or(CWD, |fd| fd.as_fd())
    }
}

const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

impl PosixDir {
    fn open(&self, name: &CStr, flags: OFlags) -> Result<Self> {
        retry_on_intr(|| fs::openat(self, name, flags, Mode::empty()))
            .map(|fd| PosixDir { fd: Some(fd), is_for_names: flags.contains(OFlags::PATH) })
            .map_err(|errno| Error::new(Operation::OpenDir, errno))
    }

    fn statx(&self, name: &CStr, flags: AtFlags, fields: Fields) -> Result<Metadata> {
        statx(self.as_fd(), name, flags, fields)
    }
}

fn flags_of(symlinks: SymlinkBehavior) -> AtFlags {
    match symlinks {
        SymlinkBehavior::Follow => AtFlags::empty(),
        SymlinkBehavior::NoFollow => AtFlags::SYMLINK_NOFOLLOW,
    }
}

impl Dir for PosixDir {
    /// The kernel keeps the position in the open file description.
    type Cursor = ();
    type File = PosixFile;

    fn open_dir(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        match symlinks {
            SymlinkBehavior::Follow => self.open(name, OPEN_DIR),
            SymlinkBehavior::NoFollow => self.open(name, OPEN_DIR | OFlags::NOFOLLOW),
        }
    }

    fn open_dir_for_names(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        match self.open_dir(name, symlinks) {
            Err(error) if error.errno == Errno::ACCESS => {
                let follow = match symlinks {
                    SymlinkBehavior::Follow => OFlags::empty(),
                    SymlinkBehavior::NoFollow => OFlags::NOFOLLOW,
                };
                self.open(name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | follow)
            }
            opened => opened,
        }
    }

    fn open_below(&self, path: &CStr, mounts: MountBehavior) -> Result<Self> {
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | match mounts {
                MountBehavior::Enter => ResolveFlags::empty(),
                MountBehavior::Refuse => ResolveFlags::NO_XDEV,
            };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match retry_on_intr(|| fs::openat2(self, path, flags, Mode::empty(), resolve)) {
            Ok(fd) => Ok(PosixDir { fd: Some(fd), is_for_names: true }),
            // Kernels before 5.6 and the filters of some containers lack the call, and its paths have a limit that ours
            // have not.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => {
                open_by_names(self, path, mounts)
            }
            Err(errno) => Err(Error::new(Operation::OpenDir, errno)),
        }
    }

    fn open_parent(&self) -> Result<Self> {
        self.open(c"..", OPEN_DIR)
    }

    fn metadata(&self, name: &CStr, symlinks: SymlinkBehavior, fields: Fields) -> Result<Metadata> {
        self.statx(name, flags_of(symlinks), fields)
    }

    fn device_within(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<u64> {
        statx_of_mounted(self.as_fd(), name, flags_of(symlinks), Fields::INO).map(|metadata| metadata.dev)
    }

    fn identity(&self) -> Result<(u64, u64)> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let name = if self.fd.is_some() { c"" } else { c"." };
        self.statx(name, flags, Fields::INO).map(|metadata| metadata.identity())
    }

    fn own_metadata(&self, fields: Fields) -> Result<Metadata> {
        match self.fd {
            Some(_) => self.statx(c"", AtFlags::EMPTY_PATH, fields),
            None => self.statx(c".", AtFlags::empty(), fields),
        }
    }

    fn read_entries(&self, (): &mut (), batch: &mut DirentBatch) -> Result<ReadState> {
        let fd = self.fd.as_ref().ok_or(Error::new(Operation::ReadDir, Errno::BADF))?;
        let read = batch.fill(|buffer| retry_on_intr(|| syscalls::getdents64(fd.as_fd(), buffer)));
        match read {
            Ok(0) => Ok(ReadState::End),
            Ok(_) => Ok(ReadState::More),
            // Linux returns ENOENT for a directory that was removed while open: it has no entries any more.
            Err(Errno::NOENT) => Ok(ReadState::End),
            Err(errno) => Err(Error::new(Operation::ReadDir, errno)),
        }
    }

    fn read_link(&self, name: &CStr) -> Result<Vec<u8>> {
        retry_on_intr(|| fs::readlinkat(self, name, Vec::new()))
            .map(std::ffi::CString::into_bytes)
            .map_err(|errno| Error::new(Operation::ReadLink, errno))
    }

    fn list_xattr(&self, name: &CStr, names: &mut Vec<u8>) -> Result<()> {
        syscalls::list_xattr_at(self.as_fd(), name, names)
            .map_err(|errno| Error::new(Operation::ListXattr, errno))
    }

    fn get_xattr(&self, name: &CStr, attribute: &CStr, symlinks: SymlinkBehavior) -> Result<Vec<u8>> {
        syscalls::get_xattr_at(self.as_fd(), name, attribute, symlinks)
            .map_err(|errno| Error::new(Operation::GetXattr, errno))
    }

    fn set_xattr(&self, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()> {
        syscalls::proc_path(self.as_fd(), name)
            .and_then(|path| fs::lsetxattr(&path, attribute, value, XattrFlags::empty()))
            .map_err(|errno| Error::new(Operation::SetXattr, errno))
    }

    fn remove_xattr(&self, name: &CStr, attribute: &CStr) -> Result<()> {
        syscalls::proc_path(self.as_fd(), name)
            .and_then(|path| fs::lremovexattr(&path, attribute))
            .map_err(|errno| Error::new(Operation::SetXattr, errno))
    }

    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()> {
        let flags = match kind {
            RemoveKind::File => AtFlags::empty(),
            RemoveKind::Directory => AtFlags::REMOVEDIR,
        };
        retry_on_intr(|| fs::unlinkat(self, name, flags))
            .map_err(|errno| Error::new(Operation::Remove, errno))
    }

    fn open_file(&self, name: &CStr, access: Access, symlinks: SymlinkBehavior) -> Result<PosixFile> {
        let access = match access {
            Access::Read => OFlags::RDONLY | OFlags::NONBLOCK,
            Access::ReadStream => OFlags::RDONLY,
            Access::Write => OFlags::WRONLY | OFlags::NONBLOCK,
            Access::Truncate => OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK,
            Access::WriteStream => OFlags::WRONLY,
        };
        let follow = match symlinks {
            SymlinkBehavior::Follow => OFlags::empty(),
            SymlinkBehavior::NoFollow => OFlags::NOFOLLOW,
        };
        let flags = access | follow | OFlags::CLOEXEC | OFlags::NOCTTY;
        retry_on_intr(|| fs::openat(self, name, flags, Mode::empty()))
            .map(|fd| PosixFile { fd })
            .map_err(|errno| Error::new(Operation::OpenFile, errno))
    }

    fn create_file(&self, name: &CStr, mode: u32) -> Result<PosixFile> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry_on_intr(|| fs::openat(self, name, flags, Mode::from_bits_truncate(mode)))
            .map(|fd| PosixFile { fd })
            .map_err(|errno| Error::new(Operation::CreateFile, errno))
    }

    fn create_staged(&self, name: &CStr, mode: u32, _: &Intended<'_>) -> Result<PosixFile> {
        self.create_file(name, mode)
    }

    fn complete(&self) -> Result<()> {
        Ok(())
    }

    fn capabilities(&self, _: &CStr) -> Capabilities {
        PosixVolume.capabilities()
    }

    fn beside_files(&self) -> Result<Self> {
        self.open_dir_for_names(c".", SymlinkBehavior::NoFollow)
    }

    fn as_file(&self) -> Result<PosixFile> {
        let copy = match &self.fd {
            Some(fd) if self.is_for_names => fs::openat(fd, c".", OPEN_DIR, Mode::empty()),
            Some(fd) => rustix::io::fcntl_dupfd_cloexec(fd, 0),
            None => fs::openat(CWD, c".", OPEN_DIR, Mode::empty()),
        };
        copy.map(|fd| PosixFile { fd }).map_err(|errno| Error::new(Operation::OpenFile, errno))
    }

    fn create_dir(&self, name: &CStr, mode: u32) -> Result<()> {
        retry_on_intr(|| fs::mkdirat(self, name, Mode::from_bits_truncate(mode)))
            .map_err(|errno| Error::new(Operation::CreateDir, errno))
    }

    fn create_symlink(&self, name: &CStr, target: &CStr) -> Result<()> {
        retry_on_intr(|| fs::symlinkat(target, self, name))
            .map_err(|errno| Error::new(Operation::CreateSymlink, errno))
    }

    fn create_node(&self, name: &CStr, kind: NodeKind, mode: u32) -> Result<()> {
        let (kind, device) = match kind {
            NodeKind::Fifo => (FileType::Fifo, 0),
            NodeKind::Socket => (FileType::Socket, 0),
            NodeKind::CharDevice(device) => (FileType::CharacterDevice, device),
            NodeKind::BlockDevice(device) => (FileType::BlockDevice, device),
        };
        retry_on_intr(|| fs::mknodat(self, name, kind, Mode::from_bits_truncate(mode), device))
            .map_err(|errno| Error::new(Operation::CreateNode, errno))
    }

    fn hard_link(&self, name: &CStr, symlinks: SymlinkBehavior, other: &Self, new_name: &CStr) -> Result<()> {
        let flags = match symlinks {
            SymlinkBehavior::Follow => AtFlags::SYMLINK_FOLLOW,
            SymlinkBehavior::NoFollow => AtFlags::empty(),
        };
        retry_on_intr(|| fs::linkat(self, name, other, new_name, flags))
            .map_err(|errno| Error::new(Operation::HardLink, errno))
    }

    fn rename_new(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        retry_on_intr(|| fs::renameat_with(self, name, other, new_name, RenameFlags::NOREPLACE))
            .map_err(|errno| Error::new(Operation::Rename, errno))
    }

    fn rename(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        retry_on_intr(|| fs::renameat(self, name, other, new_name))
            .map_err(|errno| Error::new(Operation::Rename, errno))
    }

    fn exchange(&self, name: &CStr, other: &Self, other_name: &CStr) -> Result<()> {
        retry_on_intr(|| fs::renameat_with(self, name, other, other_name, RenameFlags::EXCHANGE))
            .map_err(|errno| Error::new(Operation::Rename, errno))
    }

    fn set_times(&self, name: &CStr, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        let times = times(atime, mtime);
        retry_on_intr(|| fs::utimensat(self, name, &times, AtFlags::SYMLINK_NOFOLLOW))
            .map_err(|errno| Error::new(Operation::SetTimes, errno))
    }

    fn permits(&self, name: &CStr, permission: Permission, user: User) -> Result<bool> {
        let access = match permission {
            Permission::Read => fs::Access::READ_OK,
            Permission::Write => fs::Access::WRITE_OK,
            Permission::Execute => fs::Access::EXEC_OK,
        };
        let flags = match user {
            User::Effective => AtFlags::EACCESS,
            User::Real => AtFlags::empty(),
        };
        match retry_on_intr(|| fs::accessat(self, name, access, flags)) {
            Ok(()) => Ok(true),
            Err(Errno::ACCESS) => Ok(false),
            Err(errno) => Err(Error::new(Operation::CheckAccess, errno)),
        }
    }

    /// A child has our descriptors until it executes the command.
    fn path_for_children(&self) -> Result<CString> {
        let path = match &self.fd {
            Some(fd) => format!("/proc/self/fd/{}", fd.as_raw_fd()),
            None => ".".to_owned(),
        };
        CString::new(path).map_err(|_| Error::new(Operation::OpenDir, Errno::INVAL))
    }

    fn set_mode(&self, name: &CStr, mode: u32, symlinks: SymlinkBehavior) -> Result<()> {
        let set = || match symlinks {
            SymlinkBehavior::Follow => fs::chmodat(self, name, Mode::from_raw_mode(mode), AtFlags::empty()),
            SymlinkBehavior::NoFollow => syscalls::set_mode_at(self.as_fd(), name, mode),
        };
        retry_on_intr(set).map_err(|errno| Error::new(Operation::SetMode, errno))
    }

    fn set_owner(&self, name: &CStr, owner: Ownership, symlinks: SymlinkBehavior) -> Result<()> {
        let flags = flags_of(symlinks);
        let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
        retry_on_intr(|| fs::chownat(self, name, uid, gid, flags))
            .map_err(|errno| Error::new(Operation::SetOwner, errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_vfs::FileKind;

    type OpenBelow = fn(&PosixDir, &CStr, MountBehavior) -> Result<PosixDir>;

    const WAYS: [OpenBelow; 2] = [PosixDir::open_below, open_by_names];

    /// The system call and the way without it find the same directories, and refuse the same ones.
    #[test]
    fn no_link_on_a_path_is_followed() {
        let scratch = tempfile::tempdir().expect("scratch directory");
        let top = scratch.path();
        std::fs::create_dir_all(top.join("a/b")).expect("mkdir");
        std::fs::write(top.join("a/file"), "").expect("write");
        for (target, name) in [("a", "link"), ("b", "a/inner"), ("/", "root")] {
            std::os::unix::fs::symlink(target, top.join(name)).expect("symlink");
        }
        let top = CString::new(top.as_os_str().as_encoded_bytes()).expect("no NUL");
        let top = PosixVolume.base().open_dir(&top, SymlinkBehavior::Follow).expect("opens");
        for open in WAYS {
            let found = |path| open(&top, path, MountBehavior::Refuse).and_then(|dir| dir.identity());
            let expected =
                top.metadata(c"a/b", SymlinkBehavior::NoFollow, Fields::INO).expect("stat").identity();
            assert_eq!(found(c"a/b"), Ok(expected));
            for path in [c"link", c"link/b", c"a/inner", c"root", c"a/file", c"a/file/x"] {
                let errno = found(path).expect_err("not followed").errno;
                assert!(matches!(errno, Errno::LOOP | Errno::NOTDIR), "{path:?}: {errno}");
            }
            assert_eq!(found(c"a/none/b").map_err(|error| error.errno), Err(Errno::NOENT));
        }
    }

    #[test]
    fn what_is_mounted_is_entered_only_if_it_may_be() {
        let root = PosixVolume.base().open_dir(c"/", SymlinkBehavior::Follow).expect("opens");
        for open in WAYS {
            assert!(open(&root, c"proc/sys", MountBehavior::Enter).is_ok());
            let refused = open(&root, c"proc/sys", MountBehavior::Refuse).map(drop);
            assert_eq!(refused.map_err(|error| error.errno), Err(Errno::XDEV));
        }
    }

    #[test]
    fn metadata_of_a_device_has_its_number() {
        let null =
            PosixVolume.base().metadata(c"/dev/null", SymlinkBehavior::NoFollow, Fields::STAT).expect("stat");
        assert_eq!(null.kind(), FileKind::CharDevice);
        assert_eq!((fs::major(null.rdev), fs::minor(null.rdev)), (1, 3));
    }
}
