//! Operations on an in-memory volume with injected errors, compared with a plain model of the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use millstream_inspect::du::{
    Exclude, FileSystems, GrandTotal, HardLinks, LineFormat, Lines, Measure, Options, Problem, Sink, Sizes,
    Subdirectories, measure,
};
use millstream_inspect::find::{Find, Reporter};
use millstream_inspect::list::options::{Depth, Hidden, ListOptions, SortKey};
use millstream_inspect::list::{Flush, Severity, Sinks, list};
use millstream_memory::MemoryVolume;
use millstream_memory::random::{Entry, Random, RandomTree, Trouble};
use millstream_operation::activity::Activity;
use millstream_system::locale::Locale;
use millstream_text::size::SizeFormat;
use millstream_vfs::{Errno, FileKind, Operation, errno_text};
use millstream_walk::{Cancellation, FollowPolicy, Threads};

const ROUNDS: usize = 60;
const THREADS: [usize; 2] = [1, 4];
const MOST_ENTRIES: usize = 120;

fn is_directory(entry: &Entry) -> bool {
    entry.kind == FileKind::Directory
}

/// Calls `check` with random trees.
fn for_random_trees(mut check: impl FnMut(&MemoryVolume, &RandomTree, Threads)) {
    let mut random = Random::from_environment();
    for _ in 0..ROUNDS {
        let volume = MemoryVolume::default();
        let tree = RandomTree::grow(&volume, &mut random, "root", MOST_ENTRIES);
        for threads in THREADS {
            check(&volume, &tree, Threads::Fixed(threads));
        }
    }
}

/// The strings terminated by `end`.
fn records(text: &[u8], end: u8) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(move |&b| b == end).map(|record| &record[..record.len() - 1])
}

/// Records messages.
#[derive(Default)]
struct Messages(Mutex<Vec<Vec<u8>>>);

