//! `pchmod` and `pchown` against GNU `chmod`, `chown` and `chgrp`: the same output (the order of lines aside), messages
//! and exit code, and afterwards the same modes and owners, as root and as somebody else.
//!
//! Both tools change a copy of the same tree. What only root may do is tested where the tests run as root.

mod swapped;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::programs::copy_program;
use crate::random::Random;
use crate::trees::{Links, grow};
use tempfile::TempDir;

const NOBODY: u32 = 65534;

/// Who runs the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Root,
    Nobody,
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("stat").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("mode");
}

/// Our tools under GNU's names, where anybody may run them.
struct Bed {
    bin: TempDir,
}

impl Bed {
    fn new() -> Self {
        let bin = tempfile::tempdir().expect("a directory");
        set_mode(bin.path(), 0o755);
        for (name, tool) in [
            ("chmod", env!("CARGO_BIN_EXE_pchmod")),
            ("chown", env!("CARGO_BIN_EXE_pchown")),
            ("chgrp", env!("CARGO_BIN_EXE_pchown")),
        ] {
            // A copy, since who is not root may have no way to the original.
            copy_program(tool, &bin.path().join(name));
        }
        Bed { bin }
    }

    fn ours(&self, tool: &str) -> PathBuf {
        self.bin.path().join(tool)
    }

