//! Interrupting a compaction at any step, with concurrent changes by others, neither loses nor duplicates a line.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use millstream_posix::PosixVolume;
use millstream_vfs::Timestamp;
use rustix::fs::{IFlags, ioctl_setflags};

use super::*;

pub(super) fn c_path(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).expect("no NUL")
}

/// The path of the staging directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    Beside,
    Inside,
}

pub(super) struct Bed {
    _scratch: tempfile::TempDir,
    pub(super) source: PathBuf,
    pub(super) staging: PathBuf,
    keep_until: Option<i64>,
}

/// Directories and the names of their inputs, one group each.
const GROUPS: [(&str, &[&[u8]]); 5] = [
    ("", &[b"top-1", b"top-2", b"top-3"]),
    ("k=1", &[b"a", b"b \n\xff"]),
    ("k=1", &[b"c", b"d"]),
    ("k=2/deep", &[b"x", b"y", b"z"]),
    ("k=2", &[b"beside-a-directory-1", b"beside-a-directory-2"]),
];

impl Bed {
    /// A tree, and outputs of all of its groups in a staging directory, with a journal.
    fn new(place: Where) -> Self {
        Bed::keeping(place, None)
    }

    /// The same, with a compaction that keeps what it replaces.
    pub(super) fn keeping(place: Where, keep_until: Option<i64>) -> Self {
        // A thousand trees that are synchronized.
        let memory = Path::new("/dev/shm");
        let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let scratch = scratch.expect("scratch");
        let source = scratch.path().join("source");
        let staging = match place {
            Where::Beside => scratch.path().join(".source.millstream-compact"),
            Where::Inside => source.join(".millstream-compact"),
        };
        let bed = Bed { _scratch: scratch, source, staging, keep_until };
        for (directory, names) in GROUPS {
            let directory = bed.source.join(directory);
            fs::create_dir_all(&directory).expect("mkdir");
            for name in names {
                let path = directory.join(std::ffi::OsString::from_vec(name.to_vec()));
                fs::write(&path, format!("1 of {name:?}\n2 of {name:?}\n")).expect("write");
                fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
            }
            fs::write(directory.join("_SUCCESS"), "").expect("write");
            fs::write(directory.join("large"), "kept\n").expect("write");
        }
        fs::set_permissions(bed.source.join("k=1"), fs::Permissions::from_mode(0o2750)).expect("chmod");
        fs::write(bed.source.join("k=1/.a.crc"), "of a").expect("write");
        bed.stage();
        bed
    }

    pub(super) fn stage(&self) {
        let staging = self.open();
        let mut outputs: Vec<Planned> = Vec::new();
        for (number, (directory, names)) in GROUPS.iter().enumerate() {
            let staged = c_path(format!(".{number}.0"));
            let (mut content, mut manifest) = (Vec::new(), Manifest::default());
            for name in *names {
                let path = self.source.join(directory).join(std::ffi::OsString::from_vec(name.to_vec()));
                content.extend(fs::read(&path).expect("read"));
                let metadata = fs::metadata(&path).expect("stat");
                let mtime = Timestamp { sec: metadata.mtime(), nsec: metadata.mtime_nsec() as u32 };
                let name = CString::new(name.to_vec()).expect("no NUL");
                manifest.entries.push(ManifestEntry {
                    name,
                    ino: metadata.ino(),
                    size: metadata.len(),
                    mtime,
                });
            }
            let output = self.staging.join("out").join(format!(".{number}.0"));
            fs::write(&output, content).expect("write");
            manifest.write_beside(&PosixVolume, &c_path(&output)).expect("write");
            outputs.push(Planned {
                directory: c_path(directory),
                staged,
                name: c_path(format!("part-{number}")),
            });
        }
        let journal = Journal {
            kind: Kind::InPlace { keep_until: self.keep_until },
            root: c_path(&self.source),
            outputs,
        };
        staging.commit(&journal).expect("written");
    }

    pub(super) fn open(&self) -> Staging<PosixVolume> {
        Staging::open(&PosixVolume, &c_path(&self.staging)).expect("opens")
    }

