//! Times, owners, modes, extended attributes and access control lists of one entry, given as bytes to the
//! kernel.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, utimensat};

pub const ACCESS_LIST: &str = "system.posix_acl_access";
pub const DEFAULT_LIST: &str = "system.posix_acl_default";

/// An access control list as the kernel has it: besides owner, group and others (permission bits of three
/// digits), one user and one group. The mask lets through `mask`.
pub fn list(permissions: u16, user: (u32, u16), group: (u32, u16), mask: u16) -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    let entries = [
        (1, permissions >> 6 & 7, NO_ID),
        (2, user.1, user.0),
        (4, permissions >> 3 & 7, NO_ID),
        (8, group.1, group.0),
        (16, mask, NO_ID),
        (32, permissions & 7, NO_ID),
    ];
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, may, id) in entries {
        bytes.extend([u16::to_le_bytes(tag), u16::to_le_bytes(may)].concat());
        bytes.extend(u32::to_le_bytes(id));
    }
    bytes
}

pub fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
        .unwrap_or_else(|error| panic!("{name} of {}: {error}", path.display()));
}

/// Removes an attribute, if it is there.
pub fn remove_attribute(path: &Path, name: &str) {
    // Most entries have none.
    let _ = rustix::fs::lremovexattr(path, name);
}

/// All extended attributes, lists of permissions among them.
pub fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 65_536];
    let length = rustix::fs::llistxattr(path, &mut names[..]).expect("a list of attributes");
    let names = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let mut all: Vec<_> = names
        .map(|name| {
            let name = String::from_utf8_lossy(name).into_owned();
            let mut value = vec![0; 65_536];
            let length = rustix::fs::lgetxattr(path, &name, &mut value[..]).expect("an attribute");
            value.truncate(length);
            (name, value)
        })
        .collect();
    all.sort();
    all
}

pub fn set_mode(path: &Path, mode: u32) {
    rustix::fs::chmodat(CWD, path, rustix::fs::Mode::from_raw_mode(mode), AtFlags::empty())
        .unwrap_or_else(|error| panic!("mode of {}: {error}", path.display()));
}

pub fn set_owner(path: &Path, user: u32, group: u32) {
    lchown(path, Some(user), Some(group)).expect("an owner");
}

/// Sets the time of modification, of a link itself too.
pub fn set_time(path: &Path, (tv_sec, tv_nsec): (i64, i64)) {
    let time = Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("a time");
}

pub fn time_of(path: &Path) -> (i64, i64) {
    let metadata = std::fs::symlink_metadata(path).expect("metadata");
    (metadata.mtime(), metadata.mtime_nsec())
}
