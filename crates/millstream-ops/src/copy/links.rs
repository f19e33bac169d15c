//! Where files with several links have been copied to, so that their other names become links of the copy.
//!
//! Whoever meets an inode first copies it; others wait until the copy is complete, or until it has failed, when one of
//! them takes over. They wait for a visit that is under way or for a carrier, neither of which ever waits for a claim.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::copier::Identity;
use super::place::Place;

/// The name of a copy. There may be one for every file of the tree (`-L`).
#[derive(Debug)]
pub(super) struct Copied<D> {
    pub(super) place: Arc<Place<D>>,
    pub(super) name: Box<CStr>,
    pub(super) operand: usize,
    /// Inode of the copy.
    pub(super) inode: Identity,
}

#[derive(Debug)]
enum State<D> {
    InTheMaking,
    Done(Arc<Copied<D>>),
}

#[derive(Debug)]
struct Known<D> {
    copies: HashMap<Identity, State<D>>,
    waiting: usize,
    /// Whoever claimed one may be gone.
    is_abandoned: bool,
}

/// Copies by the inode of their source.
#[derive(Debug)]
pub(super) struct Links<D> {
    known: Mutex<Known<D>>,
    changed: Condvar,
}

impl<D> Default for Links<D> {
    fn default() -> Self {
        let known = Known { copies: HashMap::new(), waiting: 0, is_abandoned: false };
        Links { known: Mutex::new(known), changed: Condvar::new() }
    }
}

/// What is known of an inode.
#[derive(Debug)]
pub(super) enum Claim<D> {
    /// Nobody has copied it: the caller does, and says so with [`Links::made`] or [`Links::failed`].
    Ours,
    /// It has been copied.
    Copied(Arc<Copied<D>>),
}

impl<D> Links<D> {
    fn lock(&self) -> MutexGuard<'_, Known<D>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the copying of an inode, or tells where its copy is.
    pub(super) fn claim(&self, identity: Identity) -> Claim<D> {
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
    pub(super) fn made(&self, identity: Identity, copied: Copied<D>) {
        let mut known = self.lock();
        known.copies.insert(identity, State::Done(Arc::new(copied)));
        self.wake(&known);
    }

    /// A claimed inode has not been copied.
    pub(super) fn failed(&self, identity: Identity) {
        let mut known = self.lock();
        known.copies.remove(&identity);
        self.wake(&known);
    }

    /// Something else has the name of a copy: the next name of its source is copied again.
    pub(super) fn forget(&self, identity: Identity, copied: &Arc<Copied<D>>) {
        let mut known = self.lock();
        let is_this =
            matches!(known.copies.get(&identity), Some(State::Done(done)) if Arc::ptr_eq(done, copied));
        if is_this {
            known.copies.remove(&identity);
        }
    }

    /// A thread is gone, and its claims with it: nobody waits for them any more.
    pub(super) fn abandon(&self) {
        let mut known = self.lock();
        known.is_abandoned = true;
        self.wake(&known);
    }

    /// Nobody is woken, which is a call, where nobody waits.
    fn wake(&self, known: &Known<D>) {
        if known.waiting > 0 {
            self.changed.notify_all();
        }
    }
}
