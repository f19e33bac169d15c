//! Issue 36: a pattern such as `/t/*/*` matches hidden directories, and Spark reads the visible files in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_posix::PosixVolume;
use millstream_vfs::{Access, Dir, File, SymlinkBehavior, Timestamp, Volume};

use super::kept_as;
use crate::compact::tests::{Bed, Where, c_path, interrupted};
use crate::compact::*;

const LATER: Option<i64> = Some(i64::MAX);
const PLACES: [Where; 2] = [Where::Beside, Where::Inside];

/// The files below `top` that have visible names in hidden directories.
fn readable_by_patterns(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![(top.to_owned(), false)]);
    while let Some((directory, below_hidden)) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("readdir") {
            let entry = entry.expect("an entry");
            let is_hidden = entry.file_name().as_bytes().starts_with(b".");
            if entry.file_type().expect("stat").is_dir() {
                waiting.push((entry.path(), below_hidden || is_hidden));
            } else if below_hidden && !is_hidden {
                found.push(entry.path());
            }
        }
    }
    found
}

fn kept(bed: &Bed) -> PathBuf {
    PathBuf::from(bed.staging.to_str().expect("UTF-8").replace("-compact", "-replaced"))
}

/// Undoes up to step `last`; returns whether there was such a step.
fn undone_until(bed: &Bed, last: usize) -> bool {
    let (steps, staging) = (AtomicUsize::new(0), bed.open());
    let result = undo(&staging, &|| steps.fetch_add(1, Ordering::Relaxed) < last);
    assert!(result.is_ok() || result == Err(CompactError::Interrupted), "{result:?}");
    drop(staging);
    bed.open().close().expect("removed");
    steps.into_inner() > last
}

fn rename(from: &Path, to: &Path) {
    match fs::rename(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        renamed => renamed.expect("renamed"),
    }
}

/// Gives everything the names that earlier versions gave it.
fn as_earlier(bed: &Bed) {
    for name in ["lock", "journal", "record"] {
        rename(&bed.staging.join(format!(".{name}")), &bed.staging.join(name));
    }
    for name in names(&bed.staging.join("out")).iter().filter(|name| name.starts_with(".kept-")) {
        rename(&bed.staging.join("out").join(name), &bed.staging.join("out").join(&name[1..]));
    }
    for name in ["undoing", "record"] {
        rename(&kept(bed).join(format!("1/.{name}")), &kept(bed).join("1").join(name));
    }
    for directory in names(&kept(bed).join("1/files")) {
        let directory = kept(bed).join("1/files").join(directory);
        for entry in fs::read_dir(&directory).expect("readdir") {
            let path = entry.expect("an entry").path();
            if let Some(visible) = path.file_name().and_then(|name| name.as_bytes().strip_prefix(b"..")) {
                rename(&path, &directory.join(std::ffi::OsStr::from_bytes(visible)));
            }
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(listed) = fs::read_dir(directory) else { return Vec::new() };
    listed.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
}

#[test]
fn patterns_find_no_file_of_a_compaction() {
    for place in PLACES {
        for last in 0.. {
            let bed = Bed::keeping(place, LATER);
            let top = bed.source.parent().expect("a parent");
            let more = interrupted(&bed, last, || {}, false);
            let exchanged = [bed.staging.join("swap"), bed.staging.join("old")];
            let is_exchanged = |path: &PathBuf| exchanged.iter().any(|one| path.starts_with(one));
            let mut found = readable_by_patterns(top);
            found.retain(|path| !is_exchanged(path));
            assert_eq!(found, [] as [PathBuf; 0], "{place:?}, step {last}");
            bed.recover();
            assert_eq!(readable_by_patterns(top), [] as [PathBuf; 0], "{place:?}, step {last}");
            if !more {
                break;
            }
        }
    }
}

#[test]
fn patterns_find_no_file_while_a_compaction_is_undone() {
    for place in PLACES {
        for last in 0.. {
            let bed = Bed::keeping(place, LATER);
            bed.recover();
            let more = undone_until(&bed, last);
            let found = readable_by_patterns(bed.source.parent().expect("a parent"));
            assert_eq!(found, [] as [PathBuf; 0], "{place:?}, step {last}");
            if !more {
                break;
            }
        }
    }
}

/// Earlier versions gave kept files visible names.
#[test]
fn what_an_earlier_version_has_kept_is_undone_or_purged() {
    for last in 0.. {
        let bed = Bed::keeping(Where::Beside, LATER);
        let before = bed.lines();
        bed.recover();
        let more = undone_until(&bed, last);
        as_earlier(&bed);
        if kept(&bed).exists() {
            undone_until(&bed, usize::MAX);
        }
        assert_eq!((bed.lines(), kept(&bed).exists()), (before, false), "step {last}");
        assert!(bed.source.join("k=1/.a.crc").exists());
        if !more {
            break;
        }
    }
    let bed = Bed::keeping(Where::Beside, Some(100));
    bed.recover();
    as_earlier(&bed);
    let staging = bed.open();
    assert_eq!(purge(&staging, Some(99)), Ok(0));
    assert_eq!(purge(&staging, Some(100)), Ok(1));
    assert!(!kept(&bed).exists());
}

/// Paths and inode numbers of everything in the hidden directories of a compaction.
fn hidden_files(bed: &Bed) -> BTreeMap<PathBuf, u64> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![bed.staging.clone(), kept(bed)]);
    while let Some(directory) = waiting.pop().filter(|directory| directory.exists()) {
        for entry in fs::read_dir(&directory).expect("readdir") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("stat");
            found.insert(path.clone(), metadata.ino());
            waiting.extend(metadata.is_dir().then_some(path));
        }
    }
    found
}