    /// The sorted lines of each directory, without hidden files.
    pub(super) fn lines(&self) -> BTreeMap<PathBuf, Vec<String>> {
        let mut lines = BTreeMap::new();
        let mut left = vec![self.source.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).expect("readdir") {
                let entry = entry.expect("an entry");
                let hidden = entry.file_name().as_bytes().starts_with(b".");
                if hidden || entry.file_name() == "_SUCCESS" {
                    continue;
                }
                if entry.file_type().expect("stat").is_dir() {
                    left.push(entry.path());
                    continue;
                }
                let text = String::from_utf8(fs::read(entry.path()).expect("read")).expect("UTF-8");
                let relative = directory.strip_prefix(&self.source).expect("below").to_owned();
                lines.entry(relative).or_insert_with(Vec::new).extend(text.lines().map(str::to_owned));
            }
        }
        lines.values_mut().for_each(|lines: &mut Vec<String>| lines.sort());
        lines
    }

    /// Finishes the compaction that has begun.
    pub(super) fn recover(&self) -> Applied {
        let staging = self.open();
        let applied = apply(&staging, 2, &|| true).expect("finished");
        staging.close().expect("removed");
        assert!(!self.staging.exists());
        applied
    }

    pub(super) fn append(&self, path: &str, line: &str) {
        let file = fs::OpenOptions::new().append(true).create(true).open(self.source.join(path));
        writeln!(file.expect("opens"), "{line}").expect("written");
    }
}

/// Ends at step `last`, after `meddle` has been called; returns whether there was such a step.
pub(super) fn interrupted(bed: &Bed, last: usize, meddle: impl Fn() + Sync, should_continue: bool) -> bool {
    let steps = AtomicUsize::new(0);
    let staging = bed.open();
    let result = apply(&staging, 1, &|| {
        let step = steps.fetch_add(1, Ordering::Relaxed);
        if step == last {
            meddle();
        }
        step < last || should_continue
    });
    assert!(result.is_ok() || matches!(result, Err(CompactError::Interrupted)), "{result:?}");
    steps.into_inner() > last
}

#[test]
fn outputs_replace_their_inputs() {
    for place in [Where::Beside, Where::Inside] {
        let bed = Bed::new(place);
        let before = bed.lines();
        let applied = bed.recover();
        assert_eq!((applied.outputs, applied.replaced, applied.left), (5, 12, Vec::new()), "{place:?}");
        assert_eq!(bed.lines(), before);
        let mut names: Vec<_> = fs::read_dir(bed.source.join("k=1"))
            .expect("readdir")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        assert_eq!(names, ["_SUCCESS", "large", "part-1", "part-2"]);
        let mode =
            |path: &str| fs::metadata(bed.source.join(path)).expect("stat").permissions().mode() & 0o7777;
        assert_eq!((mode("k=1"), mode("k=1/part-1")), (0o2750, 0o640));
    }
}

#[test]
fn whatever_step_it_ends_at_the_rest_is_done() {
    for place in [Where::Beside, Where::Inside] {
        for last in 0.. {
            let bed = Bed::new(place);
            let before = bed.lines();
            let more = interrupted(&bed, last, || {}, false);
            // Once more while it is finished.
            interrupted(&bed, last / 2, || {}, false);
            bed.recover();
            assert_eq!(bed.lines(), before, "{place:?}, step {last}");
            let files = fs::read_dir(bed.source.join("k=2/deep")).expect("readdir").count();
            assert_eq!(files, 3, "the output, the large file and the mark");
            if !more {
                assert!(last > 20);
                break;
            }
        }
    }
}

#[test]
fn what_others_write_meanwhile_is_kept() {
    for place in [Where::Beside, Where::Inside] {
        for path in
            ["top-2", "k=1/c", "k=2/deep/z", "k=2/beside-a-directory-1", "k=1/new", "k=1/large", "k=2/new"]
        {
            for (should_continue, stride) in [(true, 1), (false, 3)] {
                for last in (0..).step_by(stride) {
                    let bed = Bed::new(place);
                    let mut expected = bed.lines();
                    let more = interrupted(&bed, last, || bed.append(path, "more"), should_continue);
                    bed.recover();
                    if !more {
                        break;
                    }
                    let directory = Path::new(path).parent().expect("a parent").to_owned();
                    let lines = expected.get_mut(&directory).expect("lines");
                    lines.push("more".to_owned());
                    lines.sort();
                    assert_eq!(
                        bed.lines(),
                        expected,
                        "{place:?}, {path}, step {last}, continues: {should_continue}"
                    );
                }
            }
        }
    }
}

