//! The traversal compared with a plain recursive model, on random trees and with every option.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::recorder::{DescendAt, Event, Names, Recorder, check_order};
use millstream_posix::{PosixDir, PosixVolume};
use millstream_vfs::{Capabilities, Dir, FileKind, RemoveKind, Volume};
use millstream_walk::{
    Chunk, Descend, Directory, FanOut, Fault, FaultSite, FollowPolicy, HandleRetention, Order, Threads,
    Visitor, WalkOptions, walk,
};

/// The POSIX volume with a lower limit of open directories.
#[derive(Debug)]
struct Narrow {
    max_open_dirs: usize,
}

impl Volume for Narrow {
    type Dir = PosixDir;

    fn base(&self) -> PosixDir {
        PosixVolume.base()
    }

    fn max_open_dirs(&self) -> usize {
        self.max_open_dirs
    }

    fn capabilities(&self) -> Capabilities {
        PosixVolume.capabilities()
    }
}

/// A small generator of repeatable numbers (SplitMix64, public domain, Steele et al. 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    /// A name of unusual bytes: newlines, spaces, dashes, invalid UTF-8. It ends in `i`, which makes it unique.
    fn name(&mut self, i: u64) -> OsString {
        let alphabet = b"a-Z \n\t\\'\"*?[\xff\xc3\xa9\x01.";
        let mut name: Vec<u8> = (0..self.below(12)).map(|_| alphabet[self.below(17) as usize]).collect();
        name.extend_from_slice(format!("{i}").as_bytes());
        OsString::from_vec(name)
    }
}

/// Most entries of a random tree, not counting the files that fill a directory.
const MOST_GROWN: u64 = 60;

/// Grows a random tree and returns the paths in it, the root included.
fn grow(random: &mut Random, root: &Path) -> BTreeSet<Vec<u8>> {
    let mut paths = BTreeSet::from([root.as_os_str().as_bytes().to_vec()]);
    let mut dirs = vec![root.to_path_buf()];
    for i in 0..random.below(MOST_GROWN) + 1 {
        let parent = dirs[random.below(dirs.len() as u64) as usize].clone();
        let fill = if random.below(8) == 0 { 1500 } else { random.below(5) };
        let path = parent.join(random.name(i));
        match random.below(4) {
            0 | 1 => {
                std::fs::create_dir(&path).expect("mkdir");
                for f in 0..fill {
                    let file = path.join(random.name(MOST_GROWN + 1 + f));
                    std::fs::write(&file, b"x").expect("write");
                    paths.insert(file.as_os_str().as_bytes().to_vec());
                }
                dirs.push(path.clone());
            }
            2 => std::os::unix::fs::symlink(&dirs[random.below(dirs.len() as u64) as usize], &path)
                .expect("symlink"),
            _ => std::fs::write(&path, b"").expect("write"),
        }
        paths.insert(path.as_os_str().as_bytes().to_vec());
    }
    paths
}

fn seed() -> u64 {
    match std::env::var("MILLSTREAM_SEED") {
        Ok(seed) => seed.parse().expect("MILLSTREAM_SEED is a number"),
        Err(_) => std::time::UNIX_EPOCH.elapsed().expect("clock").subsec_nanos().into(),
    }
}

