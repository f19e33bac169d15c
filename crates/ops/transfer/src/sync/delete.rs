//! Deletes what only the destination has.
//!
//! Each entry is looked up in the source once more before it goes: a listing may be old, or wrong, and the file that it
//! did not show may be the only copy. Directories are reached component by component from the root of the destination,
//! without following links, and keep their times.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use millstream_vfs::{
    Capabilities, Dir, DirentBatch, Errno, Error, Fields, File, FileKind, Metadata, Operation, ReadState,
    RemoveKind, SymlinkBehavior, Volume,
};
use millstream_walk::Threads;

use super::chain::Chain;
use super::deletions::{Deletions, Reader, Record};
use super::level::{Target, joined};
use super::options::{Execution, Options};
use super::removal::{Removals, remove_tree};
use super::report::{Notice, Problem, Trouble};
use super::stats::count;
use super::watchers::Watchers;
use crate::transfer::Identity;
use crate::transfer::place::Budget;
use millstream_rsync_rules::filter::{Side, Subject};

/// Most threads that delete.
const MOST: usize = 32;
/// Names of a directory that one thread deletes at a time where calls wait for a server. Such a volume has no times of
/// directories to be put back, and no permissions to be widened, which only one thread could do.
const CHUNK: usize = 8;
/// Bytes of entries read at once.
const BATCH: usize = 64 << 10;
const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;

/// The deletion of what has been noted.
pub(super) struct Deleter<'x, 'p, V: Volume> {
    pub(super) volume: &'x V,
    pub(super) base: &'x V::Dir,
    pub(super) options: &'x Options,
    pub(super) targets: &'x [Target<'p, V::Dir>],
    pub(super) budget: &'x Budget,
    pub(super) deletions: &'x Deletions,
    pub(super) watchers: Watchers<'x>,
    pub(super) protected: &'x HashSet<Identity>,
    /// Held while a directory is deleted in that several sources share.
    pub(super) alone: Mutex<()>,
}

/// What one thread has open.
struct Open<D> {
    operand: usize,
    destination: Chain<D>,
    /// The operands that have this destination, and their directories.
    sources: Vec<(usize, Chain<D>)>,
}

/// Why nothing is deleted for an operand.
struct Refusal {
    operand: usize,
    trouble: Trouble,
    error: Error,
}

/// Records, those of many names in pieces, which are worked on at once.
struct Queue {
    reader: Reader,
    rest: Option<Record>,
    /// Most names of a piece.
    most: usize,
}

impl Queue {
    fn next(&mut self) -> io::Result<Option<Record>> {
        let next = match self.rest.take() {
            None => self.reader.next()?,
            rest => rest,
        };
        let Some(mut record) = next else { return Ok(None) };
        if let Some(names) = record.names.as_mut().filter(|names| names.len() > self.most) {
            let rest = names.split_off(self.most);
            self.rest = Some(Record { below: record.below.clone(), names: Some(rest), ..record });
        }
        Ok(Some(record))
    }
}

impl<V: Volume> Deleter<'_, '_, V> {
    /// Deletes what has been noted.
    pub(super) fn run(&self) {
        let reader = match self.deletions.take_records() {
            Ok(reader) => {
                let most = if self.volume.capabilities().contains(Capabilities::PROMPT) {
                    usize::MAX
                } else {
                    CHUNK
                };
                Mutex::new(Queue { reader, rest: None, most })
            }
            Err(error) => return self.lost(&error),
        };
        // Most of the time of a removal is spent waiting, for a disk or a server.
        let (Threads::Fixed(wanted) | Threads::Adaptive { max: wanted }) = self.options.threads;
        let threads = wanted.min(MOST);
        thread::scope(|scope| {
            for _ in 1..threads {
                let Some(permit) = self.options.threads.leave() else { break };
                let work = || {
                    let _permit = permit;
                    self.work(&reader);
                };
                // Where there can be no more threads, those that there are do the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            self.work(&reader);
        });
    }

    fn work(&self, reader: &Mutex<Queue>) {
        let mut open = None;
        loop {
            let next = reader.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Ok(Some(record)) if !self.options.cancellation.is_cancelled() => {
                    self.record(&mut open, &record)
                }
                Ok(_) => return,
                Err(error) => return self.lost(&error),
            }
        }
    }

