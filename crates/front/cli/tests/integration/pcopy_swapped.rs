//! `pcopy` while names of the source and the destination are swapped: it follows no link, and waits for no pipe.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::copies::{PATIENCE, PCOPY, grow, pipe};
use crate::races::StopWhenDone;

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
            pcopy_in_time(&["-a", "-T", "source", "copy"], scratch.path());
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
            // The swapping continues while the copy is removed.
            let removing = Instant::now();
            while at("copy").exists() {
                assert!(removing.elapsed() < PATIENCE, "the copy cannot be removed");
                let _ = fs::remove_dir_all(at("copy"));
            }
        }
    });
}

/// Swaps pairs of names in a thread of its own while `run` is called again and again.
fn while_swapping(pairs: &[(PathBuf, PathBuf)], mut run: impl FnMut()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (one, other) in pairs {
                    // Where one is missing for the moment there is nothing to swap.
                    let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
                }
            }
        });
        let _stop = StopWhenDone(&over);
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            run();
        }
    });
}

/// Runs it for at most some seconds; it must not wait for anybody.
fn pcopy_in_time(words: &[&str], directory: &Path) {
    let words = [&["-k1", "60", PCOPY], words].concat();
    let output = Command::new("timeout").args(words).current_dir(directory).output().expect("timeout runs");
    // It may well complain of what changes under its hands.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}", output.status);
}

/// Files of the source turn into pipes and links between being listed and being opened.
#[test]
fn swapped_source_files_are_neither_waited_for_nor_followed() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    grow(&at("source"), 1, 40, 100);
    fs::write(at("secret"), "secret").expect("a file");
    let mut pairs = Vec::new();
    for index in 0..20 {
        let other = at(&format!("other{index}"));
        if index % 2 == 0 {
            pipe(&other)
        } else {
            symlink(at("secret"), &other).expect("a link")
        }
        pairs.push((at(&format!("source/d0/f{index}")), other));
    }
    while_swapping(&pairs, || {
        // A pipe in the place of a copy may be waited for, as by GNU's tool: none is there to begin with.
        let _ = fs::remove_dir_all(at("copy"));
        pcopy_in_time(&["-a", "-T", "source", "copy"], scratch.path());
        pcopy_in_time(&["-r", "--remove-destination", "-T", "source", "copy"], scratch.path());
        for entry in fs::read_dir(at("copy/d0")).expect("readable").flatten() {
            let is_file = entry.file_type().expect("a type").is_file();
            assert!(
                !is_file || fs::read(entry.path()).expect("readable") != b"secret",
                "read through a link"
            );
        }
    });
}

/// Names of the destination, in a directory that was there, turn into links that lead nowhere while files are copied
/// there.
#[test]
fn swapped_destination_files_are_not_followed() {
    let scratch = tempfile::tempdir().expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    grow(&at("source"), 1, 40, 100);
    fs::create_dir_all(at("copy/d0")).expect("directories");
    fs::create_dir(at("outside")).expect("a directory");
    let mut pairs = Vec::new();
    for index in 0..40 {
        let (name, other) = (at(&format!("copy/d0/f{index}")), at(&format!("other{index}")));
        fs::write(&name, "old").expect("a file");
        symlink(at("outside/file"), &other).expect("a link");
        pairs.push((name, other));
    }
    while_swapping(&pairs, || {
        for words in [&["-r"][..], &["-a"], &["-rf"], &["-r", "--atomic"], &["-rb"]] {
            pcopy_in_time(&[words, &["-T", "source", "copy"]].concat(), scratch.path());
            assert!(!at("outside/file").exists(), "{words:?} wrote through a link");
        }
    });
}