fn operand(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

#[test]
fn every_entry_is_visited_once_with_all_options() {
    let seed = seed();
    println!("MILLSTREAM_SEED={seed}");
    let mut random = Random(seed);
    for round in 0..8 {
        let scratch = tempfile::tempdir().expect("tempdir");
        let root = scratch.path().join("root");
        std::fs::create_dir(&root).expect("mkdir");
        let expected = grow(&mut random, &root);
        for threads in [Threads::Fixed(1), Threads::Fixed(3), Threads::Fixed(40), Threads::default()] {
            for order in
                [Order::Completion, Order::DepthFirst { max_waiting_bytes: random.below(200) as usize }]
            {
                let retention = [HandleRetention::UntilChildrenOpen, HandleRetention::UntilLeft][round % 2];
                let fan_out = [FanOut::Parallel, FanOut::Inline][random.below(2) as usize];
                let at = [DescendAt::Visit, DescendAt::SortedEnd][random.below(2) as usize];
                let max_open_dirs = [4, 12, 400][random.below(3) as usize];
                let recorder = Recorder::new(fan_out, at);
                let options = WalkOptions { threads, order, retention, ..WalkOptions::default() };
                walk(&Narrow { max_open_dirs }, &[operand(&root)], &recorder, &options);
                let visited = recorder.visited();
                let differing: Vec<_> =
                    visited.symmetric_difference(&expected).map(|p| p.escape_ascii().to_string()).collect();
                assert!(
                    differing.is_empty(),
                    "seed {seed} round {round} {max_open_dirs} {options:?}: {differing:?}"
                );
                if round < 3 {
                    check_order(&recorder.events());
                }
                if at == DescendAt::SortedEnd && order != Order::Completion {
                    let emitted = recorder.emitted.lock().expect("emitted").clone();
                    let sorted: Vec<_> =
                        emitted.iter().map(|p| PathBuf::from(OsStr::from_bytes(p))).collect();
                    assert!(sorted.is_sorted(), "depth first in the order of descending: {sorted:?}");
                }
            }
        }
    }
}

/// Creates a chain of directories, and an empty one next to every `beside`th of them.
fn make_chain(top: &Path, levels: usize, beside: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    std::fs::create_dir(top).expect("mkdir");
    let mut fd = open(top, OFlags::DIRECTORY, Mode::empty()).expect("open");
    for level in 0..levels {
        if level % beside == 0 {
            mkdirat(&fd, "beside", Mode::RWXU).expect("mkdirat");
        }
        mkdirat(&fd, "d", Mode::RWXU).expect("mkdirat");
        fd = openat(&fd, "d", OFlags::DIRECTORY, Mode::empty()).expect("openat");
    }
}

/// Returning to directories takes a few calls for each of them, not one for each level above it, however few handles
/// there are and whichever worker opens or leaves a directory.
#[test]
fn deep_chains_with_few_handles() {
    const LEVELS: usize = 2_000;
    let scratch = tempfile::tempdir().expect("tempdir");
    for (round, (beside, threads, max_open_dirs)) in
        [(usize::MAX, 2, 40), (usize::MAX, 1, 8), (1, 4, 40), (1, 2, 200), (10, 4, 40), (3, 1, 4)]
            .into_iter()
            .enumerate()
    {
        let top = scratch.path().join(format!("top{round}"));
        make_chain(&top, LEVELS, beside);
        let directories = 1 + LEVELS + LEVELS.div_ceil(beside);
        for (retention, order) in [
            (HandleRetention::UntilChildrenOpen, Order::Completion),
            (HandleRetention::UntilChildrenOpen, Order::DepthFirst { max_waiting_bytes: 100 }),
            (HandleRetention::UntilLeft, Order::Completion),
        ] {
            let removed = AtomicUsize::new(0);
            // Every directory is removed when it is left, relative to the handle of its parent.
            let remover = AtLeave(|directory: &Directory<Narrow, ()>| {
                if retention != HandleRetention::UntilLeft || directory.depth().is_none() {
                    return;
                }
                let parent = directory.parent().expect("not the root").handle().expect("the parent's handle");
                parent.remove(directory.name(), RemoveKind::Directory).expect("rmdir");
                removed.fetch_add(1, Ordering::Relaxed);
            });
            let options =
                WalkOptions { threads: Threads::Fixed(threads), retention, order, ..WalkOptions::default() };
            let stats = walk(&Narrow { max_open_dirs }, &[operand(&top)], &remover, &options);
            assert_eq!(stats.directories, directories as u64);
            // A few each: 3.08 were seen on a busy machine. Without their parents' handles, it would be a thousand
            // each.
            let reopened_at_most = 4 * directories as u64;
            assert!(stats.reopened <= reopened_at_most, "beside {beside}: {stats:?} {options:?}");
            let expected = if retention == HandleRetention::UntilLeft { directories } else { 0 };
            assert_eq!(removed.into_inner(), expected);
        }
        assert!(!top.exists());
    }
}

/// Descends into every directory, and calls its closure when it leaves one.
struct AtLeave<F>(F);

impl<F: Fn(&Directory<Narrow, ()>) + Sync> Visitor for AtLeave<F> {
    type Volume = Narrow;
    type State = ();
    type Worker = ();

    fn root_state(&self) {}

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        FanOut::Inline
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, Narrow, ()>, descend: &mut Descend<'_, Narrow, ()>) {
        chunk.entries().for_each(|entry| descend.into_entry(&entry, ()));
    }

    fn leave(&self, (): &mut (), directory: &Arc<Directory<Narrow, ()>>) {
        (self.0)(directory);
    }

    fn fault(&self, (): &mut (), _: &FaultSite<'_, Narrow, ()>, fault: &Fault) {
        panic!("{fault}");
    }
}

