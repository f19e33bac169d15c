//! Every option beside rsync's: the same trees, exit codes and lines of `--itemize-changes`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use super::edit::copy_tree;
use super::mount::Mount;
use super::program::{RSYNC, Scratch, User, command, is_root, is_rsync, psync_command, run, text};
use super::state::Tree;
use crate::random::Random;

/// Places whose every corner is known: `src` and `dst` have entries that differ in one respect each.
const KNOWN: &str = include_str!("known.sh");

/// Two copies of the known places.
struct Pair {
    scratch: Scratch,
    user: User,
}

/// What is left of a run.
#[derive(PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    lines: BTreeSet<String>,
    entries: BTreeSet<String>,
}

impl Outcome {
    /// Without what psync does better: holes of the source stay holes without -S, deleting before the transfer leaves
    /// no other times in directories, and times are compared to the nanosecond. With a list that differs rsync says of
    /// the mode, which has the list's mask, different things in a dry run.
    fn without_promises_of_ours(mut self, line: &str) -> Outcome {
        let keeps_holes = |word: &str| {
            word == "--sparse" || (word.starts_with('-') && !word.starts_with("--") && word.contains('S'))
        };
        if !line.split(' ').any(keeps_holes) {
            let plain = |entry: String| entry.replacen(" true [", " [", 1).replacen(" false [", " [", 1);
            self.entries = self.entries.into_iter().map(plain).collect();
        }
        self.entries.retain(|entry| !entry.contains("times/nanosecond"));
        self.lines.retain(|line| !line.ends_with("times/nanosecond"));
        let plain = |line: String| line.replacen("...p...a", ".......a", 1);
        self.lines = self.lines.into_iter().map(plain).collect();
        if line.contains("--delete-before") {
            self.lines.retain(|line| !line.starts_with(".d..t......"));
        }
        self
    }

    /// As if every name of a file were linked to another one that is not reported, and none copied. Which existing
    /// names stay, and which are linked to them, is not compared either.
    fn with_any_leader(mut self, linked: &BTreeSet<String>) -> Outcome {
        let is_linked = |line: &str| path_of(line).is_some_and(|path| linked.contains(path));
        self.lines.retain(|line| line.contains("+++++++++") || !is_linked(line));
        let line = |line: String| match path_of(&line).filter(|path| linked.contains(*path)) {
            Some(path) if line.starts_with(['>', 'h', 'c']) => format!("h{}{path}", &line[1..12]),
            _ => line,
        };
        Outcome { lines: self.lines.into_iter().map(line).collect(), ..self }
    }
}

/// The path in a line of `--itemize-changes`, which may say what it is linked to.
fn path_of(line: &str) -> Option<&str> {
    let path = line.get(12..)?;
    Some(path.split_once(" => ").map_or(path, |(path, _)| path))
}

/// Names of files with several: which of them is copied, so that the others become links to it, is left open.
fn linked_names(outcomes: [&Outcome; 2]) -> BTreeSet<String> {
    let lines = outcomes.into_iter().flat_map(|outcome| &outcome.lines);
    let pairs = lines.filter_map(|line| line.get(12..)?.split_once(" => "));
    pairs.flat_map(|(path, leader)| [path.to_owned(), leader.to_owned()]).collect()
}

