//! Replaces names in one step, only after the new file exists.

use std::ffi::CStr;
use std::sync::Arc;

use millstream_vfs::{Dir, Errno, Error, Fields, Operation, RemoveKind, SymlinkBehavior, Volume};

use super::copier::Copier;
use super::existing::Decision;
use super::item::{Copied, Item, joined};
use super::job::{Job, NameState, Present};
use super::options::{Existing, Removal, Trace};
use super::report::{Problem, Trouble};
use super::trace::Action;
use crate::transfer::buffers::Buffers;
use crate::transfer::report::Done;
use crate::transfer::temporaries::Temporary;

/// The outcome of linking a further name to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linked {
    /// The link exists.
    Yes,
    /// The name of the copy now belongs to another file.
    CopyIsGone,
}

impl<V: Volume> Copier<'_, V> {
    /// Creates a link or node. It replaces an existing file in one step if it is to; with `-f`, links do.
    pub(super) fn replacing(
        &self,
        item: &Item<'_, V>,
        job: &Job<V>,
        trouble: Trouble,
        make: impl Fn(&V::Dir, &CStr) -> Result<(), Error>,
    ) -> Done<()> {
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let forces = self.options.removal == Removal::IfUnwritable || self.options.existing == Existing::Ask;
        let is_link = self.action(&job.metadata) != Action::Special;
        let made = match make(&place, item.name) {
            Err(error) if error.errno == Errno::EXIST && job.name == NameState::Taken => {
                return self.replace(item, &place, trouble, make);
            }
            Err(error) if error.errno == Errno::EXIST && job.reused.is_some() && forces && is_link => self
                .options
                .temporaries
                .make(&place, item.name, |name| make(&place, name))
                .and_then(|(temporary, ())| self.take_name(&place, &temporary, item.name)),
            made => made,
        };
        made.map_err(self.failed(item, trouble))
    }

    /// Makes something under a temporary name, and then has it replace the existing file, which stays if the new one
    /// cannot be made: not every file system has links and pipes, and not everybody may make devices.
    fn replace(
        &self,
        item: &Item<'_, V>,
        place: &Arc<V::Dir>,
        trouble: Trouble,
        make: impl Fn(&V::Dir, &CStr) -> Result<(), Error>,
    ) -> Done<()> {
        let made = self.options.temporaries.make(place, item.name, |name| make(place, name));
        let (temporary, ()) = made.map_err(|error| match error.errno {
            // Nothing can be removed from such a directory, either.
            Errno::ACCESS | Errno::ROFS => self.trouble(item, Trouble::Remove, Some(error.errno)),
            errno => self.trouble(item, trouble, Some(errno)),
        })?;
        self.take_name(place, &temporary, item.name).map_err(self.failed(item, Trouble::Remove))
    }

    /// Gives a temporary file its final name; removes it on failure.
    pub(super) fn take_name(&self, place: &V::Dir, temporary: &Temporary, name: &CStr) -> Result<(), Error> {
        place.rename(&temporary.name, place, name).inspect_err(|_| {
            // The first error gives the reason.
            let _ = place.remove(&temporary.name, RemoveKind::File);
        })
    }

    /// Creates a further name of a file that has been copied.
    pub(super) fn link_to_copy(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        copied: &Copied<V::Dir>,
        decision: &Decision,
        present: Option<&Present>,
    ) -> Done<Linked> {
        let was_linked = present.is_some_and(|present| present.link.identity() == copied.inode);
        let is_linked = was_linked && !matches!(decision, Decision::Make { .. });
        let backup = match decision {
            Decision::Make { backup } => backup.as_ref().map(|name| self.backup_path(item, name)),
            Decision::Skip(_) | Decision::Reuse(_) if is_linked => {
                self.tell_skipped(buffers, item);
                return Ok(Linked::Yes);
            }
            Decision::Skip(_) | Decision::Reuse(_) | Decision::Replace => None,
        };
        let tell = |buffers: &mut Buffers| {
            self.tell(&mut buffers.lines, item, Action::HardLink, backup.as_deref(), None);
        };
        if self.options.trace == Trace::Text {
            tell(buffers);
        }
        let is_free = matches!(decision, Decision::Make { .. });
        let linked = if is_linked { Ok(Linked::Yes) } else { self.link(item, copied, is_free) };
        let linked = match linked {
            // The name of the copy has just become the backup's name.
            Ok(Linked::CopyIsGone) if was_linked => Err(Error::new(Operation::HardLink, Errno::NOENT)),
            linked => linked,
        };
        let linked = linked.map_err(|error| {
            let (source, destination) = (self.copied_path(copied), item.destination_path(self.targets));
            let trouble = Trouble::CreateHardLink;
            self.watchers.problem(&Problem {
                trouble,
                source: &source,
                destination: &destination,
                errno: Some(error.errno),
            })
        })?;
        if linked == Linked::Yes {
            if !is_free {
                self.tell_removed(&mut buffers.lines, item);
            }
            if self.tells_records() {
                tell(buffers);
            }
        }
        Ok(linked)
    }

    /// Links an item's name to a copy. An existing file stays until the link is there.
    fn link(&self, item: &Item<'_, V>, copied: &Copied<V::Dir>, is_free: bool) -> Result<Linked, Error> {
        const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
        let from = copied.place.handle(&self.budget)?;
        let place = item.place.handle(&self.budget)?;
        let link = |name: &CStr| from.hard_link(&copied.name, LINK, &place, name);
        if is_free {
            match link(item.name) {
                Err(error) if error.errno == Errno::EXIST => {}
                Err(error) if error.errno == Errno::NOENT => return Ok(Linked::CopyIsGone),
                linked => return linked.and_then(|()| self.checked(&place, item.name, copied)),
            }
        }
        let (temporary, ()) = match self.options.temporaries.make(&place, item.name, link) {
            Err(error) if error.errno == Errno::NOENT => return Ok(Linked::CopyIsGone),
            made => made?,
        };
        let linked = self.checked(&place, &temporary.name, copied)?;
        if linked == Linked::Yes {
            self.take_name(&place, &temporary, item.name)?;
            // Renaming one name of an inode to another does nothing.
            let _ = place.remove(&temporary.name, RemoveKind::File);
        }
        Ok(linked)
    }

    /// Whether a new link leads to the copy; otherwise the link is removed.
    fn checked(&self, place: &V::Dir, name: &CStr, copied: &Copied<V::Dir>) -> Result<Linked, Error> {
        let found = place.metadata(name, SymlinkBehavior::NoFollow, Fields::INO).inspect_err(|_| {
            // The first error gives the reason.
            let _ = place.remove(name, RemoveKind::File);
        })?;
        if found.identity() == copied.inode {
            return Ok(Linked::Yes);
        }
        place.remove(name, RemoveKind::File)?;
        Ok(Linked::CopyIsGone)
    }

    fn copied_path(&self, copied: &Copied<V::Dir>) -> Vec<u8> {
        match copied.place.source {
            None => self.targets[copied.operand].path.clone(),
            Some(_) => joined(&self.directory_paths(&copied.place).1, copied.name.to_bytes()),
        }
    }
}
