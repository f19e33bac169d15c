//! `pls --json` and `--paths`: the calls that RapidFile's users make, every kind of name, and errors.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use millstream_text::json::read_string;
use tempfile::TempDir;

fn tree() -> TempDir {
    let tree = tempfile::tempdir().expect("scratch directory");
    let root = tree.path();
    fs::create_dir_all(root.join("a/b/.hidden/c")).expect("directories");
    for name in
        [&b"a/plain"[..], b"a/b/.hidden/c/deep", b"a/new\nline", b"a/\xff\"\\", b".dot", "a/é".as_bytes()]
    {
        File::create(root.join(OsStr::from_bytes(name))).expect("file");
    }
    symlink("plain", root.join("a/link")).expect("link");
    symlink("nowhere", root.join("a/dangling")).expect("link");
    symlink("..", root.join("a/up")).expect("link");
    rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), rustix::fs::FileType::Fifo, 0o644.into(), 0)
        .expect("fifo");
    fs::set_permissions(root.join("a/plain"), PermissionsExt::from_mode(0o4640)).expect("mode");
    tree
}

fn pls(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pls"));
    command.args(arguments).current_dir(directory).env("LC_ALL", "C.UTF-8").output().expect("pls runs")
}

/// The members of a record: strings as bytes, numbers as their digits.
fn record(line: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut members = BTreeMap::new();
    let mut rest = line.strip_prefix(b"{").expect("an object");
    loop {
        let (key, after) = read_string(rest).expect("a key");
        let after = after.strip_prefix(b":").expect("a colon");
        let (value, after) = match after.first() {
            Some(b'"') => read_string(after).expect("a string"),
            _ => {
                let end = after.iter().position(|b| matches!(b, b',' | b'}')).expect("more");
                (after[..end].to_vec(), &after[end..])
            }
        };
        members.insert(String::from_utf8(key).expect("ASCII"), value);
        match after {
            [b',', more @ ..] => rest = more,
            b"}" => return members,
            _ => panic!("{}", line.escape_ascii()),
        }
    }
}

fn records(output: &Output) -> Vec<BTreeMap<String, Vec<u8>>> {
    output.stdout.split(|&b| b == b'\n').filter(|line| !line.is_empty()).map(record).collect()
}

fn model(directory: &Path, found: &mut BTreeSet<Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("directory") {
        let entry = entry.expect("entry");
        found.insert(entry.path().as_os_str().as_bytes().to_vec());
        if entry.file_type().expect("type").is_dir() {
            model(&entry.path(), found);
        }
    }
}

#[test]
fn a_record_for_everything_below_the_operand() {
    let tree = tree();
    let root = tree.path().to_str().expect("UTF-8");
    let mut expected = BTreeSet::new();
    model(tree.path(), &mut expected);
    for arguments in [&["--json", root][..], &["-a", "--json", root], &["--json", "--threads=1", root]] {
        let output = pls(Path::new("/"), arguments);
        assert_eq!(output.status.code(), Some(0));
        let records = records(&output);
        let found: BTreeSet<_> = records.iter().map(|r| r["path"].clone()).collect();
        assert_eq!(found, expected);
        assert_eq!(records.len(), expected.len());
        let mut seen: BTreeSet<Vec<u8>> = BTreeSet::from([root.as_bytes().to_vec()]);
        for record in &records {
            let path = Path::new(OsStr::from_bytes(&record["path"]));
            let parent = path.parent().expect("a parent").as_os_str().as_bytes();
            assert!(seen.contains(parent), "{} before its directory", path.display());
            seen.insert(record["path"].clone());
            check_members(path, record);
        }
    }
}

fn check_members(path: &Path, record: &BTreeMap<String, Vec<u8>>) {
    let metadata = path.symlink_metadata().expect("metadata");
    let number = |key: &str| String::from_utf8_lossy(&record[key]).parse::<i64>().expect(key);
    let octal = i64::from_str_radix(&format!("{}", number("mode")), 8).expect("octal digits");
    assert_eq!(octal, i64::from(metadata.mode() & 0o7777));
    assert_eq!(number("filetype"), i64::from(metadata.mode() & 0o170_000));
    assert_eq!(number("size"), metadata.size() as i64);
    assert_eq!(number("nlink"), metadata.nlink() as i64);
    assert_eq!(number("fileid"), metadata.ino() as i64);
    assert_eq!(number("mtime"), metadata.mtime());
    assert_eq!(number("ctime"), metadata.ctime());
    assert!(record.contains_key("atime"));
    let parent = path.parent().expect("a parent").metadata().expect("metadata");
    assert_eq!(number("dirid"), parent.ino() as i64);
    if metadata.uid() == 0 {
        assert_eq!((&record["uid"][..], &record["gid"][..]), (&b"root"[..], &b"root"[..]));
    }
}

