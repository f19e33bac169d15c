//! A compaction is undone whatever step it, or the undoing, is interrupted at.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_posix::PosixVolume;
use millstream_vfs::{Dir, SymlinkBehavior};
use rustix::fs::{IFlags, ioctl_setflags};

use crate::compact::tests::{Bed, Where, c_path, interrupted};
use crate::compact::*;
use crate::table_logs::{Care, of_tree};
use millstream_text::quote::shell_word;

const LATER: Option<i64> = Some(i64::MAX);

/// The files of a tree: inode number, time and content of each. The hidden directories of compactions do not count.
type State = BTreeMap<PathBuf, (u64, i64, Vec<u8>)>;

fn state(top: &Path) -> State {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![top.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("readdir") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("stat");
            if !metadata.is_dir() {
                let content = fs::read(&path).expect("read");
                found.insert(path, (metadata.ino(), metadata.mtime_nsec(), content));
            } else if !path.file_name().expect("a name").to_string_lossy().contains(".millstream-") {
                waiting.push(path);
            }
        }
    }
    found
}

fn kept(bed: &Bed) -> PathBuf {
    let name = bed.staging.to_str().expect("UTF-8").replace("-compact", "-replaced");
    PathBuf::from(name)
}

fn undone(bed: &Bed) -> Result<Undone, CompactError> {
    let staging = bed.open();
    let undone = undo(&staging, &|| true);
    staging.close().expect("removed");
    undone
}

/// Undoes up to step `last`; returns whether there was such a step.
fn undone_until(bed: &Bed, last: usize) -> bool {
    let (steps, staging) = (AtomicUsize::new(0), bed.open());
    let result = undo(&staging, &|| steps.fetch_add(1, Ordering::Relaxed) < last);
    assert!(result.is_ok() || result == Err(CompactError::Interrupted), "{result:?}");
    steps.into_inner() > last
}

#[test]
fn replaced_files_are_kept_and_put_back() {
    for place in [Where::Beside, Where::Inside] {
        let bed = Bed::keeping(place, LATER);
        let (before, lines) = (state(&bed.source), bed.lines());
        assert_eq!(bed.recover().replaced, 12);
        assert_eq!(bed.lines(), lines);
        let kept_files = state(&kept(&bed));
        assert_eq!(kept_files.len(), 12 + 1 + 1, "the inputs, a checksum and the record: {kept_files:?}");
        let predicted = predict_undo(&PosixVolume, &c_path(&bed.staging)).expect("can be undone");
        assert_eq!((predicted.outputs, predicted.restored), (5, 12));
        assert_eq!(state(&kept(&bed)), kept_files);
        assert_eq!(undone(&bed), Ok(predicted));
        assert_eq!(state(&bed.source), before, "{place:?}");
        assert!(!kept(&bed).exists() && !bed.staging.exists());
        assert_eq!(undone(&bed), Err(CompactError::NothingKept));
    }
}

#[test]
fn whatever_step_the_compaction_is_interrupted_at_it_can_be_undone() {
    for place in [Where::Beside, Where::Inside] {
        for last in 0.. {
            let bed = Bed::keeping(place, LATER);
            let (before, lines) = (state(&bed.source), bed.lines());
            let more = interrupted(&bed, last, || {}, false);
            interrupted(&bed, last / 2, || {}, false);
            bed.recover();
            assert_eq!(bed.lines(), lines, "{place:?}, step {last}");
            assert_eq!(undone(&bed).expect("undone").left, [], "{place:?}, step {last}");
            assert_eq!(state(&bed.source), before, "{place:?}, step {last}");
            if !more {
                assert!(last > 25);
                break;
            }
        }
    }
}

#[test]
fn whatever_step_the_undoing_is_interrupted_at_the_rest_is_done() {
    for place in [Where::Beside, Where::Inside] {
        for last in 0.. {
            let bed = Bed::keeping(place, LATER);
            let before = state(&bed.source);
            bed.recover();
            let more = undone_until(&bed, last);
            if more {
                undone_until(&bed, last / 2);
                if kept(&bed).exists() {
                    let rest = undone(&bed);
                    assert!(rest.is_ok(), "{place:?}, step {last}: {rest:?}");
                }
                bed.recover();
            }
            assert_eq!(state(&bed.source), before, "{place:?}, step {last}");
            assert!(!kept(&bed).exists());
            if !more {
                assert!(last > 15);
                break;
            }
        }
    }
}

/// The report to others about a directory that was compacted, is in such a directory, or contains one.
fn reported(directory: &Path, care: Care) -> Option<String> {
    let path = c_path(directory);
    of_tree(&PosixVolume, &path, &path, care, |_| None).map(|evidence| evidence.to_string())
}

