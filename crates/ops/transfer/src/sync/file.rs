//! The data of a file: under a temporary name, with all attributes, and then renamed.
//!
//! The source is examined again at the end. A small file that changed while it was read is copied once more. After
//! that, one that has become larger gets its name, as most such files are appended to, and its time makes the next run
//! copy it again. Of any other, the copy may be a mixture of two versions, so the destination stays as it was.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millstream_rsync_rules::itemize::{Difference, Update};
use millstream_vfs::{
    Access, Capabilities, Dir, Errno, Error, Fields, File, FileKind, Intended, Metadata, Operation,
    SymlinkBehavior, Volume,
};

use super::item::{Item, OwnedItem, Visit};
use super::itemize::Change;
use super::load::{Examined, Load, Plan, Transfer};
use super::options::Missing;
use super::report::{Notice, Trouble};
use super::stats::count;
use super::syncer::Syncer;
use crate::transfer::Identity;
use crate::transfer::attributes::Attributes;
use crate::transfer::buffers::Buffers;
use crate::transfer::copy_workers::{LARGE, LargeFile, StartsWorkers};
use crate::transfer::file::{CopyError, Destination, Expected, FileCopy, Source, SourceChange};
use crate::transfer::options::Verification;
use crate::transfer::report::Done;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// An attempt to copy a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// A source that changes meanwhile is copied once more.
    First,
    /// It is not.
    Last,
}

