#![forbid(unsafe_code)]
//! `pfind`: searches for files, in parallel.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use millstream_cli::diagnostics::Diagnostics;
use millstream_cli::progress::{self, Progress, StdoutUse};
use millstream_cli::standard_output::StandardOutput;
use millstream_cli::startup::{restore_open_files, startup};
use millstream_cli::{options, pfind};
use millstream_ops::find::{Find, Refusal, Reporter, Verbosity};
use millstream_vfs::PosixVolume;

const FAILURE: u8 = 1;

/// What `-D help` prints.
const DEBUG_HELP: &str = "Valid arguments for -D:
exec, opt, rates, search, stat, time, tree, all, help
They are accepted for compatibility and have no effect.
";

struct Messages(Arc<Diagnostics>);

impl Reporter for Messages {
    fn report(&self, message: &[u8]) {
        self.0.warning().bytes(message).send();
    }
}

fn main() -> ExitCode {
    let started = Instant::now();
    let startup = startup("pfind");
    let diagnostics = Arc::new(startup.diagnostics);
    let reporter = Arc::new(Messages(Arc::clone(&diagnostics)));
    let find = match Find::parse(startup.arguments, &PosixVolume, startup.locale, reporter) {
        Ok(find) => find,
        Err(refusal) => return refuse(&refusal, &diagnostics),
    };
    if find.runs_commands() {
        restore_open_files(startup.inherited_open_files);
    }
    let progress = Progress::start(find.activity(), StdoutUse::Streams, &diagnostics);
    let findings = find.run(&PosixVolume);
    drop(progress);
    if find.verbosity() == Verbosity::Statistics {
        progress::report(find.activity(), findings.threads_peak, started, &diagnostics);
    }
    if findings.success { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) }
}

/// Prints what was asked for in place of a search, or what is wrong.
fn refuse(refusal: &Refusal, diagnostics: &Diagnostics) -> ExitCode {
    let program = diagnostics.program().to_string_lossy();
    let text = match refusal {
        Refusal::Help => options::help(&pfind::reference(), &program),
        Refusal::Version => options::version(&pfind::reference(), &program),
        Refusal::DebugHelp => DEBUG_HELP.to_owned(),
        Refusal::Usage(message) => {
            diagnostics.warning().bytes(message).send_with_hint();
            return ExitCode::from(FAILURE);
        }
        Refusal::Mistake(lines) => {
            lines.iter().for_each(|line| diagnostics.warning().bytes(line).send());
            return ExitCode::from(FAILURE);
        }
    };
    match StandardOutput.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            diagnostics.warning().text("write error").cause(&error).send();
            ExitCode::from(FAILURE)
        }
    }
}
