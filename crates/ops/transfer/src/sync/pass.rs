//! The traversal of the source.

use std::collections::{HashMap, hash_map};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{Dir, Errno, Error, Fields, FileKind, SymlinkBehavior, Volume};
use millstream_walk::{Chunk, Descend, Directory, FanOut, Fault, FaultSite, Visitor};

use super::chain::Chain;
use super::item::{Item, Leader, Rank, State, Visit};
use super::level::Level;
use super::load::Load;
use super::options::{Missing, Recursion};
use super::report::{Notice, Problem, Trouble};
use super::syncer::Syncer;
use crate::transfer::buffers::Buffers;
use crate::transfer::copy_workers::{AbandonOnPanic, StartsWorkers, start_in};
use crate::transfer::place::Origin;
use crate::transfer::report::Done;
use crate::transfer::throttle::slept;
use millstream_rsync_rules::files::Membership;
use millstream_rsync_rules::filter::{Side, Subject};

/// What a traversal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To find what only the destination has.
    Deletion,
    /// To bring the destination up to date.
    Update,
    /// Both.
    Both,
}

/// One traversal of the source.
pub(super) struct Pass<'s, 'e, 'a, 'p, V: Volume> {
    pub(super) syncer: &'s Syncer<'a, 'p, V>,
    pub(super) scope: &'s Scope<'s, 'e>,
    pub(super) purpose: Purpose,
    /// Which of the targets is the traversal's first operand.
    pub(super) first: usize,
}

impl<V: Volume> Clone for Pass<'_, '_, '_, '_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Volume> Copy for Pass<'_, '_, '_, '_, V> {}

impl<'s, 'e, 'a, 'p, V: Volume> StartsWorkers for Pass<'s, 'e, 'a, 'p, V> {
    fn start_worker(&self) -> bool {
        let pass = *self;
        start_in(self.scope, self.syncer.options.threads, move || pass.syncer.run_worker(&pass))
    }
}

/// What a worker of the traversal has for itself.
pub(super) struct WorkerState<'s, 'p, V: Volume> {
    buffers: Buffers,
    /// The directories of operands, to look something up in.
    operands: HashMap<usize, Chain<V::Dir>>,
    _abandon: AbandonOnPanic<'s, Load<'p, V>, Leader<V::Dir>>,
}

impl<'s, 'a, 'p, V: Volume> Visitor for Pass<'s, '_, 'a, 'p, V> {
    type Volume = V;
    type State = State<'p, V>;
    type Worker = WorkerState<'s, 'p, V>;

    fn root_state(&self) -> Self::State {
        Arc::clone(&self.syncer.targets[self.first].level)
    }

    fn worker(&self) -> Self::Worker {
        self.syncer.watchers.activity.add_thread();
        let (buffers, operands) = (Buffers::default(), HashMap::new());
        WorkerState { buffers, operands, _abandon: self.syncer.abandon_on_panic() }
    }

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(
        &self,
        worker: &mut Self::Worker,
        chunk: &Chunk<'_, V, Self::State>,
        descend: &mut Descend<'_, V, Self::State>,
    ) {
        let mut below = self.below(chunk.directory());
        let length = below.len();
        let mut tally = self.syncer.watchers.activity.tally();
        for entry in chunk.entries() {
            if self.syncer.options.cancellation.is_cancelled() {
                break;
            }
            let operand = self.first + entry.operand() as usize;
            let target = &self.syncer.targets[operand];
            let is_operand = entry.directory().parent().is_none();
            let item = if is_operand {
                Item { operand, target, below: b"", level: &target.level, name: &target.name }
            } else {
                below.truncate(length);
                below.extend_from_slice(entry.name().to_bytes());
                let level = entry.directory().state();
                level.note_entry();
                Item { operand, target, below: &below, level, name: entry.name() }
            };
            let visit = Visit { item, entry: &entry, starter: self };
            // What went wrong has been reported.
            let _ = self.entry(worker, &visit, descend);
            if is_operand {
                self.syncer.done_in(item.level);
            }
            tally.add();
        }
        // Lines of a directory come before those of what is in it.
        self.syncer.write(&mut worker.buffers);
    }

    fn end_of_directory(
        &self,
        _hands: &mut Self::Worker,
        directory: &Arc<Directory<V, Self::State>>,
        _descend: &mut Descend<'_, V, Self::State>,
        _block: &mut Vec<u8>,
    ) {
        if directory.parent().is_none() {
            return;
        }
        self.syncer.watchers.activity.add_directory();
        let operand = self.first + directory.operand().unwrap_or_default() as usize;
        let mut below = self.below(directory);
        below.pop();
        self.syncer.end_of_directory(directory.state(), operand, &below, self.purpose != Purpose::Update);
    }

    fn leave(&self, _hands: &mut Self::Worker, directory: &Arc<Directory<V, Self::State>>) {
        if directory.parent().is_some() {
            self.syncer.done_in(directory.state());
        }
    }

    fn fault(&self, _hands: &mut Self::Worker, spot: &FaultSite<'_, V, Self::State>, fault: &Fault) {
        let mut path = Vec::new();
        spot.write_path(&mut path);
        if let FaultSite::Directory(directory) = spot {
            directory.state().note_unlisted();
        }
        let (trouble, errno) = Trouble::of_fault(fault);
        if errno == Some(Errno::NOENT) {
            return self.syncer.notice(&Notice::Vanished(&path));
        }
        self.syncer.watchers.problem(&Problem { trouble, source: &path, destination: b"", errno });
    }

    fn slept(&self) -> Duration {
        slept()
    }

    fn finish(&self, mut worker: Self::Worker) {
        self.syncer.write(&mut worker.buffers);
    }
}

