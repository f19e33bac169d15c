//! Trees to search, and the two tools that search them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timestamps, mkdirat, open, openat, utimensat};
use tempfile::TempDir;

use crate::random::Random;

/// Nobody's user and group, for what root may always do.
const NOBODY: &str = "65534";

/// Who searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// GNU find.
    Gnu,
    /// `pfind`.
    Ours,
}

/// A directory with a tree `t` in it.
pub struct Bed {
    root: TempDir,
    /// Holds our binary under the name `find`.
    names: TempDir,
    locale: &'static str,
    variables: Vec<(&'static str, &'static str)>,
    privileges: Privileges,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Privileges {
    Kept,
    Dropped,
}

/// What a search came to; lines in sorted order, as the order of siblings is nobody's promise.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
    pub code: Option<i32>,
}

impl Bed {
    fn new() -> Self {
        let names = TempDir::new().expect("temporary directory");
        symlink(env!("CARGO_BIN_EXE_pfind"), names.path().join("find")).expect("symlink");
        fs::set_permissions(names.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        let root = TempDir::new().expect("temporary directory");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        Bed { root, names, locale: "C.UTF-8", variables: Vec::new(), privileges: Privileges::Kept }
    }

    /// A small tree with one of everything.
    pub fn fixed() -> Self {
        let bed = Bed::new();
        for directory in ["t/d/e", "t/empty", "t/dir with space", "u"] {
            fs::create_dir_all(bed.path().join(directory)).expect("mkdir");
        }
        bed.file(b"t/f.txt", b"hi\n", 0o644);
        bed.file(b"t/d/script", &[b'x'; 3000], 0o755);
        bed.file(b"t/d/e/setuid", b"", 0o4755);
        bed.file(b"t/d/e/private", &[0; 512], 0o600);
        bed.file("t/\u{e9}".as_bytes(), b"", 0o644);
        for name in [
            &b"t/b\xff"[..],
            b"t/new\nline",
            b"t/q'uote",
            b"t/dq\"uote",
            b"t/back\\slash",
            b"t/bell\x07\x08\x0b\x0c\r\x1b",
            b"t/-dash",
            b"t/.hidden",
            b"u/*",
        ] {
            bed.file(name, b"1234567890", 0o640);
        }
        bed.link("nowhere", "t/dang");
        bed.link("loop", "t/loop");
        bed.link("..", "t/d/e/up");
        bed.link("d", "t/ld");
        bed.link("f.txt", "t/lf");
        bed.link("f.txt/x", "t/through-a-file");
        fs::hard_link(bed.path().join("t/f.txt"), bed.path().join("t/hard")).expect("link");
        bed.fifo("t/p");
        drop(std::os::unix::net::UnixListener::bind(bed.path().join("t/s")).expect("socket"));
        bed.file(b"list0", b"t\0u\0\0nosuch\0", 0o644);
        bed.file(b"empty-name", b"\0", 0o644);
        bed.settle();
        bed
    }

    /// Some hundred files under names that make trouble.
    pub fn random(random: &mut Random) -> Self {
        let bed = Bed::new();
        let mut directories = vec![b"t".to_vec()];
        fs::create_dir(bed.path().join("t")).expect("mkdir");
        let mut files: Vec<Vec<u8>> = Vec::new();
        for _ in 0..150 {
            let parent = directories[random.below(directories.len())].clone();
            let path = [&parent[..], b"/", &random_name(random)].concat();
            if fs::symlink_metadata(bed.at(&path)).is_ok() {
                continue;
            }
            match random.below(12) {
                0..4 => {
                    fs::create_dir(bed.at(&path)).expect("mkdir");
                    directories.push(path);
                }
                4..9 => {
                    bed.file(&path, &vec![b'x'; random_size(random)], 0o600);
                    files.push(path);
                }
                9 => {
                    let target = if random.below(2) == 0 {
                        "..".to_owned()
                    } else {
                        format!("../{}", random.below(9))
                    };
                    symlink(target, bed.at(&path)).expect("symlink");
                }
                10 if !files.is_empty() => {
                    let target = &files[random.below(files.len())];
                    fs::hard_link(bed.at(target), bed.at(&path)).expect("link");
                }
                _ => {
                    let other = &directories[random.below(directories.len())];
                    symlink(bed.at(other), bed.at(&path)).expect("symlink");
                }
            }
        }
        for path in &files {
            let mode = random.pick(&[&0o644, &0o600, &0o755, &0o4711, &0o2640, &0o444, &0]);
            fs::set_permissions(bed.at(path), fs::Permissions::from_mode(*mode)).expect("chmod");
        }
        bed.settle();
        bed
    }

    /// Directories and links that only root may look into, looked at by somebody else.
    pub fn with_closed_doors() -> Self {
        let mut bed = Bed::new();
        for directory in ["no", "nx", "nx/d"] {
            fs::create_dir(bed.path().join(directory)).expect("mkdir");
        }
        bed.file(b"no/x", b"", 0o644);
        bed.file(b"nx/f", b"", 0o644);
        bed.link("nx/f", "sl");
        bed.link("nx/f/g", "sl2");
        bed.settle();
        fs::set_permissions(bed.path().join("no"), fs::Permissions::from_mode(0o000)).expect("chmod");
        fs::set_permissions(bed.path().join("nx"), fs::Permissions::from_mode(0o744)).expect("chmod");
        bed.privileges = Privileges::Dropped;
        bed
    }

    /// `directories` directories of `files` empty files each.
    pub fn wide(directories: usize, files: usize) -> Self {
        let bed = Bed::new();
        for d in 0..directories {
            let directory = format!("t/d{d}");
            fs::create_dir_all(bed.path().join(&directory)).expect("mkdir");
            for f in 0..files {
                bed.file(format!("{directory}/f{f}").as_bytes(), b"", 0o644);
            }
        }
        bed
    }

    /// A directory in a directory in a directory; far deeper than a path may be long.
    pub fn chain(levels: usize) -> Self {
        let bed = Bed::new();
        let mode = Mode::from_raw_mode(0o755);
        fs::create_dir(bed.path().join("t")).expect("mkdir");
        let mut directory = open(bed.path().join("t"), OFlags::DIRECTORY, Mode::empty()).expect("open");
        for _ in 0..levels {
            mkdirat(&directory, "0123456789", mode).expect("mkdir");
            directory = openat(&directory, "0123456789", OFlags::DIRECTORY, Mode::empty()).expect("open");
        }
        bed
    }

    pub fn with_locale(mut self, locale: &'static str) -> Self {
        self.locale = locale;
        self
    }

    pub fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    fn at(&self, name: &[u8]) -> PathBuf {
        self.path().join(OsStr::from_bytes(name))
    }

    fn file(&self, name: &[u8], contents: &[u8], mode: u32) {
        fs::write(self.at(name), contents).expect("write");
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).expect("chmod");
    }