    /// Runs both tools, each in its copy of the tree, and compares what they say and what they leave behind.
    fn compare(&self, pair: &Pair, case: &Case) {
        let theirs = run(Path::new(case.tool), &pair.theirs(), case);
        let ours = run(&self.ours(case.tool), &pair.ours(), case);
        assert_eq!(lines(&ours.stderr), lines(&theirs.stderr), "messages of {case:?}");
        if case.output == Compared::Lines {
            assert_eq!(lines(&ours.stdout), lines(&theirs.stdout), "output of {case:?}");
        }
        assert_eq!(ours.status.code(), theirs.status.code(), "{case:?}");
        let (ours, theirs) = (state(&pair.ours()), state(&pair.theirs()));
        for (path, found) in &ours {
            assert_eq!(Some(found), theirs.get(path), "{} after {case:?}", path.display());
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

/// Whether the lines of the output are compared; which of several paths of a file is told first depends on the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Lines,
    Nothing,
}

#[derive(Clone, Debug)]
struct Case {
    tool: &'static str,
    user: User,
    umask: u32,
    locale: &'static str,
    posixly_correct: bool,
    output: Compared,
    arguments: Vec<OsString>,
}

impl Case {
    fn new(tool: &'static str, user: User, arguments: Vec<OsString>) -> Self {
        let output = Compared::Lines;
        Case { tool, user, umask: 0o022, locale: "C.UTF-8", posixly_correct: false, output, arguments }
    }

    fn of_line(tool: &'static str, user: User, line: &str) -> Self {
        Self::new(tool, user, words(line))
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| if word == "''" { "".into() } else { word.replace('~', " ").into() })
        .collect()
}

fn run(program: &Path, directory: &Path, case: &Case) -> Output {
    let script = format!("umask {:o}; exec \"$0\" \"$@\"", case.umask);
    let mut command = match case.user {
        User::Root => Command::new("sh"),
        User::Nobody => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh"]);
            command
        }
    };
    command.arg("-c").arg(script).arg(program).args(&case.arguments);
    command.env("LC_ALL", case.locale).env_remove("POSIXLY_CORRECT").current_dir(directory);
    if case.posixly_correct {
        command.env("POSIXLY_CORRECT", "1");
    }
    command.output().expect("it runs")
}

fn lines(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = text.split(|&b| b == b'\n').map(|line| line.escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// Mode, owner and group of everything.
fn state(root: &Path) -> BTreeMap<PathBuf, (u32, u32, u32)> {
    let mut all = BTreeMap::new();
    let mut rest = vec![PathBuf::new()];
    while let Some(path) = rest.pop() {
        let at = root.join(&path);
        let metadata = fs::symlink_metadata(&at).expect("stat");
        if metadata.is_dir() {
            let entries = fs::read_dir(&at).expect("readable");
            rest.extend(entries.map(|entry| path.join(entry.expect("an entry").file_name())));
        }
        all.insert(path, (metadata.mode(), metadata.uid(), metadata.gid()));
    }
    all
}

/// Two copies of a tree.
struct Pair {
    scratch: TempDir,
}

impl Pair {
    fn new(make: impl FnOnce(&Path)) -> Self {
        let pair = Pair { scratch: tempfile::tempdir().expect("a directory") };
        set_mode(pair.scratch.path(), 0o755);
        fs::create_dir(pair.ours()).expect("a directory");
        make(&pair.ours());
        let copied = Command::new("cp").arg("-a").arg(pair.ours()).arg(pair.theirs()).status();
        assert!(copied.expect("cp runs").success());
        pair
    }

    fn ours(&self) -> PathBuf {
        self.scratch.path().join("ours")
    }

    fn theirs(&self) -> PathBuf {
        self.scratch.path().join("theirs")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // What is closed could not be removed by others than root.
        let opened = Command::new("chmod").arg("-R").arg("u+rwx").arg(self.scratch.path()).output();
        assert!(opened.is_ok() || thread::panicking());
    }
}

/// A small tree whose every corner is known.
fn known_tree(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("d/s")).expect("directories");
    fs::create_dir(at("e")).expect("a directory");
    for (file, mode) in [("f", 0o644), ("d/f", 0o600), ("d/s/g", 0o4755), ("e/h", 0o640), ("it's", 0o666)] {
        fs::write(at(file), file).expect("a file");
        set_mode(&at(file), mode);
    }
    set_mode(&at("e"), 0o2775);
    for (link, target) in [
        ("l", "f"),
        ("ld", "d"),
        ("dang", "nowhere"),
        ("loop", "loop"),
        ("d/l", "../f"),
        ("d/dang", "nowhere"),
        ("d/le", "../e"),
        ("root", "/"),
    ] {
        symlink(target, at(link)).expect("a link");
    }
}

fn compare_lines(tool: &'static str, user: User, text: &[&str]) {
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    for line in text {
        bed.compare(&pair, &Case::of_line(tool, user, line));
        for locale in ["C", "C.UTF-8"] {
            let posixly = Case { locale, posixly_correct: true, ..Case::of_line(tool, user, line) };
            bed.compare(&pair, &posixly);
        }
    }
}

fn compare_file(tool: &'static str, text: &'static str) {
    compare_lines(tool, User::Root, &text.lines().collect::<Vec<_>>());
}

/// A line of these files is a command's arguments; `''` is an empty one, `~` a space in one.
#[test]
fn chmods_options_and_messages_are_gnus() {
    let mut lines: Vec<_> = include_str!("attributes/chmod.txt").lines().collect();
    for option in "rwxXstugoa,+=0123456789bdelmnpqyz".chars() {
        let line = format!("-v -{option} f");
        lines.push(Box::leak(line.into_boxed_str()));
    }
    compare_lines("chmod", User::Root, &lines);
}

#[test]
fn chowns_options_and_messages_are_gnus() {
    compare_file("chown", include_str!("attributes/chown.txt"));
    assert!(is_root(), "this test gives files away");
    compare_file("chown", include_str!("attributes/chown-as-root.txt"));
    // The owner that GNU's tool reports for a dangling link is whatever was in its memory. Of several paths of a file
    // it reports the first one that it finds as changed.
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    for line in [
        "-v 1 dang d/dang loop",
        "-Rv -H 5 ld",
        "-RHv 1 dang",
        "-RLv 1 dang",
        "-RLv 5 ld",
        "-RLv 5 d",
        "-R -h -L -v 2 ld",
        "-RHv 3 d ld",
        "-RLv --dereference 6 ld",
    ] {
        let case = Case { output: Compared::Nothing, ..Case::of_line("chown", User::Root, line) };
        bed.compare(&pair, &case);
    }
}

#[test]
fn chgrps_options_and_messages_are_gnus() {
    compare_file("chgrp", include_str!("attributes/chgrp.txt"));
    assert!(is_root(), "this test gives files away");
    compare_file("chgrp", include_str!("attributes/chgrp-as-root.txt"));
}

/// Refused changes are reported as by GNU's tools.
#[test]
fn failures_of_others_than_root_are_gnus() {
    assert!(is_root(), "this test gives files away");
    let make = |root: &Path| {
        known_tree(root);
        for own in ["own", "own/s", "own/closed", "own/blind"] {
            fs::create_dir(root.join(own)).expect("a directory");
            fs::write(root.join(own).join("g"), "").expect("a file");
            symlink("g", root.join(own).join("lg")).expect("a link");
            fs::create_dir(root.join(own).join("t")).expect("a directory");
        }
        for path in state(&root.join("own")).into_keys() {
            lchown(root.join("own").join(path), Some(NOBODY), Some(NOBODY)).expect("chown");
        }
        lchown(root.join("own/g"), Some(NOBODY), Some(0)).expect("chown");
        set_mode(&root.join("own/closed"), 0o300);
        set_mode(&root.join("own/blind"), 0o600);
        set_mode(&root.join("e"), 0o700);
    };
    let bed = Bed::new();
    let pair = Pair::new(make);
    for (tool, lines) in [
        (
            "chmod",
            &[
                "-v 700 e d/f",
                "-c 700 e d/f",
                "-f 700 d/f",
                "-vR 700 d",
                "-vR 640 d/f e",
                "-v 644 f",
                "-v g+s own/g",
                "-c g+s own/g",
                "-v 2755 own/g",
                "-v 7755 own/g",
                "-Rv go-w own",
                "-R g+w own",
                "-fRv g-w own",
                "-Rv g+w own/closed own/blind",
                "-R u+w,o=r own",
                "-v 700 e/h",
                "-Rc 700 own",
                "-cR u=rwx,g+x .",
                "-v u+t own own/g",
                "-vR g+s own",
            ][..],
        ),
        (
            "chown",
            &[
                "-v bin f",
                "-v :bin f",
                "bin:bin f",
                "root f",
                "-v root f",
                ": f",
                "'' f",
                "-v :1 f",
                "-v 65534 own/g",
                "-Rv 65534 own",
                "-Rv :65534 own",
                "-v 65534:65534 own/g",
                "-Rv :65534 own d",
                "-RL :65534 own",
                "-v root own/g",
                "-Rc :65534 .",
                "-Rvf :65534 .",
            ],
        ),
        (
            "chgrp",
            &[
                "-v bin f",
                "-f bin f",
                "-c bin f",
                "root f",
                "-v 65534 own/g",
                "-Rv 65534 own",
                "-R 65534 own",
                "-R 4 own",
                "-c -R 4 own",
                "-R -H 4 own",
                "4 own/blind/g",
                "-fvR 65534 own",
                "-Rv 65534 own/closed",
                "-Rh 4 .",
                "-RL 4 own",
            ],
        ),
    ] {
        for line in lines {
            bed.compare(&pair, &Case::of_line(tool, User::Nobody, line));
        }
    }
    // Such a directory is closed last, so that the walk gets through: chmod's own does not.
    set_mode(&pair.ours().join("own/blind"), 0o755);
    set_mode(&pair.ours().join("own/closed"), 0o755);
    for (line, files, directories) in
        [("-R 0 own", 0, 0), ("-R u=rwX own", 0o600, 0o700), ("-R 600 own", 0o600, 0o600)]
    {
        let output = run(&bed.ours("chmod"), &pair.ours(), &Case::of_line("chmod", User::Nobody, line));
        assert_eq!((output.status.code(), lines(&output.stderr)), (Some(0), vec![String::new()]), "{line}");
        for (path, (mode, ..)) in state(&pair.ours().join("own")) {
            let expected = match mode & 0o170_000 {
                0o040_000 => directories,
                0o100_000 => files,
                _ => continue,
            };
            assert_eq!(mode & 0o700, expected & 0o700, "{} after {line}", path.display());
        }
    }
}

fn random_clause(random: &mut Random) -> String {
    let pick = |random: &mut Random, from: &str, most: usize| -> String {
        let letters: Vec<char> = from.chars().collect();
        (0..random.below(most + 1)).map(|_| letters[random.below(letters.len())]).collect()
    };
    let mut clause = pick(random, "ugoa", 2);
    for _ in 0..1 + random.below(2) {
        clause.push(['+', '-', '='][random.below(3)]);
        clause += &match random.below(8) {
            0 => pick(random, "01234567", 4),
            1 => pick(random, "ugo", 1),
            _ => pick(random, "rwxXst", 3),
        };
    }
    clause
}

fn random_mode(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("{:o}", random.below(0o10000)),
        1 => format!("{:05o}", random.below(0o10000)),
        2 => format!("{:03o}", random.below(0o1000)),
        3 => random_clause(random),
        _ => [random_clause(random), random_clause(random)].join(","),
    }
}

#[test]
fn random_modes_are_gnus() {
    let mut random = Random::from_environment();
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    for _ in 0..250 {
        for path in ["f", "e", "d/f"] {
            let mode = random.below(0o10000) as u32;
            [pair.ours(), pair.theirs()].iter().for_each(|root| set_mode(&root.join(path), mode));
        }
        let mode = random_mode(&mut random);
        // As an option a mode may surprise.
        let separator = if random.below(2) == 0 { "--" } else { "-v" };
        let arguments = ["-v", separator, &mode, "f", "e"].map(OsString::from).to_vec();
        let umask = [0, 0o022, 0o027, 0o077, 0o777, random.below(0o1000) as u32][random.below(6)];
        bed.compare(&pair, &Case { umask, ..Case::new("chmod", User::Root, arguments) });
    }
}

/// A random tree with links that lead somewhere, and random modes and owners.
fn random_tree(root: &Path, random: &mut Random, user: User) -> Vec<PathBuf> {
    let directories = grow(root, random, Links::None);
    for (serial, directory) in directories.iter().enumerate().take(6) {
        let up = "../".repeat(directory.iter().filter(|part| *part != ".").count());
        let target = Path::new(&up).join(&directories[random.below(directories.len())]);
        symlink(target, root.join(directory).join(format!("link {serial}"))).expect("a link");
    }
    for (path, (mode, ..)) in state(root) {
        let at = root.join(path);
        let modes: &[u32] = &[0o644, 0o755, 0o600, 0o700, 0o777, 0o2755, 0o4711, 0o1777, 0o440, 0];
        if is_root() {
            let owner = if random.below(3) == 0 { random.below(4) as u32 } else { NOBODY };
            lchown(&at, Some(owner), Some([0, 1, NOBODY][random.below(3)])).expect("chown");
        }
        let kind = mode & 0o170_000;
        // Without root's powers, a tree that is mostly open.
        let is_open = user == User::Nobody && kind == 0o040_000 && random.below(12) > 0;
        if kind != 0o120_000 {
            set_mode(&at, if is_open { 0o755 } else { modes[random.below(modes.len())] });
        }
    }
    directories
}

fn random_operands(random: &mut Random, directories: &[PathBuf]) -> Vec<OsString> {
    match random.below(3) {
        0 => vec![".".into()],
        1 => vec![directories[random.below(directories.len())].clone().into()],
        // No two of these can be in one another.
        _ => {
            let mut tops: Vec<OsString> =
                directories.iter().filter_map(|path| Some(path.iter().nth(1)?.to_owned())).collect();
            tops.sort();
            tops.dedup();
            tops
        }
    }
}

fn some_of(random: &mut Random, options: &[&str]) -> Vec<OsString> {
    options.iter().filter(|_| random.below(3) == 0).map(OsString::from).collect()
}

fn users() -> &'static [User] {
    if is_root() { &[User::Root, User::Nobody] } else { &[User::Root] }
}

