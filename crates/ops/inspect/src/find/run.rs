//! The state shared by all workers of an evaluation: outputs, the action lock, messages, the exit status.

use std::ffi::CString;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use millstream_system::locale::Locale;
use millstream_vfs::{Errno, Timestamp, errno_text};
use millstream_walk::Cancellation;

use super::Reporter;
use super::analysis::Plan;
use super::exec::{Batches, ChildInput, Ending, Exec, ExecPlace, FullBatch, StartDirectory, run};
use super::expression::{Action, Leaf, StreamId};
use super::mounts::Mounts;
use super::output::{FailedAt, Failure, StreamDevice, Streams};
use super::quote::{push_for_terminal, push_quoted};
use super::words::DefaultOutput;
use millstream_operation::activity::Activity;
use millstream_text::json::ErrorRecord;

/// The state under the action lock.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Command lines that wait for more names.
    pub batches: Batches,
}

/// The state shared by all workers.
pub(super) struct Shared {
    pub plan: Plan,
    pub locale: &'static Locale,
    /// When the traversal began, for the dates of `-ls`.
    pub now: Timestamp,
    /// Held by an entry whose actions must not mix with those of others.
    pub turn: Mutex<Turn>,
    /// Bytes that the arguments of a command may take.
    pub argument_limit: usize,
    streams: Streams,
    reporter: Arc<dyn Reporter>,
    errors: DefaultOutput,
    /// The progress counters.
    pub activity: Arc<Activity>,
    failed: AtomicBool,
    quit: AtomicBool,
    cancellation: Cancellation,
    mounts: OnceLock<Mounts>,
}

impl Shared {
    pub fn new(
        plan: Plan,
        streams: Streams,
        reporter: Arc<dyn Reporter>,
        errors: DefaultOutput,
        locale: &'static Locale,
        now: Timestamp,
        cancellation: Cancellation,
    ) -> Self {
        Shared {
            plan,
            locale,
            now,
            turn: Mutex::default(),
            argument_limit: super::exec::argument_limit(),
            streams,
            reporter,
            errors,
            activity: Arc::default(),
            failed: AtomicBool::new(false),
            quit: AtomicBool::new(false),
            cancellation,
            mounts: OnceLock::new(),
        }
    }

    /// `-quit` was reached: nothing more is evaluated.
    pub fn quit(&self) {
        self.quit.store(true, Ordering::Release);
        self.cancellation.cancel();
    }

