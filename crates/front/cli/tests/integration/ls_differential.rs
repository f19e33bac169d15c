//! `pls`, called `ls`, against the GNU `ls` of this machine: the same output, messages and exit code, byte for byte,
//! for random trees of nasty names and random combinations of options, in several locales, to a pipe and to a terminal.
//!
//! `MILLSTREAM_SEED` repeats a run, `LS_DIFFERENTIAL_ROUNDS` lengthens it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, mknodat};
use tempfile::TempDir;

use crate::random::Random;
use crate::traces;

fn rounds(default: usize) -> usize {
    std::env::var("LS_DIFFERENTIAL_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

const PIECES: &[&str] = &[
    "a", "B", "c", "x1", "x10", "x9", "x01", "foo", "bar", ".", "..x", "-", "_", " ", "  ", "'", "\"", "\\",
    "\n", "\t", "\x01", "\x1b[", "\x7f", "é", "日本", "\u{200b}", "e\u{301}", "’", "~", "#", "$x", "*", "?",
    "=", "{", "}", ":", ",", "&", "|", ".tar.gz", ".TXT", ".txt", ".c", "~~", "%", "@", "!", "[", "]", "^",
    "`", ";", "(",
];

fn name(random: &mut Random) -> Vec<u8> {
    loop {
        let mut name: Vec<u8> = (0..=random.below(3)).flat_map(|_| random.pick(PIECES).bytes()).collect();
        if random.below(10) == 0 {
            name.push(random.pick(&[0xff, 0xc3, 0x80]));
        }
        if name != b"." && name != b".." && is_quoted_alike(&name) {
            return name;
        }
    }
}

/// Whether all releases quote a name or path for a shell alike: what they begin with differs if it has a quote and what
/// must be escaped (docs/pls.md). tests/newest has such.
fn is_quoted_alike(name: &[u8]) -> bool {
    !name.contains(&b'\'') || name.iter().all(|byte| (b' '..=b'~').contains(byte))
}

fn make_tree(root: &Path, random: &mut Random, depth: usize) {
    for _ in 0..random.below(14) {
        let path = root.join(OsStr::from_bytes(&name(random)));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match random.below(12) {
            // -R prints its path.
            0 | 1 if depth > 0 && is_quoted_alike(path.as_os_str().as_bytes()) => {
                fs::create_dir(&path).expect("directory");
                make_tree(&path, random, depth - 1);
                let mode = random.pick(&[0o755, 0o700, 0o777, 0o1777, 0o1755, 0o2755]);
                fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("mode");
            }
            2 => symlink(OsStr::from_bytes(&name(random)), &path).expect("link"),
            3 => symlink(random.pick(&[".", "..", "/etc/passwd", "/nowhere"]), &path).expect("link"),
            4 => mknodat(CWD, &path, FileType::Fifo, 0o644.into(), 0).expect("fifo"),
            5 if path.as_os_str().len() < 100 => drop(UnixListener::bind(&path).expect("socket")),
            _ => make_file(&path, random),
        }
    }
}

fn make_file(path: &Path, random: &mut Random) {
    let file = File::create(path).expect("file");
    file.set_len(random.pick(&[0, 1, 999, 1024, 10_137, 1 << 20, 5 << 30])).expect("length");
    let age = Duration::from_secs(random.pick(&[0, 60, 86_400, 200 * 86_400, 9_000 * 86_400]));
    let fixed = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_800_000_000_123_456_789) - age;
    let recent = SystemTime::now() - Duration::from_secs(3600) - age;
    file.set_modified(if random.below(2) == 0 { fixed } else { recent }).expect("time");
    let mode = random.pick(&[0o644, 0o755, 0o4755, 0o2755, 0o600, 0o7777, 0]);
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("mode");
    if random.below(8) == 0 {
        // Only root may; others keep their own files.
        let _ = std::os::unix::fs::chown(path, Some(random.pick(&[1, 1234, 65_534])), None);
    }
}

const OPTIONS: &[&str] = &[
    "-a",
    "-A",
    "-l",
    "-l",
    "-R",
    "-1",
    "-d",
    "-U",
    "-t",
    "-S",
    "-r",
    "-h",
    "-i",
    "-n",
    "-F",
    "-b",
    "-B",
    "-c",
    "-C",
    "-g",
    "-G",
    "-H",
    "-Ia*",
    "-I*.c",
    "-k",
    "-L",
    "-m",
    "-N",
    "-o",
    "-p",
    "-q",
    "-Q",
    "-s",
    "-T4",
    "-T0",
    "-u",
    "-v",
    "-w30",
    "-w0",
    "-w1",
    "-w133",
    "-x",
    "-X",
    "-Z",
    "--author",
    "--block-size=K",
    "--block-size=1",
    "--block-size='1",
    "--block-size=MB",
    "--block-size=si",
    "--color",
    "--color=always",
    "--color=always",
    "--file-type",
    "--format=across",
    "--format=commas",
    "--full-time",
    "--group-directories-first",
    "--hide=x*",
    "--hyperlink",
    "--indicator-style=slash",
    "--indicator-style=classify",
    "--quoting-style=literal",
    "--quoting-style=locale",
    "--quoting-style=shell",
    "--quoting-style=shell-always",
    "--quoting-style=shell-escape",
    "--quoting-style=shell-escape-always",
    "--quoting-style=c",
    "--quoting-style=c-maybe",
    "--quoting-style=escape",
    "--quoting-style=clocale",
    "--show-control-chars",
    "--si",
    "--sort=width",
    "--sort=none",
    "--sort=version",
    "--time=atime",
    "--time=ctime",
    "--time=birth",
    "--time-style=long-iso",
    "--time-style=iso",
    "--time-style=full-iso",
    "--time-style=+%s|%N|%:z|%Y-%j %p%%",
    "--time-style=posix-iso",
    "--zero",
    "--dereference-command-line-symlink-to-dir",
    "--classify=never",
];

const ENVIRONMENTS: &[(&str, &str)] = &[
    ("LS_COLORS", "di=01;34:or=31:mi=05;32:*.txt=35:*.c=1:ln=36:mh=7:no=0:fi=4"),
    ("LS_COLORS", "ln=target:or=33:ex=32:no=1"),
    ("LS_COLORS", "lc=<:rc=>:ec=!:rs=r:di=d:ow=:tw=0"),
    ("LS_COLORS", "no=3;4:cl=CLR:tw=9"),
    ("TIME_STYLE", "+%d.%m.%Y"),
    ("BLOCK_SIZE", "K"),
    ("LS_BLOCK_SIZE", "human-readable"),
    ("BLOCKSIZE", "512"),
    ("QUOTING_STYLE", "c"),
    ("COLUMNS", "40"),
    ("TABSIZE", "3"),
    ("POSIXLY_CORRECT", "1"),
    ("TZ", "America/St_Johns"),
    ("TZ", "Asia/Kathmandu"),
];

/// Both programs under the name `ls`, and a locale that is not built in.
struct Rivals {
    home: TempDir,
    locales: Vec<&'static str>,
}

const GNU: &str = "gnu";
const OURS: &str = "ours";

impl Rivals {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("scratch directory");
        for (folder, program) in [(GNU, Path::new("/bin/ls")), (OURS, Path::new(env!("CARGO_BIN_EXE_pls")))] {
            let folder = home.path().join(folder);
            fs::create_dir(&folder).expect("directory");
            symlink(program, folder.join("ls")).expect("link");
            fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).expect("mode");
        }
        let mut rivals = Rivals { home, locales: vec!["C", "C.UTF-8"] };
        rivals.add_locale("en_US.UTF-8");
        rivals
    }

    fn add_locale(&mut self, locale: &'static str) {
        let source = locale.trim_end_matches(".UTF-8");
        let made = Command::new("localedef")
            .args(["-i", source, "-f", "UTF-8"])
            .arg(self.home.path().join(locale))
            .stderr(Stdio::null())
            .status();
        match made {
            Ok(status) if status.success() => self.locales.push(locale),
            _ => println!("no localedef, or not its sources: {locale} is not compared"),
        }
    }

    /// `wrapper`, if any, is a command that runs the one after it.
    fn command(&self, whose: &str, wrapper: &[&str], case: &Case, directory: &Path) -> Command {
        let mut path = self.home.path().join(whose).into_os_string();
        path.push(":/usr/bin:/bin");
        let (program, rest) = wrapper.split_first().unwrap_or((&"ls", &[]));
        let mut command = Command::new(program);
        command.args(rest).args((!wrapper.is_empty()).then_some("ls")).args(&case.arguments);
        command.env_clear().env("PATH", path).env("TERM", "xterm").env("LC_ALL", case.locale);
        if case.locale.contains('_') {
            command.env("LOCPATH", self.home.path());
        }
        command.envs(case.environment.iter().copied()).current_dir(directory).stdin(Stdio::null());
        command
    }

    fn compare(&self, wrapper: &[&str], directory: &Path, case: &Case) {
        let run = |whose| self.command(whose, wrapper, case, directory).output().expect("it runs");
        let (theirs, ours) = (run(GNU), run(OURS));
        assert_same(&theirs, &ours, &format!("{case:?} in {}", directory.display()));
    }

    /// The calls by which the program examines files.
    fn examinations(&self, whose: &str, directory: &Path, case: &Case) -> Vec<String> {
        let trace = self.home.path().join("trace");
        let trace_path = trace.to_str().expect("UTF-8");
        let wrapper = ["strace", "-f", "-qq", "-e", "trace=%%stat", "-o", trace_path];
        let output = self.command(whose, &wrapper, case, directory).output();
        output.expect("strace runs (testbed/setup test installs it)");
        let mut calls = traces::calls(&fs::read_to_string(trace).expect("a trace"));
        // Libraries, what the system says about the CPUs, and standard output are examined in any case; so is, by the C
        // library, what it has opened. A call that `strace` does not know it lists anyway.
        calls.retain(|call| {
            let is_opened = call.contains("\"\"") && (whose == GNU || call.contains("S_IFREG"));
            !(call.contains("\"/") || call.starts_with("syscall_") || call.contains("(1,") || is_opened)
        });
        calls.iter().map(|call| call.chars().take(60).collect()).collect()
    }

    fn compare_simply(&self, directory: &Path, arguments: &str) {
        let arguments = arguments.split_whitespace().map(OsString::from).collect();
        self.compare(&[], directory, &Case { locale: "C.UTF-8", environment: vec![], arguments });
    }

    /// What the program writes to a terminal of 60 columns.
    fn on_terminal(&self, whose: &str, directory: &Path, case: &Case) -> Vec<u8> {
        let quoted: Vec<String> = case.arguments.iter().map(|a| shell_quoted(&a.to_string_lossy())).collect();
        let line = format!("stty cols 60; ls {}", quoted.join(" "));
        let script = Case { locale: case.locale, environment: case.environment.clone(), arguments: vec![] };
        let mut command = self.command(whose, &["script", "-qec", &line, "/dev/null"], &script, directory);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("script runs");
        let mut output = Vec::new();
        child.stdout.take().expect("piped").read_to_end(&mut output).expect("output");
        child.wait().expect("it ends");
        output
    }
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[derive(Debug)]
struct Case {
    locale: &'static str,
    environment: Vec<(&'static str, &'static str)>,
    arguments: Vec<OsString>,
}

