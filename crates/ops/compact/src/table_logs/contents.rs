//! Logs recognised by their contents: names of data files.

use std::collections::{BTreeMap, HashSet};

use aho_corasick::AhoCorasick;

use super::facts::{Facts, Sample};
use super::names::{NEAR, extension, is_hidden};
use super::{Care, Certainty, Evidence, Relation};

/// A name of this many bytes is in no file by chance.
const DISTINCTIVE: usize = 12;
/// Files of each [`Suspicion`] that are searched.
const MOST: [usize; 4] = [128, 64, 256, 16];
/// Directories above with more files are searched only for telling names.
const FEW: u64 = 64;

/// Why a file is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suspicion {
    /// Its name, or that it is hidden.
    Name,
    /// It is one of few of its kind.
    Rare,
    /// Its name is unlike those of the others of its kind.
    Odd,
    /// It is one of many.
    Ordinary,
}

/// A file that may name data files.
#[derive(Debug)]
pub(super) struct Suspect {
    path: Vec<u8>,
    suspicion: Suspicion,
}

/// Files that are only data whatever they contain, or have compressed contents.
fn is_unsearchable(extension: &[u8]) -> bool {
    let extensions: [&[u8]; 13] = [
        b".parquet",
        b".orc",
        b".avro",
        b".gz",
        b".bz2",
        b".zst",
        b".lz4",
        b".snappy",
        b".deflate",
        b".zip",
        b".xz",
        b".br",
        b".crc",
    ];
    extensions.contains(&&extension.to_ascii_lowercase()[..])
}

/// Files in which people and programs record their work with files.
fn is_prose(name: &[u8]) -> bool {
    let extensions: [&[u8]; 7] = [b".log", b".out", b".md", b".sh", b".py", b".ipynb", b".html"];
    extensions.contains(&&extension(name).to_ascii_lowercase()[..])
        || name.starts_with(b".") && (name.ends_with(b"history") || matches!(name, b".viminfo" | b".lesshst"))
}

/// Files of a directory to be searched.
pub(super) fn suspects(path: &[u8], facts: &Facts, relation: Relation<'_>) -> Vec<Suspect> {
    let levels = match relation {
        Relation::Above { levels, .. } if levels > NEAR => return Vec::new(),
        Relation::Above { levels, .. } => levels,
        _ => 0,
    };
    let suspect = |name: &[u8], suspicion| Suspect { path: [path, b"/", name].concat(), suspicion };
    // Committers write names of files to it, which nobody reads.
    let telling = facts
        .telling()
        .filter(|name| *name != b"_SUCCESS" && !is_prose(name) && !is_unsearchable(extension(name)));
    let mut found: Vec<_> = telling.map(|name| suspect(name, Suspicion::Name)).collect();
    let count: u64 = facts.groups().map(|(_, group)| group.count).sum();
    if levels > 0 && count > FEW {
        return found;
    }
    for (_, group) in facts.groups().filter(|(extension, _)| !is_unsearchable(extension)) {
        let is_rare = levels > 0 || group.count <= 2 || relation == Relation::Beside;
        let suspicion = if is_rare { Suspicion::Rare } else { Suspicion::Ordinary };
        let odd: Vec<_> = if is_rare { Vec::new() } else { group.odd().collect() };
        let examples = group.examples.iter().map(Vec::as_slice).filter(|name| !odd.contains(name));
        let both =
            examples.map(|name| (name, suspicion)).chain(odd.iter().map(|name| (*name, Suspicion::Odd)));
        found.extend(both.filter(|(name, _)| !is_prose(name)).map(|(name, why)| suspect(name, why)));
    }
    found
}

/// The files to search, and the names to search for.
#[derive(Debug)]
pub(super) struct Suspects {
    files: BTreeMap<Vec<u8>, Suspicion>,
    names: Vec<Vec<u8>>,
    /// Names in the tree for each name searched for.
    weight: usize,
    /// [`None`] if there are no names, or too many for it.
    automaton: Option<AhoCorasick>,
}

impl Suspects {
    pub(super) fn new(mut files: Vec<Suspect>, care: Care, sample: &Sample) -> Self {
        let names = sample.names();
        files.sort_by_key(|suspect| (suspect.suspicion, suspect.path.len()));
        files.retain(|suspect| care == Care::All || suspect.suspicion == Suspicion::Name);
        let mut left = MOST;
        files.retain(|suspect| match left.get_mut(suspect.suspicion as usize) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        });
        let automaton = if names.is_empty() { None } else { AhoCorasick::new(&names).ok() };
        let files = files.into_iter().map(|suspect| (suspect.path, suspect.suspicion)).collect();
        Suspects { files, weight: sample.seen().div_ceil(names.len().max(1)), names, automaton }
    }

    pub(super) fn paths(&self) -> Vec<Vec<u8>> {
        if self.automaton.is_none() { Vec::new() } else { self.files.keys().cloned().collect() }
    }

    /// Whether a file has names of data files, so that it may be a log.
    pub(super) fn names_files(&self, path: &[u8], content: &[u8]) -> bool {
        let (Some(automaton), Some(suspicion)) = (&self.automaton, self.files.get(path)) else {
            return false;
        };
        let own = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let lines = content.split(|&b| b == b'\n').filter(|line| !line.is_empty()).count();
        let (mut distinctive, mut unlike, mut found) = (0, 0, HashSet::new());
        for hit in automaton.find_overlapping_iter(content) {
            let name = &self.names[hit.pattern().as_usize()];
            let is_sibling = extension(name) == extension(own);
            let (is_long, has_extension) = (name.len() >= DISTINCTIVE, !extension(name).is_empty());
            if name == own
                || is_sibling && *suspicion == Suspicion::Ordinary
                || !(is_long || is_word(content, hit.start(), hit.end()))
            {
                continue;
            }
            if found.insert(hit.pattern()) {
                distinctive += usize::from(is_long);
                unlike += usize::from(!is_sibling);
            }
            let is_enough = match suspicion {
                Suspicion::Name => {
                    distinctive > 0 || found.len() > 1 || has_extension || self.names.len() == 1
                }
                // Lines of data may name other files of the same kind, too. A list contains nothing else.
                Suspicion::Odd => unlike > 1 || found.len() > 1 && 2 * found.len() * self.weight >= lines,
                Suspicion::Rare | Suspicion::Ordinary => {
                    found.len() > 1 || self.names.len() <= 2 && distinctive > 0
                }
            };
            if is_enough {
                return true;
            }
        }
        false
    }
}

/// Whether a part of a text is a whole name, not part of a longer one.
fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let joins = |byte: Option<&u8>| {
        byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    !joins(start.checked_sub(1).and_then(|before| text.get(before))) && !joins(text.get(end))
}

/// The evidence of a file that has names of data files.
pub(super) fn evidence(path: &[u8]) -> Evidence {
    let at = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
    let log = &path[(at + 1).min(path.len())..];
    let why = if is_hidden(log) {
        "is a hidden file that names data files, and may be the log of a table"
    } else {
        "names data files, and may be the log of a table"
    };
    Evidence { certainty: Certainty::Possible, table: path[..at].to_vec(), log: log.to_vec(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_those_of_the_shared_table() {
        for line in &millstream_wire::lines("codecs.tsv")[1..] {
            let extension = line.split('\t').nth(2).expect("an extension");
            assert!(is_unsearchable(extension.as_bytes()), "{extension}");
        }
    }
}
