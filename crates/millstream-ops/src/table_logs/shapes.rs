//! Logs that show by the names of directories and files.

use super::facts::Facts;
use super::{Certainty, Evidence, Relation};

/// Directories beside the way to a tree whose entries are looked at, at each level.
pub(super) const MAX_BESIDE: usize = 32;
/// Levels above a tree on which every hidden directory and every small file may be of its log.
pub(super) const NEAR: usize = 2;

/// Directories that are logs.
const LOGS: [(&[u8], &str); 4] = [
    (b"_delta_log", "a Delta Lake table"),
    (b".hoodie", "a Hudi table"),
    (b"_spark_metadata", "the output of a streaming query"),
    (b"_versions", "a Lance data set"),
];

/// Directories that are a log together.
const TOGETHER: [(&[&[u8]], &str); 4] = [
    (&[b"snapshot", b"manifest"], "a Paimon table"),
    (&[b"offsets", b"commits"], "the checkpoint of a streaming query"),
    (&[b"offsets", b"sources"], "the checkpoint of a streaming query"),
    (&[b"shared", b"taskowned"], "a checkpoint of Flink"),
];

/// Files that only tables with a log have in the directories of their data.
const IN_DATA: [(&[u8], &str); 3] = [
    (b".hoodie_partition_metadata", "a partition of a Hudi table"),
    (b"_orc_acid_version", "a transactional table of Hive"),
    (b"_metadata_acid", "a transactional table of Hive"),
];

/// Hidden directories that name no files: ours, those of writers that are at work, and those of file systems and desktops.
const HARMLESS: [&[u8]; 19] = [
    b"_temporary",
    b"_millstream",
    b".direct-writes",
    b".millstream-compact",
    b".millstream-replaced",
    b".snapshot",
    b".snapshots",
    b".zfs",
    b".Trash",
    b".Trashes",
    b".trash",
    b".staging",
    b".sparkStaging",
    b"_impala_insert_staging",
    b".ipynb_checkpoints",
    b".fseventsd",
    b".Spotlight-V100",
    b".TemporaryItems",
    b".AppleDouble",
];

/// What names of such directories begin with.
const HARMLESS_PREFIXES: [&[u8]; 6] =
    [b".hive-staging", b".spark-staging", b".Trash-", b"_tmp", b".tmp", b".nfs"];

/// Whether Spark does not take a file or directory of this name for data.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") || name.starts_with(b"_") && !name.contains(&b'=')
}

/// Whether a hidden directory is known to name no files.
pub(super) fn is_harmless(name: &[u8]) -> bool {
    let ours = [&b".millstream-compact"[..], b".millstream-replaced"];
    HARMLESS.contains(&name)
        || HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.starts_with(b".") && ours.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a directory may be a log of a format that this module does not know.
pub(super) fn is_unknown(name: &[u8]) -> bool {
    is_hidden(name) && !is_harmless(name)
}

/// Whether a file in a directory `metadata` is Iceberg's.
fn is_iceberg(name: &[u8]) -> bool {
    name == b"version-hint.text" || name.ends_with(b".metadata.json") || name.ends_with(b".metadata.json.gz")
}

/// Whether an entry is remembered whatever else a directory has.
pub(super) fn is_remarkable(name: &[u8]) -> bool {
    is_hidden(name)
        || is_iceberg(name)
        || name == b"metadata"
        || TOGETHER.iter().any(|(names, _)| names.contains(&name))
        || is_transaction(name)
        || super::contents::is_telling_file(name)
}

/// Names to look for one by one in a directory that has too many entries to list, or must not be listed.
pub fn probes() -> impl Iterator<Item = &'static [u8]> {
    let together = TOGETHER.iter().flat_map(|(names, _)| names.iter().copied());
    let iceberg = [&b"metadata/version-hint.text"[..]];
    LOGS.iter().chain(&IN_DATA).map(|(name, _)| *name).chain(together).chain(iceberg)
}

/// Whether a directory beside the way to a tree is listed, if it is in a directory so many levels above.
pub(super) fn is_telling_directory(name: &[u8], levels: usize) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: [&[u8]; 8] =
        [b"metadata", b"manifest", b"manifests", b"catalog", b"snapshot", b"snapshots", b"log", b"index"];
    name == b"metadata" || levels <= NEAR && (words.contains(&&lower[..]) || is_unknown(name))
}

/// Whether a directory has the name of one of Hive's transactions: `base_0000005`, `delta_0000001_0000001_0000`.
fn is_transaction(name: &[u8]) -> bool {
    let numbers =
        [&b"base_"[..], b"delta_", b"delete_delta_"].iter().find_map(|prefix| name.strip_prefix(*prefix));
    let is_number = |part: &[u8]| {
        let part = part.strip_prefix(b"v").unwrap_or(part);
        part.len() >= 4 && part.iter().all(u8::is_ascii_digit)
    };
    numbers.is_some_and(|numbers| numbers.split(|&b| b == b'_').all(is_number))
}

/// Whether a directory on the way from a table to a part of it may have such a name.
fn is_part_of_table(name: &[u8]) -> bool {
    name.contains(&b'=') || matches!(name, b"data" | b"files") || name.starts_with(b"bucket-")
}

/// What the entries of a directory show.
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
        found.push(known(path, name, "a transactional table of Hive"));
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

/// Whether a hidden directory of unknown purpose may be the log of a table that the tree is, or is a part of.
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