#[test]
fn predictions_change_nothing_of_what_any_version_has_kept() {
    for (steps, is_earlier) in [(None, false), (None, true), (Some(3), false), (Some(3), true)] {
        let bed = Bed::keeping(Where::Beside, LATER);
        bed.recover();
        if let Some(steps) = steps {
            assert!(undone_until(&bed, steps));
        }
        if is_earlier {
            as_earlier(&bed);
        }
        let (before, staging) = (hidden_files(&bed), c_path(&bed.staging));
        let predicted = predict_undo(&PosixVolume, &staging).expect("can be undone");
        let purged = predict_purge(&PosixVolume, &staging, None);
        assert_eq!((has_kept(&PosixVolume, &staging), purged), (Ok(true), Ok(u64::from(steps.is_none()))));
        assert_eq!(hidden_files(&bed), before, "{steps:?}, {is_earlier}");
        assert_eq!(predicted.outputs, 5, "{steps:?}, {is_earlier}");
        let locked = bed.open();
        let busy = Err(CompactError::Busy { path: staging.clone() });
        assert_eq!(predict_undo(&PosixVolume, &staging), busy);
        drop(locked);
    }
}

#[test]
fn what_an_earlier_version_has_begun_is_finished() {
    for last in 0.. {
        let bed = Bed::keeping(Where::Beside, LATER);
        let before = bed.lines();
        let more = interrupted(&bed, last, || {}, false);
        as_earlier(&bed);
        bed.recover();
        assert_eq!(bed.lines(), before, "step {last}");
        undone_until(&bed, usize::MAX);
        assert_eq!((bed.lines(), kept(&bed).exists()), (before, false), "step {last}");
        if !more {
            break;
        }
    }
}

#[test]
fn the_lock_of_an_earlier_version_counts() {
    let bed = Bed::keeping(Where::Beside, LATER);
    fs::write(bed.staging.join("lock"), "").expect("written");
    let dir = PosixVolume.base().open_dir(&c_path(&bed.staging), SymlinkBehavior::Follow).expect("opens");
    let lock = dir.open_file(c"lock", Access::Write, SymlinkBehavior::NoFollow).expect("opens");
    lock.try_lock().expect("locked");
    let second = Staging::open(&PosixVolume, &c_path(&bed.staging));
    assert_eq!(second.err(), Some(CompactError::Busy { path: c_path(&bed.staging) }));
    drop(lock);
    bed.recover();
}

#[test]
fn kept_files_are_hidden_whatever_their_names() {
    let lengths = [1, 140, 141, 255];
    let expected = ["..x".to_owned(), format!("..{}", "x".repeat(140)), "...7".to_owned(), "...7".to_owned()];
    for (length, expected) in lengths.into_iter().zip(expected) {
        let name = c_path("x".repeat(length));
        let entry = ManifestEntry { name, ino: 7, size: 2, mtime: Timestamp { sec: 3, nsec: 4 } };
        assert_eq!(kept_as(&entry).to_bytes(), expected.as_bytes(), "{length}");
    }
}