/// Records entries in order, and asks for each directory to be visited twice.
struct Twice(Recorder<Narrow>);

impl Visitor for Twice {
    type Volume = Narrow;
    type State = AtomicUsize;
    type Worker = ();

    fn root_state(&self) -> AtomicUsize {
        AtomicUsize::new(0)
    }

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        self.0.fan_out
    }

    fn visit(
        &self,
        (): &mut (),
        chunk: &Chunk<'_, Narrow, AtomicUsize>,
        descend: &mut Descend<'_, Narrow, AtomicUsize>,
    ) {
        for entry in chunk.entries() {
            let mut path = Vec::new();
            entry.write_path(&mut path);
            self.0.record(Event::Visited(path));
            if entry.kind() == Ok(FileKind::Directory) {
                descend.into_entry(&entry, AtomicUsize::new(0));
            }
        }
    }

    fn leave(&self, (): &mut (), directory: &Arc<Directory<Narrow, AtomicUsize>>) {
        let mut path = Vec::new();
        directory.write_path(&mut path);
        self.0.record(Event::Left(path));
    }

    fn again(&self, directory: &Directory<Narrow, AtomicUsize>) -> bool {
        directory.depth().is_some() && directory.state().fetch_add(1, Ordering::Relaxed) == 0
    }

    fn fault(&self, (): &mut (), _: &FaultSite<'_, Narrow, AtomicUsize>, fault: &Fault) {
        panic!("{fault}");
    }
}

/// The expected events: depth first in directory order, every directory twice.
fn in_order(path: &Path, events: &mut Vec<Event>) {
    let bytes = path.as_os_str().as_bytes().to_vec();
    events.push(Event::Visited(bytes.clone()));
    if path.is_dir() {
        for _ in 0..2 {
            for entry in std::fs::read_dir(path).expect("readable") {
                in_order(&entry.expect("an entry").path(), events);
            }
            events.push(Event::Left(bytes.clone()));
        }
    }
}

#[test]
fn entries_come_in_order_and_directories_again_when_asked() {
    let scratch = tempfile::tempdir().expect("tempdir");
    for i in 0..5 {
        for j in 0..3 {
            std::fs::create_dir_all(scratch.path().join(format!("d{i}/e{j}"))).expect("mkdir");
            std::fs::write(scratch.path().join(format!("d{i}/e{j}/f")), b"").expect("write");
            std::fs::write(scratch.path().join(format!("d{i}/f{j}")), b"").expect("write");
        }
    }
    let mut expected = Vec::new();
    in_order(scratch.path(), &mut expected);
    expected.push(Event::Left(Vec::new()));
    for retention in [HandleRetention::UntilChildrenOpen, HandleRetention::UntilLeft] {
        let twice = Twice(Recorder::new(FanOut::InOrder, DescendAt::Visit));
        let options = WalkOptions { threads: Threads::Fixed(1), retention, ..WalkOptions::default() };
        walk(&Narrow { max_open_dirs: 100 }, &[operand(scratch.path())], &twice, &options);
        assert_eq!(twice.0.events(), expected);
        let twice = Twice(Recorder::new(FanOut::Parallel, DescendAt::Visit));
        let options = WalkOptions { threads: Threads::Fixed(4), retention, ..WalkOptions::default() };
        walk(&Narrow { max_open_dirs: 100 }, &[operand(scratch.path())], &twice, &options);
        assert_eq!(twice.0.events().len(), expected.len());
    }
}

