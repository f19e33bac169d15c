//! `pchmod`: file modes, as GNU `chmod` changes them.

mod table;
mod wording;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use millstream_ops::attributes::{Detail, Execution, Links, ModeChange, Recursion, Surprise};
use millstream_ops::mode::Mode;
use millstream_walk::FollowPolicy;
use rustix::process::umask;

use crate::attributes::{
    Common, FAILURE, Format, Messages, Refused, Root, Text, missing_operand, reference_file,
    run as run_change, write_text,
};
use crate::diagnostics::Diagnostics;
use crate::options::{Occurrence, Parser, Reference};
use crate::startup::{Startup, parse_threads, startup};
use table::{Id, PCHMOD};
use wording::ModeWording;

/// What texts about `pchmod` are made from.
pub fn reference() -> Reference {
    Reference::from(&PCHMOD)
}

/// Runs `pchmod` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, .. } = startup(PCHMOD.name);
    // The outcome is in the exit code that the diagnostics remember.
    let _: Result<(), Refused> = prepare(Parser::new(&PCHMOD, arguments), &diagnostics);
    diagnostics.exit_code()
}

#[derive(Debug, Default)]
struct Settings {
    common: Common,
    /// Words that looked like options and are modes.
    modes: Vec<Vec<u8>>,
    reference: Option<Vec<u8>>,
}

fn prepare(mut parser: Parser<Id>, diagnostics: &Diagnostics) -> Result<(), Refused> {
    let mut settings = Settings::default();
    while let Some(option) = parser.next() {
        let option = option.map_err(|error| {
            diagnostics.usage_error(&error, FAILURE);
            Refused
        })?;
        match option.id {
            Id::Help => return write_text(Text::Help, &reference(), diagnostics),
            Id::Version => return write_text(Text::Version, &reference(), diagnostics),
            Id::Mode => settings.modes.push(parser.word().as_bytes().to_vec()),
            _ => settings.take(&option, diagnostics)?,
        }
    }
    settings.work(parser.into_operands(), diagnostics)
}

impl Settings {
    fn take(&mut self, option: &Occurrence<Id>, diagnostics: &Diagnostics) -> Result<(), Refused> {
        let common = &mut self.common;
        match option.id {
            Id::Changes => common.detail = Detail::Changes,
            Id::Verbose => common.detail = Detail::Everything,
            Id::Silent => common.messages = Messages::Few,
            Id::NoPreserveRoot => common.root = Root::Ordinary,
            Id::PreserveRoot => common.root = Root::Preserved,
            Id::Reference => self.reference = Some(option.bytes().to_vec()),
            Id::Recursive => common.recursion = Recursion::Trees,
            Id::DryRun => common.execution = Execution::DryRun,
            Id::Json => common.format = Format::Json,
            Id::Threads => {
                common.threads = parse_threads(option.bytes(), diagnostics).map_err(|error| {
                    diagnostics.usage_error(&error, FAILURE);
                    Refused
                })?;
            }
            Id::Mode | Id::Help | Id::Version => {}
        }
        Ok(())
    }

    fn work(self, operands: Vec<OsString>, diagnostics: &Diagnostics) -> Result<(), Refused> {
        let (change, operands) = self.change(operands, diagnostics)?;
        let options = self.common.options(FollowPolicy::Operands, Links::PassOver, diagnostics)?;
        run_change(operands, &change, &options, &self.common, ModeWording, diagnostics);
        Ok(())
    }

    /// The mode, which is the first operand unless an option told it, and the files.
    fn change(
        &self,
        mut operands: Vec<OsString>,
        diagnostics: &Diagnostics,
    ) -> Result<(ModeChange, Vec<OsString>), Refused> {
        if self.reference.is_some() && !self.modes.is_empty() {
            let message = "cannot combine mode and --reference options";
            diagnostics.error(FAILURE).text(message).send_with_hint();
            return Err(Refused);
        }
        let takes_operand = self.reference.is_none() && self.modes.is_empty();
        if operands.len() < 1 + usize::from(takes_operand) {
            return Err(missing_operand(operands.last().map(|last| last.as_bytes()), diagnostics));
        }
        let mode = match &self.reference {
            Some(file) => Mode::exactly(reference_file(file, diagnostics)?.mode),
            None => {
                let text = match takes_operand {
                    true => operands.remove(0).as_bytes().to_vec(),
                    false => self.modes.join(&b','),
                };
                Mode::parse(&text).ok_or_else(|| {
                    diagnostics.error(FAILURE).text("invalid mode: ").quoted(&text).send_with_hint();
                    Refused
                })?
            }
        };
        let surprise = if self.modes.is_empty() { Surprise::Untold } else { Surprise::Told };
        Ok((ModeChange { mode, umask: current_umask(), surprise }, operands))
    }
}

/// The umask, which can only be asked for by setting it.
fn current_umask() -> u32 {
    let mask = umask(rustix::fs::Mode::empty());
    umask(mask);
    mask.as_raw_mode()
}
