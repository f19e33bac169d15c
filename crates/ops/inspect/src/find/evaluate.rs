//! Evaluation of an expression on one file.
//!
//! Nothing is allocated for a file that only meets tests and `-print`: the path is built in the worker's buffer on
//! demand, and output goes to the worker's own buffer.
//!
//! If actions must not run in parallel, an entry takes the action lock before its first side effect and keeps it until
//! its evaluation ends. An entry that gets the lock after `-quit` is abandoned.

use std::ops::ControlFlow;
use std::sync::{MutexGuard, PoisonError};

use millstream_vfs::{
    Dir, DirentBatch, Errno, Fields, FileKind, Metadata, Permission, ReadState, RemoveKind, SymlinkBehavior,
    User, Volume,
};
use millstream_walk::Directory;

use super::analysis::{ActionOrder, Plan};
use super::exec::{
    ChildInput, Ending, Exec, ExecMode, ExecPlace, FullBatch, StartDirectory, run, split_operand, substitute,
};
use super::expression::{Action, Expr, StreamId, Test, VanishedFiles};
use super::moment::{TimeField, nanoseconds};
use super::run::{Shared, Turn};
use super::subject::{Fetched, Subject};
use millstream_text::accounts::AccountNames;

/// The state of a worker.
#[derive(Default)]
pub(super) struct Worker {
    /// Output that is not committed yet.
    pub out: Vec<u8>,
    /// Path of the current directory, followed by room for a name.
    pub path: Vec<u8>,
    /// Length of the path before the name.
    pub prefix: usize,
    /// Names of users and groups.
    pub accounts: AccountNames,
    /// Inode number of the current directory, once it has been looked up.
    pub directory_inode: Option<u64>,
    scratch: Vec<u8>,
}

/// The result of an evaluation for the traversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Descend if it is a directory.
    Descend,
    /// Do not descend.
    Prune,
}

/// The value of an expression; `Break` where the evaluation ends early.
pub(super) type Outcome = ControlFlow<(), bool>;

/// The evaluation of an expression on one file.
pub(super) struct Evaluation<'a, 'w, D> {
    pub shared: &'a Shared,
    pub plan: &'a Plan,
    pub subject: &'a Subject<'a, D>,
    pub worker: &'w mut Worker,
    turn: Option<MutexGuard<'a, Turn>>,
    verdict: Verdict,
}

impl Worker {
    /// Turns to the entries of a directory.
    pub fn enter<V: Volume, S>(&mut self, directory: &Directory<V, S>) {
        self.path.clear();
        directory.write_prefix(&mut self.path);
        self.prefix = self.path.len();
        self.directory_inode = None;
    }
}

impl<'a, 'w, D: Dir> Evaluation<'a, 'w, D> {
    /// Evaluates the plan's expression on `subject`.
    pub fn run(shared: &'a Shared, subject: &'a Subject<'a, D>, worker: &'w mut Worker) -> Verdict {
        let plan = &shared.plan;
        let verdict = Verdict::Descend;
        let mut evaluation = Evaluation { shared, plan, subject, worker, turn: None, verdict };
        // For the traversal, an early end is the same as a false expression.
        let _ = evaluation.eval(&plan.expression);
        evaluation.finish()
    }

    /// For messages about a file that cannot be evaluated.
    pub fn report(shared: &'a Shared, subject: &'a Subject<'a, D>, worker: &'w mut Worker, errno: Errno) {
        let (plan, verdict) = (&shared.plan, Verdict::Descend);
        Evaluation { shared, plan, subject, worker, turn: None, verdict }.complain(errno, "stat");
    }

    fn finish(mut self) -> Verdict {
        if self.turn.is_some() {
            self.commit();
        }
        self.verdict
    }

    fn eval(&mut self, expr: &'a Expr) -> Outcome {
        match expr {
            Expr::And(all) => {
                for part in all {
                    if !self.eval(part)? {
                        return ControlFlow::Continue(false);
                    }
                }
                ControlFlow::Continue(true)
            }
            Expr::Or(all) => {
                for part in all {
                    if self.eval(part)? {
                        return ControlFlow::Continue(true);
                    }
                }
                ControlFlow::Continue(false)
            }
            Expr::Comma(all) => {
                let mut last = true;
                for part in all {
                    last = self.eval(part)?;
                }
                ControlFlow::Continue(last)
            }
            Expr::Not(inner) => self.eval(inner).map_continue(|value| !value),
            Expr::Test(test) => ControlFlow::Continue(self.test(test)),
            Expr::Action(action) => self.act(action),
        }
    }

    /// The path; the buffer is the worker's.
    pub fn path(&mut self) -> &[u8] {
        let Worker { path, prefix, .. } = &mut *self.worker;
        path.truncate(*prefix);
        path.extend_from_slice(self.subject.name.to_bytes());
        path
    }