fn readable(bytes: &[u8]) -> String {
    // The installed release ends hyperlinks with BEL, ours as newer ones do.
    bytes.escape_ascii().to_string().replace("\\x1b\\\\", "\\x07").replace("\\n", "\n")
}

fn assert_same(theirs: &Output, ours: &Output, described: &str) {
    assert_eq!(readable(&ours.stdout), readable(&theirs.stdout), "stdout of {described}");
    // Directories are read ahead, so messages may come in another order.
    let lines = |bytes: &[u8]| {
        let mut lines: Vec<_> = bytes.split(|&b| b == b'\n').map(readable).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&ours.stderr), lines(&theirs.stderr), "stderr of {described}");
    assert_eq!(ours.status.code(), theirs.status.code(), "exit code of {described}");
}

fn random_case(rivals: &Rivals, root: &Path, random: &mut Random) -> Case {
    let mut arguments: Vec<OsString> = (0..random.below(6)).map(|_| random.pick(OPTIONS).into()).collect();
    if random.below(3) == 0 {
        let entries = fs::read_dir(root).expect("tree");
        let mut names: Vec<PathBuf> = entries.map(|e| e.expect("entry").file_name().into()).collect();
        names.sort();
        arguments.push("--".into());
        for _ in 0..random.below(5) {
            match names.is_empty() || random.below(8) == 0 {
                true => arguments.push(random.pick(&["nowhere", ".", "it's not", ""]).into()),
                false => arguments.push(names[random.below(names.len())].clone().into()),
            }
        }
    }
    if arguments.iter().any(|a| a == "-v" || a == "--sort=version") {
        // The installed release sorts hidden names otherwise than 9.10, which has .TXT before .c.txt.
        arguments.retain(|a| a != "-a" && a != "-A" && (a.len() == 1 || !a.as_bytes().starts_with(b".")));
    }
    let environment = (0..random.below(3)).map(|_| random.pick(ENVIRONMENTS)).collect();
    Case { locale: random.pick(&rivals.locales), environment, arguments }
}

