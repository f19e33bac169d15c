//! Attributes of a file, and the set of attributes that a caller requests.

use std::cmp::Ordering;

/// The type of a file, as in `d_type` of a dirent or `S_IFMT` of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Not known without a stat.
    Unknown,
    /// Named pipe.
    Fifo,
    /// Character device.
    CharDevice,
    /// Directory.
    Directory,
    /// Block device.
    BlockDevice,
    /// Regular file.
    File,
    /// Symbolic link.
    Symlink,
    /// Unix domain socket.
    Socket,
}

impl FileKind {
    /// From the file type bits of a mode (`st_mode & S_IFMT`).
    pub fn from_mode(mode: u32) -> Self {
        Self::from_dirent_type((mode >> 12) as u8 & 0o17)
    }

    /// From `d_type` of a dirent: `DT_REG` and the others are the mode's type bits shifted by 12.
    pub fn from_dirent_type(d_type: u8) -> Self {
        match d_type {
            1 => FileKind::Fifo,
            2 => FileKind::CharDevice,
            4 => FileKind::Directory,
            6 => FileKind::BlockDevice,
            8 => FileKind::File,
            10 => FileKind::Symlink,
            12 => FileKind::Socket,
            _ => FileKind::Unknown,
        }
    }

    /// The inverse of [`FileKind::from_dirent_type`].
    pub fn dirent_type(self) -> u8 {
        match self {
            FileKind::Unknown => 0,
            FileKind::Fifo => 1,
            FileKind::CharDevice => 2,
            FileKind::Directory => 4,
            FileKind::BlockDevice => 6,
            FileKind::File => 8,
            FileKind::Symlink => 10,
            FileKind::Socket => 12,
        }
    }
}

bitflags::bitflags! {
    /// Attributes of a file; the bits are those of `statx(2)`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Fields: u32 {
        /// Type bits of the mode.
        const KIND = 0x001;
        /// Permission bits of the mode.
        const MODE = 0x002;
        /// Number of hard links.
        const NLINK = 0x004;
        /// Owner.
        const UID = 0x008;
        /// Group.
        const GID = 0x010;
        /// Last access.
        const ATIME = 0x020;
        /// Last change of the contents.
        const MTIME = 0x040;
        /// Last change of the attributes.
        const CTIME = 0x080;
        /// Inode number.
        const INO = 0x100;
        /// Size in bytes.
        const SIZE = 0x200;
        /// Allocated blocks.
        const BLOCKS = 0x400;
        /// Creation.
        const BTIME = 0x800;
        /// All fields of `stat(2)`.
        const STAT = 0x7ff;
    }
}

const NANOS_OF_SECOND: i128 = 1_000_000_000;

/// A time in seconds and nanoseconds since 1970-01-01 UTC. Nanoseconds count forward, before 1970 too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub sec: i64,
    /// Nanoseconds within the second, 0 to 999,999,999.
    pub nsec: u32,
}

impl Timestamp {
    /// Milliseconds since 1970, rounded down.
    pub fn as_millis(self) -> i64 {
        self.sec.saturating_mul(1000).saturating_add(i64::from(self.nsec / 1_000_000))
    }

    /// Nanoseconds since 1970; the nearest that there are for times before 1677 and after 2262.
    pub fn as_nanos(self) -> i64 {
        let nanos = i128::from(self.sec) * NANOS_OF_SECOND + i128::from(self.nsec);
        nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The opposite of [`Timestamp::as_millis`].
    pub fn from_millis(millis: i64) -> Self {
        Timestamp { sec: millis.div_euclid(1000), nsec: millis.rem_euclid(1000) as u32 * 1_000_000 }
    }

    /// The opposite of [`Timestamp::as_nanos`].
    pub fn from_nanos(nanos: i64) -> Self {
        let second = NANOS_OF_SECOND as i64;
        Timestamp { sec: nanos.div_euclid(second), nsec: nanos.rem_euclid(second) as u32 }
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.sec, self.nsec).cmp(&(other.sec, other.nsec))
    }
}

/// Attributes of a file. Only those in [`Metadata::fields`] are meaningful; `dev`, `rdev`, `block_size`,
/// `is_mount_root` and `is_immovable` always are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Which attributes are filled.
    pub fields: Fields,
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device that holds the file.
    pub dev: u64,
    /// Device number, if the file is a device.
    pub rdev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Allocated space, in units of 512 bytes.
    pub blocks: u64,
    /// Preferred size of a transfer, in bytes.
    pub block_size: u32,
    /// Whether another file system, or a part of one, is mounted here; false where the system does not tell.
    pub is_mount_root: bool,
    /// Whether it is immutable or append-only (`chattr +i`, `+a`), so that it cannot be renamed or removed; false where
    /// the system does not tell.
    pub is_immovable: bool,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the contents.
    pub mtime: Timestamp,
    /// Last change of the attributes.
    pub ctime: Timestamp,
    /// Creation, if `fields` has it.
    pub btime: Timestamp,
}

impl Metadata {
    /// The type of the file.
    pub fn kind(&self) -> FileKind {
        FileKind::from_mode(self.mode)
    }

    /// Device and inode number, which identify a file.
    pub fn identity(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}
