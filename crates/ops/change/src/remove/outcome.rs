//! The consequences of each entry's outcome: a line, a message, ancestors that stay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millstream_vfs::{Errno, Operation, Volume};
use millstream_walk::{Directory, FaultSite};

use super::visitor::{Buffers, Done, Node, Outcome, Remover};
use super::{Cause, Execution, Missing, Pass, Problem};

impl<V: Volume> Remover<'_, V> {
    /// Handles the outcome of an entry of `above`.
    pub(super) fn conclude(
        &self,
        own: &mut Buffers,
        place: &FaultSite<'_, V, Node>,
        above: &Directory<V, Node>,
        operand: u64,
        done: Done,
    ) {
        match done {
            Ok(Outcome::Removed(kind)) => {
                above.state().progressed.store(true, Ordering::Relaxed);
                if let Some(guard) = self.guard {
                    own.path.clear();
                    place.write_path(&mut own.path);
                    guard.removed(&own.path, kind);
                }
                if let Some(format) = &self.options.report {
                    own.path.clear();
                    place.write_path(&mut own.path);
                    format.removal(self.options.execution, kind, &own.path, &mut own.lines);
                }
            }
            Ok(Outcome::Descended) => {}
            Ok(Outcome::Spared) => above.state().spared.store(true, Ordering::Relaxed),
            Ok(Outcome::Stays) => self.keep(above, operand),
            Err(cause) if self.is_ignored(cause) => {}
            Err(cause) => {
                self.report(own, place, operand, cause);
                let is_unexamined =
                    matches!(cause, Cause::Failed(error) if error.operation == Operation::Stat);
                if self.pass == Pass::Ordered && is_unexamined {
                    // GNU rm asks about the directory all the same.
                    above.state().spared.store(true, Ordering::Relaxed);
                } else {
                    self.keep(above, operand);
                }
            }
        }
    }

    fn is_ignored(&self, cause: Cause) -> bool {
        let Cause::Failed(error) = cause else { return false };
        self.options.missing == Missing::Ignore
            && matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ILSEQ)
    }

    pub(super) fn report(
        &self,
        own: &mut Buffers,
        place: &FaultSite<'_, V, Node>,
        operand: u64,
        cause: Cause,
    ) {
        if self.pass == Pass::Sweep {
            return;
        }
        self.activity.add_error();
        self.flush(own, operand);
        own.path.clear();
        place.write_path(&mut own.path);
        let problem = Problem { cause, path: &own.path };
        if let Some(format) = &self.options.report {
            format.problem(&problem, &mut own.lines);
        }
        self.turns.problem(operand, &problem);
    }

    /// `directory` and all its ancestors stay.
    pub(super) fn keep(&self, directory: &Directory<V, Node>, operand: u64) {
        for above in directory.ancestors() {
            if above.state().stays.swap(true, Ordering::Relaxed) {
                return;
            }
        }
        if let Some(left) = usize::try_from(operand).ok().and_then(|operand| self.left.get(operand)) {
            left.store(true, Ordering::Relaxed);
        }
    }

    /// `directory` contains itself. As in GNU rm, nothing more is reported about its parent, but the directory
    /// above that, or the operand, is tried and reported as not empty.
    pub(super) fn cycle(&self, own: &mut Buffers, directory: &Arc<Directory<V, Node>>) {
        let operand = directory.operand().unwrap_or_default();
        self.report(own, &FaultSite::Directory(directory), operand, Cause::Cycle);
        self.flush(own, operand);
        if self.options.execution == Execution::DryRun {
            return self.keep(directory, operand);
        }
        directory.state().stays.store(true, Ordering::Relaxed);
        let Some(parent) = directory.parent() else { return };
        let tried = match parent.depth() {
            Some(0) | None => parent,
            Some(_) => {
                parent.state().stays.store(true, Ordering::Relaxed);
                parent.parent().unwrap_or(parent)
            }
        };
        tried.state().spared.store(true, Ordering::Relaxed);
    }

    pub(super) fn flush(&self, own: &mut Buffers, operand: u64) {
        if !own.lines.is_empty() {
            self.turns.lines(operand, &own.lines);
            own.lines.clear();
        }
    }
}
