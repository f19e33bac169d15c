//! The traversal's visitor: decides where to descend, and evaluates the expression before or after.

use std::sync::Arc;

use millstream_vfs::{Dir, Errno, Fields, FileKind, Metadata, Volume};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, FollowPolicy, Visitor};

use super::analysis::ActionOrder;
use super::evaluate::{Evaluation, Verdict, Worker};
use super::exec::StartDirectory;
use super::expression::{MountPoints, StreamId, VanishedFiles, VisitOrder};
use super::run::Shared;
use super::subject::{Fetched, Subject};
use millstream_operation::terms::FileSystems;

/// Bytes of output that a worker collects before it passes them on.
const WORKER_BUFFER: usize = 32 << 10;

/// The state of a directory.
pub(super) struct Frame {
    /// Type that its parent lists: a directory, or a link to one.
    listed: FileKind,
    /// Device and inode number, where loops or devices matter.
    identity: Option<(u64, u64)>,
    /// Its state before its contents were processed, if it is evaluated after them.
    metadata: Option<Box<Metadata>>,
}

/// Evaluates an expression on every entry.
pub(super) struct FindVisitor<'s, V> {
    shared: &'s Shared,
    /// Index of the first operand of this traversal among all.
    first_operand: u64,
    volume: std::marker::PhantomData<fn() -> V>,
}

impl<'s, V> FindVisitor<'s, V> {
    pub fn new(shared: &'s Shared, first_operand: u64) -> Self {
        FindVisitor { shared, first_operand, volume: std::marker::PhantomData }
    }
}

type DirectoryOf<V> = Arc<Directory<V, Frame>>;

/// Distinguishes a directory from all others that are being traversed.
fn key_of<V: Volume>(directory: &DirectoryOf<V>) -> usize {
    Arc::as_ptr(directory).addr()
}

/// What to do with a directory.
enum Plan {
    /// Descend, unless the evaluation says otherwise.
    Descend(Frame),
    /// Evaluate it, but do not descend.
    Stay,
    /// Neither: it is one of its own ancestors, which was reported, or a mount point to skip.
    Skip,
}

