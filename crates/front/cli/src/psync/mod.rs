//! `psync`: synchronizes trees, as rsync does.

mod buckets;
mod messages;
mod operands;
mod rate;
mod settings;
mod spark;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use millstream_operation::activity::Activity;
use millstream_posix::PosixVolume;
use millstream_system::locale::Encoding;
use millstream_system::process;
use millstream_transfer::sync::{Destination, Options, Report, sync};
use millstream_vfs::{Errno, Volume};

use crate::diagnostics::{Diagnostics, Refused};
use crate::options::{Reference, take_options};
use crate::progress::{Progress, StdoutUse};
use crate::standard_output::Lines;
use crate::startup::{Startup, startup};
use buckets::Remarks;
use messages::{Output, summary};
use settings::Settings;
use table::PSYNC;

/// A wrong option or argument.
const USAGE: u8 = 1;
/// The destination's directory does not exist, or is not a directory.
const NO_PLACE: u8 = 3;
/// The destination directory, or a file that an option names, cannot be used.
const NO_FILE: u8 = 11;
/// Something failed.
const PARTIAL: u8 = 23;
/// Something vanished or changed.
const MOVING: u8 = 24;
/// There was more to delete than allowed.
const BOUND: u8 = 25;

/// The option table of `psync`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PSYNC)
}

/// Runs `psync` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, locale, .. } = startup(PSYNC.name);
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(arguments, locale.encoding(), &diagnostics);
    diagnostics.exit_code()
}

fn prepare(arguments: Vec<OsString>, encoding: Encoding, diagnostics: &Diagnostics) -> Result<(), Refused> {
    let mut settings = Settings::new(encoding, diagnostics);
    let mut request = spark::Request::default();
    let operands = take_options(&PSYNC, arguments, diagnostics, USAGE, |option| match option {
        Ok(option) => {
            request.note(&option);
            settings.take(&option)
        }
        Err(error) => Err(diagnostics.usage_error(&error, USAGE)),
    })?;
    let shows_stats = settings.shows_stats();
    let is_for_spark = request.is_wanted(&operands, diagnostics)?;
    let mut options = settings.finish(!is_for_spark)?;
    if is_for_spark {
        return Err(request.submit(&operands, &options, diagnostics));
    }
    let remarks = Remarks::default();
    let output = (diagnostics, shows_stats, &remarks);
    if !buckets::has_bucket(&operands) {
        return carry_out(&PosixVolume, operands, &options, output);
    }
    buckets::adapt(&mut options, &operands, diagnostics)?;
    let storage = buckets::storage(&operands, &remarks, diagnostics)?;
    let done = carry_out(&storage, operands, &options, output);
    remarks.write(diagnostics);
    done
}

fn carry_out<V: Volume>(
    volume: &V,
    operands: Vec<OsString>,
    options: &Options,
    (diagnostics, shows_stats, remarks): (&Diagnostics, bool, &Remarks),
) -> Result<(), Refused> {
    let (sources, destination) = operands::operands(&volume.base(), operands, options, diagnostics)?;
    let temporaries = options.temporaries.clone();
    // If that fails, temporary files stay until the next run, as after any other abrupt end.
    let _ = process::before_termination(move |end| {
        let _no_more = temporaries.remove_all();
        end();
    });
    let activity = Arc::new(Activity::default());
    let stdout =
        if options.report == Report::Nothing { StdoutUse::WithoutProgress } else { StdoutUse::Streams };
    let progress = Progress::start(&activity, stdout, diagnostics);
    let lines = Lines::new(progress.screen().clone());
    let (report, high_bytes) = (options.report, options.high_bytes);
    let output = Output { diagnostics, lines, report, high_bytes, remarks };
    let synced = sync(volume, &sources, &destination, options, &output, &activity);
    drop(progress);
    match synced {
        Ok(outcome) => {
            let stats = outcome.stats;
            if shows_stats {
                output.lines.write(&summary(&stats, options.report));
            }
            let code = match stats {
                _ if stats.unmade > 0 => NO_FILE,
                _ if stats.errors > 0 => PARTIAL,
                _ if stats.undeleted > 0 => BOUND,
                _ if stats.moving > 0 => MOVING,
                _ => 0,
            };
            diagnostics.fail(code);
        }
        Err(error) => {
            remarks.write(diagnostics);
            let code = match destination {
                Destination::Into(_) if error.errno != Errno::NOTDIR => NO_FILE,
                _ => NO_PLACE,
            };
            let message = diagnostics.error(code).text("cannot use the destination ");
            let message = message.name(operands::path_of(&destination)).errno(error.errno);
            let advice = if error.errno == Errno::NOENT { "; create its parent directory first" } else { "" };
            message.text(advice).send();
        }
    }
    output.lines.finish(diagnostics, PARTIAL);
    Ok(())
}
