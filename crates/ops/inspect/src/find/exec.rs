//! Commands: `-exec`, `-execdir`, `-ok`, `-okdir`.
//!
//! Commands run one at a time, under the lock that keeps actions in order. Those of `-execdir` run in the directory
//! that holds the file. The child changes to it through the handle, so a directory that is renamed meanwhile is still
//! the right one. `{} +` collects names until a command line is full; `-execdir` has one command line per directory.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use millstream_system::process::pass_on_ignored_broken_pipes;
use millstream_vfs::{Dir, Errno, Result};
use rustix::process::{Resource, getrlimit};

/// A command to run.
#[derive(Debug)]
pub(super) struct Exec {
    /// Which of the expression's commands this is.
    pub index: usize,
    /// Program and arguments as given, `{}` included; of a batch without its last word, the `{}`.
    pub words: Vec<Vec<u8>>,
    /// Where it runs.
    pub place: ExecPlace,
    /// How often, and whether the user is asked.
    pub mode: ExecMode,
}

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecPlace {
    /// In the starting directory of the process.
    Start,
    /// In the directory that holds the file.
    DirectoryOfFile,
}

/// How often a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecMode {
    /// Once for every file.
    Each,
    /// Once for every file, if the user agrees.
    Ask,
    /// With as many files at a time as fit.
    Batch,
}

/// The directory in which a child starts.
#[derive(Clone, Debug)]
pub(super) enum StartDirectory {
    /// The current directory.
    Inherited,
    /// A path.
    Path(OsString),
}

impl StartDirectory {
    /// A directory that is open.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if no command can be started there.
    pub fn of_handle(handle: &impl Dir) -> Result<Self> {
        Ok(StartDirectory::Path(OsString::from_vec(handle.path_for_children()?.into_bytes())))
    }

    /// The directory that holds an operand.
    pub fn of_operand(operand: &[u8]) -> Self {
        let (directory, _) = split_operand(operand);
        StartDirectory::Path(
            OsStr::from_bytes(if directory.is_empty() { b"." } else { directory }).to_owned(),
        )
    }
}

/// An operand's directory and its last component, with its trailing slashes.
pub(super) fn split_operand(operand: &[u8]) -> (&[u8], &[u8]) {
    let end = operand.iter().rposition(|&b| b != b'/').map_or(0, |last| last + 1);
    match operand[..end].iter().rposition(|&b| b == b'/') {
        _ if end == 0 => (operand, operand),
        Some(slash) => operand.split_at(slash + 1),
        None => operand.split_at(0),
    }
}

/// The command lines that wait for more names, one for every command and directory.
#[derive(Debug, Default)]
pub(super) struct Batches {
    waiting: HashMap<(usize, usize), Batch>,
}

#[derive(Debug, Default)]
struct Batch {
    names: Vec<Vec<u8>>,
    bytes: usize,
}

/// Names that fill a command line, to be run.
pub(super) type FullBatch = Vec<Vec<u8>>;

impl Batches {
    /// Adds a name. Returns the earlier names if they must run first.
    pub fn add(&mut self, exec: &Exec, directory: usize, name: Vec<u8>, limit: usize) -> Option<FullBatch> {
        let batch = self.waiting.entry((exec.index, directory)).or_default();
        let fixed: usize = exec.words.iter().map(|word| cost(word)).sum();
        let full = !batch.names.is_empty() && fixed + batch.bytes + cost(&name) > limit;
        let ready = full.then(|| std::mem::take(batch).names);
        batch.bytes += cost(&name);
        batch.names.push(name);
        ready
    }

    /// Takes the names waiting for a command in a directory.
    pub fn take(&mut self, exec: &Exec, directory: usize) -> Option<FullBatch> {
        self.waiting.remove(&(exec.index, directory)).map(|batch| batch.names)
    }
}

/// The argument space that a word takes: its bytes, a NUL, a pointer.
fn cost(word: &[u8]) -> usize {
    word.len() + 1 + size_of::<usize>()
}

/// Bytes of arguments that a command may have in addition to the environment.
pub(super) fn argument_limit() -> usize {
    const LEAST: u64 = 128 << 10;
    const MOST: u64 = 2 << 20;
    const HEADROOM: usize = 4096;
    let stack = getrlimit(Resource::Stack).current.unwrap_or(MOST * 4);
    let total = usize::try_from((stack / 4).clamp(LEAST, MOST)).unwrap_or(usize::MAX);
    let environment: usize = std::env::vars_os().map(|(k, v)| cost(k.as_bytes()) + v.len() + 1).sum();
    total.saturating_sub(environment + HEADROOM).max(HEADROOM)
}

/// Replaces every `{}` of a word by `name`.
pub(super) fn substitute(word: &[u8], name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len() + name.len());
    let mut rest = word;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"{}") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(name);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With exit status 0.
    Success,
    /// With another.
    Failure,
    /// By a signal.
    Signal(i32),
    /// It could not be started.
    NotStarted(Errno),
}

/// The standard input of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildInput {
    /// Our standard input.
    Inherited,
    /// Nothing.
    Empty,
}

/// Runs a command and waits for it.
pub(super) fn run(words: Vec<Vec<u8>>, start: &StartDirectory, input: ChildInput) -> Ending {
    let mut words = words.into_iter().map(OsString::from_vec);
    let Some(program) = words.next() else { return Ending::NotStarted(Errno::NOENT) };
    let mut command = Command::new(program);
    command.args(words);
    pass_on_ignored_broken_pipes(&mut command);
    if let StartDirectory::Path(path) = start {
        command.current_dir(path);
    }
    if input == ChildInput::Empty {
        command.stdin(Stdio::null());
    }
    match command.status() {
        Ok(status) if status.success() => Ending::Success,
        Ok(status) => status.signal().map_or(Ending::Failure, Ending::Signal),
        Err(error) => Ending::NotStarted(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_split_at_their_last_component() {
        for (operand, directory, name) in [
            (&b"a/b"[..], &b"a/"[..], &b"b"[..]),
            (b"a", b"", b"a"),
            (b"t/d/", b"t/", b"d/"),
            (b"/", b"/", b"/"),
            (b"/etc", b"/", b"etc"),
        ] {
            assert_eq!(split_operand(operand), (directory, name));
        }
    }

    #[test]
    fn braces_are_replaced_wherever_they_are() {
        for (word, expected) in [
            (&b"{}"[..], &b"N"[..]),
            (b"x{}y{}", b"xNyN"),
            (b"{{}}", b"{N}"),
            (b"plain", b"plain"),
            (b"{", b"{"),
        ] {
            assert_eq!(substitute(word, b"N"), expected);
        }
    }

    #[test]
    fn a_batch_ends_before_it_is_too_long() {
        let exec =
            Exec { index: 0, words: vec![b"echo".to_vec()], place: ExecPlace::Start, mode: ExecMode::Batch };
        let limit = cost(b"echo") + 2 * cost(b"name");
        let mut batches = Batches::default();
        assert_eq!(batches.add(&exec, 0, b"nam1".to_vec(), limit), None);
        assert_eq!(batches.add(&exec, 0, b"nam2".to_vec(), limit), None);
        let full = batches.add(&exec, 0, b"nam3".to_vec(), limit);
        assert_eq!(full, Some(vec![b"nam1".to_vec(), b"nam2".to_vec()]));
        assert_eq!(batches.take(&exec, 0), Some(vec![b"nam3".to_vec()]));
        assert_eq!(batches.take(&exec, 0), None);
    }
}