impl Pair {
    fn new(user: User) -> Pair {
        let scratch = Scratch::new();
        let master = scratch.at("master");
        let script = format!("umask 022; mkdir master; cd master; {KNOWN}");
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).env("LC_ALL", "C").current_dir(scratch.path());
        assert!(shell.status().expect("sh runs").success());
        if user == User::Nobody {
            // The source stays root's, and what it closes is closed.
            let owned = Command::new("sh")
                .args(["-ec", "chown -Rh 65534:65534 dst dst2 into other; chown 65534:65534 ."])
                .current_dir(&master)
                .status();
            assert!(owned.expect("sh runs").success());
        }
        Pair { scratch, user }
    }

    fn outcome(&self, name: &str, run: impl FnOnce(&Path) -> Output) -> (Outcome, Output) {
        let at = self.scratch.at(name);
        let cleared = Command::new("rm").arg("-rf").arg(&at).status().expect("rm runs");
        assert!(cleared.success());
        copy_tree(&self.scratch.at("master"), &at);
        let output = run(&at);
        let lines = text(&output.stdout).lines().filter(|line| !is_remark(line)).map(str::to_owned).collect();
        (Outcome { code: output.status.code(), lines, entries: entries(&at) }, output)
    }

    /// Runs both programs; what differs, if anything does.
    fn differences(&self, line: &str) -> Option<String> {
        let (our_words, their_words) = (words(line), words(&deleting_at_last(line)));
        let (theirs, their_output) = self.outcome("theirs", |at| {
            run(command(Path::new(RSYNC), self.user, at).arg("-i").args(&their_words))
        });
        let our_words = if is_rsync() { &their_words } else { &our_words };
        let (ours, output) =
            self.outcome("ours", |at| run(psync_command(self.user, at).arg("-i").args(our_words)));
        let apart = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            let only_one = one.difference(other).map(|line| format!("\n  + {line}"));
            let only_other = other.difference(one).map(|line| format!("\n  - {line}"));
            only_one.chain(only_other).collect::<String>()
        };
        let [ours, theirs] = [ours, theirs].map(|outcome| outcome.without_promises_of_ours(line));
        let linked = linked_names([&ours, &theirs]);
        let (ours, theirs) = (ours.with_any_leader(&linked), theirs.with_any_leader(&linked));
        let order = out_of_order(&text(&output.stdout));
        if ours == theirs && order.is_none() {
            return None;
        }
        Some(format!(
            "{line}: exit {:?}, rsync's {:?}{}{}{}\n  {}\n  rsync: {}",
            ours.code,
            theirs.code,
            apart(&ours.lines, &theirs.lines),
            apart(&ours.entries, &theirs.entries),
            order.unwrap_or_default(),
            text(&output.stderr).trim(),
            text(&their_output.stderr).trim(),
        ))
    }
}

/// A line's arguments; `''` is an empty one, `~` a space in one, `%` a line feed.
fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace()
        .map(|word| if word == "''" { "".into() } else { word.replace('~', " ").replace('%', "\n").into() })
        .collect()
}

/// Where rsync leaves the time of deletion to itself, it deletes as it goes; psync does when all else is
/// done.
fn deleting_at_last(line: &str) -> String {
    let mut words: Vec<_> = line.split(' ').collect();
    let says_when = ["--delete-before", "--delete-after", "--delete-delay", "--delete-during"];
    let deletes = words.iter().any(|word| ["--delete", "--delete-excluded"].contains(word));
    if deletes && !words.iter().any(|word| says_when.contains(word)) {
        words.insert(0, "--delete-after");
    }
    words.join(" ")
}

/// What rsync says on its standard output besides which entries it changes, in words that are its own.
fn is_remark(line: &str) -> bool {
    const REMARKS: [&str; 5] = [
        "created ",
        "skipping ",
        "cannot delete non-empty directory: ",
        "IO error encountered",
        "Deletions stopped",
    ];
    REMARKS.iter().any(|remark| line.starts_with(remark))
}

/// All there is, a line each. Times that were set by writing just now are not told from one another.
fn entries(root: &Path) -> BTreeSet<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs().cast_signed();
    let tree = Tree::read(root);
    let described = tree.0.iter().map(|(path, entry)| {
        let time = if (now - 3600..=now + 1).contains(&entry.time.0) { (0, 0) } else { entry.time };
        let (mode, owner, contents) = (entry.mode, entry.owner, &entry.contents);
        let first = (entry.first_name != *path).then(|| format!(" = {:?}", entry.first_name));
        let sparse = entry.allocated_bytes < 64 << 10;
        format!(
            "{path:?} {mode:o} {owner:?} {time:?} {contents} {sparse} {:?}{}",
            entry.attributes,
            first.unwrap_or_default()
        )
    });
    described.collect()
}

/// A directory that is told of after something in it.
fn out_of_order(stdout: &str) -> Option<String> {
    let mut earlier: Vec<&str> = Vec::new();
    for line in stdout.lines().filter(|line| line.len() > 12 && !line.starts_with('*')) {
        let path = &line[12..];
        if line[1..].starts_with('d') && earlier.iter().any(|earlier| earlier.starts_with(path)) {
            return Some(format!("\n  {path} comes after what is in it"));
        }
        earlier.push(path);
    }
    None
}

