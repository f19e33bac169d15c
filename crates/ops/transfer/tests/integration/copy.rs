//! Copying when one of its threads panics: the panic is passed on, and nobody waits for what that thread had begun. And
//! resumed copies, with injected errors.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use millstream_memory::MemoryVolume;
use millstream_operation::activity::Activity;
use millstream_posix::PosixVolume;
use millstream_transfer::copy::*;
use millstream_vfs::{Dir, Errno, NodeKind, Operation, SymlinkBehavior, Volume};
use millstream_walk::Threads;

const PATIENCE: Duration = Duration::from_secs(60);
const LARGE: u64 = 9 << 20;

/// What the sink panics at.
#[derive(Clone, Copy, Debug)]
enum At {
    Problem,
    Lines(&'static str),
}

struct Panics(At);

impl Sink for Panics {
    fn lines(&self, lines: &[u8]) {
        if let At::Lines(part) = self.0 {
            assert!(!String::from_utf8_lossy(lines).contains(part), "told of {part}, as it was to be");
        }
    }

    fn problem(&self, problem: &Problem<'_>) {
        assert!(!matches!(self.0, At::Problem), "{:?}, as it was to be", problem.trouble);
    }

    fn given_twice(&self, _source: &[u8], _is_directory: bool) {}

    fn confirm(&self, _question: &Question<'_>) -> bool {
        false
    }
}

fn options(reflink: Reflink, threads: usize) -> Options {
    Options {
        directories: Directories::Copy,
        specials: Specials::Recreate,
        preserve: Preserve { links: true, ..Preserve::NONE },
        reflink,
        sparse: Sparse::Never,
        placement: Placement::Atomic,
        trace: Trace::Json,
        threads: Threads::Fixed(threads),
        ..Options::default()
    }
}

fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

/// Files of `bytes` with a name in each of several directories.
fn grow(root: &Path, bytes: u64) {
    for directory in 0..6 {
        let directory = root.join(format!("d{directory}"));
        fs::create_dir_all(&directory).expect("a directory");
        for file in 0..4 {
            let (first, name) = (root.join(format!("d0/f{file}")), directory.join(format!("f{file}")));
            if first == name {
                File::create(&first).and_then(|file| file.set_len(bytes)).expect("a file");
            } else {
                fs::hard_link(&first, &name).expect("a link");
            }
        }
    }
}

/// Whether copying panics, as it must in the end, however many threads there are.
fn panics(root: PathBuf, reflink: Reflink, threads: usize, at: At) -> bool {
    let (outcome, told) = mpsc::channel();
    thread::spawn(move || {
        let (sources, copy_path) = ([path(&root.join("source"))], path(&root.join("copy")));
        let (options, activity) = (options(reflink, threads), Activity::default());
        let copied = catch_unwind(AssertUnwindSafe(|| {
            let destination = Destination::Exactly(copy_path);
            copy(&PosixVolume, &sources, &destination, &options, &Panics(at), &activity)
        }));
        outcome.send(copied.is_err())
    });
    told.recv_timeout(PATIENCE)
        .unwrap_or_else(|_| panic!("{threads} threads wait for one that is gone: {at:?}"))
}

#[test]
fn a_panic_ends_the_copying() {
    for bytes in [100, LARGE] {
        for threads in [1, 2, 5] {
            for (reflink, at) in [
                // While other names wait for the copy: no data is shared between files of this file system.
                (Reflink::Always, At::Problem),
                (Reflink::Never, At::Lines("f2")),
                (Reflink::Never, At::Lines("d3")),
            ] {
                let scratch = tempfile::tempdir_in("/dev/shm").expect("scratch");
                grow(&scratch.path().join("source"), bytes);
                assert!(panics(scratch.path().to_owned(), reflink, threads, at), "{bytes} {threads} {at:?}");
            }
        }
    }
}

/// Counts problems.
#[derive(Default)]
struct Problems(AtomicUsize);

impl Sink for Problems {
    fn lines(&self, _: &[u8]) {}

    fn problem(&self, problem: &Problem<'_>) {
        assert_eq!(problem.errno, Some(Errno::IO), "{problem:?}");
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn given_twice(&self, _source: &[u8], _is_directory: bool) {}

    fn confirm(&self, _question: &Question<'_>) -> bool {
        false
    }
}

#[test]
fn a_resumed_copy_reads_again_what_could_not_be_read() {
    for failing in [Operation::ListXattr, Operation::GetXattr] {
        let volume = MemoryVolume::default();
        volume.create_dir("source").expect("a directory");
        volume.create_node("source/pipe", NodeKind::Fifo).expect("a pipe");
        let pipe = volume.base().open_dir(c"source", SymlinkBehavior::NoFollow).expect("opens");
        pipe.set_xattr(c"pipe", c"user.color", b"red").expect("an attribute");
        volume.fail("source/pipe", failing, Errno::IO);
        let options = Options {
            directories: Directories::Copy,
            specials: Specials::Recreate,
            update: Update::Incomplete,
            preserve: Preserve { timestamps: true, xattrs: Xattrs::Required, ..Preserve::NONE },
            ..Options::default()
        };
        for run in ["first", "resumed"] {
            let problems = Problems::default();
            let destination = Destination::Exactly(c"copy".to_owned());
            copy(&volume, &[c"source".to_owned()], &destination, &options, &problems, &Activity::default())
                .expect("begins");
            assert_eq!(problems.0.into_inner(), 1, "{failing:?}, {run} run");
        }
    }
}
