//! Shared by `pchmod` and `pchown`: running a change and reporting it as the GNU tools do.

mod options;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use millstream_change::attributes::{Attribute, Detail, Event, Options, Outcome, Problem, Sink, change};
use millstream_operation::activity::Activity;
use millstream_posix::PosixVolume;
use millstream_text::json::{ErrorRecord, Object};
use millstream_vfs::{
    Dir, Errno, Fields, Metadata, Operation, Result as VolumeResult, SymlinkBehavior, Volume,
};

use crate::diagnostics::{Diagnostics, FAILURE, Message, Refused};
use crate::mounted::{USE_PSYNC, mounted};
use crate::operand::paths;
use crate::progress::{Progress, StdoutUse};
use crate::standard_output::Lines;
pub(crate) use options::{Id, Settings, Shared, WHAT, shared};

/// Which messages go to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    /// All.
    All,
    /// All except those about single files (`-f`).
    Few,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// In words.
    Text,
    /// As JSON objects.
    Json,
}

/// The attributes of the reference file.
pub(crate) fn reference_file(name: &[u8], diagnostics: &Diagnostics) -> Result<Metadata, Refused> {
    stat(name).map_err(|error| {
        diagnostics.error(FAILURE).text("failed to get attributes of ").name(name).errno(error.errno).send();
        Refused
    })
}

fn stat(name: &[u8]) -> VolumeResult<Metadata> {
    let name = CString::new(name).map_err(|_| millstream_vfs::Error::new(Operation::Stat, Errno::INVAL))?;
    PosixVolume.base().metadata(&name, SymlinkBehavior::Follow, Fields::STAT)
}

/// Reports that operands are missing, after the last one given.
pub(crate) fn missing_operand(last: Option<&[u8]>, diagnostics: &Diagnostics) -> Refused {
    let message = diagnostics.error(FAILURE).text("missing operand");
    match last {
        Some(last) => message.text(" after ").quoted(last).send_with_hint(),
        None => message.send_with_hint(),
    }
    Refused
}

/// The wording of one tool.
pub(crate) trait Wording: Sync {
    /// The attribute's value.
    type Value: Copy;

    /// The tool's own name.
    const TOOL: &'static str;

    /// The name of the action in records.
    const OPERATION: Operation;

    /// The failed action, before the name of the file.
    fn setting(&self) -> &'static str;

    /// Appends the line of `-c` and `-v` without its terminator; `name` is quoted.
    fn line(&self, event: &Event<'_, Self::Value>, name: &[u8], out: &mut Vec<u8>);

    /// The difference from the expected value, after the name of the file.
    fn surprise(&self, _event: &Event<'_, Self::Value>) -> Option<String> {
        None
    }

    /// Adds the values to a record.
    fn values<'o>(&self, event: &Event<'_, Self::Value>, record: Object<'o>) -> Object<'o>;
}

/// Changes `operands` and reports the results.
pub(crate) fn run<A: Attribute, W: Wording<Value = A::Value>>(
    operands: Vec<OsString>,
    attribute: &A,
    options: &Options,
    settings: &Settings,
    wording: W,
    diagnostics: &Diagnostics,
) -> Result<(), Refused> {
    let given = operands.iter().map(|operand| operand.as_bytes());
    let volume = mounted(W::TOOL, given, (FAILURE, USE_PSYNC), diagnostics)?;
    let activity = Arc::new(Activity::default());
    let progress = Progress::start(&activity, StdoutUse::WithoutProgress, diagnostics);
    let output = Output { wording, settings, diagnostics, lines: Lines::new(progress.screen().clone()) };
    change(&volume, &paths(operands), attribute, options, &output, &activity);
    drop(progress);
    output.lines.finish(diagnostics, FAILURE);
    Ok(())
}

/// Standard output and standard error.
struct Output<'a, W> {
    wording: W,
    settings: &'a Settings,
    diagnostics: &'a Diagnostics,
    lines: Lines,
}

