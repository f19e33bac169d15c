//! The traversal of a volume in memory with injected errors, compared with a plain model at every option.

use std::collections::BTreeSet;

use crate::recorder::{DescendAt, Event, Recorder, check_order};
use millstream_memory::MemoryVolume;
use millstream_memory::random::{Entry, Random, RandomTree};
use millstream_vfs::{Errno, Error, Operation};
use millstream_walk::{FanOut, Fault, HandleRetention, Order, Threads, WalkOptions, walk};

type Faults = BTreeSet<(Vec<u8>, String)>;

/// The faults that a traversal should report: unreadable directories and, if it stats entries, unreadable attributes.
fn expected_faults(reached: &[&Entry], fan_out: FanOut) -> Faults {
    let mut faults = Faults::new();
    for entry in reached {
        let reading = entry.reading_error().filter(|_| entry.kind == millstream_vfs::FileKind::Directory);
        let stat = entry.error_of(Operation::Stat).filter(|_| fan_out == FanOut::Parallel);
        for (operation, errno) in reading.into_iter().chain(stat.map(|errno| (Operation::Stat, errno))) {
            faults.insert((entry.path.clone(), Error::new(operation, errno).to_string()));
        }
    }
    faults
}

fn reported_faults(events: &[Event]) -> Faults {
    let mut faults = Faults::new();
    for event in events {
        if let Event::Fault(path, Fault::Volume(error)) = event {
            assert!(faults.insert((path.clone(), error.to_string())), "{} twice", path.escape_ascii());
        }
    }
    faults
}

#[test]
fn every_entry_and_every_error_is_reported_once() {
    let mut random = Random::from_environment();
    for round in 0..40 {
        let volume = MemoryVolume::default();
        let tree = RandomTree::grow(&volume, &mut random, "root", 200);
        let reached = tree.reachable(|_| true);
        let paths: BTreeSet<_> = reached.iter().map(|entry| entry.path.clone()).collect();
        for threads in [Threads::Fixed(1), Threads::Fixed(3), Threads::Fixed(40), Threads::default()] {
            for order in [Order::Completion, Order::DepthFirst { max_waiting_bytes: random.below(200) }] {
                let retention = [HandleRetention::UntilChildrenOpen, HandleRetention::UntilLeft][round % 2];
                let fan_out = [FanOut::Parallel, FanOut::Inline][random.below(2)];
                let at = [DescendAt::Visit, DescendAt::SortedEnd][random.below(2)];
                let narrow = volume.clone().with_max_open_dirs([4, 12, 400][random.below(3)]);
                let recorder = Recorder::new(fan_out, at);
                let options = WalkOptions { threads, order, retention, ..WalkOptions::default() };
                walk(&narrow, &[c"root".to_owned()], &recorder, &options);
                assert_eq!(recorder.visited(), paths, "round {round} {options:?}");
                let events = recorder.events();
                assert_eq!(reported_faults(&events), expected_faults(&reached, fan_out), "{options:?}");
                check_order(&events);
            }
        }
    }
}

/// A directory whose reading fails halfway: the entries read before are visited, the error is reported once, the
/// traversal continues.
#[test]
fn a_partly_readable_directory_ends_early() {
    for threads in [1, 4] {
        let volume = MemoryVolume::default();
        volume.create_dir("root").expect("mkdir");
        volume.create_dir("root/large").expect("mkdir");
        for i in 0..20_000 {
            volume.write(format!("root/large/a-name-to-fill-the-batch-with-{i:05}"), b"").expect("write");
        }
        volume.write("root/beside", b"").expect("write");
        volume.fail_after(1, "root/large", Operation::ReadDir, Errno::IO);
        let recorder = Recorder::new(FanOut::Parallel, DescendAt::Visit);
        let options = WalkOptions { threads: Threads::Fixed(threads), ..WalkOptions::default() };
        walk(&volume, &[c"root".to_owned()], &recorder, &options);
        let visited = recorder.visited();
        assert!(visited.contains(&b"root/beside"[..]));
        assert!((4..20_000).contains(&visited.len()), "{} of a part", visited.len());
        let fault = (b"root/large".to_vec(), "read directory: Input/output error".to_owned());
        assert_eq!(reported_faults(&recorder.events()), Faults::from([fault]));
    }
}
