//! Full and read-only file systems, disks that fail, and sources that change under a run's hands.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::mount::Mount;
use super::oracle::left_to_do;
use super::program::{NOBODY, Scratch, User, is_root, is_rsync, psync, psync_command, run, text};
use super::state::Tree;
use crate::races::StopWhenDone;

const OLD: Duration = Duration::from_secs(1_600_000_000);

fn synchronize(scratch: &Scratch, user: User, words: &str) -> Output {
    run(psync_command(user, scratch.path()).args(words.split(' ')))
}

fn set_old(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + OLD;
    File::open(path).and_then(|file| file.set_modified(time)).expect("a time");
}

/// A tree of files that are old.
fn grow(root: &Path, directories: usize, files: usize, bytes: usize) {
    for directory in 0..directories {
        let directory = root.join(format!("d{directory}"));
        fs::create_dir_all(&directory).expect("a directory");
        for file in 0..files {
            let path = directory.join(format!("f{file}"));
            fs::write(&path, vec![b'a' + (file % 26) as u8; bytes + file]).expect("a file");
            set_old(&path);
        }
    }
}

/// Files with their contents, hidden ones, too.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = Tree::read(root).0.into_iter().filter(|(_, entry)| !entry.is_directory());
    paths.map(|(path, _)| (path.clone(), fs::read(root.join(path)).expect("readable"))).collect()
}

/// What fits is whole, what was there stays, nothing is deleted, and once there is room the next run
/// completes it.
#[test]
fn a_full_file_system_is_told_of_and_tears_nothing() {
    for large in [0, 20 << 20] {
        let scratch = Scratch::new();
        let small = Mount::new(&scratch.at("dst"), "size=3m");
        grow(&scratch.at("src"), 3, 20, 100_000);
        fs::write(scratch.at("src/large"), vec![7; large]).expect("a file");
        set_old(&scratch.at("src/large"));
        fs::create_dir(scratch.at("dst/d1")).expect("a directory");
        for name in ["dst/d1/f19", "dst/d1/f18", "dst/extra"] {
            fs::write(scratch.at(name), "old").expect("a file");
        }
        let all = contents(&scratch.at("src"));

        let output = synchronize(&scratch, User::Own, "-aHAXS --delete-after src/ dst/");
        // rsync ends at the first write that fails, psync tries what else there is.
        let expected: &[i32] = if is_rsync() { &[11] } else { &[11, 23] };
        assert!(output.status.code().is_some_and(|code| expected.contains(&code)), "{output:?}");
        assert!(text(&output.stderr).contains("No space left on device"), "{output:?}");
        let copied = contents(&scratch.at("dst"));
        assert!(copied.contains_key(Path::new("extra")), "deleted after an error");
        for (path, data) in &copied {
            assert!(all.get(path) == Some(data) || data == b"old", "{path:?} is torn, or a temporary file");
        }
        assert!(copied.contains_key(Path::new("d1/f19")) && copied.contains_key(Path::new("d1/f18")));

        small.again("size=40m");
        let output = synchronize(&scratch, User::Own, "-aHAXS --delete-after src/ dst/");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        assert_eq!(left_to_do(scratch.path()), "");
    }
}

/// Nothing is changed, everything that should be is told of, and no run takes long to find out.
#[test]
fn a_read_only_destination_is_told_of() {
    let scratch = Scratch::new();
    let small = Mount::new(&scratch.at("dst"), "size=3m");
    grow(&scratch.at("src"), 2, 5, 100);
    fs::create_dir_all(scratch.at("dst/d0")).expect("a directory");
    fs::write(scratch.at("dst/d0/f0"), "old").expect("a file");
    fs::write(scratch.at("dst/d0/extra"), "extra").expect("a file");
    small.again("ro");
    let before = Tree::read(&scratch.at("dst"));
    let started = Instant::now();
    let output = synchronize(&scratch, User::Own, "-aHAXS --delete-after src/ dst/");
    assert_eq!(output.status.code(), Some(23), "{output:?}");
    assert!(text(&output.stderr).contains("Read-only file system"), "{output:?}");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(Tree::read(&scratch.at("dst")).touched(&before), Vec::<String>::new());
}

