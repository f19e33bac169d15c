//! Trees to copy, and the program that copies them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

/// How long something may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const PCOPY: &str = env!("CARGO_BIN_EXE_pcopy");

pub fn pcopy(words: &[&str], directory: &Path) -> Output {
    Command::new(PCOPY).args(words).current_dir(directory).env("LC_ALL", "C").output().expect("pcopy runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Files of the tree with their contents.
pub fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("readable").flatten() {
            let path = entry.path();
            match entry.file_type().expect("a type") {
                kind if kind.is_dir() => pending.push(path),
                _ => {
                    let relative = path.strip_prefix(root).expect("below").to_owned();
                    files.insert(relative, fs::read(&path).expect("readable"));
                }
            }
        }
    }
    files
}

/// A tree whose files all have an old time.
pub fn grow(root: &Path, directories: usize, files: usize, bytes: usize) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    for directory in 0..directories {
        let directory = root.join(format!("d{directory}"));
        fs::create_dir_all(&directory).expect("a directory");
        for file in 0..files {
            let path = directory.join(format!("f{file}"));
            let byte = b'a' + (file % 26) as u8;
            fs::write(&path, vec![byte; bytes + file]).expect("a file");
            File::open(&path).and_then(|file| file.set_modified(old)).expect("a time");
        }
    }
}

pub fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}
