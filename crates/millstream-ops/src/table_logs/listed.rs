//! Lists directories of a volume for a [`Search`].

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use millstream_vfs::{
    Access, At, Dir, DirentBatch, Fields, File, FileKind, ReadState, Result, SymlinkBehavior, Volume,
};
use millstream_walk::{Chunk, Descend, FanOut, Fault, FollowPolicy, Place, Visitor, WalkOptions, walk};

use super::names::{COMPACTION, is_hidden};
use super::shapes::probes;
use super::{Care, Evidence, LISTED_ENTRIES, SEARCHED_BYTES, Search};
use crate::compact::has_journal;
use crate::names::c_string;

/// Bytes of directory entries read at once.
const BATCH: usize = 64 << 10;

/// Metadata that references files of the tree at an absolute path. `given` is the path by which the user knows the tree, if it leads there by
/// symbolic links: a table that has a link to the tree is above that path.
///
/// What cannot be read is taken for absent: a log that this user cannot read is none that he may write.
pub fn of_tree<V: Volume>(volume: &V, root: &CStr, given: &CStr, care: Care) -> Option<Evidence> {
    let search = Mutex::new(Search::new(root.to_bytes()));
    let listing = Listing { search: &search, volume: std::marker::PhantomData };
    let options = WalkOptions { follow: FollowPolicy::Always, ..WalkOptions::default() };
    walk(volume, &[root.to_owned()], &listing, &options);
    let mut search = search.into_inner().unwrap_or_else(PoisonError::into_inner);
    let base = volume.base();
    judged(&base, &mut search, care).or_else(|| judged(&base, &mut Search::new(given.to_bytes()), care))
}

/// Metadata that references files in one directory, given by an absolute path: the log of a known format, or a file that has their names. What is below
/// the directory does not count. `base` is the base of a volume.
pub fn of_directory<D: Dir>(base: &D, directory: &CStr) -> Option<Evidence> {
    let mut search = Search::new(directory.to_bytes());
    let root = search.root.clone();
    list(base, &root, &mut search);
    complete(base, &mut search, Care::Names);
    search.certain_evidence()
}

pub(super) fn judged<D: Dir>(base: &D, search: &mut Search, care: Care) -> Option<Evidence> {
    complete(base, search, care);
    // What may not be looked at may be there: the directory is its owner's alone.
    let has_journal = |work: &[u8]| has_journal(base, &c_string(&[work])).unwrap_or(true);
    search.unfinished(care, has_journal).or_else(|| search.evidence())
}

/// Adds what is above the tree, and the contents of files.
fn complete<D: Dir>(base: &D, search: &mut Search, care: Care) {
    let root = search.root.clone();
    let mut end = root.len();
    while let Some(at) = root[..end].iter().rposition(|&b| b == b'/') {
        let directory = &root[..at];
        list(base, directory, search);
        for name in [[b".", &root[at + 1..end], COMPACTION].concat(), COMPACTION.to_vec()] {
            if is_directory(base, &c_string(&[directory, b"/", &name])).unwrap_or(false) {
                search.entry(directory, &name, true);
            }
        }
        for name in search.beside(directory) {
            list(base, &[directory, b"/", &name].concat(), search);
        }
        end = at;
    }
    for path in search.suspects(care) {
        if let Ok(content) = beginning(base, &path) {
            search.examine(&path, &content);
        }
    }
}

/// Adds the entries of a directory that is not inside the tree, or is its root. If they are not all known then, because there are too
/// many or this user may only search the directory, it is asked for logs of known formats by their names.
fn list<D: Dir>(base: &D, directory: &[u8], search: &mut Search) {
    if add_entries(base, directory, search).unwrap_or(false) {
        return;
    }
    for path in probes() {
        if let Ok(is_directory) = is_directory(base, &c_string(&[directory, b"/", path])) {
            search.probed(directory, path, is_directory);
        }
    }
}

/// Whether these are all.
fn add_entries<D: Dir>(base: &D, directory: &[u8], search: &mut Search) -> Result<bool> {
    let path = c_string(&[if directory.is_empty() { b"/" } else { directory }]);
    let dir = base.open_dir(&path, SymlinkBehavior::Follow)?;
    let (mut cursor, mut batch, mut count) = (D::Cursor::default(), DirentBatch::with_capacity(BATCH), 0);
    while dir.read_entries(&mut cursor, &mut batch)? == ReadState::More {
        for entry in batch.iter() {
            let name = entry.name.to_bytes();
            let is_directory = match entry.kind {
                FileKind::Unknown | FileKind::Symlink => is_directory(&dir, entry.name).unwrap_or(false),
                kind => kind == FileKind::Directory,
            };
            search.entry(directory, name, is_directory);
        }
        count += batch.iter().count();
        if count > LISTED_ENTRIES {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_directory<D: Dir>(dir: &D, name: &CStr) -> Result<bool> {
    Ok(dir.metadata(name, SymlinkBehavior::Follow, Fields::KIND)?.kind() == FileKind::Directory)
}

/// The beginning of a regular file.
fn beginning<D: Dir>(base: &D, path: &[u8]) -> Result<Vec<u8>> {
    let path = c_string(&[path]);
    let mut content = Vec::new();
    // To open a pipe would wait for a writer.
    if base.metadata(&path, SymlinkBehavior::Follow, Fields::KIND)?.kind() != FileKind::File {
        return Ok(content);
    }
    let file = base.open_file(&path, Access::Read, SymlinkBehavior::Follow)?;
    let size = file.metadata(Fields::SIZE)?.size;
    content.resize(usize::try_from(size).unwrap_or(SEARCHED_BYTES).clamp(1, SEARCHED_BYTES), 0);
    let mut length = 0;
    while length < content.len() {
        match file.read(&mut content[length..], At::Offset(length as u64))? {
            0 => break,
            count => length += count,
        }
    }
    content.truncate(length);
    Ok(content)
}

/// The traversal of a tree. Hidden directories are seen, and not entered: nothing in them is replaced.
struct Listing<'a, V> {
    search: &'a Mutex<Search>,
    volume: std::marker::PhantomData<fn(V)>,
}

impl<V: Volume> Visitor for Listing<'_, V> {
    type Volume = V;
    type State = ();
    type Worker = ();

    fn root_state(&self) {}

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        FanOut::Inline
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, V, ()>, descend: &mut Descend<'_, V, ()>) {
        let is_root = chunk.directory().parent().is_none();
        let mut path = Vec::new();
        chunk.directory().write_prefix(&mut path);
        let directory = path.strip_suffix(b"/").unwrap_or(&path);
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in chunk.entries() {
            let name = entry.name().to_bytes();
            let is_directory = entry.kind().is_ok_and(|kind| kind == FileKind::Directory);
            if !is_root {
                search.entry(directory, name, is_directory);
            }
            if is_directory && (is_root || !is_hidden(name)) {
                descend.into_entry(&entry, ());
            }
        }
    }

    fn fault(&self, (): &mut (), _place: &Place<'_, V, ()>, _fault: &Fault) {
        // The listing that the operation itself makes reports it.
    }
}
