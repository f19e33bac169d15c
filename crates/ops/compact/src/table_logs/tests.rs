//! Trees that are tables, by the names of their formats, and trees that are not.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use millstream_memory::MemoryVolume;
use millstream_posix::PosixVolume;
use millstream_vfs::{Errno, Operation};

use super::*;
use millstream_text::names::c_string;

fn path_of(path: &Path) -> CString {
    c_string(&[path.as_os_str().as_encoded_bytes()])
}

fn real_path(directory: &CStr) -> Option<CString> {
    std::fs::canonicalize(OsStr::from_bytes(directory.to_bytes())).ok().map(|path| path_of(&path))
}

/// A directory with these files; a name that ends with a slash is a directory.
fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("scratch");
    // Names typical of directories above a real tree.
    let top = scratch.path().canonicalize().expect("a path").join("home/data");
    for (name, content) in files {
        let path = top.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(&path).expect("mkdir");
        } else {
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(&path, content).expect("written");
        }
    }
    (scratch, top)
}

/// The evidence for the directory `root` of a tree with these files.
fn found(files: &[(&str, &str)], root: &str) -> Option<Evidence> {
    let (_scratch, top) = made(files);
    let root = path_of(&if root.is_empty() { top.clone() } else { top.join(root) });
    let local = of_tree(&PosixVolume, &root, &root, Care::All, real_path);
    assert_eq!(by_files(&top, &root), local, "from a flat listing");
    local
}

/// The same from a flat listing of files, as object stores give it.
fn by_files(top: &Path, root: &CStr) -> Option<Evidence> {
    let mut search = Search::new(root.to_bytes());
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("readdir") {
            let entry = entry.expect("an entry");
            let path = path_of(&entry.path());
            let is_directory = entry.file_type().expect("a type").is_dir();
            if path.to_bytes().starts_with(&[root.to_bytes(), b"/"].concat()) && !is_directory {
                search.file(path.to_bytes());
            }
            if is_directory {
                waiting.push(entry.path());
            }
        }
    }
    // An object store has no empty directories.
    let empty: Vec<_> = walk_empty(top);
    for directory in empty.iter().filter(|path| path.starts_with(root.to_bytes())) {
        let at = directory.iter().rposition(|&b| b == b'/').expect("absolute");
        search.entry(&directory[..at], &directory[at + 1..], true);
    }
    listed::judged(&millstream_vfs::Volume::base(&PosixVolume), &mut search, Care::All)
}

fn walk_empty(top: &Path) -> Vec<Vec<u8>> {
    let (mut found, mut waiting) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = waiting.pop() {
        let below: Vec<_> =
            fs::read_dir(&directory).expect("readdir").map(|entry| entry.expect("an entry").path()).collect();
        if below.is_empty() {
            found.push(path_of(&directory).to_bytes().to_vec());
        }
        waiting.extend(below.into_iter().filter(|path| path.is_dir()));
    }
    found
}

const DATA: [(&str, &str); 3] = [
    ("t/k=1/part-00000-aa.txt", "1\n"),
    ("t/k=1/part-00001-aa.txt", "2\n"),
    ("t/data/part-00002-aa.txt", "3\n"),
];

fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&DATA[..], more].concat()
}

