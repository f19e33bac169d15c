//! `pdu` against GNU `du`, and against itself.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::programs::copy_program;
use crate::random::Random;
use crate::trees::{Links, grow, settle};
use millstream_text::json::read_string;
use tempfile::TempDir;

/// A directory with our tool under GNU's name.
fn as_du() -> TempDir {
    let bin = tempfile::tempdir().expect("a directory");
    symlink(env!("CARGO_BIN_EXE_pdu"), bin.path().join("du")).expect("a link");
    bin
}

fn run(program: &Path, directory: &Path, arguments: &[&OsStr], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.current_dir(directory).args(arguments).env("LC_ALL", "C.UTF-8");
    for variable in ["POSIXLY_CORRECT", "TIME_STYLE", "DU_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"] {
        command.env_remove(variable);
    }
    command.envs(environment.iter().copied()).output().expect("the program runs")
}

/// Lines, for comparison where the order is free.
fn sorted(text: &[u8], terminator: u8) -> Vec<String> {
    let mut lines: Vec<_> =
        text.split_inclusive(|&b| b == terminator).map(|line| line.escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// Runs both tools and compares output (without regard to the order of lines), messages and exit code.
fn compare(directory: &Path, ours: &Path, arguments: &[&OsStr], environment: &[(&str, &str)]) {
    let theirs = run(Path::new("du"), directory, arguments, environment);
    let ours = run(ours, directory, arguments, environment);
    let terminator = if arguments.iter().any(|a| *a == "-0") { 0 } else { b'\n' };
    assert_eq!(
        sorted(&ours.stdout, terminator),
        sorted(&theirs.stdout, terminator),
        "{arguments:?} {environment:?}"
    );
    assert_eq!(sorted(&ours.stderr, b'\n'), sorted(&theirs.stderr, b'\n'), "{arguments:?} {environment:?}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{arguments:?} {environment:?}");
}

fn words(line: &str) -> Vec<&OsStr> {
    line.split_whitespace().map(|word| OsStr::new(if word == "''" { "" } else { word })).collect()
}

/// A small tree whose every corner is known.
fn known_tree() -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("a/sub/deep")).expect("directories");
    fs::create_dir(at("b")).expect("a directory");
    fs::create_dir(at("e")).expect("a directory");
    fs::write(at("a/f"), "hello\n").expect("a file");
    fs::write(at("a/sub/g"), vec![0; 10_000]).expect("a file");
    fs::write(at("a/sub/deep/z"), vec![0; 5_000]).expect("a file");
    fs::hard_link(at("a/sub/g"), at("b/h")).expect("a hard link");
    symlink("../b", at("a/lb")).expect("a link");
    symlink("nowhere", at("a/dang")).expect("a link");
    symlink("loop", at("loop")).expect("a link");
    symlink("..", at("a/sub/up")).expect("a link");
    fs::write(at("patterns"), "sub\nf \n#x\n\n").expect("a file");
    fs::write(at("names"), "a\0a\0b").expect("a file");
    fs::write(at("bad-names"), "a\nb\0\0-\0").expect("a file");
    fs::create_dir_all(at("old/1960")).expect("directories");
    fs::write(at("old/file"), "").expect("a file");
    for (name, days) in [("old/1960", 3650), ("old/file", 7300)] {
        let time = SystemTime::UNIX_EPOCH - Duration::from_secs(days * 86_400);
        File::open(at(name)).and_then(|file| file.set_modified(time)).expect("a time");
    }
    settle(root.path());
    root
}

