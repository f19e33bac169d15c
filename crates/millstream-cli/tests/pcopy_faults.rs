//! `pcopy` when things go wrong: full file systems, kills, swapped directories; and what GNU's tool does not have.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};

const PCOPY: &str = env!("CARGO_BIN_EXE_pcopy");

fn pcopy(words: &[&str], directory: &Path) -> Output {
    Command::new(PCOPY).args(words).current_dir(directory).env("LC_ALL", "C").output().expect("pcopy runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Files of the tree with their contents.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("readable").flatten() {
            let path = entry.path();
            match entry.file_type().expect("a type") {
                kind if kind.is_dir() => pending.push(path),
                _ => {
                    let relative = path.strip_prefix(root).expect("below").to_owned();
                    files.insert(relative, fs::read(&path).expect("readable"));
                }
            }
        }
    }
    files
}

/// A tree whose files all have an old time.
fn grow(root: &Path, directories: usize, files: usize, bytes: usize) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    for directory in 0..directories {
        let directory = root.join(format!("d{directory}"));
        fs::create_dir_all(&directory).expect("a directory");
        for file in 0..files {
            let path = directory.join(format!("f{file}"));
            let byte = b'a' + (file % 26) as u8;
            fs::write(&path, vec![byte; bytes + file]).expect("a file");
            File::open(&path).and_then(|file| file.set_modified(old)).expect("a time");
        }
    }
}

#[test]
fn a_full_file_system_leaves_no_torn_file_with_atomic() {
    assert!(rustix::process::geteuid().is_root(), "this test mounts a small file system");
    let scratch = tempfile::tempdir().expect("scratch");
    let (source, small) = (scratch.path().join("source"), scratch.path().join("small"));
    fs::create_dir(&small).expect("a directory");
    grow(&source, 3, 20, 100_000);
    // The large file is written by the carriers; it may take all of the space first.
    for (large, at_least) in [(0, 6), (20 << 20, 0)] {
        fs::write(source.join("large"), vec![7; large]).expect("a file");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(&small).status();
        assert!(mounted.expect("mount runs").success());
        let output = pcopy(&["-a", "--atomic", "source", "small/copy"], scratch.path());
        let copied = contents(&small.join("copy"));
        // Processes that other tests are about to start may still share this one's descriptors.
        let unmounted = Command::new("umount").arg("--lazy").arg(&small).status();
        assert!(unmounted.expect("umount runs").success());
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("No space left on device"), "{}", text(&output.stderr));
        let all = contents(&source);
        assert!((at_least..all.len()).contains(&copied.len()), "{}", copied.len());
        for (path, data) in copied {
            assert!(all.get(&path) == Some(&data), "{path:?} is torn, or a temporary file");
        }
    }
}

/// Kills copies at many moments; no final name ever holds half a file, and a last run completes the copy.
#[test]
fn killed_copies_are_resumed() {
    for options in [&["-a", "--resume", "--atomic"][..], &["-a", "--resume"]] {
        let scratch = tempfile::tempdir().expect("scratch");
        let source = scratch.path().join("source");
        grow(&source, 4, 60, 60_000);
        fs::write(source.join("large"), vec![9; 24 << 20]).expect("a file");
        let all = contents(&source);
        let words = [options, &["-T", "source", "copy"]].concat();
        for milliseconds in [3, 6, 10, 15, 20, 30, 45] {
            let mut child =
                Command::new(PCOPY).args(&words).current_dir(scratch.path()).spawn().expect("pcopy runs");
            thread::sleep(Duration::from_millis(milliseconds));
            child.kill().expect("kill");
            child.wait().expect("waited for");
            if options.contains(&"--atomic") && scratch.path().join("copy").exists() {
                for (path, data) in contents(&scratch.path().join("copy")) {
                    let is_temporary = path.to_string_lossy().contains(".pcopy-");
                    assert!(is_temporary || all.get(&path) == Some(&data), "{path:?} is torn");
                }
            }
        }
        let output = pcopy(&words, scratch.path());
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        let copied = contents(&scratch.path().join("copy"));
        for (path, data) in &all {
            assert!(copied.get(path) == Some(data), "{path:?} {options:?}");
        }
        // Everything is complete: nothing is written again.
        let before = fs::metadata(scratch.path().join("copy/d0/f0")).expect("there").ctime_nsec();
        let records = text(&pcopy(&[&words[..], &["--json"]].concat(), scratch.path()).stdout);
        assert!(records.lines().all(|line| line.contains(r#""action":"skip""#)), "{records}");
        assert_eq!(fs::metadata(scratch.path().join("copy/d0/f0")).expect("there").ctime_nsec(), before);
    }
}

#[test]
fn a_torn_file_is_never_taken_for_complete() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 1, 3, 5_000);
    let words = ["-a", "--resume", "-T", "source", "copy"];
    assert!(pcopy(&words, scratch.path()).status.success());
    // As long as it should be, and not what it should be: writing has set its time.
    fs::write(scratch.path().join("copy/d0/f1"), vec![0; 5_001]).expect("a file");
    assert!(pcopy(&words, scratch.path()).status.success());
    assert!(contents(&scratch.path().join("source")) == contents(&scratch.path().join("copy")));
    // With the right time only reading tells.
    let copy = scratch.path().join("copy/d0/f1");
    let time = fs::metadata(&copy).and_then(|m| m.modified()).expect("a time");
    fs::write(&copy, vec![0; 5_001]).expect("a file");
    File::open(&copy).and_then(|file| file.set_modified(time)).expect("a time");
    let output = pcopy(&["-a", "--resume", "--verify", "-T", "source", "copy"], scratch.path());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert!(contents(&scratch.path().join("source")) == contents(&scratch.path().join("copy")));
}

/// What lacks an attribute is not complete: the next run says so again.
#[test]
fn a_resumed_copy_does_not_forget_what_failed() {
    assert!(rustix::process::geteuid().is_root(), "this test sets attributes that only root may set");
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 1, 2, 100);
    let attribute = Command::new("setfattr")
        .args(["-n", "trusted.secret", "-v", "x", "source/d0/f0"])
        .current_dir(scratch.path())
        .status();
    assert!(attribute.expect("setfattr runs").success());
    fs::create_dir(scratch.path().join("mnt")).expect("a directory");
    let mounted =
        Command::new("mount").args(["-t", "ramfs", "ramfs"]).arg(scratch.path().join("mnt")).status();
    assert!(mounted.expect("mount runs").success());
    let outputs: Vec<_> = (0..2)
        .map(|_| {
            pcopy(&["-r", "-p", "--preserve=xattr", "--resume", "-T", "source", "mnt/copy"], scratch.path())
        })
        .collect();
    let unmounted = Command::new("umount").arg(scratch.path().join("mnt")).status();
    assert!(unmounted.expect("umount runs").success());
    for output in outputs {
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("d0/f0"), "{}", text(&output.stderr));
    }
}