#[test]
fn logs_of_known_formats_are_found_from_the_root_from_parts_and_from_above() {
    for (log, kind) in [
        (&["t/_delta_log/00000000000000000000.json"][..], "a Delta Lake table"),
        (&["t/metadata/00000-5f6d.metadata.json", "t/metadata/snap-1.avro"], "an Iceberg table"),
        (&["t/metadata/00000-5f6d.gz.metadata.json"], "an Iceberg table"),
        (&["t/metadata/v1.metadata.json.gz"], "an Iceberg table"),
        (&["t/metadata/version-hint.text"], "an Iceberg table"),
        (&["t/.hoodie/hoodie.properties"], "a Hudi table"),
        (&["t/_spark_metadata/0"], "the output of a streaming query"),
        (&["t/snapshot/snapshot-1", "t/manifest/manifest-1", "t/schema/schema-0"], "a Paimon table"),
        (&["t/_versions/1.manifest"], "a Lance data set"),
        (&["t/offsets/0", "t/commits/0", "t/metadata"], "the checkpoint of a streaming query"),
        (&["t/k=1/delta_0000001_0000001_0000/bucket_00000"], "a transactional Hive table"),
    ] {
        let files = with(&log.iter().map(|name| (*name, "")).collect::<Vec<_>>());
        for root in ["t", "t/k=1", "t/data", "."] {
            let root = if root == "." { "" } else { root };
            if kind.starts_with("a transactional") && root == "t/data" {
                continue;
            }
            let evidence = found(&files, root).unwrap_or_else(|| panic!("{log:?} from {root:?}"));
            assert_eq!((evidence.certainty, evidence.why), (Certainty::Known, kind), "{log:?} from {root:?}");
        }
    }
}

#[test]
fn what_is_inside_a_log_belongs_to_it() {
    for (log, root) in [
        ("t/_delta_log/_sidecars/1.parquet", "t/_delta_log/_sidecars"),
        ("t/.hoodie/timeline/1.commit", "t/.hoodie/timeline"),
        ("t/_new_format_log/1.json", "t/_new_format_log"),
    ] {
        assert!(found(&[(log, "")], root).is_some(), "{log}");
    }
    let checkpoint = [
        ("c/offsets/0", "v1\n"),
        ("c/commits/0", "v1\n"),
        ("c/sources/0/0", "v1\n"),
        ("c/state/0/0/1.delta", ""),
    ];
    for root in ["c", "c/offsets", "c/sources", "c/sources/0", "c/state/0/0"] {
        assert!(found(&checkpoint, root).is_some(), "{root}");
    }
}

#[test]
fn logs_of_unknown_formats_are_found_by_what_logs_are() {
    let named = "{\"files\": [\"k=1/part-00000-aa.txt\", \"k=1/part-00001-aa.txt\"]}";
    for (log, content, roots) in [
        ("t/_five_years/1", "", &["t", "t/k=1", "t/data", ""][..]),
        ("t/.five_years/1", "", &["t", "t/k=1", "t/data", ""]),
        ("t/k=1/_five_years/1", "", &["t", "t/k=1", ""]),
        ("t/k=1/__fragments/", "", &["t", "t/k=1"]),
        ("t/manifest.json", named, &["t", "t/k=1", ""]),
        ("t/anything.txt", named, &["t", "t/k=1"]),
        ("t/k=1/_list", named, &["t", "t/k=1", ""]),
        ("t/k=1/_committed_123", named, &["t", "t/k=1"]),
        ("t/catalog.db", "SQLite\0\x1f\x2fpart-00000-aa.txt\x01", &["t", "t/k=1"]),
        ("t/manifests/1.json", named, &["t", "t/k=1"]),
        ("t/k=1/m.avro", "Obj\x01", &["t", "t/k=1"]),
    ] {
        for root in roots {
            let evidence =
                found(&with(&[(log, content)]), root).unwrap_or_else(|| panic!("{log} from {root:?}"));
            assert_eq!(evidence.certainty, Certainty::Possible, "{log} from {root:?}");
        }
    }
}

