//! `prm`: removal of files and trees, as GNU `rm` does it.

mod settings;
mod table;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_change::remove::{Cause, Options, Problem, Question, Sink, Step, remove};
use millstream_operation::activity::Activity;
use millstream_posix::PosixVolume;
use millstream_system::locale::Locale;
use millstream_vfs::{FileKind, Operation};

use crate::diagnostics::{Diagnostics, FAILURE, Refused, UsageError};
use crate::mounted::{USE_PSYNC, mounted};
use crate::operand::paths;
use crate::options::{Reference, take_options};
use crate::progress::{Progress, StdoutUse};
use crate::standard_output::Lines;
use crate::startup::{Startup, startup};
use settings::Settings;
use table::PRM;

/// The option table of `prm`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PRM)
}

/// Runs `prm` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, locale, .. } = startup(PRM.name);
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(&arguments, locale, &diagnostics);
    diagnostics.exit_code()
}

fn prepare(
    arguments: &[OsString],
    locale: &'static Locale,
    diagnostics: &Diagnostics,
) -> Result<(), Refused> {
    let mut settings = Settings::new(diagnostics);
    let operands =
        take_options(&PRM, arguments.iter().cloned(), diagnostics, FAILURE, |option| match option {
            Ok(option) => settings.take(&option),
            Err(error) => Err(refuse(&error, arguments, diagnostics)),
        })?;
    let given = operands.iter().map(|operand| operand.as_bytes());
    let volume = mounted(PRM.name, given, (FAILURE, USE_PSYNC), diagnostics)?;
    match settings.overview(operands.len()) {
        _ if operands.is_empty() && settings.needs_no_operands() => {}
        _ if operands.is_empty() => diagnostics.error(FAILURE).text("missing operand").send_with_hint(),
        Some(question) if !diagnostics.warning().text(&question).ask() => {}
        _ => work(&volume, &settings.finish(locale), operands, diagnostics),
    }
    Ok(())
}

/// Reports an invalid option. If the word is the name of a file, explains how to remove that.
fn refuse(error: &UsageError, arguments: &[OsString], diagnostics: &Diagnostics) -> Refused {
    let looks_like_an_option = |word: &&OsString| word.len() > 1 && word.as_bytes().starts_with(b"-");
    let file =
        arguments.iter().filter(looks_like_an_option).find(|word| std::fs::symlink_metadata(word).is_ok());
    let message = diagnostics.error(FAILURE).bytes(error.message());
    match file {
        None => message.send_with_hint(),
        Some(file) => message
            .text("\nTry '")
            .bytes(diagnostics.program().as_bytes())
            .text(" ./")
            .shell_word(file.as_bytes())
            .text("' to remove the file ")
            .name(file.as_bytes())
            .text(".")
            .send_with_hint(),
    }
    Refused
}

fn work(volume: &PosixVolume, options: &Options, operands: Vec<OsString>, diagnostics: &Diagnostics) {
    let activity = Arc::new(Activity::default());
    let stdout = if options.report.is_some() { StdoutUse::Streams } else { StdoutUse::WithoutProgress };
    let progress = Progress::start(&activity, stdout, diagnostics);
    let output =
        Output { diagnostics, lines: Lines::new(progress.screen().clone()), waiting: Mutex::default() };
    remove(volume, &paths(operands), options, &output, &activity);
    drop(progress);
    output.finish();
}

/// Standard output, standard error and standard input.
struct Output<'a> {
    diagnostics: &'a Diagnostics,
    lines: Lines,
    /// Lines not written yet.
    waiting: Mutex<Vec<u8>>,
}

/// Output to anything but a terminal is written in pieces of about this many bytes.
const PIECE: usize = 4096;

impl Output<'_> {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, waiting: &mut Vec<u8>) {
        self.lines.write(waiting);
        waiting.clear();
    }

    fn finish(self) {
        self.write(&mut self.lock());
        self.lines.finish(self.diagnostics, FAILURE);
    }
}

impl Sink for Output<'_> {
    fn lines(&self, text: &[u8]) {
        let mut waiting = self.lock();
        waiting.extend_from_slice(text);
        if waiting.len() >= PIECE || io::stdout().is_terminal() {
            self.write(&mut waiting);
        }
    }

    fn problem(&self, problem: &Problem<'_>) {
        // If both go to the same file, earlier output must come first.
        self.write(&mut self.lock());
        let message = self.diagnostics.error(FAILURE);
        match problem.cause {
            Cause::Failed(error) if error.operation == Operation::ReadDir => {
                let message = message.text("traversal failed: ").name_before_colon(problem.path);
                message.errno(error.errno).send();
            }
            Cause::Failed(error) => {
                message.text("cannot remove ").name(problem.path).errno(error.errno).send();
            }
            Cause::Dots => {
                message.text("refusing to remove '.' or '..' directory: skipping ").name(problem.path).send();
            }
            Cause::Root => {
                let message = message.text("it is dangerous to operate recursively on ").name(problem.path);
                if problem.path == b"/" { message } else { message.text(" (same as '/')") }.send();
                let hint = "use --no-preserve-root to override this failsafe";
                self.diagnostics.warning().text(hint).send();
            }
            Cause::UnknownParent(_) => {
                let slash: &[u8] = if problem.path.ends_with(b"/") { b"" } else { b"/" };
                let parent = [problem.path, slash, b".."].concat();
                let message = message.text("failed to stat ").name(&parent);
                message.text(": skipping ").name(problem.path).send();
            }
            Cause::Cycle => self.diagnostics.cycle(problem.path).send(),
            Cause::OtherDevice | Cause::MountPoint => {
                let message = message.text("skipping ").name(problem.path);
                message.text(", since it's on a different device").send();
                if problem.cause == Cause::MountPoint {
                    self.diagnostics.warning().text("and --preserve-root=all is in effect").send();
                }
            }
        }
    }

    fn approve(&self, question: &Question<'_>) -> bool {
        let (what, protected) = (wording(question.step), question.write_protected);
        let step = match question.step {
            Step::Descend => "descend into ",
            Step::Attempt => "attempt removal of inaccessible ",
            Step::Remove { .. } => "remove ",
        };
        let protected = if protected && question.step != Step::Attempt { "write-protected " } else { "" };
        let message = self.diagnostics.warning().text(step).text(protected).text(what).text(" ");
        message.name(question.path).text("? ").ask()
    }
}

fn wording(step: Step) -> &'static str {
    match step {
        Step::Descend | Step::Attempt => "directory",
        Step::Remove { kind, size } => match kind {
            FileKind::Directory => "directory",
            FileKind::File if size == 0 => "regular empty file",
            FileKind::File => "regular file",
            FileKind::Symlink => "symbolic link",
            FileKind::Fifo => "fifo",
            FileKind::Socket => "socket",
            FileKind::CharDevice => "character special file",
            FileKind::BlockDevice => "block special file",
            FileKind::Unknown => "weird file",
        },
    }
}
