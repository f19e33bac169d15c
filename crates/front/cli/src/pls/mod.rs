//! `pls`: directory listings, as GNU `ls` makes them.

mod arguments;
mod settings;
mod table;

use std::ffi::{CString, OsString};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use millstream_inspect::list::{Flush, Outcome, Sinks, TreeForm, list, print_trees};
use millstream_operation::activity::Activity;
use millstream_posix::PosixVolume;
use millstream_system::locale::Locale;
use rustix::fs::{FileType, fstat};

use crate::diagnostics::{Diagnostics, Refused, UsageErrorKind};
use crate::mounted::{USE_PSYNC, mounted};
use crate::options::{Reference, take_options};
use crate::progress::{Progress, StdoutUse, report};
use crate::standard_output::StandardOutput;
use crate::startup::{Startup, startup};
use settings::{Collector, Refusal, Settings};
use table::PLS;

/// The exit code of a wrong option, and of output that cannot be written.
const SERIOUS: u8 = 2;
/// The exit code of a wrong word in the argument of an option.
const MINOR: u8 = 1;

/// The option table of `pls`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PLS)
}

/// Runs `pls` with the arguments of the process.
pub fn run() -> ExitCode {
    let started = Instant::now();
    let Startup { arguments, diagnostics, locale, .. } = startup(PLS.name);
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(arguments, started, locale, &diagnostics);
    diagnostics.exit_code()
}

fn prepare(
    arguments: Vec<OsString>,
    started: Instant,
    locale: &'static Locale,
    diagnostics: &Diagnostics,
) -> Result<(), Refused> {
    let mut collector = Collector::new(locale, diagnostics);
    let refuse = |refusal| refuse(&refusal, diagnostics);
    let operands = take_options(&PLS, arguments, diagnostics, SERIOUS, |option| {
        option.map_err(Refusal::from).and_then(|option| collector.take(&option)).map_err(refuse)
    })?;
    let settings = collector.finish().map_err(refuse)?;
    let activity = Arc::new(Activity::default());
    let operands = arguments::operands(operands);
    let paths = operands.iter().map(|operand| operand.to_bytes());
    let volume = mounted(PLS.name, paths, (SERIOUS, USE_PSYNC), diagnostics)?;
    let outcome = work(&volume, &settings, &operands, &activity, diagnostics);
    finish(&outcome, diagnostics);
    if settings.verbose {
        report(&activity, outcome.stats.threads_peak, started, diagnostics);
    }
    Ok(())
}

fn refuse(refusal: &Refusal, diagnostics: &Diagnostics) -> Refused {
    match refusal {
        // An ambiguous or unknown word has the exit code that GNU ls uses, though its documentation names another.
        Refusal::WithHint(error) if error.kind() == UsageErrorKind::Argument => {
            diagnostics.usage_error(error, MINOR)
        }
        Refusal::WithHint(error) => diagnostics.usage_error(error, SERIOUS),
        Refusal::Plain(message) => {
            diagnostics.error(SERIOUS).bytes(message).send();
            Refused
        }
    }
}

fn work(
    volume: &PosixVolume,
    settings: &Settings,
    operands: &[CString],
    activity: &Arc<Activity>,
    diagnostics: &Diagnostics,
) -> Outcome {
    let _progress = Progress::start(activity, StdoutUse::Streams, diagnostics);
    let silent = settings.tree == Some(TreeForm::Records) && shares_records();
    let console = |message: &[u8]| {
        if !silent {
            diagnostics.warning().bytes(message).send();
        }
    };
    let flush = if io::stdout().is_terminal() { Flush::Always } else { Flush::Full };
    let sinks = Sinks { writer: Box::new(StandardOutput), flush, console: &console, activity };
    match settings.tree {
        Some(form) => print_trees(volume, operands, form, &settings.list, sinks),
        None => list(volume, operands, &settings.list, sinks),
    }
}

/// Whether messages would end up among the records. Callers that read both as one stream find an error's record there;
/// a line that is not a record would stop them.
fn shares_records() -> bool {
    match (fstat(io::stdout()), fstat(io::stderr())) {
        (Ok(out), Ok(err)) => {
            (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
                && FileType::from_raw_mode(out.st_mode) != FileType::CharacterDevice
        }
        _ => false,
    }
}

fn finish(outcome: &Outcome, diagnostics: &Diagnostics) {
    diagnostics.fail(outcome.severity as u8);
    if let Some(error) = &outcome.output_error {
        diagnostics.write_error(error, SERIOUS);
    }
}