#[test]
fn random_trees_get_the_modes_that_gnus_gives() {
    let mut random = Random::from_environment();
    let bed = Bed::new();
    for round in 0..16 {
        let user = users()[round % users().len()];
        let mut directories = Vec::new();
        let pair = Pair::new(|root| directories = random_tree(root, &mut random, user));
        for _ in 0..4 {
            // A mode that closes directories stops GNU's tool, while ours continues.
            let open = [
                "755", "u+rwX", "g+s", "go-rwx", "a+rX", "700", "g=u", "+w", "u+s,g-s", "-2000", "a+t",
                "2770",
            ];
            let mode = match user {
                User::Nobody => open[random.below(open.len())].to_owned(),
                User::Root => random_mode(&mut random),
            };
            let mut arguments = some_of(&mut random, &["-v", "-c", "-f", "-R", "--preserve-root", "-R"]);
            arguments.extend([OsString::from("--"), mode.into()]);
            arguments.extend(random_operands(&mut random, &directories));
            bed.compare(&pair, &Case::new("chmod", user, arguments));
        }
    }
}

#[test]
fn random_trees_get_the_owners_that_gnus_gives() {
    assert!(is_root(), "this test gives files away");
    let mut random = Random::from_environment();
    let bed = Bed::new();
    for round in 0..16 {
        let user = users()[round % users().len()];
        let mut directories = Vec::new();
        let pair = Pair::new(|root| directories = random_tree(root, &mut random, user));
        for _ in 0..4 {
            let tool = ["chown", "chgrp"][random.below(2)];
            let mut arguments = some_of(&mut random, &["-v", "-c", "-f", "-R", "-h", "-H", "-P", "-R"]);
            let spec = match tool {
                "chown" => {
                    if random.below(3) == 0 {
                        arguments.push(["--from=1", "--from=:0", "--from=nobody:1"][random.below(3)].into());
                    }
                    ["1", "2:3", ":bin", ":65534", "nobody:", "nobody", "0:0", ""][random.below(8)]
                }
                _ => ["1", "bin", "65534", "0"][random.below(4)],
            };
            arguments.push(spec.into());
            arguments.extend(random_operands(&mut random, &directories));
            // Where links are dereferenced several paths lead to one file.
            let is_followed = arguments.iter().any(|a| a == "-H");
            let output = if is_followed { Compared::Nothing } else { Compared::Lines };
            bed.compare(&pair, &Case { output, ..Case::new(tool, user, arguments) });
        }
    }
}

