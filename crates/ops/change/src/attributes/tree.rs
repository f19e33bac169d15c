//! The visitor: examines and changes files, and defers the change of directories.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_vfs::{Dir, Errno, Fields, FileKind, SymlinkBehavior, Volume};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, FollowPolicy, Visitor};

use super::locks::InodeLocks;
use super::{
    Attribute, Detail, Effect, Event, Execution, IfUnreadable, Links, Options, Outcome, Plan, Problem,
    Recursion, Sink, Status, Turn,
};
use millstream_operation::activity::Activity;
use millstream_text::operands::are_siblings;

const FIELDS: Fields = Fields::KIND
    .union(Fields::MODE)
    .union(Fields::NLINK)
    .union(Fields::UID)
    .union(Fields::GID)
    .union(Fields::INO);

pub(super) struct Tree<'a, V, A: Attribute> {
    attribute: &'a A,
    options: &'a Options,
    sink: &'a dyn Sink<A::Value>,
    activity: &'a Activity,
    /// Every file may be reached twice, not only files with several links.
    overlap: bool,
    locks: InodeLocks,
    uid: u32,
    volume: PhantomData<fn() -> V>,
}

/// The state of a directory until it is left.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    file: Option<Found>,
    unreadable: AtomicBool,
}

/// A file that was examined.
#[derive(Clone, Copy, Debug)]
struct Found {
    status: Status,
    /// Which file was examined if the name is a link.
    examined: SymlinkBehavior,
    /// Which file to change if the name is a link.
    changed: SymlinkBehavior,
}

/// The result of examining a name.
enum Examined<A: Attribute> {
    File {
        found: Found,
        is_traversed: bool,
    },
    Link,
    /// A link that is not changed and leads to a directory that is traversed.
    LinkToTree(Status),
    /// It cannot be examined. Trying to set the value either succeeds or gives the reason.
    Unknown(A::Value),
    Failed(Option<Status>, Problem),
}

/// A name in an open directory, and a function that writes its path.
struct Target<'a, D, P> {
    dir: &'a D,
    name: &'a CStr,
    write_path: P,
}

/// Buffers of a worker.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    path: Vec<u8>,
    lines: Vec<u8>,
}

impl<'a, V: Volume, A: Attribute> Tree<'a, V, A> {
    pub(super) fn new(
        operands: &[CString],
        attribute: &'a A,
        options: &'a Options,
        sink: &'a dyn Sink<A::Value>,
        activity: &'a Activity,
    ) -> Self {
        Tree {
            attribute,
            options,
            sink,
            activity,
            overlap: options.follow == FollowPolicy::Always || !are_siblings(operands),
            locks: InodeLocks::default(),
            uid: rustix::process::geteuid().as_raw(),
            volume: PhantomData,
        }
    }

    fn examine(&self, entry: &Entry<'_, V, Waiting>) -> Examined<A> {
        let metadata = match entry.metadata(FIELDS) {
            Ok(metadata) => metadata,
            Err(error) => return self.unexamined(entry, error.errno),
        };
        let status = Status::from(metadata);
        if status.kind() == FileKind::Symlink {
            return self.examine_link(entry, status);
        }
        let is_certain =
            entry.depth() > 0 && !matches!(entry.listed_kind(), FileKind::Symlink | FileKind::Unknown);
        let examined = if is_certain { SymlinkBehavior::NoFollow } else { entry.symlinks() };
        let changed = match self.options.links {
            Links::Change => SymlinkBehavior::NoFollow,
            Links::PassOver | Links::Leave | Links::Dereference => examined,
        };
        let is_traversed = self.options.recursion == Recursion::Trees && status.kind() == FileKind::Directory;
        if self.options.links == Links::Leave && examined == SymlinkBehavior::Follow {
            match entry.link_metadata(Fields::KIND) {
                Ok(link) if link.kind() == FileKind::Symlink && is_traversed => {
                    return Examined::LinkToTree(status);
                }
                Ok(link) if link.kind() == FileKind::Symlink => return Examined::Link,
                _ => {}
            }
        }
        Examined::File { found: Found { status, examined, changed }, is_traversed }
    }