/// The same where the destination belongs to somebody else.
#[test]
fn a_destination_of_somebody_else_is_told_of() {
    assert!(is_root(), "this test becomes another user");
    let scratch = Scratch::new();
    grow(&scratch.at("src"), 2, 5, 100);
    grow(&scratch.at("dst"), 1, 3, 50);
    fs::write(scratch.at("dst/d0/extra"), "extra").expect("a file");
    let before = Tree::read(&scratch.at("dst"));
    let output = synchronize(&scratch, User::Nobody, "-a --delete-after src/ dst/");
    assert_eq!(output.status.code(), Some(23), "{output:?}");
    assert!(text(&output.stderr).contains("Permission denied"), "{output:?}");
    assert_eq!(Tree::read(&scratch.at("dst")).touched(&before), Vec::<String>::new());
}

/// What cannot be read is told of by its name, the rest is copied, and what the destination has of it stays.
#[test]
fn files_that_cannot_be_read_are_told_of() {
    assert!(is_root(), "this test becomes another user");
    let scratch = Scratch::new();
    grow(&scratch.at("src"), 2, 5, 100);
    grow(&scratch.at("dst"), 1, 5, 50);
    for name in ["src/d0/f1", "src/d1/f2"] {
        let closed = Command::new("chmod").arg("0").arg(scratch.at(name)).status();
        assert!(closed.expect("chmod runs").success());
    }
    let mut chown = Command::new("chown");
    let owned = chown.args(["-R", &format!("{NOBODY}:{NOBODY}"), "."]).current_dir(scratch.path()).status();
    assert!(owned.expect("chown runs").success());
    let output = synchronize(&scratch, User::Nobody, "-a src/ dst/");
    assert_eq!(output.status.code(), Some(23), "{output:?}");
    let errors = text(&output.stderr);
    assert!(errors.contains("d0/f1") && errors.contains("d1/f2"), "{errors}");
    assert_eq!(fs::read(scratch.at("dst/d0/f1")).expect("there").len(), 51);
    assert!(!scratch.at("dst/d1/f2").exists());
    let copied = contents(&scratch.at("dst"));
    assert_eq!(copied.len(), 9);
    assert_eq!(copied.values().filter(|data| data.len() >= 100).count(), 8);
}

/// A disk that fails while one file is read, by whatever call.
#[test]
fn a_file_that_fails_while_it_is_read_is_left_as_it_was() {
    for bytes in [200_000, 12 << 20] {
        let scratch = Scratch::new();
        grow(&scratch.at("src"), 2, 5, 100);
        grow(&scratch.at("dst"), 1, 3, 50);
        fs::write(scratch.at("src/d0/bad"), vec![1; bytes]).expect("a file");
        fs::write(scratch.at("dst/d0/bad"), "old").expect("a file");
        fs::write(scratch.at("dst/d0/extra"), "extra").expect("a file");
        let reading = "read,pread64,preadv,preadv2,readv,copy_file_range,sendfile,splice,ioctl";
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={reading}"), "-P"]);
        strace.arg(scratch.at("src/d0/bad")).args(["-e", &format!("inject={reading}:error=EIO")]);
        strace.arg(psync()).args(["-a", "--delete-after", "src/", "dst/"]).current_dir(scratch.path());
        let output = run(strace.env("LC_ALL", "C"));
        assert_eq!(output.status.code(), Some(23), "{output:?}");
        let errors = text(&output.stderr);
        assert!(errors.contains("bad") && errors.contains("Input/output error"), "{errors}");
        assert_eq!(fs::read(scratch.at("dst/d0/bad")).expect("there"), b"old");
        let names: Vec<_> = contents(&scratch.at("dst")).into_keys().collect();
        assert!(names.len() >= 11 && names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
    }
}

/// A file that ends before the length that it has, as those of sysfs do, or where a server is wrong about it.
#[test]
fn a_file_that_ends_too_early_is_told_of() {
    for options in ["-a", "-aS", "-a --bwlimit=100m"] {
        let scratch = Scratch::new();
        let file = "/sys/devices/system/cpu/online";
        fs::create_dir(scratch.at("dst")).expect("a directory");
        let output = synchronize(&scratch, User::Own, &format!("{options} {file} dst/"));
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(23), "{options}: {errors}");
        assert!(errors.contains("online") && errors.contains("No data available"), "{errors}");
        assert!(contents(&scratch.at("dst")).is_empty());
    }
}