/// What is there stays until the copy is complete, whatever made the tool want to remove it first.
#[test]
fn atomic_copies_remove_nothing_first() {
    assert!(rustix::process::geteuid().is_root(), "this test mounts a small file system");
    for options in [&["-a"][..], &["--remove-destination"]] {
        let scratch = tempfile::tempdir().expect("scratch");
        let small = scratch.path().join("small");
        fs::write(scratch.path().join("file"), vec![7; 2 << 20]).expect("a file");
        fs::create_dir(&small).expect("a directory");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small).status();
        assert!(mounted.expect("mount runs").success());
        fs::write(small.join("file"), b"old").expect("a file");
        fs::hard_link(small.join("file"), small.join("other")).expect("a link");
        let output = pcopy(&[options, &["--atomic", "file", "small/file"]].concat(), scratch.path());
        let left = contents(&small);
        // Processes that other tests are about to start may still share this one's descriptors.
        let unmounted = Command::new("umount").arg("--lazy").arg(&small).status();
        assert!(unmounted.expect("umount runs").success());
        assert_eq!(output.status.code(), Some(1));
        let old = |name: &str| (PathBuf::from(name), b"old".to_vec());
        assert_eq!(left, BTreeMap::from([old("file"), old("other")]), "{options:?}");
    }
}

/// Directories of both sides are swapped for links that lead outside while copies run.
#[test]
fn swapped_directories_lead_nowhere() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    grow(&at("source"), 6, 40, 100);
    fs::create_dir(at("outside")).expect("a directory");
    fs::create_dir(at("secret")).expect("a directory");
    for file in 0..40 {
        fs::write(at(&format!("secret/f{file}")), "secret").expect("a file");
    }
    symlink(at("outside"), at("to-outside")).expect("a link");
    symlink(at("secret"), at("to-secret")).expect("a link");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (one, other) in [("copy/d3", "to-outside"), ("source/d2", "to-secret")] {
                    for _ in 0..2 {
                        // Where there is no copy yet there is nothing to swap.
                        let _ = renameat_with(CWD, at(one), CWD, at(other), RenameFlags::EXCHANGE);
                    }
                }
            }
        });
        let _stop = StopWhenDone(&over);
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(4) {
            // It may well complain of what vanishes under its hands.
            pcopy(&["-a", "-T", "source", "copy"], scratch.path());
            let leaked: Vec<_> =
                fs::read_dir(at("outside")).expect("there").flatten().map(|e| e.path()).collect();
            assert!(leaked.is_empty(), "written outside: {leaked:?}");
            for directory in 0..6 {
                let path = at(&format!("copy/d{directory}"));
                if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                    let data = fs::read(path.join("f1")).unwrap_or_default();
                    assert_ne!(data, b"secret", "read outside");
                }
            }
            // The swapping goes on while the copy is removed.
            while at("copy").exists() {
                let _ = fs::remove_dir_all(at("copy"));
            }
        }
    });
}

/// Lets the other thread end also if this one panics.
struct StopWhenDone<'a>(&'a AtomicBool);

