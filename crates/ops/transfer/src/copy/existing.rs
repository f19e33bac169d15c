//! Decisions about whatever already exists at the destination of a copy.

use std::ffi::{CStr, CString};

use millstream_vfs::{
    Access, Dir, Errno, Fields, FileKind, Metadata, RemoveKind, SymlinkBehavior, Volume, is_writable,
};
use millstream_walk::FollowPolicy;

use super::backup::destroys_source;
use super::copier::Copier;
use super::item::{Item, Visit, split};
use super::job::Present;
use super::options::{
    Contents, Dangling, Execution, Existing, Method, Placement, Removal, Trace, Update, Verification,
};
use super::report::{Question, Trouble};
use super::trace::Action;
use crate::transfer::Identity;
use crate::transfer::buffers::Buffers;
use crate::transfer::place::{Origin, rename_new};
use crate::transfer::report::Done;
use crate::transfer::verify::has_same_data;

/// What to do about an entry that is not a directory.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// Nothing.
    Skip(Skipped),
    /// Create something new; the destination is free.
    Make {
        /// The backup of the existing file.
        backup: Option<CString>,
    },
    /// Overwrite the existing file; anything else there is in the way.
    Reuse(Box<Present>),
    /// Remove what exists and create something new.
    Replace,
}

/// Why an entry is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// It existed before and stays.
    Kept,
    /// It is up to date, so other names of the source may be linked to this inode.
    UpToDate(Identity),
}

impl Skipped {
    /// The inode that other names of the source may be linked to.
    pub(super) fn inode(self) -> Option<Identity> {
        match self {
            Skipped::Kept => None,
            Skipped::UpToDate(inode) => Some(inode),
        }
    }
}

/// How source and destination are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sameness {
    /// They are different files, or the relation does not matter.
    Different,
    /// They are the same file, and nothing needs to be done.
    UpToDate,
    /// They are the same file, and one name may be removed for the other.
    Replaceable,
    /// They are the same file, which is an error.
    Same,
}

