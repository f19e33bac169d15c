//! Random edits of a copy of a tree, which a synchronization has to undo.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, RenameFlags};

use super::attributes::{
    ACCESS_LIST, DEFAULT_LIST, list, remove_attribute, set_attribute, set_mode, set_time, time_of,
};
use super::grow::Growing;
use super::program::{User, is_rsync};
use super::state::Tree;
use crate::random::Random;

/// Which edits a synchronization can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// By size and time.
    Quick,
    /// By contents: a file may have been edited without a trace.
    Checksums,
}

/// A copy of the tree, made by another program than those that are tested.
pub fn copy_tree(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    let copied = command.args(["-aT", "--sparse=always"]).args([from, to]).status().expect("cp runs");
    assert!(copied.success());
}

/// Removes an entry, whatever it is.
fn remove(at: &Path) {
    match fs::symlink_metadata(at) {
        Ok(found) if found.is_dir() => {
            let opened = Command::new("chmod").args(["-R", "u+rwx"]).arg(at).status().expect("chmod runs");
            assert!(opened.success());
            fs::remove_dir_all(at).expect("removed");
        }
        Ok(_) => fs::remove_file(at).expect("removed"),
        Err(_) => {}
    }
}

/// Makes random edits below `root`.
pub fn edit(root: &Path, random: &mut Random, user: User, comparison: Comparison) {
    let paths: Vec<PathBuf> = Tree::read(root).0.into_keys().collect();
    let mut growing = Growing { root, random, user, serial: 10_000 };
    let edits = 1 + growing.random.below(1 + paths.len());
    for _ in 0..edits {
        let path = &paths[growing.random.below(paths.len())];
        let other = &paths[growing.random.below(paths.len())];
        let at = root.join(path);
        // An earlier edit may have taken it away. A missing directory may have become a link that leads
        // outside.
        let is_inside = path
            .ancestors()
            .skip(1)
            .all(|above| fs::symlink_metadata(root.join(above)).is_ok_and(|found| found.is_dir()));
        if is_inside && fs::symlink_metadata(&at).is_ok() {
            edit_one(&mut growing, path, other, comparison);
        }
    }
    if is_rsync() && user == User::Nobody {
        // rsync does not make room for links and nodes where a directory that is read-only and not empty has
        // their name.
        for (path, _) in Tree::read(root).0.iter().filter(|(_, entry)| entry.is_directory()) {
            let at = root.join(path);
            let mode = fs::symlink_metadata(&at).expect("metadata").mode();
            set_mode(&at, mode | 0o200);
        }
    }
}

fn edit_one(growing: &mut Growing, path: &Path, other: &Path, comparison: Comparison) {
    let is_root = path.as_os_str().is_empty();
    let at = if is_root { growing.root.to_owned() } else { growing.root.join(path) };
    let kind = fs::symlink_metadata(&at).expect("metadata").file_type();
    let parent_time = time_of(at.parent().expect("a parent"));
    match growing.random.below(16) {
        0..=3 if kind.is_file() => edit_contents(growing, &at, comparison),
        4..=7 => edit_attributes(growing, &at),
        8 if !is_root => remove(&at),
        9..=10 if !is_root => replace(growing, &at),
        11 if !is_root => rename(growing, path, other),
        12 if !is_root => link(growing, &at, other),
        _ => {
            let parent = if kind.is_dir() { path } else { path.parent().expect("a parent") };
            add(growing, parent);
        }
    }
    if !is_root && growing.one_in(2) {
        // An edit does not always show in the directory.
        set_time(at.parent().expect("a parent"), parent_time);
    }
}

fn edit_contents(growing: &mut Growing, at: &Path, comparison: Comparison) {
    let file = File::options().write(true).open(at).expect("a file");
    let length = file.metadata().expect("metadata").len();
    let time = time_of(at);
    match growing.random.below(4) {
        0 if length > 0 => file.set_len(length / 2).expect("shorter"),
        1 => file.write_all_at(b"more", length).expect("written"),
        _ if length > 0 => {
            file.write_all_at(b"\x7f", growing.random.below(length as usize) as u64).expect("written");
            if comparison == Comparison::Checksums && growing.one_in(2) {
                set_time(at, time);
            }
        }
        _ => {}
    }
}

