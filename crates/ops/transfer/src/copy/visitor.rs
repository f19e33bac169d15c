//! The traversal of the source.

use std::sync::Arc;

use millstream_vfs::Volume;
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, Visitor};
use std::thread::Scope;
use std::time::Duration;

use super::copier::Copier;
use super::item::{Copied, Item, State, Visit};
use super::job::Load;
use super::report::{Problem, Trouble};
use crate::transfer::buffers::Buffers;
use crate::transfer::copy_workers::{AbandonOnPanic, StartsWorkers, start_in};
use crate::transfer::place::Place;
use crate::transfer::throttle::slept;

/// One traversal: that of operands whose copies cannot meet.
pub(super) struct Pass<'s, 'e, 'c, V: Volume> {
    pub(super) copier: &'s Copier<'c, V>,
    pub(super) scope: &'s Scope<'s, 'e>,
    /// Which of the targets is the traversal's first operand.
    pub(super) first: usize,
}

impl<V: Volume> Clone for Pass<'_, '_, '_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Volume> Copy for Pass<'_, '_, '_, V> {}

impl<'s, 'e, 'c, V: Volume> StartsWorkers for Pass<'s, 'e, 'c, V> {
    fn start_worker(&self) -> bool {
        let pass = *self;
        start_in(self.scope, self.copier.options.threads, move || pass.copier.run_worker(&pass))
    }
}

/// What a worker of the traversal has for itself.
pub(super) struct WorkerState<'s, V: Volume> {
    buffers: Buffers,
    _abandon: AbandonOnPanic<'s, Load<V>, Copied<V::Dir>>,
}

impl<'s, 'c, V: Volume> Visitor for Pass<'s, '_, 'c, V> {
    type Volume = V;
    type State = State<V>;
    type Worker = WorkerState<'s, V>;

    fn root_state(&self) -> State<V> {
        Arc::clone(&self.copier.targets[self.first].place)
    }

    fn worker(&self) -> Self::Worker {
        self.copier.watchers.activity.add_thread();
        WorkerState { buffers: Buffers::default(), _abandon: self.copier.abandon_on_panic() }
    }

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(
        &self,
        helpers: &mut Self::Worker,
        chunk: &Chunk<'_, V, State<V>>,
        descend: &mut Descend<'_, V, State<V>>,
    ) {
        let buffers = &mut helpers.buffers;
        let mut tally = self.copier.watchers.activity.tally();
        for entry in chunk.entries() {
            if self.copier.options.cancellation.is_cancelled() {
                break;
            }
            let visit = Visit { item: self.item(&entry), entry: &entry, starter: self };
            // What went wrong has been reported.
            let _ = self.copier.entry(buffers, &visit, descend);
            if visit.item.is_operand() {
                self.copier.done_in(visit.item.place);
            }
            self.copier.write_some(buffers);
            tally.add();
        }
        // Lines of a directory come before those of what is in it.
        self.copier.write(buffers);
    }

    fn end_of_directory(
        &self,
        _hands: &mut Self::Worker,
        directory: &Arc<Directory<V, State<V>>>,
        _descend: &mut Descend<'_, V, State<V>>,
        _block: &mut Vec<u8>,
    ) {
        if directory.parent().is_some() {
            self.copier.watchers.activity.add_directory();
            self.copier.gather_directory(directory);
        }
    }

    fn leave(&self, _hands: &mut Self::Worker, directory: &Arc<Directory<V, State<V>>>) {
        if directory.parent().is_some() {
            self.copier.done_in(directory.state());
        }
    }

    fn fault(&self, _hands: &mut Self::Worker, spot: &FaultSite<'_, V, State<V>>, fault: &Fault) {
        let operand = match spot {
            FaultSite::Directory(directory) => directory.operand(),
            FaultSite::Entry(entry) => Some(entry.operand()),
        };
        let target = operand.and_then(|at| self.copier.targets.get(self.first + at as usize));
        let mut path = Vec::new();
        spot.write_path(&mut path);
        let source = target.map_or(path.clone(), |target| target.source_path(&path));
        let (trouble, errno) = Trouble::of_fault(fault);
        self.copier.watchers.problem(&Problem { trouble, source: &source, destination: b"", errno });
    }

    fn slept(&self) -> Duration {
        slept()
    }

    fn finish(&self, mut helpers: Self::Worker) {
        self.copier.write(&mut helpers.buffers);
    }
}

impl<V: Volume> Pass<'_, '_, '_, V> {
    fn item<'x>(&'x self, entry: &'x Entry<'x, V, State<V>>) -> Item<'x, V> {
        let directory = entry.directory();
        let operand = self.first + entry.operand() as usize;
        let (place, name): (&Arc<Place<V::Dir>>, _) = match directory.parent() {
            None => (&self.copier.targets[operand].place, &*self.copier.targets[operand].name),
            Some(_) => (directory.state(), entry.name()),
        };
        Item { directory, source_name: entry.name(), operand, place, name }
    }
}
