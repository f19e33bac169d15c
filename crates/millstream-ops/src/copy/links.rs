//! Where files with several links have been copied to, so that their other names become links of the copy.
//!
//! Whoever meets an inode first copies it; others wait until the copy has its name, or until it has failed, when one of
//! them takes over.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::place::Place;

type Identity = (u64, u64);

/// The name of a copy.
#[derive(Debug)]
pub(super) struct Copied<D> {
    pub(super) place: Arc<Place<D>>,
    pub(super) name: CString,
    pub(super) path: Vec<u8>,
}

#[derive(Debug)]
enum State<D> {
    InTheMaking,
    Done(Arc<Copied<D>>),
}

/// Copies by the inode of their source.
#[derive(Debug)]
pub(super) struct Links<D> {
    known: Mutex<HashMap<Identity, State<D>>>,
    changed: Condvar,
}

impl<D> Default for Links<D> {
    fn default() -> Self {
        Links { known: Mutex::default(), changed: Condvar::new() }
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
    /// Takes the copying of an inode, or tells where its copy is.
    pub(super) fn claim(&self, identity: Identity) -> Claim<D> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match known.get(&identity) {
                None => {
                    known.insert(identity, State::InTheMaking);
                    return Claim::Ours;
                }
                Some(State::Done(copied)) => return Claim::Copied(Arc::clone(copied)),
                Some(State::InTheMaking) => {
                    known = self.changed.wait(known).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// The copy of a claimed inode has its name.
    pub(super) fn made(&self, identity: Identity, copied: Copied<D>) {
        self.settle(identity, Some(State::Done(Arc::new(copied))));
    }

    /// A claimed inode has not been copied.
    pub(super) fn failed(&self, identity: Identity) {
        self.settle(identity, None);
    }

    fn settle(&self, identity: Identity, state: Option<State<D>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            Some(state) => drop(known.insert(identity, state)),
            None => drop(known.remove(&identity)),
        }
        self.changed.notify_all();
    }
}