    /// A link that is not followed, or that leads nowhere.
    fn examine_link(&self, entry: &Entry<'_, V, Waiting>, status: Status) -> Examined<A> {
        let file = |status, symlinks| Examined::File {
            found: Found { status, examined: symlinks, changed: symlinks },
            is_traversed: false,
        };
        let is_followed = entry.symlinks() == SymlinkBehavior::Follow;
        let must_lead = self.options.recursion == Recursion::Trees || self.options.links == Links::Leave;
        if is_followed
            && must_lead
            && entry.target_metadata(FIELDS).is_err_and(|error| error.errno == Errno::LOOP)
        {
            // A loop of links cannot be followed, so the traversal finds no file there.
            return Examined::Failed(None, Problem::Access(Errno::LOOP));
        }
        match self.options.links {
            Links::Change => file(status, SymlinkBehavior::NoFollow),
            Links::Leave => Examined::Link,
            Links::PassOver if !is_followed => Examined::Link,
            Links::PassOver => match entry.target_metadata(FIELDS).map_err(|error| error.errno) {
                Ok(target) => file(target.into(), SymlinkBehavior::Follow),
                Err(Errno::NOENT) => Examined::Failed(None, Problem::Dangling),
                Err(errno) => Examined::Failed(None, Problem::Access(errno)),
            },
            Links::Dereference => match entry.target_metadata(FIELDS) {
                Ok(target) => file(target.into(), SymlinkBehavior::Follow),
                Err(error) => Examined::Failed(Some(status), Problem::Dereference(error.errno)),
            },
        }
    }

    /// Examining a file only serves to skip the call, unless the old value is reported.
    fn unexamined(&self, entry: &Entry<'_, V, Waiting>, errno: Errno) -> Examined<A> {
        let is_plain = match entry.listed_kind() {
            FileKind::Directory | FileKind::Unknown => false,
            FileKind::Symlink => self.options.links == Links::Change,
            // The GNU tools examine every file first when they dereference links.
            _ => self.options.links != Links::Dereference,
        };
        match self.attribute.unconditional() {
            Some(value) if is_plain && self.options.detail == Detail::Failures => Examined::Unknown(value),
            _ => Examined::Failed(None, Problem::Access(errno)),
        }
    }

    fn entry(
        &self,
        buffers: &mut Buffers,
        entry: &Entry<'_, V, Waiting>,
        descend: &mut Descend<'_, V, Waiting>,
    ) {
        let target = Target {
            dir: entry.handle(),
            name: entry.name(),
            write_path: |path: &mut Vec<u8>| entry.write_path(path),
        };
        match self.examine(entry) {
            Examined::Link => self.tell(buffers, &target, None, None, Outcome::PassedOver),
            Examined::LinkToTree(status) => {
                self.tell(buffers, &target, None, None, Outcome::PassedOver);
                match self.refused(entry, &status) {
                    Some(problem) => self.fail(buffers, &target, Some(status), problem),
                    None => descend.into_entry(entry, Waiting::default()),
                }
            }
            Examined::Failed(status, problem) => self.fail(buffers, &target, status, problem),
            Examined::Unknown(value) => {
                if let Err(problem) = self.set(&target, value, SymlinkBehavior::NoFollow) {
                    self.fail(buffers, &target, None, problem);
                }
            }
            Examined::File { found, is_traversed: false } => self.carry_out(buffers, &target, found),
            Examined::File { found, is_traversed: true } => {
                if let Some(problem) = self.refused(entry, &found.status) {
                    return self.fail(buffers, &target, Some(found.status), problem);
                }
                let waits = self.attribute.turn(&found.status) == Turn::AfterSubtree;
                if !waits {
                    self.carry_out(buffers, &target, found);
                }
                let file = waits.then_some(found);
                descend.into_entry(entry, Waiting { file, unreadable: AtomicBool::new(false) });
            }
        }
    }

    /// Why a directory is not traversed.
    fn refused(&self, entry: &Entry<'_, V, Waiting>, directory: &Status) -> Option<Problem> {
        let is_enclosed = || entry.directory().enclosing(directory.identity).is_some();
        match self.options.preserved_root {
            Some(root) if root == directory.identity => Some(Problem::PreservedRoot),
            _ if self.options.follow != FollowPolicy::Always && is_enclosed() => Some(Problem::Cycle),
            _ => None,
        }
    }

