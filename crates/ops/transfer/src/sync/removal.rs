//! Removing a tree of the destination, as far as filter and bound allow.

use std::ffi::CStr;

use millstream_vfs::{RemoveKind, Volume};
use millstream_walk::Threads;

use super::deletions::Deletions;
use super::level::Target;
use super::options::{Execution, Options};
use super::report::{Notice, Problem, Trouble};
use super::stats::count;
use super::watchers::Watchers;
use millstream_change::remove::{self, Cause, Guard, remove_below};
use millstream_rsync_rules::filter::{Side, Subject};

/// The removal of an entry of one directory of the destination, with what is in it.
#[derive(Clone, Copy)]
pub(super) struct Removals<'x, 'p, D> {
    pub(super) options: &'x Options,
    pub(super) deletions: &'x Deletions,
    pub(super) watchers: Watchers<'x>,
    pub(super) target: &'x Target<'p, D>,
    /// Path of the directory below the operand, with a slash unless it is empty.
    pub(super) directory: &'x [u8],
    /// Whether the entry is the operand itself, whose name is no part of paths below it.
    pub(super) is_operand: bool,
    /// Whether the entry makes way for another one, so that it is not itself reported as deleted.
    pub(super) is_in_the_way: bool,
}

/// Removes the entry `name` of a directory; whether it is gone.
pub(super) fn remove_tree<V: Volume>(
    volume: &V,
    directory: V::Dir,
    name: &CStr,
    removals: &Removals<'_, '_, V::Dir>,
    threads: Threads,
) -> bool {
    let options = remove::Options::whole_trees(removals.options.execution, threads);
    let activity = removals.watchers.activity;
    remove_below(volume, directory, name, &options, removals, (removals, activity))
}

impl<D: Sync + Send> Removals<'_, '_, D> {
    fn below(&self, path: &[u8]) -> Vec<u8> {
        let path = match path.iter().position(|&b| b == b'/') {
            Some(slash) if self.is_operand => &path[slash + 1..],
            None if self.is_operand => b"",
            _ => path,
        };
        [self.directory, path].concat()
    }

    /// Reports that an entry of the directory has been deleted.
    pub(super) fn tell(&self, path: &[u8], kind: RemoveKind) {
        count(&self.watchers.counters.deleted);
        let name = self.target.transfer_name(&self.below(path));
        let mut line = Vec::new();
        let is_directory = kind == RemoveKind::Directory;
        let Options { report, execution, high_bytes, .. } = *self.options;
        report.deletion(&name, is_directory, execution, high_bytes, &mut line);
        if !line.is_empty() {
            self.watchers.sink.lines(&line);
        }
    }

    /// Whether the filter lets an entry be deleted.
    pub(super) fn is_filtered_in(&self, path: &[u8], is_directory: bool, is_in_deleted: bool) -> bool {
        if self.options.filter.is_empty() {
            return true;
        }
        let name = self.target.transfer_name(&self.below(path));
        let subject = Subject { path: &name, root: &self.target.roots[1], is_directory, is_in_deleted };
        self.options.filter.includes(Side::Receiver, &subject)
    }
}

impl<D: Sync + Send> Guard for Removals<'_, '_, D> {
    fn admits(&self, path: &[u8], is_directory: bool) -> bool {
        // What makes way is no deletion: rules count for what is in it.
        let makes_way = self.is_in_the_way && !path.contains(&b'/');
        makes_way || self.is_filtered_in(path, is_directory, path.contains(&b'/'))
    }

    fn take(&self) -> bool {
        let may_go = self.deletions.take();
        if !may_go {
            count(&self.watchers.counters.undeleted);
        }
        may_go
    }

    fn opens_directories(&self) -> bool {
        self.options.execution == Execution::Real && !self.options.is_superuser()
    }

    fn removed(&self, path: &[u8], kind: RemoveKind) {
        if !self.is_in_the_way || path.contains(&b'/') {
            self.tell(path, kind);
        }
    }
}

impl<D: Sync + Send> remove::Sink for Removals<'_, '_, D> {
    fn lines(&self, _lines: &[u8]) {}

    fn problem(&self, problem: &remove::Problem<'_>) {
        let below = self.below(problem.path);
        let (source, destination) = (self.target.source_path(&below), self.target.destination_path(&below));
        if problem.cause == Cause::OtherDevice {
            return self.watchers.sink.notice(&Notice::Mounted(&destination));
        }
        let errno = match problem.cause {
            Cause::Failed(error) => Some(error.errno),
            _ => None,
        };
        let trouble = Trouble::Remove;
        let problem = Problem { trouble, source: &source, destination: &destination, errno };
        self.watchers.problem(&problem);
    }

    fn approve(&self, _question: &remove::Question<'_>) -> bool {
        false
    }
}
