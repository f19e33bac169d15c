//! `pcopy` against GNU `cp`: whole trees, messages and exit codes.

mod permissions;
mod replaced;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::programs::copy_program;
use crate::random::Random;
use crate::trees::{Links, grow};
use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use tempfile::TempDir;

const PCOPY: &str = env!("CARGO_BIN_EXE_pcopy");

/// Runs `program` under the name `cp`.
fn run(program: &str, directory: &Path, words: &[&OsStr], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.arg0("cp").current_dir(directory).args(words).stdin(Stdio::null());
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .envs(environment.iter().copied());
    command.output().expect("the program runs")
}

fn words(line: &str) -> Vec<&OsStr> {
    line.split_whitespace().map(|word| OsStr::new(if word == "''" { "" } else { word })).collect()
}

fn sorted(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = text.split(|&b| b == b'\n').map(|line| line.escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// All that a copy should keep, of everything below `root`.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut entries = BTreeMap::new();
    let mut first_names = HashMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        let at = root.join(&path);
        let Ok(metadata) = fs::symlink_metadata(&at) else { continue };
        if metadata.is_dir() {
            for entry in fs::read_dir(&at).expect("readable") {
                pending.push(path.join(entry.expect("readable").file_name()));
            }
        }
        entries.insert(path, metadata);
    }
    let describe = |(path, metadata): (PathBuf, fs::Metadata)| {
        let at = root.join(&path);
        let first =
            first_names.entry((metadata.dev(), metadata.ino())).or_insert_with(|| path.clone()).clone();
        let contents = match metadata.file_type() {
            kind if kind.is_file() => {
                let data = fs::read(&at).expect("readable");
                let mut hasher = DefaultHasher::new();
                hasher.write(&data);
                let sum = hasher.finish();
                let sparse = metadata.blocks() * 512 + 65_536 < metadata.len();
                format!("{} bytes {sum:x} sparse {sparse}", data.len())
            }
            kind if kind.is_symlink() => format!("{:?}", fs::read_link(&at).expect("a link")),
            kind if kind.is_char_device() => format!("device {}", metadata.rdev()),
            _ => String::new(),
        };
        // What was made just now has no time that could be compared.
        let age = SystemTime::now().duration_since(metadata.modified().expect("a time")).unwrap_or_default();
        let time =
            if age < Duration::from_secs(3600) { (0, 0) } else { (metadata.mtime(), metadata.mtime_nsec()) };
        let line = format!(
            "{:o} {}:{} {time:?} {contents} first {first:?} xattrs {:?}",
            metadata.mode(),
            metadata.uid(),
            metadata.gid(),
            xattrs(&at)
        );
        (path, line)
    };
    entries.into_iter().map(describe).collect()
}

fn xattrs(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names).unwrap_or(0);
    let mut all: Vec<_> = names[..length]
        .split(|&b| b == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 4096];
            let name = String::from_utf8_lossy(name).into_owned();
            let length = rustix::fs::lgetxattr(path, &name, &mut value).unwrap_or(0);
            value.truncate(length);
            (name, value)
        })
        .collect();
    all.sort();
    all
}

