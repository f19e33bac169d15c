//! `millstream recompress`: what it writes is read by the usual programs (gzip, bzip2, zstd, lz4), and no text is ever
//! lost.
//!
//! The test with random moments prints a seed and repeats what it did with `MILLSTREAM_SEED=…`.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::scratch::{Scratch, permissions};
use crate::traces;

fn text(lines: u32) -> Vec<u8> {
    let number = |n: u32| n.wrapping_mul(2_654_435_761) >> 7;
    (0..lines).flat_map(|n| format!("{n:07} {:08} a line\n", number(n)).into_bytes()).collect()
}

/// The output of a program that gets this input.
fn piped(program: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new(program[0]);
    let mut child =
        command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect(program[0]);
    let (mut stdin, input) = (child.stdin.take().expect("piped"), input.to_vec());
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("written");
    assert!(output.status.success(), "{program:?}");
    output.stdout
}

fn compressor(extension: &str) -> Vec<&'static str> {
    match extension {
        "gz" => vec!["gzip", "-c"],
        "bz2" => vec!["bzip2", "-c"],
        "zst" => vec!["zstd", "-q", "-c"],
        "lz4" => vec!["lz4", "-q", "-c"],
        _ => vec!["cat"],
    }
}

/// The text of a file, as the program for its name decodes it.
fn text_of(path: &Path) -> Vec<u8> {
    let name = path.to_string_lossy();
    let mut program = compressor(name.rsplit('.').next().expect("an extension"));
    if program != ["cat"] {
        program.push("-d");
    }
    piped(&program, &fs::read(path).expect("readable"))
}

impl Scratch {
    /// A file that the program for its name has compressed.
    fn file(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.path(name);
        let program = compressor(name.rsplit('.').next().expect("an extension"));
        fs::write(&path, piped(&program, text)).expect("written");
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.millstream("recompress", arguments)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("millstream runs")
    }

