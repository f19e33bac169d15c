//! `pcopy`: copies, as GNU `cp` makes them.

mod messages;
mod operands;
mod settings;
mod table;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use millstream_ops::activity::Activity;
use millstream_ops::copy::{Backup, Destination, Options, Placement, Removal, copy};
use millstream_vfs::posix::process;
use millstream_vfs::{PosixVolume, Volume};

use crate::diagnostics::Diagnostics;
use crate::options::{Parser, Reference, help, version};
use crate::progress::{Progress, StdoutUse};
use crate::standard_output::StandardOutput;
use crate::startup::{Startup, startup};
use messages::Output;
use settings::{Refused, Settings};
use table::{Id, PCOPY};

/// What texts about `pcopy` are made from.
pub fn reference() -> Reference {
    Reference::from(&PCOPY)
}

/// Runs `pcopy` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, .. } = startup(PCOPY.name);
    let mut parser = Parser::new(&PCOPY, arguments);
    let mut settings = Settings::new(&diagnostics);
    for option in parser.by_ref() {
        let taken = match option {
            Ok(option) if matches!(option.id, Id::Help | Id::Version) => {
                write_text(option.id, &diagnostics);
                return diagnostics.exit_code();
            }
            Ok(option) => settings.take(&option),
            Err(error) => {
                diagnostics.usage_error(&error, 1);
                Err(Refused)
            }
        };
        if taken.is_err() {
            return diagnostics.exit_code();
        }
    }
    match work(settings, parser, &diagnostics) {
        Ok(()) | Err(Refused) => diagnostics.exit_code(),
    }
}

fn write_text(which: Id, diagnostics: &Diagnostics) {
    let program = diagnostics.program().to_string_lossy();
    let text = match which {
        Id::Version => version(&reference(), &program),
        _ => help(&reference(), &program),
    };
    if let Err(error) = StandardOutput.write_all(text.as_bytes()) {
        diagnostics.error(1).text("write error").cause(&error).send();
    }
}

fn work(mut settings: Settings<'_>, parser: Parser<Id>, diagnostics: &Diagnostics) -> Result<(), Refused> {
    let mut options = settings.finish()?;
    let (sources, mut destination) = operands::operands(parser.into_operands(), &settings, diagnostics)?;
    if let Some(backup) = &options.backup
        && options.removal != Removal::Never
        && operands::is_own_backup(&sources, &destination)
    {
        destination = own_backup(backup, &destination);
        options.backup = None;
    }
    carry_out(&options, &sources, &destination, diagnostics);
    Ok(())
}

/// A file copied to itself with `-f` and a backup: the copy is the backup.
fn own_backup(backup: &Backup, destination: &Destination) -> Destination {
    match destination {
        Destination::Exactly(path) => match backup.name(&PosixVolume.base(), path) {
            Ok(name) => Destination::Exactly(name),
            Err(_) => destination.clone(),
        },
        other => other.clone(),
    }
}

fn carry_out(
    options: &Options,
    sources: &[std::ffi::CString],
    destination: &Destination,
    diagnostics: &Diagnostics,
) {
    if options.placement == Placement::Atomic {
        let temporaries = options.temporaries.clone();
        // Without it temporary files stay, as after any other end.
        let _ = process::before_termination(move |end| {
            let _no_more = temporaries.remove_all();
            end();
        });
    }
    let activity = Arc::new(Activity::default());
    let progress = Progress::start(&activity, StdoutUse::WithoutProgress, diagnostics);
    let output = Output { diagnostics, screen: progress.screen().clone(), removal: options.removal };
    let copied = copy(&PosixVolume, sources, destination, options, &output, &activity);
    drop(progress);
    if let (Err(error), Destination::Into(directory) | Destination::IntoWithParents(directory)) =
        (copied, destination)
    {
        let message = diagnostics.error(1).text("target directory ").name(directory.to_bytes());
        message.errno(error.errno).send();
    }
}