/// Options by which names are ordered or laid out by their widths.
const BY_WIDTH: &[&str] = &[
    "-C",
    "-m",
    "-x",
    "--format=across",
    "--format=commas",
    "--format=vertical",
    "--sort=width",
    "--show-control-chars",
];

/// Names with control characters have other widths in the installed release than in 9.10, unless question marks replace
/// these.
fn hide_control_characters(case: &mut Case) {
    if case.arguments.iter().any(|a| BY_WIDTH.iter().any(|option| a == option)) {
        let options = case.arguments.iter().position(|a| a == "--").unwrap_or(case.arguments.len());
        case.arguments.insert(options, "-q".into());
    }
}

/// Links lead out of the tree, to places that are large and change meanwhile: takes away what would list them.
fn stay_in_the_tree(case: &mut Case) {
    let has = |wanted: &str| case.arguments.iter().any(|a| a == wanted);
    let (recursive, all) = (has("-R"), has("-a"));
    if recursive {
        let options = case.arguments.iter().position(|a| a == "--").unwrap_or(case.arguments.len());
        case.arguments.truncate(options);
    }
    if recursive || all {
        case.arguments.retain(|a| a != "-L");
    }
}

/// Reads all directories and links below `root` once, in a later tick of the file system's clock than the one
/// that made them: with relatime, further reading leaves their times of access alone.
fn settle_access_times(root: &Path) {
    std::thread::sleep(Duration::from_millis(20));
    Command::new("/bin/ls").arg("-lRa").arg(root).output().expect("ls runs");
}