    fn link(&self, target: &str, name: &str) {
        symlink(target, self.path().join(name)).expect("symlink");
    }

    fn fifo(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.path().join(name)).status().expect("mkfifo");
        assert!(made.success());
        assert!(fs::symlink_metadata(self.path().join(name)).expect("stat").file_type().is_fifo());
    }

    /// Gives everything an access time in the future, which reading does not change, and its own time of change.
    fn settle(&self) {
        for (index, (path, _, _)) in self.names().iter().enumerate() {
            let index = i64::try_from(index).expect("a small tree");
            let time = |tv_sec, tv_nsec| rustix::fs::Timespec { tv_sec, tv_nsec };
            let times = Timestamps {
                last_access: time(2_145_916_800 + index, 123_456_789),
                last_modification: time(1_700_000_000 + index * 86_401, index * 7919 % 1_000_000_000),
            };
            utimensat(CWD, self.at(path), &times, AtFlags::SYMLINK_NOFOLLOW).expect("utimensat");
        }
    }

    fn command(&self, tool: Tool, words: &[String]) -> Command {
        // By the same bare name, so that messages begin alike.
        let mut search_path = OsString::from(match tool {
            Tool::Gnu => "",
            Tool::Ours => self.names.path().to_str().expect("a plain temporary path"),
        });
        search_path.push(if tool == Tool::Ours { ":/usr/bin:/bin" } else { "/usr/bin:/bin" });
        let mut command = match self.privileges {
            Privileges::Kept => Command::new("find"),
            Privileges::Dropped => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "find"]);
                command
            }
        };
        command
            .args(words)
            .current_dir(self.path())
            .env("LC_ALL", self.locale)
            .env("TZ", "Europe/Stockholm")
            .env("PATH", search_path)
            .envs(self.variables.iter().copied())
            .stdin(Stdio::null());
        command
    }

    fn raw(&self, tool: Tool, words: &[String]) -> Output {
        self.command(tool, words).output().expect("a find to run")
    }

    /// Runs a tool and sorts what it says.
    pub fn run(&self, tool: Tool, words: &[String]) -> Outcome {
        let output = self.raw(tool, words);
        Outcome { stdout: sorted(&output.stdout), stderr: sorted(&output.stderr), code: output.status.code() }
    }

    /// What a tool prints, as it is.
    pub fn raw_output(&self, tool: Tool, words: &[String]) -> Vec<u8> {
        let output = self.raw(tool, words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// What a tool prints, as text.
    pub fn output(&self, tool: Tool, words: &[String]) -> String {
        String::from_utf8(self.raw_output(tool, words)).expect("text")
    }

    /// Runs ours with an output that nobody reads: the signal that ended it, and its messages.
    pub fn run_with_closed_output(&self, words: &[String]) -> (Option<i32>, String) {
        let mut child = self
            .command(Tool::Ours, words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pfind");
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
        (child.wait().expect("status").signal(), stderr)
    }

    /// All that is there now: path, mode and size.
    pub fn names(&self) -> Vec<(Vec<u8>, u32, u64)> {
        let mut found = Vec::new();
        let mut pending = vec![self.path().to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).expect("directory") {
                let entry = entry.expect("entry");
                let metadata = entry.metadata().expect("stat");
                let size = if metadata.is_dir() { 0 } else { metadata.len() };
                let path = entry.path();
                let relative = path.strip_prefix(self.path()).expect("below").as_os_str().to_owned();
                found.push((relative.into_vec(), metadata.mode(), size));
                if metadata.is_dir() {
                    pending.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

/// Pieces between newlines and NULs, sorted.
fn sorted(bytes: &[u8]) -> Vec<String> {
    let mut pieces: Vec<_> =
        bytes.split(|&b| b == b'\n' || b == 0).map(|piece| piece.escape_ascii().to_string()).collect();
    pieces.sort();
    if bytes.is_empty() { Vec::new() } else { pieces }
}

/// A message of findutils 4.9 in the words of 4.11, which ours follow; `newest.rs` has those to the letter. Quotes
/// around the argument of a number, which 4.9 does not have, are taken away from both.
fn in_newer_words(message: &str) -> String {
    for name in ["-inum", "-links", "-uid", "-gid"] {
        let older = message.strip_prefix("find: invalid argument `");
        let older = older.and_then(|rest| rest.strip_suffix(&format!("\\' to `{name}\\'")));
        let newer = message.strip_prefix(&format!("find: non-numeric argument to {name}: "));
        let newer = newer.map(|quoted| {
            let inner =
                quoted.strip_prefix("\\xe2\\x80\\x98").and_then(|rest| rest.strip_suffix("\\xe2\\x80\\x99"));
            inner.or_else(|| quoted.strip_prefix("\\'")?.strip_suffix("\\'")).unwrap_or(quoted)
        });
        match (older, newer) {
            (Some(argument), _) if argument == name => {
                return format!("find: missing argument to `{name}\\'");
            }
            (Some(argument), _) | (_, Some(argument)) => {
                return format!("find: non-numeric argument to {name}: {argument}");
            }
            (None, None) => {}
        }
    }
    for (older, newer) in [
        (" is not the name of a known user", "find: invalid user name or UID argument to -user: "),
        (" is not the name of an existing group", "find: invalid group name or GID argument to -group: "),
    ] {
        if let Some(name) = message.strip_prefix("find: ").and_then(|rest| rest.strip_suffix(older)) {
            return format!("{newer}{name}");
        }
    }
    message
        .replace("find: invalid mode ", "find: invalid file mode ")
        .replace(" test needs an argument", " test needs to be followed by an argument")
}

/// Runs both tools.
///
/// # Errors
/// How they differ.
pub fn compare(bed: &Bed, words: &[String]) -> Result<(), String> {
    let [gnu, ours] = [Tool::Gnu, Tool::Ours].map(|tool| {
        let outcome = bed.run(tool, words);
        let mut stderr: Vec<_> = outcome.stderr.iter().map(|message| in_newer_words(message)).collect();
        stderr.sort();
        Outcome { stderr, ..outcome }
    });
    if gnu == ours {
        return Ok(());
    }
    let missing = |a: &[String], b: &[String]| {
        a.iter().filter(|line| !b.contains(line)).take(5).cloned().collect::<Vec<_>>()
    };
    Err(format!(
        "find {}\n  exit: GNU {:?}, ours {:?}\n  output only of GNU's: {:?}\n  output only of ours: {:?}\n  messages of GNU's: {:?}\n  messages of ours: {:?}",
        words.join(" "),
        gnu.code,
        ours.code,
        missing(&gnu.stdout, &ours.stdout),
        missing(&ours.stdout, &gnu.stdout),
        missing(&gnu.stderr, &ours.stderr),
        missing(&ours.stderr, &gnu.stderr),
    ))
}

fn random_name(random: &mut Random) -> Vec<u8> {
    let pieces: [&[u8]; 16] = [
        b"a",
        b"b",
        b"A",
        b"1",
        b".txt",
        b" ",
        b"\n",
        b"*",
        b"?",
        b"[",
        b"\\",
        b"'",
        b"\xff",
        "\u{e9}".as_bytes(),
        b"-",
        b"x",
    ];
    (0..=random.below(4)).flat_map(|_| random.pick(&pieces).to_vec()).collect()
}

fn random_size(random: &mut Random) -> usize {
    match random.below(4) {
        0 => 0,
        1 => random.below(600),
        2 => 512 * random.below(9),
        _ => random.below(5000),
    }
}
