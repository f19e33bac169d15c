//! From a command line to the operands. `--help` and `--version` are answered here; the tool handles all other options.
//! `TOOL COMMAND --help` is about that command alone.

use std::ffi::OsString;

use super::{Command, Occurrence, Parser, Reference, Role, help, help_on, version};
use crate::diagnostics::{Diagnostics, Refused, UsageError};
use crate::standard_output::StandardOutput;

/// A text to print instead of working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The text of `--help`.
    Help,
    /// The text of `--version`.
    Version,
}

/// Passes the options, and mistakes among them, to `take` in order; returns the operands.
///
/// # Errors
/// If `take` refused an option, or a requested text has been written. `failure` is the exit code if it could not be
/// written.
pub fn take_options<I: Copy + PartialEq + 'static>(
    command: &'static Command<I>,
    arguments: impl IntoIterator<Item = OsString>,
    diagnostics: &Diagnostics,
    failure: u8,
    mut take: impl FnMut(Result<Occurrence<I>, UsageError>) -> Result<(), Refused>,
) -> Result<Vec<OsString>, Refused> {
    let mut parser = Parser::new(command, arguments);
    for option in parser.by_ref() {
        match option {
            Ok(Occurrence { id: Role::Text(text), .. }) => {
                let reference = Reference::from(command);
                match (text, parser.operands().first().and_then(|word| reference.command(word))) {
                    (Text::Help, Some(word)) => {
                        let program = diagnostics.program().to_string_lossy();
                        write(&help_on(word, &reference, &program), diagnostics, failure);
                    }
                    _ => write_text(text, &reference, diagnostics, failure),
                }
                return Err(Refused);
            }
            Ok(Occurrence { id: Role::Tool(id), value, spelling, word }) => {
                take(Ok(Occurrence { id, value, spelling, word }))?;
            }
            Err(error) => take(Err(error))?,
        }
    }
    Ok(parser.into_operands())
}

/// Writes a text instead of working.
pub fn write_text(text: Text, reference: &Reference, diagnostics: &Diagnostics, failure: u8) {
    let program = diagnostics.program().to_string_lossy();
    let text = match text {
        Text::Help => help(reference, &program),
        Text::Version => version(reference, &program),
    };
    write(&text, diagnostics, failure);
}

fn write(text: &str, diagnostics: &Diagnostics, failure: u8) {
    if let Err(error) = StandardOutput.write_text(text.as_bytes()) {
        diagnostics.write_error(&error, failure);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Id, SAMPLE};
    use super::*;

    #[test]
    fn options_end_where_one_is_refused() {
        let diagnostics = Diagnostics::new("pls");
        let mut taken = Vec::new();
        let mut take = |words: &[&str]| {
            let arguments = words.iter().map(OsString::from);
            let operands = take_options(&SAMPLE, arguments, &diagnostics, 1, |option| match option {
                Ok(option) => {
                    taken.push(option.id);
                    Ok(())
                }
                Err(_) => Err(Refused),
            });
            operands.ok()
        };
        assert_eq!(take(&["x", "-a", "y", "--size"]), Some(vec!["x".into(), "y".into()]));
        assert_eq!(take(&["-a", "--wrong", "-s"]), None);
        assert_eq!(taken, [Id::All, Id::Size, Id::All]);
    }
}
