//! What `pcopy` does beyond GNU's tool: options of its own, records, and the sharing of large files among threads.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, Instant};

use crate::copies::{contents, grow, pcopy, text};

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
fn records_tell_errors_of_parents() {
    let scratch = tempfile::tempdir().expect("scratch");
    fs::create_dir_all(scratch.path().join("src/sub")).expect("directories");
    fs::write(scratch.path().join("src/sub/file"), "x").expect("a file");
    fs::create_dir_all(scratch.path().join("dst/src")).expect("directories");
    fs::write(scratch.path().join("dst/src/sub"), "x").expect("a file");
    let output = pcopy(&["--json", "--parents", "src/sub/file", "src/none/file", "dst"], scratch.path());
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stdout);
    let errors: Vec<_> = told.lines().filter(|line| line.contains("\"error\"")).collect();
    assert_eq!(errors.len(), 2, "{told}");
    assert!(errors[0].contains("\"dst/src/sub\"") && errors[0].contains("\"errno\":20,"), "{told}");
    assert!(errors[1].contains("\"src/none\"") && errors[1].contains("\"errno\":2,"), "{told}");
    assert_eq!(text(&output.stderr).lines().count(), 2);
}

#[test]
fn records_tell_of_a_missing_target() {
    let scratch = tempfile::tempdir().expect("scratch");
    for name in ["a", "b"] {
        fs::write(scratch.path().join(name), "x").expect("a file");
    }
    for (words, path, errno) in [
        (&["--json", "a", "b", "none"][..], "none", 2),
        (&["--json", "-t", "none/none", "a"], "none/none", 2),
        (&["--json", "-t", "b", "a"], "b", 20),
        (&["--json", "a", "a", "b"], "b", 20),
    ] {
        let output = pcopy(words, scratch.path());
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let told = text(&output.stdout);
        assert_eq!(told.lines().count(), 1, "{words:?} {told}");
        assert!(told.contains(&format!("\"path\":\"{path}\"")), "{words:?} {told}");
        assert!(told.contains(&format!("\"errno\":{errno},")), "{words:?} {told}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{words:?}");
    }
}

/// A file that several threads share gets its space first, but not if it is to have as little as can be.
#[test]
fn zeros_take_no_space_however_they_are_copied() {
    let scratch = tempfile::tempdir().expect("scratch");
    fs::write(scratch.path().join("zeros"), vec![0; 65 << 20]).expect("a file");
    // Waiting for the bound looks like waiting for a server.
    let output = pcopy(&["--sparse=always", "--bwlimit=16M", "zeros", "copy"], scratch.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let copy = fs::metadata(scratch.path().join("copy")).expect("a copy");
    assert_eq!(copy.len(), 65 << 20);
    assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
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