    /// Records could not be kept, so that nothing, or not all, is deleted.
    fn lost(&self, error: &io::Error) {
        count(&self.watchers.counters.errors);
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        self.watchers.sink.notice(&Notice::DeletionsLost(errno));
    }

    fn problem(&self, trouble: Trouble, source: &[u8], destination: &[u8], errno: Errno) {
        let problem = Problem { trouble, source, destination, errno: Some(errno) };
        self.watchers.problem(&problem);
    }

    /// A problem with an entry of the destination.
    fn trouble(&self, target: &Target<'_, V::Dir>, below: &[u8], trouble: Trouble, error: Error) {
        let (source, destination) = (target.source_path(below), target.destination_path(below));
        self.problem(trouble, &source, &destination, error.errno);
    }

    /// Opens the two sides of an operand. A source that is not the directory that was traversed has nothing to say.
    fn open(&self, operand: usize) -> Result<Open<V::Dir>, Refusal> {
        let target = &self.targets[operand];
        let destination = target
            .level
            .place
            .handle(self.budget)
            .and_then(|place| place.open_dir_for_names(&target.name, target.symlinks))
            .map_err(|error| Refusal { operand, trouble: Trouble::OpenDestinationDirectory, error })?;
        let mut sources = Vec::new();
        for at in self.sharing(target) {
            let of = &self.targets[at];
            let root = self.base.open_dir_for_names(&of.source, of.symlinks);
            let is_other_kind = |error: &Error| matches!(error.errno, Errno::NOTDIR | Errno::LOOP);
            if at != operand && root.as_ref().err().is_some_and(is_other_kind) {
                // There is nothing in it.
                continue;
            }
            let root = root.and_then(|root| match of.identity.get() {
                Some(identity) if root.identity()? != *identity => {
                    Err(Error::new(Operation::OpenDir, Errno::STALE))
                }
                _ => Ok(root),
            });
            let refused = |error| Refusal { operand: at, trouble: Trouble::ReadDirectory, error };
            sources.push((at, Chain::new(root.map_err(refused)?)));
        }
        Ok(Open { operand, destination: Chain::new(destination), sources })
    }

    /// The operands that have the destination of one, itself included, in their order.
    fn sharing(&self, target: &Target<'_, V::Dir>) -> Vec<usize> {
        let mut sharing = target.others.clone();
        sharing.retain(|other| self.targets[*other].prefix == target.prefix);
        sharing.push(target.operand);
        sharing.sort_unstable();
        sharing
    }

    fn record(&self, open: &mut Option<Open<V::Dir>>, record: &Record) {
        let target = &self.targets[record.operand];
        if open.as_ref().is_none_or(|open| open.operand != record.operand) {
            match self.open(record.operand) {
                Ok(opened) => *open = Some(opened),
                Err(Refusal { operand, trouble, error }) => {
                    return self.trouble(&self.targets[operand], b"", trouble, error);
                }
            }
        }
        let Some(open) = open else { return };
        // Where nothing is deleted, what earlier operands lack, too, has been told of already.
        let mut earlier = open.sources.iter_mut().take_while(|(at, _)| *at < record.operand);
        let is_told = self.options.execution == Execution::DryRun
            && earlier.any(|(_, source)| source.reach(&record.below).is_ok());
        if is_told {
            return;
        }
        // Sources that share a destination have records of the same directories, whose times are to stay.
        let _alone =
            (open.sources.len() > 1).then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner));
        let reached = open.destination.reach(&record.below).and_then(|directory| {
            let before = directory.own_metadata(Fields::STAT)?;
            Ok((before, record.names.is_none().then(|| directory.open_dir(c".", LINK)).transpose()?))
        });
        let (before, listing) = match reached {
            Ok(reached) => reached,
            Err(error) if error.errno == Errno::NOENT => return,
            Err(error) => {
                return self.trouble(target, &record.below, Trouble::OpenDestinationDirectory, error);
            }
        };
        let mut removals =
            Removing { deleter: self, open, target, record, is_widened: false, has_removed: false };
        match (&record.names, listing) {
            (Some(names), _) => names.iter().for_each(|name| removals.entry(name, &before, false)),
            (None, Some(listing)) => removals.all(&listing, &before),
            (None, None) => {}
        }
        removals.restore(&before);
    }
}