/// A read that returns nothing once, in the middle, does not end the copy there.
#[test]
fn an_early_end_is_not_believed() {
    for (bytes, options) in [(12 << 20, "-a"), (12 << 20, "-aS"), (300_000, "-aS"), (30_000, "-aS")] {
        for time in 1..=2 {
            let scratch = Scratch::new();
            let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8 + 1).collect();
            fs::write(scratch.at("file"), &data).expect("a file");
            let mut strace = Command::new("strace");
            strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64,copy_file_range", "-P"]);
            strace.arg(scratch.at("file")).args(["-e", "inject=copy_file_range:error=EXDEV"]);
            strace.args(["-e", &format!("inject=pread64:retval=0:when={time}")]);
            strace.arg(psync()).args([options, "file", "copy"]).current_dir(scratch.path());
            let output = run(&mut strace);
            assert!(output.status.success(), "{bytes} {options}: {output:?}");
            assert!(fs::read(scratch.at("copy")).expect("there") == data, "{bytes} {options} {time}");
        }
    }
}

/// A limit of the size of files is the error of those that are larger.
#[test]
fn a_limit_of_size_is_told_of() {
    let scratch = Scratch::new();
    grow(&scratch.at("src"), 2, 5, 100);
    fs::write(scratch.at("src/large"), vec![1; 3_000_000]).expect("a file");
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -f 1000; exec \"$0\" -a src/ dst"]).arg(psync());
    let output = run(limited.current_dir(scratch.path()).env("LC_ALL", "C"));
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(23), "{errors}");
    assert!(errors.contains("large") && errors.contains("File too large"), "{errors}");
    assert_eq!(contents(&scratch.at("dst")).len(), 10);
}

/// What vanishes after it was listed is no error of its own (24), and all else is copied.
#[test]
fn files_that_vanish_are_told_of() {
    let mut vanished = 0;
    for round in 0..30 {
        let scratch = Scratch::new();
        grow(&scratch.at("src"), 4, 150, 3000);
        let over = AtomicBool::new(false);
        let remove = || {
            // As soon as anything is copied, beginning with what is copied last.
            while !scratch.at("dst/d0").exists() && !over.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            for file in (0..150).rev() {
                fs::remove_file(scratch.at(&format!("src/d{}/f{file}", round % 4))).expect("removed");
            }
        };
        let output = thread::scope(|scope| {
            scope.spawn(remove);
            let _stop = StopWhenDone(&over);
            synchronize(&scratch, User::Own, "-a src/ dst/")
        });
        let errors = text(&output.stderr);
        match output.status.code() {
            Some(0) => assert_eq!(errors, "", "round {round}"),
            Some(24) => {
                vanished += 1;
                assert!(errors.contains("vanished"), "{errors}");
            }
            _ => panic!("round {round}: {output:?}"),
        }
        for directory in (0..4).filter(|directory| *directory != round % 4) {
            for file in 0..150 {
                assert!(scratch.at(&format!("dst/d{directory}/f{file}")).exists(), "{directory} {file}");
            }
        }
        if vanished == 3 {
            return;
        }
    }
    panic!("nothing vanished in time in 30 rounds");
}

