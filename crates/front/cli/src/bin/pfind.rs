#![forbid(unsafe_code)]
//! `pfind`: searches for files, in parallel.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use millstream_cli::diagnostics::{Diagnostics, FAILURE};
use millstream_cli::mounted::{USE_PSYNC, mounted};
use millstream_cli::options::{self, Text};
use millstream_cli::pfind;
use millstream_cli::progress::{self, Progress, StdoutUse};
use millstream_cli::standard_output::StandardOutput;
use millstream_cli::startup::{restore_open_files, startup};
use millstream_inspect::find::{Find, Refusal, Reporter, Verbosity};
use millstream_posix::PosixVolume;

/// The output of `-D help`.
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
    let starts = find.starting_points().iter().map(|start| start.to_bytes());
    let Ok(volume) = mounted("pfind", starts, (FAILURE, USE_PSYNC), &diagnostics) else {
        return diagnostics.exit_code();
    };
    if find.runs_commands() {
        restore_open_files(startup.inherited_open_files);
    }
    // A progress line would overwrite a question.
    let progress = (!find.asks()).then(|| Progress::start(find.activity(), StdoutUse::Streams, &diagnostics));
    let findings = find.run(&volume);
    drop(progress);
    if find.verbosity() == Verbosity::Statistics {
        progress::report(find.activity(), findings.threads_peak, started, &diagnostics);
    }
    if findings.success { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) }
}

/// Prints the requested text instead of searching, or the error.
fn refuse(refusal: &Refusal, diagnostics: &Diagnostics) -> ExitCode {
    let write_text = |text| options::write_text(text, &pfind::reference(), diagnostics, FAILURE);
    match refusal {
        Refusal::Help => write_text(Text::Help),
        Refusal::Version => write_text(Text::Version),
        Refusal::DebugHelp => {
            if let Err(error) = StandardOutput.write_text(DEBUG_HELP.as_bytes()) {
                diagnostics.write_error(&error, FAILURE);
            }
        }
        Refusal::Usage(message) => diagnostics.error(FAILURE).bytes(message).send_with_hint(),
        Refusal::Mistake(lines) => {
            lines.iter().for_each(|line| diagnostics.error(FAILURE).bytes(line).send())
        }
    }
    diagnostics.exit_code()
}