#[test]
fn a_large_directory_is_visited_in_its_order_when_asked() {
    let scratch = tempfile::tempdir().expect("tempdir");
    (0..20_000).for_each(|i| std::fs::write(scratch.path().join(format!("file-{i}")), b"").expect("write"));
    let entries = std::fs::read_dir(scratch.path()).expect("readable");
    let listed = entries.map(|e| e.expect("an entry").path().as_os_str().as_bytes().to_vec());
    let mut expected = vec![Event::Visited(scratch.path().as_os_str().as_bytes().to_vec())];
    expected.extend(listed.map(Event::Visited));
    for _ in 0..5 {
        let recorder = Recorder::new(FanOut::Sequential, DescendAt::Visit);
        let options = WalkOptions { threads: Threads::Fixed(8), ..WalkOptions::default() };
        walk(&Narrow { max_open_dirs: 100 }, &[operand(scratch.path())], &recorder, &options);
        let visited: Vec<_> =
            recorder.events().into_iter().filter(|event| matches!(event, Event::Visited(_))).collect();
        assert!(visited == expected, "out of order");
    }
}

#[test]
fn followed_links_that_loop_are_reported() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let root = scratch.path().join("root");
    std::fs::create_dir_all(root.join("a/b")).expect("mkdir");
    std::os::unix::fs::symlink("../..", root.join("a/b/up")).expect("symlink");
    std::os::unix::fs::symlink("nowhere", root.join("dangling")).expect("symlink");
    let recorder = Recorder::new(FanOut::Inline, DescendAt::Visit);
    let options = WalkOptions { follow: FollowPolicy::Always, ..WalkOptions::default() };
    walk(&Narrow { max_open_dirs: 100 }, &[operand(&root)], &recorder, &options);
    let faults: Vec<_> = recorder.events().into_iter().filter(|e| matches!(e, Event::Fault(..))).collect();
    let ancestor = root.as_os_str().as_bytes().to_vec();
    let place = root.join("a/b/up").as_os_str().as_bytes().to_vec();
    assert_eq!(faults, [Event::Fault(place, Fault::Loop { ancestor })]);
}

#[test]
fn operands_are_entries_in_their_order() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let names: Vec<_> = (0..700).map(|i| scratch.path().join(format!("f{i}"))).collect();
    names.iter().for_each(|name| std::fs::write(name, b"x").expect("write"));
    let missing = scratch.path().join("missing");
    let operands: Vec<_> = names.iter().chain([&missing]).map(|p| operand(p)).collect();
    let recorder = Recorder::new(FanOut::Parallel, DescendAt::Visit);
    walk(&Narrow { max_open_dirs: 100 }, &operands, &recorder, &WalkOptions::default());
    assert_eq!(recorder.visited().len(), 701);
    let faults = recorder.events().into_iter().filter(|e| matches!(e, Event::Fault(..))).count();
    assert_eq!(faults, 1, "the missing operand");
}

#[test]
fn directory_that_cannot_be_opened_is_reported_and_passed_over() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let file = scratch.path().join("file");
    std::fs::write(&file, b"").expect("write");
    let recorder = Recorder::new(FanOut::Inline, DescendAt::Visit);
    // The operand is a directory when it is examined and a file when it is opened.
    let swapped = SwappedVisitor { inner: recorder };
    walk(&Narrow { max_open_dirs: 100 }, &[operand(&file)], &swapped, &WalkOptions::default());
    let faults: Vec<_> =
        swapped.inner.events().into_iter().filter(|e| matches!(e, Event::Fault(..))).collect();
    assert!(matches!(&faults[..], [Event::Fault(path, Fault::Volume(e))]
        if path == file.as_os_str().as_bytes() && e.errno == millstream_vfs::Errno::NOTDIR));
}

