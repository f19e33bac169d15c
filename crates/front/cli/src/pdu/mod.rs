//! `pdu`: disk usage, as GNU `du` reports it.

mod number;
mod operands;
mod settings;
mod table;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use millstream_inspect::du::{Problem, Sink, measure};
use millstream_operation::activity::Activity;
use millstream_system::locale::Locale;
use millstream_vfs::{Errno, Operation};
use millstream_walk::Cancellation;

use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::mounted::{USE_PSYNC, mounted};
use crate::options::{Reference, take_options};
use crate::progress::{Progress, StdoutUse, report};
use crate::screen::Screen;
use crate::standard_output::StandardOutput;
use crate::startup::{Startup, startup};
use settings::Settings;
use table::PDU;

/// The option table of `pdu`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PDU)
}

/// Runs `pdu` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, locale, .. } = startup(PDU.name);
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(arguments, locale, &diagnostics);
    diagnostics.exit_code()
}

fn prepare(
    arguments: Vec<OsString>,
    locale: &'static Locale,
    diagnostics: &Diagnostics,
) -> Result<(), Refused> {
    let mut settings = Settings::new(locale, diagnostics);
    let operands = take_options(&PDU, arguments, diagnostics, FAILURE, |option| match option {
        Ok(option) => settings.take(&option),
        Err(error) => {
            diagnostics.error(FAILURE).bytes(error.message()).send();
            settings.note_wrong();
            Ok(())
        }
    })?;
    work(settings, operands, diagnostics)
}

fn work(
    mut settings: Settings<'_>,
    operands: Vec<OsString>,
    diagnostics: &Diagnostics,
) -> Result<(), Refused> {
    let started = Instant::now();
    let files0_from = settings.files0_from.take();
    let verbose = settings.verbose;
    let options = settings.finish(diagnostics.is_called("du"))?;
    let operands = operands::operands(operands, files0_from.as_deref(), diagnostics)?;
    let given = operands.iter().map(|operand| operand.to_bytes());
    let volume = mounted(PDU.name, given, (FAILURE, USE_PSYNC), diagnostics)?;
    let activity = Arc::new(Activity::default());
    let progress = Progress::start(&activity, StdoutUse::WithoutProgress, diagnostics);
    let output = Output {
        diagnostics,
        screen: progress.screen().clone(),
        cancellation: options.cancellation.clone(),
        failure: Mutex::default(),
    };
    let stats = measure(&volume, &operands, &options, &output, &activity);
    drop(progress);
    if let Some(error) = output.into_failure() {
        let message = diagnostics.error(FAILURE).text("write error");
        // As in GNU du, the cause of a failed write is not reported, but that of a closed output is.
        match Errno::from_io_error(&error) {
            Some(Errno::BADF) => message.cause(&error).send(),
            _ => message.send(),
        }
    } else if let Err(error) = StandardOutput.flush() {
        diagnostics.write_error(&error, FAILURE);
    }
    if verbose {
        report(&activity, stats.threads_peak, started, diagnostics);
    }
    Ok(())
}

/// Standard output and standard error.
struct Output<'a> {
    diagnostics: &'a Diagnostics,
    screen: Screen,
    cancellation: Cancellation,
    /// Standard output could not be written; continuing is pointless.
    failure: Mutex<Option<io::Error>>,
}

impl Output<'_> {
    fn into_failure(self) -> Option<io::Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Output<'_> {
    fn lines(&self, lines: &[u8]) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = self.screen.without_progress(|| StandardOutput.write_all(lines)).err();
            if failure.is_some() {
                self.cancellation.cancel();
            }
        }
    }

    fn problem(&self, problem: &Problem<'_>) {
        let what = match problem.operation {
            Operation::OpenDir | Operation::ReadDir => "cannot read directory ",
            _ => "cannot access ",
        };
        let message = self.diagnostics.error(FAILURE).text(what).name(problem.path);
        match problem.errno {
            Some(errno) => message.errno(errno).send(),
            None => message.send(),
        }
    }

    fn odd_time(&self, seconds: i64) {
        self.diagnostics.warning().text(&format!("time '{seconds}' is out of range")).send();
    }
}

/// Parses any text as the arguments of `--block-size`, `--threshold` and `--max-depth`, for the fuzzer.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_numbers(text: &[u8]) {
    let is_block_size = number::block_size(text).is_ok();
    // A threshold is a size with a sign, or 0.
    let is_threshold = number::threshold(text).is_ok();
    assert!(!is_threshold || is_block_size || text.iter().any(|b| b"+-0".contains(b)));
    // A number may be invalid, but must not cause a panic.
    let _ = number::integer(text);
}