/// Of several links of a file, and of overlapping operands, one is reported as changed. A mode that means something
/// else the second time is applied as often as GNU's tool applies it.
#[test]
fn what_is_reached_twice_changes_once() {
    let bed = Bed::new();
    let pair = Pair::new(|root| {
        for directory in 0..20 {
            fs::create_dir(root.join(format!("d{directory}"))).expect("a directory");
        }
        for file in 0..50 {
            fs::write(root.join(format!("d0/{file}")), "").expect("a file");
            for directory in 1..20 {
                let link = root.join(format!("d{directory}/{file}"));
                fs::hard_link(root.join(format!("d0/{file}")), link).expect("a link");
            }
        }
    });
    for (arguments, changed) in [
        ("-Rc 600 .", 71),
        ("-Rc 751 . d1 ./d2", 71),
        ("-Rc u=g,g=o,o=u .", 1021),
        ("-c 640 d3/1 d4/1 d5/1", 1),
    ] {
        let arguments = [&words("--threads=16"), &words(arguments)[..]].concat();
        let ours = run(&bed.ours("chmod"), &pair.ours(), &Case::new("chmod", User::Root, arguments.clone()));
        let theirs =
            run(Path::new("chmod"), &pair.theirs(), &Case::new("chmod", User::Root, arguments[1..].to_vec()));
        let count = |output: &Output| output.stdout.iter().filter(|&&b| b == b'\n').count();
        assert_eq!((count(&ours), count(&theirs)), (changed, changed), "{arguments:?}");
        assert_eq!(state(&pair.ours()), state(&pair.theirs()), "{arguments:?}");
    }
}

