//! Whichever call to the volume fails once, the next attempt completes the compaction or its undoing.

use std::collections::BTreeMap;
use std::ffi::CStr;

use millstream_memory::MemoryVolume;
use millstream_vfs::{Dir, Errno, FileKind, SymlinkBehavior, Volume};

use super::kept::stamped;
use super::staging::entries;
use super::*;

const STAGING: &CStr = c"/.t.millstream-compact";

/// Directories and the names of their inputs, one group each.
const GROUPS: [(&CStr, &[&CStr]); 4] = [
    (c"", &[c"top-1", c"top-2"]),
    (c"k=1", &[c"a", c"b"]),
    (c"k=1", &[c"c", c"d"]),
    (c"k=2/deep", &[c"x", c"y"]),
];

/// The lines of each directory, without hidden files.
fn lines(volume: &MemoryVolume) -> BTreeMap<String, Vec<String>> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec!["/t".to_owned()]);
    while let Some(directory) = waiting.pop() {
        let path = CString::new(directory.clone()).expect("no NUL");
        let dir = volume.base().open_dir(&path, SymlinkBehavior::Follow).expect("opens");
        let mut lines: Vec<String> = Vec::new();
        for (name, kind) in entries(&dir).expect("readable") {
            let path = format!("{directory}/{}", name.to_string_lossy());
            match kind {
                _ if name.to_bytes().starts_with(b".") => {}
                FileKind::Directory => waiting.push(path),
                _ => {
                    let text = String::from_utf8(volume.read(&path).expect("readable")).expect("UTF-8");
                    lines.extend(text.lines().map(str::to_owned));
                }
            }
        }
        lines.sort();
        found.insert(directory, lines);
    }
    found
}

/// A tree with a committed compaction.
fn committed() -> MemoryVolume {
    let volume = MemoryVolume::default();
    for directory in ["t", "t/k=1", "t/k=2", "t/k=2/deep"] {
        volume.create_dir(directory).expect("made");
    }
    let staging = Staging::open(&volume, STAGING).expect("opens");
    let mut outputs = Vec::new();
    for (number, (directory, names)) in GROUPS.into_iter().enumerate() {
        let below = |name: &CStr| format!("t/{}/{}", directory.to_string_lossy(), name.to_string_lossy());
        let text: Vec<_> = names.iter().map(|name| format!("{}\n", below(name))).collect();
        for (name, text) in names.iter().zip(&text) {
            volume.write(below(name), text.as_bytes()).expect("written");
        }
        volume.write(below(c"stays"), b"stays\n").expect("written");
        let output = format!("/.t.millstream-compact/out/{number}.0");
        volume.write(&output, text.concat().as_bytes()).expect("written");
        let path = CString::new(format!("/t/{}", directory.to_string_lossy())).expect("no NUL");
        let dir = volume.base().open_dir(&path, SymlinkBehavior::Follow).expect("opens");
        let entries = names.iter().map(|name| stamped(&dir, name).expect("stat")).collect();
        Manifest { entries }.write_beside(&volume, &CString::new(output).expect("no NUL")).expect("written");
        let [staged, name] =
            [format!("{number}.0"), format!("part-{number}")].map(|name| CString::new(name).expect("no NUL"));
        outputs.push(Planned { directory: directory.to_owned(), staged, name });
    }
    let kind = Kind::InPlace { keep_until: Some(i64::MAX) };
    staging.commit(&Journal { kind, root: c"/t".to_owned(), outputs }).expect("written");
    volume
}

fn applied(volume: &MemoryVolume) -> Result<Applied, CompactError> {
    let staging = Staging::open(volume, STAGING)?;
    let applied = apply(&staging, 1, &|| true)?;
    staging.close()?;
    Ok(applied)
}

fn undone(volume: &MemoryVolume) -> Result<Undone, CompactError> {
    let staging = Staging::open(volume, STAGING)?;
    let undone = undo(&staging, &|| true)?;
    staging.close()?;
    Ok(undone)
}

#[test]
fn whatever_call_fails_a_compaction_loses_no_line_and_can_be_undone() {
    for errno in [Errno::IO, Errno::NOSPC] {
        for call in 0.. {
            let volume = committed();
            let before = lines(&volume);
            volume.fail_call(call, errno);
            let first = applied(&volume);
            let is_over = volume.fail_no_call();
            assert!(!is_over || first.is_ok(), "{first:?}");
            applied(&volume).unwrap_or_else(|error| panic!("{errno:?}, call {call}: {error}, {first:?}"));
            assert_eq!(lines(&volume), before, "{errno:?}, call {call}, {first:?}");
            match undone(&volume) {
                Ok(undone) => assert_eq!(undone.left, [], "{errno:?}, call {call}"),
                // The failure made the compaction leave everything.
                Err(error) => {
                    assert_eq!(error, CompactError::NothingKept, "{errno:?}, call {call}, {first:?}")
                }
            }
            assert_eq!(lines(&volume), before, "{errno:?}, call {call}, {first:?}");
            for (directory, names) in GROUPS {
                for name in names {
                    let path = format!("t/{}/{}", directory.to_string_lossy(), name.to_string_lossy());
                    assert!(volume.read(&path).is_ok(), "{path}, {errno:?}, call {call}, {first:?}");
                }
            }
            if is_over {
                assert!(call > 200, "{call}");
                break;
            }
        }
    }
}

#[test]
fn whatever_call_fails_the_undoing_is_completed() {
    for errno in [Errno::IO, Errno::NOSPC] {
        for call in 0.. {
            let volume = committed();
            let before = lines(&volume);
            applied(&volume).expect("done");
            volume.fail_call(call, errno);
            let first = undone(&volume);
            let is_over = volume.fail_no_call();
            let second = undone(&volume);
            let is_done = |result: &Result<Undone, CompactError>| {
                result.as_ref().is_ok_and(|undone| undone.left.is_empty())
            };
            assert!(
                is_done(&first) || is_done(&second) || second == Err(CompactError::NothingKept),
                "{errno:?}, call {call}: {first:?}, {second:?}"
            );
            assert_eq!(lines(&volume), before, "{errno:?}, call {call}: {first:?}, {second:?}");
            for (directory, names) in GROUPS {
                for name in names {
                    let path = format!("t/{}/{}", directory.to_string_lossy(), name.to_string_lossy());
                    assert!(volume.read(&path).is_ok(), "{path}, {errno:?}, call {call}, {first:?}");
                }
            }
            if is_over {
                assert!(call > 100, "{call}");
                break;
            }
        }
    }
}

/// Issue 36: NFS does not rename without replacing.
#[test]
fn an_output_that_was_written_to_gets_its_name_back_without_rename_new() {
    let volume = committed();
    applied(&volume).expect("done");
    let staging = Staging::open(&volume, STAGING).expect("opens");
    let steps = std::sync::atomic::AtomicUsize::new(0);
    // The third step is the first input's.
    let first = undo(&staging, &|| steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2);
    assert_eq!(first, Err(CompactError::Interrupted));
    let output = "/.t.millstream-replaced/1/undone/0.0";
    let text = [volume.read(output).expect("moved away"), b"late\n".to_vec()].concat();
    volume.write(output, &text).expect("written");
    volume.fail(output, millstream_vfs::Operation::Rename, Errno::INVAL);
    assert_eq!(undo(&staging, &|| true).expect("the others are undone").left.len(), 1);
    assert_eq!(volume.read("/t/part-0"), Ok(text));
}