#[test]
fn whatever_step_the_undoing_is_interrupted_at_no_other_compaction_misses_files() {
    for place in [Where::Beside, Where::Inside] {
        for last in 0.. {
            let bed = Bed::keeping(place, LATER);
            let before = state(&bed.source);
            bed.recover();
            let compacted = state(&bed.source);
            let more = undone_until(&bed, last);
            let has_begun = kept(&bed).join("1/.undoing").exists();
            assert!(
                has_begun || [&before, &compacted].contains(&&state(&bed.source)),
                "{place:?}, step {last}"
            );
            let top = bed.source.parent().expect("a parent");
            for directory in [top, &bed.source, &bed.source.join("k=1"), &bed.source.join("k=2/deep")] {
                for care in [Care::Names, Care::All] {
                    let said = reported(directory, care).unwrap_or_default();
                    let end = format!("complete it with millstream compact --undo {}", bed.source.display());
                    assert_eq!(
                        said.ends_with(&end),
                        has_begun,
                        "{place:?}, step {last}, {directory:?}, {care:?}: {said}"
                    );
                }
            }
            if has_begun {
                bed.open().close().expect("closed");
                assert!(bed.staging.exists(), "users who may not look at the kept files see it");
                undone(&bed).expect("the rest");
            }
            assert!(has_begun || last == 0 || !more, "{place:?}, step {last}");
            assert_eq!((reported(top, Care::Names), reported(&bed.source, Care::All)), (None, None));
            if !more {
                assert!(last > 15);
                break;
            }
        }
    }
}

/// Kept files, an output, a checksum file and directories, each made immutable or append-only before or during the
/// undoing.
#[test]
fn files_that_cannot_be_moved_are_named_before_anything_is_undone() {
    for (begun, flag, name) in [
        (0, IFlags::IMMUTABLE, "source/k=1/part-1"),
        (0, IFlags::APPEND, "source/k=2/deep/part-3"),
        (0, IFlags::IMMUTABLE, "source/k=2"),
        (0, IFlags::IMMUTABLE, "..c"),
        (0, IFlags::APPEND, ".a.crc"),
        (0, IFlags::IMMUTABLE, "..x"),
        (3, IFlags::IMMUTABLE, "..x"),
        (3, IFlags::APPEND, "source/k=2/deep/part-3"),
        (3, IFlags::IMMUTABLE, ".0.0"),
    ] {
        let bed = Bed::keeping(Where::Beside, LATER);
        let before = state(&bed.source);
        bed.recover();
        assert!(begun == 0 || undone_until(&bed, begun));
        let top = bed.source.parent().expect("a parent");
        let path = if name.contains('/') { top.join(name) } else { named(&kept(&bed), name).expect(name) };
        let file = fs::File::open(&path).expect("opens");
        let between = (state(&bed.source), state(&kept(&bed)));
        ioctl_setflags(&file, flag).expect("this test needs root, and a file system with such flags");
        let refused = undone(&bed);
        let predicted = predict_undo(&PosixVolume, &c_path(&bed.staging));
        ioctl_setflags(&file, IFlags::empty()).expect("set back");
        assert_eq!(refused, Err(CompactError::Immovable { paths: vec![c_path(&path)] }), "{name}");
        assert_eq!(predicted, refused);
        let said = refused.expect_err("refused").to_string();
        let command = [b"first run chattr -i -a ", &shell_word(c_path(&path).to_bytes())[..]].concat();
        assert!(said.ends_with(&*String::from_utf8_lossy(&command)), "{said}");
        assert_eq!((state(&bed.source), state(&kept(&bed))), between, "{name}");
        assert_eq!(undone(&bed).expect("undone").left, []);
        assert_eq!(state(&bed.source), before, "{name}");
    }
}

