//! `pcopy` when things go wrong: full file systems, kills, swapped directories, signals.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::copies::{PATIENCE, PCOPY, contents, grow, pcopy, pipe, text};

/// A tool at work beside the test, which it does not outlive.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("the tool runs"))
    }

    /// The tool, whichever signals the test was started to ignore, as it is by `nohup`.
    fn pcopy(words: &[&str], directory: &Path) -> Running {
        let mut env = Command::new("env");
        Running::start(env.args(["--default-signal", PCOPY]).args(words).current_dir(directory))
    }

    /// Waits until something has happened, which it does while the tool runs or never.
    fn wait_for<T>(&mut self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            let ended = self.0.try_wait().expect("waited for");
            assert!(ended.is_none(), "no {what} before pcopy ended: {ended:?}");
            assert!(started.elapsed() < PATIENCE, "no {what} in {PATIENCE:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The end of a pipe that is written into, once the tool has the other one open.
    fn open_pipe(&mut self, path: &Path) -> File {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        self.wait_for("reader of the pipe", || {
            File::options().write(true).custom_flags(flags).open(path).ok()
        })
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("kill");
    }

    fn ends(mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("waited for") {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "pcopy still runs after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is in `small/copy`, on a file system of 3 MB, after a run that finds it full.
fn copied_until_full(scratch: &Path, options: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    assert!(rustix::process::geteuid().is_root(), "this test mounts a small file system");
    let small = scratch.join("small");
    fs::create_dir_all(&small).expect("a directory");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(&small).status();
    assert!(mounted.expect("mount runs").success());
    let output = pcopy(&[options, &["source", "small/copy"]].concat(), scratch);
    let copied = contents(&small.join("copy"));
    // Processes that other tests are about to start may still share this one's descriptors.
    let unmounted = Command::new("umount").arg("--lazy").arg(&small).status();
    assert!(unmounted.expect("umount runs").success());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("No space left on device"), "{}", text(&output.stderr));
    copied
}

#[test]
fn a_full_file_system_leaves_no_torn_file() {
    let scratch = tempfile::tempdir().expect("scratch");
    let source = scratch.path().join("source");
    grow(&source, 3, 20, 100_000);
    // The large file is written by the copy workers; it may take all of the space first.
    for (large, at_least) in [(0, 6), (20 << 20, 0)] {
        fs::write(source.join("large"), vec![7; large]).expect("a file");
        let all = contents(&source);
        for options in [&["-a", "--atomic"][..], &["-a"], &["-r", "--verify"]] {
            let copied = copied_until_full(scratch.path(), options);
            assert!((at_least..all.len()).contains(&copied.len()), "{options:?}: {}", copied.len());
            for (path, data) in copied {
                assert!(all.get(&path) == Some(&data), "{options:?}: {path:?} is torn, or a temporary file");
            }
        }
    }
}

/// With `--resume` the next run continues an incomplete copy, and never mistakes it for a complete one.
#[test]
fn a_full_file_system_leaves_everything_for_a_run_that_resumes() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 3, 20, 100_000);
    let all = contents(&scratch.path().join("source"));
    let copied = copied_until_full(scratch.path(), &["-a", "--resume"]);
    assert!(copied.iter().any(|(path, data)| all.get(path) != Some(data)), "nothing is torn");
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
            let running = Running::pcopy(&words, scratch.path());
            // Whatever it has come to.
            thread::sleep(Duration::from_millis(milliseconds));
            running.signal(Signal::KILL);
            running.ends();
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
    let attributes = Command::new("sh")
        .args([
            "-c",
            // A copy that is made within one tick of the clock has its source's time anyway.
            "mkfifo source/d0/pipe && setfattr -n trusted.secret -v x source/d0/f0 source/d0/pipe &&
             touch -d '1 hour ago' source/d0/f0 source/d0/pipe",
        ])
        .current_dir(scratch.path())
        .status();
    assert!(attributes.expect("sh runs").success());
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
        for name in ["d0/f0", "d0/pipe"] {
            assert!(text(&output.stderr).contains(name), "{name}: {}", text(&output.stderr));
        }
    }
}