    pub fn has_quit(&self) -> bool {
        self.quit.load(Ordering::Acquire)
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Makes the exit status report a failure.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub fn mounts(&self) -> &Mounts {
        self.mounts.get_or_init(Mounts::read)
    }

    pub fn shows_on_terminal(&self, stream: StreamId) -> bool {
        self.streams.device(stream) == StreamDevice::Terminal
    }

    /// Appends a name, without control characters if it goes to a terminal.
    pub fn push_name(&self, stream: StreamId, name: &[u8], out: &mut Vec<u8>) {
        match self.streams.device(stream) {
            StreamDevice::Terminal => push_for_terminal(out, name, self.locale),
            StreamDevice::Other => out.extend_from_slice(name),
        }
    }

    /// Moves a worker's output to standard output.
    pub fn commit(&self, out: &mut Vec<u8>) {
        if !out.is_empty() {
            self.append(StreamId::STDOUT, out);
            out.clear();
        }
    }

    pub fn append(&self, stream: StreamId, bytes: &[u8]) {
        self.streams.append(stream, bytes);
    }

    pub fn flush(&self) {
        self.streams.flush();
    }

    /// Reports that an operation failed at a path.
    pub fn report_errno(&self, path: &[u8], errno: Errno, operation: &str, out: &mut Vec<u8>) {
        let reason = errno_text(errno);
        let mut message = self.quoted(path);
        message.extend_from_slice(b": ");
        message.extend_from_slice(reason.as_bytes());
        self.report(&message);
        self.record_error(path, errno, operation, out);
    }

    /// Reports that a file could not be removed.
    pub fn report_failed_removal(&self, path: &[u8], errno: Errno, out: &mut Vec<u8>) {
        let reason = errno_text(errno);
        self.report(&[b"cannot delete ", &self.quoted(path)[..], b": ", reason.as_bytes()].concat());
        self.record_error(path, errno, "remove", out);
    }

    /// Reports a directory that is its own ancestor.
    pub fn report_loop(&self, path: &[u8], ancestor: &[u8], out: &mut Vec<u8>) {
        self.report(
            &[
                b"File system loop detected; ",
                &self.quoted(path)[..],
                b" is part of the same file system loop as ",
                &self.quoted(ancestor),
                b".",
            ]
            .concat(),
        );
        self.record_error(path, Errno::LOOP, "open directory", out);
    }

    /// Reports failures that a command's exit status does not show.
    pub fn report_ending(&self, program: &[u8], ending: Ending) {
        match ending {
            Ending::Success | Ending::Failure => {}
            Ending::Signal(signal) => {
                let signal = signal.to_string();
                let message =
                    [&self.quoted(program)[..], b" terminated by signal ", signal.as_bytes()].concat();
                self.reporter.report(&message);
            }
            Ending::NotStarted(errno) => {
                let message = [&self.quoted(program)[..], b": ", errno_text(errno).as_bytes()].concat();
                self.reporter.report(&message);
            }
        }
    }

    /// Prints a message; the exit status will report a failure.
    pub fn report(&self, message: &[u8]) {
        self.fail();
        self.activity.add_error();
        self.reporter.report(message);
    }

    fn record_error(&self, path: &[u8], errno: Errno, operation: &str, out: &mut Vec<u8>) {
        if self.errors == DefaultOutput::Record {
            ErrorRecord { errno, operation, path }.write(out);
        }
    }

    /// Reports a file without a security context.
    pub fn report_missing_context(&self, path: &[u8], errno: Errno) {
        let reason = errno_text(errno);
        self.report(&[b"getfilecon failed: ", &self.quoted(path)[..], b": ", reason.as_bytes()].concat());
    }

    fn quoted(&self, name: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(name.len() + 8);
        push_quoted(&mut out, name, self.locale);
        out
    }

    /// Asks whether a command should run.
    pub fn confirm(&self, program: &[u8], path: &[u8]) -> bool {
        let prompt = [b"< ", program, b" ... ", path, b" > ? "].concat();
        // Without standard error nobody sees the question; the answer counts all the same.
        let _ = std::io::stderr().write_all(&prompt);
        let mut answer = Vec::new();
        match std::io::stdin().lock().read_until(b'\n', &mut answer) {
            Ok(_) => {
                let end = answer.iter().position(|b| matches!(b, 0 | b'\n')).unwrap_or(answer.len());
                answer.truncate(end);
                CString::new(answer).is_ok_and(|answer| self.locale.is_affirmative(&answer))
            }
            Err(_) => false,
        }
    }

    /// Runs a command on collected names.
    pub fn run_batch(&self, exec: &Exec, batch: FullBatch, start: &StartDirectory) {
        let program = exec.words.first().or(batch.first()).cloned().unwrap_or_default();
        let words = exec.words.iter().cloned().chain(batch).collect();
        self.flush();
        let ending = run(words, start, ChildInput::Inherited);
        self.report_ending(&program, ending);
        if ending != Ending::Success {
            self.fail();
        }
    }

    /// Runs the commands collected for a finished directory.
    ///
    /// # Errors
    /// If there are commands to run, but `start` does not know where.
    pub fn run_batches_of(
        &self,
        directory: usize,
        start: impl FnOnce() -> millstream_vfs::Result<StartDirectory>,
    ) -> millstream_vfs::Result<()> {
        let waiting = self.take_batches(ExecPlace::DirectoryOfFile, directory);
        if waiting.is_empty() {
            return Ok(());
        }
        let start = start()?;
        for (exec, batch) in waiting {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.run_batch(exec, batch, &start);
        }
        Ok(())
    }

    /// Runs the collected commands in the starting directory.
    pub fn run_last_batches(&self) {
        for (exec, batch) in self.take_batches(ExecPlace::Start, 0) {
            self.run_batch(exec, batch, &StartDirectory::Inherited);
        }
    }

    fn take_batches(&self, place: ExecPlace, directory: usize) -> Vec<(&Exec, FullBatch)> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = Vec::new();
        self.plan.expression.for_each_leaf(&mut |leaf| match leaf {
            Leaf::Action(Action::Exec(exec)) if exec.place == place => {
                waiting.extend(turn.batches.take(exec, directory).map(|batch| (exec, batch)));
            }
            _ => {}
        });
        waiting
    }

    /// Flushes everything and reports failures to write.
    pub fn close(&self) {
        for Failure { name, when, errno } in self.streams.finish() {
            let is_stdout = name.is_empty();
            let reason = errno_text(errno);
            if !is_stdout || when == FailedAt::Write {
                let shown = if is_stdout { &b"standard output"[..] } else { name };
                self.report(&[&self.quoted(shown)[..], b": ", reason.as_bytes()].concat());
            }
            if is_stdout {
                match (when, errno) {
                    (FailedAt::Close, _) | (_, Errno::BADF) => {
                        self.report(&[b"write error: ", reason.as_bytes()].concat());
                    }
                    _ => self.report(b"write error"),
                }
            }
        }
    }
}