/// In trees nothing is set that is set already, unless the call would do more than that.
#[test]
fn no_change_is_no_call() {
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    let root = pair.ours();
    let changed_at = |name: &str| {
        let metadata = fs::symlink_metadata(root.join(name)).expect("stat");
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let run = |tool: &'static str, line: &str| {
        let output = run(&bed.ours(tool), &root, &Case::of_line(tool, User::Root, line));
        assert!(output.status.success(), "{line} {output:?}");
    };
    let before = ["f", "d", "e"].map(changed_at);
    run("chmod", "-Rv 644 f");
    run("chmod", "-R u+r d e");
    let own = fs::metadata(&root).expect("stat");
    let spec = format!("{}:{}", own.uid(), own.gid());
    run("chown", &format!("-R {spec} f d e"));
    assert_eq!(["f", "d", "e"].map(changed_at), before);
    run("chmod", "644 f");
    assert_ne!(changed_at("f"), before[0], "without -R a file gets a new time of change");
    run("chown", &format!("-R {spec} d/s"));
    assert_eq!(mode_of(&root.join("d/s/g")), 0o755, "the call takes the set-user-ID bit away");
}

#[test]
fn a_trial_run_changes_nothing_and_tells_all() {
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    let before = state(&pair.ours());
    let trial =
        run(&bed.ours("chmod"), &pair.ours(), &Case::of_line("chmod", User::Root, "--dry-run -R 700 d e f"));
    assert_eq!(state(&pair.ours()), before);
    let real = run(&bed.ours("chmod"), &pair.ours(), &Case::of_line("chmod", User::Root, "-Rc 700 d e f"));
    assert!(state(&pair.ours()) != before && !real.stdout.is_empty());
    let told: Vec<_> =
        lines(&trial.stdout).iter().map(|line| line.replace("would change", "changed")).collect();
    assert_eq!(told, lines(&real.stdout));
}

