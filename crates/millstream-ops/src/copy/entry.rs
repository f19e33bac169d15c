//! One entry: what it is, what is in its place, and what is made of it.

use std::ffi::{CStr, CString};

use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, NodeKind, RemoveKind, SymlinkBehavior,
    Volume,
};
use millstream_walk::{Descend, Entry};

use super::carriers::Crew;
use super::copier::{Buffers, Copier, Done, Reported};
use super::existing::{Decision, Present, Skipped};
use super::item::{Item, State};
use super::links::{Claim, Copied};
use super::options::{Contents, Effect, Existing, Method, Removal, Specials, Trace, Update};
use super::place::Origin;
use super::report::Trouble;
use super::trace::Action;
use super::transfer::temporary_name;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// A source that has been looked at, and maybe opened for it.
struct Source<V: Volume> {
    metadata: Metadata,
    file: Option<FileOf<V>>,
}

impl<V: Volume> Copier<'_, V> {
    /// Copies an entry; directories are descended into.
    pub(super) fn entry(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        descend: &mut Descend<'_, V, State<V>>,
        crew: &dyn Crew<V>,
    ) -> Done<()> {
        let source = self.examine(item, entry)?;
        let is_directory = source.metadata.kind() == FileKind::Directory;
        if item.is_operand() && self.is_given_twice(item, &source.metadata) {
            return Ok(());
        }
        if is_directory {
            if let Some(place) = self.directory(buffers, item, &source.metadata)? {
                descend.into_entry(entry, place);
            }
            return Ok(());
        }
        let present = self.present(item)?;
        self.place_entry(buffers, item, entry, source, present, crew)
    }

    /// Looks at the source: what the directory says is a file is opened at once if it will surely be copied.
    fn examine(&self, item: &Item<'_, V>, entry: &Entry<'_, V, State<V>>) -> Done<Source<V>> {
        let surely_copied = self.options.method == Method::Copy
            && self.options.contents == Contents::Copy
            && self.options.effect == Effect::Real
            && (item.place.origin == Origin::Made
                || (self.options.update == Update::All && self.options.existing == Existing::Overwrite))
            && !item.is_operand();
        if entry.listed_kind() == FileKind::File && surely_copied {
            match self.open_listed_file(entry) {
                Ok(Some(opened)) => return Ok(opened),
                // Something else has taken its place.
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
        Ok(Source { metadata, file: None })
    }

    fn open_listed_file(&self, entry: &Entry<'_, V, State<V>>) -> Result<Option<Source<V>>, Error> {
        let file = entry.handle().open_file(entry.name(), Access::Read, SymlinkBehavior::NoFollow)?;
        let metadata = file.metadata(Fields::STAT)?;
        Ok((metadata.kind() == FileKind::File).then_some(Source { metadata, file: Some(file) }))
    }

    fn is_given_twice(&self, item: &Item<'_, V>, source: &Metadata) -> bool {
        if self.targets.len() == 1 || self.options.backup.is_some() {
            return false;
        }
        let is_directory = source.kind() == FileKind::Directory;
        if is_directory && self.options.directories == super::Directories::Omit {
            return false;
        }
        let path = item.source_path();
        let is_new = self.progress().sources.insert((item.destination_path(self.targets), source.identity()));
        if !is_new {
            self.sink().given_twice(&path, is_directory);
        }
        !is_new
    }

    fn place_entry(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        source: Source<V>,
        present: Option<Present>,
        crew: &dyn Crew<V>,
    ) -> Done<()> {
        let metadata = source.metadata;
        let decision = self.decide(buffers, item, entry, &metadata, present.as_ref())?;
        let may_have_links = metadata.nlink > 1 || entry.symlinks() == SymlinkBehavior::Follow;
        let linked = self.options.preserve.links && may_have_links && self.options.method == Method::Copy;
        if let Decision::Skip(Skipped::Kept) = decision {
            self.tell_skipped(buffers, item);
            return Ok(());
        }
        if !linked || self.options.effect == Effect::Told {
            return self.carry_out(buffers, item, entry, source, decision, false, crew);
        }
        match self.links.claim(metadata.identity()) {
            Claim::Ours => {
                let done = self.carry_out(buffers, item, entry, source, decision, true, crew);
                if done.is_err() {
                    self.links.failed(metadata.identity());
                }
                done
            }
            Claim::Copied(copied) => self.link_to_copy(buffers, item, &copied, decision, present.as_ref()),
        }
    }

    /// Makes what was decided on; what is `claimed` is declared made as soon as it has its name.
    #[expect(clippy::too_many_arguments, reason = "the one place where all that is known of an entry meets")]
    fn carry_out(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        source: Source<V>,
        decision: Decision,
        claimed: bool,
        crew: &dyn Crew<V>,
    ) -> Done<()> {
        let Source { metadata, file } = source;
        let (backup, reused) = match decision {
            Decision::Skip(_) => {
                self.tell_skipped(buffers, item);
                if claimed {
                    self.name_made(item, &metadata);
                }
                return Ok(());
            }
            Decision::Make { backup } => (backup, None),
            Decision::Reuse(present) => (None, Some(*present)),
        };
        let Some(kept) = backup else {
            return self.make(buffers, item, entry, Source { metadata, file }, reused, None, claimed, crew);
        };
        let path = Some(self.backup_path(item, &kept));
        let made = self.make(buffers, item, entry, Source { metadata, file }, reused, path, claimed, crew);
        if made.is_err() && self.options.effect == Effect::Real {
            // There is no copy: what was there comes back. Where something has come in its place it stays a backup.
            let restored = item.place.handle(&self.budget).and_then(|place| {
                match place.metadata(item.name, SymlinkBehavior::NoFollow, Fields::KIND) {
                    Err(error) if error.errno == Errno::NOENT => place.rename(&kept, &place, item.name),
                    _ => Ok(()),
                }
            });
            restored.map_err(self.failed(item, Trouble::Backup))?;
        }
        made
    }

    /// Makes the copy of an entry.
    #[expect(clippy::too_many_arguments, reason = "the one place where all that is known of an entry meets")]
    fn make(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        source: Source<V>,
        reused: Option<Present>,
        backup: Option<Vec<u8>>,
        claimed: bool,
        crew: &dyn Crew<V>,
    ) -> Done<()> {
        let Source { metadata, file } = source;
        let action = self.action(&metadata);
        let is_data = action == Action::File;
        if self.options.trace == Trace::Text || !is_data || self.options.effect == Effect::Told {
            let bytes = (is_data && self.options.effect == Effect::Told).then_some(metadata.size);
            self.tell(&mut buffers.lines, item, action, backup.as_deref(), bytes);
        }
        if self.options.effect == Effect::Told {
            return Ok(());
        }
        if is_data {
            let ours = claimed.then(|| metadata.identity());
            let transfer =
                self.begin_transfer(buffers, item, entry, &metadata, file, reused, ours, backup)?;
            return self.transfer(buffers, item, transfer, crew);
        }
        match action {
            Action::Symlink if self.options.method == Method::SymbolicLink => {
                self.symbolic_link(item, reused)?;
            }
            Action::Symlink => self.copy_symlink(item, entry, &metadata, reused)?,
            Action::HardLink => self.hard_link(item, entry, reused)?,
            _ => self.node(item, &metadata)?,
        }
        self.note_made(item);
        if claimed {
            self.name_made(item, &metadata);
        }
        Ok(())
    }

    fn action(&self, source: &Metadata) -> Action {
        let recreates = self.options.specials == Specials::Recreate;
        match (self.options.method, source.kind()) {
            (Method::SymbolicLink, _) | (Method::Copy, FileKind::Symlink) => Action::Symlink,
            (Method::HardLink, _) => Action::HardLink,
            (Method::Copy, FileKind::File) => Action::File,
            (Method::Copy, _) if recreates => Action::Special,
            (Method::Copy, _) => Action::File,
        }
    }

    fn tell_skipped(&self, buffers: &mut Buffers, item: &Item<'_, V>) {
        if self.tells_records() {
            let (source, destination) = (item.source_path(), item.destination_path(self.targets));
            self.options.trace.skipped(&source, &destination, &mut buffers.lines);
        }
    }

    /// Opens the source for reading, and makes sure that it is what was looked at.
    pub(super) fn open_source(
        &self,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        source: &Metadata,
    ) -> Done<FileOf<V>> {
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

    /// The copy has its name: other names of the source may be linked to it.
    pub(super) fn name_made(&self, item: &Item<'_, V>, source: &Metadata) {
        let copied = Copied {
            place: std::sync::Arc::clone(item.place),
            name: item.name.to_owned(),
            path: item.destination_path(self.targets),
        };
        self.links.made(source.identity(), copied);
    }

    /// What was made for an operand must not be written over for another one.
    pub(super) fn note_made(&self, item: &Item<'_, V>) {
        if item.is_operand() && self.targets.len() > 1 {
            let found = item
                .place
                .handle(&self.budget)
                .and_then(|place| place.metadata(item.name, SymlinkBehavior::NoFollow, Fields::INO));
            self.progress().made.extend(found.map(|found| found.identity()));
        }
    }

    fn symbolic_link(&self, item: &Item<'_, V>, reused: Option<Present>) -> Done<()> {
        let source = item.source_path();
        let destination = item.destination_path(self.targets);
        if !source.starts_with(b"/") && !self.is_in_current_directory(&destination) {
            return Err(self.trouble(item, Trouble::RelativeSymlink, None));
        }
        let target = CString::new(source).unwrap_or_default();
        self.replacing(item, reused, Trouble::CreateSymlink, |place, name| {
            place.create_symlink(name, &target)
        })
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

    fn copy_symlink(
        &self,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        source: &Metadata,
        reused: Option<Present>,
    ) -> Done<()> {
        let target = entry.read_link().map_err(self.failed(item, Trouble::ReadLink))?;
        let target = CString::new(target).unwrap_or_default();
        self.replacing(item, reused, Trouble::CopySymlink, |place, name| {
            place.create_symlink(name, &target)
        })?;
        self.set_attributes_by_name(item, source)
    }

    fn hard_link(
        &self,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        reused: Option<Present>,
    ) -> Done<()> {
        let follow = entry.symlinks();
        self.replacing(item, reused, Trouble::CreateHardLink, |place, name| {
            entry.handle().hard_link(entry.name(), follow, place, name)
        })
    }

    /// Makes a name; with `-f` what is there is replaced by it, in one step.
    fn replacing(
        &self,
        item: &Item<'_, V>,
        reused: Option<Present>,
        trouble: Trouble,
        make: impl Fn(&V::Dir, &CStr) -> Result<(), Error>,
    ) -> Done<()> {
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let replaces = reused.is_some()
            && (self.options.removal == Removal::IfUnwritable || self.options.existing == Existing::Ask);
        let made = match make(&place, item.name) {
            Err(error) if error.errno == Errno::EXIST && replaces => {
                let temporary = temporary_name(item.name);
                make(&place, &temporary).and_then(|()| {
                    place.rename(&temporary, &place, item.name).inspect_err(|_| {
                        // The first error tells why; what is left over is a link.
                        let _ = place.remove(&temporary, RemoveKind::File);
                    })
                })
            }
            made => made,
        };
        made.map_err(self.failed(item, trouble))
    }

    fn node(&self, item: &Item<'_, V>, source: &Metadata) -> Done<()> {
        let (kind, trouble) = match source.kind() {
            FileKind::Fifo => (NodeKind::Fifo, Trouble::CreateFifo),
            FileKind::Socket => (NodeKind::Socket, Trouble::CreateSpecial),
            FileKind::CharDevice => (NodeKind::CharDevice(source.rdev), Trouble::CreateSpecial),
            FileKind::BlockDevice => (NodeKind::BlockDevice(source.rdev), Trouble::CreateSpecial),
            _ => return Err(self.trouble(item, Trouble::UnknownKind, None)),
        };
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let mode = self.attributes.creation_mode(source);
        place.create_node(item.name, kind, mode).map_err(self.failed(item, trouble))?;
        self.set_attributes_by_name(item, source)
    }

    fn set_attributes_by_name(&self, item: &Item<'_, V>, source: &Metadata) -> Done<()> {
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let mut outcome = Ok(());
        self.attributes.set_by_name(&*place, item.name, source, &mut |trouble, errno| {
            outcome = Err(self.trouble(item, trouble, Some(errno)));
        });
        // What has been made may be linked to, whatever attribute it lacks.
        let _: Result<(), Reported> = outcome;
        Ok(())
    }

    /// Makes a further name of a file that has been copied.
    fn link_to_copy(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        copied: &Copied<V::Dir>,
        decision: Decision,
        present: Option<&Present>,
    ) -> Done<()> {
        let from = copied
            .place
            .handle(&self.budget)
            .map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let backup = match decision {
            Decision::Make { backup } => backup.map(|name| self.backup_path(item, &name)),
            Decision::Skip(_) | Decision::Reuse(_) => {
                let copy = from.metadata(&copied.name, SymlinkBehavior::NoFollow, Fields::INO);
                let is_linked = copy.is_ok_and(|copy| {
                    present.is_some_and(|present| present.link.identity() == copy.identity())
                });
                if is_linked {
                    self.tell_skipped(buffers, item);
                    return Ok(());
                }
                self.remove(buffers, item)?;
                None
            }
        };
        self.tell(&mut buffers.lines, item, Action::HardLink, backup.as_deref(), None);
        let link = || from.hard_link(&copied.name, SymlinkBehavior::NoFollow, &place, item.name);
        let linked = match link() {
            Err(error) if error.errno == Errno::EXIST => {
                self.remove(buffers, item)?;
                link()
            }
            linked => linked,
        };
        linked.map_err(|error| {
            let destination = item.destination_path(self.targets);
            self.problem(&super::Problem {
                trouble: Trouble::CreateHardLink,
                source: &copied.path,
                destination: &destination,
                errno: Some(error.errno),
            })
        })?;
        self.note_made(item);
        Ok(())
    }
}
