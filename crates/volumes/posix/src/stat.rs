//! Conversion of metadata from `statx(2)`, and of times for `utimensat(2)`.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use millstream_vfs::{Error, Fields, Metadata, Operation, Result, Timestamp};
use rustix::fs::{self, AtFlags, Statx, StatxAttributes, StatxFlags, StatxTimestamp, Timespec, Timestamps};
use rustix::io::retry_on_intr;

pub(crate) fn statx(fd: BorrowedFd<'_>, name: &CStr, flags: AtFlags, fields: Fields) -> Result<Metadata> {
    statx_of_mounted(fd, name, flags | AtFlags::NO_AUTOMOUNT, fields)
}

/// Mounts what the kernel mounts when a directory is entered, and examines that.
pub(crate) fn statx_of_mounted(
    fd: BorrowedFd<'_>,
    name: &CStr,
    flags: AtFlags,
    fields: Fields,
) -> Result<Metadata> {
    let mask = StatxFlags::from_bits_retain(fields.bits());
    retry_on_intr(|| fs::statx(fd, name, flags, mask))
        .map(|raw| convert(&raw))
        .map_err(|errno| Error::new(Operation::Stat, errno))
}

fn convert(raw: &Statx) -> Metadata {
    Metadata {
        fields: Fields::from_bits_truncate(raw.stx_mask),
        mode: u32::from(raw.stx_mode),
        nlink: u64::from(raw.stx_nlink),
        uid: raw.stx_uid,
        gid: raw.stx_gid,
        dev: fs::makedev(raw.stx_dev_major, raw.stx_dev_minor),
        rdev: fs::makedev(raw.stx_rdev_major, raw.stx_rdev_minor),
        ino: raw.stx_ino,
        size: raw.stx_size,
        blocks: raw.stx_blocks,
        block_size: raw.stx_blksize,
        is_mount_root: raw.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        is_immovable: raw.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
        atime: timestamp(&raw.stx_atime),
        mtime: timestamp(&raw.stx_mtime),
        ctime: timestamp(&raw.stx_ctime),
        btime: timestamp(&raw.stx_btime),
    }
}

fn timestamp(raw: &StatxTimestamp) -> Timestamp {
    Timestamp { sec: raw.tv_sec, nsec: raw.tv_nsec }
}

pub(crate) fn times(atime: Timestamp, mtime: Timestamp) -> Timestamps {
    let spec = |time: Timestamp| Timespec { tv_sec: time.sec, tv_nsec: time.nsec.into() };
    Timestamps { last_access: spec(atime), last_modification: spec(mtime) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_bits_are_those_of_statx() {
        for (ours, theirs) in [
            (Fields::KIND, StatxFlags::TYPE),
            (Fields::MODE, StatxFlags::MODE),
            (Fields::NLINK, StatxFlags::NLINK),
            (Fields::UID, StatxFlags::UID),
            (Fields::GID, StatxFlags::GID),
            (Fields::ATIME, StatxFlags::ATIME),
            (Fields::MTIME, StatxFlags::MTIME),
            (Fields::CTIME, StatxFlags::CTIME),
            (Fields::INO, StatxFlags::INO),
            (Fields::SIZE, StatxFlags::SIZE),
            (Fields::BLOCKS, StatxFlags::BLOCKS),
            (Fields::STAT, StatxFlags::BASIC_STATS),
            (Fields::BTIME, StatxFlags::BTIME),
        ] {
            assert_eq!(ours.bits(), theirs.bits());
        }
    }
}
