//! The copy of one entry that is not a directory, from the decision to the end.
//!
//! A small file ends on the thread that began it; a large one ends on the last of its copy workers. In both cases
//! [`Copier::finish_copy`] runs exactly once: without a copy it restores the backup, and in any case it releases the
//! tasks that wait to link further names of the source.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, Errno, Error, Fields, Metadata, Result, SymlinkBehavior, Volume};

use super::copier::{Buffers, Copier, Done};
use super::existing::Present;
use super::item::{Copied, Item};
use super::options::{Execution, Trace};
use super::report::Trouble;
use crate::transfer::Identity;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// Whether the name of a copy is in use by something that the copy replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameState {
    /// It is not, or what is there gets the contents.
    Free,
    /// It is, until the new link or node has been made and takes the name.
    Taken,
}

/// One copy.
#[derive(Debug)]
pub(super) struct Job<V: Volume> {
    /// Metadata of the source.
    pub(super) metadata: Metadata,
    /// The open source, if it has been opened.
    pub(super) source: Option<FileOf<V>>,
    /// The existing file that is overwritten.
    pub(super) reused: Option<Present>,
    /// What happens to an existing file that is not overwritten.
    pub(super) name: NameState,
    /// The backup of the existing file.
    pub(super) backup: Option<CString>,
    /// Whether other names of the source wait for the copy.
    pub(super) is_claimed: bool,
}

impl<V: Volume> Job<V> {
    /// A job for a source that has been examined and possibly opened.
    pub(super) fn of(metadata: Metadata, source: Option<FileOf<V>>) -> Self {
        Job { metadata, source, reused: None, name: NameState::Free, backup: None, is_claimed: false }
    }
}

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

    fn tell_put_back(&self, buffers: &mut Buffers, item: &Item<'_, V>, backup: &CStr) {
        if self.options.trace != Trace::Nothing {
            let (backup, destination) = (self.backup_path(item, backup), item.destination_path(self.targets));
            self.options.trace.put_back(&backup, &destination, &mut buffers.lines);
        }
    }
}