/// Several sources that end in one file, by hard links or symbolic ones: it gets the contents of one of them as a
/// whole.
#[test]
fn a_file_with_several_names_gets_one_source_as_a_whole() {
    for (large, small, rounds) in [(20 << 20, 9 << 20, 2), (200_000, 100_000, 20)] {
        for link in ["ln target/a target/b", "ln -s a target/b"] {
            for round in 0..rounds {
                let scratch = tempfile::tempdir().expect("scratch");
                let made = Command::new("sh")
                    .args(["-c", &format!("mkdir source target && touch target/a && {link}")])
                    .current_dir(scratch.path())
                    .status();
                assert!(made.expect("sh runs").success());
                fs::write(scratch.path().join("source/a"), vec![b'a'; large]).expect("a file");
                fs::write(scratch.path().join("source/b"), vec![b'b'; small]).expect("a file");
                let threads = ["--threads=1", "--threads=8"][round % 2];
                let output = pcopy(&["-r", threads, "source/.", "target"], scratch.path());
                assert!(output.status.success(), "{}", text(&output.stderr));
                let found = fs::read(scratch.path().join("target/a")).expect("a copy");
                let is_one = found == vec![b'a'; large] || found == vec![b'b'; small];
                assert!(is_one, "{link}, {threads}: {} bytes, of neither source", found.len());
            }
        }
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

/// A small file system, unmounted in the end.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(at: &Path, options: &str) -> Mount {
        assert!(rustix::process::geteuid().is_root(), "this test mounts a small file system");
        fs::create_dir(at).expect("a directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).status();
        assert!(mounted.expect("mount runs").success());
        Mount(at.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

fn gnu(words: &[&str], directory: &Path) -> Output {
    Command::new("/bin/cp").args(words).current_dir(directory).env("LC_ALL", "C").output().expect("cp runs")
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = text(bytes).lines().map(|line| line.replace("pcopy: ", "/bin/cp: ")).collect();
    lines.sort();
    lines
}

/// If the copy fails, the backup is restored, whichever thread moved the data.
#[test]
fn backups_of_copies_that_fail_are_put_back() {
    for size in [2 << 20, 12 << 20] {
        for options in [&["-bv"][..], &["-v", "--backup=numbered", "--remove-destination"], &["-abv"]] {
            let outcome = |tool: &dyn Fn(&[&str], &Path) -> Output| {
                let scratch = tempfile::tempdir().expect("scratch");
                fs::write(scratch.path().join("file"), vec![7; size]).expect("a file");
                let small = Mount::tmpfs(&scratch.path().join("small"), "size=1m");
                fs::write(small.0.join("file"), "old").expect("a file");
                let output = tool(&[options, &["file", "small/file"]].concat(), scratch.path());
                (output.status.code(), lines(&output.stdout), lines(&output.stderr), contents(&small.0))
            };
            let (theirs, ours) = (outcome(&gnu), outcome(&pcopy));
            assert_eq!(ours, theirs, "{options:?} {size}");
            assert_eq!(ours.3, BTreeMap::from([("file".into(), b"old".to_vec())]), "{options:?} {size}");
        }
    }
    let scratch = tempfile::tempdir().expect("scratch");
    fs::write(scratch.path().join("file"), vec![7; 12 << 20]).expect("a file");
    let small = Mount::tmpfs(&scratch.path().join("small"), "size=1m");
    fs::write(small.0.join("file"), "old").expect("a file");
    for more in ["--atomic", "--verify"] {
        let output = pcopy(&["-b", "--json", more, "file", "small/file"], scratch.path());
        assert_eq!(output.status.code(), Some(1));
        let record = r#"{"action":"put back","source":"small/file~","path":"small/file"}"#;
        assert!(text(&output.stdout).lines().any(|line| line == record), "{}", text(&output.stdout));
        assert_eq!(contents(&small.0), BTreeMap::from([("file".into(), b"old".to_vec())]), "{more}");
    }
}

/// No further name of a file is made before the copy that it is linked to is complete.
#[test]
fn names_are_linked_to_complete_copies_only() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("source")).expect("a directory");
    fs::write(at("source/a"), vec![7; 12 << 20]).expect("a file");
    fs::hard_link(at("source/a"), at("source/b")).expect("a link");
    let words = ["-a", "--reflink=never", "--bwlimit=1M", "-T", "source", "copy"];
    let mut running = Running::pcopy(&words, scratch.path());
    // By now the turn of the other name has come, and most of the data is still missing.
    running.wait_for("copy that grows", || {
        let entries = fs::read_dir(at("copy")).ok()?.flatten();
        entries.flat_map(|entry| entry.metadata()).find(|metadata| metadata.len() > 512 << 10)
    });
    running.signal(Signal::KILL);
    assert_eq!(running.ends().signal(), Some(Signal::KILL.as_raw()));
    let names = contents(&at("copy"));
    assert_eq!(names.len(), 1, "{:?}", names.keys());
    assert!(names.values().all(|data| data.len() < 12 << 20), "the copy was complete already");
    assert!(pcopy(&["-a", "-T", "source", "copy"], scratch.path()).status.success());
    assert_eq!(fs::metadata(at("copy/a")).expect("there").nlink(), 2);
    // Where the first one fails the next one is tried again, and nothing is linked to what is torn.
    let small = Mount::tmpfs(&at("small"), "size=1m");
    let output = pcopy(&["-a", "-T", "source", "small/copy"], scratch.path());
    assert_eq!(lines(&output.stderr).len(), 2, "{}", text(&output.stderr));
    for entry in fs::read_dir(small.0.join("copy")).expect("readable").flatten() {
        assert_eq!(entry.metadata().expect("there").nlink(), 1, "{:?}", entry.path());
    }
}

/// A thread that waits for a copy does not block its completion.
#[test]
fn many_names_of_large_files_wait_for_their_copies() {
    let scratch = tempfile::tempdir().expect("scratch");
    let source = scratch.path().join("source");
    for directory in 0..6 {
        fs::create_dir_all(source.join(format!("d{directory}"))).expect("a directory");
    }
    for file in 0..8 {
        let first = source.join(format!("d0/f{file}"));
        File::create(&first).and_then(|file| file.set_len(9 << 20)).expect("a file");
        for directory in 1..6 {
            fs::hard_link(&first, source.join(format!("d{directory}/f{file}"))).expect("a link");
        }
    }
    for (threads, copy) in [("--threads=1", "one"), ("--threads=2", "two"), ("--threads=9", "nine")] {
        let output = Command::new("timeout")
            .args(["60", PCOPY, "-a", threads, "--atomic", "source", copy])
            .current_dir(scratch.path())
            .output()
            .expect("timeout runs");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{threads}");
        for file in 0..8 {
            let name = scratch.path().join(copy).join(format!("d3/f{file}"));
            assert_eq!(fs::metadata(name).expect("there").nlink(), 6);
        }
    }
}

/// What is in the place of a link stays if the link cannot be made.
#[test]
fn a_link_that_fails_removes_nothing() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir_all(at("source/sub")).expect("directories");
    fs::write(at("source/file"), "new").expect("a file");
    fs::hard_link(at("source/file"), at("source/sub/file")).expect("a link");
    for options in [&["-a"][..], &["-a", "--remove-destination"], &["-a", "--atomic"], &["-ab"]] {
        fs::create_dir(at("copy")).expect("a directory");
        {
            // No link leads from one file system to another.
            let other = Mount::tmpfs(&at("copy/sub"), "size=1m");
            for file in [at("copy/file"), other.0.join("file")] {
                fs::write(&file, "old").expect("a file");
            }
            let output = pcopy(&[options, &["-T", "source", "copy"]].concat(), scratch.path());
            assert_eq!(output.status.code(), Some(1));
            let message = "Invalid cross-device link";
            assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
            let (backups, found): (Vec<_>, Vec<_>) = contents(&at("copy"))
                .into_iter()
                .partition(|(path, _)| path.to_string_lossy().ends_with('~'));
            // What was not linked has its backup's data again.
            assert_eq!(backups.len(), usize::from(options == ["-ab"]), "{options:?}");
            let mut found: Vec<_> = found.into_iter().map(|(_, data)| data).collect();
            found.sort();
            assert_eq!(found, [b"new".to_vec(), b"old".to_vec()], "{options:?}");
        }
        fs::remove_dir_all(at("copy")).expect("removed");
    }
}

/// Something else takes the name of a copy before its further names are made.
#[test]
fn names_are_linked_to_the_copy_and_nothing_else() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("into")).expect("a directory");
    fs::write(at("a"), "the copy").expect("a file");
    fs::hard_link(at("a"), at("h")).expect("a link");
    pipe(&at("pause"));
    let words = ["--preserve=links", "--threads=1", "a", "pause", "h", "into"];
    let mut running = Running::pcopy(&words, scratch.path());
    // The pipe opens when its turn has come.
    let pause = running.open_pipe(&at("pause"));
    fs::write(at("intruder"), "the intruder").expect("a file");
    fs::rename(at("intruder"), at("into/a")).expect("renamed");
    drop(pause);
    assert!(running.ends().success());
    assert_eq!(fs::read(at("into/h")).expect("readable"), b"the copy");
    assert_eq!(fs::read(at("into/a")).expect("readable"), b"the intruder");
}

