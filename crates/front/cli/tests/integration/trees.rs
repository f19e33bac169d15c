//! Random trees with names that break careless programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::random::Random;

/// Where files get further links.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Nowhere.
    None,
    /// In any directory.
    Anywhere,
}

const PIECES: [&[u8]; 12] =
    [b"a", b"e", b" ", b"\n", b"'", b"\"", b"\xff", "é".as_bytes(), b"*", b"-", b"\\", b".x"];

fn name(random: &mut Random, serial: usize) -> Vec<u8> {
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let piece = random.pick(&PIECES);
        // Messages quote a name with both otherwise than older releases do (docs/pls.md); tests/newest has such.
        let both = [&name[..], piece].concat();
        if !both.contains(&b'\'') || both.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            name = both;
        }
    }
    name.extend_from_slice(serial.to_string().as_bytes());
    // An operand that looks like an option would be one.
    if name.starts_with(b"-") { [b"_", &name[..]].concat() } else { name }
}

/// Fills `root` with files, holes, links and directories; the paths of the directories, relative to `root`.
pub fn grow(root: &Path, random: &mut Random, links: Links) -> Vec<PathBuf> {
    let mut directories = vec![PathBuf::from(".")];
    let mut files: Vec<PathBuf> = Vec::new();
    for serial in 0..30 + random.below(120) {
        let parent = directories[random.below(directories.len())].clone();
        let path = parent.join(OsStr::from_bytes(&name(random, serial)));
        let at = root.join(&path);
        match random.below(10) {
            0..=2 => {
                fs::create_dir(&at).expect("a directory");
                directories.push(path);
            }
            3 => symlink(format!("nowhere{serial}"), &at).expect("a link"),
            4 if links == Links::Anywhere && !files.is_empty() => {
                let target = root.join(&files[random.below(files.len())]);
                fs::hard_link(target, &at).expect("a hard link");
            }
            5 => {
                let file = fs::File::create(&at).expect("a file");
                file.set_len(random.below(1 << 24) as u64).expect("a hole");
                files.push(path);
            }
            _ => {
                fs::write(&at, vec![b'x'; random.below(20_000)]).expect("a file");
                files.push(path);
            }
        }
    }
    if directories.len() == 1 {
        fs::create_dir(root.join("only")).expect("a directory");
        directories.push("only".into());
    }
    settle(root);
    directories.remove(0);
    directories
}

/// Has everything written, so that the space it takes no longer changes.
pub fn settle(root: &Path) {
    let done = Command::new("sync").arg("-f").arg(root).status().expect("sync runs");
    assert!(done.success());
}
