//! Logs recognised by the names of directories and files.

use std::collections::BTreeSet;

use super::facts::Facts;
use super::names::{IN_DATA, LOGS, NEAR, TELLING, TOGETHER, is_iceberg, is_transaction, is_unknown};
use super::{Certainty, Evidence, Relation};

/// Maximum hidden directories next to the path to a tree whose entries are examined, at each level.
const MAX_HIDDEN: usize = 32;

/// Names to look up one by one in a directory that has too many entries to list, or must not be listed. The directories
/// among them may then be listed: see [`Search::beside`](super::Search::beside).
pub fn probes() -> impl Iterator<Item = &'static [u8]> {
    let together = TOGETHER.iter().flat_map(|(names, _)| names.iter().copied());
    let names = LOGS.iter().chain(&IN_DATA).map(|(name, _)| *name).chain(together).chain(TELLING);
    let distinct: BTreeSet<_> =
        names.chain([&b"version-hint.text"[..], b"metadata/version-hint.text"]).collect();
    distinct.into_iter()
}

/// The directories to list in a directory this many levels above a tree. `way` leads to the tree.
pub(super) fn beside(facts: &Facts, levels: usize, way: &[u8]) -> Vec<Vec<u8>> {
    let is_telling = |name: &[u8]| {
        name == b"metadata" || levels <= NEAR && TELLING.contains(&&name.to_ascii_lowercase()[..])
    };
    let others = || facts.directories().filter(|name| *name != way);
    let hidden = others().filter(|name| levels <= NEAR && is_unknown(name)).take(MAX_HIDDEN);
    others().filter(|name| is_telling(name)).chain(hidden).map(<[u8]>::to_vec).collect()
}

/// Whether a directory on the path from a table to a part of it may have such a name.
fn is_part_of_table(name: &[u8]) -> bool {
    name.contains(&b'=') || matches!(name, b"data" | b"files") || name.starts_with(b"bucket-")
}

/// Evidence from the entries of a directory.
pub(super) fn evidence(path: &[u8], facts: &Facts, relation: Relation<'_>) -> Vec<Evidence> {
    let known = |table: &[u8], log: &[u8], why| Evidence {
        certainty: Certainty::Known,
        table: table.to_vec(),
        log: log.to_vec(),
        why,
    };
    let mut found = Vec::new();
    for (name, why) in LOGS.iter().filter(|(name, _)| facts.has_directory(name)) {
        found.push(known(path, name, why));
    }
    for (names, why) in
        TOGETHER.iter().filter(|(names, _)| names.iter().all(|name| facts.has_directory(name)))
    {
        found.push(known(path, &names.join(&b" and "[..]), why));
    }
    for (name, why) in IN_DATA.iter().filter(|(name, _)| facts.has_telling(name)) {
        found.push(known(path, name, why));
    }
    if let Some(name) = facts.directories().find(|name| is_transaction(name)) {
        found.push(known(path, name, "a transactional Hive table"));
    }
    if let Some(name) = facts.telling().find(|name| is_iceberg(name)) {
        let at = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        let log = [&path[(at + 1).min(path.len())..], b"/", name].concat();
        found.push(known(&path[..at], &log, "an Iceberg table"));
    }
    if let Some(name) = facts.directories().find(|name| is_possible(name, relation)) {
        let why = "is a hidden directory of unknown purpose, and may be the log of a table";
        found.push(Evidence {
            certainty: Certainty::Possible,
            table: path.to_vec(),
            log: name.to_vec(),
            why,
        });
    }
    found
}

/// Whether a hidden directory of unknown purpose may be the log of a table to which the tree belongs.
fn is_possible(name: &[u8], relation: Relation<'_>) -> bool {
    match relation {
        Relation::Inside => is_unknown(name),
        Relation::Beside => false,
        Relation::Above { levels, way } => {
            let is_part = way.split(|&b| b == b'/').all(is_part_of_table);
            let on_the_way = way.split(|&b| b == b'/').next() == Some(name);
            // Dotted directories are common near the homes of users.
            let dotted = name.starts_with(b".");
            is_unknown(name) && (is_part || !dotted && (levels == 1 || on_the_way))
        }
    }
}