impl<'p, V: Volume> Pass<'_, '_, '_, 'p, V> {
    /// Path of a directory below its operand, with a slash at its end unless it is empty.
    fn below(&self, directory: &Directory<V, State<'p, V>>) -> Vec<u8> {
        let Some(operand) = directory.operand() else { return Vec::new() };
        let mut path = Vec::new();
        directory.write_prefix(&mut path);
        let source = self.syncer.targets[self.first + operand as usize].source.to_bytes();
        let slash = usize::from(!source.ends_with(b"/"));
        path.split_off((source.len() + slash).min(path.len()))
    }

    fn entry(
        &self,
        worker: &mut WorkerState<'_, 'p, V>,
        visit: &Visit<'_, 'p, V>,
        descend: &mut Descend<'_, V, State<'p, V>>,
    ) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let Ok(membership) = self.membership(visit) else { return Ok(()) };
        if membership.is_some_and(Membership::leads_only)
            && !item.below.is_empty()
            && !self.leads_to_any(worker, item)
        {
            return Ok(());
        }
        if self.purpose == Purpose::Deletion {
            return self.look_for_deletions(visit, membership, descend);
        }
        let is_alone = item.target.others.is_empty();
        if is_alone && self.syncer.transfer_new(&mut worker.buffers, visit)? {
            return Ok(());
        }
        let Some(source) = self.syncer.source_of(visit)? else { return Ok(()) };
        self.syncer.watchers.counters.meet(source.kind(), source.size);
        let rank = if is_alone {
            Rank::First
        } else {
            self.rank(worker, item, source.kind() == FileKind::Directory)?
        };
        if rank == Rank::Beaten {
            self.syncer.counterpart(item);
            return Ok(());
        }
        let buffers = &mut worker.buffers;
        if source.kind() != FileKind::Directory {
            return self.syncer.entry(buffers, visit, &source);
        }
        if let Some(level) = self.syncer.directory(buffers, visit, &source, membership, rank)? {
            descend.into_entry(entry, level);
        }
        Ok(())
    }

    /// How an entry ranks among those that other operands have under its name: a directory comes before all else.
    fn rank(
        &self,
        worker: &mut WorkerState<'_, 'p, V>,
        item: &Item<'_, 'p, V>,
        is_directory: bool,
    ) -> Done<Rank> {
        let name = item.target.transfer_name(item.below);
        for &other in &item.target.others {
            let is_earlier = other < item.operand;
            match self.kind_in(worker, item, &name, other)? {
                Some(FileKind::Directory) if is_directory && is_earlier => return Ok(Rank::Merged),
                Some(kind) if !is_directory && (is_earlier || kind == FileKind::Directory) => {
                    return Ok(Rank::Beaten);
                }
                _ => {}
            }
        }
        Ok(Rank::First)
    }

    /// The kind of what another operand has under the name of an entry in the transfer, if that takes part.
    fn kind_in(
        &self,
        worker: &mut WorkerState<'_, 'p, V>,
        item: &Item<'_, 'p, V>,
        name: &[u8],
        operand: usize,
    ) -> Done<Option<FileKind>> {
        let other = &self.syncer.targets[operand];
        let Some(below) = other.below_of(name) else { return Ok(None) };
        if !below.is_empty() && self.syncer.options.recursion == Recursion::None {
            return Ok(None);
        }
        let found = if below.is_empty() {
            let base = self.syncer.volume.base();
            base.metadata(&other.source, SymlinkBehavior::NoFollow, Fields::KIND)
                .map(|found| Some(found.kind()))
        } else {
            self.look_up(worker, operand, below)
        };
        let found = match found {
            // It is no directory, or gone.
            Err(error) if matches!(error.errno, Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => None,
            // What is wrong with a later operand is reported when its turn comes.
            Err(_) if operand > item.operand => None,
            found => found.map_err(self.syncer.failed(item, Trouble::StatSource))?,
        };
        let options = self.syncer.options;
        Ok(found.filter(|kind| {
            let is_directory = *kind == FileKind::Directory;
            let root = &other.roots[0];
            let subject = Subject { path: name, root, is_directory, is_in_deleted: false };
            let is_skipped = is_directory && options.recursion == Recursion::None;
            name.is_empty() || !is_skipped && options.filter.includes(Side::Sender, &subject)
        }))
    }

    /// Whether a listed path below a directory exists, and takes part. One that cannot be examined may; its turn will
    /// tell.
    fn leads_to_any(&self, worker: &mut WorkerState<'_, 'p, V>, item: &Item<'_, 'p, V>) -> bool {
        let Some(files) = &self.syncer.options.files else { return true };
        let filter = &self.syncer.options.filter;
        for path in files.below(item.below) {
            // There is one operand only.
            let Ok(kind) = self.look_up(worker, self.first, path) else { return true };
            if kind.is_some() {
                files.meet(path);
            }
            let root = &item.target.roots[0];
            let takes_part = kind.is_some_and(|kind| {
                let is_directory = kind == FileKind::Directory;
                filter.includes(Side::Sender, &Subject { path, root, is_directory, is_in_deleted: false })
            });
            if takes_part {
                return true;
            }
        }
        false
    }

    /// The kind of what is at a path below an operand, if there is anything.
    fn look_up(
        &self,
        worker: &mut WorkerState<'_, 'p, V>,
        operand: usize,
        below: &[u8],
    ) -> Result<Option<FileKind>, Error> {
        let chain = match worker.operands.entry(operand) {
            hash_map::Entry::Occupied(open) => open.into_mut(),
            hash_map::Entry::Vacant(closed) => {
                let target = &self.syncer.targets[operand];
                let root = self.syncer.volume.base().open_dir_for_names(&target.source, target.symlinks)?;
                closed.insert(Chain::new(root))
            }
        };
        chain.look_up(below)
    }

    /// How an entry is listed, if there is a list; an error if it does not take part.
    fn membership(&self, visit: &Visit<'_, 'p, V>) -> Result<Option<Membership>, ()> {
        let Visit { item, entry, .. } = visit;
        let options = self.syncer.options;
        if options.filter.is_empty() && options.files.is_none() {
            return Ok(None);
        }
        let name = item.target.transfer_name(item.below);
        let membership = options.files.as_ref().map(|files| {
            let membership = files.meet(&name);
            if name.is_empty() { membership } else { membership.in_directory(!item.level.is_partial) }
        });
        if name.is_empty() {
            return Ok(membership);
        }
        // What cannot be examined is reported when its metadata is asked for.
        let is_directory = entry.kind() == Ok(FileKind::Directory);
        let root = &item.target.roots[0];
        let subject = Subject { path: &name, root, is_directory, is_in_deleted: false };
        let is_included = options.filter.is_empty() || options.filter.includes(Side::Sender, &subject);
        let membership =
            membership.map(|membership| if is_included { membership } else { membership.excluded() });
        let takes_part = membership.map_or(is_included, Membership::takes_part);
        if takes_part { Ok(membership) } else { Err(()) }
    }

    /// Takes an entry off those that only the destination has, and descends into directories.
    fn look_for_deletions(
        &self,
        visit: &Visit<'_, 'p, V>,
        membership: Option<Membership>,
        descend: &mut Descend<'_, V, State<'p, V>>,
    ) -> Done<()> {
        let Visit { item, entry, .. } = visit;
        let kind = entry.kind();
        if kind != Ok(FileKind::Directory) && !item.below.is_empty() {
            self.syncer.counterpart(item);
            return Ok(());
        }
        let Some(source) = self.syncer.source_of(visit)? else { return Ok(()) };
        if source.kind() != FileKind::Directory {
            return Ok(());
        }
        let found = self.syncer.found(item)?.filter(|found| found.kind() == FileKind::Directory);
        // What cannot be listed in a new directory, too, is a reason to delete nothing.
        let origin = if found.is_some() { Origin::Found } else { Origin::Imagined };
        if found.is_none() && self.syncer.options.missing == Missing::Skipped {
            return Ok(());
        }
        let place = self.syncer.copy_of(item, &source, origin);
        let above = Some(Arc::clone(item.level));
        let level = Level::new(above, place, found, Difference::empty(), Vec::new());
        if let Some(level) = self.syncer.entered(item, level, membership, &source) {
            descend.into_entry(entry, level);
        }
        Ok(())
    }
}
