//! The data of one file: opens both ends, moves and verifies the data, and sets attributes and name.
//!
//! Small files are copied at once. Large ones go to the copy workers, which may share the work ([`super::carriers`]).

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, RemoveKind, SymlinkBehavior, Volume,
};
use millstream_walk::Entry;

use super::attributes::{Before, XattrValues, trouble_of};
use super::carriers::{Crew, Load};
use super::copier::{Buffers, Copier, Done, Identity};
use super::data::Pair;
use super::existing::Present;
use super::item::{Item, State};
use super::job::Job;
use super::methods::{Means, Methods};
use super::options::{Contents, Placement, Reflink, Removal, Sparse, Update, Verification};
use super::place::Origin;
use super::report::Trouble;
use super::temporaries::Temporary;
use super::trace::Action;
use super::verify::checksum;

type FileOf<V> = <<V as Volume>::Dir as Dir>::File;

/// Files from this size on are left to the copy workers.
const LARGE: u64 = 8 << 20;

/// An open source and its open copy.
#[derive(Debug)]
pub(super) struct Ends<V: Volume> {
    source: FileOf<V>,
    /// What the copy gets of the source's extended attributes.
    xattrs: XattrValues,
    /// Whether one of them could not be read.
    lacks_attribute: bool,
    pub(super) destination: FileOf<V>,
    /// Metadata of the copy before any data went into it; without the inode number where nobody asks for it.
    before: Metadata,
    fresh: bool,
    /// The name until all is done.
    temporary: Option<Temporary>,
}

/// The making of a copy whose two ends are open.
#[derive(Debug)]
pub(super) struct Transfer<V: Volume> {
    pub(super) job: Job<V>,
    pub(super) ends: Ends<V>,
    /// How the data was moved, so far.
    pub(super) methods: Methods,
    /// Bytes that have been copied.
    moved: AtomicU64,
}

impl<V: Volume> Transfer<V> {
    pub(super) fn new(job: Job<V>, ends: Ends<V>) -> Self {
        Transfer { job, ends, methods: Methods::default(), moved: AtomicU64::new(0) }
    }

    /// Whether both ends are files.
    fn are_files(&self) -> bool {
        self.job.metadata.kind() == FileKind::File && self.ends.before.kind() == FileKind::File
    }

    pub(super) fn pair(&self) -> Pair<'_, FileOf<V>> {
        Pair {
            source: &self.ends.source,
            metadata: &self.job.metadata,
            destination: &self.ends.destination,
            device: self.ends.before.dev,
            methods: &self.methods,
            moved: &self.moved,
        }
    }

    /// The inode that the name of the copy stands for: a link that was written through stays.
    fn inode(&self) -> Option<Identity> {
        match &self.job.reused {
            Some(present) if present.is_link() => Some(present.link.identity()),
            _ => self.ends.before.fields.contains(Fields::INO).then(|| self.ends.before.identity()),
        }
    }
}

/// An opened destination.
struct Opened<V: Volume> {
    file: FileOf<V>,
    fresh: bool,
    temporary: Option<Temporary>,
}

/// What a new file will be like.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// The mode to make it with.
    mode: u32,
    /// Its metadata then, without the inode number, if that is known.
    metadata: Option<Metadata>,
}