/// The lines of a file of cases, comments and empty ones left out: one in eight, all with `PSYNC_CASES=all`.
fn cases(text: &'static str) -> Vec<&'static str> {
    let mut random = Random::from_environment();
    let all = std::env::var_os("PSYNC_CASES").is_some_and(|cases| cases == "all");
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.filter(|_| all || random.below(8) == 0).collect()
}

fn compare(user: User, text: &'static str) {
    let pair = Pair::new(user);
    let different: Vec<_> = cases(text).into_iter().filter_map(|line| pair.differences(line)).collect();
    assert!(different.is_empty(), "{}\n{} differ", different.join("\n"), different.len());
}

#[test]
fn options_are_rsyncs() {
    compare(User::Own, include_str!("options.txt"));
}

#[test]
fn filters_are_rsyncs() {
    compare(User::Own, include_str!("filters.txt"));
}

#[test]
fn operands_are_rsyncs() {
    compare(User::Own, include_str!("operands.txt"));
}

#[test]
fn options_of_an_unprivileged_user_are_rsyncs() {
    assert!(is_root(), "this test becomes another user");
    compare(User::Nobody, include_str!("options-as-nobody.txt"));
}

/// What psync does not do it refuses with a sentence, before it changes anything.
#[test]
fn further_options_are_rsyncs_or_refused() {
    let pair = Pair::new(User::Own);
    let untouched = entries(&pair.scratch.at("master"));
    let is_refused = |line: &str| {
        let (ours, output) =
            pair.outcome("ours", |at| run(psync_command(pair.user, at).arg("-i").args(words(line))));
        ours.code == Some(1) && !output.stderr.is_empty() && ours.entries == untouched
    };
    let different = |line: &str| if is_refused(line) { None } else { pair.differences(line) };
    let different: Vec<_> = cases(include_str!("further.txt")).into_iter().filter_map(different).collect();
    assert!(different.is_empty(), "{}\n{} differ", different.join("\n"), different.len());
}

/// With `-x` neither side is entered where another file system is mounted.
#[test]
fn other_file_systems_are_left_out_as_rsync_does() {
    let scratch = Scratch::new();
    let mounts = ["src/mnt", "src/d/mnt", "ours/mnt", "theirs/mnt", "ours/extra/mnt", "theirs/extra/mnt"]
        .map(|name| Mount::new(&scratch.at(name), "size=1m"));
    let script = "for place in src src/d src/mnt src/d/mnt; do echo new >$place/new; done
        for side in ours theirs; do
            for place in $side $side/mnt $side/extra $side/extra/mnt; do echo extra >$place/old; done
        done
        find . -exec touch -h -d 2020-01-01Z {} +";
    let made = Command::new("sh").args(["-ec", script]).current_dir(scratch.path()).status();
    assert!(made.expect("sh runs").success());
    for options in ["-aixn --delete-after", "-aix", "-aix --delete-after", "-ai"] {
        let words = |side: &str| words(&format!("{options} src/ {side}/"));
        let theirs = run(command(Path::new(RSYNC), User::Own, scratch.path()).args(words("theirs")));
        let ours = run(psync_command(User::Own, scratch.path()).args(words("ours")));
        assert_eq!(ours.status.code(), theirs.status.code(), "{options}: {ours:?} {theirs:?}");
        let lines = |output: &Output| -> BTreeSet<String> {
            text(&output.stdout).lines().filter(|line| !is_remark(line)).map(str::to_owned).collect()
        };
        assert_eq!(lines(&ours), lines(&theirs), "{options}");
        assert_eq!(entries(&scratch.at("ours")), entries(&scratch.at("theirs")), "{options}");
    }
    // rsync empties what is mounted in the destination.
    if !is_rsync() {
        let output = run(psync_command(User::Own, scratch.path()).args(words("-a --delete src/ ours/")));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(text(&output.stderr).contains("mounted") && scratch.at("ours/extra/mnt/old").exists());
    }
    drop(mounts);
}
