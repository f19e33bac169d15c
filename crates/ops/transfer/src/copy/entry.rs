//! One entry: examines source and destination, decides, and creates the copy.

use std::cell::Cell;
use std::ffi::{CStr, CString};

use millstream_vfs::{Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, SymlinkBehavior, Volume};
use millstream_walk::{Descend, Entry};

use super::copier::Copier;
use super::existing::{Decision, Skipped};
use super::item::{Item, State, Visit, split};
use super::job::{FileOf, Job, NameState, Transfer};
use super::names::Linked;
use super::options::{
    Contents, Directories, Execution, Existing, Explanation, Method, Specials, Trace, Update,
};
use super::report::Trouble;
use super::trace::Action;
use crate::transfer::buffers::Buffers;
use crate::transfer::links::Claim;
use crate::transfer::place::Origin;
use crate::transfer::report::Done;
use crate::transfer::{Identity, special};

impl<V: Volume> Copier<'_, V> {
    /// Copies an entry, and descends into directories.
    pub(super) fn entry(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, V>,
        descend: &mut Descend<'_, V, State<V>>,
    ) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let job = self.examine(visit)?;
        let is_directory = job.metadata.kind() == FileKind::Directory;
        if item.is_operand() && self.is_given_twice(item, &job.metadata) {
            return Ok(());
        }
        if is_directory {
            let place = self.directory(buffers, item, &job.metadata).inspect_err(|_| {
                if item.is_operand() {
                    self.forget_operand(item, &job.metadata);
                }
            })?;
            if let Some(place) = place {
                descend.into_entry(entry, place);
            }
            return Ok(());
        }
        self.place_entry(buffers, visit, job)
    }

    /// Examines the source. An entry listed as a file is opened at once if it will surely be copied.
    fn examine(&self, visit: &Visit<'_, V>) -> Done<Job<V>> {
        let Visit { item, entry, .. } = visit;
        let surely_copied = self.options.method == Method::Copy
            && self.options.contents == Contents::Copy
            && self.options.effect == Execution::Real
            && (item.place.origin == Origin::Made
                || (self.options.update == Update::All && self.options.existing == Existing::Overwrite))
            && !item.is_operand();
        if entry.listed_kind() == FileKind::File && surely_copied {
            match self.open_listed_file(entry) {
                Ok(Some(opened)) => return Ok(opened),
                // It has been replaced by something else.
                Ok(None) => {}
                Err(error) if error.errno == Errno::LOOP => {}
                Err(error) => return Err(self.trouble(item, Trouble::OpenSource, Some(error.errno))),
            }
        }
        let failed = self.failed(item, Trouble::StatSource);
        let metadata = entry.metadata(Fields::STAT).map_err(&failed)?;
        if metadata.kind() == FileKind::Symlink && entry.symlinks() == SymlinkBehavior::Follow {
            let error = entry.target_metadata(Fields::KIND).err();
            return Err(failed(error.unwrap_or(Error::new(millstream_vfs::Operation::Stat, Errno::NOENT))));
        }
        Ok(Job::of(metadata, None))
    }

    fn open_listed_file(&self, entry: &Entry<'_, V, State<V>>) -> Result<Option<Job<V>>, Error> {
        let file = entry.handle().open_file(entry.name(), Access::Read, SymlinkBehavior::NoFollow)?;
        let metadata = file.metadata(Fields::STAT)?;
        Ok((metadata.kind() == FileKind::File).then_some(Job::of(metadata, Some(file))))
    }

    fn is_given_twice(&self, item: &Item<'_, V>, source: &Metadata) -> bool {
        let is_directory = source.kind() == FileKind::Directory;
        let is_refused = is_directory && self.options.directories == Directories::Omit;
        let is_kept = !is_directory && self.options.backup.is_some();
        if self.targets.len() == 1 || is_refused || is_kept {
            return false;
        }
        let path = &self.targets[item.operand].source;
        let key = self.operand_key(item, source);
        let mut progress = self.progress();
        let known = progress.sources.entry(key).or_default();
        let is_known =
            known.iter().any(|&other| self.are_in_one_directory(&self.targets[other].source, path));
        known.push(item.operand);
        drop(progress);
        if is_known {
            self.watchers.sink.given_twice(&item.source_path(self.targets), is_directory);
        }
        is_known
    }

    fn operand_key(&self, item: &Item<'_, V>, source: &Metadata) -> (Identity, Vec<u8>) {
        (source.identity(), split(self.targets[item.operand].source.to_bytes()).1.to_vec())
    }

    /// An operand that could not be copied does not count as given, if it is given again.
    fn forget_operand(&self, item: &Item<'_, V>, source: &Metadata) {
        if let Some(known) = self.progress().sources.get_mut(&self.operand_key(item, source)) {
            known.retain(|&operand| operand != item.operand);
        }
    }

    /// Whether the last components of two paths are in the same directory. As in GNU's tool, a path through a symbolic
    /// link differs from one through the link's target.
    fn are_in_one_directory(&self, one: &CStr, other: &CStr) -> bool {
        let identity = |path: &CStr| self.directory_of(path.to_bytes(), SymlinkBehavior::NoFollow);
        identity(one) == identity(other)
    }

    /// The directory that holds the last component of a path; the symbolic link that leads to it if that is not
    /// followed.
    pub(super) fn directory_of(&self, path: &[u8], symlinks: SymlinkBehavior) -> Option<Identity> {
        let (parent, _) = split(path);
        let end = parent.to_bytes().iter().rposition(|&b| b != b'/').map_or(1, |at| at + 1);
        let parent = match parent.to_bytes() {
            b"" => c".".to_owned(),
            parent => CString::new(&parent[..end]).unwrap_or_default(),
        };
        let found = self.base().metadata(&parent, symlinks, Fields::INO);
        found.map(|found| found.identity()).ok()
    }

    fn place_entry(&self, buffers: &mut Buffers, visit: &Visit<'_, V>, mut job: Job<V>) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let present = self.present(item)?;
        let decision = self.decide(buffers, visit, &job.metadata, present.as_ref())?;
        let may_have_links = job.metadata.nlink > 1 || entry.symlinks() == SymlinkBehavior::Follow;
        let linked = self.options.preserve.links && may_have_links && self.options.method == Method::Copy;
        if let Decision::Skip(Skipped::Kept) = decision {
            self.tell_skipped(buffers, item);
            return Ok(());
        }
        if let Decision::Make { backup } = &decision {
            job.backup.clone_from(backup);
        }
        job.is_claimed = linked && self.options.effect == Execution::Real;
        let identity = job.metadata.identity();
        while job.is_claimed
            && let Claim::Copied(copied) = self.links.claim(identity)
        {
            match self.link_to_copy(buffers, item, &copied, &decision, present.as_ref()) {
                Ok(Linked::Yes) => return Ok(()),
                Ok(Linked::CopyIsGone) => self.links.forget(identity, &copied),
                Err(reported) => {
                    self.put_back(buffers, item, job.backup.as_deref(), None);
                    return Err(reported);
                }
            }
        }
        self.carry_out(buffers, visit, job, decision)
    }

    /// Carries out the decision.
    fn carry_out(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, V>,
        mut job: Job<V>,
        decision: Decision,
    ) -> Done<()> {
        let Visit { item, .. } = visit;
        match decision {
            Decision::Skip(skipped) => {
                self.tell_skipped(buffers, item);
                return self.finish_copy(buffers, item, &job, skipped.inode(), Ok(()));
            }
            Decision::Make { .. } => {}
            Decision::Reuse(present) => job.reused = Some(*present),
            Decision::Replace if self.action(&job.metadata) == Action::File => {
                let removed = self.remove_for_data(buffers, visit, &mut job);
                if removed.is_err() {
                    return self.finish_copy(buffers, item, &job, None, removed);
                }
            }
            Decision::Replace => job.name = NameState::Taken,
        }
        self.make(buffers, visit, job)
    }

    /// Removes the existing file that data goes in the place of, once the source is known to be readable.
    fn remove_for_data(&self, buffers: &mut Buffers, visit: &Visit<'_, V>, job: &mut Job<V>) -> Done<()> {
        let Visit { item, .. } = visit;
        if job.source.is_none() && self.options.effect == Execution::Real {
            let opened = self.open_source(visit, &job.metadata);
            if opened.is_err() && self.options.trace == Trace::Text {
                self.tell_copy(buffers, item, job);
            }
            job.source = Some(opened?);
        }
        self.remove(buffers, item)
    }

    /// Creates the copy of an entry.
    fn make(&self, buffers: &mut Buffers, visit: &Visit<'_, V>, job: Job<V>) -> Done<()> {
        let Visit { item, .. } = visit;
        let action = self.action(&job.metadata);
        if self.options.effect == Execution::DryRun {
            if job.name == NameState::Taken {
                self.tell_removed(&mut buffers.lines, item);
            }
            let bytes = (action == Action::File).then_some(job.metadata.size);
            self.tell_step(buffers, item, &job, action, bytes);
            return Ok(());
        }
        if action == Action::File {
            return self.make_file(buffers, visit, job);
        }
        let made = match action {
            Action::Symlink if self.options.method == Method::SymbolicLink => self.symbolic_link(item, &job),
            Action::Symlink => self.copy_symlink(visit, &job),
            Action::HardLink => self.hard_link(visit, &job),
            _ => self.node(visit, &job),
        };
        if made.is_ok() {
            self.note_made(item);
            if job.name == NameState::Taken {
                self.tell_removed(&mut buffers.lines, item);
            }
        }
        if made.is_ok() || self.options.trace == Trace::Text {
            self.tell_step(buffers, item, &job, action, None);
        }
        self.finish_copy(buffers, item, &job, None, made)
    }

    /// Creates a file for the data of the source, and has the data moved.
    fn make_file(&self, buffers: &mut Buffers, visit: &Visit<'_, V>, mut job: Job<V>) -> Done<()> {
        let Visit { item, .. } = visit;
        if self.options.trace == Trace::Text && !self.options.explains() {
            self.tell_copy(buffers, item, &job);
        }
        let _alone = self.alone(&job);
        match self.open_ends(buffers, visit, &mut job) {
            Ok((copy, temporary)) => self.transfer(buffers, visit, Transfer { job, copy, temporary }),
            Err(reported) => {
                if self.options.explains() {
                    self.tell_copy(buffers, item, &job);
                }
                self.finish_copy(buffers, item, &job, None, Err(reported))
            }
        }
    }

    /// Reports in text that data is being copied.
    pub(super) fn tell_copy(&self, buffers: &mut Buffers, item: &Item<'_, V>, job: &Job<V>) {
        self.tell_step(buffers, item, job, Action::File, None);
    }

    fn tell_step(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        job: &Job<V>,
        action: Action,
        bytes: Option<u64>,
    ) {
        let backup = job.backup.as_ref().map(|name| self.backup_path(item, name));
        self.tell(&mut buffers.lines, item, action, backup.as_deref(), bytes);
    }

    pub(super) fn action(&self, source: &Metadata) -> Action {
        let recreates = self.options.specials == Specials::Recreate;
        match (self.options.method, source.kind()) {
            (Method::SymbolicLink, _) | (Method::Copy, FileKind::Symlink) => Action::Symlink,
            (Method::HardLink, _) => Action::HardLink,
            (Method::Copy, FileKind::File) => Action::File,
            (Method::Copy, _) if recreates => Action::Special,
            (Method::Copy, _) => Action::File,
        }
    }

    pub(super) fn tell_skipped(&self, buffers: &mut Buffers, item: &Item<'_, V>) {
        if self.tells_records() || self.options.explanation == Explanation::Methods {
            let (source, destination) = (item.source_path(self.targets), item.destination_path(self.targets));
            self.options.trace.skipped(&source, &destination, &mut buffers.lines);
        }
    }

    /// Opens the source for reading, and checks that it is the file that was examined.
    pub(super) fn open_source(&self, visit: &Visit<'_, V>, source: &Metadata) -> Done<FileOf<V>> {
        let Visit { item, entry, .. } = visit;
        let access = if source.kind() == FileKind::File { Access::Read } else { Access::ReadStream };
        let file = entry
            .handle()
            .open_file(entry.name(), access, entry.symlinks())
            .map_err(self.failed(item, Trouble::OpenSource))?;
        let opened = file.metadata(Fields::STAT).map_err(self.failed(item, Trouble::StatSource))?;
        if opened.identity() != source.identity() {
            return Err(self.trouble(item, Trouble::SourceReplaced, None));
        }
        Ok(file)
    }

    /// A file created for one operand must not be overwritten for another.
    pub(super) fn note_made(&self, item: &Item<'_, V>) {
        if item.is_operand() && self.targets.len() > 1 {
            let found = item.place.identity_of(item.name, &self.budget);
            let path = item.destination_path(self.targets);
            self.progress().made.extend(found.map(|identity| (identity, path)));
        }
    }

    fn symbolic_link(&self, item: &Item<'_, V>, job: &Job<V>) -> Done<()> {
        let source = item.source_path(self.targets);
        let destination = item.destination_path(self.targets);
        if !source.starts_with(b"/") && !self.is_in_current_directory(&destination) {
            return Err(self.trouble(item, Trouble::RelativeSymlink, None));
        }
        let target = CString::new(source).unwrap_or_default();
        self.replacing(item, job, Trouble::CreateSymlink, |place, name| place.create_symlink(name, &target))?;
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        // The link gets the source's times, and nothing else of it.
        self.attributes.set_times_by_name(&*place, item.name, &job.metadata, true, &mut |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        });
        Ok(())
    }

    fn is_in_current_directory(&self, destination: &[u8]) -> bool {
        let Some(end) = destination.iter().rposition(|&b| b == b'/') else { return true };
        let directory = CString::new(&destination[..end.max(1)]).unwrap_or_default();
        let base = self.base();
        let identity = |path: &std::ffi::CStr| {
            base.metadata(path, SymlinkBehavior::Follow, Fields::INO).map(|found| found.identity()).ok()
        };
        identity(&directory) == identity(c".")
    }

    fn copy_symlink(&self, visit: &Visit<'_, V>, job: &Job<V>) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let target = entry.read_link().map_err(self.failed(item, Trouble::ReadLink))?;
        let target = CString::new(target).unwrap_or_default();
        self.replacing(item, job, Trouble::CopySymlink, |place, name| place.create_symlink(name, &target))?;
        self.set_attributes_by_name(visit, &job.metadata)
    }

    fn hard_link(&self, visit: &Visit<'_, V>, job: &Job<V>) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let follow = entry.symlinks();
        self.replacing(item, job, Trouble::CreateHardLink, |place, name| {
            entry.handle().hard_link(entry.name(), follow, place, name)
        })
    }

    fn node(&self, visit: &Visit<'_, V>, job: &Job<V>) -> Done<()> {
        let Visit { item, .. } = visit;
        let source = &job.metadata;
        let Some((kind, trouble)) = special(source) else {
            return Err(self.trouble(item, Trouble::UnknownKind, None));
        };
        let mode = self.attributes.creation_mode(source);
        self.replacing(item, job, trouble, |place, name| place.create_node(name, kind, mode))?;
        self.set_attributes_by_name(visit, source)
    }

    fn set_attributes_by_name(&self, visit: &Visit<'_, V>, source: &Metadata) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        // A complete copy may be linked to even if some attribute could not be set.
        let is_complete = Cell::new(true);
        let mut report = |trouble, errno| {
            is_complete.set(false);
            self.trouble(item, trouble, Some(errno));
        };
        let xattrs = self.attributes.gather_by_name(entry, source, &mut report);
        let may_have_acl =
            source.kind() != FileKind::Symlink && self.attributes.may_inherit_acl(item.place, &self.budget);
        self.attributes.set_by_name(&*place, item.name, source, &xattrs, may_have_acl, &mut report);
        self.attributes.set_times_by_name(&*place, item.name, source, is_complete.get(), &mut report);
        Ok(())
    }
}
