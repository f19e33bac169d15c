//! Threads that help with a copy of several parts.
//!
//! Whoever has a large copy to make takes its parts one after the other, and starts helpers as long as they would shorten
//! that, which do the same. Copies that are made at once draw on one number of helpers: the first has them until it ends,
//! and whatever is still going on then gets them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many helpers there may be yet.
#[derive(Debug)]
pub struct Helpers {
    free: AtomicUsize,
}

/// One helper, who is free again when it is dropped.
#[derive(Debug)]
struct Helper<'a>(&'a Helpers);

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

impl Helpers {
    /// At most so many at once.
    pub fn new(most: usize) -> Self {
        Helpers { free: AtomicUsize::new(most) }
    }

    fn take(&self) -> Option<Helper<'_>> {
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        taken.ok().map(|_| Helper(self))
    }

    /// Calls `work` once with the number of each part, from 0, and a buffer of the thread, which is `buffer` in this one. Between
    /// its own parts, this thread asks whether help is wanted.
    ///
    /// # Errors
    /// The first of any part. Then not all parts have been worked on.
    pub fn share<E: Send>(
        &self,
        parts: u64,
        buffer: &mut Vec<u8>,
        mut wants_help: impl FnMut() -> bool,
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
            let mut helpers = 0;
            while let Some(part) = take() {
                while helpers + 1 < parts && has_more() && wants_help() {
                    let Some(helper) = self.take() else { break };
                    let started = thread::Builder::new().spawn_scoped(scope, || {
                        let (_helper, mut buffer) = (helper, Vec::new());
                        while let Some(part) = take() {
                            work_on(part, &mut buffer);
                        }
                    });
                    if started.is_err() {
                        // It goes on without.
                        break;
                    }
                    helpers += 1;
                }
                work_on(part, buffer);
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// How often each part was worked on, and by how many threads.
    fn shared(
        helpers: &Helpers,
        parts: u64,
        work: impl Fn(u64) -> Result<(), u64> + Sync,
    ) -> (Result<(), u64>, usize) {
        let (done, threads) = (Mutex::new(Vec::new()), Mutex::new(std::collections::HashSet::new()));
        let result = helpers.share(
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
        let helpers = Helpers::new(3);
        for parts in [0, 1, 2, 3, 4, 5, 1000] {
            assert!(shared(&helpers, parts, |_| Ok(())).1 <= 4, "{parts}");
        }
    }

    #[test]
    fn as_many_help_as_may() {
        let all = Barrier::new(4);
        let helpers = Helpers::new(3);
        let meeting = |part| {
            if part < 4 {
                all.wait();
            }
            Ok(())
        };
        assert_eq!(shared(&helpers, 8, meeting), (Ok(()), 4));
        assert_eq!(shared(&helpers, 8, meeting), (Ok(()), 4), "those of before are free again");
        assert_eq!(shared(&Helpers::new(0), 8, |_| Ok(())), (Ok(()), 1));
        assert_eq!(shared(&helpers, 1, |_| Ok(())), (Ok(()), 1));
    }

    #[test]
    fn nobody_helps_who_is_not_wanted() {
        let here = thread::current().id();
        let work = |_, _: &mut Vec<u8>| if thread::current().id() == here { Ok(()) } else { Err(()) };
        assert_eq!(Helpers::new(3).share(8, &mut Vec::new(), || false, work), Ok(()));
    }

    #[test]
    fn the_first_error_ends_it() {
        let helpers = Helpers::new(3);
        assert_eq!(shared(&helpers, 1 << 40, |part| if part == 5 { Err(part) } else { Ok(()) }).0, Err(5));
    }
}