impl<V: Volume> FindVisitor<'_, V> {
    fn visit_entry(
        &self,
        worker: &mut Worker,
        entry: &Entry<'_, V, Frame>,
        descend: &mut Descend<'_, V, Frame>,
    ) {
        let mut subject = Subject::new(
            entry.name(),
            entry.handle(),
            key_of(entry.directory()),
            entry.depth(),
            self.first_operand + entry.operand(),
            entry.listed_kind(),
            entry.symlinks(),
        );
        let options = &self.shared.plan.options;
        let examine = |fields| entry.examine(entry.symlinks(), fields);
        match subject.kind_by(self.shared.plan.fields, examine) {
            Ok(FileKind::Directory) => {}
            Ok(_) if subject.depth < options.min_depth => return,
            Ok(_) => {
                if options.mount_points == MountPoints::LeaveOut && !self.is_here(worker, &subject, entry) {
                    return;
                }
                Evaluation::run(self.shared, &subject, worker);
                return;
            }
            Err(fetched) => {
                self.report_unreachable(worker, &subject, fetched);
                if fetched == Fetched::Now(Errno::NOTDIR) && subject.listed == FileKind::Symlink {
                    subject = subject.standing_for_link(self.shared.plan.fields);
                    Evaluation::run(self.shared, &subject, worker);
                }
                return;
            }
        }
        let plan = self.plan_directory(worker, &subject, entry);
        let post_order = options.visits == VisitOrder::PostOrder;
        match plan {
            Plan::Skip => {}
            Plan::Descend(frame) if post_order => descend.into_entry(entry, frame),
            plan => {
                let verdict = if subject.depth < options.min_depth {
                    Verdict::Descend
                } else {
                    Evaluation::run(self.shared, &subject, worker)
                };
                match plan {
                    Plan::Descend(frame) if verdict == Verdict::Descend && !subject.is_unreachable() => {
                        descend.into_entry(entry, frame);
                    }
                    _ => {}
                }
            }
        }
    }

    fn report_unreachable(&self, worker: &mut Worker, subject: &Subject<'_, V::Dir>, fetched: Fetched) {
        if let Fetched::Now(errno) = fetched {
            Evaluation::report(self.shared, subject, worker, errno);
        }
    }

    fn plan_directory(
        &self,
        worker: &mut Worker,
        subject: &Subject<'_, V::Dir>,
        entry: &Entry<'_, V, Frame>,
    ) -> Plan {
        let plan = &self.shared.plan;
        let mut frame = Frame { listed: subject.listed, identity: None, metadata: None };
        if let Some(fields) = plan.directory_fields {
            let metadata = match subject.metadata(plan.fields | fields | Fields::KIND) {
                Ok(metadata) => metadata,
                Err(fetched) => {
                    self.report_unreachable(worker, subject, fetched);
                    return Plan::Stay;
                }
            };
            frame.identity = Some(metadata.identity());
            if plan.options.visits == VisitOrder::PostOrder {
                frame.metadata = Some(Box::new(*metadata));
            }
            if self.is_in_loop(worker, entry, metadata) {
                return Plan::Skip;
            }
            if plan.options.file_systems == FileSystems::One
                && (self.is_elsewhere(entry, metadata) || Self::leads_elsewhere(subject, metadata))
            {
                return match plan.options.mount_points {
                    MountPoints::Evaluate => Plan::Stay,
                    MountPoints::LeaveOut => Plan::Skip,
                };
            }
        }
        if subject.depth >= plan.options.max_depth { Plan::Stay } else { Plan::Descend(frame) }
    }

    /// Whether a directory is one of its ancestors, which is reported.
    fn is_in_loop(&self, worker: &mut Worker, entry: &Entry<'_, V, Frame>, metadata: &Metadata) -> bool {
        let (directory, identity) = (entry.directory(), metadata.identity());
        let same = match self.shared.plan.options.follow {
            FollowPolicy::Always => {
                directory.ancestors().find(|above| above.state().identity == Some(identity))
            }
            FollowPolicy::Operands | FollowPolicy::Never => directory.enclosing(identity),
        };
        let Some(same) = same else { return false };
        let (mut path, mut ancestor) = (Vec::new(), Vec::new());
        entry.write_path(&mut path);
        same.write_path(&mut ancestor);
        self.shared.report_loop(&path, &ancestor, &mut worker.out);
        true
    }

    /// Whether an entry other than a directory is on the device of the directory that holds it; if that is unknown, it
    /// is reported.
    fn is_here(
        &self,
        worker: &mut Worker,
        subject: &Subject<'_, V::Dir>,
        entry: &Entry<'_, V, Frame>,
    ) -> bool {
        match subject.metadata(self.shared.plan.fields | Fields::KIND) {
            Ok(metadata) => !self.is_elsewhere(entry, metadata),
            Err(fetched) => {
                self.report_unreachable(worker, subject, fetched);
                false
            }
        }
    }

    /// Whether an entry is on another device than the directory that holds it, which is on the operand's.
    fn is_elsewhere(&self, entry: &Entry<'_, V, Frame>, metadata: &Metadata) -> bool {
        let above = entry.directory().state().identity;
        above.is_some_and(|(dev, _)| dev != metadata.dev)
    }

    /// Whether another file system is mounted on a directory once it is entered. If that is unknown, opening it will
    /// fail as well.
    fn leads_elsewhere(subject: &Subject<'_, V::Dir>, metadata: &Metadata) -> bool {
        let within = || subject.handle.device_within(subject.name, subject.symlinks);
        subject.depth > 0 && within().is_ok_and(|device| device != metadata.dev)
    }

    /// Evaluates a directory after its contents.
    fn evaluate_left(&self, worker: &mut Worker, directory: &DirectoryOf<V>) {
        let Some((parent, depth)) = directory.parent().zip(directory.depth()) else { return };
        if depth < self.shared.plan.options.min_depth || self.shared.has_quit() {
            return;
        }
        worker.enter(parent);
        let handle = match parent.handle() {
            Ok(handle) => handle,
            Err(error) => {
                worker.path.extend_from_slice(directory.name().to_bytes());
                self.shared.report_errno(&worker.path, error.errno, "open directory", &mut worker.out);
                return;
            }
        };
        let frame = directory.state();
        let subject = Subject::new(
            directory.name(),
            &*handle,
            key_of(parent),
            depth,
            self.first_operand + directory.operand().unwrap_or(0),
            frame.listed,
            self.shared.plan.options.follow.at_depth(depth),
        )
        .with_metadata(frame.metadata.as_deref().copied());
        Evaluation::run(self.shared, &subject, worker);
    }

    /// Whether a worker's output must be seen before anything else happens.
    fn must_commit(&self, worker: &Worker, descend: &Descend<'_, V, Frame>) -> bool {
        worker.out.len() >= WORKER_BUFFER
            || !descend.is_empty()
            || self.shared.plan.options.visits == VisitOrder::PostOrder
            || self.shared.shows_on_terminal(StreamId::STDOUT)
    }
}