#[test]
fn random_trees_and_options() {
    let rivals = Rivals::new();
    let mut random = Random::from_environment();
    for _ in 0..rounds(25) {
        let scratch = tempfile::tempdir().expect("scratch directory");
        // Links to `..` lead to a directory in which nothing changes.
        let root = scratch.path().join("root");
        fs::create_dir(&root).expect("directory");
        make_tree(&root, &mut random, 3);
        settle_access_times(scratch.path());
        for _ in 0..20 {
            let mut case = random_case(&rivals, &root, &mut random);
            stay_in_the_tree(&mut case);
            hide_control_characters(&mut case);
            rivals.compare(&[], &root, &case);
        }
    }
}

#[test]
fn on_a_terminal() {
    let rivals = Rivals::new();
    let mut random = Random::from_environment();
    for _ in 0..rounds(6) {
        let scratch = tempfile::tempdir().expect("scratch directory");
        make_tree(scratch.path(), &mut random, 1);
        settle_access_times(scratch.path());
        for _ in 0..6 {
            let mut case = random_case(&rivals, scratch.path(), &mut random);
            // Operands would go through the shell, and links lead out of the tree.
            case.arguments.retain(|a| a.as_bytes().starts_with(b"-") && a != "--" && a != "-R" && a != "-L");
            if random.below(2) == 0 {
                case.arguments.push("--color=auto".into());
            }
            hide_control_characters(&mut case);
            let (theirs, ours) = (
                rivals.on_terminal(GNU, scratch.path(), &case),
                rivals.on_terminal(OURS, scratch.path(), &case),
            );
            assert_eq!(readable(&ours), readable(&theirs), "{case:?}");
        }
    }
}

