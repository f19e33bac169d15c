//! The data of one file: opens both ends, moves and verifies the data, and sets attributes and name.
//!
//! Small files are copied at once. Large ones go to the copy workers, which may share the work
//! ([`crate::transfer::copy_workers`]).

use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering;

use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, RemoveKind, SymlinkBehavior, Volume,
};

use super::copier::Copier;
use super::item::{Item, Visit};
use super::job::{FileOf, Job, Load, Present, Transfer};
use super::options::{Contents, Placement, Reflink, Removal, Update, Verification};
use super::report::Trouble;
use super::trace::Action;
use crate::transfer::buffers::Buffers;
use crate::transfer::copy_workers::{LARGE, LargeFile, StartsWorkers};
use crate::transfer::file::{CopyError, Destination, Expected, FileCopy, Source};
use crate::transfer::methods::Means;
use crate::transfer::place::rename_new;
use crate::transfer::report::Done;
use crate::transfer::temporaries::Temporary;

/// An opened destination.
struct Opened<V: Volume> {
    file: FileOf<V>,
    fresh: bool,
    temporary: Option<Temporary>,
}

impl<V: Volume> Copier<'_, V> {
    /// Opens both ends; also returns the name that the copy has until all is done, if that is another one.
    pub(super) fn open_ends(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, V>,
        job: &mut Job<V>,
    ) -> Done<(FileCopy<FileOf<V>>, Option<Temporary>)> {
        let Visit { item, .. } = visit;
        let metadata = job.metadata;
        let file = match job.source.take() {
            Some(file) => file,
            None => self.open_source(visit, &metadata)?,
        };
        let source = Source::gather(file, metadata, &self.attributes, &mut |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        });
        let expected = Expected::of(&self.attributes, item.place, &self.budget, &source);
        let Opened { file, fresh, temporary } =
            self.open_destination(buffers, item, expected.mode, job.reused)?;
        let before = match expected.metadata {
            Some(known) if fresh && !job.is_claimed => known,
            _ => file.metadata(Fields::STAT).map_err(|error| {
                self.discard(item, temporary.as_ref());
                self.trouble(item, Trouble::StatDestination, Some(error.errno))
            })?,
        };
        if fresh {
            expected.note(&self.attributes, item.place, &before);
        }
        if temporary.is_none() {
            self.note_made(item);
        }
        let destination = Destination { file, metadata: before, fresh };
        Ok((FileCopy::new(source, destination), temporary))
    }

    fn open_destination(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        mode: u32,
        reused: Option<Present>,
    ) -> Done<Opened<V>> {
        let place =
            item.place.handle(&self.budget).map_err(self.failed(item, Trouble::OpenDestinationDirectory))?;
        let failed = self.failed(item, Trouble::CreateFile);
        let create = |name: &CStr| {
            place.create_file(name, mode).map_err(|error| failed(as_not_directory(error, name)))
        };
        let is_file = reused.is_none_or(|present| present.link.kind() == FileKind::File);
        if self.options.placement == Placement::Atomic && is_file && self.options.contents == Contents::Copy {
            let (temporary, file) = self
                .options
                .temporaries
                .make(&place, item.name, |name| place.create_file(name, mode))
                .map_err(|error| failed(as_not_directory(error, item.name)))?;
            return Ok(Opened { file, fresh: true, temporary: Some(temporary) });
        }
        let Some(present) = reused else {
            return Ok(Opened { file: create(item.name)?, fresh: true, temporary: None });
        };
        let is_file = present.target.is_none_or(|target| target.kind() == FileKind::File);
        let access = match self.options.contents {
            // A pipe that has come in the place of a file is not waited for.
            _ if !is_file => Access::WriteStream,
            Contents::Copy => Access::Truncate,
            Contents::Omit => Access::Write,
        };
        let dangles = present.dangles;
        let opened = if dangles {
            self.create_through_link(&place, item.name, mode)
        } else {
            let symlinks =
                if present.is_link() { SymlinkBehavior::Follow } else { SymlinkBehavior::NoFollow };
            place.open_file(item.name, access, symlinks)
        };
        match opened {
            Ok(file) => Ok(Opened { file, fresh: dangles, temporary: None }),
            Err(_) if self.options.removal == Removal::IfUnwritable => {
                self.remove(buffers, item)?;
                Ok(Opened { file: create(item.name)?, fresh: true, temporary: None })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes the file that a link names, as POSIX has it. The name of an operand's copy may be a path.
    fn create_through_link(&self, place: &V::Dir, name: &CStr, mode: u32) -> Result<FileOf<V>, Error> {
        let target = place.read_link(name)?;
        let directory = name.to_bytes().iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
        let path = match target.first() {
            Some(b'/') => target,
            _ => [&name.to_bytes()[..directory], &target].concat(),
        };
        place.create_file(&CString::new(path).unwrap_or_default(), mode)
    }

    /// Moves the data, here or on the copy workers.
    pub(super) fn transfer(
        &self,
        buffers: &mut Buffers,
        visit: &Visit<'_, V>,
        transfer: Transfer<V>,
    ) -> Done<()> {
        let Visit { item, starter, .. } = visit;
        let Transfer { job, copy, .. } = &transfer;
        let are_files = copy.are_files();
        if self.options.contents == Contents::Copy && are_files {
            self.watchers.activity.begun_bytes.fetch_add(job.metadata.size, Ordering::Relaxed);
        }
        if self.options.contents == Contents::Copy
            && are_files
            && job.metadata.size >= LARGE
            && self.other_names(job).is_none()
        {
            item.place.begin();
            let large = LargeFile::new(Load { transfer, item: item.keep() });
            let Err(large) = self.workers.offer(large, *starter) else { return Ok(()) };
            let moved = self.workers.carry(&self.mover, &mut buffers.data, &large);
            let done = self.finish_transfer(buffers, item, &large.load.transfer, moved);
            self.done_in(item.place);
            return done;
        }
        let moved = match (self.options.contents, are_files) {
            (Contents::Omit, _) => Ok(0),
            (Contents::Copy, true) => self.mover.whole(&copy.pair(), &mut buffers.data),
            (Contents::Copy, false) if self.options.reflink == Reflink::Always => {
                self.mover.clone(&copy.pair()).map(|_| 0)
            }
            (Contents::Copy, false) => {
                copy.methods.note(Means::ReadAndWrite);
                self.mover.stream(&copy.source, &copy.destination, &mut buffers.data)
            }
        };
        self.finish_transfer(buffers, item, &transfer, moved)
    }

    /// Works as a copy worker until there is nothing left to carry.
    pub(super) fn run_worker(&self, starter: &dyn StartsWorkers) {
        let _abandon = self.abandon_on_panic();
        self.workers.run_worker(&self.mover, starter, &mut |load, buffers, moved| {
            // What went wrong has been reported.
            let _ = self.finish_transfer(buffers, &load.item.borrow(), &load.transfer, moved);
            self.done_in(&load.item.place);
            self.write(buffers);
        });
    }

    /// The data has been moved, or could not be.
    pub(super) fn finish_transfer(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        transfer: &Transfer<V>,
        moved: Result<u64, Error>,
    ) -> Done<()> {
        if self.options.explains() {
            self.tell_explained(buffers, item, transfer, moved.is_ok());
        }
        if self.options.contents == Contents::Copy && transfer.copy.are_files() {
            self.watchers.activity.spared_bytes.fetch_add(transfer.copy.spared(), Ordering::Relaxed);
        }
        let done = self.complete(buffers, item, transfer, moved);
        if done.is_err() {
            self.discard(item, transfer.temporary.as_ref());
            self.discard_incomplete(item, transfer);
        }
        self.finish_copy(buffers, item, &transfer.job, transfer.inode(), done)
    }

    /// Tells of a copy, and if there are data how they were moved.
    fn tell_explained(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        transfer: &Transfer<V>,
        is_moved: bool,
    ) {
        self.tell_copy(buffers, item, &transfer.job);
        if is_moved && self.options.contents == Contents::Copy {
            transfer.copy.methods.explain(&self.options.data(), &mut buffers.lines);
        }
    }

    /// Removes what has been made under a temporary name and will not get its own.
    fn discard(&self, item: &Item<'_, V>, temporary: Option<&Temporary>) {
        if let Some(temporary) = temporary {
            item.place.discard(&temporary.name, &self.budget);
        }
    }

    /// Removes a new file that has not got all of its data. A run that resumes leaves it, without the time of its
    /// source, to the next one.
    fn discard_incomplete(&self, item: &Item<'_, V>, transfer: &Transfer<V>) {
        let copy = &transfer.copy;
        let is_kept = self.options.update == Update::Incomplete || self.options.contents == Contents::Omit;
        if !copy.fresh || transfer.temporary.is_some() || is_kept {
            return;
        }
        // If it cannot be removed, or something else has its name, the first error told why there is no copy.
        let _ = item.place.handle(&self.budget).and_then(|place| {
            let made = copy.destination.metadata(Fields::INO)?.identity();
            let found = place.metadata(item.name, SymlinkBehavior::NoFollow, Fields::INO)?.identity();
            if found == made { place.remove(item.name, RemoveKind::File) } else { Ok(()) }
        });
    }

    fn complete(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        transfer: &Transfer<V>,
        moved: Result<u64, Error>,
    ) -> Done<()> {
        let failed = |error: CopyError| self.trouble(item, error.trouble, error.errno);
        let bytes = moved.map_err(|error| failed(error.into()))?;
        let copy = &transfer.copy;
        if copy.before.kind() == FileKind::File && self.options.contents == Contents::Copy {
            copy.finish_data(bytes, self.options.sparse).map_err(failed)?;
            copy.cut(bytes).map_err(failed)?;
            copy.flush().map_err(failed)?;
            if self.options.verification == Verification::Checksum {
                self.verify_copy(buffers, item, transfer)?;
            }
        }
        let may_have_acl = self.attributes.may_inherit_acl(item.place, &self.budget);
        copy.set_attributes(&self.attributes, may_have_acl, None, &mut |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        });
        if let Some(temporary) = &transfer.temporary {
            let place = item.place.handle(&self.budget).map_err(self.failed(item, Trouble::Rename))?;
            let renamed = match transfer.job.reused {
                Some(_) => place.rename(&temporary.name, &place, item.name),
                None => rename_new(&*place, &temporary.name, item.name),
            };
            renamed.map_err(self.failed(item, Trouble::Rename))?;
            self.note_made(item);
        }
        if self.tells_records() {
            let backup = transfer.job.backup.as_ref().map(|name| self.backup_path(item, name));
            self.tell(&mut buffers.lines, item, Action::File, backup.as_deref(), Some(bytes));
        }
        Ok(())
    }

    fn verify_copy(&self, buffers: &mut Buffers, item: &Item<'_, V>, transfer: &Transfer<V>) -> Done<()> {
        let copy = &transfer.copy;
        let failed = |error: CopyError| self.trouble(item, error.trouble, error.errno);
        if copy.fresh {
            return copy.compare(&copy.destination, &mut buffers.data).map(drop).map_err(failed);
        }
        // A file that was there has been opened for writing only.
        let written = item
            .place
            .handle(&self.budget)
            .and_then(|place| place.open_file(item.name, Access::Read, SymlinkBehavior::Follow))
            .map_err(self.failed(item, Trouble::StatDestination))?;
        let found = written.metadata(Fields::INO).map_err(self.failed(item, Trouble::StatDestination))?;
        if found.identity() != copy.before.identity() {
            return Err(self.trouble(item, Trouble::Differs, None));
        }
        copy.compare(&written, &mut buffers.data).map(drop).map_err(failed)
    }
}

/// A name that ends with a slash can be no file; the system says it is a directory.
fn as_not_directory(error: Error, name: &CStr) -> Error {
    if error.errno == Errno::ISDIR && name.to_bytes().ends_with(b"/") {
        return Error::new(error.operation, Errno::NOTDIR);
    }
    error
}
