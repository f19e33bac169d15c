//! `pchmod`: file modes, as GNU `chmod` changes them.

mod table;
mod wording;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use millstream_change::attributes::{Links, ModeChange, Recursion, Surprise};
use millstream_text::mode::Mode;
use millstream_walk::FollowPolicy;
use rustix::process::umask;

use crate::attributes::{self, Id, missing_operand, reference_file};
use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::options::{Reference, take_options};
use crate::startup::{Startup, startup};
use table::{ModeLetter, PCHMOD};
use wording::ModeWording;

/// The option table of `pchmod`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PCHMOD)
}

/// Runs `pchmod` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, .. } = startup(PCHMOD.name);
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(arguments, &diagnostics);
    diagnostics.exit_code()
}

#[derive(Debug, Default)]
struct Settings {
    shared: attributes::Settings,
    /// Words that looked like options but are modes.
    modes: Vec<Vec<u8>>,
}

fn prepare(arguments: Vec<OsString>, diagnostics: &Diagnostics) -> Result<(), Refused> {
    let mut settings = Settings::default();
    let operands = take_options(&PCHMOD, arguments, diagnostics, FAILURE, |option| {
        let option = option.map_err(|error| diagnostics.usage_error(&error, FAILURE))?;
        match option.id {
            Id::Shared(shared) => settings.shared.take(shared, option.value, diagnostics)?,
            Id::Own(ModeLetter) => settings.modes.push(option.word.into_vec()),
        }
        Ok(())
    })?;
    settings.work(operands, diagnostics)
}

impl Settings {
    fn work(self, operands: Vec<OsString>, diagnostics: &Diagnostics) -> Result<(), Refused> {
        let (change, operands) = self.change(operands, diagnostics)?;
        let (follow, links) = self.links(diagnostics)?;
        let options = self.shared.options(follow, links, diagnostics)?;
        attributes::run(operands, &change, &options, &self.shared, ModeWording, diagnostics)
    }

    /// Which links to traverse, and how to treat the others.
    fn links(&self, diagnostics: &Diagnostics) -> Result<(FollowPolicy, Links), Refused> {
        let given = self.shared.follow.unwrap_or(FollowPolicy::Operands);
        let (follow, below) = match self.shared.recursion {
            Recursion::Operands => (FollowPolicy::Operands, Links::PassOver),
            Recursion::Trees => (given, Links::Dereference),
        };
        match self.shared.dereference {
            // A link's own mode cannot be changed.
            Some(false) => Ok((given, Links::Leave)),
            Some(true) if follow == FollowPolicy::Never => {
                Err(attributes::Settings::refuse_dereference(diagnostics))
            }
            Some(true) => Ok((follow, below)),
            None => Ok((follow, Links::PassOver)),
        }
    }

    /// The mode, which is the first operand unless an option set it, and the files.
    fn change(
        &self,
        mut operands: Vec<OsString>,
        diagnostics: &Diagnostics,
    ) -> Result<(ModeChange, Vec<OsString>), Refused> {
        if self.shared.reference.is_some() && !self.modes.is_empty() {
            let message = "cannot combine mode and --reference options";
            diagnostics.error(FAILURE).text(message).send_with_hint();
            return Err(Refused);
        }
        let takes_operand = self.shared.reference.is_none() && self.modes.is_empty();
        if operands.len() < 1 + usize::from(takes_operand) {
            return Err(missing_operand(operands.last().map(|last| last.as_bytes()), diagnostics));
        }
        let mode = match &self.shared.reference {
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

/// The umask, which can only be read by setting it.
fn current_umask() -> u32 {
    let mask = umask(rustix::fs::Mode::empty());
    umask(mask);
    mask.as_raw_mode()
}
