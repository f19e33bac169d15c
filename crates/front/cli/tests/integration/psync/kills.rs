//! Runs that are killed, and readers of the destination meanwhile.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};

use super::oracle::{check, seeds};
use super::program::{Scratch, User, is_rsync, psync_command, run, text};
use super::state::Tree;
use crate::races::StopWhenDone;
use crate::random::Random;

/// Kills a run, and all the processes it may have started, after this time.
fn kill_after(command: &mut Command, time: Duration) {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().expect("the program runs");
    thread::sleep(time);
    kill(&mut child);
}

fn kill(child: &mut Child) {
    // It may have ended.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().expect("ended");
}

/// A run after some that were killed leaves what any other run leaves.
#[test]
fn killed_runs_are_completed_by_the_next() {
    for seed in seeds(5) {
        check(seed, User::Own, |scratch, random, options| {
            for _ in 0..1 + random.below(4) {
                // The whole of it takes about 100 ms.
                let time = Duration::from_micros(random.below(120_000) as u64);
                let mut command = psync_command(User::Own, scratch.path());
                kill_after(command.args([options, "--delete", "src/", "dst/"]), time);
            }
        });
    }
}

const OLD: Duration = Duration::from_secs(1_600_000_000);
const FILES: usize = 200;
/// Of these files two are large.
const LARGE_BYTES: usize = 9 << 20;

/// What a file has in a version: no two versions of a file have a byte in common.
fn contents(file: usize, version: usize) -> Vec<u8> {
    let bytes = if file < 2 { LARGE_BYTES } else { 1000 + file * 97 };
    vec![b'a' + ((file + 13 * version) % 26) as u8; bytes + version * 1000]
}

fn path_of(root: &Path, file: usize) -> PathBuf {
    root.join(format!("d{}/f{file}", file % 4))
}

/// Writes a version of all files that `which` says.
fn write_version(root: &Path, version: usize, which: impl Fn(usize) -> bool) {
    for directory in 0..4 {
        fs::create_dir_all(root.join(format!("d{directory}"))).expect("a directory");
    }
    for file in (0..FILES).filter(|file| which(*file)) {
        let path = path_of(root, file);
        fs::write(&path, contents(file, version)).expect("a file");
        let time = SystemTime::UNIX_EPOCH + OLD + Duration::from_secs(version as u64 * 1000);
        File::open(&path).and_then(|file| file.set_modified(time)).expect("a time");
    }
}

/// Reads all files over and over; each is whole in its old version, if it had one, or in its new one.
fn read_until(over: &AtomicBool, root: &Path, had_old: impl Fn(usize) -> bool, reads: &AtomicUsize) {
    let versions: Vec<_> = (0..FILES).map(|file| [contents(file, 0), contents(file, 1)]).collect();
    while !over.load(Ordering::Relaxed) {
        for (file, [old, new]) in versions.iter().enumerate() {
            match fs::read(path_of(root, file)) {
                Ok(found) => assert!(
                    found == *new || had_old(file) && found == *old,
                    "f{file} is torn: {} bytes, first {:?}, last {:?}",
                    found.len(),
                    found.first(),
                    found.last()
                ),
                Err(error) => {
                    assert!(error.kind() == ErrorKind::NotFound && !had_old(file), "f{file}: {error}");
                }
            }
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whoever opens a file during a run, or between one that was killed and the next, finds one version of it as
/// a whole.
#[test]
fn readers_never_see_a_torn_file() {
    let mut random = Random::from_environment();
    let had_old = |file: usize| !file.is_multiple_of(3);
    for options in ["-a", "-aHAXSc", "-aI"] {
        let scratch = Scratch::new();
        let (source, destination) = (scratch.at("src"), scratch.at("dst"));
        write_version(&source, 1, |_| true);
        write_version(&destination, 0, had_old);
        let (over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| read_until(&over, &destination, had_old, &reads));
            }
            let _stop = StopWhenDone(&over);
            for _ in 0..6 {
                let time = Duration::from_millis(random.below(60) as u64);
                let mut command = psync_command(User::Own, scratch.path());
                kill_after(command.args([options, "src/", "dst/"]), time);
            }
            let deleting: &[&str] = if is_rsync() { &["--delete"] } else { &[] };
            let mut command = psync_command(User::Own, scratch.path());
            let output = run(command.arg(options).args(deleting).args(["src/", "dst/"]));
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{options}");
        });
        assert!(reads.into_inner() > FILES, "hardly anything was read");
        for file in 0..FILES {
            assert!(fs::read(path_of(&destination, file)).expect("there") == contents(file, 1), "f{file}");
        }
        // Without `--delete`, too: what runs that were killed left behind is not there any more. rsync keeps
        // its own.
        let left = Tree::read(&destination).0.into_keys().collect::<Vec<_>>();
        assert_eq!(left, Tree::read(&source).0.into_keys().collect::<Vec<_>>(), "{options}");
    }
}

/// Names like those of temporary files belong to whoever gave them, unless a run of psync did.
#[test]
fn what_looks_like_a_temporary_file_is_kept() {
    let scratch = Scratch::new();
    let names = [".psync-1.tmp", ".psync-x.tmp", ".psync-", ".f.psync", ".f.AbCdEf", "f~"];
    for side in ["src", "dst"] {
        fs::create_dir(scratch.at(side)).expect("a directory");
        for name in names {
            fs::write(scratch.at(side).join(format!("{name}{side}")), side).expect("a file");
            fs::write(scratch.at(side).join(name), side).expect("a file");
        }
    }
    let output = run(psync_command(User::Own, scratch.path()).args(["-aI", "src/", "dst/"]));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    for name in names {
        let read = |name: &str| fs::read_to_string(scratch.at("dst").join(name)).unwrap_or_default();
        assert_eq!(read(name), "src");
        assert_eq!([read(&format!("{name}src")), read(&format!("{name}dst"))], ["src", "dst"], "{name}");
    }
}