impl<V: Volume> Visitor for FindVisitor<'_, V> {
    type Volume = V;
    type State = Frame;
    type Worker = Worker;

    fn worker(&self) -> Worker {
        self.shared.activity.add_thread();
        Worker::default()
    }

    fn root_state(&self) -> Frame {
        Frame { listed: FileKind::Directory, identity: None, metadata: None }
    }

    fn fan_out(&self) -> FanOut {
        self.shared.plan.fan_out
    }

    fn visit(&self, worker: &mut Worker, chunk: &Chunk<'_, V, Frame>, descend: &mut Descend<'_, V, Frame>) {
        worker.enter(chunk.directory());
        let may_end = self.shared.plan.actions == ActionOrder::OneAtATime;
        let mut tally = self.shared.activity.tally();
        for entry in chunk.entries() {
            tally.add();
            if may_end && self.shared.has_quit() {
                break;
            }
            self.visit_entry(worker, &entry, descend);
            if worker.out.len() >= WORKER_BUFFER {
                self.shared.commit(&mut worker.out);
            }
        }
        drop(tally);
        if self.must_commit(worker, descend) {
            self.shared.commit(&mut worker.out);
        }
    }

    fn end_of_directory(
        &self,
        _worker: &mut Worker,
        _directory: &DirectoryOf<V>,
        _descend: &mut Descend<'_, V, Frame>,
        _block: &mut Vec<u8>,
    ) {
        self.shared.activity.add_directory();
    }

    fn leave(&self, worker: &mut Worker, directory: &DirectoryOf<V>) {
        if self.shared.plan.options.visits == VisitOrder::PostOrder {
            self.evaluate_left(worker, directory);
            self.shared.commit(&mut worker.out);
        }
        if self.shared.plan.actions == ActionOrder::OneAtATime {
            let mut kept = None;
            let done = self.shared.run_batches_of(key_of(directory), || {
                StartDirectory::of_handle(&**kept.insert(directory.handle()?))
            });
            if let Err(error) = done {
                // Also where files may vanish: names were found, but not processed.
                let mut path = Vec::new();
                directory.write_path(&mut path);
                let operation = error.operation.to_string();
                self.shared.report_errno(&path, error.errno, &operation, &mut worker.out);
            }
        }
    }

    fn fault(&self, worker: &mut Worker, place: &FaultSite<'_, V, Frame>, fault: &Fault) {
        let mut path = Vec::new();
        place.write_path(&mut path);
        match fault {
            Fault::Loop { ancestor } => self.shared.report_loop(&path, ancestor, &mut worker.out),
            Fault::Volume(error) => {
                // An operand was named by the user, not listed by a directory.
                let listed = match place {
                    FaultSite::Directory(directory) => directory.depth() > Some(0),
                    FaultSite::Entry(entry) => entry.depth() > 0,
                };
                let ignored = listed && self.shared.plan.options.vanished == VanishedFiles::Ignore;
                if !(ignored && error.errno == Errno::NOENT) {
                    let operation = error.operation.to_string();
                    self.shared.report_errno(&path, error.errno, &operation, &mut worker.out);
                }
            }
        }
    }

    fn finish(&self, mut worker: Worker) {
        self.shared.commit(&mut worker.out);
    }
}