    /// Metadata; the first failure to get it is reported.
    pub fn metadata(&mut self) -> Option<&'a Metadata> {
        match self.subject.metadata(self.plan.fields | Fields::KIND) {
            Ok(metadata) => Some(metadata),
            Err(Fetched::Before) => None,
            Err(Fetched::Now(errno)) => {
                self.complain(errno, "stat");
                None
            }
        }
    }

    /// The type, or a message.
    pub fn kind(&mut self) -> Option<FileKind> {
        match self.subject.kind(self.plan.fields) {
            Ok(kind) => Some(kind),
            Err(Fetched::Before) => None,
            Err(Fetched::Now(errno)) => {
                self.complain(errno, "stat");
                None
            }
        }
    }

    /// Reports a failure on this file, unless the file has vanished and that is to be ignored.
    pub fn complain(&mut self, errno: Errno, operation: &str) {
        let listed = self.subject.depth > 0;
        if listed && errno == Errno::NOENT && self.plan.options.vanished == VanishedFiles::Ignore {
            return;
        }
        let shared = self.shared;
        self.path();
        shared.report_errno(&self.worker.path, errno, operation, &mut self.worker.out);
    }

    fn of_metadata(&mut self, test: impl FnOnce(&Metadata) -> bool) -> bool {
        self.metadata().is_some_and(test)
    }

    fn test(&mut self, test: &Test) -> bool {
        match test {
            Test::True => true,
            Test::False => false,
            Test::Name(glob) => glob.matches(&self.subject.base_name()),
            Test::Path(glob) => self.with_path_string(|path| glob.matches(path)),
            Test::Regex(regex) => regex.matches(self.path()),
            Test::LinkTarget(glob) => self.link_target().is_some_and(|target| glob.matches(&target)),
            Test::Kind(kinds) => self.kind().is_some_and(|kind| kinds.contains(kind)),
            Test::OtherKind(kinds) => self.other_kind().is_some_and(|kind| kinds.contains(kind)),
            Test::Empty => self.is_empty(),
            Test::Permission(permission) => self.may(*permission),
            Test::FsType(kind) => {
                let mounts = self.shared.mounts();
                self.of_metadata(|m| mounts.type_of(m.dev) == kind)
            }
            Test::Uid(number) => self.of_metadata(|m| number.matches(m.uid.into())),
            Test::Gid(number) => self.of_metadata(|m| number.matches(m.gid.into())),
            Test::NoUser => match self.metadata() {
                Some(metadata) => self.worker.accounts.user(metadata.uid).is_none(),
                None => false,
            },
            Test::NoGroup => match self.metadata() {
                Some(metadata) => self.worker.accounts.group(metadata.gid).is_none(),
                None => false,
            },
            Test::Links(number) => self.of_metadata(|m| number.matches(m.nlink)),
            Test::Inode(number) => self.of_metadata(|m| number.matches(m.ino)),
            Test::Size { number, unit_bytes } => {
                self.of_metadata(|m| number.matches(m.size.div_ceil(*unit_bytes)))
            }
            Test::Mode(mode) => self.of_metadata(|m| mode.matches(m.mode)),
            Test::Time { which, window } => self.of_metadata(|m| {
                let known = *which != TimeField::Birth || m.fields.contains(Fields::BTIME);
                known && window.contains(nanoseconds(which.of(m)))
            }),
            Test::Used(window) => {
                self.of_metadata(|m| window.contains(nanoseconds(m.atime) - nanoseconds(m.ctime)))
            }
            Test::SameFile { dev, ino } => self.of_metadata(|m| m.identity() == (*dev, *ino)),
        }
    }

    /// Lends the path with a NUL after it.
    fn with_path_string<T>(&mut self, look: impl FnOnce(&std::ffi::CStr) -> T) -> T {
        self.path();
        self.worker.path.push(0);
        look(std::ffi::CStr::from_bytes_until_nul(&self.worker.path).expect("a NUL at its end"))
    }

    /// The target of a symbolic link; of anything else, and of a link that is followed, nothing.
    pub fn link_target(&mut self) -> Option<std::ffi::CString> {
        if self.kind()? != FileKind::Symlink {
            return None;
        }
        match self.subject.handle.read_link(self.subject.name) {
            Ok(target) => std::ffi::CString::new(target).ok(),
            Err(error) => {
                self.complain(error.errno, "read symbolic link");
                None
            }
        }
    }

    /// The type on the other side of a link: of the target where links are not followed, of the link where they are.
    fn other_kind(&mut self) -> Option<FileKind> {
        let subject = self.subject;
        let other = match subject.symlinks {
            SymlinkBehavior::NoFollow if self.kind()? != FileKind::Symlink => return self.kind(),
            SymlinkBehavior::NoFollow => SymlinkBehavior::Follow,
            SymlinkBehavior::Follow if subject.listed != FileKind::Unknown => return Some(subject.listed),
            SymlinkBehavior::Follow => SymlinkBehavior::NoFollow,
        };
        match subject.handle.metadata(subject.name, other, Fields::KIND) {
            Ok(metadata) => Some(metadata.kind()),
            // It leads nowhere, or in a loop.
            Err(error) if matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                Some(FileKind::Symlink)
            }
            Err(error) => {
                self.complain(error.errno, "stat");
                None
            }
        }
    }

    fn is_empty(&mut self) -> bool {
        match self.kind() {
            Some(FileKind::File) => self.of_metadata(|m| m.size == 0),
            // One that cannot be examined cannot be opened either, which is then reported once.
            Some(FileKind::Directory) if self.metadata().is_none() => false,
            Some(FileKind::Directory) => match self.has_no_entries() {
                Ok(empty) => empty,
                Err(error) => {
                    self.complain(error.errno, "open directory");
                    false
                }
            },
            _ => false,
        }
    }

    fn has_no_entries(&self) -> millstream_vfs::Result<bool> {
        let directory = self.subject.handle.open_dir(self.subject.name, self.subject.symlinks)?;
        let mut batch = DirentBatch::with_capacity(1024);
        let mut cursor = D::Cursor::default();
        while directory.read_entries(&mut cursor, &mut batch)? == ReadState::More {
            if batch.iter().next().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn may(&self, permission: Permission) -> bool {
        self.subject.handle.permits(self.subject.name, permission, User::Real) == Ok(true)
    }

    fn act(&mut self, action: &'a Action) -> Outcome {
        if let Action::Prune = action {
            self.verdict = Verdict::Prune;
            return ControlFlow::Continue(true);
        }
        self.take_turn()?;
        let done = match action {
            Action::Print { stream, terminator } => self.print(*stream, *terminator),
            Action::Printf { stream, format } => {
                if !format.fields().all(|field| super::analysis::needs_of_field(field).is_empty()) {
                    // Without attributes the whole line is left out.
                    match self.metadata() {
                        Some(_) => {}
                        None => return ControlFlow::Continue(false),
                    }
                }
                self.write_to(*stream, |evaluation, out| evaluation.render(format, *stream, out))
            }
            Action::List { stream, unit_blocks } => match self.metadata() {
                Some(metadata) => self.write_to(*stream, |evaluation, out| {
                    evaluation.render_listing(metadata, *unit_blocks, out)
                }),
                None => false,
            },
            Action::Record => match self.metadata() {
                Some(metadata) => {
                    self.write_to(StreamId::STDOUT, |evaluation, out| evaluation.render_record(metadata, out))
                }
                None => false,
            },
            Action::Prune => true,
            Action::Quit => {
                self.shared.quit();
                return ControlFlow::Break(());
            }
            Action::Delete => self.delete(),
            Action::Exec(exec) => self.exec(exec),
        };
        ControlFlow::Continue(done)
    }

    /// Waits for the right to act where actions happen one at a time.
    fn take_turn(&mut self) -> ControlFlow<()> {
        if self.plan.actions == ActionOrder::Parallel || self.turn.is_some() {
            return ControlFlow::Continue(());
        }
        self.turn = Some(self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner));
        if self.shared.has_quit() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Hands the worker's output to the shared stream.
    fn commit(&mut self) {
        self.shared.commit(&mut self.worker.out);
    }

    fn print(&mut self, stream: StreamId, terminator: u8) -> bool {
        if stream != StreamId::STDOUT || self.shared.shows_on_terminal(stream) {
            return self.write_to(stream, |evaluation, out| {
                evaluation.path();
                match terminator {
                    b'\n' => evaluation.shared.push_name(stream, &evaluation.worker.path, out),
                    _ => out.extend_from_slice(&evaluation.worker.path),
                }
                out.push(terminator);
            });
        }
        let Worker { out, path, prefix, .. } = &mut *self.worker;
        out.extend_from_slice(&path[..*prefix]);
        out.extend_from_slice(self.subject.name.to_bytes());
        out.push(terminator);
        true
    }

    /// Lets `write` append to the output of a stream.
    fn write_to(&mut self, stream: StreamId, write: impl FnOnce(&mut Self, &mut Vec<u8>)) -> bool {
        if stream == StreamId::STDOUT {
            let mut out = std::mem::take(&mut self.worker.out);
            write(self, &mut out);
            // A JSON message may have been added meanwhile.
            out.append(&mut self.worker.out);
            self.worker.out = out;
        } else {
            let mut out = std::mem::take(&mut self.worker.scratch);
            out.clear();
            write(self, &mut out);
            self.shared.append(stream, &out);
            self.worker.scratch = out;
        }
        true
    }

    fn delete(&mut self) -> bool {
        let subject = self.subject;
        let name = subject.name.to_bytes();
        if subject.depth == 0 && name == b"." {
            return true;
        }
        let kind_of =
            |symlinks| subject.handle.metadata(subject.name, symlinks, Fields::KIND).map(|m| m.kind());
        let listed = match subject.listed {
            FileKind::Unknown => kind_of(SymlinkBehavior::NoFollow),
            known => Ok(known),
        };
        let seen = match listed {
            // A directory that was traversed is removed as a directory, so that a link to it stays.
            Ok(FileKind::Symlink) if subject.symlinks == SymlinkBehavior::Follow => {
                Ok(kind_of(SymlinkBehavior::Follow).unwrap_or(FileKind::Symlink))
            }
            listed => listed,
        };
        let removed = seen.and_then(|kind| match kind {
            FileKind::Directory => subject.handle.remove(subject.name, RemoveKind::Directory),
            _ => subject.handle.remove(subject.name, RemoveKind::File),
        });
        match removed {
            Ok(()) => true,
            Err(error) if error.is_vanished() && self.plan.options.vanished == VanishedFiles::Ignore => true,
            Err(error) => {
                let shared = self.shared;
                self.path();
                let Worker { path, out, .. } = &mut *self.worker;
                shared.report_failed_removal(path, error.errno, out);
                false
            }
        }
    }

    fn exec(&mut self, exec: &'a Exec) -> bool {
        let name = match exec.place {
            ExecPlace::Start => self.path().to_vec(),
            ExecPlace::DirectoryOfFile => self.name_in_directory(),
        };
        match exec.mode {
            ExecMode::Each => self.exec_one(exec, &name, ChildInput::Inherited),
            ExecMode::Ask => self.confirm(exec) && self.exec_one(exec, &name, ChildInput::Empty),
            ExecMode::Batch => {
                self.exec_later(exec, name);
                true
            }
        }
    }

    fn name_in_directory(&self) -> Vec<u8> {
        let name = self.subject.name.to_bytes();
        let last = if self.subject.depth == 0 { split_operand(name).1 } else { name };
        // However many slashes there are, one remains.
        let end = last.iter().rposition(|&b| b != b'/').map_or(1, |end| last.len().min(end + 2));
        if last.starts_with(b"/") { b"/".to_vec() } else { [b"./", &last[..end]].concat() }
    }

    /// The directory in which a command starts, or a message.
    fn start_directory(&mut self, exec: &Exec) -> Option<StartDirectory> {
        let subject = self.subject;
        match exec.place {
            ExecPlace::Start => Some(StartDirectory::Inherited),
            ExecPlace::DirectoryOfFile if subject.depth == 0 => {
                Some(StartDirectory::of_operand(subject.name.to_bytes()))
            }
            ExecPlace::DirectoryOfFile => match StartDirectory::of_handle(subject.handle) {
                Ok(start) => Some(start),
                Err(error) => {
                    self.complain(error.errno, "open directory");
                    None
                }
            },
        }
    }

    fn exec_one(&mut self, exec: &Exec, name: &[u8], input: ChildInput) -> bool {
        let words: Vec<_> = exec.words.iter().map(|word| substitute(word, name)).collect();
        let program = words.first().cloned().unwrap_or_default();
        self.commit();
        self.shared.flush();
        let Some(start) = self.start_directory(exec) else { return false };
        let ending = run(words, &start, input);
        self.shared.report_ending(&program, ending);
        ending == Ending::Success
    }

    fn confirm(&mut self, exec: &Exec) -> bool {
        self.commit();
        self.shared.flush();
        self.path();
        let program = exec.words.first().map_or(&b""[..], Vec::as_slice);
        self.shared.confirm(program, &self.worker.path)
    }

    /// Adds the name to a command line. For the directory of an operand it runs at once, because no event marks its
    /// end.
    fn exec_later(&mut self, exec: &'a Exec, name: Vec<u8>) {
        let directory = match exec.place {
            ExecPlace::Start => 0,
            ExecPlace::DirectoryOfFile => self.subject.directory,
        };
        let limit = self.shared.argument_limit;
        let Some(turn) = &mut self.turn else { return };
        let ready = turn.batches.add(exec, directory, name, limit);
        self.run_batch(exec, ready);
        if exec.place == ExecPlace::DirectoryOfFile && self.subject.depth == 0 {
            let ready = self.turn.as_mut().and_then(|turn| turn.batches.take(exec, directory));
            self.run_batch(exec, ready);
        }
    }

    fn run_batch(&mut self, exec: &Exec, batch: Option<FullBatch>) {
        let Some(batch) = batch else { return };
        self.commit();
        if let Some(start) = self.start_directory(exec) {
            self.shared.run_batch(exec, batch, &start);
        }
    }
}