/// Every form of every option, right and wrong.
#[test]
fn options_and_messages_are_gnus() {
    let (tree, bin) = (known_tree(), as_du());
    let lines = [
        "a a/sub",
        "a/sub a",
        "a a",
        "-l a a",
        "-c a b",
        "-c b a",
        "-B Ki a",
        "-B Kx a",
        "-B x a",
        "-B B a",
        "-B 1B a",
        "-B +1 a",
        "--inodes -B KB a",
        "--inodes -B KiB a",
        "--inodes -B M a",
        "--time old",
        "--time -a old/1960",
        "--time old/file",
        "--time -c missing",
        "-lc a b",
        "-L e b",
        "-L a/sub/deep",
        "-aS a",
        "-Sc a",
        "-S -d0 a",
        "-s a/f a",
        "-a a a/f",
        "a/f a/f",
        "-l a/f a/f",
        "-Ds a/lb b",
        "-D b a/lb",
        "-L b e a/sub/deep",
        "-lL b",
        "-al .",
        "-aD a/lb/ a",
        "a// a/sub///",
        "-P a/lb",
        "a/../b b",
        "-d1 .. --help=3",
        "--exclude=a a",
        "-a --exclude=sub/g a",
        "-a --exclude=a/s* a",
        "-a --exclude=a*g a",
        "-a --exclude=*/g a",
        "-a --exclude=[ a",
        "-a --exclude=\\g a",
        "-a --exclude=sub/ a",
        "-a --exclude=/g a",
        "--exclude=a ./a",
        "--exclude=a a/",
        "--exclude=* a",
        "--exclude=. .",
        "-a -X patterns a",
        "-X patterns --exclude=f -a a",
        "-X missing e",
        "--inodes a",
        "--inodes -h a",
        "--inodes -B10 a",
        "--inodes -b a",
        "--inodes -t 5 a",
        "--inodes --apparent-size -a a",
        "-b a/sub/g",
        "--apparent-size a/sub/g",
        "-a a/lb",
        "a/lb",
        "a/lb/",
        "-D a/lb",
        "-H a/lb",
        "-L a/dang",
        "-L loop",
        "-aL loop b",
        "-D a/dang",
        "a/dang",
        "--time a",
        "--time=ctime --time-style=iso e",
        "--time --time-style=full-iso e",
        "--time --time-style=+%Y_%N e",
        "--time-style=locale --time e",
        "--time-style=posix-iso --time e",
        "--time-style=bogus e",
        "--time=birth e",
        "--time= e",
        "-t 10K a",
        "-t -10K a",
        "-a -t -5K a",
        "-Sa -t 5000 a",
        "-s -d 3 a",
        "-s -d 0 a",
        "-as a",
        "-s -d 3 -a a",
        "a/f/",
        "''",
        "missing",
        "-0 a b",
        "-d 0 a",
        "-d 0x1 a",
        "-d ''",
        "-d 99999999999999999999999 a",
        "-B '1 a",
        "-B 0",
        "-B x",
        "-B 1x",
        "-B ''",
        "-B 99999999999999999999",
        "--block-size=1x",
        "-k -h e",
        "-h -k e",
        "-b -h a/sub/g",
        "-h -b a/sub/g",
        "--apparent-size -m a/sub/g",
        "-B K e",
        "-BKB e",
        "-B 1KiB e",
        "-B1M -c a b",
        "--si a",
        "-t 1x a",
        "-t '' a",
        "-t -0 a",
        "-t -1K -t +3K a",
        "-t 99999999999999999999 a",
        "-hs a",
        "-ch missing",
        "-cs a missing b",
        "-x a b",
        "--files0-from=names",
        "--files0-from=/dev/null",
        "--files0-from=bad-names",
        "--files0-from=.",
        "--files0-from=missing",
        "--files0-from=names x",
        "-y -z --foo --bl",
        "--s",
        "--=x",
        "--th 3K a",
        "--ti e",
        "--js",
        "-B",
        "--max-depth",
        "--si=3",
        "-- a",
        "a -s b",
        "--verb",
        "--thre 1 a",
    ];
    for line in lines {
        compare(tree.path(), &bin.path().join("du"), &words(line), &[]);
    }
}

