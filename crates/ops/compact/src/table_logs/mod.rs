//! Whether other files name the files of a tree, as the log of a table does.
//!
//! ```text
//! names of directories and files ─► Search::entry ─► facts of each directory ─► shapes.rs   logs by their names
//!                                        └─► a sample of names of data files ─► contents.rs small files that have them
//! ```
//!
//! A table whose log names its files is destroyed by merging, replacing or renaming one of them. So each directory
//! counts: the root of the tree, all below it, hidden or not, and all above it, because a single partition of such a
//! table has no separate log. Logs of known formats are found by their names. Logs of other formats are found by their
//! typical traits: a hidden directory of unknown purpose may be one, and so may a small file that has the names of data
//! files.
//!
//! This module is the only home of that rule. Its callers list directories: [`of_tree`] and [`of_directory`] on a
//! volume; the JVM on Hadoop file systems, through [`Search`].

mod contents;
mod facts;
mod listed;
mod names;
mod shapes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

pub use listed::{of_directory, of_tree};
pub use shapes::probes;

use contents::{Suspect, Suspects};
use facts::{Facts, Sample};

use crate::compact::undo_command;

/// Maximum bytes of a suspected file that are searched.
pub const SEARCHED_BYTES: usize = 1 << 20;
/// Maximum entries of a directory above or next to a tree that are listed.
pub const LISTED_ENTRIES: usize = 5_000;

/// Which files are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Files that are hidden, or have names like those of logs. The tree is only to be read.
    Names,
    /// Other files, too. Files are to be replaced.
    All,
}

/// How certain it is that files are named elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The log is that of a known format.
    Known,
    /// It is the work of a compaction that has not ended.
    Unfinished,
    /// It has files of a compaction whose undoing has not ended.
    PartlyUndone,
    /// It looks like such a log.
    Possible,
}

/// Metadata that references the tree's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// How certain it is.
    pub certainty: Certainty,
    /// The path of the directory that is the table.
    pub table: Vec<u8>,
    /// The log, below that directory.
    pub log: Vec<u8>,
    /// For [`Certainty::Known`] the kind of the directory, otherwise why the log may be one.
    pub why: &'static str,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [table, log] = [&self.table, &self.log].map(|bytes| String::from_utf8_lossy(bytes));
        let table = if table.is_empty() { "/".into() } else { table };
        match self.certainty {
            Certainty::Known => write!(
                f,
                "{table}: is {}, whose log ({log}) names its files; use the table's own compaction instead",
                self.why
            ),
            Certainty::Unfinished => write!(
                f,
                "{table}: {log} belongs to an in-place compaction that is running or was killed, and may \
                 hold some of the files; wait for it, or run it again"
            ),
            Certainty::PartlyUndone => {
                let tree = names::compacted(&self.table, &self.log, names::REPLACED).unwrap_or_default();
                let command = undo_command(if tree.is_empty() { b"/" } else { &tree });
                write!(
                    f,
                    "{table}: {log} belongs to an undo of a compaction that is running or was killed, and \
                     may hold some of the files; wait for it, or complete it with {}",
                    String::from_utf8_lossy(&command)
                )
            }
            Certainty::Possible => write!(
                f,
                "{table}: {log} {}; files that are not known to be plain files are left alone",
                self.why
            ),
        }
    }
}

/// Where a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation<'a> {
    /// It is the root, or below it.
    Inside,
    /// It is this many levels above the root; `way` is the path from it to the root, without a leading slash.
    Above { levels: usize, way: &'a [u8] },
    /// Neither.
    Beside,
}

/// Collects facts about a tree and its surroundings, and evaluates them.
#[derive(Debug)]
pub struct Search {
    root: Vec<u8>,
    directories: BTreeMap<Vec<u8>, Facts>,
    sample: Sample,
    /// Files that have been searched and have names of data files.
    found: Vec<Vec<u8>>,
    suspects: Option<Suspects>,
}

impl Search {
    /// A search about the tree at an absolute path, without a slash at its end.
    pub fn new(root: &[u8]) -> Self {
        let root = root.strip_suffix(b"/").unwrap_or(root).to_vec();
        Search {
            root,
            directories: BTreeMap::new(),
            sample: Sample::default(),
            found: Vec::new(),
            suspects: None,
        }
    }

