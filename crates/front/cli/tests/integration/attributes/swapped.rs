//! Links in the place of directories: nothing outside the operands changes.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{Bed, Case, Pair, User, is_root, known_tree, run, state, words};
use crate::races::StopWhenDone;
use crate::traces;

/// Directories are swapped for links to a tree outside while all inside is changed; nothing outside changes.
#[test]
fn a_swapped_directory_leads_nowhere() {
    let bed = Bed::new();
    let scratch = tempfile::tempdir().expect("a directory");
    let (inside, outside) = (scratch.path().join("inside"), scratch.path().join("outside"));
    let fill = |at: &Path| {
        fs::create_dir_all(at.join("sub")).expect("directories");
        for file in 0..20 {
            fs::write(at.join(format!("{file}")), "").expect("a file");
            fs::write(at.join(format!("sub/{file}")), "").expect("a file");
        }
    };
    fill(&outside);
    for directory in 0..20 {
        fill(&inside.join(format!("d{directory}")));
    }
    let before = state(&outside);
    let over = AtomicBool::new(false);
    let swap = || {
        let away = scratch.path().join("away");
        while !over.load(Ordering::Relaxed) {
            for directory in 0..20 {
                let path = inside.join(format!("d{directory}"));
                fs::rename(&path, &away).expect("moved away");
                symlink(&outside, &path).expect("a link");
                thread::yield_now();
                fs::remove_file(&path).expect("unlinked");
                fs::rename(&away, &path).expect("moved back");
            }
        }
    };
    let own = fs::metadata(scratch.path()).expect("stat");
    let owners =
        if is_root() { ["1:2".to_owned(), "0:0".into()] } else { [(); 2].map(|()| format!("{}", own.uid())) };
    thread::scope(|scope| {
        scope.spawn(swap);
        let _stop = StopWhenDone(&over);
        // Ends with a mode that tells what was changed.
        for round in 0..150 {
            let modes = ["-R 640 inside", "-R u+rwX,g+w inside", "-R 0 inside", "-R 755 inside"];
            run(&bed.ours("chmod"), scratch.path(), &Case::of_line("chmod", User::Root, modes[round % 4]));
            let line = format!("-R {} inside", owners[round % 2]);
            run(&bed.ours("chown"), scratch.path(), &Case::of_line("chown", User::Root, &line));
        }
    });
    assert_eq!(state(&outside), before);
    let files: Vec<_> =
        state(&inside).into_values().filter(|(mode, ..)| mode & 0o170_000 == 0o100_000).collect();
    let changed = files.iter().filter(|(mode, ..)| mode & 0o020 != 0).count();
    assert!(files.len() == 800 && changed > 400, "{changed} of {}", files.len());
}

/// Calls that change something name one entry of an open directory and do not follow it; only operands are paths.
#[test]
fn no_path_is_changed_below_an_operand() {
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    let log = pair.scratch.path().join("log");
    for (tool, line) in [("chmod", "-R 700 d e"), ("chmod", "-R 0 d e"), ("chown", "-R 1:1 d e")] {
        if tool == "chown" && !is_root() {
            continue;
        }
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=/.*ch(mod|own).*", "-o"]).arg(&log).arg(bed.ours(tool));
        let traced = strace.args(words(line)).current_dir(pair.ours()).output().expect("strace runs");
        assert!(traced.status.success(), "{traced:?}");
        let log = fs::read_to_string(&log).expect("a log");
        let changes: Vec<_> = traces::calls(&log).iter().filter_map(|call| Change::read(call)).collect();
        let (of_operands, below): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.is_path);
        assert_eq!(of_operands.len(), 2, "{log}");
        assert!(of_operands.iter().all(|c| c.text.contains("\"d\"") || c.text.contains("\"e\"")), "{log}");
        assert!(below.len() >= 4 && below.iter().all(|c| c.is_safe), "{log}");
    }
}

/// A call in the log of `strace`. Old ones do not know `fchmodat2`, which is number 0x1c4.
struct Change {
    text: String,
    is_path: bool,
    is_safe: bool,
}

impl Change {
    fn read(text: &str) -> Option<Self> {
        let (call, rest) = text.split_once('(')?;
        let arguments: Vec<_> = rest.split(", ").collect();
        // The probe for the system call has flags that do not exist.
        if rest.contains("EINVAL") {
            return None;
        }
        let is_safe = match call {
            "syscall_0x1c4" => arguments[3] == "0x100",
            "fchmodat2" | "fchownat" => rest.contains("AT_SYMLINK_NOFOLLOW") && !arguments[1].contains('/'),
            _ => false,
        };
        let is_path = !call.starts_with('f') && call != "syscall_0x1c4" || arguments[0] == "AT_FDCWD";
        Some(Change { text: text.to_owned(), is_path, is_safe })
    }
}