/// Issue 36: lists that differ only by their contents from the files that they name.
#[test]
fn a_list_among_the_files_that_it_names_is_found_whatever_its_name() {
    let data: Vec<_> =
        (0..40).map(|number| (format!("t/k=1/2026-11-{number:02}.txt"), format!("{number}\n"))).collect();
    let name = |at: usize| &data[at].0["t/k=1/".len()..];
    let all = |prefix: &str| (0..40).map(|at| format!("{prefix}{}\n", name(at))).collect::<String>();
    let with = |list: &str, content: &str| {
        let mut files: Vec<_> =
            data.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
        files.push((list, content));
        found(&files, "t").map(|evidence| String::from_utf8(evidence.log).expect("UTF-8"))
    };
    for list in ["files.txt", "toc.txt", "urls.txt", "processed.txt"] {
        for prefix in ["", "d41d8cd98f00b204e9800998ecf8427e  ", "s3://bucket/t/k=1/"] {
            let found = with(&format!("t/k=1/{list}"), &all(prefix));
            assert_eq!(found.as_deref(), Some(list), "{prefix}");
        }
    }
    let two = format!("{}\n{}\n", name(3), name(4));
    let told = format!("{}{two}", "a line of data\n".repeat(20));
    assert_eq!(with("t/k=1/toc.txt", &two).as_deref(), Some("toc.txt"));
    for (plain, content) in [("notes.txt", told.as_str()), ("more.txt", "a\nb\n")] {
        assert_eq!(with(&format!("t/k=1/{plain}"), content), None, "{plain}");
    }
    for list in ["SHA256SUMS", "2026-11-03.txt.sha256", "md5sum.txt"] {
        let found = with(&format!("t/k=1/{list}"), &format!("0123  {}\n", name(3)));
        assert_eq!(found.as_deref(), Some(list));
    }
}

/// Issue 36: a compaction in place that was killed has some of the files, which were missing in a new tree.
#[test]
fn the_work_of_an_unfinished_compaction_is_found_from_above_and_from_below() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path().canonicalize().expect("a path");
    fs::create_dir_all(top.join("p/t/k=1")).expect("mkdir");
    fs::write(top.join("p/t/k=1/a.txt"), "1\n").expect("written");
    let judged = |root: &str, care| {
        let root = path_of(&top.join(root));
        of_tree(&PosixVolume, &root, &root, care, real_path).map(|found| found.certainty)
    };
    for work in ["p/.t.millstream-compact", "p/t/.millstream-compact"] {
        for root in ["p", "p/t", "p/t/k=1"] {
            assert_eq!(judged(root, Care::Names), None, "{root}");
        }
        fs::create_dir(top.join(work)).expect("mkdir");
        assert_eq!(judged("p", Care::All), None, "nothing has been moved");
        fs::write(top.join(work).join(".journal"), "").expect("written");
        for (root, care) in [
            ("p", Care::All),
            ("p", Care::Names),
            ("p/t", Care::Names),
            ("p/t/k=1", Care::All),
            ("p/t/k=1", Care::Names),
        ] {
            assert_eq!(judged(root, care), Some(Certainty::Unfinished), "{work} {root} {care:?}");
        }
        assert_eq!(judged("p/t", Care::All), None, "finished by its own command");
        fs::remove_dir_all(top.join(work)).expect("removed");
    }
    fs::create_dir(top.join("p/.other.millstream-compact")).expect("mkdir");
    fs::write(top.join("p/.other.millstream-compact/.journal"), "").expect("written");
    assert_eq!(judged("p/t", Care::Names), None);
}

#[test]
fn an_unfinished_compaction_behind_a_link_is_found() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path().canonicalize().expect("a path");
    fs::create_dir_all(top.join("real/t/k=1")).expect("mkdir");
    fs::create_dir_all(top.join("source")).expect("mkdir");
    fs::write(top.join("real/t/k=1/a.txt"), "1\n").expect("written");
    std::os::unix::fs::symlink("../real/t", top.join("source/to-t")).expect("a link");
    std::os::unix::fs::symlink(top.join("real/t/k=1"), top.join("source/to-k")).expect("a link");
    std::os::unix::fs::symlink("real/t", top.join("link")).expect("a link");
    for work in [
        "real/.t.millstream-compact/.journal",
        "real/.t.millstream-replaced/1/.undoing",
        "real/t/.millstream-replaced/1/.undoing",
    ] {
        let judged = |link: &str, care| {
            let given = path_of(&top.join(link));
            let real = real_path(&given).expect("exists");
            of_tree(&PosixVolume, &real, &given, care, real_path).map(|found| found.certainty)
        };
        let unfinished =
            if work.ends_with(".journal") { Certainty::Unfinished } else { Certainty::PartlyUndone };
        for link in ["source", "link", "source/to-t", "source/to-k"] {
            assert_eq!(judged(link, Care::Names), None, "{link}");
        }
        let work = top.join(work);
        fs::create_dir_all(work.parent().expect("a parent")).expect("mkdir");
        fs::write(&work, "").expect("written");
        for link in ["source", "link", "source/to-t", "source/to-k"] {
            assert_eq!(judged(link, Care::Names), Some(unfinished), "{link}, {work:?}");
        }
        fs::remove_file(&work).expect("removed");
    }
}