/// `ulimit -f` is an error of the files that are larger; the others are copied.
#[test]
fn a_limit_of_size_fails_only_larger_files() {
    let scratch = tempfile::tempdir().expect("scratch");
    let source = scratch.path().join("source");
    fs::create_dir(&source).expect("a directory");
    fs::write(source.join("large"), vec![1; 300_000]).expect("a file");
    fs::write(source.join("small"), "1").expect("a file");
    let mut command = Command::new("prlimit");
    command.args(["--fsize=100000", PCOPY, "-r", "source", "copy"]).env("LC_ALL", "C");
    let output = command.current_dir(scratch.path()).output().expect("prlimit runs");
    let expected = "pcopy: error writing 'copy/large': File too large\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected.to_owned()));
    assert_eq!(fs::read(scratch.path().join("copy/small")).expect("copied"), b"1");
}

/// However few files may be open: directories, further names, large files, and the directories of `--parents`.
#[test]
fn few_open_files_are_enough() {
    let scratch = tempfile::tempdir().expect("scratch");
    let source = scratch.path().join("source");
    let mut operands = Vec::new();
    for index in 0..300 {
        let directory = source.join(format!("a{}/b{}/c{}/d{index}", index % 5, index % 7, index % 11));
        fs::create_dir_all(directory.join("empty/empty")).expect("directories");
        fs::write(directory.join("file"), index.to_string()).expect("a file");
        if index % 7 == 0 {
            File::create(directory.join("large")).and_then(|file| file.set_len(9 << 20)).expect("a file");
        }
        let linked = source.join(format!("link{index}"));
        fs::hard_link(directory.join("file"), linked).expect("a link");
        let path = directory.strip_prefix(scratch.path()).expect("below").join("file");
        operands.push(path.into_os_string());
    }
    let limited = |limit: &str, words: &[&str], operands: &[std::ffi::OsString], into: &str| {
        let mut command = Command::new("prlimit");
        command.args([limit, PCOPY, "--threads=64"]).args(words).args(operands).arg(into);
        let output = command.current_dir(scratch.path()).output().expect("prlimit runs");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words:?}");
    };
    for (limit, options) in [("--nofile=44:44", "-a"), ("--nofile=100:100", "-a --verify")] {
        let options: Vec<_> = options.split(' ').collect();
        limited(limit, &[&options[..], &["-T", "source"]].concat(), &[], "copy");
        limited(limit, &["-a", "--resume", "-T", "source"], &[], "copy");
        fs::create_dir(scratch.path().join("into")).expect("a directory");
        limited(limit, &["-a", "--parents"], &operands, "into");
        assert_eq!(contents(&scratch.path().join("into")).len(), 300);
        let unlike = Command::new("diff").args(["-r", "source", "copy"]).current_dir(scratch.path()).output();
        assert_eq!(text(&unlike.expect("diff runs").stdout), "", "{limit}");
        for copy in ["copy", "into"] {
            fs::remove_dir_all(scratch.path().join(copy)).expect("removed");
        }
    }
}

