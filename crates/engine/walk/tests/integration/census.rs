//! What a traversal has found, counted while it runs.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millstream_posix::PosixVolume;
use millstream_vfs::FileKind;
use millstream_walk::{
    Census, Chunk, Descend, Directory, FanOut, Fault, FaultSite, HandleRetention, Threads, Visitor,
    WalkOptions, walk,
};

/// Descends into every directory, once more when it has been left if `twice`, and records the known totals.
struct Watcher {
    census: Arc<Census>,
    twice: bool,
    done: AtomicU64,
    /// Totals that were known at a visit, with the number of entries done by then.
    known: Mutex<Vec<(u64, u64)>>,
}

impl Visitor for Watcher {
    type Volume = PosixVolume;
    type State = AtomicU64;
    type Worker = ();

    fn root_state(&self) -> AtomicU64 {
        AtomicU64::new(0)
    }

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(
        &self,
        (): &mut (),
        chunk: &Chunk<'_, PosixVolume, AtomicU64>,
        descend: &mut Descend<'_, PosixVolume, AtomicU64>,
    ) {
        if let Some(total) = self.census.total() {
            self.known.lock().expect("no panic").push((total, self.done.load(Ordering::Relaxed)));
        }
        // As a call to the volume would.
        std::thread::sleep(Duration::from_micros(300));
        for entry in chunk.entries() {
            self.done.fetch_add(1, Ordering::Relaxed);
            if entry.kind() == Ok(FileKind::Directory) {
                descend.into_entry(&entry, AtomicU64::new(0));
            }
        }
    }

    fn again(&self, directory: &Directory<PosixVolume, AtomicU64>) -> bool {
        self.twice && directory.depth().is_some() && directory.state().fetch_add(1, Ordering::Relaxed) == 0
    }

    fn fault(&self, (): &mut (), _: &FaultSite<'_, PosixVolume, AtomicU64>, fault: &Fault) {
        panic!("{fault}");
    }
}

/// Visits the entries of `operands` with a census; returns what was done, and the totals that were known on the way.
fn watch(operands: &[&Path], threads: Threads, twice: bool) -> (u64, Vec<(u64, u64)>) {
    let census = Arc::new(Census::default());
    let names: Vec<_> =
        operands.iter().map(|path| CString::new(path.as_os_str().as_bytes()).expect("no NUL")).collect();
    let watcher =
        Watcher { census: Arc::clone(&census), twice, done: AtomicU64::new(0), known: Mutex::default() };
    let options = WalkOptions {
        threads,
        // A directory is reopened from the one above it.
        retention: HandleRetention::UntilLeft,
        census: Some(Arc::clone(&census)),
        ..WalkOptions::default()
    };
    census.expect(names.len());
    // One after the other, like operands that depend on each other.
    names.chunks(1).for_each(|one| {
        walk(&PosixVolume, one, &watcher, &options);
    });
    let done = watcher.done.into_inner();
    assert_eq!((census.total(), census.found()), (Some(done), done), "in the end all is known");
    (done, watcher.known.into_inner().expect("no panic"))
}

fn fill(directory: &Path, files: usize) {
    std::fs::create_dir(directory).expect("mkdir");
    (0..files).for_each(|i| {
        std::fs::File::create(directory.join(format!("file{i}"))).expect("create");
    });
}

#[test]
fn a_total_is_known_only_when_it_is_right() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let (nested, flat) = (scratch.path().join("nested"), scratch.path().join("flat"));
    fill(&nested, 30);
    for i in 0..20 {
        fill(&nested.join(format!("d{i}")), 300);
        fill(&nested.join(format!("d{i}/e")), 5);
    }
    fill(&flat, 5000);
    for threads in [Threads::Fixed(1), Threads::Fixed(8), Threads::default()] {
        let (done, known) = watch(&[&nested, &flat], threads, false);
        assert_eq!(done, 2 + 30 + 20 * (1 + 300 + 1 + 5) + 5000);
        assert!(known.iter().all(|&(total, _)| total == done), "{done} {known:?}");
    }
}

#[test]
fn the_total_of_a_large_directory_is_known_long_before_its_end() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let flat = scratch.path().join("flat");
    fill(&flat, 5000);
    let (done, known) = watch(&[&flat], Threads::Fixed(4), false);
    let first = known.iter().map(|&(_, by_then)| by_then).min();
    assert!(first.is_some_and(|by_then| by_then < done / 2), "of {done}: {known:?}");
}

#[test]
fn the_total_is_known_before_the_last_entries_are_visited() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let one_batch = scratch.path().join("one_batch");
    fill(&one_batch, 900);
    for threads in [1, 2, 8] {
        let (done, known) = watch(&[&one_batch], Threads::Fixed(threads), false);
        assert_eq!(done, 901);
        assert_eq!(known.first(), Some(&(901, 1)), "with {threads} threads: {known:?}");
    }
}

#[test]
fn what_is_read_again_is_found_again() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let top = scratch.path().join("top");
    fill(&top, 10);
    fill(&top.join("below"), 10);
    let (done, _) = watch(&[&top], Threads::Fixed(2), true);
    // `below` is read twice in each of the two readings of `top`.
    assert_eq!(done, 1 + 2 * (11 + 2 * 10));
}
