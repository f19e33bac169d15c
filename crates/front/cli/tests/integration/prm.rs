//! `prm` against GNU `rm`, and against itself.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::programs::copy_program;
use crate::races::StopWhenDone;
use crate::random::Random;
use crate::traces;
use crate::trees::{Links, grow};
use millstream_text::json::read_string;
use tempfile::TempDir;

/// Permissions do not stop root, so tests run by root run the tools as this user.
const NOBODY: u32 = 65534;

/// A directory that everybody can use.
fn scratch() -> TempDir {
    let scratch = tempfile::tempdir().expect("a directory");
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).expect("chmod");
    scratch
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory with our tool under GNU's name, where everybody can run it.
fn as_rm() -> (TempDir, PathBuf) {
    let bin = scratch();
    let rm = bin.path().join("rm");
    copy_program(env!("CARGO_BIN_EXE_prm"), &rm);
    (bin, rm)
}

/// GNU's tool under the same path in messages.
fn gnu() -> &'static Path {
    Path::new("rm")
}

/// Runs `program` without privileges, with `input` on standard input.
fn run(program: &Path, directory: &Path, arguments: &[OsString], input: &str) -> Output {
    let mut command = Command::new(program);
    command.current_dir(directory).args(arguments).env("LC_ALL", "C.UTF-8").env_remove("POSIXLY_CORRECT");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn().expect("the program runs");
    // A program that asks nothing may be gone before it is answered.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("output")
}

/// Gives the tree to the user that the tools run as.
fn give_away(root: &Path) {
    if is_root() {
        for path in tree(root) {
            lchown(root.join(path), Some(NOBODY), Some(NOBODY)).expect("chown");
        }
    }
}

/// The paths of everything in `root`, `.` included, read with the privileges of the test.
fn tree(root: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("find").arg(".").arg("-print0").current_dir(root).output().expect("find runs");
    let paths = output.stdout.split(|&b| b == 0).filter(|path| !path.is_empty());
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// A copy of `root`; two copies list their entries in the same order.
fn copy(root: &Path) -> TempDir {
    let copy = scratch();
    let from = root.join(".");
    let done = Command::new("cp").arg("-a").arg(from).arg(copy.path()).status().expect("cp runs");
    assert!(done.success());
    copy
}

/// Makes everything removable for the test itself.
fn unlock(root: &Path) {
    for path in tree(root) {
        let path = root.join(path);
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("chmod");
        }
    }
}

/// Lines, for comparison where the order is free. A question has no line end of its own.
fn sorted(text: &[u8]) -> Vec<String> {
    let text = text.escape_ascii().to_string().replace("? rm: ", "? \\nrm: ");
    let mut lines: Vec<_> = text.split_inclusive("\\n").map(str::to_owned).collect();
    lines.sort();
    lines
}