/// A signal that asks to end takes the temporary files away first, and is what the run dies of.
#[test]
fn signals_leave_no_temporary_file() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 2, 5, 10_000);
    fs::write(scratch.path().join("source/large"), vec![7; 12 << 20]).expect("a file");
    let copy = scratch.path().join("copy");
    // Nothing is read: files come and go.
    let temporaries = || {
        let directories = [copy.clone(), copy.join("d0"), copy.join("d1")];
        let entries = directories.iter().flat_map(fs::read_dir).flatten().flatten();
        let names = entries.map(|entry| entry.path());
        names.filter(|name| name.to_string_lossy().contains(".pcopy-")).collect::<Vec<_>>()
    };
    let is_there = || (!temporaries().is_empty()).then_some(());
    let words = ["-a", "--atomic", "--reflink=never", "--bwlimit=100K", "-T", "source", "copy"];
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut running = Running::pcopy(&words, scratch.path());
        running.wait_for("temporary file", is_there);
        running.signal(signal);
        // All of it would take two minutes.
        assert_eq!(running.ends().signal(), Some(signal.as_raw()));
        assert_eq!(temporaries(), Vec::<PathBuf>::new());
        fs::remove_dir_all(&copy).expect("removed");
    }
    // Also where a call never returns: nobody writes into the pipe, which is open already.
    pipe(&scratch.path().join("pipe"));
    fs::create_dir(&copy).expect("a directory");
    let mut running = Running::pcopy(&["--atomic", "pipe", "copy/file"], scratch.path());
    let _pipe = running.open_pipe(&scratch.path().join("pipe"));
    running.wait_for("temporary file", is_there);
    running.signal(Signal::TERM);
    assert_eq!(running.ends().signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(temporaries(), Vec::<PathBuf>::new());
    // A process started with interrupts ignored keeps ignoring them.
    let script = format!("trap '' INT; exec {PCOPY} -a --atomic --reflink=never --bwlimit=4M -T source copy");
    let mut running = Running::start(Command::new("sh").args(["-c", &script]).current_dir(scratch.path()));
    running.wait_for("temporary file", is_there);
    running.signal(Signal::INT);
    assert!(running.ends().success());
    assert!(contents(&copy) == contents(&scratch.path().join("source")));
}