impl<'p, V: Volume> Syncer<'_, 'p, V> {
    /// Copies a file.
    pub(super) fn transfer(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: Examined<FileOf<V>>,
        plan: &Plan,
    ) -> Done<()> {
        let Visit { item, .. } = visit;
        if !self.is_real() {
            self.make_way_for(buffers, item, plan.found.as_ref())?;
            self.finish_copy(buffers, item, plan, source.metadata.size, None);
            return Ok(());
        }
        let mut opened = source.file.map(|file| (file, source.metadata));
        for attempt in [Attempt::First, Attempt::Last] {
            let (file, metadata) = match opened.take() {
                Some(opened) => opened,
                None => match self.open_source(visit)? {
                    Some((_, now)) if plan.claim.is_some_and(|claim| claim != now.identity()) => {
                        // Other names of what was examined must not become links to this.
                        self.notice(&Notice::Changing(&item.target.source_path(item.below)));
                        self.forsake(plan);
                        return Ok(());
                    }
                    Some(opened) => opened,
                    None => {
                        self.forsake(plan);
                        return Ok(());
                    }
                },
            };
            let transfer = self.open_destination(item, *plan, file, metadata)?;
            self.watchers.activity.begun_bytes.fetch_add(metadata.size, Ordering::Relaxed);
            if metadata.size >= LARGE {
                return self.offer(buffers, visit, transfer);
            }
            let moved = self.mover.whole(&transfer.copy.pair(), &mut buffers.data);
            if self.finish_small(buffers, item, transfer, moved, attempt)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Copies a file that the destination does not have, without looking at it before it is opened; false if that is
    /// not how it is to be copied.
    pub(super) fn transfer_new(&self, buffers: &mut Buffers, visit: &Visit<'_, 'p, V>) -> Done<bool> {
        let Visit { item, entry, .. } = visit;
        let is_new = entry.listed_kind() == FileKind::File
            && !item.below.is_empty()
            && self.is_real()
            && self.options.missing == Missing::Created
            && self.is_missing(item);
        if !is_new {
            return Ok(false);
        }
        let Some((file, source)) = self.open_source(visit)? else { return Ok(true) };
        if self.options.preserve.links && source.nlink > 1 {
            return Ok(false);
        }
        self.watchers.counters.meet(FileKind::File, source.size);
        let plan = Plan { found: None, differs: Difference::NEW, claim: None };
        let source = Examined { metadata: source, file: Some(file) };
        self.transfer(buffers, visit, source, &plan).map(|()| true)
    }

    /// Lets others copy a source that was claimed.
    pub(super) fn forsake(&self, plan: &Plan) {
        if let Some(claim) = plan.claim {
            self.links.failed(claim);
        }
    }

    /// Leaves a large file to the copy workers, or carries it here.
    fn offer(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        transfer: Transfer<FileOf<V>>,
    ) -> Done<()> {
        let Visit { item, starter, .. } = visit;
        item.level.place.begin();
        let large = LargeFile::new(Load { item: OwnedItem::new(item), transfer });
        let Err(large) = self.workers.offer(large, *starter) else { return Ok(()) };
        let moved = self.workers.carry(&self.mover, &mut buffers.data, &large);
        let done = self.finish_large(buffers, item, &large.load.transfer, moved);
        self.done_in(item.level);
        done
    }

    /// Works as a copy worker until there is nothing left to carry.
    pub(super) fn run_worker(&self, starter: &dyn StartsWorkers) {
        let _abandon = self.abandon_on_panic();
        self.workers.run_worker(&self.mover, starter, &mut |load, buffers, moved| {
            let item = load.item.borrow(self.targets);
            if self.finish_large(buffers, &item, &load.transfer, moved).is_err() {
                self.forsake(&load.transfer.plan);
            }
            self.done_in(&load.item.level);
            self.write(buffers);
        });
    }

    /// Opens the source; none if it is gone.
    pub(super) fn open_source(&self, visit: &Visit<'_, 'p, V>) -> Done<Option<(FileOf<V>, Metadata)>> {
        let Visit { item, entry, .. } = visit;
        let opened = entry.handle().open_file(entry.name(), Access::Read, SymlinkBehavior::NoFollow);
        let source = match opened {
            Ok(source) => source,
            Err(error) if error.errno == Errno::NOENT && !item.below.is_empty() => {
                self.vanished(item);
                return Ok(None);
            }
            Err(error) if error.errno == Errno::LOOP => {
                return Err(self.trouble(item, Trouble::SourceReplaced, None));
            }
            Err(error) => return Err(self.trouble(item, Trouble::OpenSource, Some(error.errno))),
        };
        let metadata = source.metadata(Fields::STAT).map_err(self.failed(item, Trouble::StatSource))?;
        if metadata.kind() != FileKind::File {
            return Err(self.trouble(item, Trouble::SourceReplaced, None));
        }
        Ok(Some((source, metadata)))
    }

    /// Makes the copy of an open source, under a temporary name.
    fn open_destination(
        &self,
        item: &Item<'_, 'p, V>,
        plan: Plan,
        file: FileOf<V>,
        metadata: Metadata,
    ) -> Done<Transfer<FileOf<V>>> {
        let attributes = self.attributes_of(&metadata);
        let source = Source::gather(file, metadata, &attributes, &mut |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        });
        let place = &item.level.place;
        let expected = Expected::of(&attributes, place, self.budget, &source);
        let temporaries = &self.options.temporaries;
        let mtime = attributes.options.preserve.timestamps.then_some(metadata.mtime);
        let intended = Intended { name: item.name, size: metadata.size, mtime };
        let make = |place: &Arc<V::Dir>| {
            temporaries.make(place, item.name, |name| place.create_staged(name, expected.mode, &intended))
        };
        let made = self.within(item.level, make);
        let (temporary, file) = made.map_err(self.failed(item, Trouble::CreateFile))?;
        let before = match expected.metadata {
            Some(known) => known,
            None => file.metadata(Fields::STAT).map_err(|error| {
                place.discard(&temporary.name, self.budget);
                self.trouble(item, Trouble::StatDestination, Some(error.errno))
            })?,
        };
        expected.note(&attributes, place, &before);
        let destination = Destination { file, metadata: before, fresh: true };
        Ok(Transfer { plan, copy: FileCopy::new(source, destination), temporary })
    }

    /// The data of a small file has been moved, or could not be; whether the copy has its name. If it has not, the
    /// source changed.
    fn finish_small(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        transfer: Transfer<FileOf<V>>,
        moved: Result<u64, Error>,
        attempt: Attempt,
    ) -> Done<bool> {
        self.watchers.activity.spared_bytes.fetch_add(transfer.copy.spared(), Ordering::Relaxed);
        let checked = self.check(buffers, item, &transfer, moved, attempt);
        let Transfer { plan, copy, temporary } = transfer;
        let end = checked.and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(false) };
            let inode = self.inode(&plan, &copy);
            let mut attributes = self.attributes_of(&copy.metadata);
            let sets_time = attributes.options.preserve.timestamps;
            attributes.options.preserve.timestamps = false;
            self.set_attributes(item, &plan, &copy, &attributes);
            let FileCopy { metadata, destination, .. } = copy;
            // What is written when the file is closed would change its time again.
            destination.close().map_err(self.failed(item, Trouble::Close))?;
            if sets_time {
                let place = item.level.place.handle(self.budget);
                let set =
                    place.and_then(|place| place.set_times(&temporary.name, metadata.atime, metadata.mtime));
                if let Err(error) = set {
                    self.trouble(item, Trouble::Times, Some(error.errno));
                }
            }
            self.take_place(buffers, item, &plan, &temporary.name)?;
            self.finish_copy(buffers, item, &plan, bytes, inode);
            Ok(true)
        });
        if !matches!(end, Ok(true)) {
            item.level.place.discard(&temporary.name, self.budget);
        }
        end
    }

    /// The data of a large file has been moved, or could not be.
    fn finish_large(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        transfer: &Transfer<FileOf<V>>,
        moved: Result<u64, Error>,
    ) -> Done<()> {
        let Transfer { plan, copy, temporary } = transfer;
        self.watchers.activity.spared_bytes.fetch_add(copy.spared(), Ordering::Relaxed);
        let end = self.check(buffers, item, transfer, moved, Attempt::Last).and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(false) };
            copy.flush().map_err(|error| self.trouble(item, error.trouble, error.errno))?;
            self.set_attributes(item, plan, copy, &self.attributes_of(&copy.metadata));
            let inode = self.inode(plan, copy);
            self.take_place(buffers, item, plan, &temporary.name)?;
            self.finish_copy(buffers, item, plan, bytes, inode);
            Ok(true)
        });
        if !matches!(end, Ok(true)) {
            item.level.place.discard(&temporary.name, self.budget);
        }
        end.map(|_| ())
    }

    /// Whether a copy is one of a single version of its source, or of a beginning of it; its length, or none if it is
    /// not.
    fn check(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        transfer: &Transfer<FileOf<V>>,
        moved: Result<u64, Error>,
        attempt: Attempt,
    ) -> Done<Option<u64>> {
        let Transfer { plan, copy, .. } = transfer;
        let failed = |error: CopyError| self.trouble(item, error.trouble, error.errno);
        let gone =
            moved.as_ref().err().filter(|error| error.operation == Operation::Read).map(|error| error.errno);
        match gone {
            // Its volume reads no other version than the one that was opened.
            Some(Errno::STALE) if attempt == Attempt::First => return Ok(None),
            Some(Errno::STALE) => {
                self.notice(&Notice::Changing(&item.target.source_path(item.below)));
                self.forsake(plan);
                return Ok(None);
            }
            Some(Errno::NOENT) => {
                self.vanished(item);
                self.forsake(plan);
                return Ok(None);
            }
            _ => {}
        }
        let bytes = moved.map_err(|error| failed(error.into()))?;
        let change = copy.change(bytes).map_err(|error| match error.operation {
            Operation::Read => failed(error.into()),
            _ => self.trouble(item, Trouble::StatSource, Some(error.errno)),
        })?;
        if change == SourceChange::Unchanged {
            copy.finish_data(bytes, self.options.sparse).map_err(failed)?;
            if self.options.verification == Verification::Checksum {
                copy.compare(&copy.destination, &mut buffers.data).map_err(failed)?;
            }
            return Ok(Some(bytes));
        }
        if attempt == Attempt::First {
            return Ok(None);
        }
        let source = item.target.source_path(item.below);
        if change == SourceChange::Grown {
            copy.finish_data(bytes, self.options.sparse).map_err(failed)?;
            self.notice(&Notice::Grown(&source));
            return Ok(Some(bytes));
        }
        self.notice(&Notice::Changing(&source));
        self.forsake(plan);
        Ok(None)
    }

    fn set_attributes(
        &self,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        copy: &FileCopy<FileOf<V>>,
        attributes: &Attributes,
    ) {
        let may_have_acl = attributes.may_inherit_acl(&item.level.place, self.budget);
        let replaced_mode = plan.found.filter(|found| found.kind() == FileKind::File).map(|found| found.mode);
        copy.set_attributes(attributes, may_have_acl, replaced_mode, &mut |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        });
    }

    /// The inode of a copy, if other names of its source wait for it.
    fn inode(&self, plan: &Plan, copy: &FileCopy<FileOf<V>>) -> Option<Identity> {
        plan.claim?;
        if copy.before.fields.contains(Fields::INO) {
            return Some(copy.before.identity());
        }
        copy.destination.metadata(Fields::INO).ok().map(|made| made.identity())
    }

    /// A complete copy has its name, or would have.
    fn finish_copy(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        bytes: u64,
        inode: Option<Identity>,
    ) {
        let is_new = plan.found.is_none_or(|found| found.kind() != FileKind::File);
        count(&self.watchers.counters.copied_files);
        self.watchers.counters.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        if is_new {
            count(&self.watchers.counters.created);
        }
        let differs = if is_new { Difference::NEW } else { plan.differs };
        let change = Change::new(FileKind::File, Update::Transfer, differs);
        self.tell(buffers, item, Change { bytes: Some(bytes), ..change });
        self.resolve(item, plan.claim, inode);
    }

    /// Renames a complete copy, and removes the directory that may be in the way: before that, unless both can be
    /// there.
    fn take_place(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        temporary: &CStr,
    ) -> Done<()> {
        let failed = |error: Error| {
            // Some volumes only write it then.
            let is_data = error.operation == Operation::Write;
            self.trouble(item, if is_data { Trouble::Write } else { Trouble::Rename }, Some(error.errno))
        };
        let found = plan.found.as_ref();
        let is_in_the_way = found.is_some_and(|found| found.kind() == FileKind::Directory);
        if is_in_the_way
            && item
                .level
                .place
                .handle(self.budget)
                .is_ok_and(|place| !place.capabilities(c".").contains(Capabilities::UNIQUE_NAMES))
        {
            match self.take_name(item, temporary) {
                Ok(()) => return self.make_way_for(buffers, item, found),
                // They cannot.
                Err(error) if error.errno == Errno::EXIST => {}
                Err(error) => return Err(failed(error)),
            }
        }
        self.make_way_for(buffers, item, found)?;
        self.take_name(item, temporary).map_err(failed)
    }
}