#[test]
fn records_tell_of_changes_and_errors() {
    let bed = Bed::new();
    let pair = Pair::new(known_tree);
    let records = |tool: &'static str, line: &str| {
        lines(&run(&bed.ours(tool), &pair.ours(), &Case::of_line(tool, User::Root, line)).stdout)[1..]
            .to_vec()
    };
    assert_eq!(
        records("chmod", "--json 600 f d/f nope"),
        [
            r#"{"action":"change mode","mode_before":644,"mode":600,"path":"f"}"#,
            r#"{"error":"No such file or directory","errno":2,"operation":"stat","path":"nope"}"#,
        ]
        .map(|record| record.replace('"', "\\\""))
    );
    assert_eq!(
        records("chmod", "--json -v -x d/l d/f")[..1],
        [r#"{"action":"retain","mode_before":600,"mode":600,"path":"d/f"}"#]
            .map(|record| record.replace('"', "\\\""))
    );
    if is_root() {
        assert_eq!(
            records("chown", "--json 4294967294:daemon f"),
            [concat!(
                r#"{"action":"change owner","uid_before":"root","uid":4294967294,"#,
                r#""gid_before":"root","gid":"daemon","path":"f"}"#
            )]
            .map(|record| record.replace('"', "\\\""))
        );
    }
}

/// The tree is deeper than any path may be long, and than there are file descriptors.
#[test]
fn a_very_deep_tree_is_changed() {
    const LEVELS: usize = 2500;
    let bed = Bed::new();
    let scratch = tempfile::tempdir().expect("a directory");
    let mut here = fs::File::open(scratch.path()).expect("opens");
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(&here, "d", 0o755.into()).expect("a directory");
        let flags = rustix::fs::OFlags::DIRECTORY;
        here = rustix::fs::openat(&here, "d", flags, rustix::fs::Mode::empty()).expect("opens").into();
    }
    let own = fs::metadata(scratch.path()).expect("stat");
    let (uid, gid) = if is_root() { (1, 2) } else { (own.uid(), own.gid()) };
    let changed = |tool: &str, line: &str| {
        let script = format!("ulimit -n 60; exec {} {line}", bed.ours(tool).display());
        let mut sh = Command::new("sh");
        let output = sh.arg("-c").arg(script).current_dir(scratch.path()).output().expect("it runs");
        assert_eq!((output.status.code(), lines(&output.stderr)), (Some(0), vec![String::new()]), "{line}");
        output.stdout.iter().filter(|&&b| b == b'\n').count()
    };
    assert_eq!(changed("chown", &format!("-R {uid}:{gid} d")), 0);
    assert_eq!(changed("chmod", "-R 0 d"), 0);
    assert_eq!(changed("chmod", "-Rc 700 d"), LEVELS);
    let deepest = here.metadata().expect("stat");
    assert_eq!((deepest.mode(), deepest.uid(), deepest.gid()), (0o40700, uid, gid));
    let removed = Command::new("rm").arg("-rf").arg(scratch.path().join("d")).status().expect("rm runs");
    assert!(removed.success());
}