fn shown(text: &[u8]) -> String {
    text.escape_ascii().to_string()
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Messages {
    InOrder,
    AnyOrder,
}

/// Runs both tools on copies of `root` and compares what they say, their exit codes and what is left.
fn compare(root: &Path, ours: &Path, arguments: &[OsString], input: &str, messages: Messages) {
    let (for_them, for_us) = (copy(root), copy(root));
    let theirs = run(gnu(), for_them.path(), arguments, input);
    let ours = run(ours, for_us.path(), arguments, input);
    let case = format!("{arguments:?} < {}", input.replace('\n', " "));
    if messages == Messages::InOrder {
        assert_eq!(shown(&ours.stderr), shown(&theirs.stderr), "{case}");
    } else {
        assert_eq!(sorted(&ours.stderr), sorted(&theirs.stderr), "{case}");
    }
    assert_eq!(sorted(&ours.stdout), sorted(&theirs.stdout), "{case}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{case}");
    assert_eq!(tree(for_us.path()), tree(for_them.path()), "{case}");
    unlock(for_us.path());
    unlock(for_them.path());
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace()
        .map(
            |word| if word == "''" { "".into() } else { word.replace('~', " ").replace('^', "\u{7}").into() },
        )
        .collect()
}

/// A small tree with everything that `rm` treats in a way of its own.
fn known_tree() -> TempDir {
    let root = scratch();
    let at = |name: &str| root.path().join(name);
    for name in
        ["d/sub", "empty", "full", "locked", "rod", "unreadable", "nest/empty", "nest/full", "prot/in"]
    {
        fs::create_dir_all(at(name)).expect("directories");
    }
    for name in
        ["e", "ro", "d/a", "full/z", "locked/y", "nest/full/z", "prot/in/ro", "prot/x", "-foo", "--bar"]
    {
        fs::write(at(name), "").expect("a file");
    }
    for name in ["f", "d/sub/b", "-f oo", "-f'oo", "-f\u{7}oo", "a b", "new\nline"] {
        fs::write(at(name), "text").expect("a file");
    }
    for (target, name) in [("nowhere", "dang"), ("d", "ld"), ("loop", "loop")] {
        symlink(target, at(name)).expect("a link");
    }
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, at("p"), rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    drop(std::os::unix::net::UnixListener::bind(at("s")).expect("a socket"));
    give_away(root.path());
    for (name, mode) in [
        ("ro", 0o444),
        ("prot/in/ro", 0o444),
        ("full", 0o555),
        ("nest/full", 0o555),
        ("rod", 0o555),
        ("locked", 0),
        ("unreadable", 0),
    ] {
        fs::set_permissions(at(name), Permissions::from_mode(mode)).expect("chmod");
    }
    root
}

/// Every form of every option, right and wrong, with what is answered to prompts after `<` (a letter a line).
#[test]
fn options_prompts_and_messages_are_gnus() {
    let (tree, (_bin, rm)) = (known_tree(), as_rm());
    for line in
        include_str!("prm/cases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (arguments, answers) = line.split_once('<').unwrap_or((line, ""));
        let input: String = answers.trim().chars().flat_map(|answer| [answer, '\n']).collect();
        compare(tree.path(), &rm, &words(arguments), &input, Messages::InOrder);
    }
    unlock(tree.path());
}

#[test]
fn random_trees_and_options() {
    let ((_bin, rm), mut random) = (as_rm(), Random::from_environment());
    for _ in 0..12 {
        let root = scratch();
        let links = [Links::None, Links::Anywhere][random.below(2)];
        let directories = grow(root.path(), &mut random, links);
        give_away(root.path());
        for path in tree(root.path()) {
            let path = root.path().join(path);
            let is_link = fs::symlink_metadata(&path).expect("stat").is_symlink();
            if path != root.path().join(".") && !is_link && random.below(6) == 0 {
                // What cannot be read newer releases treat in another way (newest/cases.txt).
                let modes = if path.is_dir() { [0o555, 0o444, 0o600] } else { [0, 0o444, 0o333] };
                let mode = modes[random.below(3)];
                fs::set_permissions(&path, Permissions::from_mode(mode)).expect("chmod");
            }
        }
        for _ in 0..4 {
            let (arguments, asks) = arguments(&directories, &mut random);
            let input: String = (0..400).map(|_| ["y\n", "n\n", "yes\n", "y\n"][random.below(4)]).collect();
            let messages = if asks { Messages::InOrder } else { Messages::AnyOrder };
            compare(root.path(), &rm, &arguments, &input, messages);
        }
        unlock(root.path());
    }
}

/// Random options and operands, and whether everything is asked about.
fn arguments(directories: &[PathBuf], random: &mut Random) -> (Vec<OsString>, bool) {
    const OPTIONS: [&str; 14] = [
        "-f",
        "-v",
        "-d",
        "-R",
        "-i",
        "-I",
        "--one-file-system",
        "--preserve-root=all",
        "--interactive=never",
        "--interactive=once",
        "--interactive",
        "---presume-input-tty",
        "-rv",
        "-rf",
    ];
    let mut arguments: Vec<OsString> = vec!["-r".into()];
    for _ in 0..random.below(4) {
        arguments.push(OPTIONS[random.below(OPTIONS.len())].into());
    }
    let asks = arguments.iter().rev().find_map(|option| match option.to_str() {
        Some("-i" | "--interactive") => Some(true),
        Some("-f" | "-rf" | "-I") => Some(false),
        Some(option) if option.starts_with("--interactive=") => Some(false),
        _ => None,
    });
    for _ in 0..1 + random.below(4) {
        let mut operand = directories[random.below(directories.len())].clone().into_os_string();
        operand.push(["", "", "", "/", "//", "/.", "/..", "/missing"][random.below(8)]);
        arguments.push(operand);
    }
    (arguments, asks == Some(true))
}

/// So many operands that they are removed together.
#[test]
fn many_operands() {
    let (root, (_bin, rm)) = (scratch(), as_rm());
    let mut operands = vec![OsString::from("-rv"), "missing".into()];
    for i in 0..60 {
        fs::create_dir_all(root.path().join(format!("d{i}/sub"))).expect("directories");
        fs::write(root.path().join(format!("d{i}/sub/f")), "").expect("a file");
        fs::write(root.path().join(format!("f{i}")), "").expect("a file");
        operands.extend([format!("d{i}").into(), format!("f{i}").into()]);
    }
    give_away(root.path());
    for i in 0..20 {
        let mode = Permissions::from_mode([0o555, 0][i % 2]);
        fs::set_permissions(root.path().join(format!("d{}/sub", i * 3)), mode).expect("chmod");
    }
    compare(root.path(), &rm, &operands, "", Messages::AnyOrder);
    operands.extend(["d7/sub".into(), "f9".into()]);
    compare(root.path(), &rm, &operands, "", Messages::AnyOrder);
    unlock(root.path());
}

/// A link goes after what was named through it, and a directory after what was named in it, however many there are.
#[test]
fn operands_that_contain_others_wait_for_them() {
    let (root, (_bin, rm)) = (scratch(), as_rm());
    fs::create_dir(root.path().join("d")).expect("a directory");
    symlink("d", root.path().join("link")).expect("a link");
    let files: Vec<OsString> = (0..3000).map(|i| format!("f{i}").into()).collect();
    for file in &files {
        fs::write(root.path().join("d").join(file), "").expect("a file");
    }
    give_away(root.path());
    let inside =
        |directory: &str| files.iter().map(|file| Path::new(directory).join(file).into()).collect::<Vec<_>>();
    for (option, operands) in [
        ("-f", [inside("link"), words("link")].concat()),
        ("-dv", [inside("d"), words("d")].concat()),
        ("-d", [inside("./d"), words("missing link d")].concat()),
        ("-f", [words("link"), inside("link")].concat()),
        ("-r", [words("link"), inside("d"), words("d d")].concat()),
        ("-rf", [inside("d"), inside("link"), words("d")].concat()),
    ] {
        let arguments = [words(option), operands].concat();
        compare(root.path(), &rm, &arguments, "", Messages::InOrder);
    }
}

/// A terminal as standard input: what is write-protected is asked about, all else is not.
#[test]
fn a_terminal_is_asked() {
    let (tree, (_bin, rm)) = (known_tree(), as_rm());
    for tool in [gnu(), &rm] {
        let copy = copy(tree.path());
        let line = format!("{} -r prot d f; echo code $?", tool.display());
        let script =
            run(Path::new("script"), copy.path(), &["-qec".into(), line.into(), "/dev/null".into()], "y\n");
        let told = String::from_utf8_lossy(&script.stdout);
        assert!(told.contains("rm: remove write-protected regular empty file 'prot/in/ro'? "), "{told}");
        assert!(told.contains("code 0"), "{told}");
        assert!(["prot", "d", "f"].iter().all(|name| !copy.path().join(name).exists()), "{told}");
        unlock(copy.path());
    }
    unlock(tree.path());
}

fn prm(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prm"))
        .current_dir(directory)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .expect("prm runs")
}

#[test]
fn dry_run_tells_and_removes_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(root.path().join("d/e")).expect("directories");
    fs::write(root.path().join("d/f"), "").expect("a file");
    let before = tree(root.path());
    let output = prm(root.path(), &["-ri", "--dry-run", "d", "missing"]);
    assert_eq!(tree(root.path()), before);
    let expected = ["would remove 'd/f'\n", "would remove directory 'd'\n", "would remove directory 'd/e'\n"];
    let expected = sorted(expected.concat().as_bytes());
    assert_eq!(sorted(&output.stdout), expected);
    assert_eq!(output.stderr, b"prm: cannot remove 'missing': No such file or directory\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn records_tell_every_removal_and_error() {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir(root.path().join("d")).expect("a directory");
    fs::write(root.path().join("d").join(OsStr::from_bytes(b"\xff")), "").expect("a file");
    let output = prm(root.path(), &["-r", "--json", "d", "missing", "."]);
    assert_eq!(
        sorted(&output.stdout),
        [
            r#"{"action":"remove","kind":"directory","path":"d"}"#,
            r#"{"action":"remove","kind":"file","path":"d/\udcff"}"#,
            r#"{"error":"Invalid argument","errno":22,"operation":"remove","path":"."}"#,
            r#"{"error":"No such file or directory","errno":2,"operation":"remove","path":"missing"}"#,
        ]
        .map(|line| format!("{line}\n").as_bytes().escape_ascii().to_string())
    );
    let first = output
        .stdout
        .split(|&b| b == b'\n')
        .find(|line| line.starts_with(b"{\"action\":\"remove\",\"kind\":\"file\""));
    let path = first.expect("a record").rsplitn(2, |&b| b == b':').next().expect("a path");
    assert_eq!(read_string(path).expect("a string").0, b"d/\xff");
}

/// A chain so deep that its path is longer than any system call takes, with few descriptors.
#[test]
fn deep_chains_need_few_descriptors() {
    const LEVELS: usize = 6_000;
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let mode = rustix::fs::Mode::RWXU;
    for (option, threads, descriptors) in [("-rI", "1", "64"), ("-r", "8", "8192")] {
        let root = tempfile::tempdir().expect("a directory");
        let mut dir = rustix::fs::open(root.path(), flags, mode).expect("open");
        for _ in 0..LEVELS {
            rustix::fs::mkdirat(&dir, "x", mode).expect("mkdir");
            dir = rustix::fs::openat(&dir, "x", flags, mode).expect("open");
            rustix::fs::openat(&dir, "file", rustix::fs::OFlags::CREATE, mode).expect("create");
        }
        let prm = env!("CARGO_BIN_EXE_prm");
        let line =
            format!("ulimit -n {descriptors} 2>&-; echo y | exec {prm} {option} --threads={threads} x");
        let output =
            Command::new("bash").arg("-c").arg(line).current_dir(root.path()).output().expect("bash runs");
        assert_eq!((shown(&output.stdout), output.status.code()), (String::new(), Some(0)));
        assert!(!root.path().join("x").exists());
    }
}

/// While trees are removed, somebody swaps their directories for links to a tree outside. Nothing outside may go.
#[test]
fn swapped_directories_lead_nowhere() {
    let mut random = Random::from_environment();
    let root = tempfile::tempdir().expect("a directory");
    let outside = root.path().join("outside");
    for name in ["a", "b", "c"] {
        fs::create_dir_all(outside.join(name).join("deep")).expect("directories");
        fs::write(outside.join(name).join("deep/file"), "precious").expect("a file");
        fs::write(outside.join(name).join("file"), "precious").expect("a file");
    }
    let precious = tree(&outside);
    let mut left = 0;
    for round in 0..12 {
        let victim = root.path().join(format!("victim{round}"));
        for i in 0..200 {
            let name = ["a", "b", "c"][i % 3];
            fs::create_dir_all(victim.join(format!("{i}/{name}/deep"))).expect("directories");
            fs::write(victim.join(format!("{i}/{name}/file")), "").expect("a file");
            fs::write(victim.join(format!("{i}/{name}/deep/file")), "").expect("a file");
        }
        let over = AtomicBool::new(false);
        let threads = ["1", "2", "8"][random.below(3)];
        thread::scope(|scope| {
            let (over, victim, outside) = (&over, &victim, &outside);
            scope.spawn(move || {
                let mut i = 0;
                while !over.load(Ordering::Relaxed) {
                    i = (i + 7) % 200;
                    let directory = victim.join(i.to_string());
                    // Any of these may come too late.
                    if fs::rename(&directory, victim.join(format!("moved{i}"))).is_ok() {
                        let _ = symlink(outside, &directory);
                    }
                }
            });
            let _stop = StopWhenDone(over);
            let option = ["-rf", "-rfv", "-r"][random.below(3)];
            prm(root.path(), &[option, "--threads", threads, &format!("victim{round}")]);
        });
        assert_eq!(tree(&outside), precious, "round {round}");
        assert_eq!(fs::read(outside.join("a/deep/file")).expect("readable"), b"precious");
        let here = Path::new(".").join(format!("victim{round}"));
        left += tree(root.path()).iter().filter(|p| p.starts_with(&here) && p.ends_with("deep/file")).count();
    }
    assert!(left < 12 * 200 / 2, "{left} of {} trees were left", 12 * 200);
}

/// Every call that changes anything names one entry of an open directory; only operands are paths.
#[test]
fn below_the_operand_nothing_is_removed_by_path() {
    let root = tempfile::tempdir().expect("a directory");
    for i in 0..40 {
        fs::create_dir_all(root.path().join(format!("top/{i}/below"))).expect("directories");
        fs::write(root.path().join(format!("top/{i}/file")), "").expect("a file");
        fs::write(root.path().join(format!("top/{i}/below/file")), "").expect("a file");
    }
    let trace = root.path().join("trace");
    let done = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=unlink,unlinkat,rmdir,rename,renameat,renameat2,chmod,fchmodat",
            "-o",
        ])
        .arg(&trace)
        .args([env!("CARGO_BIN_EXE_prm"), "-r", "--threads=4", "top"])
        .current_dir(root.path())
        .status()
        .expect("strace runs (testbed/setup test installs it)");
    assert!(done.success() && !root.path().join("top").exists());
    let trace = fs::read_to_string(trace).expect("a trace");
    let calls = traces::calls(&trace);
    for call in &calls {
        let (function, rest) = call.split_once('(').expect("a call");
        let (directory, rest) = rest.split_once(", \"").expect("a directory and a name");
        let (name, _) = rest.split_once('"').expect("a name");
        assert_eq!(function, "unlinkat", "{call}");
        assert!(!name.contains('/'), "{call}");
        assert_eq!(directory == "AT_FDCWD", name == "top", "{call}");
    }
    // The operand is tried as a file first.
    assert_eq!(calls.len(), 40 * 4 + 2, "{calls:?}");
}

/// Memory does not grow with the number of entries: their names alone would not fit in what is allowed.
#[test]
fn flat_directories_take_bounded_memory() {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir(root.path().join("flat")).expect("a directory");
    let flat = fs::File::open(root.path().join("flat")).expect("open");
    for i in 0..150_000 {
        rustix::fs::symlinkat("target", &flat, format!("{i:0>100}")).expect("a link");
    }
    let prm = env!("CARGO_BIN_EXE_prm");
    let line = format!("ulimit -d 12000; export MALLOC_ARENA_MAX=1; exec {prm} -r --threads=2 flat");
    let output =
        Command::new("bash").arg("-c").arg(line).current_dir(root.path()).output().expect("bash runs");
    assert_eq!((shown(&output.stderr), output.status.code()), (String::new(), Some(0)));
    assert!(!root.path().join("flat").exists());
}