/// Descends into every entry.
struct SwappedVisitor {
    inner: Recorder<Narrow>,
}

impl Visitor for SwappedVisitor {
    type Volume = Narrow;
    type State = Names;
    type Worker = ();

    fn root_state(&self) -> Names {
        Names::default()
    }

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        FanOut::Inline
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, Narrow, Names>, descend: &mut Descend<'_, Narrow, Names>) {
        chunk.entries().for_each(|entry| descend.into_entry(&entry, Names::default()));
    }

    fn fault(&self, worker: &mut (), place: &FaultSite<'_, Narrow, Names>, fault: &Fault) {
        self.inner.fault(worker, place, fault);
    }
}

#[test]
fn cancellation_ends_a_large_walk_early() {
    let scratch = tempfile::tempdir().expect("tempdir");
    for i in 0..300 {
        std::fs::create_dir(scratch.path().join(format!("d{i}"))).expect("mkdir");
    }
    for order in [Order::Completion, Order::DepthFirst { max_waiting_bytes: 10 }] {
        let options = WalkOptions { threads: Threads::Fixed(2), order, ..WalkOptions::default() };
        let left = AtomicUsize::new(0);
        let canceller = AtLeave(|_: &Directory<Narrow, ()>| {
            // The operand has been opened too, and cannot be left before its children.
            if left.fetch_add(1, Ordering::Relaxed) == 18 {
                options.cancellation.cancel();
            }
        });
        let stats = walk(&Narrow { max_open_dirs: 100 }, &[operand(scratch.path())], &canceller, &options);
        // The other worker may be in one more directory; no more are opened.
        assert!((20..=22).contains(&stats.directories), "{order:?}: {} of 301", stats.directories);
    }
}

/// The paths reached when every link is followed, found recursively.
fn follow(path: &Path, above: &mut Vec<(u64, u64)>, paths: &mut BTreeSet<Vec<u8>>) {
    use std::os::unix::fs::MetadataExt;
    paths.insert(path.as_os_str().as_bytes().to_vec());
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let identity = (metadata.dev(), metadata.ino());
    if !metadata.is_dir() || above.contains(&identity) {
        return;
    }
    above.push(identity);
    for entry in std::fs::read_dir(path).expect("readable") {
        follow(&entry.expect("an entry").path(), above, paths);
    }
    above.pop();
}

#[test]
fn following_every_link_reaches_what_the_model_reaches() {
    let seed = seed();
    println!("MILLSTREAM_SEED={seed}");
    let mut random = Random(seed);
    for round in 0..12 {
        let scratch = tempfile::tempdir().expect("tempdir");
        let root = scratch.path().join("root");
        std::fs::create_dir(&root).expect("mkdir");
        // Few directories: the links among them multiply the paths.
        let dirs: Vec<_> = (0..random.below(4) + 1).map(|i| root.join(random.name(i))).collect();
        for (i, dir) in dirs.iter().enumerate() {
            std::fs::create_dir(dir).expect("mkdir");
            std::fs::write(dir.join("file"), b"").expect("write");
            let target = &dirs[random.below(i as u64 + 1) as usize];
            std::os::unix::fs::symlink(target, dir.join("link")).expect("symlink");
            std::os::unix::fs::symlink(random.name(99), dir.join("dangling")).expect("symlink");
        }
        let mut expected = BTreeSet::new();
        follow(&root, &mut Vec::new(), &mut expected);
        let recorder = Recorder::new(FanOut::Inline, DescendAt::Visit);
        let threads = [Threads::Fixed(1), Threads::Fixed(4)][round % 2];
        let options = WalkOptions { follow: FollowPolicy::Always, threads, ..WalkOptions::default() };
        walk(&Narrow { max_open_dirs: 100 }, &[operand(&root)], &recorder, &options);
        assert_eq!(recorder.visited(), expected, "seed {seed} round {round}");
    }
}

