//! Directories: created before their contents, given their attributes after them.

use std::ffi::CStr;

use millstream_vfs::{Dir, Errno, Error, Fields, FileKind, Metadata, Operation, SymlinkBehavior, Volume};
use millstream_walk::FollowPolicy;

use super::copier::{Copier, Role, Top};
use super::item::{Item, State, joined, split};
use super::job::Present;
use super::options::{Directories, DirectoryLinks, Execution, FileSystems, Method, Trace};
use super::report::{Problem, Trouble};
use super::trace::Action;
use crate::transfer::attributes::Before;
use crate::transfer::buffers::Buffers;
use crate::transfer::place::{Origin, Original, Place};
use crate::transfer::report::{Done, Reported};

impl<V: Volume> Copier<'_, V> {
    /// Creates the copy of a directory; returns the destination of its entries if they are to be copied.
    pub(super) fn directory(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        source: &Metadata,
    ) -> Done<Option<State<V>>> {
        if self.options.directories == Directories::Omit {
            return Err(self.trouble(item, Trouble::OmittedDirectory, None));
        }
        let present = self.present(item)?.map(|present| self.at_directory(present));
        let is_same = present.is_some_and(|(found, _)| found.identity() == source.identity());
        // Where all that exists is kept, nothing can happen to it.
        if is_same && !self.options.keeps_existing() {
            return match self.options.method {
                // The links for everything in it already exist.
                Method::HardLink => Ok(None),
                _ => Err(self.trouble(item, Trouble::SameFile, None)),
            };
        }
        if self.is_copied_there(item, source, present.map(|(found, _)| found)) {
            self.watchers.sink.given_twice(self.targets[item.operand].source.to_bytes(), true);
            return Ok(None);
        }
        self.refuse_cycles(item, source)?;
        let within = match self.options.file_systems {
            FileSystems::One => self.device_within(item)?,
            FileSystems::All => source.dev,
        };
        let origin = self.make_directory(buffers, item, source, present.map(|(found, _)| found))?;
        let symlinks = present.map_or(SymlinkBehavior::NoFollow, |(_, symlinks)| symlinks);
        let device = if item.is_operand() { within } else { item.place.device };
        let original = Original { metadata: source, device, operand: item.operand };
        let place = Place::copy_of(original, item.place, item.name, symlinks, origin);
        if item.is_operand() {
            self.remember_top(item, source, &place)?;
        }
        place.begin();
        if self.options.file_systems == FileSystems::One && within != device {
            // A mount point is created, but nothing in it is copied.
            self.done_in(&place);
            return Ok(None);
        }
        Ok(Some(place))
    }

    fn device_within(&self, item: &Item<'_, V>) -> Done<u64> {
        let handle = item.directory.handle();
        // A link that is not to be followed is no directory.
        let device = handle.and_then(|above| above.device_within(item.source_name, SymlinkBehavior::Follow));
        device.map_err(self.failed(item, Trouble::StatSource))
    }

    /// Examines the destination of a directory; also returns whether it was reached through a symbolic link.
    fn at_directory(&self, present: Present) -> (Metadata, SymlinkBehavior) {
        match present.target {
            Some(target)
                if self.options.directory_links == DirectoryLinks::Followed
                    && present.is_link()
                    && target.kind() == FileKind::Directory =>
            {
                (target, SymlinkBehavior::Follow)
            }
            _ => (present.link, SymlinkBehavior::NoFollow),
        }
    }

    fn make_directory(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        source: &Metadata,
        present: Option<Metadata>,
    ) -> Done<Origin> {
        let mut backup = None;
        if let Some(present) = present {
            if present.kind() == FileKind::Directory {
                return Ok(Origin::Found);
            }
            if self.options.backup.is_none() {
                return Err(self.trouble(item, Trouble::FileInTheWay, None));
            }
            backup = self.back_up(item, source)?;
        }
        let mut origin = Origin::Imagined;
        if self.options.effect == Execution::Real {
            let made = item
                .place
                .handle(&self.budget)
                .and_then(|place| place.create_dir(item.name, self.attributes.creation_mode(source)))
                .map_err(self.failed(item, Trouble::CreateDirectory));
            if made.is_err() {
                self.put_back(buffers, item, backup.as_deref(), None);
            }
            made?;
            origin = Origin::Made;
        }
        self.tell(&mut buffers.lines, item, Action::Directory, None, None);
        Ok(origin)
    }

    /// Whether an earlier operand has been copied from here to here: `cp -r d . DIRECTORY`.
    fn is_copied_there(&self, item: &Item<'_, V>, source: &Metadata, present: Option<Metadata>) -> bool {
        let Some(present) = present else { return false };
        let progress = self.progress();
        let top = |found: &Metadata, role| {
            let top = progress.tops.get(&found.identity()).filter(|top| top.role == role);
            top.map(|top| top.operand).filter(|&operand| operand < item.operand)
        };
        let from = top(source, Role::Source);
        from.is_some() && from == top(&present, Role::Destination)
    }

    /// Refuses directories that would be copied endlessly, or twice.
    fn refuse_cycles(&self, item: &Item<'_, V>, source: &Metadata) -> Done<()> {
        let known = match self.progress().tops.get(&source.identity()) {
            Some(top) if top.operand <= item.operand => Some((top.operand, top.role)),
            _ => None,
        };
        let identity = source.identity();
        let follows = self.options.follow == FollowPolicy::Always;
        // A followed operand may lead to the same directory as another one.
        let may_recur = follows || (self.options.follow == FollowPolicy::Operands && item.is_operand());
        let is_source = |place: &Place<V::Dir>| place.source.is_some_and(|s| s.identity() == identity);
        let is_in_itself = match follows {
            true => item.place.ancestors().any(is_source),
            false => item.directory.enclosing(identity).is_some(),
        };
        match known {
            Some((operand, Role::Source)) if !may_recur => Err(self.tell_hard_link(item, operand)),
            _ if is_in_itself => Err(self.trouble(item, Trouble::Cycle, None)),
            Some((operand, Role::Destination)) if !may_recur && self.is_through_link(item, operand) => {
                Err(self.tell_hard_link(item, operand))
            }
            Some((_, Role::Destination)) => Err(self.tell_into_itself(item)),
            _ => Ok(()),
        }
    }

    /// Whether an operand's copy is reached under its name, but through a link to the directory that holds it. As in
    /// GNU's tool, only a link that was given as the directory for the copies does not count.
    fn is_through_link(&self, item: &Item<'_, V>, operand: usize) -> bool {
        let (target, source) = (&self.targets[operand], item.source_path(self.targets));
        let is_given_path = target.name.to_bytes() == target.path;
        let symlinks = if is_given_path { SymlinkBehavior::NoFollow } else { SymlinkBehavior::Follow };
        split(&target.path).1 == split(&source).1
            && self.directory_of(&target.path, symlinks)
                != self.directory_of(&source, SymlinkBehavior::NoFollow)
    }

    /// A directory that has been copied as an operand would have to be a link to that copy.
    fn tell_hard_link(&self, item: &Item<'_, V>, operand: usize) -> Reported {
        let destination = item.destination_path(self.targets);
        let source = &self.targets[operand].path;
        let trouble = Trouble::DirectoryHardLink;
        self.watchers.problem(&Problem { trouble, source, destination: &destination, errno: None })
    }

    /// An operand holds a copy that this command has made, of the operand itself or of an earlier one. That is reported
    /// once for the operand, however many copies it holds.
    fn tell_into_itself(&self, item: &Item<'_, V>) -> Reported {
        let target = &self.targets[item.operand];
        if !self.progress().into_itself.insert(item.operand) {
            return Reported;
        }
        self.watchers.problem(&Problem {
            trouble: Trouble::IntoItself,
            source: target.source.to_bytes(),
            destination: &target.path,
            errno: None,
        })
    }

    /// Records source and destination of an operand, so that neither is mistaken for something to copy.
    fn remember_top(&self, item: &Item<'_, V>, source: &Metadata, place: &Place<V::Dir>) -> Done<()> {
        let operand = item.operand;
        let mut progress_role = vec![(source.identity(), Role::Source)];
        if place.origin != Origin::Imagined {
            place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
            progress_role.extend(place.identity().map(|identity| (identity, Role::Destination)));
        }
        let mut progress = self.progress();
        for (identity, role) in progress_role {
            progress.tops.entry(identity).or_insert(Top { operand, role });
        }
        Ok(())
    }

    /// All entries of a source directory have been visited. The attributes for its copy are read while its handle is
    /// still open.
    pub(super) fn gather_directory(&self, directory: &super::item::SourceDirectory<V>) {
        let place = directory.state();
        let is_copied = place.source.is_some() && place.origin != Origin::Imagined;
        if !is_copied
            || !(self.attributes.options.preserve.mode
                || self.attributes.options.preserve.xattrs != super::Xattrs::Ignore)
        {
            return;
        }
        let mut report = |trouble, errno| {
            self.directory_trouble(place, trouble, errno);
        };
        let gathered = match directory.handle().and_then(|handle| handle.as_file()) {
            Ok(file) => self.attributes.gather(&file, &mut report),
            // That it may not be read has been reported. Its access control lists can be read all the same; without
            // them, its group would get the permissions of the lists' mask.
            Err(error) if error.errno == Errno::ACCESS => {
                let above = directory.parent().map(|above| above.handle());
                let get = |attribute: &CStr| match &above {
                    Some(Ok(above)) => above.get_xattr(directory.name(), attribute, SymlinkBehavior::Follow),
                    Some(Err(error)) => Err(*error),
                    None => Err(Error::new(Operation::GetXattr, Errno::NODATA)),
                };
                self.attributes.gather_acls(&get, &mut report)
            }
            Err(_) => Vec::new(),
        };
        place.xattrs.get_or_init(|| gathered);
    }

    /// Everything in the copy of a directory is done: sets its attributes.
    pub(super) fn finish_directory(&self, place: &Place<V::Dir>) {
        let Some(source) = &place.source else { return };
        let fresh = place.origin == Origin::Made;
        let wanted = match place.origin {
            Origin::Imagined => false,
            Origin::Made => {
                place.made_with().is_some()
                    || self.attributes.finishes_directory(source)
                    || self.has_acl_to_drop(place)
            }
            Origin::Found => self.attributes.options.preserve.any(),
        };
        if !wanted {
            return;
        }
        let opened = place
            .handle(&self.budget)
            .and_then(|handle| handle.as_file())
            .and_then(|file| Ok((millstream_vfs::File::metadata(&file, Fields::STAT)?, file)));
        let (metadata, file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.directory_trouble(place, Trouble::OpenDestinationDirectory, error.errno);
                return;
            }
        };
        let xattrs = place.xattrs.get().map_or(&[][..], Vec::as_slice);
        let may_have_acl = !fresh || self.has_acl_to_drop(place);
        let before = Before {
            metadata: &metadata,
            made_with: place.made_with(),
            fresh,
            may_have_acl,
            lacks_attribute: false,
            replaced_mode: None,
        };
        let mut report = |trouble, errno| {
            self.directory_trouble(place, trouble, errno);
        };
        self.attributes.set(&file, source, xattrs, before, &mut report);
    }

    fn has_acl_to_drop(&self, place: &Place<V::Dir>) -> bool {
        place.parent().is_some_and(|parent| self.attributes.may_inherit_acl(parent, &self.budget))
    }

    fn directory_trouble(&self, place: &Place<V::Dir>, trouble: Trouble, errno: Errno) -> Reported {
        let (source, destination) = self.directory_paths(place);
        self.watchers.problem(&Problem {
            trouble,
            source: &source,
            destination: &destination,
            errno: Some(errno),
        })
    }

    /// Paths of a source directory and its copy.
    pub(super) fn directory_paths(&self, place: &Place<V::Dir>) -> (Vec<u8>, Vec<u8>) {
        let target = &self.targets[place.operand];
        let mut names: Vec<_> =
            place.ancestors().take_while(|p| p.source.is_some()).map(Place::name).collect();
        // The last one belongs to the operand itself.
        names.pop();
        names.reverse();
        let below = names.iter().map(|name| name.to_bytes()).collect::<Vec<_>>().join(&b'/');
        (joined(target.source.to_bytes(), &below), joined(&target.path, &below))
    }

    /// Whether actions are reported as JSON records.
    pub(super) fn tells_records(&self) -> bool {
        self.options.trace == Trace::Json
    }
}