/// Changes by others to a file that is to stay, at any step; and the same with an input that changes at that moment.
#[test]
fn what_others_do_with_kept_files_meanwhile_counts() {
    for directory in ["k=1", "k=2", "k=2/deep", ""] {
        for change in ["remove", "rename", "replace"] {
            for (should_continue, input) in
                [(true, None), (false, None), (true, Some("c")), (false, Some("c"))]
            {
                for last in (0..).step_by(if should_continue { 1 } else { 3 }) {
                    let bed = Bed::new(Where::Beside);
                    let of = |name: &str| bed.source.join(directory).join(name);
                    let appended = AtomicBool::new(false);
                    let meddle = || {
                        match change {
                            "remove" => fs::remove_file(of("large")),
                            "rename" => fs::rename(of("large"), of("renamed")),
                            _ => fs::write(of(".fresh"), "fresh\n")
                                .and_then(|()| fs::rename(of(".fresh"), of("large"))),
                        }
                        .expect("changed");
                        if let Some(input) = input.filter(|input| of(input).exists()) {
                            bed.append(&format!("{directory}/{input}"), "more");
                            appended.store(true, Ordering::Relaxed);
                        }
                    };
                    let mut expected = bed.lines();
                    let more = interrupted(&bed, last, meddle, should_continue);
                    bed.recover();
                    if !more {
                        break;
                    }
                    let lines = expected.get_mut(Path::new(directory)).expect("lines");
                    lines.retain(|line| line != "kept" || change == "rename");
                    lines.extend((change == "replace").then(|| "fresh".to_owned()));
                    lines.extend(appended.into_inner().then(|| "more".to_owned()));
                    lines.sort();
                    let when = format!(
                        "{directory}, {change}, step {last}, continues: {should_continue}, {input:?}"
                    );
                    assert_eq!(bed.lines(), expected, "{when}");
                    assert_eq!(of("large").exists(), change == "replace", "{when}");
                }
            }
        }
    }
}

#[test]
fn what_is_removed_while_a_directory_changes_back_stays_removed() {
    for changed in 0..40 {
        for removed in changed..changed + 12 {
            let bed = Bed::new(Where::Beside);
            let large = bed.source.join("k=1/large");
            let (steps, staging) = (AtomicUsize::new(0), bed.open());
            let applied = apply(&staging, 1, &|| {
                let step = steps.fetch_add(1, Ordering::Relaxed);
                if step == changed && bed.source.join("k=1/c").exists() {
                    bed.append("k=1/c", "more");
                }
                if step == removed {
                    fs::remove_file(&large).expect("removed");
                }
                true
            });
            applied.expect("done");
            assert_eq!(large.exists(), steps.into_inner() <= removed, "steps {changed} and {removed}");
        }
    }
}

#[test]
fn inputs_that_have_changed_are_left() {
    for place in [Where::Beside, Where::Inside] {
        let bed = Bed::new(place);
        bed.append("k=1/a", "more");
        fs::remove_file(bed.source.join("k=2/deep/x")).expect("removed");
        std::os::unix::fs::symlink("y", bed.source.join("k=2/deep/x")).expect("a link");
        let before = bed.lines();
        let applied = bed.recover();
        let told: Vec<_> = applied.left.iter().map(|left| left.reason.to_string()).collect();
        assert_eq!(told, ["a has changed since it was read", "x is a symbolic link"]);
        assert_eq!((applied.outputs, bed.lines()), (3, before));
    }
}

#[test]
fn a_directory_that_has_gone_or_may_not_be_changed_is_left() {
    let bed = Bed::new(Where::Beside);
    fs::rename(bed.source.join("k=2"), bed.source.join("renamed")).expect("renamed");
    let before = bed.lines();
    let applied = bed.recover();
    assert_eq!((applied.outputs, applied.left.len()), (3, 2));
    assert_eq!(bed.lines(), before);
}

#[test]
fn a_staging_directory_has_one_owner_and_is_removed_with_its_journal_only() {
    let bed = Bed::new(Where::Beside);
    let staging = bed.open();
    let second = Staging::open(&PosixVolume, &c_path(&bed.staging));
    assert_eq!(second.err(), Some(CompactError::Busy { path: c_path(&bed.staging) }));
    drop(staging);
    interrupted(&bed, 14, || {}, false);
    fs::remove_file(bed.staging.join(".journal")).expect("removed");
    assert!(fs::read_dir(bed.staging.join("swap")).expect("readdir").next().is_some());
    assert!(matches!(bed.open().clear(), Err(CompactError::Orphans { .. })));
}

#[test]
fn without_inputs_outputs_are_revealed() {
    let bed = Bed::new(Where::Beside);
    let target = bed.source.with_file_name("target");
    fs::create_dir(&target).expect("mkdir");
    let mut journal = bed.open().journal().expect("readable").expect("a journal");
    (journal.kind, journal.root) = (Kind::New, c_path(&target));
    bed.open().commit(&journal).expect("written");
    let before = bed.lines();
    for last in 0..40 {
        interrupted(&bed, last, || {}, false);
    }
    bed.recover();
    assert_eq!(bed.lines(), before, "the source is as it was");
    let files = |directory: &str| fs::read_dir(target.join(directory)).expect("readdir").count();
    assert_eq!((files("k=1"), files("k=2/deep"), files("k=2"), files("")), (2, 1, 2, 3));
}

