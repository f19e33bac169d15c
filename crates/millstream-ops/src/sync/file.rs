//! The data of a file: under a temporary name, with all attributes, and then renamed.
//!
//! The source is examined again at the end. If it changed while it was read, it is copied once more. After that, a file that
//! has only grown gets its name: it is a beginning of the source, and its time makes the next run copy it again. Of any other, the
//! copy may be a mixture of two versions, so the destination stays as it was.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, RemoveKind, SymlinkBehavior, Volume,
};
use millstream_walk::Entry;

use super::difference::Difference;
use super::item::{Item, OwnedItem, State};
use super::itemize::{Change, Update};
use super::load::{Ends, Load, Plan};
use super::report::{Notice, Trouble};
use super::stats::count;
use super::syncer::{Buffers, Syncer};
use super::watchers::Done;
use crate::transfer::carriers::{Carried, Crew, LARGE};
use crate::transfer::file::{CopyError, Expected, FileCopy};
use crate::transfer::methods::Methods;
use crate::transfer::options::Verification;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// How often a file that changes is copied.
const ATTEMPTS: usize = 2;

/// How a copy ended.
enum End {
    /// It has its name.
    Named,
    /// The source changed while it was read.
    Changed,
}

impl<'p, V: Volume> Syncer<'_, 'p, V> {
    /// Copies a file.
    pub(super) fn transfer(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        entry: &Entry<'_, V, State<'p, V>>,
        source: &Metadata,
        plan: &Plan,
        crew: &dyn Crew,
    ) -> Done<()> {
        if !self.is_real() {
            self.tell_transfer(buffers, item, plan, source.size);
            self.resolve(item, plan.claim, plan.found.map(|found| found.identity()));
            return Ok(());
        }
        for attempt in 1..=ATTEMPTS {
            let Some(ends) = self.open_ends(item, entry.handle(), entry.name())? else {
                if let Some(claim) = plan.claim {
                    self.links.failed(claim);
                }
                return Ok(());
            };
            let size = ends.copy.metadata.size;
            self.activity.begun_bytes.fetch_add(size, Ordering::Relaxed);
            if size >= LARGE {
                return self.offer(buffers, item, *plan, ends, crew);
            }
            let moved = self.mover.whole(&ends.copy.pair(), &mut buffers.data);
            match self.finish(buffers, item, plan, &ends, moved, attempt == ATTEMPTS)? {
                End::Named => return Ok(()),
                End::Changed => {}
            }
        }
        Ok(())
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
        let operand = self.targets.iter().position(|target| std::ptr::eq(target, item.target));
        let owned = OwnedItem::new(operand.unwrap_or_default(), item);
        let carried = Carried::new(Load { item: owned, plan, ends });
        let Err(carried) = self.carriers.offer(carried, crew) else { return Ok(()) };
        let moved = self.carriers.carry(&self.mover, &mut buffers.data, &carried);
        let done = self.finish(buffers, item, &plan, &carried.load.ends, moved, true);
        self.done_in(item.level);
        done.map(|_| ())
    }

    /// Works as a carrier until there is nothing left to carry.
    pub(super) fn carry_on(&self, crew: &dyn Crew) {
        let mut buffers = Buffers::default();
        self.carriers.carry_on(&self.mover, crew, &mut |load, data, moved| {
            std::mem::swap(&mut buffers.data, data);
            let item = load.item.borrow(self.targets);
            let done = self.finish(&mut buffers, &item, &load.plan, &load.ends, moved, true);
            if let (Err(_), Some(claim)) = (done, load.plan.claim) {
                self.links.failed(claim);
            }
            std::mem::swap(&mut buffers.data, data);
            self.done_in(&load.item.level);
            self.write(&mut buffers.lines);
        });
    }

    /// Opens both ends; none if the source is gone.
    fn open_ends(&self, item: &Item<'_, 'p, V>, from: &V::Dir, name: &CStr) -> Done<Option<Ends<FileOf<V>>>> {
        let opened = from.open_file(name, Access::Read, SymlinkBehavior::NoFollow);
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
        let attributes = self.attributes_of(&metadata);
        let mut lacks_attribute = false;
        let xattrs = attributes.gather(&source, &mut |trouble, errno| {
            lacks_attribute = true;
            self.trouble(item, trouble, Some(errno));
        });
        let place = &item.level.place;
        let expected = Expected::of(&attributes, place, self.budget, &metadata, &xattrs);
        let temporaries = &self.options.temporaries;
        let make = |place: &Arc<V::Dir>| {
            temporaries.make(place, item.name, |name| place.create_file(name, expected.mode))
        };
        let made = self.within(item.level, make);
        let (temporary, destination) = made.map_err(self.failed(item, Trouble::CreateFile))?;
        let before = match expected.metadata {
            Some(known) => known,
            None => destination.metadata(Fields::STAT).map_err(|error| {
                self.discard(item, &temporary.name);
                self.trouble(item, Trouble::StatDestination, Some(error.errno))
            })?,
        };
        expected.note(&attributes, place, &before);
        let copy = FileCopy {
            source,
            metadata,
            xattrs,
            lacks_attribute,
            destination,
            before,
            fresh: true,
            methods: Methods::default(),
            moved: AtomicU64::new(0),
        };
        Ok(Some(Ends { copy, temporary }))
    }

    /// The data has been moved, or could not be: gives the copy its attributes and its name.
    fn finish(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        ends: &Ends<FileOf<V>>,
        moved: Result<u64, Error>,
        is_last_attempt: bool,
    ) -> Done<End> {
        self.activity.spared_bytes.fetch_add(ends.copy.spared(), Ordering::Relaxed);
        let end = self.complete(buffers, item, plan, ends, moved, is_last_attempt);
        if !matches!(end, Ok(End::Named)) {
            self.discard(item, &ends.temporary.name);
        }
        end
    }

    fn complete(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        plan: &Plan,
        ends: &Ends<FileOf<V>>,
        moved: Result<u64, Error>,
        is_last_attempt: bool,
    ) -> Done<End> {
        let copy = &ends.copy;
        let failed = |error: CopyError| self.trouble(item, error.trouble, error.errno);
        let bytes = moved.map_err(|error| failed(error.into()))?;
        copy.finish_data(bytes, self.options.sparse).map_err(failed)?;
        let now = copy.source.metadata(Fields::STAT).map_err(self.failed(item, Trouble::StatSource))?;
        let has_changed =
            (now.mtime, now.size) != (copy.metadata.mtime, copy.metadata.size) || bytes != copy.metadata.size;
        if has_changed && !is_last_attempt {
            return Ok(End::Changed);
        }
        if has_changed {
            let source = item.target.source_path(item.below);
            let has_grown = now.size > copy.metadata.size && bytes >= copy.metadata.size;
            if !has_grown {
                self.notice(&Notice::Changing(&source));
                if let Some(claim) = plan.claim {
                    self.links.failed(claim);
                }
                return Ok(End::Changed);
            }
            self.notice(&Notice::Grown(&source));
        } else if self.options.verification == Verification::Checksum {
            copy.compare(&copy.destination, &mut buffers.data).map_err(failed)?;
        }
        let attributes = self.attributes_of(&copy.metadata);
        let may_have_acl = attributes.may_inherit_acl(&item.level.place, self.budget);
        let replaced_mode = plan.found.filter(|found| found.kind() == FileKind::File).map(|found| found.mode);
        copy.set_attributes(&attributes, may_have_acl, replaced_mode, &mut |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        });
        self.take_name(item, &ends.temporary.name).map_err(self.failed(item, Trouble::Rename))?;
        count(&self.counters.copied_files);
        self.counters.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        if plan.found.is_none() {
            count(&self.counters.created);
        }
        self.tell_transfer(buffers, item, plan, bytes);
        let inode = match copy.before.fields.contains(Fields::INO) {
            true => Some(copy.before.identity()),
            false if plan.claim.is_some() => {
                copy.destination.metadata(Fields::INO).ok().map(|made| made.identity())
            }
            false => None,
        };
        self.resolve(item, plan.claim, inode);
        Ok(End::Named)
    }

    /// Removes what has been made under a temporary name and will not get its own.
    fn discard(&self, item: &Item<'_, 'p, V>, temporary: &CStr) {
        // If it cannot be removed the first error told why, and the next run removes it.
        let place = item.level.place.handle(self.budget);
        let _ = place.and_then(|place| place.remove(temporary, RemoveKind::File));
    }

    fn tell_transfer(&self, buffers: &mut Buffers, item: &Item<'_, 'p, V>, plan: &Plan, bytes: u64) {
        let name = item.target.transfer_name(item.below);
        let mut differs = plan.differs;
        if plan.found.is_none_or(|found| found.kind() != FileKind::File) {
            differs = Difference::NEW;
        }
        let (update, kind) = (Update::Transfer, FileKind::File);
        let change = Change { update, kind, differs, name: &name, target: None, bytes: Some(bytes) };
        self.tell(&mut buffers.lines, &change);
    }
}