fn edit_attributes(growing: &mut Growing, at: &Path) {
    let kind = fs::symlink_metadata(at).expect("metadata").file_type();
    match growing.random.below(8) {
        0..=1 if !kind.is_symlink() => {
            let mode = growing.some_mode(kind.is_dir());
            set_mode(at, mode);
        }
        2 => growing.season_owner(at),
        3..=4 => growing.season_attributes(at),
        5 => {
            for name in ["user.a", "user.b", "trusted.t", "security.capability", ACCESS_LIST, DEFAULT_LIST] {
                if growing.one_in(2) {
                    remove_attribute(at, name);
                }
            }
        }
        6 if !kind.is_symlink() => {
            set_attribute(at, ACCESS_LIST, &list(0o750, (9, 4), (3, 6), 7));
            if kind.is_dir() {
                set_attribute(at, DEFAULT_LIST, &list(0o700, (8, 1), (4, 2), 3));
            }
        }
        7 => {
            let (seconds, nanoseconds) = time_of(at);
            set_time(at, (seconds, 999_999_999 - nanoseconds));
        }
        _ => {
            let time = growing.new_time();
            set_time(at, time);
        }
    }
}

/// Something of another kind in its place.
fn replace(growing: &mut Growing, at: &Path) {
    remove(at);
    match growing.random.below(5) {
        0 => {
            fs::create_dir_all(at.join("in/its/place")).expect("directories");
            fs::write(at.join("in/file"), "instead").expect("a file");
        }
        1 => fs::create_dir(at).expect("a directory"),
        2 => symlink(growing.random.pick(&["..", "/", "nowhere", "."]), at).expect("a link"),
        3 => rustix::fs::mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o640), 0).expect("a pipe"),
        _ => growing.make_file(at),
    }
    let chown = Command::new("chown").args(["-Rh", &growing.owner()]).arg(at).status().expect("chown runs");
    assert!(chown.success());
    growing.season(at);
}

fn may_hold_links(at: &Path) -> bool {
    fs::symlink_metadata(at).is_ok_and(|found| found.is_dir() || found.nlink() > 1)
}

fn rename(growing: &mut Growing, path: &Path, other: &Path) {
    let at = growing.root.join(path);
    if is_rsync() && (may_hold_links(&at) || may_hold_links(&growing.root.join(other))) {
        // Names that the source has apart would be together. And where rsync removes a name of a read-only
        // file, as somebody else than root, the other names of the file become writable.
        return;
    }
    // Either to a new name or in exchange with another; of an entry and one below it this fails, and nothing
    // happens.
    let _ = if growing.one_in(2) {
        let new = growing.new_name(path.parent().expect("a parent"));
        rustix::fs::renameat(CWD, &at, CWD, growing.root.join(new))
    } else {
        rustix::fs::renameat_with(CWD, &at, CWD, growing.root.join(other), RenameFlags::EXCHANGE)
    };
}

/// A name becomes one of a file of its own, or wrongly one of another file.
fn link(growing: &mut Growing, at: &Path, other: &Path) {
    let other = growing.root.join(other);
    let is_directory = |at: &Path| fs::symlink_metadata(at).map_or(true, |found| found.is_dir());
    if is_directory(at) || is_directory(&other) {
        return;
    }
    // rsync leaves names together that the source has apart ("will not break them explicitly", says its
    // manual).
    if growing.one_in(2) && !is_rsync() {
        remove(at);
        // It may be the other name itself.
        let _ = fs::hard_link(&other, at);
    } else {
        let apart = at.with_file_name("apart");
        copy_tree(at, &apart);
        fs::rename(&apart, at).expect("renamed");
    }
}

/// Something that is not in the source.
fn add(growing: &mut Growing, parent: &Path) {
    let path = growing.new_name(parent);
    let at = growing.root.join(&path);
    if growing.one_in(3) {
        fs::create_dir(&at).expect("a directory");
        for _ in 0..growing.random.below(6) {
            let inner = growing.new_name(&path);
            let inner = growing.root.join(inner);
            growing.make_leaf(&inner, &[]);
            growing.season(&inner);
        }
    } else {
        growing.make_leaf(&at, &[]);
    }
    growing.season(&at);
}
