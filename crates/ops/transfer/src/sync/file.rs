//! The data of a file: under a temporary name, with all attributes, and then renamed.
//!
//! The source is examined again at the end. A small file that changed while it was read is copied once more. After that, one
//! that has become larger gets its name, as most such files are appended to, and its time makes the next run copy it again. Of any
//! other, the copy may be a mixture of two versions, so the destination stays as it was.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millstream_rsync_rules::itemize::{Difference, Update};
use millstream_vfs::{
    Access, Capabilities, Dir, Errno, Error, Fields, File, FileKind, Intended, Metadata, Operation,
    SymlinkBehavior, Volume,
};
use millstream_walk::Entry;

use super::item::{Item, OwnedItem, State};
use super::itemize::Change;
use super::load::{Ends, Load, Plan};
use super::options::Missing;
use super::report::{Notice, Trouble};
use super::stats::count;
use super::syncer::Syncer;
use crate::transfer::Identity;
use crate::transfer::attributes::Attributes;
use crate::transfer::buffers::Buffers;
use crate::transfer::carriers::{Carried, Crew, LARGE};
use crate::transfer::file::{CopyError, Destination, Expected, FileCopy, Source, SourceChange};
use crate::transfer::options::Verification;
use crate::transfer::report::Done;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// How often a file that changes is copied.
const ATTEMPTS: usize = 2;