    fn relation<'a>(&'a self, directory: &[u8]) -> Relation<'a> {
        match (directory.strip_prefix(&self.root[..]), self.root.strip_prefix(directory)) {
            (Some([] | [b'/', ..]), _) => Relation::Inside,
            (_, Some([b'/', way @ ..])) => Relation::Above { levels: way.split(|&b| b == b'/').count(), way },
            _ => Relation::Beside,
        }
    }

    /// Records an entry of a directory, which is an absolute path without a slash at its end.
    pub fn entry(&mut self, directory: &[u8], name: &[u8], is_directory: bool) {
        let is_inside = self.relation(directory) == Relation::Inside;
        if !self.directories.contains_key(directory) {
            self.directories.insert(directory.to_vec(), Facts::default());
        }
        if let Some(facts) = self.directories.get_mut(directory) {
            facts.add(name, is_directory);
        }
        if is_inside && !is_directory && !names::is_hidden(name) {
            self.sample.add(name);
        }
    }

    /// Records a file of the tree, and the directories from the root to it.
    pub fn file(&mut self, path: &[u8]) {
        if path[self.root.len().min(path.len())..].split(|&b| b == b'/').any(names::is_harmless) {
            return;
        }
        let Some(mut at) = path.iter().rposition(|&b| b == b'/') else { return };
        self.entry(&path[..at], &path[at + 1..], false);
        while at > self.root.len()
            && let Some(above) = path[..at].iter().rposition(|&b| b == b'/')
        {
            let (directory, name) = (&path[..above], &path[above + 1..at]);
            if self.directories.get(directory).is_some_and(|facts| facts.has_directory(name)) {
                return;
            }
            self.entry(directory, name, true);
            at = above;
        }
    }

    /// Directories in `directory`, which is above the tree and was listed or probed, whose entries matter, too.
    pub fn beside(&self, directory: &[u8]) -> Vec<Vec<u8>> {
        let Relation::Above { levels, way } = self.relation(directory) else { return Vec::new() };
        let on_the_way = way.split(|&b| b == b'/').next().unwrap_or_default();
        let facts = self.directories.get(directory);
        facts.map_or_else(Vec::new, |facts| shapes::beside(facts, levels, on_the_way))
    }

    /// Records an existing path below a directory that has too many entries to list, or must not be listed.
    pub fn probed(&mut self, directory: &[u8], path: &[u8], is_directory: bool) {
        match path.iter().rposition(|&b| b == b'/') {
            Some(at) => self.entry(&[directory, b"/", &path[..at]].concat(), &path[at + 1..], is_directory),
            None => self.entry(directory, path, is_directory),
        }
    }

    /// Paths of the files to pass to [`Search::examine`], once all entries are known.
    pub fn suspects(&mut self, care: Care) -> Vec<Vec<u8>> {
        let suspects: Vec<Suspect> = self
            .directories
            .iter()
            .flat_map(|(path, facts)| contents::suspects(path, facts, self.relation(path)))
            .collect();
        let suspects = Suspects::new(suspects, care, &self.sample);
        let paths = suspects.paths();
        self.suspects = Some(suspects);
        paths
    }

    /// Searches a file for names of data files; `content` is its beginning, of at most [`SEARCHED_BYTES`].
    pub fn examine(&mut self, path: &[u8], content: &[u8]) {
        if self.suspects.as_ref().is_some_and(|suspects| suspects.names_files(path, content)) {
            self.found.push(path.to_vec());
        }
    }

    /// Metadata that references the tree's files: the most certain first, then the highest directory.
    pub fn evidence(&self) -> Option<Evidence> {
        let avro = self.has_other_files_than_avro().then(|| self.avro()).flatten();
        surest(self.shapes().chain(self.contents()).chain(avro))
    }

    /// Compactions in place, and undoings, that have begun to move files but not ended, of the tree, of a part of it,
    /// or of a directory that contains it. A compaction of the tree itself does not count where its files are to be
    /// replaced: it is finished then. `has_journal` is called with the paths of staging directories, `has_undoing` with
    /// those of the directories that keep replaced files.
    pub(super) fn unfinished(
        &self,
        care: Care,
        has_journal: impl Fn(&[u8]) -> bool,
        has_undoing: impl Fn(&[u8]) -> bool,
    ) -> Option<Evidence> {
        let is_in = |path: &[u8], directory: &[u8]| {
            path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        let concerns = |tree: &[u8]| is_in(tree, &self.root) || is_in(&self.root, tree);
        let of = |path: &[u8], name: &[u8]| {
            let work = || [path, b"/", name].concat();
            let tree = |suffix| names::compacted(path, name, suffix).filter(|tree| concerns(tree));
            if tree(names::COMPACTION).is_some_and(|tree| care == Care::Names || tree != self.root) {
                has_journal(&work()).then_some(Certainty::Unfinished)
            } else if tree(names::REPLACED).is_some() {
                has_undoing(&work()).then_some(Certainty::PartlyUndone)
            } else {
                None
            }
        };
        let all = self.directories.iter();
        let mut all = all.flat_map(|(path, facts)| facts.directories().map(move |name| (path, name)));
        all.find_map(|(path, name)| {
            let certainty = of(path, name)?;
            Some(Evidence { certainty, table: path.clone(), log: name.to_vec(), why: "" })
        })
    }

    /// The result of [`Search::evidence`], without candidates matched by name only.
    pub fn certain_evidence(&self) -> Option<Evidence> {
        let known = self.shapes().filter(|evidence| evidence.certainty == Certainty::Known);
        surest(known.chain(self.contents()))
    }

    /// Evidence from the names of directories and files.
    fn shapes(&self) -> impl Iterator<Item = Evidence> {
        let all = self.directories.iter();
        all.flat_map(|(path, facts)| shapes::evidence(path, facts, self.relation(path)))
    }

    /// Evidence from the contents of files.
    fn contents(&self) -> impl Iterator<Item = Evidence> {
        self.found.iter().map(|path| contents::evidence(path))
    }

    fn inside(&self) -> impl Iterator<Item = (&Vec<u8>, &Facts)> {
        self.directories.iter().filter(|(path, _)| self.relation(path) == Relation::Inside)
    }

    fn has_other_files_than_avro(&self) -> bool {
        self.inside().any(|(_, facts)| facts.data_extensions().any(|extension| extension != b".avro"))
    }

    /// Avro files next to files of another format, like manifests, whose contents are compressed.
    fn avro(&self) -> Option<Evidence> {
        self.inside().find_map(|(path, facts)| {
            let name = facts.first_with(b".avro")?;
            let why = "is an Avro file among files of another format, and may be a manifest that lists them";
            Some(Evidence { certainty: Certainty::Possible, table: path.clone(), log: name.to_vec(), why })
        })
    }
}

fn surest(found: impl Iterator<Item = Evidence>) -> Option<Evidence> {
    found.min_by_key(|evidence| (evidence.certainty, evidence.table.len()))
}