    fn set<D: Dir, P>(
        &self,
        target: &Target<'_, D, P>,
        value: A::Value,
        symlinks: SymlinkBehavior,
    ) -> Result<(), Problem> {
        match self.options.execution {
            Execution::DryRun => Ok(()),
            Execution::Real => self
                .attribute
                .set(target.dir, target.name, value, symlinks)
                .map_err(|error| Problem::Set(error.errno)),
        }
    }

    /// Carries out the plan for a file and reports the result.
    fn carry_out<D: Dir, P: Fn(&mut Vec<u8>)>(
        &self,
        buffers: &mut Buffers,
        target: &Target<'_, D, P>,
        mut found: Found,
    ) {
        let mut plan = self.plan(&found.status);
        let _alone = if self.is_call_needed(&plan, &found) && self.may_be_reached_twice(&found.status) {
            let lock = self.locks.lock(found.status.identity);
            match target.dir.metadata(target.name, found.examined, FIELDS) {
                Ok(metadata) => found.status = metadata.into(),
                Err(error) => {
                    return self.fail(buffers, target, Some(found.status), Problem::Access(error.errno));
                }
            }
            plan = self.plan(&found.status);
            Some(lock)
        } else {
            None
        };
        match plan {
            Plan::Leave { before } => self.tell(buffers, target, Some(before), None, Outcome::Retained),
            Plan::Set { before, after, .. } if !self.is_call_needed(&plan, &found) => {
                self.tell(buffers, target, Some(before), Some(after), Outcome::Retained);
                self.surprise(buffers, target, &found.status, after);
            }
            Plan::Set { before, after, effect } => {
                match self.set_and_check(buffers, target, &found, after, effect) {
                    Ok(effect) => {
                        let outcome = match (effect, self.options.execution) {
                            (Effect::Changes, Execution::Real) => Outcome::Changed,
                            (Effect::Changes, Execution::DryRun) => Outcome::WouldChange,
                            (Effect::Touches | Effect::Nothing, _) => Outcome::Retained,
                        };
                        self.tell(buffers, target, Some(before), Some(after), outcome);
                        self.surprise(buffers, target, &found.status, after);
                    }
                    Err(problem) => self.fail(buffers, target, Some(found.status), problem),
                }
            }
        }
    }

    fn plan(&self, file: &Status) -> Plan<A::Value> {
        self.attribute.plan(file, self.uid)
    }

    /// Whether the call has any effect. For an unprivileged caller, being refused is an effect.
    fn is_call_needed(&self, plan: &Plan<A::Value>, found: &Found) -> bool {
        match plan {
            Plan::Leave { .. } => false,
            // A named file gets the same call as from the GNU tools, so at least its change time is updated.
            Plan::Set { effect: Effect::Nothing, .. } => {
                self.options.recursion == Recursion::Operands
                    || found.examined != found.changed
                    || (self.uid != 0 && self.uid != found.status.uid)
            }
            Plan::Set { .. } => true,
        }
    }

    fn may_be_reached_twice(&self, status: &Status) -> bool {
        self.overlap || status.has_several_links
    }

    /// Sets the value; returns the result in the detail that the report needs.
    fn set_and_check<D: Dir, P: Fn(&mut Vec<u8>)>(
        &self,
        buffers: &mut Buffers,
        target: &Target<'_, D, P>,
        found: &Found,
        value: A::Value,
        effect: Effect,
    ) -> Result<Effect, Problem> {
        self.set(target, value, found.changed)?;
        let is_checked = self.options.detail >= Detail::Changes
            && self.options.execution == Execution::Real
            && self.attribute.is_doubtful(value);
        if is_checked {
            let now = target.dir.metadata(target.name, found.examined, FIELDS);
            let differs = match now {
                Ok(now) => self.attribute.differs(&found.status, &now.into()),
                Err(error) => {
                    // It has been set. `.` can no longer be examined if it may no longer be entered.
                    self.tell(buffers, target, None, None, Outcome::Failed(Problem::Check(error.errno)));
                    false
                }
            };
            return Ok(if differs { Effect::Changes } else { Effect::Touches });
        }
        Ok(effect)
    }

