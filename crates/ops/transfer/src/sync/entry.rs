//! One entry that is not a directory: examines source and destination, decides, and makes the copy.
//!
//! What replaces something is made under a temporary name and renamed, so that no name ever shows half of it.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use millstream_rsync_rules::decision::Contents;
use millstream_rsync_rules::itemize::{Difference, Update};
use millstream_vfs::{
    Access, Dir, DirentBatch, Errno, Error, Fields, FileKind, Metadata, Operation, ReadState, RemoveKind,
    SymlinkBehavior, Volume,
};
use millstream_walk::Threads;

use super::item::{Item, Leader, Visit};
use super::itemize::Change;
use super::load::{Examined, Plan};
use super::options::{Comparison, Conflicts, Missing, Present, Recursion, Report};
use super::removal::{Removals, remove_tree};
use super::report::{Notice, Trouble};
use super::stats::count;
use super::syncer::Syncer;
use crate::transfer::attributes::XattrValues;
use crate::transfer::buffers::Buffers;
use crate::transfer::links::Claim;
use crate::transfer::report::Done;
use crate::transfer::verify::has_same_data;
use crate::transfer::{Identity, special};

/// What is to be done about an entry.
enum Decision {
    /// It is up to date.
    Keep,
    /// Its attributes are set.
    Amend(Difference, XattrValues, XattrValues),
    /// It is made anew.
    Make(Difference),
}

