//! Names of directories and files, and their meaning.

/// Number of levels above a tree at which every hidden directory and every small file may belong to its log.
pub(super) const NEAR: usize = 2;

/// Directories that are logs.
pub(super) const LOGS: [(&[u8], &str); 4] = [
    (b"_delta_log", "a Delta Lake table"),
    (b".hoodie", "a Hudi table"),
    (b"_spark_metadata", "the output of a streaming query"),
    (b"_versions", "a Lance data set"),
];

/// Directories that are a log together.
pub(super) const TOGETHER: [(&[&[u8]], &str); 4] = [
    (&[b"snapshot", b"manifest"], "a Paimon table"),
    (&[b"offsets", b"commits"], "the checkpoint of a streaming query"),
    (&[b"offsets", b"sources"], "the checkpoint of a streaming query"),
    (&[b"shared", b"taskowned"], "a Flink checkpoint"),
];

/// Files that only tables with a log have in their data directories.
pub(super) const IN_DATA: [(&[u8], &str); 3] = [
    (b".hoodie_partition_metadata", "a partition of a Hudi table"),
    (b"_orc_acid_version", "a transactional Hive table"),
    (b"_metadata_acid", "a transactional Hive table"),
];

/// Names of directories whose files may be a log, whatever the case of the letters.
pub(super) const TELLING: [&[u8]; 8] =
    [b"metadata", b"manifest", b"manifests", b"catalog", b"snapshot", b"snapshots", b"log", b"index"];

/// Hidden directories that name no files: ours, those of active writers, and those of file systems and desktops.
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

/// Suffix of staging directories of compactions, next to a tree or in it.
pub(super) const COMPACTION: &[u8] = b".millstream-compact";

/// Suffix of the directories that keep the files that compactions have replaced.
pub(super) const REPLACED: &[u8] = b".millstream-replaced";

/// The prefix of such directories' names.
const HARMLESS_PREFIXES: [&[u8]; 6] =
    [b".hive-staging", b".spark-staging", b".Trash-", b"_tmp", b".tmp", b".nfs"];

/// Whether Spark does not treat a file or directory of this name as data.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") || name.starts_with(b"_") && !name.contains(&b'=')
}

/// Whether a hidden directory is known to name no files.
pub(super) fn is_harmless(name: &[u8]) -> bool {
    let ours = [COMPACTION, REPLACED];
    HARMLESS.contains(&name)
        || HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.starts_with(b".") && ours.iter().any(|suffix| name.ends_with(suffix))
}

/// The tree whose compactions in place use the directory `name` in `parent`, if its name has this suffix.
pub(super) fn compacted(parent: &[u8], name: &[u8], suffix: &[u8]) -> Option<Vec<u8>> {
    match name.strip_suffix(suffix)? {
        b"" => Some(parent.to_vec()),
        hidden => Some([parent, b"/", hidden.strip_prefix(b".")?].concat()),
    }
}

/// Whether a directory may be a log of an unknown format.
pub(super) fn is_unknown(name: &[u8]) -> bool {
    is_hidden(name) && !is_harmless(name)
}

/// Whether a file in a directory `metadata` is Iceberg's.
pub(super) fn is_iceberg(name: &[u8]) -> bool {
    name == b"version-hint.text" || name.ends_with(b".metadata.json") || name.ends_with(b".metadata.json.gz")
}

/// Whether an entry is remembered regardless of the directory's other entries.
pub(super) fn is_remarkable(name: &[u8]) -> bool {
    is_hidden(name)
        || is_iceberg(name)
        || name == b"metadata"
        || TOGETHER.iter().any(|(names, _)| names.contains(&name))
        || is_transaction(name)
        || is_telling_file(name)
}

/// Whether a directory has the name of one of Hive's transactions: `base_0000005`, `delta_0000001_0000001_0000`.
pub(super) fn is_transaction(name: &[u8]) -> bool {
    let numbers =
        [&b"base_"[..], b"delta_", b"delete_delta_"].iter().find_map(|prefix| name.strip_prefix(*prefix));
    let is_number = |part: &[u8]| {
        let part = part.strip_prefix(b"v").unwrap_or(part);
        part.len() >= 4 && part.iter().all(u8::is_ascii_digit)
    };
    numbers.is_some_and(|numbers| numbers.split(|&b| b == b'_').all(is_number))
}

/// Whether the name of a file that is not hidden may be that of a log.
fn is_telling_file(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: [&[u8]; 10] = [
        b"manifest",
        b"metadata",
        b"catalog",
        b"snapshot",
        b"checksum",
        b"md5sum",
        b"sha1sum",
        b"sha256sum",
        b"sha512sum",
        b"filelist",
    ];
    let extensions: [&[u8]; 13] = [
        b".db",
        b".sqlite",
        b".sqlite3",
        b".duckdb",
        b".ducklake",
        b".manifest",
        b".index",
        b".md5",
        b".sha1",
        b".sha256",
        b".sha512",
        b".sfv",
        b".lst",
    ];
    words.iter().any(|word| lower.windows(word.len()).any(|part| part == *word))
        || extensions.contains(&extension(&lower))
}

/// A name in which each word that has digits is replaced by `0`, so that numbered names share a pattern.
pub(super) fn pattern_of(name: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::new();
    for word in name.chunk_by(|a, b| a.is_ascii_alphanumeric() == b.is_ascii_alphanumeric()) {
        let counts = word.iter().any(u8::is_ascii_digit);
        pattern.extend_from_slice(if counts { b"0" } else { word });
    }
    pattern
}

/// The extension of a name, with its dot; empty if there is none.
pub(super) fn extension(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|&b| b == b'.') {
        Some(dot) if dot > 0 && name[dot + 1..].iter().any(u8::is_ascii_alphabetic) => &name[dot..],
        _ => b"",
    }
}