#[test]
fn wrong_options_and_variables() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    for locale in ["C", "C.UTF-8"] {
        for arguments in [
            "-y",
            "--foo",
            "--s",
            "--d",
            "--h",
            "--color=x",
            "--format=x",
            "-w x",
            "-w -1",
            "-T x",
            "-T 99999999999999999999",
            "--block-size=z",
            "--block-size=1Q",
            "--block-size=0",
            "--block-size=99999999999999999999",
            "--time-style=x -l",
            "--time-style=l -l",
            "--quoting-style=s",
            "--indicator-style=",
            "--indicator-style",
            "-I",
            "--si=1",
            "--dired --zero -l",
            "--hyperlink=x",
        ] {
            let arguments = arguments.split(' ').map(OsString::from).collect();
            rivals.compare(&[], scratch.path(), &Case { locale, environment: vec![], arguments });
        }
        for variable in [("LS_COLORS", "zz=1"), ("LS_COLORS", "x"), ("QUOTING_STYLE", "x"), ("TERM", "dumb")]
        {
            let arguments = vec!["--color=always".into()];
            rivals.compare(&[], scratch.path(), &Case { locale, environment: vec![variable], arguments });
        }
    }
}

/// Languages that order dates in another way have their formats in coreutils' catalogues, where those are installed.
#[test]
fn dates_are_in_the_language_of_the_locale() {
    let mut rivals = Rivals::new();
    for locale in ["de_DE.UTF-8", "fr_FR.UTF-8", "ja_JP.UTF-8", "sv_SE.UTF-8", "pl_PL.UTF-8"] {
        rivals.add_locale(locale);
    }
    let scratch = tempfile::tempdir().expect("scratch directory");
    for month in 0..12 {
        let file = File::create(scratch.path().join(format!("f{month:02}"))).expect("a file");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(951_800_000 + month * 30 * 86_400);
        let recent = SystemTime::now() - Duration::from_secs(month * 15 * 86_400 + 60);
        file.set_modified(if month % 2 == 0 { old } else { recent }).expect("a time");
    }
    let names = (0..12).map(|month| format!("f{month:02}")).collect::<Vec<_>>();
    for &locale in &rivals.locales {
        for (variable, value) in
            [("TIME_STYLE", "locale"), ("TIME_STYLE", "posix-iso"), ("LANGUAGE", "fr"), ("LC_TIME", "C")]
        {
            // The word `total` is always English.
            let arguments = ["-ld"].into_iter().map(str::to_owned).chain(names.clone()).map(OsString::from);
            let case = Case { locale, environment: vec![(variable, value)], arguments: arguments.collect() };
            rivals.compare(&[], scratch.path(), &case);
        }
    }
}

#[test]
fn unreadable_directories() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    let root = scratch.path();
    fs::set_permissions(root, PermissionsExt::from_mode(0o755)).expect("mode");
    for (directory, mode) in [("closed", 0o700), ("listable", 0o744), ("open", 0o755)] {
        fs::create_dir(root.join(directory)).expect("directory");
        fs::create_dir(root.join(directory).join("sub")).expect("directory");
        File::create(root.join(directory).join("file")).expect("file");
        fs::set_permissions(root.join(directory), PermissionsExt::from_mode(mode)).expect("mode");
    }
    let unprivileged: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["setpriv", "--reuid=65534", "--clear-groups"],
        false => &[],
    };
    for arguments in [
        "",
        "-R",
        "-lR",
        "-l listable",
        "-F listable",
        "-i listable",
        "-s listable",
        "-lisZ --author listable",
        "-lt listable",
        "closed",
        "closed open",
        "-R closed listable",
        "-C --color=always listable",
        "-d closed",
        "-l closed/file",
        "-1 listable",
        "-hS listable",
        "-D -l listable",
    ] {
        let arguments = arguments.split_whitespace().map(OsString::from).collect();
        rivals.compare(unprivileged, root, &Case { locale: "C.UTF-8", environment: vec![], arguments });
    }
}