/// The deletions in one directory.
struct Removing<'r, 'x, 'p, V: Volume> {
    deleter: &'r Deleter<'x, 'p, V>,
    open: &'r mut Open<V::Dir>,
    target: &'r Target<'p, V::Dir>,
    record: &'r Record,
    is_widened: bool,
    has_removed: bool,
}

impl<V: Volume> Removing<'_, '_, '_, V> {
    /// Deletes all entries of a directory that the source does not have.
    fn all(&mut self, listing: &V::Dir, before: &Metadata) {
        let (mut cursor, mut batch) = (Default::default(), DirentBatch::with_capacity(BATCH));
        loop {
            match listing.read_entries(&mut cursor, &mut batch) {
                Ok(ReadState::End) => return,
                Ok(ReadState::More) => {
                    let names: Vec<_> = batch.iter().map(|entry| entry.name.to_bytes().to_vec()).collect();
                    names.iter().for_each(|name| self.entry(name, before, true));
                }
                Err(error) => {
                    let trouble = Trouble::OpenDestinationDirectory;
                    return self.deleter.trouble(self.target, &self.record.below, trouble, error);
                }
            }
        }
    }

    /// Deletes an entry, unless the source has it; `is_listed` says that it has only been listed, so that the source
    /// may well.
    fn entry(&mut self, name: &[u8], before: &Metadata, is_listed: bool) {
        let below = joined(&self.record.below, name);
        let name = CString::new(name).unwrap_or_default();
        match self.is_in_source(&name, &below) {
            Ok(false) => {}
            Ok(true) => {
                if !is_listed && self.open.sources.len() == 1 {
                    let path = self.target.source_path(&below);
                    self.deleter.watchers.sink.notice(&Notice::Appeared(&path));
                }
                return;
            }
            Err(error) => return self.deleter.trouble(self.target, &below, Trouble::StatSource, error),
        }
        let found = match self.open.destination.last().metadata(&name, LINK, Fields::STAT) {
            Ok(found) => found,
            Err(error) if error.errno == Errno::NOENT => return,
            Err(error) => return self.deleter.trouble(self.target, &below, Trouble::StatDestination, error),
        };
        let kind = found.kind();
        if kind == FileKind::Directory && self.deleter.protected.contains(&found.identity()) {
            let path = self.target.destination_path(&below);
            return self.deleter.watchers.sink.notice(&Notice::HoldsSource(&path));
        }
        // What another run is about to complete, or has just left.
        let temporaries = &self.deleter.options.temporaries;
        let has_renames = self.open.destination.last().capabilities(c".").contains(Capabilities::RENAME);
        let is_temporary = has_renames && temporaries.is_temporary(&name);
        if is_temporary && !temporaries.is_abandoned(&name, found.ctime) {
            return;
        }
        let directory =
            if self.record.below.is_empty() { Vec::new() } else { [&self.record.below[..], b"/"].concat() };
        let removals = Removals {
            options: self.deleter.options,
            deletions: self.deleter.deletions,
            watchers: self.deleter.watchers,
            target: self.target,
            directory: &directory,
            is_operand: false,
            is_in_the_way: false,
        };
        if is_listed && !removals.is_filtered_in(name.to_bytes(), kind == FileKind::Directory, false) {
            return;
        }
        self.remove(&name, kind, &below, before, &removals);
    }

    fn remove(
        &mut self,
        name: &CStr,
        kind: FileKind,
        below: &[u8],
        before: &Metadata,
        removals: &Removals<'_, '_, V::Dir>,
    ) {
        let deleter = self.deleter;
        let is_real = deleter.options.execution == Execution::Real;
        if kind == FileKind::Directory {
            // Whoever may not write to the directory gets the permission before its tree is emptied.
            let is_closed = is_real && !deleter.options.is_superuser() && before.mode & 0o300 != 0o300;
            if is_closed && !self.is_widened {
                self.widen(before);
            }
            match self.open.destination.last().open_dir_for_names(c".", LINK) {
                Ok(base) => {
                    let threads = deleter.options.threads;
                    let is_gone = remove_tree(deleter.volume, base, name, removals, threads);
                    if !is_gone && is_real && deleter.watchers.counters.is_within_bound() {
                        deleter
                            .watchers
                            .sink
                            .notice(&Notice::NotEmptied(&self.target.destination_path(below)));
                    }
                    self.has_removed = true;
                }
                Err(error) => deleter.trouble(self.target, below, Trouble::Remove, error),
            }
            return;
        }
        if !deleter.deletions.take() {
            return count(&deleter.watchers.counters.undeleted);
        }
        if is_real {
            let mut removed = self.open.destination.last().remove(name, RemoveKind::File);
            if removed.is_err_and(|error| error.errno == Errno::ACCESS)
                && !self.is_widened
                && self.widen(before)
            {
                removed = self.open.destination.last().remove(name, RemoveKind::File);
            }
            match removed {
                Ok(()) => self.has_removed = true,
                Err(error) if error.errno == Errno::NOENT => return,
                Err(error) => return deleter.trouble(self.target, below, Trouble::Remove, error),
            }
        }
        removals.tell(name.to_bytes(), RemoveKind::File);
    }

    /// Whether one of the sources has an entry, and does not hide it.
    fn is_in_source(&mut self, name: &CStr, below: &[u8]) -> Result<bool, Error> {
        let options = self.deleter.options;
        for (operand, source) in &mut self.open.sources {
            let found = source
                .reach(&self.record.below)
                .and_then(|directory| directory.metadata(name, LINK, Fields::KIND));
            let found = match found {
                Ok(found) => found,
                Err(error) if matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(error),
            };
            let path = self.target.transfer_name(below);
            let is_directory = found.kind() == FileKind::Directory;
            let root = &self.deleter.targets[*operand].roots[0];
            let subject = Subject { path: &path, root, is_directory, is_in_deleted: false };
            if options.filter.is_empty() || options.filter.includes(Side::Sender, &subject) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the owner of the directory all permissions; whether that could be done.
    fn widen(&mut self, before: &Metadata) -> bool {
        self.is_widened = self.set_mode(before.mode & 0o7777 | 0o700).is_ok();
        self.is_widened
    }

    fn set_mode(&self, mode: u32) -> Result<(), Error> {
        match self.open.destination.above() {
            Some((above, name)) => above.set_mode(&name, mode, LINK),
            None => self.open.destination.last().as_file()?.set_mode(mode),
        }
    }

    /// Gives the directory back the permissions and times that it had.
    fn restore(&mut self, before: &Metadata) {
        let deleter = self.deleter;
        if deleter.options.execution == Execution::DryRun {
            return;
        }
        let below = &self.record.below;
        if self.has_removed && deleter.options.sets_time(FileKind::Directory) {
            let set = match self.open.destination.above() {
                Some((above, name)) => above.set_times(&name, before.atime, before.mtime),
                None => {
                    let file = self.open.destination.last().as_file();
                    file.and_then(|file| file.set_times(before.atime, before.mtime))
                }
            };
            if let Err(error) = set {
                deleter.trouble(self.target, below, Trouble::Times, error);
            }
        }
        if self.is_widened
            && let Err(error) = self.set_mode(before.mode & 0o7777)
        {
            deleter.trouble(self.target, below, Trouble::Mode, error);
        }
    }
}