impl Messages {
    fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

impl Reporter for Messages {
    fn report(&self, message: &[u8]) {
        self.0.lock().expect("no panic").push(message.to_vec());
    }
}

/// The result of a search: the paths that it found, its messages, and whether it succeeded.
struct Found {
    paths: BTreeSet<Vec<u8>>,
    messages: Vec<Vec<u8>>,
    success: bool,
}

/// Searches below `root` with an expression that prints paths to a file.
fn find(volume: &MemoryVolume, threads: Threads, expression: &[&str]) -> Found {
    let scratch = tempfile::tempdir().expect("tempdir");
    let output = scratch.path().join("paths");
    let threads = match threads {
        Threads::Fixed(n) => n.to_string(),
        _ => "0".to_owned(),
    };
    let words = ["root", "--threads", &threads].into_iter().chain(expression.iter().copied());
    let arguments = words.map(OsString::from).chain(["-fprint0".into(), output.clone().into_os_string()]);
    let messages = Arc::new(Messages::default());
    let parsed = Find::parse(arguments, volume, Locale::from_environment(), messages.clone()).expect("valid");
    let success = parsed.run(volume).success;
    let printed = std::fs::read(&output).expect("the file that -fprint0 makes");
    let all: Vec<_> = records(&printed, 0).map(<[u8]>::to_vec).collect();
    let paths: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!(paths.len(), all.len(), "a path was found twice");
    Found { paths, messages: messages.take(), success }
}

fn count_of(messages: &[Vec<u8>], errno: Errno) -> usize {
    let reason = errno_text(errno).into_bytes();
    messages.iter().filter(|message| message.ends_with(&reason)).count()
}

#[test]
fn find_prints_what_is_listed_and_reports_what_cannot_be_read() {
    for_random_trees(|volume, tree, threads| {
        let reached = tree.reachable(|_| true);
        let unreadable = |wanted: Errno| {
            let errors = reached.iter().filter(|entry| is_directory(entry)).filter_map(|e| e.reading_error());
            errors.filter(|(_, errno)| *errno == wanted).count()
        };
        let found = find(volume, threads, &[]);
        assert_eq!(found.paths, reached.iter().map(|entry| entry.path.clone()).collect());
        for errno in [Errno::ACCESS, Errno::IO, Errno::NOENT] {
            assert_eq!(count_of(&found.messages, errno), unreadable(errno), "{errno}");
        }
        assert_eq!(found.success, found.messages.is_empty());
        let found = find(volume, threads, &["-ignore_readdir_race"]);
        assert_eq!(found.messages.len(), unreadable(Errno::ACCESS) + unreadable(Errno::IO));
    });
}

#[test]
fn find_tests_attributes_and_reports_those_it_cannot_have() {
    for_random_trees(|volume, tree, threads| {
        let is_known = |entry: &Entry| entry.error_of(Operation::Stat).is_none();
        // An entry of unknown type is not descended into.
        let reached = tree.reachable(is_known);
        let found = find(volume, threads, &["-size", "-150c"]);
        let small = |entry: &&&Entry| is_known(entry) && !is_directory(entry) && entry.size < 150;
        assert_eq!(found.paths, reached.iter().filter(small).map(|entry| entry.path.clone()).collect());
        let unknown = reached.iter().filter(|entry| !is_known(entry)).count();
        let unreadable = reached.iter().filter(|entry| is_known(entry) && is_directory(entry));
        let expected = unknown + unreadable.filter(|entry| entry.reading_error().is_some()).count();
        assert_eq!(found.messages.len(), expected);
    });
}

#[test]
fn find_asks_the_volume_for_permissions() {
    let volume = MemoryVolume::default();
    volume.create_dir("root").expect("mkdir");
    for (name, mode) in [("plain", 0o644), ("command", 0o755), ("strange", 0o755)] {
        volume.write(format!("root/{name}"), b"").expect("write");
        volume.set_mode(format!("root/{name}"), mode).expect("chmod");
    }
    volume.fail("root/strange", Operation::CheckAccess, Errno::IO);
    let found = find(&volume, Threads::Fixed(1), &["-type", "f", "-executable"]);
    assert_eq!(found.paths, BTreeSet::from([b"root/command".to_vec()]));
    assert!(found.success, "what may not be done is no error");
}

#[test]
fn find_says_where_no_command_can_start() {
    let volume = MemoryVolume::default();
    volume.create_dir("root").expect("mkdir");
    volume.write("root/file", b"").expect("write");
    for ending in [&[";"][..], &["{}", "+"]] {
        let expression = [&["-name", "file", "-execdir", "true"][..], ending].concat();
        let found = find(&volume, Threads::Fixed(1), &expression);
        assert_eq!(count_of(&found.messages, Errno::OPNOTSUPP), 1, "{:?}", found.messages);
        assert!(!found.success);
    }
}

#[test]
fn find_deletes_what_it_can() {
    for_random_trees(|_, tree, threads| {
        let volume = MemoryVolume::default();
        let wanted = |entry: &Entry| entry.trouble == Trouble::None;
        for entry in tree.reachable(wanted).into_iter().filter(|entry| wanted(entry)) {
            let put = match entry.kind {
                FileKind::Directory => volume.create_dir(&entry.path),
                FileKind::Symlink => volume.symlink("nowhere", &entry.path),
                _ => volume.write(&entry.path, b""),
            };
            put.expect("the name is new");
        }
        volume.write("root/kept", b"").expect("write");
        volume.fail("root/kept", Operation::Remove, Errno::BUSY);
        let found = find(&volume, threads, &["-delete"]);
        assert!(!found.success);
        assert_eq!(volume.names("/root"), Ok(vec![c"kept".to_owned()]));
        assert_eq!(
            (count_of(&found.messages, Errno::BUSY), count_of(&found.messages, Errno::NOTEMPTY)),
            (1, 1)
        );
    });
}

/// Collects the output of `du`.
#[derive(Default)]
struct Usage {
    lines: Mutex<Vec<u8>>,
    problems: Mutex<BTreeSet<(Vec<u8>, String)>>,
}

impl Sink for Usage {
    fn lines(&self, lines: &[u8]) {
        self.lines.lock().expect("no panic").extend_from_slice(lines);
    }

    fn problem(&self, problem: &Problem<'_>) {
        let what = (problem.path.to_vec(), problem.operation.to_string());
        assert!(self.problems.lock().expect("no panic").insert(what), "a problem was reported twice");
    }

