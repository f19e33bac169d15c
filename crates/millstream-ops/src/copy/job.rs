//! What is made of one entry that is no directory, from the decision to the end of its copy.
//!
//! A small file ends where it began; a large one ends with the last of its carriers. Either way [`Copier::settle`] ends
//! it, once: what was kept under another name comes back if there is no copy, and other names of the source are told.

use std::ffi::CString;

use millstream_vfs::{Dir, Errno, Error, Fields, Metadata, Result, SymlinkBehavior, Volume};

use super::copier::{Buffers, Copier, Done, Identity};
use super::existing::Present;
use super::item::Item;
use super::links::Copied;
use super::options::{Effect, Trace};
use super::report::Trouble;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// The making of one copy.
#[derive(Debug)]
pub(super) struct Job<V: Volume> {
    /// Metadata of the source.
    pub(super) metadata: Metadata,
    /// The source, if it has been opened.
    pub(super) source: Option<FileOf<V>>,
    /// What is there and is written over.
    pub(super) reused: Option<Present>,
    /// The name under which what was there is kept.
    pub(super) backup: Option<CString>,
    /// Whether other names of the source wait for the copy.
    pub(super) is_claimed: bool,
}

impl<V: Volume> Job<V> {
    /// What is known of a source that has been examined, or opened for it.
    pub(super) fn of(metadata: Metadata, source: Option<FileOf<V>>) -> Self {
        Job { metadata, source, reused: None, backup: None, is_claimed: false }
    }
}

impl<V: Volume> Copier<'_, V> {
    /// The copy is complete, or there will be none. `inode` is that of the copy, as far as it came.
    pub(super) fn settle(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        job: &Job<V>,
        inode: Option<Identity>,
        done: Done<()>,
    ) -> Done<()> {
        if self.options.effect == Effect::Told {
            return done;
        }
        if done.is_err() {
            self.put_back(buffers, item, job, inode);
        }
        if job.is_claimed {
            self.settle_claim(item, &job.metadata, inode, done);
        }
        done
    }

    /// Other names of the source may be linked to the copy, if there is one.
    fn settle_claim(&self, item: &Item<'_, V>, source: &Metadata, inode: Option<Identity>, done: Done<()>) {
        let inode = match (done, inode) {
            (Err(_), _) => None,
            (Ok(()), Some(inode)) => Some(inode),
            // What cannot be examined is copied again under its next name.
            (Ok(()), None) => self.identity_of(item).ok(),
        };
        match inode {
            Some(inode) => {
                let place = std::sync::Arc::clone(item.place);
                let copied = Copied { place, name: item.name.into(), operand: item.operand, inode };
                self.links.made(source.identity(), copied);
            }
            None => self.links.failed(source.identity()),
        }
    }

    fn identity_of(&self, item: &Item<'_, V>) -> Result<Identity> {
        let place = item.place.handle(&self.budget)?;
        place.metadata(item.name, SymlinkBehavior::NoFollow, Fields::INO).map(|found| found.identity())
    }

    /// There is no copy: what was there comes back in place of what there is of one. Where something else has come in
    /// its place it stays a backup.
    pub(super) fn put_back(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        job: &Job<V>,
        torn: Option<Identity>,
    ) {
        let Some(backup) = &job.backup else { return };
        let is_free = match self.identity_of(item) {
            Ok(found) => Some(found) == torn,
            Err(error) => error.errno == Errno::NOENT,
        };
        if !is_free {
            return;
        }
        let renamed =
            item.place.handle(&self.budget).and_then(|place| place.rename(backup, &place, item.name));
        match renamed {
            Ok(()) => self.tell_put_back(buffers, item, backup),
            Err(Error { errno, .. }) => drop(self.trouble(item, Trouble::PutBack, Some(errno))),
        }
    }

    fn tell_put_back(&self, buffers: &mut Buffers, item: &Item<'_, V>, backup: &std::ffi::CStr) {
        if self.options.trace != Trace::Nothing {
            let (backup, destination) = (self.backup_path(item, backup), item.destination_path(self.targets));
            self.options.trace.put_back(&backup, &destination, &mut buffers.lines);
        }
    }
}