    fn surprise<D, P: Fn(&mut Vec<u8>)>(
        &self,
        buffers: &mut Buffers,
        target: &Target<'_, D, P>,
        status: &Status,
        after: A::Value,
    ) {
        if let Some(expected) = self.attribute.expected_instead(status) {
            self.tell(buffers, target, None, Some(after), Outcome::Surprising { expected });
        }
    }

    fn fail<D, P: Fn(&mut Vec<u8>)>(
        &self,
        buffers: &mut Buffers,
        target: &Target<'_, D, P>,
        status: Option<Status>,
        problem: Problem,
    ) {
        self.activity.add_error();
        let (before, after) = match status.map(|status| self.plan(&status)) {
            None => (None, None),
            Some(Plan::Leave { before }) => (Some(before), None),
            Some(Plan::Set { before, after, .. }) => (Some(before), Some(after)),
        };
        self.tell(buffers, target, before, after, Outcome::Failed(problem));
    }

    fn tell<D, P: Fn(&mut Vec<u8>)>(
        &self,
        buffers: &mut Buffers,
        target: &Target<'_, D, P>,
        before: Option<A::Value>,
        after: Option<A::Value>,
        outcome: Outcome<A::Value>,
    ) {
        if self.options.detail < outcome.detail() {
            return;
        }
        buffers.path.clear();
        (target.write_path)(&mut buffers.path);
        let event = Event { path: &buffers.path, before, after, outcome };
        self.sink.event(&event, &mut buffers.lines);
    }

    fn flush(&self, buffers: &mut Buffers) {
        if !buffers.lines.is_empty() {
            self.sink.lines(&buffers.lines);
            buffers.lines.clear();
        }
    }
}

impl<V: Volume, A: Attribute> Visitor for Tree<'_, V, A> {
    type Volume = V;
    type State = Waiting;
    type Worker = Buffers;

    fn root_state(&self) -> Waiting {
        Waiting::default()
    }

    fn worker(&self) -> Buffers {
        self.activity.add_thread();
        Buffers::default()
    }

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(
        &self,
        buffers: &mut Buffers,
        chunk: &Chunk<'_, V, Waiting>,
        descend: &mut Descend<'_, V, Waiting>,
    ) {
        let mut tally = self.activity.tally();
        for entry in chunk.entries() {
            self.entry(buffers, &entry, descend);
            tally.add();
        }
        self.flush(buffers);
    }

    fn end_of_directory(
        &self,
        _buffers: &mut Buffers,
        directory: &Arc<Directory<V, Waiting>>,
        _descend: &mut Descend<'_, V, Waiting>,
        _block: &mut Vec<u8>,
    ) {
        if directory.parent().is_some() {
            self.activity.add_directory();
        }
    }

    fn leave(&self, buffers: &mut Buffers, directory: &Arc<Directory<V, Waiting>>) {
        let (Some(found), Some(parent)) = (directory.state().file, directory.parent()) else { return };
        let is_unreadable = directory.state().unreadable.load(Ordering::Acquire);
        if self.options.cancellation.is_cancelled()
            || (is_unreadable && self.attribute.if_unreadable() == IfUnreadable::Leave)
        {
            return;
        }
        let write_path = |path: &mut Vec<u8>| directory.write_path(path);
        match parent.handle() {
            Ok(handle) => {
                let target = Target { dir: &*handle, name: directory.name(), write_path };
                self.carry_out(buffers, &target, found);
            }
            Err(error) => {
                let target = Target { dir: &(), name: directory.name(), write_path };
                self.fail(buffers, &target, Some(found.status), Problem::Set(error.errno));
            }
        }
        self.flush(buffers);
    }

    fn fault(&self, buffers: &mut Buffers, place: &FaultSite<'_, V, Waiting>, fault: &Fault) {
        // A loop is a directory that is already being traversed, or is about to be.
        let Fault::Volume(error) = fault else { return };
        if let FaultSite::Directory(directory) = place {
            directory.state().unreadable.store(true, Ordering::Release);
        }
        let write_path = |path: &mut Vec<u8>| place.write_path(path);
        let target = Target { dir: &(), name: c"", write_path };
        self.fail(buffers, &target, None, Problem::ReadDirectory(error.errno));
        self.flush(buffers);
    }
}