#[test]
fn environment_is_gnus() {
    let (tree, bin) = (known_tree(), as_du());
    for (environment, line) in [
        (("DU_BLOCK_SIZE", "x"), "e"),
        (("DU_BLOCK_SIZE", "1Q"), "a"),
        (("BLOCK_SIZE", "2Kx"), "a"),
        (("BLOCK_SIZE", "KBx"), "a"),
        (("BLOCK_SIZE", " +1"), "a"),
        (("BLOCK_SIZE", "16E"), "a"),
        (("BLOCK_SIZE", "99999999999999999999"), "a"),
        (("BLOCK_SIZE", "0x"), "a"),
        (("BLOCK_SIZE", "KB"), "--inodes a"),
        (("BLOCKSIZE", "1"), "e"),
        (("BLOCK_SIZE", "human"), "e"),
        (("BLOCK_SIZE", "2"), "-k e"),
        (("POSIXLY_CORRECT", "1"), "e"),
        (("POSIXLY_CORRECT", "1"), "e -s"),
        (("TIME_STYLE", "locale"), "--time e"),
        (("TIME_STYLE", "posix-iso"), "--time e"),
        (("TIME_STYLE", "posix-bogus"), "--time e"),
        (("TIME_STYLE", "bogus"), "e"),
        (("TIME_STYLE", "+%Y\n%H"), "--time e"),
    ] {
        compare(tree.path(), &bin.path().join("du"), &words(line), &[environment]);
    }
}

/// GNU's tool gives a file with several links to the directory that it happens to read first. So trees in which that
/// cannot be seen are compared line by line, the others by operand.
#[test]
fn random_trees_measure_as_gnus() {
    let mut random = Random::from_environment();
    let bin = as_du();
    for _ in 0..12 {
        let tree = tempfile::tempdir().expect("a directory");
        let linked = random.below(2) == 1;
        let links = if linked { Links::Anywhere } else { Links::None };
        let directories = grow(tree.path(), &mut random, links);
        let mut arguments: Vec<OsString> = vec!["-0".into()];
        for option in ["-c", "-B1", "-h", "--inodes", "--time", "--exclude=*e*", "-D", "-x", "-k"] {
            if random.below(4) == 0 {
                arguments.push(option.into());
            }
        }
        // Following links, GNU counts a directory for whoever reads it first, too.
        let once: &[&str] =
            if linked { &["-s", "-l", "-la", "-lS"] } else { &["-a", "-S", "-d2", "-aS", "-s", "-sL"] };
        arguments.push(once[random.below(once.len())].into());
        let operands = random.below(5);
        for _ in 0..operands {
            arguments.push(directories[random.below(directories.len())].clone().into_os_string());
        }
        let nested = operands > 1 && linked;
        if nested {
            // Which operand a link belongs to is still certain, but not which directory of an overlapping one.
            arguments.retain(|a| a != "-S");
        }
        let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
        compare(tree.path(), &bin.path().join("du"), &arguments, &[]);
    }
}

#[test]
fn no_number_of_threads_changes_the_output() {
    let mut random = Random::from_environment();
    let tree = tempfile::tempdir().expect("a directory");
    let directories = grow(tree.path(), &mut random, Links::Anywhere);
    let pdu = Path::new(env!("CARGO_BIN_EXE_pdu"));
    for options in ["-ac", "-aL", "-aL -d2", "-Sc", "-d1 --time", "-s", "-a --json"] {
        let mut arguments = words(options);
        arguments.extend([OsStr::new("."), directories[0].as_os_str(), OsStr::new(".")]);
        let expected = run(pdu, tree.path(), &[&arguments[..], &[OsStr::new("--threads=1")]].concat(), &[]);
        assert!(!expected.stdout.is_empty());
        for round in 0..50 {
            let threads = OsString::from(format!("--threads={}", round % 17));
            let output = run(pdu, tree.path(), &[&arguments[..], &[&threads]].concat(), &[]);
            assert!(output.stdout == expected.stdout, "{options} {threads:?}");
            assert_eq!(sorted(&output.stderr, b'\n'), sorted(&expected.stderr, b'\n'), "{options}");
        }
    }
}