/// Left over by a killed process of the same number, as it is in every container, they are in nobody's way, and stay.
#[test]
fn temporary_files_left_over_are_passed_by() {
    let scratch = tempfile::tempdir().expect("scratch");
    grow(&scratch.path().join("source"), 1, 3, 100);
    fs::create_dir_all(scratch.path().join("copy/d0")).expect("directories");
    for serial in 0..20 {
        fs::write(scratch.path().join(format!("copy/d0/.pcopy-1-{serial}.tmp")), "left").expect("a file");
    }
    let output = Command::new("unshare")
        .args(["--pid", "--fork", PCOPY, "-a", "--atomic", "-T", "source", "copy"])
        .current_dir(scratch.path())
        .output()
        .expect("unshare runs");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let (left, copied): (Vec<_>, Vec<_>) = contents(&scratch.path().join("copy"))
        .into_iter()
        .partition(|(path, _)| path.to_string_lossy().contains(".pcopy-"));
    assert!(left.len() == 20 && left.iter().all(|(_, data)| data == b"left"));
    assert!(BTreeMap::from_iter(copied) == contents(&scratch.path().join("source")));
}

/// Whatever examination fails, no temporary file stays.
#[test]
fn nothing_temporary_stays_when_it_cannot_be_examined() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    let calls = "statx,fstat,newfstatat";
    let mut failures = 0;
    for call in 1..60 {
        let _ = fs::remove_dir_all(at("copy"));
        fs::create_dir_all(at("source")).expect("a directory");
        fs::create_dir(at("copy")).expect("a directory");
        for name in ["a", "b"] {
            fs::write(at("copy").join(name), "old").expect("a file");
        }
        if call == 1 {
            fs::write(at("source/a"), "new").expect("a file");
            fs::hard_link(at("source/a"), at("source/b")).expect("a link");
        }
        let output = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e"])
            .arg(format!("inject={calls}:error=EIO:when={call}"))
            .args([PCOPY, "-a", "--atomic", "--threads=1", "-T", "source", "copy"])
            .current_dir(scratch.path())
            .env("LC_ALL", "C")
            .output()
            .expect("strace runs");
        let (said, names) = (text(&output.stderr), contents(&at("copy")));
        failures += usize::from(said.contains("Input/output error"));
        let temporary = names.keys().find(|name| name.to_string_lossy().contains(".pcopy-"));
        assert!(temporary.is_none(), "call {call}: {temporary:?} stays, {said}");
    }
    assert!(failures > 3, "only {failures} calls failed");
}