/// The first file with this name below a directory.
fn named(top: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(top).expect("readdir").map(|entry| entry.expect("an entry").path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let found = files.into_iter().find(|path| path.file_name().is_some_and(|found| found == name));
    found.or_else(|| directories.iter().find_map(|below| named(below, name)))
}

#[test]
fn a_compaction_whose_outputs_have_changed_is_not_undone() {
    for (change, told) in [
        (&(|bed: &Bed| bed.append("k=1/part-1", "more")) as &dyn Fn(&Bed), "k=1/part-1 has changed"),
        (&|bed| fs::remove_file(bed.source.join("k=2/deep/part-3")).expect("removed"), "part-3 has changed"),
        (&|bed| bed.append("k=1/d", "a new file"), "k=1/d exists again"),
        (&|bed| fs::remove_dir_all(bed.source.join("k=2/deep")).expect("removed"), "k=2/deep: "),
    ] {
        let bed = Bed::keeping(Where::Beside, LATER);
        bed.recover();
        change(&bed);
        let (before, kept_files) = (state(&bed.source), state(&kept(&bed)));
        let refused = undone(&bed).expect_err(told).to_string();
        assert!(refused.contains(told) && refused.contains("nothing was changed"), "{refused}");
        assert_eq!((state(&bed.source), state(&kept(&bed))), (before, kept_files));
    }
}

#[test]
fn other_files_that_came_or_went_since_stay_as_they_are() {
    let bed = Bed::keeping(Where::Beside, LATER);
    let mut before = state(&bed.source);
    bed.recover();
    bed.append("k=1/new", "new");
    fs::remove_file(bed.source.join("k=2/large")).expect("removed");
    before.remove(&bed.source.join("k=2/large"));
    assert_eq!(undone(&bed).expect("undone").restored, 12);
    let mut after = state(&bed.source);
    assert!(after.remove(&bed.source.join("k=1/new")).is_some());
    assert_eq!(after, before);
}

#[test]
fn what_the_compaction_left_is_not_undone() {
    let bed = Bed::keeping(Where::Beside, LATER);
    bed.append("k=1/a", "more");
    bed.append("k=2/beside-a-directory-1", "more");
    let before = state(&bed.source);
    assert_eq!(bed.recover().left.len(), 2);
    // A compaction that replaces nothing does not count.
    let staging = bed.open();
    let journal =
        Journal { kind: Kind::InPlace { keep_until: LATER }, root: c_path(&bed.source), outputs: Vec::new() };
    staging.commit(&journal).expect("written");
    drop(staging);
    bed.recover();
    assert_eq!(undone(&bed).map(|undone| (undone.outputs, undone.restored)), Ok((3, 8)));
    assert_eq!(state(&bed.source), before);
}

#[test]
fn compactions_are_undone_in_the_opposite_order() {
    let bed = Bed::keeping(Where::Beside, LATER);
    let first = state(&bed.source);
    bed.recover();
    let second = state(&bed.source);
    // Another compaction, of outputs of the first.
    let directory = bed.source.join("k=1");
    let (staging, output) = (bed.open(), bed.staging.join("out/0.9"));
    let names = ["part-1", "part-2"];
    fs::write(&output, names.map(|name| fs::read_to_string(directory.join(name)).expect("read")).concat())
        .expect("written");
    let dir = millstream_vfs::Volume::base(&PosixVolume)
        .open_dir(&c_path(&directory), SymlinkBehavior::Follow)
        .expect("opens");
    let entries =
        names.map(|name| crate::compact::kept::stamped(&dir, &c_path(name)).expect("stat")).to_vec();
    Manifest { entries }.write_beside(&PosixVolume, &c_path(&output)).expect("written");
    let planned = Planned {
        directory: c"k=1".to_owned(),
        staged: c"0.9".to_owned(),
        name: c"part-of-parts".to_owned(),
    };
    let journal = Journal {
        kind: Kind::InPlace { keep_until: LATER },
        root: c_path(&bed.source),
        outputs: vec![planned],
    };
    staging.commit(&journal).expect("written");
    drop(staging);
    assert_eq!(bed.recover().outputs, 1);
    assert_eq!(undone(&bed).map(|undone| undone.restored), Ok(2));
    assert_eq!(state(&bed.source), second);
    assert_eq!(undone(&bed).map(|undone| undone.restored), Ok(12));
    assert_eq!(state(&bed.source), first);
}

/// The root is exchanged, too, if it has no directories.
#[test]
fn a_flat_tree_is_put_back() {
    let scratch = tempfile::tempdir().expect("scratch");
    let source = scratch.path().join("flat");
    fs::create_dir(&source).expect("mkdir");
    let long = "b".repeat(255);
    for name in ["a", &long, "large"] {
        fs::write(source.join(name), name).expect("written");
    }
    let before = state(&source);
    let staging = scratch.path().join(".flat.millstream-compact");
    let open = || Staging::open(&PosixVolume, &c_path(&staging)).expect("opens");
    let (opened, output) = (open(), staging.join("out/0.0"));
    fs::write(&output, "ab").expect("written");
    let dir = millstream_vfs::Volume::base(&PosixVolume)
        .open_dir(&c_path(&source), SymlinkBehavior::Follow)
        .expect("opens");
    let entries =
        ["a", &long].map(|name| crate::compact::kept::stamped(&dir, &c_path(name)).expect("stat")).to_vec();
    Manifest { entries }.write_beside(&PosixVolume, &c_path(&output)).expect("written");
    let planned =
        Planned { directory: c"".to_owned(), staged: c"0.0".to_owned(), name: c"part-0".to_owned() };
    let kind = Kind::InPlace { keep_until: LATER };
    opened.commit(&Journal { kind, root: c_path(&source), outputs: vec![planned] }).expect("written");
    assert_eq!(apply(&opened, 1, &|| true).map(|applied| applied.replaced), Ok(2));
    assert_eq!(state(&source).len(), 2);
    assert_eq!(undo(&opened, &|| true).map(|undone| undone.restored), Ok(2));
    assert_eq!(state(&source), before);
}

#[test]
fn kept_files_are_removed_when_their_time_is_over() {
    for (now, removed) in [(Some(99), 0), (Some(100), 1), (None, 1)] {
        let bed = Bed::keeping(Where::Beside, Some(100));
        bed.recover();
        assert_eq!(predict_purge(&PosixVolume, &c_path(&bed.staging), now), Ok(removed));
        assert!(kept(&bed).exists() && !bed.staging.exists());
        let staging = bed.open();
        assert_eq!(purge(&staging, now), Ok(removed));
        staging.close().expect("removed");
        assert_eq!(kept(&bed).exists(), removed == 0);
    }
    let bed = Bed::keeping(Where::Beside, Some(100));
    bed.recover();
    assert!(undone_until(&bed, 3));
    assert_eq!(purge(&bed.open(), None), Ok(0), "what has begun to be undone is finished");
    for keep_until in [None, LATER] {
        let journal =
            Journal { kind: Kind::InPlace { keep_until }, root: c_path(&bed.source), outputs: Vec::new() };
        let refused = bed.open().commit(&journal);
        assert!(matches!(refused, Err(CompactError::PartlyUndone { .. })), "{refused:?}");
    }
}

/// Outputs that an undoing has moved away but not removed.
fn moved_away(bed: &Bed) -> Vec<PathBuf> {
    let Ok(listed) = fs::read_dir(kept(bed).join("1/undone")) else { return Vec::new() };
    listed.map(|entry| entry.expect("an entry").path()).collect()
}

/// Issue 36: a writer has an output open while it is moved away.
#[test]
fn what_is_written_to_an_output_that_was_moved_away_is_not_removed() {
    let (mut refused, mut returned) = (0, 0);
    for last in 0.. {
        let bed = Bed::keeping(Where::Beside, LATER);
        bed.recover();
        if !undone_until(&bed, last) {
            break;
        }
        let Some(output) = moved_away(&bed).pop() else { continue };
        let mut content = fs::read_to_string(&output).expect("read");
        content.push_str("late\n");
        fs::write(&output, &content).expect("written");
        match undone(&bed) {
            Err(CompactError::WrittenTo { path }) => {
                assert_eq!(path, c_path(&output));
                assert_eq!(fs::read_to_string(&output).expect("it stays"), content, "step {last}");
                let beside = kept(&bed).join("by-hand");
                fs::rename(&output, &beside).expect("moved");
                assert_eq!(undone(&bed).expect("the rest").left, [], "step {last}");
                fs::remove_dir_all(kept(&bed)).expect("removed");
                let lines: usize = bed.lines().values().map(Vec::len).sum();
                assert_eq!(lines, 24 + 4, "step {last}");
                refused += 1;
            }
            done => {
                assert_eq!(done.expect("the others are undone").left.len(), 1, "step {last}");
                let lines: Vec<_> = bed.lines().into_values().flatten().collect();
                assert_eq!(
                    (lines.len(), lines.contains(&"late".to_owned())),
                    (24 + 4 + 1, true),
                    "step {last}"
                );
                returned += 1;
            }
        }
    }
    assert!(refused > 0 && returned > 0, "{refused}, {returned}");
}

/// Issue 36: the name of an input is taken while its compaction is undone.
#[test]
fn a_checksum_is_restored_only_beside_its_own_file() {
    let bed = Bed::keeping(Where::Beside, LATER);
    bed.recover();
    assert!(undone_until(&bed, 1));
    fs::write(bed.source.join("k=1/a"), "new").expect("written");
    fs::write(bed.source.join("k=1/.a.crc"), "of the new file").expect("written");
    assert_eq!(undone(&bed).expect("undone").left.len(), 1);
    let read = |name: &str| fs::read_to_string(bed.source.join("k=1").join(name)).expect("read");
    assert_eq!((read("a"), read(".a.crc")), ("new".into(), "of the new file".into()));
    assert_eq!((read("a.restored-1").len() > 3, read(".a.restored-1.crc")), (true, "of a".into()));
}