    fn odd_time(&self, seconds: i64) {
        panic!("no times were asked for, but {seconds}");
    }
}

fn usage_options(threads: Threads) -> Options {
    let sizes = Sizes { format: SizeFormat::BYTES, locale: Locale::from_environment() };
    Options {
        measure: Measure::Inodes,
        lines: Lines::All,
        max_depth: u32::MAX,
        hard_links: HardLinks::Each,
        subdirectories: Subdirectories::Included,
        file_systems: FileSystems::All,
        follow: FollowPolicy::Never,
        exclude: Exclude::default(),
        threshold: None,
        time: None,
        grand_total: GrandTotal::Omit,
        format: LineFormat::Text { sizes, terminator: 0 },
        threads,
        cancellation: Cancellation::default(),
    }
}

/// Every path with the number of inodes at and below it.
fn inodes_below(known: &[&&Entry]) -> BTreeMap<Vec<u8>, usize> {
    let is_below =
        |path: &[u8], above: &[u8]| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
    let count = |above: &Entry| known.iter().filter(|entry| is_below(&entry.path, &above.path)).count();
    known.iter().map(|entry| (entry.path.clone(), 1 + count(entry))).collect()
}

#[test]
fn du_adds_up_what_it_can_see_and_reports_the_rest() {
    for_random_trees(|volume, tree, threads| {
        let is_known = |entry: &Entry| entry.error_of(Operation::Stat).is_none();
        let reached = tree.reachable(is_known);
        let known: Vec<_> = reached.iter().filter(|entry| is_known(entry)).collect();
        let usage = Usage::default();
        measure(volume, &[c"root".to_owned()], &usage_options(threads), &usage, &Activity::default());
        let printed = usage.lines.into_inner().expect("no panic");
        let mut lines = BTreeMap::new();
        for line in records(&printed, 0) {
            let tab = line.iter().position(|&b| b == b'\t').expect("a number and a path");
            let number = std::str::from_utf8(&line[..tab]).expect("digits").parse().expect("a number");
            assert!(lines.insert(line[tab + 1..].to_vec(), number).is_none(), "a line twice");
        }
        assert_eq!(lines, inodes_below(&known));
        let unknown = reached.iter().filter(|entry| !is_known(entry)).map(|e| (e, Operation::Stat));
        let unreadable = known.iter().filter(|entry| is_directory(entry));
        let unreadable = unreadable.filter_map(|e| e.reading_error().map(|(operation, _)| (*e, operation)));
        let problems =
            unknown.chain(unreadable).map(|(e, operation)| (e.path.clone(), operation.to_string()));
        assert_eq!(usage.problems.into_inner().expect("no panic"), problems.collect());
    });
}

/// The paths in a listing of trees: sections of a directory's path, a colon, and its names.
fn listed_paths(text: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut paths = BTreeSet::new();
    let (mut directory, mut begins) = (Vec::new(), true);
    for line in records(text, b'\n') {
        match line {
            b"" => begins = true,
            line if begins => {
                directory = line.strip_suffix(b":").expect("a section begins with its directory").to_vec();
                begins = false;
            }
            name => assert!(paths.insert([&directory[..], b"/", name].concat()), "listed twice"),
        }
    }
    paths
}

#[test]
fn ls_lists_trees_and_reports_what_it_cannot_open() {
    for_random_trees(|volume, tree, threads| {
        let options = ListOptions {
            depth: Depth::Tree,
            hidden: Hidden::Show,
            sort: SortKey::None,
            threads,
            ..ListOptions::new(Locale::from_environment())
        };
        let (messages, mut text) = (Messages::default(), Vec::new());
        let console = |message: &[u8]| messages.report(message);
        let activity = Activity::default();
        let sinks =
            Sinks { writer: Box::new(&mut text), flush: Flush::Full, console: &console, activity: &activity };
        let outcome = list(volume, &[c"root".to_owned()], &options, sinks);
        let reached = tree.reachable(|_| true);
        let below = reached.iter().filter(|entry| entry.path != b"root").map(|entry| entry.path.clone());
        assert_eq!(listed_paths(&text), below.collect());
        let unreadable =
            reached.iter().filter(|entry| is_directory(entry) && entry.reading_error().is_some());
        let unreadable = unreadable.count();
        assert_eq!(messages.take().len(), unreadable);
        assert_eq!(outcome.severity, if unreadable > 0 { Severity::Minor } else { Severity::None });
    });
}