#[test]
fn a_tree_that_changes_meanwhile_is_never_left() {
    let seed = seed();
    println!("MILLSTREAM_SEED={seed}");
    let scratch = tempfile::tempdir().expect("tempdir");
    let (root, outside) = (scratch.path().join("root"), scratch.path().join("outside"));
    std::fs::create_dir_all(outside.join("secret")).expect("mkdir");
    let mut random = Random(seed);
    let dirs: Vec<_> = (0..40).map(|i| root.join(format!("d{}/d{i}", i % 7))).collect();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swap = || {
            // Each name is in turn a directory, a link to the outside, a file, and absent.
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let dir = &dirs[random.below(dirs.len() as u64) as usize];
                let _ = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(dir.join("file"), b""));
                let _ = std::fs::remove_dir_all(dir).and_then(|()| std::os::unix::fs::symlink(&outside, dir));
                let _ = std::fs::remove_file(dir).and_then(|()| std::fs::write(dir, b""));
                let _ = std::fs::remove_file(dir);
                let _ = std::fs::create_dir_all(dir);
            }
        };
        scope.spawn(swap);
        for round in 0..200 {
            let recorder = Recorder::new([FanOut::Parallel, FanOut::Inline][round % 2], DescendAt::Visit);
            let options = WalkOptions { threads: Threads::Fixed(1 + round % 3), ..WalkOptions::default() };
            walk(&Narrow { max_open_dirs: [8, 100][round % 2] }, &[operand(&root)], &recorder, &options);
            for event in recorder.events() {
                match event {
                    Event::Visited(path) => {
                        assert!(!path.ends_with(b"secret"), "seed {seed}: {}", path.escape_ascii());
                    }
                    Event::Fault(path, Fault::Volume(error)) => {
                        use millstream_vfs::Errno;
                        let expected = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::STALE];
                        assert!(expected.contains(&error.errno), "{}: {error}", path.escape_ascii());
                    }
                    Event::Fault(..) => panic!("no link is followed, so there is no loop"),
                    Event::Ended(_) | Event::Left(_) => {}
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn panicking_visitor_ends_the_walk() {
    let scratch = tempfile::tempdir().expect("tempdir");
    for i in 0..500 {
        std::fs::create_dir(scratch.path().join(format!("d{i}"))).expect("mkdir");
    }
    let options = WalkOptions { threads: Threads::Fixed(4), ..WalkOptions::default() };
    walk(
        &Narrow { max_open_dirs: 100 },
        &[operand(scratch.path())],
        &Panicking { first: std::thread::current().id(), others_work: AtomicBool::new(false) },
        &options,
    );
}

/// Panics on every worker but the first, which waits for the panic.
struct Panicking {
    first: std::thread::ThreadId,
    others_work: AtomicBool,
}

impl Visitor for Panicking {
    type Volume = Narrow;
    type State = ();
    type Worker = ();

    fn root_state(&self) {}

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        FanOut::Inline
    }

    fn visit(&self, (): &mut (), chunk: &Chunk<'_, Narrow, ()>, descend: &mut Descend<'_, Narrow, ()>) {
        chunk.entries().for_each(|entry| descend.into_entry(&entry, ()));
    }

    fn end_of_directory(
        &self,
        (): &mut (),
        directory: &Arc<Directory<Narrow, ()>>,
        _: &mut Descend<'_, Narrow, ()>,
        _: &mut Vec<u8>,
    ) {
        if directory.depth() == Some(1) {
            let is_first = std::thread::current().id() == self.first;
            while is_first && !self.others_work.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            self.others_work.store(true, Ordering::Relaxed);
            assert!(is_first, "visitor fails");
        }
    }

    fn fault(&self, (): &mut (), _: &FaultSite<'_, Narrow, ()>, _: &Fault) {}
}
