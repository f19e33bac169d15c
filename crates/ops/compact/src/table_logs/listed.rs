//! Lists directories of a volume for a [`Search`].

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

use millstream_vfs::{
    Access, At, Dir, DirentBatch, Errno, Fields, File, FileKind, ReadState, Result, SymlinkBehavior, Volume,
};
use millstream_walk::{
    Chunk, Descend, Entry, FanOut, Fault, FaultSite, FollowPolicy, Visitor, WalkOptions, walk,
};

use super::names::{COMPACTION, REPLACED, is_hidden};
use super::shapes::probes;
use super::{Care, Certainty, Evidence, LISTED_ENTRIES, SEARCHED_BYTES, Search};
use crate::compact::{CompactError, has_journal, has_undoing};
use millstream_text::names::c_string;

/// Bytes of directory entries read at once.
const BATCH: usize = 64 << 10;

/// Metadata that references files of the tree at an absolute path. `given` is the user's path of the tree, if it leads
/// there by symbolic links: a table that has a link to the tree is above that path. `real_path` returns the absolute
/// path of a directory, without links.
///
/// Unreadable files count as absent: a log that this user cannot read is not one that they may write.
pub fn of_tree<V: Volume>(
    volume: &V,
    root: &CStr,
    given: &CStr,
    care: Care,
    real_path: fn(&CStr) -> Option<CString>,
) -> Option<Evidence> {
    let found = Mutex::new(Found { search: Search::new(root.to_bytes()), links: BTreeSet::new() });
    let listing = Listing { found: &found, volume: std::marker::PhantomData };
    let options = WalkOptions { follow: FollowPolicy::Always, ..WalkOptions::default() };
    walk(volume, &[root.to_owned()], &listing, &options);
    let Found { mut search, links } = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let base = volume.base();
    let mut all = vec![judged(&base, &mut search, care)];
    if given != root {
        all.push(judged(&base, &mut Search::new(given.to_bytes()), care));
    }
    // Files behind links are read, but not replaced.
    if care == Care::Names {
        let targets: BTreeSet<CString> = links.iter().filter_map(|link| real_path(link)).collect();
        all.extend(targets.iter().map(|target| unfinished_around(&base, target)));
    }
    all.into_iter().flatten().min_by_key(|evidence| rank(evidence, care))
}

/// The order of evidence. Evidence of which [`Care::Names`] only warns hides no unfinished compaction, and an
/// unfinished compaction hides nothing from [`Care::All`]: the same command finishes it, unless the tree has a log.
fn rank(evidence: &Evidence, care: Care) -> u8 {
    match evidence.certainty {
        Certainty::Known => 0,
        Certainty::Possible if care == Care::All => 1,
        Certainty::Unfinished | Certainty::PartlyUndone => 2,
        Certainty::Possible => 3,
    }
}

/// Metadata that references files in one directory, given by an absolute path: the log of a known format, or a file
/// that has their names. Files below the directory do not count. `base` is the base of a volume.
pub fn of_directory<D: Dir>(base: &D, directory: &CStr) -> Option<Evidence> {
    let mut search = Search::new(directory.to_bytes());
    let root = search.root.clone();
    list(base, &root, &mut search);
    complete(base, &mut search, Care::Names);
    search.certain_evidence()
}

pub(super) fn judged<D: Dir>(base: &D, search: &mut Search, care: Care) -> Option<Evidence> {
    complete(base, search, care);
    let both = [search.evidence(), unfinished(base, search, care)];
    both.into_iter().flatten().min_by_key(|evidence| rank(evidence, care))
}

fn unfinished<D: Dir>(base: &D, search: &Search, care: Care) -> Option<Evidence> {
    // A journal that may not be examined may exist: the directory is readable by its owner only.
    let has_journal = |work: &[u8]| has_journal(base, &c_string(&[work])).unwrap_or(true);
    let has_undoing = |kept: &[u8]| match has_undoing(base, &c_string(&[kept])) {
        // Another user's kept files are usually not being put back. If they are, there is a staging directory, too.
        Err(CompactError::Volume { error, .. }) => !matches!(error.errno, Errno::ACCESS | Errno::PERM),
        found => found.unwrap_or(true),
    };
    search.unfinished(care, has_journal, has_undoing)
}

/// Unfinished compactions of a directory without links in its path, or of one that contains it. Those in it are not
/// searched for.
fn unfinished_around<D: Dir>(base: &D, directory: &CStr) -> Option<Evidence> {
    let mut search = Search::new(directory.to_bytes());
    for (directory, name) in above(&search.root.clone()) {
        add_work(base, directory, name, &mut search);
    }
    unfinished(base, &search, Care::Names)
}

/// The directories above a path, lowest first, each with the name of the next one on the path.
fn above(path: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let at = rest.iter().rposition(|&b| b == b'/')?;
        let name = &rest[at + 1..];
        rest = &rest[..at];
        Some((rest, name))
    })
}

/// Adds the directories of compactions of `directory`, which is above the tree, and of the directory `name` in it.
fn add_work<D: Dir>(base: &D, directory: &[u8], name: &[u8], search: &mut Search) {
    for suffix in [COMPACTION, REPLACED] {
        for work in [[b".", name, suffix].concat(), suffix.to_vec()] {
            if is_directory(base, &c_string(&[directory, b"/", &work])).unwrap_or(false) {
                search.entry(directory, &work, true);
            }
        }
    }
}

/// Adds the directories above the tree, and the contents of files.
fn complete<D: Dir>(base: &D, search: &mut Search, care: Care) {
    let root = search.root.clone();
    for (directory, name) in above(&root) {
        list(base, directory, search);
        add_work(base, directory, name, search);
        for name in search.beside(directory) {
            list(base, &[directory, b"/", &name].concat(), search);
        }
    }
    for path in search.suspects(care) {
        if let Ok(content) = beginning(base, &path) {
            search.examine(&path, &content);
        }
    }
}

/// Adds the entries of a directory that is not inside the tree, or is its root. If not all are known then, because
/// there are too many or this user may only search the directory, logs of known formats are looked up by name.
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

/// Whether these are all entries.
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
    // Opening a pipe would wait for a writer.
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

/// The result of the traversal of a tree.
struct Found {
    search: Search,
    /// Paths of symbolic links to directories.
    links: BTreeSet<CString>,
}

fn is_link<V: Volume, S>(entry: &Entry<'_, V, S>) -> bool {
    match entry.listed_kind() {
        FileKind::Unknown => {
            entry.link_metadata(Fields::KIND).is_ok_and(|found| found.kind() == FileKind::Symlink)
        }
        kind => kind == FileKind::Symlink,
    }
}

/// The traversal of a tree. Hidden directories are recorded, but not entered: nothing in them is replaced.
struct Listing<'a, V> {
    found: &'a Mutex<Found>,
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
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Found { search, links } = &mut *found;
        for entry in chunk.entries() {
            let name = entry.name().to_bytes();
            let is_directory = entry.kind().is_ok_and(|kind| kind == FileKind::Directory);
            if !is_root {
                search.entry(directory, name, is_directory);
            }
            if is_directory && !is_hidden(name) && is_link(&entry) {
                links.insert(c_string(&[directory, b"/", name]));
            }
            if is_directory && (is_root || !is_hidden(name)) {
                descend.into_entry(&entry, ());
            }
        }
    }

    fn fault(&self, (): &mut (), _place: &FaultSite<'_, V, ()>, _fault: &Fault) {
        // The operation's own listing reports it.
    }
}