/// The command that finishes a compaction must not do so if the tree has become a table.
#[test]
fn unfinished_compactions_hide_no_log() {
    let judged = |more: &[(&str, &str)], care| {
        let (_scratch, top) = made(&with(more));
        let root = path_of(&top.join("t"));
        of_tree(&PosixVolume, &root, &root, care, real_path).map(|found| found.certainty)
    };
    for (work, unfinished) in [
        ("t/k=1/.millstream-compact/.journal", Certainty::Unfinished),
        (".t.millstream-replaced/1/.undoing", Certainty::PartlyUndone),
    ] {
        let delta = [(work, ""), ("t/_delta_log/0.json", "")];
        assert_eq!([Care::All, Care::Names].map(|care| judged(&delta, care)), [Some(Certainty::Known); 2]);
        let unknown = [(work, ""), ("t/_five_years/1", "")];
        assert_eq!(judged(&unknown, Care::All), Some(Certainty::Possible));
        // For a new tree, this one is only a warning.
        assert_eq!(judged(&unknown, Care::Names), Some(unfinished));
        assert_eq!(judged(&[(work, "")], Care::All), Some(unfinished));
    }
}

/// Kept files belong to their owner: they must not block other users for as long as they exist.
#[test]
fn kept_files_that_may_not_be_looked_at_are_taken_for_complete() {
    let volume = in_memory();
    for directory in ["w/.t.millstream-replaced", "w/.t.millstream-replaced/1"] {
        volume.create_dir(directory).expect("made");
    }
    volume.write("w/.t.millstream-replaced/1/.undoing", b"").expect("written");
    let certainty =
        |volume| of_tree(volume, c"/w/t", c"/w/t", Care::Names, |_| None).map(|found| found.certainty);
    assert_eq!(certainty(&volume), Some(Certainty::PartlyUndone));
    volume.fail("w/.t.millstream-replaced", Operation::OpenDir, Errno::ACCESS);
    assert_eq!(certainty(&volume), None);
}

#[test]
fn plain_files_are_plain() {
    for more in [
        &[][..],
        &[("t/_SUCCESS", "{\"filenames\": [\"part-00000-aa.txt\", \"part-00001-aa.txt\"]}")],
        &[
            ("t/k=1/_temporary/0/x", ""),
            ("t/.direct-writes/_x.begin", "part-00000-aa.txt"),
            ("t/.snapshot/hourly/", ""),
        ],
        &[("t/k=1/._SUCCESS.crc", ""), ("t/k=1/.part-00000-aa.txt.crc", "part-00000-aa.txt")],
        &[("_archive/x", ""), (".cache/x", "")],
        &[
            (".bash_history", "rm part-00000-aa.txt part-00001-aa.txt\n"),
            ("ingest.log", "part-00000-aa.txt part-00001-aa.txt\n"),
        ],
        &[("t/_millstream/.a.gz.1-2.gzidx", ""), (".t.millstream-replaced/1/record", "part-00000-aa.txt")],
        &[("other/metadata/00000-5f6d.metadata.json", ""), ("other/_delta_log/0.json", "")],
        &[("metadata", "of the owner"), ("t/snapshot/a.txt", "1\n"), ("t/offsets/a.txt", "1\n")],
        &[("t/delta_report/a.txt", "1\n"), ("t/base_2/b.txt", "1\n")],
    ] {
        for root in ["t", "t/k=1", "t/data"] {
            // A hidden directory of unknown purpose next to a directory counts, unless it is dotted.
            let is_beside = more.iter().any(|(name, _)| name.starts_with("_archive")) && root == "t";
            assert_eq!(found(&with(more), root).is_some(), is_beside, "{more:?} from {root}");
        }
    }
}

