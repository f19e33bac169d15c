//! The end of the copy of one entry that is not a directory.
//!
//! A small file ends on the thread that began it; a large one ends on the last of its copy workers. In both cases
//! [`Copier::finish_copy`] runs exactly once: without a copy it restores the backup, and in any case it releases the
//! tasks that wait to link further names of the source.

use std::ffi::CStr;
use std::sync::Arc;

use millstream_vfs::{Dir, Errno, Error, Metadata, Volume};

use super::copier::Copier;
use super::item::{Copied, Item};
use super::job::Job;
use super::options::{Execution, Trace};
use super::report::Trouble;
use crate::transfer::Identity;
use crate::transfer::buffers::Buffers;
use crate::transfer::report::Done;

impl<V: Volume> Copier<'_, V> {
    /// Ends a copy, whether it is complete or failed. `inode` is the inode of the copy, as far as it was created.
    pub(super) fn finish_copy(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        job: &Job<V>,
        inode: Option<Identity>,
        done: Done<()>,
    ) -> Done<()> {
        if self.options.effect == Execution::DryRun {
            return done;
        }
        if done.is_err() {
            self.put_back(buffers, item, job.backup.as_deref(), inode);
        }
        if job.is_claimed {
            self.resolve_claim(item, &job.metadata, inode, done);
        }
        done
    }

    /// Releases the tasks that wait to link other names of the source.
    fn resolve_claim(&self, item: &Item<'_, V>, source: &Metadata, inode: Option<Identity>, done: Done<()>) {
        let inode = match (done, inode) {
            (Err(_), _) => None,
            (Ok(()), Some(inode)) => Some(inode),
            // If the copy cannot be examined, the next name of the source is copied again.
            (Ok(()), None) => item.place.identity_of(item.name, &self.budget).ok(),
        };
        match inode {
            Some(inode) => {
                let place = Arc::clone(item.place);
                let copied = Copied { place, name: item.name.into(), operand: item.operand, inode };
                self.links.made(source.identity(), copied);
            }
            None => self.links.failed(source.identity()),
        }
    }

    /// The copy failed: the backup replaces what there is of the copy. If another file has taken the name meanwhile,
    /// the backup stays a backup.
    pub(super) fn put_back(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        backup: Option<&CStr>,
        torn: Option<Identity>,
    ) {
        let Some(backup) = backup else { return };
        let is_free = match item.place.identity_of(item.name, &self.budget) {
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

    fn tell_put_back(&self, buffers: &mut Buffers, item: &Item<'_, V>, backup: &CStr) {
        if self.options.trace != Trace::Nothing {
            let (backup, destination) = (self.backup_path(item, backup), item.destination_path(self.targets));
            self.options.trace.put_back(&backup, &destination, &mut buffers.lines);
        }
    }
}
