//! Sharing the parts of one large copy among threads.
//!
//! The thread that makes a copy takes its parts one after the other. As long as more threads would shorten that, and
//! their number allows it, it starts others, which take parts as well. Copies that are made at once share one
//! [`Budget`]: the first one uses it until it ends, and the others go on with what it gives back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use millstream_system::concurrency::Budget;

/// Calls `work` once with the number of each part, from 0, and a buffer of the calling thread, which is `buffer` in
/// this one. Before each of its own parts, this thread asks whether more threads are wanted; there are never more than
/// `budget` and that of the process allow.
///
/// # Errors
/// The first of any part. Then not all parts have been worked on.
pub(crate) fn share<E: Send>(
    budget: &Budget,
    parts: u64,
    buffer: &mut Vec<u8>,
    mut wants_more: impl FnMut() -> bool,
    work: impl Fn(u64, &mut Vec<u8>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let has_more = || next.load(Ordering::Relaxed) < parts;
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&part| part < parts);
    let work_on = |part, buffer: &mut Vec<u8>| {
        if let Err(error) = work(part, buffer) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            next.store(parts, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let mut started = 0;
        while let Some(part) = take() {
            while started + 1 < parts && has_more() && wants_more() {
                let Some(permits) = budget.take().zip(Budget::of_process().take()) else { break };
                let thread = thread::Builder::new().spawn_scoped(scope, || {
                    let (_permits, mut buffer) = (permits, Vec::new());
                    while let Some(part) = take() {
                        work_on(part, &mut buffer);
                    }
                });
                if thread.is_err() {
                    // The threads that there are do the work.
                    break;
                }
                started += 1;
            }
            work_on(part, buffer);
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    /// How often each part was worked on, and by how many threads.
    fn shared(
        budget: &Budget,
        parts: u64,
        work: impl Fn(u64) -> Result<(), u64> + Sync,
    ) -> (Result<(), u64>, usize) {
        let (done, threads) = (Mutex::new(Vec::new()), Mutex::new(HashSet::new()));
        let result = share(
            budget,
            parts,
            &mut Vec::new(),
            || true,
            |part, _| {
                done.lock().expect("no panic").push(part);
                threads.lock().expect("no panic").insert(thread::current().id());
                work(part)
            },
        );
        let mut done = done.into_inner().expect("no panic");
        done.sort_unstable();
        if result.is_ok() {
            assert_eq!(done, (0..parts).collect::<Vec<_>>());
        } else {
            assert!(done.windows(2).all(|pair| pair[0] < pair[1]), "{done:?}");
        }
        (result, threads.into_inner().expect("no panic").len())
    }

    #[test]
    fn each_part_is_worked_on_once() {
        let budget = Budget::new(3);
        for parts in [0, 1, 2, 3, 4, 5, 1000] {
            assert!(shared(&budget, parts, |_| Ok(())).1 <= 4, "{parts}");
        }
    }

    #[test]
    fn there_are_as_many_threads_as_the_budget_allows() {
        let all = Barrier::new(4);
        let budget = Budget::new(3);
        let meeting = |part| {
            if part < 4 {
                all.wait();
            }
            Ok(())
        };
        assert_eq!(shared(&budget, 8, meeting), (Ok(()), 4));
        assert_eq!(shared(&budget, 8, meeting), (Ok(()), 4), "the first ones have given their permits back");
        assert_eq!(shared(&Budget::new(0), 8, |_| Ok(())), (Ok(()), 1));
        assert_eq!(shared(&budget, 1, |_| Ok(())), (Ok(()), 1));
    }

    #[test]
    fn no_thread_is_started_that_is_not_wanted() {
        let here = thread::current().id();
        let work = |_, _: &mut Vec<u8>| if thread::current().id() == here { Ok(()) } else { Err(()) };
        assert_eq!(share(&Budget::new(3), 8, &mut Vec::new(), || false, work), Ok(()));
    }

    #[test]
    fn the_first_error_ends_it() {
        let fails = |part| if part == 5 { Err(part) } else { Ok(()) };
        assert_eq!(shared(&Budget::new(3), 1 << 40, fails).0, Err(5));
    }
}
