//! rsync as an oracle: what it would send and delete.

pub mod random;
pub mod rules;
pub mod trees;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::process::Command;

use trees::Tree;

/// Paths, those of directories with a slash at the end.
pub type Paths = BTreeSet<Vec<u8>>;

/// What a run would change.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub sent: Paths,
    pub deleted: Paths,
    /// Listed paths that do not exist.
    missing: Paths,
}

impl Outcome {
    /// The paths that are sent, and the listed paths that do not exist.
    pub fn listed(self) -> (Paths, Paths) {
        (self.sent, self.missing)
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sends {} deletes {}", names(&self.sent), names(&self.deleted))
    }
}

/// The paths as text.
pub fn names(paths: &Paths) -> String {
    paths.iter().map(|path| format!("'{}' ", path.escape_ascii())).collect()
}

/// The width of `%i` and the space after it.
const ITEMIZED_BYTES: usize = 12;
/// Exit codes: no error, and entries that could not be sent.
const SUCCESSES: [Option<i32>; 2] = [Some(0), Some(23)];

/// Runs rsync without changes; its messages if it refuses the options.
pub fn run(tree: &Tree, options: &[OsString]) -> Result<Outcome, String> {
    let mut command = Command::new("rsync");
    command.args(["-r", "--dry-run", "-ii", "--out-format=%i %n"]).args(options);
    let run = command.current_dir(tree.directory()).env("LC_ALL", "C").output();
    let run = run.expect("rsync runs (testbed/setup test installs it)");
    let messages = String::from_utf8_lossy(&run.stderr);
    if !SUCCESSES.contains(&run.status.code()) {
        return Err(messages.into_owned());
    }
    let mut outcome = Outcome::default();
    let mut kept = Paths::new();
    for line in run.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        if let Some(directory) = line.strip_prefix(b"cannot delete non-empty directory: ") {
            kept.insert([&unescaped(directory), &b"/"[..]].concat());
            continue;
        }
        let (change, name) = line.split_at(ITEMIZED_BYTES);
        match name {
            b"./" => false,
            _ if change.starts_with(b"*deleting ") => outcome.deleted.insert(unescaped(name)),
            _ => outcome.sent.insert(unescaped(name)),
        };
    }
    // rsync also lists such a directory as deleted, unless it is the first of those above it.
    outcome.deleted.retain(|path| !kept.contains(path));
    let source = tree.directory().join("s").into_os_string().into_string().expect("a name in ASCII");
    for line in run.stderr.split(|&byte| byte == b'\n') {
        let before = format!("rsync: [sender] link_stat \"{source}/");
        let Some(rest) = line.strip_prefix(before.as_bytes()) else { continue };
        let end = rest.windows(2).rposition(|pair| pair == b"\" ").expect("a quoted name");
        outcome.missing.insert(unescaped(&rest[..end]));
    }
    Ok(outcome)
}

/// A name as it is: rsync writes `\#` and three octal digits for what it does not print.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        let digits = rest.strip_prefix(b"\\#").and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &rest[5..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    bytes
}