    /// The same, and it must succeed. Returns what it writes.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), told(&output)), (Some(0), String::new()));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The same, and it must fail with one line. Returns the line.
    fn failed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), told(&output).lines().count()), (Some(1), 1), "{output:?}");
        told(&output)
    }

    fn names(&self) -> Vec<String> {
        let listed = fs::read_dir(&self.dir).expect("readable").flatten();
        let mut names: Vec<_> =
            listed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_form_is_made_of_every_other() {
    for text in [&b""[..], b"one line\n", &text(20_000)] {
        for from in ["txt", "gz", "bz2", "zst", "lz4"] {
            for to in ["gz", "zst", "lz4"] {
                let scratch = Scratch::new();
                let file = scratch.file(&format!("a.{from}"), text);
                fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("permissions");
                let before = file.metadata().expect("a file");
                scratch.done(&[&format!("--to={to}"), &format!("a.{from}")]);
                let name = if from == "txt" { format!("a.txt.{to}") } else { format!("a.{to}") };
                assert_eq!(scratch.names(), [&name[..]], "from {from}");
                let new = scratch.path(&name);
                assert!(text_of(&new) == text, "{from} to {to}, {} bytes", text.len());
                let after = new.metadata().expect("a file");
                assert_eq!(after.mode(), before.mode());
                assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
                let again = scratch.done(&["--json", &name]);
                assert!(again.starts_with(r#"{"action":"skip","#), "{from} to {to}: {again}");
            }
        }
    }
}

/// An entry of the list that a directory hands on is for new files. With the mode of the old file it would become valid
/// for the one that replaces it.
#[test]
fn a_new_file_has_the_list_of_the_old_one_or_none() {
    let scratch = Scratch::new();
    let old = scratch.file("a.gz", b"text\n");
    fs::set_permissions(&old, Permissions::from_mode(0o640)).expect("permissions");
    scratch.setfacl(&["-d", "-m", "u:12345:r", "."]);
    scratch.done(&["a.gz"]);
    assert_eq!(permissions(&old), "user::rw- group::r-- other::---");
    scratch.setfacl(&["-m", "u:12346:r,g::-", "a.gz"]);
    scratch.done(&["--to=zst", "a.gz"]);
    let new = permissions(&scratch.path("a.zst"));
    assert_eq!(new, "user::rw- user:12346:r-- group::--- mask::r-- other::---");
}

#[test]
fn files_of_several_blocks_can_be_divided() {
    let (scratch, text) = (Scratch::new(), text(1_000_000));
    scratch.file("a.gz", &text);
    assert_eq!(text.len() / (8 << 20), 2);
    scratch.done(&["--to=zst", "--keep", "a.gz"]);
    let listed =
        Command::new("zstd").args(["-l", "a.zst"]).current_dir(&scratch.dir).output().expect("zstd runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    // Three frames of text and the seek table.
    assert!(listed.lines().any(|line| line.split_whitespace().take(2).eq(["4", "1"])), "{listed}");
    scratch.done(&["--to=lz4", "--keep", "a.zst"]);
    let before = scratch.path("a.gz").metadata().expect("a file").len();
    let record = scratch.done(&["--json", "--level=1", "--to=gz", "a.gz"]);
    let after = scratch.path("a.gz").metadata().expect("a file").len();
    let numbers = format!(r#""bytes_before":{before},"bytes":{after},"decoded_bytes":{}"#, text.len());
    assert_eq!(
        record,
        format!("{{\"action\":\"recompress\",{numbers},\"source\":\"a.gz\",\"path\":\"a.gz\"}}\n")
    );
    for name in ["a.gz", "a.zst", "a.lz4"] {
        assert!(text_of(&scratch.path(name)) == text, "{name}");
    }
    assert_eq!(scratch.names(), ["a.gz", "a.lz4", "a.zst"]);
}

#[test]
fn many_files_at_once() {
    let scratch = Scratch::new();
    let names: Vec<_> = (0..40).map(|n| format!("{n}.gz")).collect();
    names.iter().for_each(|name| drop(scratch.file(name, format!("text of {name}\n").as_bytes())));
    let arguments: Vec<_> = ["-v", "--to=zst"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let output = scratch.run(&arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 40, "{output:?}");
    for name in names {
        let new = scratch.path(&name.replace(".gz", ".zst"));
        assert_eq!(text_of(&new), format!("text of {name}\n").as_bytes());
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let scratch = Scratch::new();
    scratch.file("a.gz", b"text\n");
    assert_eq!(
        scratch.done(&["--dry-run", "--to=zst", "a.gz"]),
        "'a.gz' -> 'a.zst': would be recompressed\n"
    );
    assert_eq!(scratch.names(), ["a.gz"]);
}

#[test]
fn what_an_earlier_run_has_made_is_taken_if_it_has_the_same_text() {
    let (scratch, text) = (Scratch::new(), text(1000));
    let old = scratch.file("a.gz", &text);
    scratch.done(&["--to=zst", "--keep", "a.gz"]);
    assert!(scratch.done(&["--to=zst", "--keep", "--json", "a.gz"]).starts_with(r#"{"action":"skip""#));
    let told = "'a.gz' -> 'a.zst': already compressed by an earlier run; the old file would be removed\n";
    assert_eq!(scratch.done(&["--to=zst", "--dry-run", "a.gz"]), told);
    assert!(old.exists());
    assert!(scratch.done(&["--to=zst", "--json", "a.gz"]).starts_with(r#"{"action":"finish""#));
    assert_eq!(scratch.names(), ["a.zst"]);
    scratch.file("a.gz", b"other text\n");
    let message = scratch.failed(&["--to=zst", "a.gz"]);
    assert!(
        message.ends_with("'a.gz': a.zst exists and contains different text; move or remove it\n"),
        "{message}"
    );
    assert_eq!(scratch.names(), ["a.gz", "a.zst"]);
    assert!(text_of(&scratch.path("a.zst")) == text);
    assert_eq!(text_of(&scratch.path("a.gz")), b"other text\n");
}

/// An earlier run was killed, or `--keep` was given, before anything was durable.
#[test]
fn the_old_file_is_removed_once_the_new_one_is_durable() {
    let scratch = Scratch::new();
    scratch.file("a.gz", b"text\n");
    scratch.done(&["--to=zst", "--keep", "a.gz"]);
    let run = |inject: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-y", "-o", "trace", "-e", "trace=fsync,unlinkat"]).args(inject);
        strace.args([env!("CARGO_BIN_EXE_millstream"), "recompress", "--to=zst", "a.gz"]);
        strace.current_dir(&scratch.dir).env("LC_ALL", "C");
        strace.output().expect("strace runs (testbed/setup test installs it)")
    };
    for call in ["1", "2"] {
        let output = run(&["-e", &format!("inject=fsync:error=EIO:when={call}")]);
        assert!(told(&output).ends_with("'a.gz': sync: Input/output error\n"), "{output:?}");
        assert_eq!(scratch.names(), ["a.gz", "a.zst", "trace"], "call {call}");
    }
    assert!(run(&[]).status.success());
    let trace = fs::read_to_string(scratch.path("trace")).expect("a trace");
    let directory = scratch.dir.path().canonicalize().expect("a directory");
    let expected = ["/a.zst>)", ">)", ">, \"a.gz\", 0)"];
    let calls = traces::calls(&trace);
    assert_eq!(calls.len(), expected.len(), "{trace}");
    for (call, end) in calls.iter().zip(expected) {
        let is_expected = call.contains(&format!("<{}{end}", directory.display()));
        assert!(is_expected && call.ends_with("= 0"), "{trace}");
    }
    assert_eq!(scratch.names(), ["a.zst", "trace"]);
}

/// Both are compressed at once, or one after the other.
#[test]
fn sources_of_one_name_lose_no_text() {
    let (same, other) = (text(150_000), text(150_001));
    for _ in 0..5 {
        let scratch = Scratch::new();
        scratch.file("a.bz2", &same);
        scratch.file("a.gz", &same);
        scratch.done(&["--to=zst", "a.bz2", "a.gz"]);
        assert_eq!(scratch.names(), ["a.zst"]);

        let scratch = Scratch::new();
        scratch.file("a.bz2", &same);
        scratch.file("a.gz", &other);
        let told = scratch.failed(&["--to=zst", "a.bz2", "a.gz"]);
        assert!(told.contains("a.zst exists and contains different text"), "{told}");
        let left = scratch.names();
        assert_eq!(left.len(), 2, "{left:?}");
        let mut texts: Vec<_> = left.iter().map(|name| text_of(&scratch.path(name))).collect();
        texts.sort_by_key(Vec::len);
        assert!(texts == [same.clone(), other.clone()], "{left:?}");
    }
}

#[test]
fn files_that_cannot_be_decoded_stay() {
    let scratch = Scratch::new();
    let good = fs::read(scratch.file("good.gz", &text(100_000))).expect("readable");
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 0xff;
    for (name, content, message) in [
        ("cut.gz", &good[..good.len() - 9], "damaged gzip data at byte "),
        ("damaged.gz", &damaged, "damaged gzip data at byte "),
        (
            "text.gz",
            b"a text, whose name is wrong\n",
            "damaged gzip data at byte 10: not gzip; replace it with",
        ),
        ("part-0", &[&b"PAR1"[..], &[0, 1, 2]].concat(), "it is Parquet, not text; only text"),
        ("gzip", &good, "it is gzip, not text; only text"),
    ] {
        fs::write(scratch.path(name), content).expect("written");
        let told = scratch.failed(&["--to=zst", name]);
        assert!(told.starts_with(&format!("millstream: cannot recompress '{name}': {message}")), "{told}");
        assert!(fs::read(scratch.path(name)).expect("readable") == content, "{name}");
    }
    symlink("good.gz", scratch.path("link.gz")).expect("linked");
    for (name, message) in [
        ("link.gz", "not a regular file; name the files themselves"),
        (".", "not a regular file; name the files themselves"),
        ("gone.gz", "stat: No such file or directory"),
    ] {
        let told = scratch.failed(&[name]);
        assert_eq!(told, format!("millstream: cannot recompress '{name}': {message}\n"));
    }
    let names = ["cut.gz", "damaged.gz", "good.gz", "gzip", "link.gz", "part-0", "text.gz"];
    assert_eq!(scratch.names(), names, "nothing else is left");
    let output = scratch.run(&["--json", "gone.gz", "good.gz"]);
    assert_eq!(
        (output.status.code(), output.stdout.split(|&b| b == b'\n').count()),
        (Some(1), 3),
        "the rest continues"
    );
}

/// `gzip -t`, `bzip2 -t` and `zstd -t` call a file of no bytes truncated, `lz4 -t` does not.
#[test]
fn files_of_no_bytes_stay_if_their_format_has_none() {
    let scratch = Scratch::new();
    for (extension, codec) in [
        ("gz", "gzip"),
        ("bz2", "bzip2"),
        ("zst", "zstd"),
        ("deflate", "deflate"),
        ("gzip", "gzip"),
        ("zstd", "zstd"),
    ] {
        let name = format!("a.{extension}");
        fs::write(scratch.path(&name), b"").expect("written");
        let message = format!(
            "millstream: cannot recompress '{name}': damaged {codec} data at byte 0: the file is empty; \
             replace it with an intact copy\n"
        );
        for arguments in [&[&name[..]][..], &["--to=lz4", &name], &["--dry-run", "--to=gz", &name]] {
            assert_eq!(scratch.failed(arguments), message, "{arguments:?}");
        }
        assert_eq!(
            (scratch.names(), fs::read(scratch.path(&name)).expect("readable")),
            (vec![name.clone()], vec![])
        );
        fs::remove_file(scratch.path(&name)).expect("removed");
    }
    fs::write(scratch.path("a.lz4"), b"").expect("written");
    fs::write(scratch.path("b.txt"), b"").expect("written");
    scratch.done(&["--to=gz", "a.lz4", "b.txt"]);
    assert_eq!(scratch.names(), ["a.gz", "b.txt.gz"]);
    assert!(text_of(&scratch.path("a.gz")).is_empty() && text_of(&scratch.path("b.txt.gz")).is_empty());
}

#[test]
fn a_file_that_another_process_compresses_is_left_alone() {
    let scratch = Scratch::new();
    let file = scratch.file("a.gz", b"text\n");
    let lock = File::create(scratch.path(".a.gz.recompress")).expect("created");
    lock.lock().expect("locked");
    let told = scratch.failed(&["--to=zst", "a.gz"]);
    assert!(told.ends_with("another process is compressing it; wait until it is done\n"), "{told}");
    drop(lock);
    scratch.done(&["--to=zst", "a.gz"]);
    assert_eq!(
        (file.exists(), scratch.names()),
        (false, vec!["a.zst".to_owned()]),
        "what was left is removed"
    );
}

/// Several processes at once: one of them replaces the file, and none replaces it by what another has not
/// completed.
#[test]
fn processes_that_compress_one_file_lose_no_text() {
    let text = text(60_000);
    for round in 0..40 {
        let scratch = Scratch::new();
        let file = scratch.file("a.gz", &text);
        let run = || {
            let mut command = scratch.command(&["--to=gz", "a.gz"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("millstream runs")
        };
        let running: Vec<_> = (0..6).map(|_| run()).collect();
        for process in running {
            let output = process.wait_with_output().expect("it ends");
            let told = told(&output);
            let is_refused =
                told.contains("another process is compressing it") || told.contains("it changed");
            assert!(output.status.success() || is_refused, "round {round}: {told}");
        }
        assert!(text_of(&file) == text, "round {round}");
        assert_eq!(scratch.names(), ["a.gz"], "round {round}");
    }
}

/// A process that was killed has left its file, with the permissions of the old one.
#[test]
fn the_owner_of_a_read_only_file_completes_the_work() {
    const OWNER: u32 = 65534;
    let scratch = Scratch::new();
    let file = scratch.file("a.gz", b"text\n");
    let left = scratch.path(".a.gz.recompress");
    fs::write(&left, b"begun").expect("written");
    for path in [&file, &left] {
        fs::set_permissions(path, Permissions::from_mode(0o444)).expect("permissions");
    }
    let mut command = scratch.command(&["--to=zst", "a.gz"]);
    if file.metadata().expect("a file").uid() == 0 {
        for path in [scratch.dir.path(), &file, &left] {
            chown(path, Some(OWNER), Some(OWNER)).expect("root may");
        }
        command.uid(OWNER).gid(OWNER);
    }
    let output = command.output().expect("millstream runs");
    assert_eq!((output.status.code(), told(&output)), (Some(0), String::new()));
    assert_eq!(scratch.names(), ["a.zst"]);
    assert_eq!(scratch.path("a.zst").metadata().expect("a file").mode() & 0o7777, 0o444);
}

/// A file of the same text does not stand for the new one unless it has the form that is asked for.
#[test]
fn a_file_in_another_form_is_not_taken_for_the_new_one() {
    let (scratch, text) = (Scratch::new(), text(1000));
    scratch.file("a.txt", &text);
    let other = scratch.file("a.txt.gz", &text);
    let content = fs::read(&other).expect("readable");
    for options in [&["--to=gz"][..], &["--dry-run"], &["--keep"]] {
        let told = scratch.failed(&[options, &["a.txt"]].concat());
        assert!(
            told.contains(
                "'a.txt': a.txt.gz exists, but is not splittable; recompress or move that file first"
            ),
            "{told}"
        );
    }
    assert_eq!(scratch.names(), ["a.txt", "a.txt.gz"]);
    assert!(fs::read(&other).expect("readable") == content);
    scratch.done(&["a.txt.gz"]);
    scratch.done(&["a.txt"]);
    assert_eq!(scratch.names(), ["a.txt.gz"]);
}

#[test]
fn a_new_file_that_cannot_be_compared_is_named() {
    let (scratch, text) = (Scratch::new(), text(100_000));
    scratch.file("a.gz", &text);
    scratch.done(&["--to=zst", "--keep", "a.gz"]);
    let new = scratch.path("a.zst");
    let mut damaged = fs::read(&new).expect("readable");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    fs::write(&new, damaged).expect("written");
    let message = scratch.failed(&["--to=zst", "a.gz"]);
    assert!(message.contains("'a.gz': a.zst exists, but cannot be decoded: damaged zstd data"), "{message}");
    assert!(message.ends_with("; move or remove it\n"), "{message}");
    fs::remove_file(&new).expect("removed");
    fs::create_dir(&new).expect("created");
    let message = scratch.failed(&["--to=zst", "a.gz"]);
    assert!(message.contains("'a.gz': a.zst exists, but cannot be read: "), "{message}");
    assert_eq!(scratch.names(), ["a.gz", "a.zst"]);
}

/// A file is skipped for the sizes of all its parts, not for its last bytes.
#[test]
fn files_of_parts_that_are_too_long_are_compressed_again() {
    let scratch = Scratch::new();
    let frame = |text: &[u8]| piped(&["zstd", "-q", "-1", "-c"], text);
    let whole = vec![b'\n'; 65 << 20];
    let frame_of_all = frame(&whole);
    let mut table = [0x184d_2a5e_u32, 17, frame_of_all.len() as u32, whole.len() as u32, 1]
        .map(u32::to_le_bytes)
        .concat();
    table.extend(b"\0\xb1\xea\x92\x8f");
    fs::write(scratch.path("a.zst"), [&frame_of_all[..], &table].concat()).expect("written");
    assert_eq!(scratch.done(&["--dry-run", "a.zst"]), "'a.zst' -> 'a.zst': would be recompressed\n");
    scratch.file("b.txt", b"text\n");
    scratch.done(&["--to=lz4", "b.txt"]);
    let small = fs::read(scratch.path("b.txt.lz4")).expect("readable");
    let large = fs::read(scratch.file("c.lz4", &text(100))).expect("readable");
    fs::write(scratch.path("a.lz4"), [small, large].concat()).expect("written");
    assert_eq!(scratch.done(&["--dry-run", "a.lz4"]), "'a.lz4' -> 'a.lz4': would be recompressed\n");
}

/// Killed at any moment, it leaves the old file or the new one, and the next run completes the work.
#[test]
fn no_text_is_lost_by_kills() {
    let given = std::env::var("MILLSTREAM_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed: u64 = given.unwrap_or_else(clock);
    println!("MILLSTREAM_SEED={seed}");
    let (mut state, text) = (seed | 1, text(150_000));
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let started = Instant::now();
    let whole = {
        let scratch = Scratch::new();
        scratch.file("a.gz", &text);
        let started = Instant::now();
        scratch.done(&["--to=zst", "a.gz"]);
        started.elapsed()
    };
    while started.elapsed() < Duration::from_secs(10) {
        let scratch = Scratch::new();
        scratch.file("a.gz", &text);
        let to = ["--to=zst", "--to=gz"][below(2) as usize];
        let new = scratch.path(if to == "--to=zst" { "a.zst" } else { "a.gz" });
        let mut child = scratch.command(&[to, "a.gz"]).spawn().expect("millstream runs");
        std::thread::sleep(Duration::from_micros(below(whole.as_micros() as u64)));
        child.kill().expect("killed");
        child.wait().expect("it ends");
        let names = scratch.names();
        let left = names.iter().filter(|name| !name.starts_with('.'));
        assert!(left.clone().count() > 0, "{names:?}");
        left.for_each(|name| assert!(text_of(&scratch.path(name)) == text, "{name}"));
        scratch.done(&[to, if scratch.path("a.gz").exists() { "a.gz" } else { "a.zst" }]);
        assert_eq!(scratch.names(), [new.file_name().expect("a name").to_string_lossy()], "after {names:?}");
        assert!(text_of(&new) == text);
    }
}

/// Without the right to mount there is nothing to see here.
#[test]
fn a_full_or_read_only_volume_keeps_the_old_file() {
    let scratch = Scratch::new();
    let volume = scratch.path("volume");
    fs::create_dir(&volume).expect("created");
    let mount = |options: &str| {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(&volume).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    };
    if !mount("size=3m") {
        println!("no right to mount");
        return;
    }
    let file = scratch.file("volume/a.bz2", &text(200_000));
    let content = fs::read(&file).expect("readable");
    let full = scratch.run(&["--to=lz4", "volume/a.bz2"]);
    let names = || fs::read_dir(&volume).expect("readable").count();
    let after_full = (names(), fs::read(&file).expect("readable") == content);
    let is_read_only = mount("remount,ro");
    let read_only = scratch.run(&["--to=lz4", "volume/a.bz2"]);
    let after_read_only = (names(), fs::read(&file).expect("readable") == content);
    let unmounted = Command::new("umount").arg(&volume).status().expect("umount runs");
    assert!(unmounted.success());
    assert_eq!((after_full, after_read_only), ((1, true), (1, true)));
    let message =
        "cannot recompress 'volume/a.bz2': write: No space left on device; free some space for the new file";
    assert!(told(&full).contains(message), "{full:?}");
    if is_read_only {
        assert!(told(&read_only).contains("create file: Read-only file system"), "{read_only:?}");
    }
}

/// The signal of `ulimit -f` ended the process without a word, and left the hidden file.
#[test]
fn a_limit_of_size_keeps_the_old_file() {
    let scratch = Scratch::new();
    let file = scratch.file("a.bz2", &text(200_000));
    let content = fs::read(&file).expect("readable");
    let mut limited = Command::new("bash");
    limited
        .args(["-c", "ulimit -f 100; exec \"$0\" recompress --to=lz4 a.bz2"])
        .arg(env!("CARGO_BIN_EXE_millstream"));
    let output = limited.current_dir(&scratch.dir).env("LC_ALL", "C").output().expect("bash runs");
    let message =
        "cannot recompress 'a.bz2': write: File too large; raise the limit on file sizes (ulimit -f)";
    assert!(output.status.code() == Some(1) && told(&output).contains(message), "{output:?}");
    assert_eq!(scratch.names(), ["a.bz2"]);
    assert!(fs::read(&file).expect("readable") == content);
}

const OWNER: u32 = 1000;
const OTHER: u32 = 2000;

/// Issue 36, C5: with both files there, readers of the directory would find each line twice.
#[test]
fn a_file_that_only_its_owner_may_remove_is_left_alone() {
    let scratch = Scratch::new();
    let file = scratch.file("a.bz2", &text(10));
    if file.metadata().expect("a file").uid() != 0 {
        eprintln!("only root can make files of other users");
        return;
    }
    fs::set_permissions(scratch.dir.path(), Permissions::from_mode(0o1777)).expect("permissions");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("permissions");
    chown(&file, Some(OWNER), Some(OWNER)).expect("root may");
    let by = |user: u32, arguments: &[&str]| {
        let output = scratch.command(arguments).uid(user).gid(user).output().expect("millstream runs");
        (output.status.code(), told(&output))
    };
    let told = "millstream: cannot recompress 'a.bz2': only its owner may remove it from this directory, which has the \
                sticky bit; run the command as its owner, or use --keep\n";
    assert_eq!(by(OTHER, &["--to=gz", "a.bz2"]), (Some(1), told.to_owned()));
    assert_eq!(scratch.names(), ["a.bz2"]);
    // What an older version left.
    fs::copy(&file, scratch.path("b.bz2")).expect("copied");
    chown(scratch.path("b.bz2"), Some(OWNER), Some(OWNER)).expect("root may");
    scratch.done(&["--to=gz", "--keep", "b.bz2"]);
    let (code, said) = by(OTHER, &["--to=gz", "b.bz2"]);
    assert!(code == Some(1) && said.contains("readers find each line twice"), "{said}");
    assert_eq!(by(OTHER, &["--to=gz", "--keep", "a.bz2"]), (Some(0), String::new()));
    assert_eq!(by(OWNER, &["--to=gz", "b.bz2"]), (Some(0), String::new()));
    assert_eq!(scratch.names(), ["a.bz2", "a.gz", "b.gz"]);
}

/// Issue 36, C5: gzip accepts zeros at the end of a file.
#[test]
fn zeros_at_the_end_of_a_gzip_file_are_no_damage() {
    let (scratch, text) = (Scratch::new(), text(1000));
    for (name, padding) in [("a.gz", vec![0; 1]), ("b.gz", vec![0; 5000])] {
        let file = scratch.file(name, &text);
        let padded = [fs::read(&file).expect("readable"), padding].concat();
        fs::write(&file, padded).expect("written");
        assert!(text_of(&file) == text, "gzip accepts it");
        scratch.done(&[name]);
        let zeros = fs::read(&file).expect("readable").iter().rev().take_while(|b| **b == 0).count();
        assert!(text_of(&file) == text && zeros < 30, "{name}");
    }
    let file = scratch.file("c.gz", &text);
    let garbage = [fs::read(&file).expect("readable"), b"\0\0garbage of some length".to_vec()].concat();
    fs::write(&file, &garbage).expect("written");
    assert!(scratch.failed(&["c.gz"]).contains("not gzip"));
    assert!(fs::read(&file).expect("readable") == garbage);
}

/// Issue 36: what a log names must keep its name and its bytes.
#[test]
fn files_that_a_log_names_are_left_alone() {
    for (log, content, part) in [
        ("t/_delta_log/0.json", "", "t/k=1"),
        ("t/metadata/00000-1.metadata.json", "", "t/data"),
        ("t/.hoodie/hoodie.properties", "", "t"),
        ("t/_spark_metadata/0", "", "t/k=1/j=2"),
        ("t/_list", "part-00000-aa.txt.bz2\n", "t"),
        ("t/SHA256SUMS", "0123  part-00000-aa.txt.bz2\n", "t"),
    ] {
        let scratch = Scratch::new();
        for directory in [part, Path::new(log).parent().and_then(Path::to_str).expect("a directory")] {
            fs::create_dir_all(scratch.path(directory)).expect("made");
        }
        fs::write(scratch.path(log), content).expect("written");
        let name = format!("{part}/part-00000-aa.txt.bz2");
        let file = scratch.file(&name, b"line\n");
        let told = scratch.failed(&["--to=gz", &name]);
        assert!(
            told.contains(" names its files; ") || told.contains(" names files in this directory; "),
            "{told}"
        );
        assert!(scratch.failed(&["--to=gz", "--dry-run", &name]) == told && file.exists());
        scratch.done(&["--to=gz", "--keep", &name]);
        assert!(file.exists() && scratch.path(&format!("{part}/part-00000-aa.txt.gz")).exists());
    }
}

#[test]
fn files_beside_unrelated_hidden_directories_are_compressed_again() {
    let scratch = Scratch::new();
    for directory in ["_archive", ".cache", "home/.git", "home/_x"] {
        fs::create_dir_all(scratch.path(directory)).expect("made");
    }
    scratch.file("home/part-00000-aa.txt.bz2", b"line\n");
    scratch.done(&["--to=gz", "home/part-00000-aa.txt.bz2"]);
    assert!(scratch.path("home/part-00000-aa.txt.gz").exists());
}