/// Gives what [`grow`] made modes, times, owners and attributes, and adds nodes.
fn season(root: &Path, random: &mut Random) {
    let is_root = rustix::process::geteuid().is_root();
    let _ = rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0);
    if is_root {
        let device = rustix::fs::makedev(1, 3);
        rustix::fs::mknodat(
            CWD,
            root.join("null"),
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o604),
            device,
        )
        .expect("a device");
    }
    let mut paths: Vec<_> = snapshot(root).into_keys().collect();
    // What is in a directory comes before it, so that its own time stays.
    paths.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for path in paths {
        let at = root.join(&path);
        let kind = fs::symlink_metadata(&at).expect("there").file_type();
        if is_root && random.below(3) == 0 {
            lchown(&at, Some(random.below(3) as u32), Some(random.below(3) as u32)).expect("chown");
        }
        if kind.is_symlink() || kind.is_fifo() || kind.is_char_device() {
            continue;
        }
        if random.below(4) == 0 {
            let _ = rustix::fs::lsetxattr(&at, "user.test", b"value\0x", XattrFlags::empty());
        }
        let special = if is_root && random.below(4) == 0 {
            [0o4000, 0o2000, 0o1000, 0o6000][random.below(4)]
        } else {
            0
        };
        let mode = [0o644, 0o600, 0o755, 0o444, 0o777, 0o750][random.below(6)] | special;
        let mode = if kind.is_dir() { mode | 0o700 } else { mode };
        fs::set_permissions(&at, Permissions::from_mode(mode)).expect("chmod");
        let seconds =
            Duration::new(1_000_000_000 + random.below(1 << 28) as u64, random.below(999_999_999) as u32);
        let time = SystemTime::UNIX_EPOCH + seconds;
        let times = FileTimes::new().set_modified(time).set_accessed(time);
        File::open(&at).and_then(|file| file.set_times(times)).expect("utimes");
    }
}

/// Two equal places to copy in.
fn twins(fill: impl FnOnce(&Path)) -> (TempDir, PathBuf, PathBuf) {
    let scratch = tempfile::tempdir().expect("scratch");
    let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
    fs::create_dir(&one).expect("a directory");
    fill(&one);
    let copied = Command::new("cp").arg("-a").args([&one, &two]).status().expect("cp runs");
    assert!(copied.success());
    (scratch, one, two)
}

/// Messages without the name that coreutils 9.10 adds to one of them; `tests/newest` has the original.
fn without_newer_names(lines: Vec<String>) -> Vec<String> {
    const COMMON: &str = " with non-directory";
    let end = |line: &String| line.find(COMMON).map_or(line.len(), |at| at + COMMON.len());
    lines.into_iter().map(|line| line[..end(&line)].to_owned()).collect()
}

/// A refusal of the installed release in the words of coreutils 9.10; `tests/newest` has the original.
fn in_newer_words(lines: Vec<String>) -> Vec<String> {
    let (older, newer) = (
        "options --backup and --no-clobber are mutually exclusive",
        "--backup is mutually exclusive with -n or --update=none-fail",
    );
    lines.into_iter().map(|line| line.replace(older, newer)).collect()
}

/// Runs both tools in equal places and compares everything.
fn compare(one: &Path, two: &Path, arguments: &[&OsStr], extra: &[&OsStr], note: &str) {
    let theirs = run("/bin/cp", one, arguments, &[]);
    let ours = run(PCOPY, two, &[extra, arguments].concat(), &[]);
    let label = format!("{note} {arguments:?} {extra:?}");
    assert_eq!(without_newer_names(sorted(&ours.stderr)), in_newer_words(sorted(&theirs.stderr)), "{label}");
    // Which of several links of a file comes first decides what is removed for the others.
    let told =
        |text: &[u8]| sorted(text).into_iter().filter(|l| !l.starts_with("removed")).collect::<Vec<_>>();
    assert_eq!(told(&ours.stdout), told(&theirs.stdout), "{label}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{label}");
    let (theirs, ours) = (snapshot(one), snapshot(two));
    for (path, line) in &theirs {
        let ours = ours.get(path).map_or("missing", String::as_str);
        assert_eq!(ours, line, "{path:?} {label}");
    }
    let extra: Vec<_> = ours.keys().filter(|path| !theirs.contains_key(*path)).collect();
    assert!(extra.is_empty(), "{extra:?} {label}");
}