impl<'p, V: Volume> Syncer<'_, 'p, V> {
    /// Copies a file; `opened` is its source, if that is open.
    pub(super) fn transfer(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        entry: &Entry<'_, V, State<'p, V>>,
        (source, mut opened): (&Metadata, Option<FileOf<V>>),
        plan: &Plan,
        crew: &dyn Crew,
    ) -> Done<()> {
        if !self.is_real() {
            self.make_way_for(buffers, item, plan.found.as_ref())?;
            self.count_copy(plan, source.size);
            self.tell_transfer(buffers, item, plan, source.size);
            self.resolve(item, plan.claim, None);
            return Ok(());
        }
        let mut metadata = *source;
        for attempt in 1..=ATTEMPTS {
            let file = match opened.take() {
                Some(file) => file,
                None => match self.open_source(item, entry)? {
                    Some((file, now)) => {
                        if plan.claim.is_some_and(|claim| claim != now.identity()) {
                            // Other names of what was examined must not become links to this.
                            self.notice(&Notice::Changing(&item.target.source_path(item.below)));
                            self.forsake(plan);
                            return Ok(());
                        }
                        metadata = now;
                        file
                    }
                    None => {
                        self.forsake(plan);
                        return Ok(());
                    }
                },
            };
            let ends = self.open_destination(item, file, metadata)?;
            self.watchers.activity.begun_bytes.fetch_add(metadata.size, Ordering::Relaxed);
            if metadata.size >= LARGE {
                return self.offer(buffers, item, *plan, ends, crew);
            }
            let moved = self.mover.whole(&ends.copy.pair(), &mut buffers.data);
            if self.finish_small(buffers, item, plan, ends, moved, attempt == ATTEMPTS)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Copies a file that the destination does not have, without looking at it before it is opened; false if that is not
    /// how it is to be copied.
    pub(super) fn transfer_new(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        entry: &Entry<'_, V, State<'p, V>>,
        crew: &dyn Crew,
    ) -> Done<bool> {
        let is_new = entry.listed_kind() == FileKind::File
            && !item.below.is_empty()
            && self.is_real()
            && self.options.missing == Missing::Created
            && self.is_missing(item);
        if !is_new {
            return Ok(false);
        }
        let Some((file, source)) = self.open_source(item, entry)? else { return Ok(true) };
        if self.options.preserve.links && source.nlink > 1 {
            return Ok(false);
        }
        self.watchers.counters.meet(FileKind::File, source.size);
        let plan = Plan { found: None, differs: Difference::NEW, claim: None };
        self.transfer(buffers, item, entry, (&source, Some(file)), &plan, crew).map(|()| true)
    }

    /// Lets others copy a source that was claimed.
    pub(super) fn forsake(&self, plan: &Plan) {
        if let Some(claim) = plan.claim {
            self.links.failed(claim);
        }
    }

    /// Leaves a large file to the carriers, or carries it here.
    fn offer(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: Plan,
        ends: Ends<FileOf<V>>,
        crew: &dyn Crew,
    ) -> Done<()> {
        item.level.place.begin();
        let carried = Carried::new(Load { item: OwnedItem::new(item), plan, ends });
        let Err(carried) = self.carriers.offer(carried, crew) else { return Ok(()) };
        let moved = self.carriers.carry(&self.mover, &mut buffers.data, &carried);
        let done = self.finish_large(buffers, item, &plan, &carried.load.ends, moved);
        self.done_in(item.level);
        done
    }

    /// Works as a carrier until there is nothing left to carry.
    pub(super) fn carry_on(&self, crew: &dyn Crew) {
        let _abandon = self.abandon_on_panic();
        self.carriers.carry_on(&self.mover, crew, &mut |load, buffers, moved| {
            let item = load.item.borrow(self.targets);
            if self.finish_large(buffers, &item, &load.plan, &load.ends, moved).is_err() {
                self.forsake(&load.plan);
            }
            self.done_in(&load.item.level);
            self.write(buffers);
        });
    }

    /// Opens the source; none if it is gone.
    pub(super) fn open_source(
        &self,
        item: &Item<'_, 'p, V>,
        entry: &Entry<'_, V, State<'p, V>>,
    ) -> Done<Option<(FileOf<V>, Metadata)>> {
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
        file: FileOf<V>,
        metadata: Metadata,
    ) -> Done<Ends<FileOf<V>>> {
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
        Ok(Ends { copy: FileCopy::new(source, destination), temporary })
    }

    /// The data of a small file has been moved, or could not be; whether the copy has its name. If it has not, the source changed.
    fn finish_small(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        ends: Ends<FileOf<V>>,
        moved: Result<u64, Error>,
        is_last_attempt: bool,
    ) -> Done<bool> {
        self.watchers.activity.spared_bytes.fetch_add(ends.copy.spared(), Ordering::Relaxed);
        let Ends { copy, temporary } = ends;
        let end = self.check(buffers, item, plan, &copy, moved, is_last_attempt).and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(false) };
            let inode = self.inode(plan, &copy);
            let mut attributes = self.attributes_of(&copy.metadata);
            let sets_time = attributes.options.preserve.timestamps;
            attributes.options.preserve.timestamps = false;
            self.set_attributes(item, plan, &copy, &attributes);
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
            self.name(buffers, item, plan, &temporary.name, bytes, inode).map(|()| true)
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
        plan: &Plan,
        ends: &Ends<FileOf<V>>,
        moved: Result<u64, Error>,
    ) -> Done<()> {
        let Ends { copy, temporary } = ends;
        self.watchers.activity.spared_bytes.fetch_add(copy.spared(), Ordering::Relaxed);
        let end = self.check(buffers, item, plan, copy, moved, true).and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(false) };
            copy.flush().map_err(|error| self.trouble(item, error.trouble, error.errno))?;
            self.set_attributes(item, plan, copy, &self.attributes_of(&copy.metadata));
            self.name(buffers, item, plan, &temporary.name, bytes, self.inode(plan, copy)).map(|()| true)
        });
        if !matches!(end, Ok(true)) {
            item.level.place.discard(&temporary.name, self.budget);
        }
        end.map(|_| ())
    }

    /// Whether a copy is one of a single version of its source, or of a beginning of it; its length, or none if it is not.
    fn check(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        copy: &FileCopy<FileOf<V>>,
        moved: Result<u64, Error>,
        is_last_attempt: bool,
    ) -> Done<Option<u64>> {
        let failed = |error: CopyError| self.trouble(item, error.trouble, error.errno);
        let gone =
            moved.as_ref().err().filter(|error| error.operation == Operation::Read).map(|error| error.errno);
        match gone {
            // Its volume reads no other version than the one that was opened.
            Some(Errno::STALE) if !is_last_attempt => return Ok(None),
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
        if !is_last_attempt {
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

    /// Gives a complete copy its name.
    fn name(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        temporary: &CStr,
        bytes: u64,
        inode: Option<Identity>,
    ) -> Done<()> {
        self.take_place(buffers, item, plan, temporary)?;
        self.count_copy(plan, bytes);
        self.tell_transfer(buffers, item, plan, bytes);
        self.resolve(item, plan.claim, inode);
        Ok(())
    }

    /// Renames a complete copy, and removes the directory that may be in the way: before that, unless both can be there.
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

    fn count_copy(&self, plan: &Plan, bytes: u64) {
        count(&self.watchers.counters.copied_files);
        self.watchers.counters.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        if plan.found.is_none_or(|found| found.kind() != FileKind::File) {
            count(&self.watchers.counters.created);
        }
    }

    fn tell_transfer(&self, buffers: &mut Buffers, item: &Item<'_, 'p, V>, plan: &Plan, bytes: u64) {
        let name = item.target.transfer_name(item.below);
        let mut differs = plan.differs;
        if plan.found.is_none_or(|found| found.kind() != FileKind::File) {
            differs = Difference::NEW;
        }
        let (update, kind) = (Update::Transfer, FileKind::File);
        let change = Change { update, kind, differs, name: &name, target: None, bytes: Some(bytes) };
        self.tell(buffers, &change);
    }
}