/// A directory is shown where its first path is, even if it was read by a longer one whose files get no lines.
#[test]
fn files_reached_by_a_short_and_a_long_path_get_lines() {
    let tree = tempfile::tempdir().expect("a directory");
    for pair in 0..8 {
        let at = tree.path().join(pair.to_string());
        // Which of the two is read first depends on the file system and the order in which they were made.
        let names = if pair % 2 == 0 { ["a", "z/p/q/t"] } else { ["z/p/q/t", "a"] };
        names.iter().for_each(|name| fs::create_dir_all(at.join(name)).expect("directories"));
        fs::write(at.join("z/p/q/t/f"), "").expect("a file");
        symlink("../z/p/q/t", at.join("a/l")).expect("a link");
    }
    let pdu = Path::new(env!("CARGO_BIN_EXE_pdu"));
    for threads in ["--threads=1", "--threads=8"] {
        let output = run(pdu, tree.path(), &words(&format!("-aL -d4 {threads} .")), &[]);
        let files: Vec<_> =
            sorted_not(&output.stdout).into_iter().filter(|path| path.ends_with("/f")).collect();
        assert_eq!(files, (0..8).map(|pair| format!("./{pair}/a/l/f")).collect::<Vec<_>>(), "{threads}");
    }
}

#[test]
fn lines_are_in_post_order_with_names_sorted() {
    let tree = known_tree();
    let output = run(Path::new(env!("CARGO_BIN_EXE_pdu")), tree.path(), &words("-a a b"), &[]);
    let paths: Vec<_> = sorted_not(&output.stdout);
    assert_eq!(
        paths,
        ["a/dang", "a/f", "a/lb", "a/sub/deep/z", "a/sub/deep", "a/sub/g", "a/sub/up", "a/sub", "a", "b"],
        "b/h is a link to a/sub/g and counts there"
    );
}

fn sorted_not(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter_map(|line| line.split('\t').nth(1)).map(str::to_owned).collect()
}

/// An operand inside another one counts where the first of the two is.
#[test]
fn hard_links_count_for_the_first_operand() {
    let tree = known_tree();
    let pdu = Path::new(env!("CARGO_BIN_EXE_pdu"));
    for (arguments, expected) in [
        ("-s --inodes a b", vec!["9 a", "1 b"]),
        ("-s --inodes b a", vec!["2 b", "8 a"]),
        ("-s --inodes a b a/sub", vec!["9 a", "1 b"]),
        ("-s --inodes a/sub b a", vec!["5 a/sub", "1 b", "4 a"]),
    ] {
        let output = run(pdu, tree.path(), &words(arguments), &[]);
        let lines: Vec<_> =
            String::from_utf8_lossy(&output.stdout).lines().map(|line| line.replace('\t', " ")).collect();
        assert_eq!(lines, expected, "{arguments}");
    }
}

#[test]
fn rapidfile_calls_work() {
    let tree = known_tree();
    let pdu = Path::new(env!("CARGO_BIN_EXE_pdu"));
    let gnu = |arguments| run(Path::new("du"), tree.path(), &words(arguments), &[]).stdout;
    let ours = run(pdu, tree.path(), &words("-0 -a -s a"), &[]);
    assert_eq!((ours.stdout, ours.status.code()), (gnu("-0 -s a"), Some(0)));
    let ours = run(pdu, tree.path(), &words("-hs a"), &[]);
    assert_eq!(ours.stdout, gnu("-hs a"));
}

#[test]
fn records_say_what_lines_say() {
    let mut random = Random::from_environment();
    let tree = tempfile::tempdir().expect("a directory");
    grow(tree.path(), &mut random, Links::Anywhere);
    let pdu = Path::new(env!("CARGO_BIN_EXE_pdu"));
    let records = run(pdu, tree.path(), &words("-a --json ."), &[]).stdout;
    let lines = run(pdu, tree.path(), &words("-a -0 -B512 ."), &[]).stdout;
    let from_records: Vec<_> = records
        .split(|&b| b == b'\n')
        .filter(|record| !record.is_empty())
        .map(|record| {
            let text = String::from_utf8_lossy(record);
            let blocks = text.split("\"blocks\":").nth(1).and_then(|t| t.split(',').next()).expect("blocks");
            let at = record.windows(7).position(|w| w == b"\"path\":").expect("a path") + 7;
            let (path, rest) = read_string(&record[at..]).expect("a string");
            assert_eq!(rest, b"}");
            [blocks.as_bytes(), b"\t", &path].concat()
        })
        .collect();
    let from_lines: Vec<_> = lines.split(|&b| b == 0).filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect();
    assert_eq!(from_records, from_lines);
}