#[test]
fn random_trees_are_copied_as_gnus() {
    let mut random = Random::from_environment();
    const MODES: &[&str] = &[
        "-r",
        "-a",
        "-rp",
        "-rd",
        "-rL",
        "-rH",
        "-rl",
        "-rx",
        "-r --preserve=links",
        "-a --no-preserve=mode",
    ];
    const MORE: &[&str] = &[
        "-v",
        "-u",
        "-n",
        "-f",
        "-b",
        "--backup=numbered",
        "--remove-destination",
        "--sparse=always",
        "--sparse=never",
        "--no-preserve=ownership",
        "--preserve=timestamps",
        "--preserve=mode,xattr",
        "--attributes-only",
        "--reflink=never",
        "-T",
        "--parents",
    ];
    for round in 0..15 {
        let (_scratch, one, two) = twins(|root| {
            fs::create_dir(root.join("src")).expect("a directory");
            let links = if random.below(3) == 0 { Links::None } else { Links::Anywhere };
            let directories = grow(&root.join("src"), &mut random, links);
            season(&root.join("src"), &mut random);
            match random.below(3) {
                0 => {}
                1 => fs::create_dir(root.join("dst")).expect("a directory"),
                _ => {
                    // Some of it is there already, some of that differs.
                    fs::create_dir(root.join("dst")).expect("a directory");
                    let part = root.join("src").join(&directories[random.below(directories.len())]);
                    for into in ["dst", "dst/src"] {
                        fs::create_dir_all(root.join(into)).expect("a directory");
                        let copied = Command::new("cp")
                            .arg("-rT")
                            .args([&part, &root.join(into)])
                            .status()
                            .expect("cp runs");
                        assert!(copied.success());
                    }
                }
            }
        });
        let mut line = MODES[random.below(MODES.len())].to_owned();
        for _ in 0..random.below(4) {
            let more = MORE[random.below(MORE.len())];
            let clash =
                (more == "--parents" && line.contains("-T")) || (more == "-T" && line.contains("--parents"));
            let refused =
                (more == "-n" && line.contains("-b")) || (more.starts_with("-b") && line.contains("-n"));
            if !clash && !refused {
                line = format!("{line} {more}");
            }
        }
        let line = format!("{line} src dst");
        let threads = format!("--threads={}", random.below(9));
        compare(&one, &two, &words(&line), &[OsStr::new(&threads)], &format!("round {round}"));
    }
}

/// A small place whose every corner is known.
fn known(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("d/sub")).expect("directories");
    fs::create_dir_all(at("into/d")).expect("directories");
    fs::create_dir_all(at("other/sub")).expect("directories");
    fs::write(at("a"), "A").expect("a file");
    fs::write(at("b"), "BB").expect("a file");
    fs::write(at("d/f"), "df").expect("a file");
    fs::write(at("d/sub/g"), "dsg").expect("a file");
    fs::write(at("other/a"), "other").expect("a file");
    fs::write(at("into/f"), "in").expect("a file");
    fs::write(at("into/sub"), "no directory").expect("a file");
    fs::hard_link(at("a"), at("h")).expect("a link");
    symlink("a", at("la")).expect("a link");
    symlink("d", at("ld")).expect("a link");
    symlink("nowhere", at("dang")).expect("a link");
    symlink("gone", at("other/dang")).expect("a link");
    symlink("../b", at("d/up")).expect("a link");
    symlink(".", at("other/loop")).expect("a link");
    symlink("self", at("self")).expect("a link");
    rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).expect("a pipe");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    File::open(at("b")).and_then(|f| f.set_modified(old)).expect("a time");
}

/// Every form of every option, right and wrong. Where a directory is copied into itself what GNU's tool has copied
/// before it stops depends on the order of the directory, so none of these cases has anything besides.
#[test]
fn options_and_messages_are_gnus() {
    let lines = include_str!("pcopy/lines.txt").lines().filter(|line| !line.starts_with('#'));
    let differs = |line: &&str| {
        let (_scratch, one, two) = twins(known);
        std::panic::catch_unwind(|| compare(&one, &two, &words(line), &[], "")).is_err()
    };
    let different: Vec<_> = lines.filter(differs).collect();
    assert!(different.is_empty(), "{different:?}");
}