impl Drop for StopWhenDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Below the operands nothing is named by a path.
#[test]
fn every_call_below_an_operand_is_relative_to_a_handle() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 3, 5, 100);
    symlink("f0", scratch.path().join("source/d0/link")).expect("a link");
    fs::hard_link(scratch.path().join("source/d0/f0"), scratch.path().join("source/d1/hard"))
        .expect("a link");
    let trace = scratch.path().join("trace");
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=%file,%desc", "-o"])
        .arg(&trace)
        .args([PCOPY, "-a", "--backup=numbered", "source", "copy"])
        .current_dir(scratch.path())
        .status()
        .expect("strace runs");
    assert!(traced.success());
    let trace = fs::read_to_string(&trace).expect("a trace");
    let below = |line: &&str| {
        line.contains("\"source/d")
            || line.contains("\"copy/d")
            || line.contains("\"d0/")
            || line.contains("\"d1/")
    };
    assert_eq!(trace.lines().filter(below).collect::<Vec<_>>(), Vec::<&str>::new());
    let opened = trace.lines().filter(|line| line.contains("openat(") && line.contains("\"f0\""));
    // Three directories have one; one of the three may become a link of another name's copy.
    assert!(opened.clone().count() >= 5, "{trace}");
    opened.for_each(|line| assert!(line.contains("O_NOFOLLOW"), "{line}"));
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 2, 2, 10);
    fs::create_dir(scratch.path().join("copy")).expect("a directory");
    fs::write(scratch.path().join("copy/there"), "x").expect("a file");
    let told = |words: &[&str]| {
        let mut lines: Vec<_> =
            text(&pcopy(words, scratch.path()).stdout).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let dry = told(&["-a", "--dry-run", "source", "copy"]);
    assert_eq!(contents(&scratch.path().join("copy")).len(), 1);
    assert_eq!(dry, told(&["-av", "source", "copy"]));
}

#[test]
fn records_tell_actions_and_errors() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 1, 1, 10);
    symlink("x", scratch.path().join("source/link")).expect("a link");
    let output = pcopy(&["-a", "--json", "source", "missing", "."], scratch.path());
    assert_eq!(output.status.code(), Some(1));
    let output = pcopy(&["-aT", "--json", "source", "copy"], scratch.path());
    let mut lines: Vec<_> = text(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            r#"{"action":"copy","source":"source/d0/f0","path":"copy/d0/f0","bytes":10}"#,
            r#"{"action":"make directory","source":"source","path":"copy"}"#,
            r#"{"action":"make directory","source":"source/d0","path":"copy/d0"}"#,
            r#"{"action":"make symlink","source":"source/link","path":"copy/link"}"#,
        ]
    );
    let output = pcopy(&["--json", "missing", "x"], scratch.path());
    assert_eq!(
        text(&output.stdout),
        "{\"error\":\"No such file or directory\",\"errno\":2,\"operation\":\"stat\",\"path\":\"missing\"}\n"
    );
}

#[test]
fn bandwidth_is_limited() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 2, 5, 100_000);
    let started = Instant::now();
    let output = pcopy(&["-a", "--bwlimit=1M", "source", "copy"], scratch.path());
    assert!(output.status.success());
    assert!(started.elapsed() > Duration::from_millis(700), "{:?}", started.elapsed());
    assert!(contents(&scratch.path().join("source")) == contents(&scratch.path().join("copy")));
}

/// The calls that users of the RapidFile Toolkit make.
#[test]
fn rapidfile_calls_work() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 2, 3, 1000);
    fs::set_permissions(scratch.path().join("source/d0"), fs::Permissions::from_mode(0o711)).expect("chmod");
    assert!(pcopy(&["-r", "-T", "-p", "source", "one"], scratch.path()).status.success());
    fs::create_dir(scratch.path().join("two")).expect("a directory");
    assert!(pcopy(&["-r", "-p", "source", "two"], scratch.path()).status.success());
    let all = contents(&scratch.path().join("source"));
    for copy in ["one", "two/source"] {
        assert!(contents(&scratch.path().join(copy)) == all);
        let mode = fs::metadata(scratch.path().join(copy).join("d0")).expect("there").mode();
        assert_eq!(mode & 0o7777, 0o711);
    }
}

/// A file that many threads share comes out whole, holes included.
#[test]
fn large_files_are_whole() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("large");
    let block: Vec<u8> = (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    {
        use std::os::unix::fs::FileExt;
        let file = File::create(&path).expect("a file");
        for at in [0, 1, 70, 71, 130, 199] {
            file.write_all_at(&block, at << 20).expect("written");
        }
        file.set_len((210 << 20) + 17).expect("a hole");
    }
    for options in [
        &["-a"][..],
        &["-a", "--reflink=never"],
        &["--sparse=always"],
        &["-a", "--verify", "--atomic", "--threads=4"],
    ] {
        let words = [options, &["large", "copy"]].concat();
        let output = pcopy(&words, scratch.path());
        assert!(output.status.success(), "{options:?} {}", text(&output.stderr));
        let copied = scratch.path().join("copy");
        assert!(fs::read(&path).expect("readable") == fs::read(&copied).expect("readable"), "{options:?}");
        let blocks = fs::metadata(&copied).expect("there").blocks();
        assert!(blocks * 512 < 20 << 20, "{options:?} takes {blocks} blocks");
        fs::remove_file(&copied).expect("removed");
    }
}