#[test]
fn records_of_operands_themselves() {
    let tree = tree();
    for (arguments, paths) in [
        (&["--json", "-d", "."][..], &["."][..]),
        (&["--json", "a/plain", ".dot"], &["a/plain", ".dot"]),
        (&["--json", "-d", "a", "a/link"], &["a", "a/link"]),
        (&["--json", "-n", "a/plain"], &["a/plain"]),
    ] {
        let records = records(&pls(tree.path(), arguments));
        let found: Vec<_> =
            records.iter().map(|r| String::from_utf8_lossy(&r["path"]).into_owned()).collect();
        assert_eq!(found, paths, "{arguments:?}");
        for (record, path) in records.iter().zip(paths).filter(|(_, path)| path.contains('/')) {
            let numeric = arguments.contains(&"-n");
            assert_eq!(record["uid"].iter().all(u8::is_ascii_digit), numeric, "{path}");
        }
    }
}

#[test]
fn failures_have_records_and_messages() {
    let tree = tree();
    let output = pls(tree.path(), &["--json", "nowhere", "a/plain"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stderr, b"pls: cannot access 'nowhere': No such file or directory\n");
    let records = records(&output);
    let failed: Vec<_> = records.iter().filter(|r| r.contains_key("error")).collect();
    assert_eq!((records.len(), failed.len()), (2, 1));
    assert_eq!(failed[0]["error"], b"No such file or directory");
    assert_eq!(failed[0]["path"], b"nowhere");
}

/// RapidFile's users read standard output and standard error as one stream, in which every line must be a record.
#[test]
fn messages_stay_out_of_a_stream_of_records() {
    let tree = tree();
    let line = "exec \"$0\" --json nowhere a/plain 2>&1";
    let mut command = Command::new("bash");
    command.args(["-c", line, env!("CARGO_BIN_EXE_pls")]).current_dir(tree.path());
    let output = command.output().expect("bash runs");
    assert_eq!(records(&output).len(), 2);
}

#[test]
fn paths_of_all_that_can_be_read() {
    let tree = tree();
    let found = |arguments: &[&str], end: u8| {
        let output = pls(tree.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let paths = output.stdout.split(|&b| b == end).filter(|p| !p.is_empty()).map(<[u8]>::to_vec);
        paths.collect::<BTreeSet<_>>()
    };
    let set = |names: &[&[u8]]| names.iter().map(|n| n.to_vec()).collect::<BTreeSet<_>>();
    let visible: &[&[u8]] =
        &[b"./a/plain", b"./a/new\nline", b"./a/\xff\"\\", "./a/é".as_bytes(), b"./a/link"];
    assert_eq!(found(&["--paths", "--zero"], 0), set(visible));
    let mut all = set(visible);
    all.extend([b"./.dot".to_vec(), b"./a/b/.hidden/c/deep".to_vec()]);
    assert_eq!(found(&["--paths", "--zero", "-a"], 0), all);
    assert_eq!(found(&["--paths", "-A", "a/b", "--threads=3"], b'\n'), set(&[b"a/b/.hidden/c/deep"]));
    assert_eq!(found(&["--paths", "-I", "b", "-A", "a/b"], b'\n'), set(&[b"a/b/.hidden/c/deep"]));
    assert_eq!(found(&["--paths", "-I", "plain", "-I*n*", "a"], b'\n').len(), 2);
}

#[test]
fn texts_name_millstream() {
    let version = pls(Path::new("/"), &["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).contains("Millstream"));
    let help = pls(Path::new("/"), &["--help"]);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    for word in ["--json", "--paths", "--group-directories-first", "-Z, --context", "Exit status"] {
        assert!(text.contains(word), "{word}");
    }
    let verbose = pls(Path::new("/"), &["-d", "--verbose", "/"]);
    assert!(String::from_utf8_lossy(&verbose.stderr).contains(" 1 thread, "));
}
