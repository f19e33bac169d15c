//! What a tree is: everything that a synchronization must keep, and what tells that nothing was written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::attributes::attributes;

/// One name in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Type and permissions.
    pub mode: u32,
    pub owner: (u32, u32),
    pub time: (i64, i64),
    pub changed: (i64, i64),
    pub inode: u64,
    pub allocated_bytes: u64,
    /// Size and checksum of a file, the target of a link, the number of a device.
    pub contents: String,
    pub attributes: Vec<(String, Vec<u8>)>,
    /// The first of all names of the file.
    pub first_name: PathBuf,
}

impl Entry {
    fn read(at: &Path, path: &Path, metadata: &Metadata) -> Entry {
        Entry {
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            time: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            allocated_bytes: metadata.blocks() * 512,
            contents: contents(at, metadata),
            attributes: attributes(at),
            first_name: path.to_owned(),
        }
    }

    pub fn is_directory(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }
}

fn contents(at: &Path, metadata: &Metadata) -> String {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        fs::read_link(at).expect("a link").as_os_str().as_bytes().escape_ascii().to_string()
    } else if kind.is_char_device() || kind.is_block_device() {
        format!("device {:x}", metadata.rdev())
    } else if kind.is_file() {
        checksum(at).unwrap_or_else(|error| panic!("{}: {error}", at.display()))
    } else {
        String::new()
    }
}

/// Size and checksum of a file. Blocks of zeros are skipped: most of the large files have hardly anything
/// else.
fn checksum(at: &Path) -> io::Result<String> {
    const BLOCK_BYTES: usize = 64 << 10;
    static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    let file = fs::File::open(at)?;
    let (mut hasher, mut block, mut bytes) = (DefaultHasher::new(), Vec::new(), 0);
    loop {
        block.clear();
        let length = (&file).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if length == 0 {
            return Ok(format!("{bytes} bytes {:x}", hasher.finish()));
        }
        if block != ZEROS[..length] {
            hasher.write_usize(bytes);
            hasher.write(&block);
        }
        bytes += length;
    }
}

/// Everything below a directory, and under the empty path the directory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<PathBuf, Entry>);

impl Tree {
    pub fn read(root: &Path) -> Tree {
        let mut entries = BTreeMap::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(path) = pending.pop() {
            let at = root.join(&path);
            let metadata = fs::symlink_metadata(&at).unwrap_or_else(|e| panic!("{}: {e}", at.display()));
            if metadata.is_dir() {
                let names = fs::read_dir(&at).expect("readable");
                pending.extend(names.map(|name| path.join(name.expect("a name").file_name())));
            }
            let at = if path.as_os_str().is_empty() { root } else { &at };
            entries.insert(path.clone(), Entry::read(at, &path, &metadata));
        }
        let mut first_names = HashMap::new();
        for (path, entry) in &mut entries {
            entry.first_name = first_names.entry(entry.inode).or_insert_with(|| path.clone()).clone();
        }
        Tree(entries)
    }

    /// What of `self`, a copy, is unlike `source`. Of entries with a name in `known`, which the copy had
    /// before, times may differ within a second: such a difference alone is none for rsync either.
    pub fn differences(&self, source: &Tree, known: &Tree) -> Vec<String> {
        let mut all = Vec::new();
        let names = source.0.iter().filter(|(path, _)| known.0.contains_key(*path));
        let known: HashSet<_> = names.map(|(_, entry)| entry.first_name.clone()).collect();
        for path in self.0.keys().filter(|path| !source.0.contains_key(*path)) {
            all.push(format!("{path:?} is not in the source"));
        }
        for (path, theirs) in &source.0 {
            let Some(ours) = self.0.get(path) else {
                all.push(format!("{path:?} is missing"));
                continue;
            };
            let mut compare = |what: &str, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
                let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
                if ours != theirs {
                    all.push(format!("{path:?}: {what} {ours}, in the source {theirs}"));
                }
            };
            compare("mode", &format!("{:o}", ours.mode), &format!("{:o}", theirs.mode));
            compare("owner", &ours.owner, &theirs.owner);
            compare("contents", &ours.contents, &theirs.contents);
            compare("attributes", &ours.attributes, &theirs.attributes);
            compare("first name", &ours.first_name, &theirs.first_name);
            if known.contains(&theirs.first_name) {
                compare("second", &ours.time.0, &theirs.time.0);
            } else {
                compare("time", &ours.time, &theirs.time);
            }
            if ours.allocated_bytes > theirs.allocated_bytes + (128 << 10) && !ours.is_directory() {
                all.push(format!(
                    "{path:?} takes {} bytes, in the source {}",
                    ours.allocated_bytes, theirs.allocated_bytes
                ));
            }
        }
        all
    }

    /// Takes over when directories were changed last.
    pub fn forget_changes_of_directories(&mut self, before: &Tree) {
        for (path, entry) in self.0.iter_mut().filter(|(_, entry)| entry.is_directory()) {
            if let Some(earlier) = before.0.get(path) {
                entry.changed = earlier.changed;
            }
        }
    }

    /// Where something was written since `before` was read.
    pub fn touched(&self, before: &Tree) -> Vec<String> {
        let mut all = Vec::new();
        for (path, entry) in &self.0 {
            match before.0.get(path) {
                Some(earlier) if earlier == entry => {}
                Some(earlier) => all.push(format!("{path:?} was {earlier:?}, is {entry:?}")),
                None => all.push(format!("{path:?} is new")),
            }
        }
        all.extend(
            before.0.keys().filter(|path| !self.0.contains_key(*path)).map(|p| format!("{p:?} is gone")),
        );
        all
    }
}
