//! What `pfind` prints that GNU find does not: JSON records, statistics, its version.

use std::fs;
use std::process::{Command, Output};

use millstream_text::json::read_string;
use tempfile::TempDir;

fn pfind(directory: &TempDir, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pfind"))
        .args(words)
        .current_dir(directory.path())
        .env("LC_ALL", "C")
        .output()
        .expect("pfind")
}

fn lines(output: &Output) -> Vec<String> {
    let mut lines: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The value of a member, as text.
fn member<'r>(record: &'r str, key: &str) -> &'r str {
    let start = record.find(&format!("\"{key}\":")).expect("a member") + key.len() + 3;
    let rest = &record[start..];
    &rest[..rest.find([',', '}']).expect("an end")]
}

#[test]
fn json_has_one_record_for_every_match() {
    let bed = TempDir::new().expect("temporary directory");
    fs::create_dir(bed.path().join("d")).expect("mkdir");
    fs::write(bed.path().join("d/file"), "12345").expect("write");
    let output = pfind(&bed, &["--json", "d", "-type", "f"]);
    let [record] = &lines(&output)[..] else { panic!("not one record: {output:?}") };
    for (key, value) in [("filetype", "32768"), ("size", "5"), ("nlink", "1"), ("path", "\"d/file\"")] {
        assert_eq!(member(record, key), value, "{record}");
    }
    let inode =
        |path: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(bed.path().join(path)).expect("stat"));
    assert_eq!(member(record, "dirid"), inode("d").to_string());
    assert_eq!(member(record, "fileid"), inode("d/file").to_string());
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn json_names_come_back_byte_for_byte() {
    use std::os::unix::ffi::OsStrExt;
    let bed = TempDir::new().expect("temporary directory");
    let name = b"a\"\\\n\xff\xc3\xa9";
    fs::write(bed.path().join(std::ffi::OsStr::from_bytes(name)), "").expect("write");
    let output = pfind(&bed, &[".", "--json", "-type", "f"]);
    let start = output.stdout.windows(7).position(|window| window == b"\"path\":").expect("a path") + 7;
    let (path, _) = read_string(&output.stdout[start..]).expect("a string");
    assert_eq!(path, [b"./", &name[..]].concat());
}

#[test]
fn json_reports_errors_as_records_and_as_messages() {
    let bed = TempDir::new().expect("temporary directory");
    let output = pfind(&bed, &["--json", "nosuch"]);
    let expected = r#"{"error":"No such file or directory","errno":2,"operation":"stat","path":"nosuch"}"#;
    assert_eq!(lines(&output), [expected]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "pfind: 'nosuch': No such file or directory\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn explicit_actions_print_what_they_say_despite_json() {
    let bed = TempDir::new().expect("temporary directory");
    assert_eq!(lines(&pfind(&bed, &["--json", ".", "-print"])), ["."]);
}

#[test]
fn statistics_count_entries_and_threads() {
    let bed = TempDir::new().expect("temporary directory");
    fs::create_dir(bed.path().join("d")).expect("mkdir");
    let output = pfind(&bed, &["--verbose", "--threads", "1", "."]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("pfind: 2 entries, "), "{text}");
    assert!(text.contains(" 1 thread, "), "{text}");
}

#[test]
fn the_version_is_ours_and_help_succeeds() {
    let bed = TempDir::new().expect("temporary directory");
    for words in [&["--version"][..], &["-version"], &[".", "--version"]] {
        assert!(String::from_utf8_lossy(&pfind(&bed, words).stdout).contains("Millstream"));
    }
    let help = pfind(&bed, &["--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).starts_with("Usage: pfind "));
    assert_eq!(help.status.code(), Some(0));
}

#[test]
fn names_gathered_for_one_command_are_all_passed_once() {
    let bed = TempDir::new().expect("temporary directory");
    let long = "x".repeat(200);
    for i in 0..15_000 {
        fs::write(bed.path().join(format!("{i}-{long}")), "").expect("write");
    }
    // Each command prints how many names it got; together they are too long for one command.
    let output = pfind(&bed, &[".", "-type", "f", "-exec", "sh", "-c", "echo $#", "sh", "{}", "+"]);
    let counts: Vec<usize> = lines(&output).iter().map(|line| line.parse().expect("a number")).collect();
    assert!(counts.len() > 1, "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), 15_000);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The directory's handle is closed while what is below it is visited, and by its name it is no longer found.
#[test]
fn commands_of_a_directory_that_is_gone_are_not_forgotten_silently() {
    let bed = TempDir::new().expect("temporary directory");
    fs::create_dir_all(bed.path().join("d/sub")).expect("mkdir");
    fs::write(bed.path().join("d/file"), "").expect("write");
    fs::write(bed.path().join("d/sub/end"), "").expect("write");
    let words = "d -ignore_readdir_race -name file -execdir echo {} + -o -name end -exec mv d elsewhere ;";
    let output = pfind(&bed, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "pfind: 'd': No such file or directory\n");
    assert_eq!(output.status.code(), Some(1));
}