#[test]
fn loops_through_links() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    fs::create_dir_all(scratch.path().join("a/b")).expect("directories");
    symlink("..", scratch.path().join("a/b/up")).expect("link");
    symlink("self", scratch.path().join("self")).expect("link");
    for arguments in ["-RL", "-RL a", "-lRL", "-R", "-L self", "-H self", "-l self", "-F self", "-LC"] {
        rivals.compare_simply(scratch.path(), arguments);
    }
}

/// Below an operand that ends with slashes one of them is shown.
#[test]
fn names_with_a_quote_and_an_indicator() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    for name in ["@'", "it's=", "it's>", "'*", "it's|", "it's @"] {
        File::create(scratch.path().join(name)).expect("file");
    }
    for style in ["shell", "shell-always", "shell-escape", "shell-escape-always"] {
        for indicators in ["-F", "--file-type", "-p"] {
            rivals.compare_simply(scratch.path(), &format!("--quoting-style={style} {indicators}"));
        }
    }
}

#[test]
fn slashes_after_operands() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    fs::create_dir_all(scratch.path().join("a/b/c")).expect("directories");
    for arguments in ["-R a//", "-R a/b// a///", "-d a//", "-R .//", "a// a/b//", "-lR nope// a/"] {
        rivals.compare_simply(scratch.path(), arguments);
    }
}

/// Beside a file with an access control list it is unknown whether a link that leads nowhere has one.
#[test]
fn unknown_access_control_lists() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    symlink("nowhere", scratch.path().join("dang")).expect("link");
    make_file(&scratch.path().join("f"), &mut Random::from_environment());
    rivals.compare_simply(scratch.path(), "-lL");
    let set = Command::new("setfacl").args(["-m", "u:1:r"]).arg(scratch.path().join("f")).status();
    assert!(set.expect("setfacl runs").success());
    for arguments in ["-lL", "-l", "-lLd dang", "-lL dang f", "-nL"] {
        rivals.compare_simply(scratch.path(), arguments);
    }
}

/// What has a color decides what must be examined; ours never examines more than GNU's, and without `-R` no directory
/// for being one.
#[test]
fn no_more_is_examined_than_by_gnus() {
    const COLORS: &[&str] = &[
        "or=31",
        "mi=32",
        "ln=target",
        "ln=33",
        "ex=34",
        "su=35",
        "sg=36",
        "tw=37",
        "ow=41",
        "st=42",
        "di=43",
    ];
    const OPTIONS: &[&str] = &[
        "-F",
        "-p",
        "--file-type",
        "-l",
        "-L",
        "-H",
        "-i",
        "-s",
        "-t",
        "-U",
        "-d",
        "-a",
        "--color=always",
        "--color=always",
        "--color=always",
        "--group-directories-first",
        "--dereference-command-line-symlink-to-dir",
    ];
    let rivals = Rivals::new();
    let mut random = Random::from_environment();
    let scratch = tempfile::tempdir().expect("scratch directory");
    for directory in ["d", "e"] {
        fill(&scratch.path().join(directory));
    }
    symlink("d", scratch.path().join("to-d")).expect("link");
    for round in 0..rounds(60) {
        let mut words: Vec<_> = (0..random.below(4)).map(|_| random.pick(OPTIONS)).collect();
        words.extend(random.pick(&[&["d"][..], &["to-d"], &["d", "e"], &["to-d/f", "d/dangling"], &["."]]));
        let off = "no=:fi=:rs=:di=:ln=:or=:mi=:ex=:su=:sg=:ca=:tw=:ow=:st=:mh=".to_owned();
        let on: Vec<_> = (0..random.below(3)).map(|_| random.pick(COLORS)).collect();
        let colors = [off, on.join(":")].join(":");
        let arguments = words.iter().map(OsString::from).collect();
        let case = Case { locale: "C", environment: vec![("LS_COLORS", &*colors.leak())], arguments };
        rivals.compare(&[], scratch.path(), &case);
        let [theirs, ours] = [GNU, OURS].map(|whose| rivals.examinations(whose, scratch.path(), &case));
        assert!(ours.len() <= theirs.len(), "round {round}: {case:?}: {ours:#?} instead of {theirs:#?}");
    }
}