/// GNU's tool stops where it meets the first of the copies, and does not know later operands yet; here is nothing else
/// that it could leave out.
#[test]
fn directories_that_would_be_copied_into_themselves_are_reported_once() {
    for line in [
        "-R a dir dir",
        "-R a b c dir dir",
        "-Rl a dir dir",
        "-a a b dir dir",
        "-RL a dir dir",
        "-RH a link dir",
        "-R a dir link",
        "-RH link link",
        "-R a link/ dir",
        "-R link/ dir",
        "-R dir link/new",
        "-RT link/ dir/new",
        "-R a b dir ./dir dir",
        "-R --backup=numbered a dir dir",
        "-RT dir dir/y",
    ] {
        let (_scratch, one, two) = twins(|root| {
            for name in ["a", "b", "c", "dir"] {
                fs::create_dir_all(root.join(name)).expect("directories");
            }
            symlink("dir", root.join("link")).expect("a link");
        });
        compare(&one, &two, &words(line), &[], "");
    }
}

/// Names that have no room for the suffix of a backup.
#[test]
fn long_names_of_backups_are_gnus() {
    for length in [246, 249, 250, 251, 253, 254, 255] {
        let name = "n".repeat(length);
        for option in ["-b", "--backup=numbered", "--backup=existing", "-bS.older"] {
            let (_scratch, one, two) = twins(|root| {
                fs::write(root.join("a"), "A").expect("a file");
                fs::write(root.join(&name), "old").expect("a file");
                fs::write(root.join(format!("{}.~9~", &name[..length.min(250)])), "older").expect("a file");
            });
            compare(&one, &two, &words(&format!("{option} -v a {name}")), &[], &length.to_string());
        }
    }
}

/// Unlike GNU's tool, which leaves an empty file where a file system cannot clone.
#[test]
fn clones_that_fail_leave_nothing() {
    for line in ["--reflink=always a new", "--reflink a new", "--reflink=always a b"] {
        let (_scratch, one, two) = twins(known);
        let (theirs, ours) = (run("/bin/cp", &one, &words(line), &[]), run(PCOPY, &two, &words(line), &[]));
        assert_eq!(sorted(&ours.stderr), sorted(&theirs.stderr), "{line}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{line}");
        assert_eq!(two.join("new").exists(), ours.status.success() && line.ends_with("new"), "{line}");
        assert!(two.join("b").exists(), "{line}");
    }
}

#[test]
fn environment_is_gnus() {
    for (environment, line) in [
        (("VERSION_CONTROL", "numbered"), "-bv a b"),
        (("VERSION_CONTROL", "bogus"), "-b a b"),
        (("VERSION_CONTROL", "bogus"), "a b"),
        (("VERSION_CONTROL", "none"), "-bv a b"),
        (("SIMPLE_BACKUP_SUFFIX", ".o"), "-bv a b"),
        (("SIMPLE_BACKUP_SUFFIX", "x/y"), "-bv a b"),
        (("POSIXLY_CORRECT", "1"), "a dang"),
        (("POSIXLY_CORRECT", "1"), "a other/dang"),
        (("POSIXLY_CORRECT", "1"), "-r a other/dang"),
        (("POSIXLY_CORRECT", "1"), "a -v b"),
    ] {
        let (_scratch, one, two) = twins(known);
        let theirs = run("/bin/cp", &one, &words(line), &[environment]);
        let ours = run(PCOPY, &two, &words(line), &[environment]);
        assert_eq!(sorted(&ours.stderr), sorted(&theirs.stderr), "{environment:?} {line}");
        assert_eq!(sorted(&ours.stdout), sorted(&theirs.stdout), "{environment:?} {line}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{environment:?} {line}");
        assert_eq!(snapshot(&two), snapshot(&one), "{environment:?} {line}");
    }
}