impl<'p, V: Volume> Syncer<'_, 'p, V> {
    /// Synchronizes an entry that is not a directory.
    pub(super) fn entry(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: &Metadata,
    ) -> Done<()> {
        let Visit { item, .. } = visit;
        if !self.options.kinds.include(source.kind()) {
            // What has its name in the destination stays.
            self.counterpart(item);
            self.notice(&Notice::SkippedKind(&item.target.transfer_name(item.below)));
            return Ok(());
        }
        let found = self.found(item)?;
        match found {
            None if self.options.missing == Missing::Skipped => return Ok(()),
            Some(_) if self.options.present == Present::Left => return Ok(()),
            Some(found) if self.options.keeps_newer(source, &found) => return Ok(()),
            _ => {}
        }
        let identity = source.identity();
        let is_linked = self.options.preserve.links && source.nlink > 1;
        while is_linked && let Claim::Copied(leader) = self.links.claim(identity) {
            match self.link(buffers, item, &leader, source, found.as_ref()) {
                Ok(true) => return Ok(()),
                Ok(false) => self.links.forget(identity, &leader),
                Err(reported) => return Err(reported),
            }
        }
        let claim = is_linked.then_some(identity);
        let done = self.carry_out(buffers, visit, source, found.as_ref(), claim);
        if let (Err(_), Some(identity)) = (done, claim) {
            self.links.failed(identity);
        }
        done
    }

    fn carry_out(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: &Metadata,
        found: Option<&Metadata>,
        claim: Option<Identity>,
    ) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let target = match source.kind() {
            FileKind::Symlink => {
                let target = entry.read_link().map_err(self.failed(item, Trouble::ReadLink))?;
                Some(CString::new(target).unwrap_or_default())
            }
            _ => None,
        };
        let decision = self.decide(buffers, visit, source, found, target.as_deref())?;
        let told = target.as_ref().map(|target| target.to_bytes());
        match decision {
            Decision::Keep => {
                self.tell(
                    buffers,
                    item,
                    Change::new(source.kind(), Update::Attributes, Difference::empty()).to(told),
                );
                self.resolve(item, claim, found.map(Metadata::identity));
            }
            Decision::Amend(differs, xattrs, found_xattrs) => {
                if let (true, Some(found)) = (self.is_real(), found) {
                    self.amend(item, (source, &xattrs), (found, &found_xattrs));
                }
                count(&self.watchers.counters.amended);
                self.tell(buffers, item, Change::new(source.kind(), Update::Attributes, differs).to(told));
                self.resolve(item, claim, found.map(Metadata::identity));
            }
            Decision::Make(differs) => {
                self.require_way(item, found)?;
                let plan = Plan { found: found.copied(), differs, claim };
                if source.kind() == FileKind::File {
                    return self.transfer(buffers, visit, Examined { metadata: *source, file: None }, &plan);
                }
                if self.is_real() {
                    self.make(buffers, visit, source, found, target.as_deref())?;
                } else {
                    self.make_way_for(buffers, item, found)?;
                }
                if differs.contains(Difference::NEW) {
                    count(&self.watchers.counters.created);
                }
                self.tell(buffers, item, Change::new(source.kind(), Update::Create, differs).to(told));
                self.resolve(item, claim, self.made(item));
            }
        }
        Ok(())
    }

    /// Decides what to do about an entry.
    fn decide(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: &Metadata,
        found: Option<&Metadata>,
        target: Option<&CStr>,
    ) -> Done<Decision> {
        let Visit { item, .. } = visit;
        let Some(found) = found.filter(|found| found.kind() == source.kind()) else {
            return Ok(Decision::Make(Difference::NEW));
        };
        let is_file = source.kind() == FileKind::File;
        let (xattrs, found_xattrs) = self.both_xattrs(visit)?;
        let mut differs = self.options.difference((source, &xattrs), (found, &found_xattrs));
        let has_changed = match source.kind() {
            FileKind::File => self.has_changed(buffers, visit, source, found, &mut differs)?,
            FileKind::Symlink => {
                let place = item.level.place.handle(self.budget);
                let place = place.map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
                let copy = place.read_link(item.name).map_err(self.failed(item, Trouble::StatDestination))?;
                target.is_some_and(|target| target.to_bytes() != copy)
            }
            FileKind::CharDevice | FileKind::BlockDevice => source.rdev != found.rdev,
            _ => false,
        };
        if has_changed && !is_file {
            differs |= Difference::CONTENTS;
        }
        differs.set(Difference::ASSUMED, has_changed && is_file && differs.is_empty());
        if has_changed {
            differs |= self.options.time_of_copy(source, found);
        }
        // What is the copy of another source, too, is replaced even if nothing differs: the other one may change it
        // just now.
        Ok(if has_changed || !self.owns(source, found) {
            Decision::Make(differs)
        } else if differs.is_empty() {
            Decision::Keep
        } else {
            Decision::Amend(differs, xattrs, found_xattrs)
        })
    }

    /// Whether the data of a file is to be copied; notes what of it differs.
    fn has_changed(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: &Metadata,
        found: &Metadata,
        differs: &mut Difference,
    ) -> Done<bool> {
        let contents = self.options.contents(source, found);
        let is_other_size = contents == Contents::OtherSize;
        differs.set(Difference::SIZE, is_other_size);
        differs.set(Difference::CONTENTS, is_other_size && self.options.comparison == Comparison::Contents);
        match contents {
            Contents::Same => return Ok(false),
            Contents::Unknown => {}
            _ => return Ok(true),
        }
        if self.has_same_data(buffers, visit)? {
            return Ok(false);
        }
        *differs |= Difference::CONTENTS;
        Ok(true)
    }

    /// Whether source and destination have the same contents.
    fn has_same_data(&self, buffers: &mut Buffers, visit: &Visit<'_, 'p, V>) -> Done<bool> {
        let Visit { item, entry, .. } = visit;
        const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
        let original = entry.handle().open_file(entry.name(), Access::Read, LINK);
        let original = original.map_err(self.failed(item, Trouble::OpenSource))?;
        let open_copy = || item.level.place.handle(self.budget)?.open_file(item.name, Access::Read, LINK);
        has_same_data(&original, open_copy, &mut buffers.data).map_err(self.failed(item, Trouble::Read))
    }

    /// The extended attributes of the source, and those of the destination, which exists.
    pub(super) fn both_xattrs(&self, visit: &Visit<'_, 'p, V>) -> Done<(XattrValues, XattrValues)> {
        let Visit { item, entry, .. } = visit;
        if !self.attributes.gathers() {
            return Ok(Default::default());
        }
        let mut report = |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        };
        let xattrs = self.attributes.gather_named(entry.handle(), entry.name(), &mut report);
        let place = item.level.place.handle(self.budget);
        let place = place.map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        Ok((xattrs, self.attributes.gather_named(&*place, item.name, &mut report)))
    }

    fn amend(
        &self,
        item: &Item<'_, 'p, V>,
        source: (&Metadata, &XattrValues),
        found: (&Metadata, &XattrValues),
    ) {
        let mut report = |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        };
        match item.level.place.handle(self.budget) {
            Ok(place) => {
                self.attributes_of(source.0).amend(&*place, item.name, source, found, &mut report);
            }
            Err(error) => report(Trouble::OpenDestinationDirectory, error.errno),
        }
    }

    /// Fails if what was found is a directory that will not make way, before anything is made.
    fn require_way(&self, item: &Item<'_, 'p, V>, found: Option<&Metadata>) -> Done<()> {
        let is_directory = found.is_some_and(|found| found.kind() == FileKind::Directory);
        let is_barred = is_directory
            && !self.removes_contents()
            && self.is_empty(item).is_err_and(|error| matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST));
        if is_barred { Err(self.trouble(item, Trouble::DirectoryInTheWay, None)) } else { Ok(()) }
    }

    /// Whether directories with contents are removed that are in the way.
    fn removes_contents(&self) -> bool {
        self.options.deletes() || self.options.conflicts == Conflicts::Removed
    }

    /// Removes what was found if it is a directory, which nothing can be renamed over.
    pub(super) fn make_way_for(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        found: Option<&Metadata>,
    ) -> Done<()> {
        match found.filter(|found| found.kind() == FileKind::Directory) {
            Some(found) => self.make_way(buffers, item, found),
            None => Ok(()),
        }
    }

    /// Removes a directory that is in the way of something else.
    fn make_way(&self, buffers: &mut Buffers, item: &Item<'_, 'p, V>, found: &Metadata) -> Done<()> {
        let failed = self.failed(item, Trouble::Remove);
        if self.protected.contains(&found.identity()) {
            return Err(self.trouble(item, Trouble::IntoItself, None));
        }
        if !self.removes_contents() {
            let removed = match self.is_real() {
                true => self.within(item.level, |place| place.remove(item.name, RemoveKind::Directory)),
                false => self.is_empty(item),
            };
            return match removed {
                Err(error) if error.errno == Errno::NOENT => Ok(()),
                removed => removed,
            }
            .map_err(|error| match error.errno {
                Errno::NOTEMPTY | Errno::EXIST => self.trouble(item, Trouble::DirectoryInTheWay, None),
                _ => failed(error),
            });
        }
        self.write(buffers);
        // What is in the way is removed from it.
        self.open_up(item.level, 0o300);
        let removals = Removals {
            options: self.options,
            deletions: self.deletions,
            watchers: self.watchers,
            target: item.target,
            directory: parent_of(item.below),
            is_operand: item.below.is_empty(),
            is_in_the_way: true,
        };
        let place = item.level.place.handle(self.budget).map_err(&failed)?;
        let base = place.beside_files().map_err(&failed)?;
        item.level.note_change();
        // One worker: others are at work already.
        if remove_tree(self.volume, base, item.name, &removals, Threads::Fixed(1)) {
            Ok(())
        } else if !self.watchers.counters.is_within_bound() {
            Err(self.trouble(item, Trouble::DirectoryKept, None))
        } else {
            Err(self.trouble(item, Trouble::DirectoryInTheWay, None))
        }
    }

    /// Fails if a directory of the destination holds anything.
    fn is_empty(&self, item: &Item<'_, 'p, V>) -> Result<(), Error> {
        let directory =
            item.level.place.handle(self.budget)?.open_dir(item.name, SymlinkBehavior::NoFollow)?;
        let (mut cursor, mut batch) = (Default::default(), DirentBatch::with_capacity(1024));
        while directory.read_entries(&mut cursor, &mut batch)? == ReadState::More {
            if batch.iter().next().is_some() {
                return Err(Error::new(Operation::Remove, Errno::NOTEMPTY));
            }
        }
        Ok(())
    }

    /// Makes a symbolic link, a device, a pipe or a socket.
    fn make(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, 'p, V>,
        source: &Metadata,
        found: Option<&Metadata>,
        target: Option<&CStr>,
    ) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let (node, trouble) = match special(source) {
            Some((node, trouble)) => (Some(node), trouble),
            None if source.kind() == FileKind::Symlink => (None, Trouble::CopySymlink),
            None => return Err(self.trouble(item, Trouble::UnknownKind, None)),
        };
        let attributes = self.attributes_of(source);
        let mode = attributes.creation_mode(source);
        let make = |place: &V::Dir, name: &CStr| match (node, target) {
            (Some(node), _) => place.create_node(name, node, mode),
            (None, target) => place.create_symlink(name, target.unwrap_or_default()),
        };
        let mut report = |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        };
        let xattrs = attributes.gather_named(entry.handle(), entry.name(), &mut report);
        let may_have_acl =
            source.kind() != FileKind::Symlink && attributes.inherits_acl(&item.level.place, self.budget);
        let mut finish = |place: &V::Dir, name: &CStr| {
            attributes.set_by_name(place, name, source, &xattrs, may_have_acl, &mut report);
            attributes.set_times_by_name(place, name, source, true, &mut report);
        };
        if found.is_none() {
            self.within(item.level, |place| make(place, item.name)).map_err(self.failed(item, trouble))?;
            let place = item.level.place.handle(self.budget).map_err(self.failed(item, trouble))?;
            finish(&place, item.name);
            return Ok(());
        }
        let temporaries = &self.options.temporaries;
        let made =
            self.within(item.level, |place| temporaries.make(place, item.name, |name| make(place, name)));
        let (temporary, ()) = made.map_err(self.failed(item, trouble))?;
        let place = item.level.place.handle(self.budget).map_err(self.failed(item, trouble))?;
        finish(&place, &temporary.name);
        let named = self
            .make_way_for(buffers, item, found)
            .and_then(|()| self.take_name(item, &temporary.name).map_err(self.failed(item, Trouble::Rename)));
        named.inspect_err(|_| {
            // The first error tells why.
            let _ = place.remove(&temporary.name, RemoveKind::File);
        })
    }

    /// Makes an entry a further name of a copy; false if that is gone.
    fn link(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        leader: &Arc<Leader<V::Dir>>,
        source: &Metadata,
        found: Option<&Metadata>,
    ) -> Done<bool> {
        let inode = found.map(Metadata::identity);
        if inode.is_some() && inode == leader.inode {
            if self.options.report == Report::AllItems {
                self.tell(buffers, item, Change::new(source.kind(), Update::Link, Difference::empty()));
            }
            return Ok(true);
        }
        let is_assumed = self.options.comparison == Comparison::None && source.kind() == FileKind::File;
        let differs = match found {
            Some(found) if found.kind() == source.kind() => {
                let assumed = if is_assumed { Difference::ASSUMED } else { Difference::empty() };
                self.options.metadata_difference(source, found) | assumed
            }
            _ => Difference::NEW,
        };
        if !self.is_real() {
            self.make_way_for(buffers, item, found)?;
        } else if !self.make_link(buffers, item, leader, found)? {
            return Ok(false);
        }
        if found.is_none() {
            count(&self.watchers.counters.created);
        }
        let target = Some(&*leader.transfer_name);
        self.tell(buffers, item, Change::new(source.kind(), Update::Link, differs).to(target));
        Ok(true)
    }

    /// Links under a temporary name, checks that it is the copy, and renames; false if the copy is gone.
    fn make_link(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, 'p, V>,
        leader: &Leader<V::Dir>,
        found: Option<&Metadata>,
    ) -> Done<bool> {
        const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
        let failed = self.failed(item, Trouble::CreateHardLink);
        let from = leader.place.handle(self.budget).map_err(&failed)?;
        let link = |place: &Arc<V::Dir>| {
            let link = |name: &CStr| from.hard_link(&leader.name, LINK, place, name);
            self.options.temporaries.make(place, item.name, link)
        };
        let temporary = match self.within(item.level, link) {
            Err(error) if error.errno == Errno::NOENT => return Ok(false),
            made => made.map_err(&failed)?.0,
        };
        let place = item.level.place.handle(self.budget).map_err(&failed)?;
        let made = place.metadata(&temporary.name, LINK, Fields::INO).map_err(&failed);
        let made = made.and_then(|made| {
            let is_copy = Some(made.identity()) == leader.inode;
            if is_copy {
                self.make_way_for(buffers, item, found)?;
                self.take_name(item, &temporary.name).map_err(&failed)?;
            }
            Ok(is_copy)
        });
        // Renaming one name of an inode to another does nothing; in all other cases but success, it is not wanted.
        let _ = place.remove(&temporary.name, RemoveKind::File);
        made
    }

    /// The inode of a copy that has been made.
    pub(super) fn made(&self, item: &Item<'_, 'p, V>) -> Option<Identity> {
        if !self.is_real() {
            return None;
        }
        item.level.place.identity_of(item.name, self.budget).ok()
    }

    /// Releases those who wait to link other names of a source to its copy.
    pub(super) fn resolve(&self, item: &Item<'_, 'p, V>, claim: Option<Identity>, inode: Option<Identity>) {
        let Some(claim) = claim else { return };
        if inode.is_none() && self.is_real() {
            return self.links.failed(claim);
        }
        let leader = Leader {
            place: Arc::clone(&item.level.place),
            name: item.name.into(),
            transfer_name: item.target.transfer_name(item.below).into(),
            inode,
        };
        self.links.made(claim, leader);
    }

    /// Reports that a directory is not synchronized.
    pub(super) fn skip_directory(&self, item: &Item<'_, 'p, V>) -> bool {
        let skips = self.options.recursion == Recursion::None;
        if skips {
            self.counterpart(item);
            self.notice(&Notice::SkippedDirectory(&item.target.transfer_name(item.below)));
        }
        skips
    }
}

/// The path of the directory that holds an entry, with its slash.
fn parent_of(below: &[u8]) -> &[u8] {
    &below[..below.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1)]
}
