//! Reports of finished actions, as lines or JSON records.

use millstream_system::locale::Locale;

use super::options::{Execution, Trace};
use millstream_text::json::Object;
use millstream_text::quote::{Colon, ControlCharacters, Quoter, QuotingStyle};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    File,
    Directory,
    Symlink,
    HardLink,
    Special,
}

impl Action {
    fn words(self) -> &'static str {
        match self {
            Action::File => "copy",
            Action::Directory => "make directory",
            Action::Symlink => "make symlink",
            Action::HardLink => "make link",
            Action::Special => "make special file",
        }
    }
}

/// The name of an action, or of one that is only reported.
fn in_words(words: &str, effect: Execution) -> Vec<u8> {
    match effect {
        Execution::Real => words.into(),
        Execution::DryRun => [b"would ", words.as_bytes()].concat(),
    }
}

/// One thing that was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) action: Action,
    pub(super) effect: Execution,
    pub(super) source: &'a [u8],
    pub(super) destination: &'a [u8],
    pub(super) backup: Option<&'a [u8]>,
    pub(super) bytes: Option<u64>,
}

fn quoted(name: &[u8], out: &mut Vec<u8>) {
    let style = QuotingStyle::ShellEscapeAlways;
    let quoter = Quoter { style, control: ControlCharacters::Show, locale: Locale::from_environment() };
    quoter.write(name, Colon::Plain, out);
}

impl Trace {
    /// Appends the report of a step.
    pub(super) fn step(self, step: &Step<'_>, out: &mut Vec<u8>) {
        match self {
            Trace::Nothing => {}
            Trace::Text => {
                quoted(step.source, out);
                out.extend_from_slice(b" -> ");
                quoted(step.destination, out);
                if let Some(backup) = step.backup {
                    out.extend_from_slice(b" (backup: ");
                    quoted(backup, out);
                    out.push(b')');
                }
                out.push(b'\n');
            }
            Trace::Json => {
                let mut object = Object::begin(out)
                    .string("action", &in_words(step.action.words(), step.effect))
                    .string("source", step.source)
                    .string("path", step.destination);
                if let Some(bytes) = step.bytes {
                    object = object.number("bytes", bytes.into());
                }
                if let Some(backup) = step.backup {
                    object = object.string("backup", backup);
                }
                object.end();
            }
        }
    }

    /// Appends the report of a directory of `--parents`.
    pub(super) fn parent(self, source: &[u8], destination: &[u8], effect: Execution, out: &mut Vec<u8>) {
        match self {
            Trace::Text => out.extend([source, b" -> ", destination, b"\n"].concat()),
            trace => {
                let action = Action::Directory;
                trace.step(&Step { action, effect, source, destination, backup: None, bytes: None }, out);
            }
        }
    }

    /// Appends that an existing file was removed.
    pub(super) fn removed(self, destination: &[u8], effect: Execution, out: &mut Vec<u8>) {
        match self {
            Trace::Nothing => {}
            Trace::Text => {
                out.extend_from_slice(b"removed ");
                quoted(destination, out);
                out.push(b'\n');
            }
            Trace::Json => {
                Object::begin(out)
                    .string("action", &in_words("remove", effect))
                    .string("path", destination)
                    .end();
            }
        }
    }

    /// Appends that a backup has been renamed back.
    pub(super) fn put_back(self, backup: &[u8], destination: &[u8], out: &mut Vec<u8>) {
        match self {
            Trace::Nothing => {}
            Trace::Text => {
                quoted(backup, out);
                out.extend_from_slice(b" -> ");
                quoted(destination, out);
                out.extend_from_slice(b" (unbackup)\n");
            }
            Trace::Json => {
                Object::begin(out)
                    .string("action", b"put back")
                    .string("source", backup)
                    .string("path", destination)
                    .end();
            }
        }
    }

    /// Appends that nothing had to be done.
    pub(super) fn skipped(self, source: &[u8], destination: &[u8], out: &mut Vec<u8>) {
        match self {
            Trace::Nothing => {}
            Trace::Text => {
                out.extend_from_slice(b"skipped ");
                quoted(destination, out);
                out.push(b'\n');
            }
            Trace::Json => {
                Object::begin(out)
                    .string("action", b"skip")
                    .string("source", source)
                    .string("path", destination)
                    .end();
            }
        }
    }
}