/// Pipes and links to them, in the place of the source and of the copy: where GNU's tool waits for the other end ours
/// may as well, and nowhere else.
#[test]
fn pipes_are_waited_for_where_gnu_waits() {
    let lines = [
        "a fifo",
        "a lf",
        "-P fifo la",
        "-P fifo lf",
        "-R fifo la",
        "-R fifo lf",
        "-R fifo other",
        "-R null lf",
        "-n a fifo",
        "-u a lf",
        "-a a lf",
        "-a fifo la",
        "-a fifo lf",
        "--remove-destination a lf",
        "-b a lf",
        "--attributes-only a lf",
        "-l a fifo",
        "-sf a lf",
        "-lf fifo la",
        "-P lf la",
        "-P la lf",
        "-P null lf",
        "-P null fifo",
        "-P null dang",
        "-H null lf",
        "-R --copy-contents null la",
        "-RL --copy-contents null la",
        "-v -P null la",
        "-b -P null la",
        "null lf",
        "-PT fifo ld",
        "-RT fifo ld",
        "-T a ld",
        "-fT a ld",
        "-uT a ld",
        "--attributes-only -T a ld",
        "-bT a ld",
    ];
    let fill = |root: &Path| {
        for name in ["a", "b"] {
            fs::write(root.join(name), name).expect("a file");
        }
        for name in ["fifo", "other"] {
            rustix::fs::mknodat(CWD, root.join(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0)
                .expect("a pipe");
        }
        symlink("/dev/null", root.join("null")).expect("a link");
        for (target, name) in [("fifo", "lf"), ("a", "la"), ("nowhere", "dang"), ("d", "ld")] {
            symlink(target, root.join(name)).expect("a link");
        }
        fs::create_dir(root.join("d")).expect("a directory");
    };
    let outcome = |program: &str, at: &Path, line: &str| {
        let mut arguments: Vec<_> = ["-k1", "5", program].map(OsStr::new).to_vec();
        let line = line.replace("null", "/dev/null");
        arguments.extend(words(&line));
        let output = run("/usr/bin/timeout", at, &arguments, &[]);
        let stderr =
            String::from_utf8_lossy(&output.stderr).replace("/bin/cp: ", "cp: ").replace("pcopy: ", "cp: ");
        let stderr = without_newer_names(sorted(stderr.as_bytes()));
        (output.status.code(), stderr, sorted(&output.stdout), snapshot(at))
    };
    // Most of the time is spent waiting.
    std::thread::scope(|scope| {
        for line in lines {
            scope.spawn(move || {
                let (_scratch, one, two) = twins(fill);
                let theirs = scope.spawn(move || (outcome("/bin/cp", &one, line), one));
                let ours = outcome(PCOPY, &two, line);
                let (theirs, _one) = theirs.join().expect("cp runs");
                assert_eq!(ours.0, theirs.0, "{line}: {:?} {:?}", ours.1, theirs.1);
                let (mut left, waits) = (ours.3, theirs.0 == Some(124));
                // Ours removes an existing file once the source is open, GNU's before it waits for that.
                left.retain(|path, _| !waits || theirs.3.contains_key(path));
                assert_eq!((&ours.1, &ours.2, &left), (&theirs.1, &theirs.2, &theirs.3), "{line}");
            });
        }
    });
}

/// As by cp, the copy of a file ends where reading does, whatever length it is said to have.
#[test]
fn a_file_that_ends_too_early_is_copied_as_far_as_it_goes() {
    let file = "/sys/devices/system/cpu/online";
    let expected = fs::read(file).expect("sysfs");
    assert!(expected.len() < fs::metadata(file).expect("sysfs").len() as usize);
    let scratch = tempfile::tempdir().expect("scratch");
    for option in ["-a", "--sparse=always", "--sparse=never", "--bwlimit=1M"] {
        let output = run(PCOPY, scratch.path(), &words(&format!("{option} {file} copy")), &[]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read(scratch.path().join("copy")).expect("there"), expected, "{option}");
        fs::remove_file(scratch.path().join("copy")).expect("removed");
    }
}