/// A file that was written to during a run does not look as if it had been copied: the next run sees that it
/// differs.
#[test]
fn files_that_change_are_copied_by_the_next_run() {
    use std::io::Write;
    for round in 0..5 {
        let scratch = Scratch::new();
        grow(&scratch.at("src"), 3, 60, 20_000);
        fs::write(scratch.at("src/large"), vec![9; 9 << 20]).expect("a file");
        let over = AtomicBool::new(false);
        let append = || {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                let name = match number % 4 {
                    0 => "src/large".to_owned(),
                    other => format!("src/d{}/f{}", other - 1, number / 4 % 60),
                };
                let mut file = File::options().append(true).open(scratch.at(&name)).expect("a file");
                file.write_all(&[b'z'; 777]).expect("appended");
                number += 1;
            }
        };
        thread::scope(|scope| {
            scope.spawn(append);
            let _stop = StopWhenDone(&over);
            for _ in 0..=round {
                let output = synchronize(&scratch, User::Own, "-a src/ dst/");
                assert!(matches!(output.status.code(), Some(0 | 23 | 24)), "{output:?}");
            }
        });
        let output = synchronize(&scratch, User::Own, "-a src/ dst/");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        assert!(contents(&scratch.at("src")) == contents(&scratch.at("dst")), "round {round}");
        assert_eq!(left_to_do(scratch.path()), "", "round {round}");
    }
}

/// Files that are replaced as a whole are copied as a whole, in one of their versions.
#[test]
fn files_that_are_replaced_are_copied_in_one_version() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.at("src")).expect("a directory");
    let version = |number: usize| vec![b'a' + (number % 26) as u8; [300_000, 9 << 20][number % 2]];
    let versions: Vec<_> = (0..26).map(version).collect();
    fs::write(scratch.at("src/file"), &versions[0]).expect("a file");
    let over = AtomicBool::new(false);
    let replace = || {
        for number in (0..26).cycle() {
            if over.load(Ordering::Relaxed) {
                return;
            }
            fs::write(scratch.at("new"), &versions[number]).expect("a file");
            fs::rename(scratch.at("new"), scratch.at("src/file")).expect("renamed");
        }
    };
    thread::scope(|scope| {
        scope.spawn(replace);
        let _stop = StopWhenDone(&over);
        for _ in 0..20 {
            let output = synchronize(&scratch, User::Own, "-a src/ dst/");
            assert!(matches!(output.status.code(), Some(0 | 23 | 24)), "{output:?}");
            let found = fs::read(scratch.at("dst/file")).expect("copied");
            assert!(versions.contains(&found), "{} bytes of several versions", found.len());
        }
    });
}

/// A source that is written to while it is copied, and then gets its old time back, is not taken for unchanged.
#[test]
fn a_time_that_is_put_back_hides_no_change() {
    if is_rsync() {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.at("src")).expect("a directory");
    fs::write(scratch.at("src/file"), vec![b'a'; 20 << 20]).expect("a file");
    set_old(&scratch.at("src/file"));
    let over = AtomicBool::new(false);
    let rewrite = || {
        while !over.load(Ordering::Relaxed) {
            let file = File::options().write(true).open(scratch.at("src/file")).expect("a file");
            for megabyte in 0..20 {
                std::os::unix::fs::FileExt::write_all_at(&file, b"changed", megabyte << 20).expect("written");
            }
            drop(file);
            set_old(&scratch.at("src/file"));
        }
    };
    let output = thread::scope(|scope| {
        scope.spawn(rewrite);
        let _stop = StopWhenDone(&over);
        synchronize(&scratch, User::Own, "-a --bwlimit=40M src/ dst/")
    });
    assert_eq!(output.status.code(), Some(24), "{output:?}");
    assert!(!scratch.at("dst/file").exists() && text(&output.stderr).contains("changed"), "{output:?}");
}
