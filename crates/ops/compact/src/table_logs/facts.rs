//! The remembered names of a directory: all telling names, and a few of each other kind.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{extension, is_hidden, is_remarkable, pattern_of};

/// Maximum files with the same extension whose names are remembered.
const EXAMPLES: usize = 3;
/// Maximum name patterns that are remembered of files with the same extension.
const PATTERNS: usize = 64;
/// Maximum names of directories that are remembered.
const MAX_DIRECTORIES: usize = 10_000;
/// Maximum names of data files that are searched for.
const SAMPLED: usize = 4096;
/// Shorter names are found everywhere; with an extension, one byte less suffices.
const SHORTEST: usize = 5;

/// The contents of a directory.
#[derive(Debug, Default)]
pub(super) struct Facts {
    directories: BTreeSet<Vec<u8>>,
    /// Hidden files, and files with names of logs.
    telling: BTreeSet<Vec<u8>>,
    /// Other files by extension.
    extensions: BTreeMap<Vec<u8>, Group>,
}

/// Files with the same extension.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) count: u64,
    pub(super) examples: Vec<Vec<u8>>,
    /// Patterns of their names, each with its number of files and the first of these.
    patterns: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
}

impl Group {
    fn add(&mut self, name: &[u8]) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(name.to_vec());
        }
        let (pattern, is_full) = (pattern_of(name), self.patterns.len() == PATTERNS);
        match self.patterns.get_mut(&pattern) {
            Some((count, _)) => *count += 1,
            None if is_full => {}
            None => drop(self.patterns.insert(pattern, (1, name.to_vec()))),
        }
    }

    /// Files whose names are unlike those of the others.
    pub(super) fn odd(&self) -> impl Iterator<Item = &[u8]> {
        let alone = self.patterns.values().filter(|(count, _)| *count == 1);
        alone.map(|(_, name)| name.as_slice())
    }
}

impl Facts {
    pub(super) fn add(&mut self, name: &[u8], is_directory: bool) {
        if is_directory {
            if self.directories.len() < MAX_DIRECTORIES || is_remarkable(name) {
                self.directories.insert(name.to_vec());
            }
        } else if is_hidden(name) || is_remarkable(name) {
            self.telling.insert(name.to_vec());
        } else {
            let extension = extension(name);
            if !self.extensions.contains_key(extension) {
                self.extensions.insert(extension.to_vec(), Group::default());
            }
            if let Some(group) = self.extensions.get_mut(extension) {
                group.add(name);
            }
        }
    }

    pub(super) fn has_directory(&self, name: &[u8]) -> bool {
        self.directories.contains(name)
    }

    pub(super) fn directories(&self) -> impl Iterator<Item = &[u8]> {
        self.directories.iter().map(Vec::as_slice)
    }

    /// Hidden files, and files with names of logs.
    pub(super) fn telling(&self) -> impl Iterator<Item = &[u8]> {
        self.telling.iter().map(Vec::as_slice)
    }

    /// Whether there is such a file among [`Facts::telling`].
    pub(super) fn has_telling(&self, name: &[u8]) -> bool {
        self.telling.contains(name)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.extensions.iter().map(|(extension, group)| (extension.as_slice(), group))
    }

    pub(super) fn data_extensions(&self) -> impl Iterator<Item = &[u8]> {
        self.extensions.keys().map(Vec::as_slice)
    }

    pub(super) fn first_with(&self, extension: &[u8]) -> Option<&[u8]> {
        self.extensions.get(extension)?.examples.first().map(Vec::as_slice)
    }
}

/// Some names of data files, from all over the tree.
#[derive(Debug, Default)]
pub(super) struct Sample {
    names: Vec<Vec<u8>>,
    seen: usize,
    random: u64,
}

impl Sample {
    /// Each name that was added has the same chance to be in the sample.
    pub(super) fn add(&mut self, name: &[u8]) {
        if name.len() + usize::from(!extension(name).is_empty()) < SHORTEST {
            return;
        }
        self.seen += 1;
        if self.names.len() < SAMPLED {
            self.names.push(name.to_vec());
            return;
        }
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (self.random >> 33) as usize % self.seen;
        if let Some(replaced) = self.names.get_mut(place) {
            *replaced = name.to_vec();
        }
    }

    /// How many names were added.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        let mut names = self.names.clone();
        names.sort_unstable();
        names.dedup();
        names
    }
}