#[test]
fn journals_and_manifests_are_read_as_written() {
    let planned = |directory: &str| Planned {
        directory: c_path(directory),
        staged: c_path("0.1"),
        name: c_path("part"),
    };
    let journal =
        Journal { kind: Kind::New, root: c_path("/r"), outputs: vec![planned(""), planned("a/b=\n")] };
    assert_eq!(Journal::decode(&journal.encode()), Ok(journal.clone()));
    let entry = ManifestEntry { name: c_path("end"), ino: 1, size: 2, mtime: Timestamp { sec: -3, nsec: 4 } };
    let manifest = Manifest { entries: vec![entry] };
    assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest.clone()));
    for cut in 0..journal.encode().len() {
        assert_eq!(Journal::decode(&journal.encode()[..cut]), Err(Malformed));
    }
    for cut in 0..manifest.encode().len() {
        assert_eq!(Manifest::decode(&manifest.encode()[..cut]), Err(Malformed));
    }
    let mut outside = journal;
    outside.outputs[0].directory = c_path("../up");
    assert_eq!(Journal::decode(&outside.encode()), Err(Malformed));
}

#[test]
fn links_in_a_directory_are_obstacles() {
    let scratch = tempfile::tempdir().expect("scratch");
    fs::write(scratch.path().join("file"), "1\n").expect("write");
    fs::create_dir(scratch.path().join("directory")).expect("mkdir");
    for (name, target) in [("to a file", "file"), ("to a directory", "directory"), ("to nothing", "nowhere")]
    {
        std::os::unix::fs::symlink(target, scratch.path().join(name)).expect("symlink");
    }
    let mut found = obstacles(&PosixVolume, &c_path(scratch.path())).expect("a directory");
    found.sort_by_key(|(name, _)| name.clone());
    let links = [c"to a directory", c"to a file", c"to nothing"];
    assert_eq!(found, links.map(|name| (name.to_owned(), Reason::Link(name.to_owned()))));
    assert!(obstacles(&PosixVolume, &c_path(scratch.path().join("nowhere"))).is_err());
}

/// Issue 36: the directory of a file that cannot be renamed was exchanged with it, and could not be put back.
#[test]
fn immutable_and_append_only_files_are_left() {
    for (flag, name) in [(IFlags::IMMUTABLE, c"a"), (IFlags::APPEND, c"a"), (IFlags::IMMUTABLE, c".a.crc")] {
        let bed = Bed::new(Where::Beside);
        let path = bed.source.join("k=1").join(name.to_str().expect("ASCII"));
        let file = fs::File::open(&path).expect("opens");
        let before = bed.lines();
        ioctl_setflags(&file, flag).expect("this test needs root, and a file system with such flags");
        let applied = bed.recover();
        ioctl_setflags(&file, IFlags::empty()).expect("set back");
        let reasons: Vec<_> = applied.left.into_iter().map(|left| left.reason).collect();
        assert_eq!(reasons, [Reason::Immovable(name.to_owned())]);
        assert!(path.exists() && !bed.source.join("k=1/part-1").exists());
        assert_eq!(bed.lines(), before);
    }
}

/// A user and their group.
const USER: u32 = 65534;

fn chown_all(path: &Path, user: u32) {
    std::os::unix::fs::chown(path, Some(user), Some(user)).expect("this test needs root");
    for entry in fs::read_dir(path).expect("readdir").flatten() {
        if entry.path().is_dir() {
            chown_all(&entry.path(), user);
        } else {
            std::os::unix::fs::chown(entry.path(), Some(user), Some(user)).expect("chown");
        }
    }
}

#[test]
fn files_of_others_in_directories_with_the_sticky_bit_are_left() {
    let bed = Bed::new(Where::Beside);
    chown_all(bed.source.parent().expect("the scratch directory"), USER);
    let sticky = bed.source.join("k=1");
    for path in [sticky.clone(), sticky.join("a")] {
        std::os::unix::fs::chown(path, Some(0), Some(0)).expect("chown");
    }
    fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).expect("chmod");
    let before = bed.lines();
    let by_user = || {
        // Of this thread only.
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(USER)).expect("root may");
        (obstacles(&PosixVolume, &c_path(&sticky)).expect("a directory"), bed.recover())
    };
    let (foreseen, applied) = std::thread::scope(|scope| scope.spawn(by_user).join().expect("no panic"));
    let reason = Reason::Sticky(c"a".to_owned());
    assert_eq!(foreseen, [(c"a".to_owned(), reason.clone())]);
    assert_eq!(applied.left.into_iter().map(|left| left.reason).collect::<Vec<_>>(), [reason]);
    assert!(sticky.join("a").exists() && sticky.join("part-2").exists() && !sticky.join("part-1").exists());
    assert_eq!(bed.lines(), before);
}