#[test]
fn a_table_that_has_a_link_to_the_tree_counts() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path().canonicalize().expect("a path");
    fs::create_dir_all(top.join("elsewhere/k=1")).expect("mkdir");
    fs::create_dir_all(top.join("t/_delta_log")).expect("mkdir");
    std::os::unix::fs::symlink(top.join("elsewhere/k=1"), top.join("t/k=1")).expect("a link");
    let [real, given] = ["elsewhere/k=1", "t/k=1"].map(|name| path_of(&top.join(name)));
    assert_eq!(of_tree(&PosixVolume, &real, &real, Care::All, real_path), None);
    assert!(of_tree(&PosixVolume, &real, &given, Care::All, real_path).is_some());
}

#[test]
fn a_pipe_is_not_opened() {
    let scratch = tempfile::tempdir().expect("scratch");
    let tree = scratch.path().canonicalize().expect("a path").join("t");
    fs::create_dir(&tree).expect("mkdir");
    fs::write(tree.join("part-00000-aa.txt"), "1\n").expect("written");
    let made = std::process::Command::new("mkfifo").arg(tree.join("_pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    assert_eq!(of_tree(&PosixVolume, &path_of(&tree), &path_of(&tree), Care::All, real_path), None);
}

/// A volume with the data files of a table, or a part of it, in `/w/t`.
fn in_memory() -> MemoryVolume {
    let volume = MemoryVolume::default();
    for directory in ["w", "w/t"] {
        volume.create_dir(directory).expect("made");
    }
    for name in ["part-00000-aa.txt", "part-00001-aa.txt"] {
        volume.write(format!("w/t/{name}"), b"1\n").expect("written");
    }
    volume
}

fn found_in(volume: &MemoryVolume) -> Option<&'static str> {
    of_tree(volume, c"/w/t", c"/w/t", Care::All, |_| None).map(|evidence| evidence.why)
}

const ICEBERG: &str = "w/metadata/00000-5f6d.metadata.json";

/// Issue 36. The volume lists `metadata` last.
#[test]
fn an_iceberg_table_without_a_hint_is_found_in_a_directory_with_too_many_entries() {
    let volume = in_memory();
    for number in 0..2 * LISTED_ENTRIES {
        volume.write(format!("w/n-{number:020}"), b"").expect("written");
    }
    assert_eq!(found_in(&volume), None);
    volume.create_dir("w/metadata").expect("made");
    volume.write(ICEBERG, b"{}").expect("written");
    assert_eq!(found_in(&volume), Some("an Iceberg table"));
}

/// Issue 36.
#[test]
fn hidden_directories_do_not_keep_a_log_from_being_looked_at() {
    let volume = in_memory();
    for number in 0..40 {
        volume.create_dir(format!("w/.hidden-{number}")).expect("made");
    }
    volume.create_dir("w/metadata").expect("made");
    volume.write(ICEBERG, b"{}").expect("written");
    assert_eq!(found_in(&volume), Some("an Iceberg table"));
}

/// Issue 36: directories of mode 0711.
#[test]
fn a_directory_that_can_only_be_searched_is_asked_for_logs() {
    for log in ["w/_delta_log", "w/metadata"] {
        let volume = in_memory();
        volume.create_dir(log).expect("made");
        volume.write(format!("{log}/0.metadata.json"), b"{}").expect("written");
        volume.fail("w", Operation::OpenDir, Errno::ACCESS);
        assert!(found_in(&volume).is_some(), "{log}");
    }
}