#[test]
fn missing_operand_is_a_record_and_a_message() {
    let tree = known_tree();
    let output = run(Path::new(env!("CARGO_BIN_EXE_pdu")), tree.path(), &words("--json missing"), &[]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"error\":\"No such file or directory\",\"errno\":2,\"operation\":\"stat\",\"path\":\"missing\"}\n"
    );
    assert_eq!(output.stderr, b"pdu: cannot access 'missing': No such file or directory\n");
    assert_eq!(output.status.code(), Some(1));
}

/// Entries come and go while they are measured: some may be missed, none may stop the rest from being measured.
#[test]
fn vanishing_entries_are_reported_at_most() {
    let tree = tempfile::tempdir().expect("a directory");
    for directory in 0..20 {
        fs::create_dir(tree.path().join(format!("d{directory}"))).expect("a directory");
    }
    fs::write(tree.path().join("kept"), "x").expect("a file");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0usize;
            while !over.load(Ordering::Relaxed) {
                let inner = tree.path().join(format!("d{}/inner", round % 20));
                // They may be there from the round before.
                let _ = fs::create_dir(&inner).and_then(|()| fs::write(inner.join("file"), "x"));
                let _ = fs::remove_dir_all(tree.path().join(format!("d{}/inner", (round + 7) % 20)));
                round += 1;
            }
        });
        for _ in 0..40 {
            let output = run(Path::new(env!("CARGO_BIN_EXE_pdu")), tree.path(), &words("-a ."), &[]);
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(messages.lines().all(|m| m.ends_with(": No such file or directory")), "{messages}");
            assert_eq!(output.status.code(), Some(i32::from(!messages.is_empty())));
            let lines = sorted_not(&output.stdout);
            assert!(
                lines.contains(&"./kept".to_owned()) && lines.last().is_some_and(|l| l == "."),
                "{lines:?}"
            );
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// Standard input is read through its descriptor: who opened it may be another user.
#[test]
fn patterns_come_from_a_pipe_that_another_user_opened() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user");
    let (tree, bin) = (known_tree(), as_du());
    for directory in [&tree, &bin] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    fs::remove_file(bin.path().join("du")).expect("removed");
    copy_program(env!("CARGO_BIN_EXE_pdu"), &bin.path().join("du"));
    let script = "printf 'sub\n' | setpriv --reuid 65534 --clear-groups \"$0\" -a -X - a";
    let outcome = |du: &Path| {
        let output = run(
            Path::new("sh"),
            tree.path(),
            &["-c", script].map(OsStr::new).into_iter().chain([du.as_os_str()]).collect::<Vec<_>>(),
            &[],
        );
        (sorted(&output.stdout, b'\n'), sorted(&output.stderr, b'\n'), output.status.code())
    };
    assert_eq!(outcome(&bin.path().join("du")), outcome(Path::new("du")));
}