/// Entries of every kind that colors tell apart.
fn fill(directory: &Path) {
    fs::create_dir(directory).expect("directory");
    for (name, mode) in [("f", 0o644), ("ex", 0o755), ("su", 0o4755), ("sg", 0o2755)] {
        File::create(directory.join(name)).expect("file");
        fs::set_permissions(directory.join(name), PermissionsExt::from_mode(mode)).expect("mode");
    }
    for (name, mode) in [("di", 0o755), ("tw", 0o1777), ("ow", 0o777), ("st", 0o1755)] {
        fs::create_dir(directory.join(name)).expect("directory");
        fs::set_permissions(directory.join(name), PermissionsExt::from_mode(mode)).expect("mode");
    }
    for (name, target) in [("link", "f"), ("to-di", "di"), ("dangling", "nowhere"), ("loop", "loop")] {
        symlink(target, directory.join(name)).expect("link");
    }
}

#[test]
fn a_full_device_and_a_closed_pipe() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    for i in 0..5000 {
        File::create(scratch.path().join(format!("a file with a long name {i}"))).expect("file");
    }
    for line in [
        "ls > /dev/full",
        "ls -l > /dev/full",
        "ls --help > /dev/full",
        "ls | head -n 1",
        "ls -U | head -n 1; exit ${PIPESTATUS[0]}",
    ] {
        let case = |line: &str| Case { locale: "C", environment: vec![], arguments: vec![line.into()] };
        let run = |whose: &str| {
            let mut command = rivals.command(whose, &["bash", "-c", line], &case(line), scratch.path());
            command.output().expect("it runs")
        };
        assert_same(&run(GNU), &run(OURS), line);
    }
}

#[test]
fn a_deep_chain() {
    const LEVELS: usize = 3000;
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    let root = scratch.path().join("deep");
    fs::create_dir(&root).expect("directory");
    let mut here = File::open(&root).expect("directory");
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(&here, "d", 0o755.into()).expect("directory");
        let flags = rustix::fs::OFlags::DIRECTORY;
        here = rustix::fs::openat(&here, "d", flags, rustix::fs::Mode::empty()).expect("directory").into();
    }
    // GNU's opens by path, which ends at 4,096 bytes; ours must go to the bottom.
    let case = Case { locale: "C", environment: vec![], arguments: vec!["-R".into(), "deep".into()] };
    let ours = rivals.command(OURS, &[], &case, scratch.path()).output().expect("it runs");
    assert_eq!((ours.status.code(), readable(&ours.stderr)), (Some(0), String::new()));
    let headings = ours.stdout.split(|&b| b == b'\n').filter(|line| line.ends_with(b":")).count();
    assert_eq!(headings, LEVELS + 1);
    let theirs = rivals.command(GNU, &[], &case, scratch.path()).output().expect("it runs");
    let shared = theirs.stdout.len().min(4000 * 100);
    assert_eq!(readable(&ours.stdout[..shared]), readable(&theirs.stdout[..shared]));
    Command::new("rm").arg("-rf").arg(&root).status().expect("rm runs");
}

/// Entries come and go while they are listed: whatever a listing says about them, it ends and says it as `ls` would.
#[test]
fn entries_that_vanish() {
    let rivals = Rivals::new();
    let scratch = tempfile::tempdir().expect("scratch directory");
    let root = scratch.path().to_owned();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                for i in 0..50 {
                    let directory = root.join(format!("d{i}"));
                    fs::create_dir_all(directory.join("sub")).expect("directories");
                    File::create(directory.join("file")).expect("file");
                }
                for i in 0..50 {
                    fs::remove_dir_all(root.join(format!("d{i}"))).expect("removal");
                }
            }
        });
        for arguments in ["-lR", "-R", "-laR --color=always", "-FR", "--json", "--paths"].repeat(15) {
            let arguments = arguments.split(' ').map(OsString::from).collect();
            let case = Case { locale: "C", environment: vec![], arguments };
            let output = rivals.command(OURS, &[], &case, &root).output().expect("it runs");
            assert!(matches!(output.status.code(), Some(0 | 1)), "{case:?} {:?}", output.status);
            for line in output.stderr.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
                let line = String::from_utf8_lossy(line);
                assert!(
                    line.starts_with("ls: cannot ") || line.starts_with("ls: reading directory "),
                    "{line}"
                );
                assert!(line.ends_with(": No such file or directory"), "{line}");
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
