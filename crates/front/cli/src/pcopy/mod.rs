//! `pcopy`: copies, as GNU `cp` makes them.

mod messages;
mod operands;
mod settings;
mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::Arc;

use millstream_operation::activity::Activity;
use millstream_posix::PosixVolume;
use millstream_system::process;
use millstream_transfer::copy::{Backup, Destination, Options, Removal, copy};
use millstream_vfs::Volume;

use crate::diagnostics::{Diagnostics, Refused};
use crate::mounted::{USE_PSYNC, mounted};
use crate::options::{Reference, take_options};
use crate::progress::{Progress, StdoutUse};
use crate::standard_output::Lines;
use crate::startup::{Startup, startup};
use messages::Output;
use settings::Settings;
use table::PCOPY;

/// The option table of `pcopy`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PCOPY)
}

/// Runs `pcopy` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, .. } = startup(PCOPY.name);
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(arguments, &diagnostics);
    diagnostics.exit_code()
}

fn prepare(arguments: Vec<OsString>, diagnostics: &Diagnostics) -> Result<(), Refused> {
    let mut settings = Settings::new(diagnostics);
    let operands = take_options(&PCOPY, arguments, diagnostics, 1, |option| match option {
        Ok(option) => settings.take(&option),
        Err(error) => Err(diagnostics.usage_error(&error, 1)),
    })?;
    let mut options = settings.finish()?;
    let given = operands.iter().map(|operand| operand.as_bytes()).chain(settings.target_directory.as_deref());
    let volume = mounted(PCOPY.name, given, (1, USE_PSYNC), diagnostics)?;
    let (sources, mut destination) = operands::operands(&volume, operands, &settings, diagnostics)?;
    if let Some(backup) = &options.backup
        && options.removal != Removal::Never
        && operands::is_own_backup(&volume, &sources, &destination)
    {
        destination = own_backup(&volume, backup, &destination);
        options.backup = None;
    }
    carry_out(&volume, &options, &sources, &destination, diagnostics);
    Ok(())
}

/// A file copied to itself with `-f` and a backup: the copy is the backup.
fn own_backup(volume: &PosixVolume, backup: &Backup, destination: &Destination) -> Destination {
    match destination {
        Destination::Exactly(path) => match backup.name(&volume.base(), path) {
            Ok(name) => Destination::Exactly(name),
            Err(_) => destination.clone(),
        },
        other => other.clone(),
    }
}

fn carry_out(
    volume: &PosixVolume,
    options: &Options,
    sources: &[std::ffi::CString],
    destination: &Destination,
    diagnostics: &Diagnostics,
) {
    if options.makes_temporaries() {
        let temporaries = options.temporaries.clone();
        // If that fails, temporary files stay, as after any other abrupt end.
        let _ = process::before_termination(move |end| {
            let _no_more = temporaries.remove_all();
            end();
        });
    }
    let activity = Arc::new(Activity::default());
    let progress = Progress::start(&activity, StdoutUse::WithoutProgress, diagnostics);
    let lines = Lines::new(progress.screen().clone());
    let output = Output { diagnostics, lines, removal: options.removal };
    let copied = copy(volume, sources, destination, options, &output, &activity);
    drop(progress);
    if let (Err(error), Destination::Into(directory) | Destination::IntoWithParents(directory)) =
        (copied, destination)
    {
        let message = diagnostics.error(1).text("target directory ").name(directory.to_bytes());
        message.errno(error.errno).send();
    }
    output.lines.finish(diagnostics, 1);
}