/// Also links that take the place of something have a temporary name for a moment.
#[test]
fn signals_leave_no_temporary_link() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("copy")).expect("a directory");
    fs::write(at("file"), "new").expect("a file");
    fs::write(at("copy/file"), "old").expect("a file");
    // A call that is kept from being made ends with the delay, whatever happens to the process.
    let inject = "inject=rename,renameat,renameat2:delay_enter=10000000";
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2", "-e", inject]);
    strace.args([PCOPY, "-lf", "file", "copy/file"]).current_dir(scratch.path());
    let mut running = Running::start(&mut strace);
    let temporary = || {
        let names = fs::read_dir(at("copy")).expect("readable").flatten().map(|entry| entry.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).find(|name| name.starts_with(".pcopy-"))
    };
    let name = running.wait_for("temporary link", temporary);
    let process = name.split('-').nth(2).and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    kill_process(process.expect("its process"), Signal::TERM).expect("kill");
    assert_eq!(running.ends().signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(temporary(), None);
    assert_eq!(fs::read(at("copy/file")).expect("readable"), b"old");
}

/// Between the look for the highest number and the rename, another process may make a backup of that number.
#[test]
fn a_numbered_backup_replaces_no_other() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("new"), "new").expect("a file");
    fs::write(at("file"), "old").expect("a file");
    let inject = "inject=rename,renameat,renameat2:delay_enter=3000000";
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "log", "-e", "trace=rename,renameat,renameat2", "-e", inject]);
    strace.args([PCOPY, "--backup=numbered", "new", "file"]).current_dir(scratch.path());
    let running = Running::start(&mut strace);
    thread::sleep(Duration::from_secs(1));
    fs::write(at("file.~1~"), "of another process").expect("a file");
    assert!(running.ends().success());
    let log = fs::read_to_string(at("log")).expect("readable");
    assert_eq!(log.matches("EEXIST").count(), 1, "{log}");
    let read = |name: &str| fs::read_to_string(at(name)).expect("readable");
    assert_eq!([read("file"), read("file.~1~"), read("file.~2~")], ["new", "of another process", "old"]);
}