/// Who is not root cannot change what is in a directory that has been closed: it is closed after the operands before
/// it.
#[test]
fn operands_change_in_their_order_if_one_contains_another() {
    assert!(is_root(), "this test gives files away");
    let bed = Bed::new();
    let files: Vec<String> = (0..3000).map(|i| format!("d/{i}")).collect();
    let pair = Pair::new(|root| {
        fs::create_dir(root.join("d")).expect("a directory");
        files.iter().for_each(|file| fs::write(root.join(file), "").expect("a file"));
        for path in files.iter().map(String::as_str).chain(["d"]) {
            lchown(root.join(path), Some(NOBODY), Some(NOBODY)).expect("chown");
        }
    });
    let closing = [words("a-rwx"), files.iter().map(OsString::from).collect(), words("d")].concat();
    let opening = [words("u+rwx d"), files.iter().map(OsString::from).collect()].concat();
    for arguments in [closing, opening] {
        bed.compare(&pair, &Case::new("chmod", User::Nobody, arguments));
        let modes = state(&pair.ours());
        assert!(files.iter().all(|file| modes[Path::new(file)].0 & 0o777 == modes[Path::new("d")].0 & 0o700));
    }
}

#[test]
fn every_option_of_gnus_help_is_known() {
    let options = |program: &Path| -> Vec<String> {
        let help = Command::new(program).arg("--help").env("LC_ALL", "C").output().expect("it runs").stdout;
        let text = String::from_utf8_lossy(&help).into_owned();
        let labels =
            text.lines().filter(|line| line.starts_with("  ")).map(|line| line.trim_start().to_owned());
        let words = labels.flat_map(|line| {
            let label = line.split("  ").next().unwrap_or("").to_owned();
            label.split(", ").map(|word| word.split('=').next().unwrap_or("").to_owned()).collect::<Vec<_>>()
        });
        words.filter(|word| word.starts_with('-')).collect()
    };
    let bed = Bed::new();
    for (tool, least) in [("chmod", 12), ("chown", 18), ("chgrp", 17)] {
        let (theirs, ours) = (options(Path::new(tool)), options(&bed.ours(tool)));
        let missing: Vec<_> = theirs.iter().filter(|option| !ours.contains(option)).collect();
        assert!(theirs.len() >= least && missing.is_empty(), "{tool}: {missing:?} of {theirs:?}");
    }
}

/// Names in lines and messages are quoted as GNU's tools quote them.
#[test]
fn odd_names_are_quoted_as_gnus() {
    let names: [&[u8]; 7] = [b"a\nb", b"a'b", b"\xff", b"sp c", b"\"'x", "é".as_bytes(), b"tab\t"];
    let bed = Bed::new();
    let pair = Pair::new(|root| {
        names.iter().for_each(|name| fs::write(root.join(OsStr::from_bytes(name)), "").expect("a file"));
    });
    for locale in ["C", "C.UTF-8"] {
        for (mode, tool) in [("600", "chmod"), ("-w", "chmod"), ("a b'c", "chmod"), ("a b'c", "chown")] {
            let mut arguments = vec!["-v".into(), mode.into()];
            arguments.extend(names.iter().map(|name| OsStr::from_bytes(name).to_owned()));
            arguments.push("missing\u{1}".into());
            bed.compare(&pair, &Case { locale, ..Case::new(tool, User::Root, arguments) });
        }
    }
}