impl<V: Volume> Copier<'_, V> {
    /// Opens both ends.
    pub(super) fn open_ends(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        entry: &Entry<'_, V, State<V>>,
        job: &mut Job<V>,
    ) -> Done<Ends<V>> {
        let source = match job.source.take() {
            Some(source) => source,
            None => self.open_source(item, entry, &job.metadata)?,
        };
        let mut lacks_attribute = false;
        let xattrs = self.attributes.gather(&source, &mut |trouble, errno| {
            lacks_attribute = true;
            self.trouble(item, trouble, Some(errno));
        });
        let expected = self.expect(item, &job.metadata, &xattrs);
        let Opened { file: destination, fresh, temporary } =
            self.open_destination(buffers, item, expected.mode, job.reused)?;
        let before = match expected.metadata {
            Some(known) if fresh && !job.is_claimed => known,
            _ => destination.metadata(Fields::STAT).map_err(|error| {
                self.discard(item, temporary.as_ref());
                self.trouble(item, Trouble::StatDestination, Some(error.errno))
            })?,
        };
        if fresh && item.place.origin == Origin::Made {
            let is_as_asked = before.mode & 0o7777 == expected.mode & !self.attributes.umask;
            item.place.new_file.get_or_init(|| is_as_asked.then_some(before));
        }
        if temporary.is_none() {
            self.note_made(item);
        }
        Ok(Ends { source, xattrs, lacks_attribute, destination, before, fresh, temporary })
    }

    /// What a file is like that is made for `source`. In a directory that this run made, without a list of permissions
    /// for what is made in it, all files are made like the first one.
    fn expect(&self, item: &Item<'_, V>, source: &Metadata, xattrs: &XattrValues) -> Expected {
        let careful = Expected { mode: self.attributes.creation_mode(source), metadata: None };
        let is_uniform = item.place.origin == Origin::Made && !self.may_inherit_acl(item.place);
        let Some(Some(new_file)) = item.place.new_file.get().filter(|_| is_uniform) else { return careful };
        let mode =
            if xattrs.is_empty() { self.attributes.mode_at_once(source, new_file) } else { careful.mode };
        let found = new_file.mode & !0o7777 | mode & !self.attributes.umask;
        let fields = new_file.fields - Fields::INO;
        Expected { mode, metadata: Some(Metadata { fields, mode: found, ..*new_file }) }
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
        item: &Item<'_, V>,
        transfer: Transfer<V>,
        crew: &dyn Crew<V>,
    ) -> Done<()> {
        let Transfer { job, ends, .. } = &transfer;
        let are_files = transfer.are_files();
        if self.options.contents == Contents::Copy && are_files {
            self.activity.begun_bytes.fetch_add(job.metadata.size, Ordering::Relaxed);
        }
        if self.options.contents == Contents::Copy
            && are_files
            && job.metadata.size >= LARGE
            && self.other_names(job).is_none()
        {
            let load = Load::new(transfer, item.keep());
            return match self.carriers.offer(load, crew) {
                Ok(()) => Ok(()),
                Err(load) => self.carry(buffers, &load),
            };
        }
        let moved = match (self.options.contents, are_files) {
            (Contents::Omit, _) => Ok(0),
            (Contents::Copy, true) => self.mover.whole(&transfer.pair(), &mut buffers.data),
            (Contents::Copy, false) if self.options.reflink == Reflink::Always => {
                self.mover.clone(&transfer.pair()).map(|_| 0)
            }
            (Contents::Copy, false) => {
                transfer.methods.note(Means::ReadAndWrite);
                self.mover.stream(&ends.source, &ends.destination, &mut buffers.data)
            }
        };
        self.finish_transfer(buffers, item, &transfer, moved)
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
        if self.options.contents == Contents::Copy && transfer.are_files() {
            let spared = transfer.job.metadata.size.wrapping_sub(transfer.moved.load(Ordering::Relaxed));
            self.activity.spared_bytes.fetch_add(spared, Ordering::Relaxed);
        }
        let done = self.complete(buffers, item, transfer, moved);
        if done.is_err() {
            self.discard(item, transfer.ends.temporary.as_ref());
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
            transfer.methods.explain(self.options, &mut buffers.lines);
        }
    }

    /// Removes what has been made under a temporary name and will not get its own.
    fn discard(&self, item: &Item<'_, V>, temporary: Option<&Temporary>) {
        if let Some(temporary) = temporary {
            // If it cannot be removed the first error told why.
            let _ = item.place.handle(&self.budget).and_then(|p| p.remove(&temporary.name, RemoveKind::File));
        }
    }

    /// Removes a new file that has not got all of its data. A run that resumes leaves it, without the time of its source,
    /// to the next one.
    fn discard_incomplete(&self, item: &Item<'_, V>, transfer: &Transfer<V>) {
        let ends = &transfer.ends;
        let is_kept = self.options.update == Update::Incomplete || self.options.contents == Contents::Omit;
        if !ends.fresh || ends.temporary.is_some() || is_kept {
            return;
        }
        // If it cannot be removed, or something else has its name, the first error told why there is no copy.
        let _ = item.place.handle(&self.budget).and_then(|place| {
            let made = ends.destination.metadata(Fields::INO)?.identity();
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
        let bytes = moved.map_err(|error| self.trouble(item, trouble_of(error), Some(error.errno)))?;
        let ends = &transfer.ends;
        let is_file = ends.before.kind() == FileKind::File;
        let may_end_in_hole = self.options.sparse == Sparse::Always || transfer.pair().has_holes();
        if is_file && may_end_in_hole && self.options.contents == Contents::Copy && bytes > 0 {
            ends.destination.set_len(bytes).map_err(self.failed(item, Trouble::Write))?;
        }
        if is_file && self.options.contents == Contents::Copy {
            ends.destination.flush().map_err(self.failed(item, Trouble::Close))?;
        }
        if self.options.verification == Verification::Checksum
            && is_file
            && self.options.contents == Contents::Copy
        {
            self.verify_copy(buffers, item, transfer)?;
        }
        self.set_file_attributes(item, transfer);
        if let Some(temporary) = &ends.temporary {
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

    fn set_file_attributes(&self, item: &Item<'_, V>, transfer: &Transfer<V>) {
        let mut report = |trouble, errno| {
            self.trouble(item, trouble, Some(errno));
        };
        let Transfer { job, ends, .. } = transfer;
        let may_have_acl = !ends.fresh || self.may_inherit_acl(item.place);
        let before = Before {
            metadata: &ends.before,
            made_with: None,
            fresh: ends.fresh,
            may_have_acl,
            lacks_attribute: ends.lacks_attribute,
        };
        self.attributes.set(&ends.destination, &job.metadata, &ends.xattrs, before, &mut report);
    }

    fn verify_copy(&self, buffers: &mut Buffers, item: &Item<'_, V>, transfer: &Transfer<V>) -> Done<()> {
        let ends = &transfer.ends;
        if ends.fresh {
            return self.verify(buffers, item, &ends.source, &ends.destination);
        }
        // A file that was there has been opened for writing only.
        let copy = item
            .place
            .handle(&self.budget)
            .and_then(|place| place.open_file(item.name, Access::Read, SymlinkBehavior::Follow))
            .map_err(self.failed(item, Trouble::StatDestination))?;
        let found = copy.metadata(Fields::INO).map_err(self.failed(item, Trouble::StatDestination))?;
        if found.identity() != ends.before.identity() {
            return Err(self.trouble(item, Trouble::Differs, None));
        }
        self.verify(buffers, item, &ends.source, &copy)
    }

    /// Reads both sides again.
    pub(super) fn verify(
        &self,
        buffers: &mut Buffers,
        item: &Item<'_, V>,
        source: &FileOf<V>,
        copy: &FileOf<V>,
    ) -> Done<()> {
        let read = self.failed(item, Trouble::Read);
        let expected = checksum(source, &mut buffers.data).map_err(&read)?;
        let found = checksum(copy, &mut buffers.data).map_err(self.failed(item, Trouble::Differs))?;
        if expected != found {
            return Err(self.trouble(item, Trouble::Differs, None));
        }
        Ok(())
    }
}

/// Renames to a name under which nothing was found; what has come there since stays, where the volume can do that.
pub(super) fn rename_new<D: Dir>(place: &D, name: &CStr, new_name: &CStr) -> Result<(), Error> {
    match place.rename_new(name, place, new_name) {
        Err(error) if matches!(error.errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            place.rename(name, place, new_name)
        }
        renamed => renamed,
    }
}

/// A name that ends with a slash can be no file; the system says it is a directory.
fn as_not_directory(error: Error, name: &CStr) -> Error {
    if error.errno == Errno::ISDIR && name.to_bytes().ends_with(b"/") {
        return Error::new(error.operation, Errno::NOTDIR);
    }
    error
}
