//! Records the copies of files with several links, so that further names become links to the copy.
//!
//! The first thread to meet an inode claims and copies it. Others wait until the copy is complete, or until it has
//! failed and one of them takes over. They wait for a visit in progress or for a copy worker; neither of these ever
//! waits for a claim, so there is no deadlock.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Identity;

#[derive(Debug)]
enum State<C> {
    InTheMaking,
    Done(Arc<C>),
}

#[derive(Debug)]
struct Known<C> {
    copies: HashMap<Identity, State<C>>,
    waiting: usize,
    /// The owner of a claim may have ended.
    is_abandoned: bool,
}

/// Copies by the inode of their source.
#[derive(Debug)]
pub(crate) struct Links<C> {
    known: Mutex<Known<C>>,
    changed: Condvar,
}

impl<C> Default for Links<C> {
    fn default() -> Self {
        let known = Known { copies: HashMap::new(), waiting: 0, is_abandoned: false };
        Links { known: Mutex::new(known), changed: Condvar::new() }
    }
}

/// The state of an inode.
#[derive(Debug)]
pub(crate) enum Claim<C> {
    /// Not copied yet: the caller copies it and then calls [`Links::made`] or [`Links::failed`].
    Ours,
    /// It has been copied.
    Copied(Arc<C>),
}

impl<C> Links<C> {
    fn lock(&self) -> MutexGuard<'_, Known<C>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims an inode, or returns its copy.
    pub(crate) fn claim(&self, identity: Identity) -> Claim<C> {
        let mut known = self.lock();
        loop {
            match known.copies.get(&identity) {
                None => {
                    known.copies.insert(identity, State::InTheMaking);
                    return Claim::Ours;
                }
                Some(State::Done(copied)) => return Claim::Copied(Arc::clone(copied)),
                Some(State::InTheMaking) if known.is_abandoned => return Claim::Ours,
                Some(State::InTheMaking) => {
                    known.waiting += 1;
                    known = self.changed.wait(known).unwrap_or_else(PoisonError::into_inner);
                    known.waiting -= 1;
                }
            }
        }
    }

    /// The copy of a claimed inode is complete.
    pub(crate) fn made(&self, identity: Identity, copied: C) {
        let mut known = self.lock();
        known.copies.insert(identity, State::Done(Arc::new(copied)));
        self.wake(&known);
    }

    /// A claimed inode has not been copied.
    pub(crate) fn failed(&self, identity: Identity) {
        let mut known = self.lock();
        known.copies.remove(&identity);
        self.wake(&known);
    }

    /// The name of a copy now belongs to another file: the next name of its source is copied again.
    pub(crate) fn forget(&self, identity: Identity, copied: &Arc<C>) {
        let mut known = self.lock();
        let is_this =
            matches!(known.copies.get(&identity), Some(State::Done(done)) if Arc::ptr_eq(done, copied));
        if is_this {
            known.copies.remove(&identity);
        }
    }

    /// A thread has ended and its claims with it: nobody waits for them any more.
    pub(crate) fn abandon(&self) {
        let mut known = self.lock();
        known.is_abandoned = true;
        self.wake(&known);
    }

    /// Skips the wake-up call if nobody waits.
    fn wake(&self, known: &Known<C>) {
        if known.waiting > 0 {
            self.changed.notify_all();
        }
    }
}