impl<V: Volume> Copier<'_, V> {
    /// Examines the destination of the copy.
    pub(super) fn present(&self, item: &Item<'_, V>) -> Done<Option<Present>> {
        match item.place.origin {
            Origin::Made | Origin::Imagined => return Ok(None),
            Origin::Found => {}
        }
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let link = match place.metadata(item.name, SymlinkBehavior::NoFollow, Fields::STAT) {
            Ok(link) => link,
            Err(error) if error.errno == Errno::NOENT => return Ok(None),
            Err(error) => return Err(self.trouble(item, Trouble::StatDestination, Some(error.errno))),
        };
        if link.kind() != FileKind::Symlink {
            return Ok(Some(Present { link, target: Some(link), dangles: false, unreachable: None }));
        }
        let target = place.metadata(item.name, SymlinkBehavior::Follow, Fields::STAT);
        let errno = target.err().map(|error| error.errno);
        let dangles = errno == Some(Errno::NOENT);
        // `-f` replaces a loop of symbolic links.
        let forced = self.options.removal == Removal::IfUnwritable && errno == Some(Errno::LOOP);
        let unreachable = errno.filter(|_| !dangles && !forced);
        Ok(Some(Present { link, target: target.ok(), dangles, unreachable }))
    }

    /// Decides what to do about an entry that is not a directory.
    pub(super) fn decide(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, V>,
        source: &Metadata,
        present: Option<&Present>,
    ) -> Done<Decision> {
        let Visit { item, .. } = visit;
        let Some(present) = present else { return Ok(Decision::Make { backup: None }) };
        if self.would_write_through(source, present) && present.unreachable.is_some() {
            return Err(self.trouble(item, Trouble::StatDestination, present.unreachable));
        }
        if self.would_write_through(source, present) && self.is_just_created(item, present) {
            return Err(self.trouble(item, Trouble::ThroughJustCreatedLink, None));
        }
        if self.would_write_through(source, present)
            && present.dangles
            && self.options.dangling == Dangling::Refuse
        {
            if self.options.trace == Trace::Text {
                self.tell(&mut buffers.lines, item, Action::File, None, None);
            }
            // A source that cannot be read is the error to report.
            self.open_source(visit, source)?;
            return Err(self.trouble(item, Trouble::ThroughDanglingLink, None));
        }
        match (self.options.existing, self.options.update) {
            (Existing::Keep, _) | (_, Update::None) => return Ok(Decision::Skip(Skipped::Kept)),
            (_, Update::NoneOrFail) => return Err(self.trouble(item, Trouble::NotReplaced, None)),
            _ => {}
        }
        match self.sameness(visit, source, present)? {
            Sameness::UpToDate => return Ok(Decision::Skip(Skipped::UpToDate(present.link.identity()))),
            Sameness::Same => return Err(self.trouble(item, Trouble::SameFile, None)),
            Sameness::Replaceable | Sameness::Different => {}
        }
        if self.is_up_to_date(buffers, visit, source, present)? {
            return Ok(Decision::Skip(Skipped::UpToDate(present.link.identity())));
        }
        if !self.may_overwrite(buffers, item, present) {
            return Ok(Decision::Skip(Skipped::Kept));
        }
        let is_directory = |metadata: &Metadata| metadata.kind() == FileKind::Directory;
        if (present.is_directory() && self.options.backup.is_none())
            || (self.would_write_through(source, present)
                && present.target.as_ref().is_some_and(is_directory))
        {
            return Err(self.trouble(item, Trouble::DirectoryInTheWay, None));
        }
        if self.is_just_created(item, present)
            && self.options.backup.as_ref().is_none_or(|backup| backup.style != super::BackupStyle::Numbered)
        {
            return Err(self.trouble(item, Trouble::JustCreated, None));
        }
        self.make_room(item, source, present)
    }

    /// Whether this command created the existing file for another operand.
    fn is_just_created(&self, item: &Item<'_, V>, present: &Present) -> bool {
        if !item.is_operand() || self.targets.len() == 1 {
            return false;
        }
        let key = (present.link.identity(), item.destination_path(self.targets));
        self.progress().made.contains(&key)
    }

    fn is_up_to_date(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, V>,
        source: &Metadata,
        present: &Present,
    ) -> Done<bool> {
        let Visit { item, entry, .. } = visit;
        let existing = match self.options.update {
            Update::Incomplete => Some(&present.link),
            Update::Older if self.replaces(source) => Some(&present.link),
            _ => present.target.as_ref(),
        };
        if !existing.is_some_and(|existing| self.options.is_up_to_date(source, existing)) {
            return Ok(false);
        }
        if self.options.update == Update::Incomplete && source.kind() == FileKind::Symlink {
            let copy = item.place.handle(&self.budget).and_then(|place| place.read_link(item.name));
            return Ok(entry.read_link().is_ok_and(|target| copy.is_ok_and(|copy| copy == target)));
        }
        let is_checked = self.options.verification == Verification::Checksum
            && self.options.update == Update::Incomplete
            && source.kind() == FileKind::File;
        if is_checked { self.has_same_data(buffers, visit, source) } else { Ok(true) }
    }

    /// Whether source and destination have the same contents.
    fn has_same_data(&self, buffers: &mut Buffers, visit: &Visit<'_, V>, source: &Metadata) -> Done<bool> {
        let Visit { item, .. } = visit;
        let original = self.open_source(visit, source)?;
        let open_copy =
            || item.place.handle(&self.budget)?.open_file(item.name, Access::Read, SymlinkBehavior::NoFollow);
        has_same_data(&original, open_copy, &mut buffers.data).map_err(self.failed(item, Trouble::Read))
    }

    fn may_overwrite(&self, buffers: &mut Buffers, item: &Item<'_, V>, present: &Present) -> bool {
        match self.options.existing {
            Existing::Overwrite | Existing::Keep => true,
            Existing::Ask => {
                self.write(buffers);
                let writable = present.is_link()
                    || item
                        .place
                        .handle(&self.budget)
                        .and_then(|place| is_writable(&*place, item.name))
                        .unwrap_or(false);
                let destination = item.destination_path(self.targets);
                let unwritable = (!writable).then_some(present.link.mode & 0o7777);
                self.watchers.sink.confirm(&Question { destination: &destination, unwritable })
            }
        }
    }

    /// Whether source and destination are the same file.
    fn sameness(&self, visit: &Visit<'_, V>, source: &Metadata, present: &Present) -> Done<Sameness> {
        let Visit { item, entry, .. } = visit;
        let method = self.options.method;
        let source_is_link = source.kind() == FileKind::Symlink;
        let leads_here = present.target.is_some_and(|target| target.identity() == source.identity());
        let is_name = present.link.identity() == source.identity();
        if source_is_link {
            return Ok(self.sameness_of_link(visit, present, is_name));
        }
        if !leads_here {
            return Ok(Sameness::Different);
        }
        let replaced = self.options.backup.is_some() || self.options.removal == Removal::Always;
        if present.is_link() && !is_name {
            // The destination is a link to the source: replacing the link is harmless, writing through it is not.
            let harmless = replaced || method != Method::Copy;
            return Ok(if harmless { Sameness::Replaceable } else { Sameness::Same });
        }
        if method == Method::HardLink {
            return Ok(Sameness::UpToDate);
        }
        let through_link =
            entry.link_metadata(Fields::STAT).is_ok_and(|link| link.kind() == FileKind::Symlink);
        if self.is_same_name(item) || through_link {
            return Ok(Sameness::Same);
        }
        Ok(if replaced { Sameness::Replaceable } else { Sameness::Same })
    }

    fn sameness_of_link(&self, visit: &Visit<'_, V>, present: &Present, is_name: bool) -> Sameness {
        let Visit { item, entry, .. } = visit;
        if is_name {
            return match self.options.method {
                Method::HardLink => Sameness::UpToDate,
                _ if self.is_same_name(item) => Sameness::Same,
                _ if self.options.backup.is_none() => Sameness::UpToDate,
                _ => Sameness::Replaceable,
            };
        }
        if present.is_link() {
            return Sameness::Different;
        }
        // Removing the target would leave the link dangling.
        let leads_here = entry
            .target_metadata(Fields::STAT)
            .is_ok_and(|target| target.identity() == present.link.identity());
        match self.options.method {
            _ if !leads_here || self.options.backup.is_some() => Sameness::Different,
            Method::HardLink => Sameness::UpToDate,
            _ => Sameness::Same,
        }
    }

    /// Whether source and destination are the same name in the same directory.
    fn is_same_name(&self, item: &Item<'_, V>) -> bool {
        let (source, destination) = (item.source_path(self.targets), item.destination_path(self.targets));
        let ((source_in, source), (destination_in, destination)) = (split(&source), split(&destination));
        if source != destination {
            return false;
        }
        if !item.is_operand() {
            return item.directory.handle().and_then(|dir| dir.identity()).ok()
                == item.place.handle(&self.budget).and_then(|dir| dir.identity()).ok();
        }
        let base = self.base();
        let identity = |path: &CStr| {
            let path = if path.is_empty() { c"." } else { path };
            base.metadata(path, SymlinkBehavior::Follow, Fields::INO).map(|found| found.identity()).ok()
        };
        let source_in = identity(&source_in);
        source_in.is_some() && source_in == identity(&destination_in)
    }

    /// Renames the existing file to its backup, or decides whether to remove it.
    fn make_room(&self, item: &Item<'_, V>, source: &Metadata, present: &Present) -> Done<Decision> {
        if present.is_directory() {
            // It gets no backup, and the system refuses to write to it.
            return Ok(Decision::Reuse(Box::new(*present)));
        }
        if let Some(backup) = self.back_up(item, source)? {
            return Ok(Decision::Make { backup: Some(backup) });
        }
        let has_other_names = match self.options.method {
            Method::Copy | Method::SymbolicLink if !self.replaces(source) => {
                present.target.is_some_and(|target| target.nlink > 1)
            }
            _ => present.link.nlink > 1,
        };
        // If no data is copied, the existing data stays.
        let must_go = self.options.removal == Removal::Always
            || (self.options.contents == Contents::Copy
                && ((self.options.preserve.links && has_other_names)
                    || (source.kind() != FileKind::File
                        && (self.options.method != Method::HardLink || self.options.preserve.links)
                        && self.is_not_followed(item))));
        if must_go && !self.is_replaced_at_once(source, present) {
            return Ok(Decision::Replace);
        }
        Ok(Decision::Reuse(Box::new(*present)))
    }

    /// Whether a symbolic link in the place of the source would be copied as a link. A file that is neither a directory
    /// nor a regular one then replaces an existing file, and is an error otherwise.
    fn is_not_followed(&self, item: &Item<'_, V>) -> bool {
        match self.options.follow {
            FollowPolicy::Never => true,
            FollowPolicy::Operands => !item.is_operand(),
            FollowPolicy::Always => false,
        }
    }

    /// Whether the existing file stays until the complete copy takes its name.
    fn is_replaced_at_once(&self, source: &Metadata, present: &Present) -> bool {
        self.options.placement == Placement::Atomic
            && self.options.method == Method::Copy
            && self.options.contents == Contents::Copy
            && source.kind() == FileKind::File
            && present.link.kind() == FileKind::File
    }

    /// Whether a symbolic link at the destination would be written through.
    fn would_write_through(&self, source: &Metadata, present: &Present) -> bool {
        present.is_link()
            && self.options.method == Method::Copy
            && self.options.removal != Removal::Always
            && self.options.backup.is_none()
            && !self.replaces(source)
    }

    /// Whether the copy is always created anew: true unless data is written into it.
    fn replaces(&self, source: &Metadata) -> bool {
        match source.kind() {
            FileKind::File => false,
            FileKind::Symlink => true,
            _ => self.options.specials == super::Specials::Recreate,
        }
    }

    /// Renames the existing file to its backup; returns the backup's name.
    pub(super) fn back_up(&self, item: &Item<'_, V>, source: &Metadata) -> Done<Option<CString>> {
        let Some(backup) = &self.options.backup else { return Ok(None) };
        let place = item.place.handle(&self.budget).map_err(self.failed(item, Trouble::Backup))?;
        let source_path = item.source_path(self.targets);
        let source_name = source_path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        if destroys_source(backup, &*place, item.name, source_name, source.identity()) {
            return Err(self.trouble(item, Trouble::BackupIsSource, None));
        }
        loop {
            let name = backup.name(&*place, item.name).map_err(self.failed(item, Trouble::Backup))?;
            if self.options.effect != Execution::Real {
                return Ok(Some(name));
            }
            let is_numbered = name != backup.simple(item.name);
            let renamed = if is_numbered {
                rename_new(&*place, item.name, &name)
            } else {
                place.rename(item.name, &place, &name)
            };
            match renamed {
                Ok(()) => return Ok(Some(name)),
                // Another process has made a backup of this number since the directory was read.
                Err(error) if is_numbered && error.errno == Errno::EXIST => {}
                Err(error) if error.errno == Errno::NOENT => return Ok(None),
                Err(error) => return Err(self.trouble(item, Trouble::Backup, Some(error.errno))),
            }
        }
    }

    /// Path of a backup, for messages.
    pub(super) fn backup_path(&self, item: &Item<'_, V>, backup: &CStr) -> Vec<u8> {
        let path = item.destination_path(self.targets);
        let start = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
        let name = backup.to_bytes().rsplit(|&b| b == b'/').next().unwrap_or_default();
        [&path[..start], name].concat()
    }

    /// Removes the existing file.
    pub(super) fn remove(&self, buffers: &mut Buffers, item: &Item<'_, V>) -> Done<()> {
        if self.options.effect == Execution::Real {
            let place = item.place.handle(&self.budget).map_err(self.failed(item, Trouble::Remove))?;
            match place.remove(item.name, RemoveKind::File) {
                Ok(()) => {}
                Err(error) if error.errno == Errno::NOENT => return Ok(()),
                Err(error) => return Err(self.trouble(item, Trouble::Remove, Some(error.errno))),
            }
        }
        self.tell_removed(&mut buffers.lines, item);
        Ok(())
    }
}