#[test]
fn unreadable_directories_are_reported_as_gnus() {
    let (tree, bin) = (known_tree(), as_du());
    let mode = |name: &str, mode| {
        fs::set_permissions(tree.path().join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    mode("", 0o755);
    mode("a/sub/deep", 0);
    mode("b", 0o444);
    fs::set_permissions(bin.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    // The binary may be below a directory that only root can enter.
    fs::remove_file(bin.path().join("du")).expect("removed");
    copy_program(env!("CARGO_BIN_EXE_pdu"), &bin.path().join("du"));
    let ours = bin.path().join("du");
    for options in ["", "-a", "-s", "-c"] {
        let as_nobody = |program: &Path| {
            let mut arguments: Vec<&OsStr> = words("--reuid 65534 --clear-groups");
            arguments.push(program.as_os_str());
            arguments.extend(words(options));
            arguments.extend(words("a b"));
            run(Path::new("setpriv"), tree.path(), &arguments, &[])
        };
        let (ours, theirs) = (as_nobody(&ours), as_nobody(Path::new("du")));
        assert_eq!(sorted(&ours.stdout, b'\n'), sorted(&theirs.stdout, b'\n'), "{options}");
        assert_eq!(sorted(&ours.stderr, b'\n'), sorted(&theirs.stderr, b'\n'), "{options}");
        assert!(
            String::from_utf8_lossy(&ours.stderr).contains("cannot read directory 'a/sub/deep'"),
            "{ours:?}"
        );
        assert_eq!(ours.status.code(), theirs.status.code());
    }
}

#[test]
fn a_full_disk_is_reported_as_gnus() {
    let (tree, bin) = (known_tree(), as_du());
    for program in ["du".into(), bin.path().join("du").into_os_string().into_string().expect("UTF-8")] {
        let script = format!("exec -a du {program} a > /dev/full");
        let arguments = [OsStr::new("-c"), OsStr::new(&script)];
        let output = run(Path::new("bash"), tree.path(), &arguments, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "du: write error\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let tree = known_tree();
    let script = format!("{} -a . . | true; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_pdu"));
    let arguments = [OsStr::new("-c"), OsStr::new(&script)];
    let output = run(Path::new("bash"), tree.path(), &arguments, &[]);
    assert_eq!(output.stderr, b"");
    // Killed by SIGPIPE, unless all was written before the reader went.
    assert!(matches!(&*output.stdout, b"141\n" | b"0\n"), "{output:?}");
}

/// The tree is deeper than any path may be long, and than there are file descriptors.
#[test]
fn a_very_deep_tree_is_measured() {
    let tree = tempfile::tempdir().expect("a directory");
    let chain = |depth: usize| "d/".repeat(depth);
    fs::create_dir_all(tree.path().join(chain(1000))).expect("directories");
    for part in 0..3 {
        // Each time all there is goes to the bottom of a new chain.
        let above = tree.path().join("above");
        fs::create_dir_all(above.join(chain(1000))).expect("directories");
        fs::rename(tree.path().join("d"), above.join(chain(1000)).join("d")).expect("moved");
        fs::rename(above.join("d"), tree.path().join("d")).expect("moved");
        fs::remove_dir(above).unwrap_or_else(|error| panic!("part {part}: {error}"));
    }
    settle(tree.path());
    for arguments in ["-s .", "-d3 .", "--inodes -c ."] {
        compare(tree.path(), &as_du().path().join("du"), &words(arguments), &[]);
    }
    let removed = run(Path::new("rm"), tree.path(), &words("-rf d"), &[]);
    assert!(removed.status.success(), "{removed:?}");
}

#[test]
fn every_option_of_gnus_help_is_known() {
    let options = |text: &[u8]| -> BTreeSet<String> {
        let text = String::from_utf8_lossy(text).into_owned();
        let words = text.lines().filter(|line| line.starts_with("  ")).flat_map(|line| {
            let spellings = line.trim_start().split("  ").next().unwrap_or("").split(", ");
            spellings
                .filter(|s| s.starts_with('-'))
                .map(|s| s.split(['=', '[']).next().unwrap_or(s).to_owned())
        });
        words.map(|word| word.split(' ').next().unwrap_or("").to_owned()).collect()
    };
    let ours =
        options(&run(Path::new(env!("CARGO_BIN_EXE_pdu")), Path::new("/"), &words("--help"), &[]).stdout);
    let theirs = options(&run(Path::new("du"), Path::new("/"), &words("--help"), &[]).stdout);
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(theirs.len() > 40 && missing.is_empty(), "{missing:?}");
}

/// Names in messages are quoted as GNU's tool quotes them, whatever bytes they are made of.
#[test]
fn odd_names_are_quoted_as_gnus() {
    let (tree, bin) = (known_tree(), as_du());
    let names: [&[u8]; 8] =
        [b"a\nb", b"a'b", b"\xff", b"sp c", b"\"'x", "é".as_bytes(), b"\xc2\x85", b"tab\t"];
    for name in names {
        let name = OsString::from_vec(name.to_vec());
        compare(tree.path(), &bin.path().join("du"), &[&name], &[]);
        let option = OsString::from_vec([b"--time-style=", name.as_bytes()].concat());
        compare(tree.path(), &bin.path().join("du"), &[&option, OsStr::new("--time")], &[]);
    }
}