impl<W: Wording> Output<'_, W> {
    fn message(&self, path: &[u8], problem: Problem) -> Message<'_> {
        let about = |what: &str| self.diagnostics.warning().text(what).name(path);
        match problem {
            Problem::Access(errno) => about("cannot access ").errno(errno),
            Problem::Dangling => about("cannot operate on dangling symlink "),
            Problem::Dereference(errno) => about("cannot dereference ").errno(errno),
            Problem::Set(errno) => about(self.wording.setting()).errno(errno),
            Problem::Check(errno) => about("getting new attributes of ").errno(errno),
            Problem::ReadDirectory(errno) => about("cannot read directory ").errno(errno),
            Problem::Cycle => self.diagnostics.cycle(path),
            Problem::PreservedRoot => {
                let message = about("it is dangerous to operate recursively on ");
                let message = if path == b"/" { message } else { message.text(" (same as '/')") };
                message
                    .text("\n")
                    .text(&self.diagnostics.program().to_string_lossy())
                    .text(": use --no-preserve-root to override this failsafe")
            }
        }
    }

    fn failed(&self, event: &Event<'_, W::Value>, problem: Problem, lines: &mut Vec<u8>) {
        // As by the GNU tools, a change that was made is not a failure if it cannot be examined afterwards.
        if !matches!(problem, Problem::Check(_)) {
            self.diagnostics.fail(FAILURE);
        }
        let is_always_told = matches!(problem, Problem::PreservedRoot | Problem::Cycle);
        if self.settings.messages == Messages::All || is_always_told {
            self.message(event.path, problem).send();
        }
        let has_line = !is_always_told && !matches!(problem, Problem::Check(_));
        match self.settings.format {
            Format::Json => {
                let (errno, operation) = cause::<W>(problem);
                ErrorRecord { errno, operation: &operation.to_string(), path: event.path }.write(lines);
            }
            Format::Text if has_line && self.settings.detail == Detail::Everything => self.line(event, lines),
            Format::Text => {}
        }
    }

    fn line(&self, event: &Event<'_, W::Value>, lines: &mut Vec<u8>) {
        self.wording.line(event, &self.diagnostics.quoted_name(event.path), lines);
        lines.push(b'\n');
    }

    fn record(&self, event: &Event<'_, W::Value>, lines: &mut Vec<u8>) {
        let change = W::OPERATION.to_string();
        let action = match event.outcome {
            Outcome::Changed => change,
            Outcome::WouldChange => format!("would {change}"),
            Outcome::Retained => "retain".to_owned(),
            Outcome::PassedOver => "pass over".to_owned(),
            Outcome::Surprising { .. } | Outcome::Failed(_) => "warn".to_owned(),
        };
        let record = Object::begin(lines).string("action", action.as_bytes());
        self.wording.values(event, record).string("path", event.path).end();
    }
}

fn cause<W: Wording>(problem: Problem) -> (Errno, Operation) {
    match problem {
        Problem::Access(errno) | Problem::Dereference(errno) | Problem::Check(errno) => {
            (errno, Operation::Stat)
        }
        Problem::Dangling => (Errno::NOENT, Operation::Stat),
        Problem::Set(errno) => (errno, W::OPERATION),
        Problem::ReadDirectory(errno) => (errno, Operation::ReadDir),
        Problem::PreservedRoot => (Errno::PERM, W::OPERATION),
        Problem::Cycle => (Errno::LOOP, Operation::OpenDir),
    }
}

impl<W: Wording> Sink<W::Value> for Output<'_, W> {
    fn event(&self, event: &Event<'_, W::Value>, lines: &mut Vec<u8>) {
        if let Some(surprise) = self.wording.surprise(event) {
            let message = self.diagnostics.error(FAILURE).name_before_colon(event.path);
            message.text(": ").text(&surprise).send();
        }
        match (event.outcome, self.settings.format) {
            (Outcome::Failed(problem), _) => self.failed(event, problem, lines),
            (_, Format::Json) => self.record(event, lines),
            (Outcome::Surprising { .. }, Format::Text) => {}
            (_, Format::Text) => self.line(event, lines),
        }
    }

    fn lines(&self, lines: &[u8]) {
        self.lines.write(lines);
    }
}
