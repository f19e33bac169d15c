//! `millstream index` on local files. That Spark finds these indexes is shown by
//! tests/spark/cases/test_index_command.py.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::scratch::{Scratch, permissions};
use millstream_codec::{Encoder, Form, Index};

/// More than a chunk, of which gzip makes less than the least size that a directory's files must have.
fn text() -> Vec<u8> {
    (0..600_000).flat_map(|n| format!("{n:08} a line of text\n").into_bytes()).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip")
        .args(["-1", "-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip runs");
    let mut stdin = gzip.stdin.take().expect("piped");
    let text = text.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&text));
    let output = gzip.wait_with_output().expect("gzip ends");
    writer.join().expect("no panic").expect("written");
    output.stdout
}

impl Scratch {
    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, content).expect("written");
        path
    }

    /// Runs the command in the directory.
    fn index(&self, arguments: &[&str]) -> Output {
        self.millstream("index", arguments).output().expect("millstream runs")
    }

    /// The same, and it must succeed. Returns its lines, in order.
    fn indexed(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.index(arguments);
        assert_eq!((output.status.code(), told(&output)), (Some(0), String::new()));
        let mut lines: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// All files below a directory, by their paths in this one.
    fn files(&self, below: &str) -> Vec<String> {
        let listed = Command::new("find").args([below, "-type", "f"]).current_dir(&self.dir).output();
        let mut names: Vec<_> =
            String::from_utf8_lossy(&listed.expect("find runs").stdout).lines().map(str::to_owned).collect();
        names.sort();
        names
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The index's path beside a file.
fn beside(file: &Path) -> PathBuf {
    let metadata = file.metadata().expect("a file");
    let millis = metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000;
    let name = file.file_name().expect("a name").to_string_lossy();
    file.with_file_name("_millstream").join(format!(".{name}.{millis}-{}.gzidx", metadata.len()))
}

fn index_of(file: &Path) -> Index {
    Index::decode(&fs::read(beside(file)).expect("an index")).expect("one of ours")
}

fn set_age(path: &Path, age: Duration) {
    let times = FileTimes::new().set_modified(SystemTime::now() - age);
    File::options().write(true).open(path).and_then(|file| file.set_times(times)).expect("times are set");
}

#[test]
fn an_index_is_made_once_and_has_the_permissions_of_its_file() {
    let scratch = Scratch::new();
    let (text, file) = (text(), scratch.write("a b.gz", &gzip(&text())));
    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("permissions");
    assert_eq!(scratch.indexed(&["--dry-run", "a b.gz"]), ["'a b.gz': an index would be created"]);
    assert_eq!(scratch.files("."), ["./a b.gz"]);
    assert!(scratch.indexed(&["a b.gz"]).is_empty());
    let index = index_of(&file);
    assert_eq!((index.length(), index.lines()), (text.len() as u64, 600_000));
    assert!(index.chunks() > 1);
    let made = beside(&file).metadata().expect("an index");
    assert_eq!(made.mode() & 0o7777, 0o640);
    let told = format!("{} bytes of text, 600000 line feeds, {} chunks", index.length(), index.chunks());
    let output = scratch.index(&["-v", "a b.gz"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("'a b.gz': has an index: {told}\n"));
    assert!(scratch.indexed(&["--dry-run", "a b.gz"]).is_empty(), "there is nothing to do");
    let again = beside(&file).metadata().expect("an index");
    assert_eq!((made.ino(), made.mtime_nsec()), (again.ino(), again.mtime_nsec()));
}

/// An entry of the list that a directory hands on is for new files. With the mode of the file it would become valid for
/// the index.
#[test]
fn nobody_may_read_an_index_by_a_list_that_its_file_does_not_have() {
    let scratch = Scratch::new();
    let file = scratch.write("d/a.gz", &gzip(b"line\n"));
    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("permissions");
    scratch.setfacl(&["-d", "-m", "u:12345:r", "d"]);
    scratch.indexed(&["--export=gztool", "d/a.gz"]);
    for made in [beside(&file), scratch.path("d/a.gzi")] {
        assert_eq!(permissions(&made), "user::rw- group::r-- other::---");
        fs::remove_file(made).expect("removed");
    }
    scratch.setfacl(&["-m", "u:12346:r,g::-", "d/a.gz"]);
    scratch.indexed(&["d/a.gz"]);
    let listed = "user::rw- user:12346:r-- group::--- mask::r-- other::---";
    assert_eq!([permissions(&file), permissions(&beside(&file))], [listed; 2]);
}

#[test]
fn a_damaged_index_is_made_again() {
    let scratch = Scratch::new();
    let file = scratch.write("a.gz", &gzip(b"line\n"));
    scratch.indexed(&["a.gz"]);
    let good = fs::read(beside(&file)).expect("an index");
    fs::write(beside(&file), &good[1..]).expect("written");
    let name = beside(&file).file_name().expect("a name").to_string_lossy().into_owned();
    let checksums = scratch.write(&format!("_millstream/.{name}.crc"), b"of another index");
    scratch.indexed(&["a.gz"]);
    assert_eq!(fs::read(beside(&file)).expect("an index"), good);
    assert!(!checksums.exists(), "Hadoop would find that they are wrong");
}

/// In a directory that everybody may write to, another user has put a valid index, of other text.
#[test]
fn an_index_of_another_user_is_made_again() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user");
    const OWNER: u32 = 12345;
    const READER: u32 = 12346;
    const OTHER: u32 = 12347;
    let scratch = Scratch::new();
    fs::set_permissions(&scratch.dir, Permissions::from_mode(0o755)).expect("permissions");
    let file = scratch.write("d/a.gz", &gzip(b"l\nne\n"));
    scratch.indexed(&["d/a.gz"]);
    let planted = fs::read(beside(&file)).expect("an index");
    let size = file.metadata().expect("a file").len();
    fs::write(&file, gzip(b"line\n")).expect("written");
    assert_eq!(file.metadata().expect("a file").len(), size);
    chown(&file, Some(OWNER), None).expect("root may");
    let (index, directory) = (beside(&file), scratch.path("d/_millstream"));
    let lines_after = |reader: u32, maker: u32, mode: u32| {
        fs::write(&index, &planted).expect("written");
        chown(&index, Some(maker), None).expect("root may");
        fs::set_permissions(&directory, Permissions::from_mode(mode)).expect("permissions");
        let mut command = scratch.millstream("index", &["d/a.gz"]);
        let output = command.uid(reader).gid(reader).output().expect("millstream runs");
        (index_of(&file).lines(), told(&output))
    };
    for (reader, maker, lines) in [
        (0, 0, 2),
        (0, OWNER, 2),
        (0, OTHER, 1),
        (READER, READER, 2),
        (READER, 0, 2),
        (READER, OWNER, 2),
        (READER, OTHER, 1),
        (OWNER, READER, 1),
    ] {
        assert_eq!(lines_after(reader, maker, 0o777), (lines, String::new()), "{reader} {maker}");
    }
    let (lines, told) = lines_after(READER, OTHER, 0o1777);
    assert!(
        lines == 2 && told.contains("the index cannot be kept: rename: Operation not permitted"),
        "{told}"
    );
}

#[test]
fn large_files_of_a_directory_are_found_at_any_depth() {
    let scratch = Scratch::new();
    let small = gzip(b"line\n");
    let names = [
        "d/a.gz",
        "d/x/b.GZ",
        "d/x/y/c.gzip",
        "d/_hidden.gz",
        "d/.hidden.gz",
        "d/_h/d.gz",
        "d/.h/e.gz",
        "d/f.bz2",
        "d/g.txt",
    ];
    names.iter().for_each(|name| drop(scratch.write(name, &small)));
    symlink("a.gz", scratch.path("d/link.gz")).expect("linked");
    assert!(scratch.indexed(&["--json", "d"]).is_empty(), "all are smaller than 4 MB");
    let output = scratch.index(&["-v", "--min-size=1", "d"]);
    let made = ["'d/a.gz'", "'d/link.gz'", "'d/x/b.GZ'", "'d/x/y/c.gzip'"];
    let mut lines: Vec<_> = output.stdout.split(|&b| b == b'\n').filter(|line| !line.is_empty()).collect();
    lines.sort();
    assert_eq!(lines.len(), made.len(), "{output:?}");
    for (line, name) in lines.iter().zip(made) {
        assert!(line.starts_with(format!("{name}: index created: 5 bytes of text").as_bytes()), "{output:?}");
    }
    assert!(beside(&scratch.path("d/x/y/c.gzip")).is_file());
    assert!(scratch.indexed(&["--dry-run", "--min-size=0", "d"]).is_empty());
}

#[test]
fn records_have_a_line_for_each_file() {
    let scratch = Scratch::new();
    let file = scratch.write("a.gz", &gzip(b"one\ntwo\n"));
    scratch.write("cut.gz", &gzip(b"one\ntwo\n")[..20]);
    assert_eq!(
        scratch.indexed(&["--json", "--dry-run", "a.gz"]),
        [r#"{"action":"would make index","path":"a.gz"}"#]
    );
    let output = scratch.index(&["--json", "a.gz", "cut.gz"]);
    let mut lines: Vec<_> = std::str::from_utf8(&output.stdout).expect("UTF-8").lines().collect();
    lines.sort_unstable();
    let (size, index) =
        (file.metadata().expect("a file").len(), beside(&file).metadata().expect("an index").len());
    let numbers = format!(r#""bytes":{size},"decoded_bytes":8,"lines":2,"chunks":1,"index_bytes":{index}"#);
    assert_eq!(
        lines,
        [
            &format!(r#"{{"action":"make index",{numbers},"path":"a.gz"}}"#)[..],
            r#"{"error":"damaged gzip data at byte 20: the file ends too early","operation":"index","path":"cut.gz"}"#,
        ]
    );
    assert_eq!(
        scratch.indexed(&["--json", "a.gz"]),
        [format!(r#"{{"action":"keep index",{numbers},"path":"a.gz"}}"#)]
    );
}

#[test]
fn each_error_is_told_and_the_rest_continues() {
    let scratch = Scratch::new();
    let good = gzip(b"line\n");
    let mut damaged = good.clone();
    damaged[12] ^= 0xff;
    scratch.write("d/damaged.gz", &damaged);
    scratch.write("d/good.gz", &good);
    scratch.write("d/text.gz", b"a line of text\n");
    scratch.write("other.txt", b"text\n");
    scratch.write("full/a.gz", &good);
    scratch.write("full/_millstream", b"no directory");
    let output = scratch.index(&["--min-size=0", "d", "gone.gz", "other.txt", "full", "/dev/null"]);
    assert_eq!(output.status.code(), Some(1));
    let told = told(&output);
    let mut lines: Vec<_> = told.lines().collect();
    lines.sort_unstable();
    let expected = [
        ("'/dev/null': not a file", ""),
        ("'d/damaged.gz': damaged gzip data at byte ", "; replace it with an intact copy"),
        ("'d/text.gz': damaged gzip data at byte 10: not gzip", "replace it with an intact copy"),
        (
            "'full/a.gz': the index cannot be kept: open directory: Not a directory",
            "spark.millstream.index.directory",
        ),
        ("'gone.gz': stat: No such file or directory", ""),
        (
            "'other.txt': only .gz, .zst, .lz4 and .snappy files have indexes",
            "a single task reads a file of any other format",
        ),
    ];
    assert_eq!(lines.len(), expected.len(), "{told}");
    for (line, (start, end)) in lines.iter().zip(expected) {
        assert!(
            line.starts_with(&format!("millstream: cannot index {start}")) && line.ends_with(end),
            "{line}"
        );
    }
    assert!(beside(&scratch.path("d/good.gz")).is_file());
    assert_eq!(scratch.files("d").len(), 4, "no temporary file is left");
}

#[test]
fn a_file_that_cannot_be_divided_is_an_error_only_if_it_is_named() {
    let scratch = Scratch::new();
    scratch.write("d/a.gz", &gzip(b"line\n"));
    // A frame of blocks of one byte that is repeated 128 Ki times (RFC 8878).
    let header = |is_last: u32| (is_last | 1 << 1 | (128 << 10) << 3).to_le_bytes();
    let block = |is_last| [&header(is_last)[..3], b"x"].concat();
    let whole = [&b"\x28\xb5\x2f\xfd\0\x38"[..], &block(0).repeat(200), &block(1)].concat();
    scratch.write("d/whole.zst", &whole);
    let reason = "it cannot be split, because it is a single frame or has a frame with more than 64 MiB of \
                  text";
    let line =
        format!("'d/whole.zst': no index: {reason}; a single task reads it (see millstream recompress)");
    assert_eq!(scratch.indexed(&["--min-size=0", "d"]), [line]);
    assert!(beside(&scratch.path("d/a.gz")).is_file());
    let records = scratch.indexed(&["--json", "--min-size=0", "d"]);
    assert!(
        records.contains(&format!(r#"{{"action":"skip","reason":"{reason}","path":"d/whole.zst"}}"#)),
        "{records:?}"
    );
    let output = scratch.index(&["d/whole.zst"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).starts_with(&format!("millstream: cannot index 'd/whole.zst': {reason}")));
}

#[test]
fn stale_indexes_are_pruned() {
    let scratch = Scratch::new();
    let files =
        ["d/kept.gz", "d/gone.gz", "d/x/changed.gz"].map(|name| scratch.write(name, &gzip(b"line\n")));
    scratch.indexed(&["--min-size=0", "d"]);
    let [kept, gone, changed] = files.each_ref().map(|file| beside(file));
    fs::remove_file(&files[1]).expect("removed");
    set_age(&files[2], Duration::from_secs(5));
    let temporary = |day: u64| {
        let path = scratch.write(&format!("d/_millstream/.0000000{day}-0000-0000-0000-000000000000"), b"x");
        set_age(&path, Duration::from_secs(day * 24 * 3600 + 60));
        path
    };
    let (old, young) = (temporary(1), temporary(0));
    let others = [".gone.gz.0123456789abcdef-5.gzidx", "notes.txt", ".hidden"]
        .map(|name| scratch.write(&format!("d/_millstream/{name}"), b"x"));
    let lines = scratch.indexed(&["--prune", "--dry-run", "d"]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (line, end) in lines.iter().zip([
        "000': would be removed: it was never completed",
        ".gzidx': would be removed: the file is gone",
        ".gzidx': would be removed: the file has changed",
    ]) {
        assert!(line.ends_with(end), "{line}");
    }
    assert!([&kept, &gone, &changed, &old, &young].iter().all(|path| path.exists()), "nothing was done");
    assert!(scratch.indexed(&["--prune", "d"]).is_empty());
    assert_eq!(
        [&kept, &gone, &changed, &old, &young].map(|path| path.exists()),
        [true, false, false, false, true]
    );
    assert!(others.iter().all(|path| path.exists()), "they are not ours");
    assert!(files[2].exists() && !changed.parent().expect("a directory").exists(), "nothing else was in it");
    assert!(scratch.indexed(&["--prune", "--json", "d"]).is_empty());
}

/// Earlier versions made them, and a pattern such as `d/*` matches their directory: Spark takes them for data.
#[test]
fn indexes_that_are_not_hidden_are_pruned() {
    let scratch = Scratch::new();
    let file = scratch.write("d/a.gz", &gzip(b"line\n"));
    for (option, directory) in [(None, "d/_millstream"), (Some("--directory=indexes"), "indexes")] {
        let with = |arguments: &[&str]| {
            let all: Vec<_> = option.iter().copied().chain(arguments.iter().copied()).collect();
            scratch.indexed(&all)
        };
        with(&["--min-size=0", "d"]);
        let [made] = &scratch.files(directory)[..] else { panic!("{:?}", scratch.files(directory)) };
        let name = made.strip_prefix(&format!("{directory}/.")).expect("hidden");
        let earlier = scratch.path(&format!("{directory}/{name}"));
        fs::copy(scratch.path(made), &earlier).expect("copied");
        let lines = with(&["--prune", "--dry-run", "d"]);
        assert!(
            lines.len() == 1
                && lines[0]
                    .ends_with("would be removed: it has the visible name that an earlier version gave it"),
            "{lines:?}"
        );
        with(&["--prune", "d"]);
        assert!(!earlier.exists() && scratch.path(made).exists() && file.exists());
    }
}

#[test]
fn the_indexes_of_one_file_are_pruned() {
    let scratch = Scratch::new();
    let files = ["a.gz", "b.gz"].map(|name| scratch.write(name, &gzip(b"line\n")));
    scratch.indexed(&["a.gz", "b.gz"]);
    let indexes = files.each_ref().map(|file| beside(file));
    files.iter().for_each(|file| fs::remove_file(file).expect("removed"));
    scratch.indexed(&["--prune", "a.gz"]);
    assert_eq!(indexes.map(|index| index.exists()), [false, true]);
}

/// The name of the index would be longer than file systems allow, and so would that of Hadoop's checksums of it.
#[test]
fn a_file_with_a_long_name_has_an_index() {
    for (length, option) in
        [(248, None), (248, Some("--directory=indexes")), (255, None), (200, Some("--directory=indexes"))]
    {
        let scratch = Scratch::new();
        let name = format!("d/{}.gz", "x".repeat(length - 3));
        let file = scratch.write(&name, &gzip(b"line\n"));
        let with = |arguments: &[&str]| {
            let all: Vec<_> = option.iter().copied().chain(arguments.iter().copied()).collect();
            scratch.indexed(&all)
        };
        assert_eq!(with(&["--min-size=0", "d"]).len(), 0);
        let directory = if option.is_some() { "indexes" } else { "d/_millstream" };
        let indexes = scratch.files(directory);
        assert!(indexes.len() == 1 && indexes[0].len() - directory.len() - 1 <= 250, "{indexes:?}");
        assert!(with(&["--min-size=0", "--dry-run", "d"]).is_empty(), "it is found again");
        assert!(
            with(&["--prune", "d"]).is_empty() && scratch.files(directory) == indexes,
            "it is of this file"
        );
        fs::remove_file(&file).expect("removed");
        scratch.write("d/other.gz", &gzip(b"line\n"));
        assert_eq!(with(&["--prune", "d"]).len(), 0);
        assert!(scratch.files(directory).is_empty(), "{length} {option:?}");
    }
}

#[test]
fn a_directory_for_indexes_tells_files_of_one_name_apart() {
    let scratch = Scratch::new();
    let files = ["x/a.gz", "y/a.gz"].map(|name| scratch.write(name, &gzip(b"line\n")));
    scratch.indexed(&["--directory=indexes", "x/../x/a.gz", "y/a.gz"]);
    assert_eq!(scratch.files("indexes").len(), 2);
    assert_eq!(scratch.files("x"), ["x/a.gz"]);
    let absolute = scratch.path("x").to_string_lossy().into_owned();
    assert!(
        scratch.indexed(&["--directory=indexes", "--dry-run", "--min-size=0", &absolute, "y"]).is_empty(),
        "by any path"
    );
    fs::remove_file(&files[1]).expect("removed");
    assert_eq!(scratch.indexed(&["--directory=indexes", "--prune", "--dry-run", "x", "y"]).len(), 1);
    scratch.indexed(&["--directory=indexes", "--prune", "x"]);
    assert_eq!(scratch.files("indexes").len(), 2, "nothing is known of other directories");
    scratch.indexed(&["--directory=indexes", "--prune", "x", "y"]);
    assert_eq!(scratch.files("indexes").len(), 1);
}

/// Issue 36: a directory that the user names may have hidden files of others.
#[test]
fn a_directory_for_indexes_keeps_hidden_files_of_others() {
    let scratch = Scratch::new();
    scratch.write("x/a.gz", &gzip(b"line\n"));
    scratch.indexed(&["--directory=home", "--min-size=0", "x"]);
    let old = |name: &str, content: &[u8]| {
        let path = scratch.write(name, content);
        set_age(&path, Duration::from_secs(2 * 24 * 3600));
        path
    };
    let id = "-0000-0000-0000-000000000000";
    let others = [
        old(&format!("home/.00000001{id}"), b"a lock of a desktop"),
        old(&format!("home/..00000002{id}.crc"), b"no checksums"),
    ];
    let ours = [
        old(&format!("home/.00000003{id}"), b"MSIND"),
        old(&format!("home/.00000004{id}"), b""),
        old(&format!("home/..00000005{id}.crc"), b"crc\0\0\0\x02\0"),
    ];
    scratch.indexed(&["--directory=home", "--prune", "x"]);
    assert!(others.iter().all(|path| path.exists()) && !ours.iter().any(|path| path.exists()));
}

fn foreign(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/foreign-indexes");
    fs::read(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn indexes_of_other_programs_are_imported() {
    let scratch = Scratch::new();
    for (file, index) in [("text.gz", "text.gzi"), ("text.bgz", "text.bgz.gzi")] {
        scratch.write("a.gz", &foreign(file));
        scratch.write("other", &foreign(index));
        let (output, name) =
            (scratch.index(&["-v", "--import=other", "a.gz"]), "'a.gz': index created: 3060005 bytes");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(name), "{output:?}");
        let lines = index_of(&scratch.path("a.gz")).lines();
        assert_eq!(lines, 30_000);
    }
    let file = scratch.write("b.gz", &foreign("text.bgz"));
    let told_of = |arguments: &[&str]| {
        let output = scratch.index(arguments);
        assert_eq!(output.status.code(), Some(1));
        told(&output)
    };
    scratch.write("wrong.gz", &foreign("text.gzidx.gz"));
    assert!(Command::new("gunzip").arg(scratch.path("wrong.gz")).status().expect("gunzip runs").success());
    assert!(
        told_of(&["--import=wrong", "b.gz"]).contains("b.gz': the imported index does not match the file: ")
    );
    assert!(told_of(&["--import=b.gz", "b.gz"]).contains("'b.gz': b.gz: not an index of gztool, "));
    assert!(
        told_of(&["--import=gone", "b.gz"])
            .contains("'b.gz': the index to import cannot be read: open: No such file")
    );
    assert!(told_of(&["--import=wrong", "a.gz", "b.gz"]).contains("--import takes exactly one file"));
    assert!(
        told_of(&["--prune", "--export=gztool", "b.gz"])
            .contains("--import and --export cannot be used with --prune")
    );
    assert!(!beside(&file).exists());
}

#[test]
fn the_index_of_gztool_is_exported() {
    let scratch = Scratch::new();
    let file = scratch.write("a.gz", &foreign("text.gz"));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("permissions");
    scratch.indexed(&["a.gz"]);
    assert_eq!(scratch.indexed(&["--export=gztool", "--dry-run", "a.gz"]), ["'a.gzi': would be written"]);
    let records = scratch.indexed(&["--export=gztool", "--json", "a.gz"]);
    assert_eq!(records[0], r#"{"action":"export","path":"a.gzi"}"#);
    let exported = scratch.path("a.gzi").metadata().expect("exported");
    assert_eq!(exported.mode() & 0o7777, 0o600, "it has text of the file");
    let made = index_of(&file);
    fs::remove_file(beside(&file)).expect("removed");
    scratch.indexed(&["--import=a.gzi", "a.gz"]);
    assert_eq!(index_of(&file), made);
}

#[test]
fn gztool_gets_the_indexes_of_gzip_files_only() {
    let scratch = Scratch::new();
    scratch.write("d/a.gz", &gzip(b"line\n"));
    scratch.write("d/b.zst", &Encoder::new(Form::Zstd, None).encode(b"line\n").bytes);
    let output = scratch.index(&["-v", "--min-size=0", "--export=gztool", "d"]);
    assert_eq!(
        (output.status.code(), output.stdout.split(|&b| b == b'\n').count()),
        (Some(0), 5),
        "{output:?}"
    );
    let skipped = "'d/b.zst': gztool reads only gzip, so no index is written for it\n";
    assert!(String::from_utf8_lossy(&output.stdout).contains(skipped), "{output:?}");
    let beside: Vec<_> =
        scratch.files("d").into_iter().filter(|name| !name.contains("_millstream")).collect();
    assert_eq!(beside, ["d/a.gz", "d/a.gzi", "d/b.zst"]);
    assert!(
        scratch.indexed(&["--min-size=0", "--export=gztool", "--dry-run", "d"]).is_empty(),
        "it is there"
    );
}

#[test]
fn another_index_in_the_place_of_an_exported_one_stays() {
    let scratch = Scratch::new();
    scratch.write("a.gz", &foreign("text.gz"));
    let other = scratch.write("a.gzi", b"of gztool itself");
    for dry_run in [&["--dry-run"][..], &[]] {
        scratch.indexed(&["a.gz"]);
        let output = scratch.index(&[dry_run, &["--export=gztool", "a.gz"]].concat());
        let message = "'a.gz': a.gzi exists, and is not the index that would be written; move or remove it";
        assert!(output.status.code() == Some(1) && told(&output).contains(message), "{output:?}");
        assert_eq!(fs::read(&other).expect("readable"), b"of gztool itself");
    }
    fs::remove_file(&other).expect("removed");
    scratch.indexed(&["--export=gztool", "a.gz"]);
    assert!(other.exists());
    assert_eq!(scratch.files(".").len(), 3, "no temporary file is left");
}

#[test]
fn an_index_is_imported_for_one_gzip_file() {
    let scratch = Scratch::new();
    scratch.write("d/a.gz", &foreign("text.gz"));
    scratch.write("d/a.gzi", &foreign("text.gzi"));
    scratch.write("a.zst", &Encoder::new(Form::Zstd, None).encode(b"line\n").bytes);
    for (operand, message) in [
        (
            "d",
            "'d': this is a directory, but the imported index belongs to a single file; name the file, or \
             leave out --import",
        ),
        (
            "a.zst",
            "'a.zst': indexes of other programs can be imported only for gzip files; leave out --import",
        ),
    ] {
        for dry_run in [&["--dry-run"][..], &[]] {
            let output = scratch.index(&[dry_run, &["--min-size=0", "--import=d/a.gzi", operand]].concat());
            assert!(output.status.code() == Some(1) && told(&output).contains(message), "{output:?}");
        }
    }
    assert_eq!(scratch.files(".").len(), 3, "nothing was made");
}

/// The owner of the files could have an administrator write, or remove, elsewhere.
#[test]
fn a_link_in_the_place_of_the_directory_for_indexes_is_not_followed() {
    let scratch = Scratch::new();
    let file = scratch.write("d/a.gz", &gzip(b"line\n"));
    scratch.indexed(&["d/a.gz"]);
    fs::rename(scratch.path("d/_millstream"), scratch.path("elsewhere")).expect("renamed");
    symlink("../elsewhere", scratch.path("d/_millstream")).expect("linked");
    fs::write(&file, gzip(b"another line\n")).expect("written");
    let there = scratch.files("elsewhere");
    assert_eq!(there.len(), 1);
    let why = "_millstream beside it is a symbolic link, which is not followed; choose a directory for indexes with";
    for (arguments, cause) in [
        (&["--min-size=0", "d"][..], format!("cannot index 'd/a.gz': {why}")),
        (&["--prune", "d"], format!("cannot prune 'd/': {why}")),
    ] {
        let output = scratch.index(arguments);
        assert!(output.status.code() == Some(1) && told(&output).contains(&cause), "{output:?}");
        assert_eq!(scratch.files("elsewhere"), there);
    }
}

/// Before the directory for indexes that an administrator has made is given to the owner of the files, he puts
/// something else in its place.
#[test]
fn nothing_but_the_directory_for_indexes_is_given_to_the_owner_of_the_files() {
    assert!(rustix::process::geteuid().is_root(), "this test is an administrator");
    const OWNER: u32 = 12345;
    let scratch = Scratch::new();
    let file = scratch.write("d/a.gz", &gzip(b"line\n"));
    let (directory, taken) = (scratch.path("d/_millstream"), scratch.path("d/root"));
    chown(scratch.path("d"), Some(OWNER), Some(OWNER)).expect("root may");
    scratch.write("d/root/file", b"not the owner's");
    let replace: [(&dyn Fn(), &Path); 3] = [
        (&|| fs::hard_link(taken.join("file"), &directory).expect("linked"), &taken.join("file")),
        (&|| symlink("root", &directory).expect("linked"), &taken),
        (&|| fs::rename(&taken, &directory).expect("renamed"), &directory),
    ];
    for (replace, replacing) in replace {
        let delay = "inject=mkdirat:delay_exit=2000000";
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=mkdirat", "-e", delay]);
        strace.args([env!("CARGO_BIN_EXE_millstream"), "index", "d/a.gz"]).current_dir(&scratch.dir);
        strace.stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = strace.spawn().expect("strace runs (testbed/setup test installs it)");
        let started = Instant::now();
        while fs::remove_dir(&directory).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "no directory is made");
            std::thread::sleep(Duration::from_millis(10));
        }
        replace();
        running.wait().expect("it ends");
        assert_eq!(replacing.metadata().expect("it is there").uid(), 0, "{}", replacing.display());
        let _ = fs::remove_file(&directory);
    }
    fs::rename(&directory, &taken).expect("renamed");
    scratch.indexed(&["d/a.gz"]);
    assert_eq!(directory.metadata().expect("a directory").uid(), OWNER);
    assert!(beside(&file).exists());
}

/// Such an index is valid for a task, which gets a part of one.
#[test]
fn an_index_that_does_not_cover_the_file_is_made_again() {
    let scratch = Scratch::new();
    let file = scratch.write("a.gz", &gzip(&text()));
    scratch.indexed(&["a.gz"]);
    let whole = index_of(&file);
    let part = whole.slice(whole.range(1).start..whole.length());
    fs::write(beside(&file), part.encode()).expect("written");
    scratch.indexed(&["a.gz"]);
    assert_eq!(index_of(&file), whole);
}

#[test]
fn many_files_at_once() {
    let scratch = Scratch::new();
    let small = gzip(b"line\n");
    (0..500).for_each(|n| drop(scratch.write(&format!("d/{}/{n}.gz", n % 7), &small)));
    let records = scratch.indexed(&["--json", "--min-size=1", "d"]);
    assert_eq!(records.iter().filter(|record| record.contains("make index")).count(), 500);
}
