//! Open handles are bounded whatever the tree. A separate program, because it lowers a limit of the whole process.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_posix::PosixVolume;
use millstream_vfs::{Fields, FileKind};
use millstream_walk::{
    Chunk, Descend, Directory, FanOut, Fault, FaultSite, HandleRetention, Order, Threads, Visitor,
    WalkOptions, walk,
};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const LEVELS: u64 = 300;
const FILES: u64 = 75;

/// Counts and stats all entries; any fault fails the test.
struct Counter {
    fan_out: FanOut,
    entries: AtomicU64,
    left: AtomicU64,
}

impl Visitor for Counter {
    type Volume = PosixVolume;
    type State = ();
    type Worker = ();

    fn root_state(&self) {}

    fn worker(&self) {}

    fn fan_out(&self) -> FanOut {
        self.fan_out
    }

    fn visit(
        &self,
        (): &mut (),
        chunk: &Chunk<'_, PosixVolume, ()>,
        descend: &mut Descend<'_, PosixVolume, ()>,
    ) {
        for entry in chunk.entries() {
            self.entries.fetch_add(1, Ordering::Relaxed);
            if entry.metadata(Fields::KIND).expect("stat").kind() == FileKind::Directory {
                descend.into_entry(&entry, ());
            }
        }
    }

    fn leave(&self, (): &mut (), _: &Arc<Directory<PosixVolume, ()>>) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    fn fault(&self, (): &mut (), place: &FaultSite<'_, PosixVolume, ()>, fault: &Fault) {
        let mut path = Vec::new();
        place.write_path(&mut path);
        panic!("{} levels deep: {fault}", path.split(|&b| b == b'/').count());
    }
}

/// A chain of directories. Each is large enough to be read in several batches, and has a second directory next to the
/// next one.
#[test]
fn a_chain_of_large_directories_needs_few_descriptors() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(scratch.path(), open, Mode::empty()).expect("open");
    for _ in 0..LEVELS {
        for i in 0..FILES {
            let name = format!("{i:0>223}");
            rustix::fs::openat(&dir, name, OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).expect("create");
        }
        rustix::fs::mkdirat(&dir, "beside", Mode::RWXU).expect("mkdir");
        rustix::fs::mkdirat(&dir, "d", Mode::RWXU).expect("mkdir");
        dir = rustix::fs::openat(&dir, "d", open, Mode::empty()).expect("open");
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum }).expect("lower the limit");
    let operand = CString::new(scratch.path().as_os_str().as_bytes()).expect("no NUL");
    for threads in [1, 2, 8] {
        for fan_out in [FanOut::Inline, FanOut::Parallel] {
            for retention in [HandleRetention::UntilChildrenOpen, HandleRetention::UntilLeft] {
                for order in [Order::Completion, Order::DepthFirst { max_waiting_bytes: 100 }] {
                    let counter = Counter { fan_out, entries: AtomicU64::new(0), left: AtomicU64::new(0) };
                    let threads = Threads::Fixed(threads);
                    let options = WalkOptions { threads, order, retention, ..WalkOptions::default() };
                    let stats = walk(&PosixVolume, std::slice::from_ref(&operand), &counter, &options);
                    assert_eq!(counter.entries.into_inner(), 1 + LEVELS * (FILES + 2), "{options:?}");
                    assert_eq!(counter.left.into_inner(), 2 * LEVELS + 2, "and the virtual directory");
                    // How many depends on where the workers are. From the top each time, there would be 150 for each
                    // directory.
                    assert!(stats.reopened <= 6 * stats.directories, "{stats:?} {options:?}");
                }
            }
        }
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("raise it again");
}
