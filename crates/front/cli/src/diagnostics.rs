//! Messages on standard error, and the exit code that results from them.
//!
//! A message is assembled in memory and written with one `write(2)`. Messages of several threads, or of several
//! processes on one terminal, therefore do not mix. A message starts with the name by which the program was called.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use millstream_system::locale::Locale;
use millstream_text::quote::{Colon, ControlCharacters, Quoter, QuotingStyle};
use millstream_vfs::{Errno, errno_text};

use crate::screen::Screen;

/// The exit code of every failure, in tools that do not distinguish failures.
pub const FAILURE: u8 = 1;

/// The messages and the exit code of a program.
#[derive(Debug)]
pub struct Diagnostics {
    program: OsString,
    exit_code: AtomicU8,
    screen: OnceLock<Screen>,
}

impl Diagnostics {
    /// For a program called by `argv0`; only the last component is kept.
    pub fn new(argv0: impl AsRef<OsStr>) -> Self {
        let argv0 = argv0.as_ref();
        let program = Path::new(argv0).file_name().unwrap_or(argv0).to_owned();
        Diagnostics { program, exit_code: AtomicU8::new(0), screen: OnceLock::new() }
    }

    /// The name the program was called by, without directories.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Whether the program was called by the name of the GNU tool and must behave exactly like it.
    pub fn is_called(&self, gnu_name: &str) -> bool {
        self.program == gnu_name
    }

    /// Makes messages clear the progress line while they are written.
    pub fn share_screen(&self, screen: Screen) {
        // Only the first one counts; there is one progress line.
        let _ = self.screen.set(screen);
    }

    /// Starts a message about a failure: the exit code will be at least `exit_code`.
    pub fn error(&self, exit_code: u8) -> Message<'_> {
        self.fail(exit_code);
        self.warning()
    }

    /// Starts a message that leaves the exit code alone.
    pub fn warning(&self) -> Message<'_> {
        let mut text = self.program.as_bytes().to_vec();
        text.extend_from_slice(b": ");
        Message { diagnostics: self, text }
    }

    /// Writes GNU's message about a directory that is mounted inside itself, which leaves the exit code alone.
    pub fn cycle(&self, path: &[u8]) -> Message<'_> {
        let message = self.warning().text("WARNING: Circular directory structure.\n");
        let message = message.text("This almost certainly means that you have a corrupted file system.\n");
        let message = message.text("NOTIFY YOUR SYSTEM MANAGER.\n");
        let message = message.text("The following directory is part of the cycle:\n  ");
        message.name_before_colon(path).text("\n")
    }

    /// Makes the exit code at least `exit_code`.
    pub fn fail(&self, exit_code: u8) {
        self.exit_code.fetch_max(exit_code, Ordering::Relaxed);
    }

    /// The largest exit code of all failures, 0 if there was none.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_code.load(Ordering::Relaxed))
    }

    /// Reports a mistake on the command line, with the hint at `--help`.
    pub fn usage_error(&self, error: &UsageError, exit_code: u8) -> Refused {
        self.error(exit_code).bytes(error.message()).send_with_hint();
        Refused
    }

    /// Reports that standard output could not be written.
    pub fn write_error(&self, error: &io::Error, exit_code: u8) {
        self.error(exit_code).text("write error").cause(error).send();
    }

    /// Writes only the hint at `--help`.
    pub fn usage_hint(&self, exit_code: u8) {
        self.fail(exit_code);
        self.write(&self.hint());
    }

    /// `name` in the locale's quotes, as the GNU tools quote arguments in messages.
    pub fn quoted(&self, name: &[u8]) -> Vec<u8> {
        quoted(QuotingStyle::Locale, Colon::Plain, name)
    }

    /// A file name in shell quotes, always quoted, as in messages.
    pub fn quoted_name(&self, name: &[u8]) -> Vec<u8> {
        quoted(QuotingStyle::ShellEscapeAlways, Colon::Plain, name)
    }

    fn hint(&self) -> Vec<u8> {
        [b"Try '", self.program.as_bytes(), b" --help' for more information.\n"].concat()
    }

    fn write(&self, text: &[u8]) {
        // If standard error is closed, the message is lost.
        self.with_screen(|| drop(io::stderr().write_all(text)));
    }

    fn with_screen<T>(&self, speak: impl FnOnce() -> T) -> T {
        match self.screen.get() {
            Some(screen) => screen.without_progress(speak),
            None => speak(),
        }
    }
}

fn quoted(style: QuotingStyle, colon: Colon, name: &[u8]) -> Vec<u8> {
    let quoter = Quoter { style, control: ControlCharacters::Show, locale: Locale::from_environment() };
    let mut text = Vec::with_capacity(name.len() + 8);
    quoter.write(name, colon, &mut text);
    text
}

/// The text of an error, without the number that Rust adds.
pub fn error_text(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(errno) => errno_text(errno),
        None => error.to_string(),
    }
}

/// A message under construction.
#[derive(Debug)]
#[must_use = "a message does nothing until it is sent"]
pub struct Message<'a> {
    diagnostics: &'a Diagnostics,
    text: Vec<u8>,
}

impl Message<'_> {
    /// Adds text.
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds bytes as they are.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.text.extend_from_slice(bytes);
        self
    }

    /// Adds a file name in shell quotes, always quoted: `'a b'`, `'a'`.
    pub fn name(self, name: &[u8]) -> Self {
        let quoted = self.diagnostics.quoted_name(name);
        self.bytes(&quoted)
    }

    /// Adds a file name before a colon, quoted only if it needs to be.
    pub fn name_before_colon(self, name: &[u8]) -> Self {
        self.bytes(&quoted(QuotingStyle::ShellEscape, Colon::Special, name))
    }

    /// Adds a file name, in shell quotes if it needs any.
    pub fn shell_word(self, name: &[u8]) -> Self {
        self.bytes(&quoted(QuotingStyle::ShellEscape, Colon::Plain, name))
    }

    /// Adds an argument in the locale's quotes.
    pub fn quoted(self, argument: &[u8]) -> Self {
        self.bytes(&quoted(QuotingStyle::Locale, Colon::Plain, argument))
    }

    /// Adds a colon and the text of an error number.
    pub fn errno(self, errno: Errno) -> Self {
        self.text(": ").text(&errno_text(errno))
    }

    /// Adds a colon and the text of an error.
    pub fn cause(self, error: &io::Error) -> Self {
        self.text(": ").text(&error_text(error))
    }

    /// Writes the message.
    pub fn send(mut self) {
        self.text.push(b'\n');
        self.diagnostics.write(&self.text);
    }

    /// Writes the message as it is, without a newline, and reads an answer from standard input; returns whether it is
    /// yes. No answer means no.
    pub fn ask(self) -> bool {
        self.diagnostics.with_screen(|| {
            // If standard error is closed, nobody sees the question; the answer counts all the same.
            drop(io::stderr().write_all(&self.text));
            let mut answer = Vec::new();
            let read = io::stdin().lock().read_until(b'\n', &mut answer);
            answer.truncate(answer.iter().position(|&b| b == 0 || b == b'\n').unwrap_or(answer.len()));
            read.is_ok()
                && CString::new(answer).is_ok_and(|answer| Locale::from_environment().is_affirmative(&answer))
        })
    }

    /// Writes the message and the hint at `--help`.
    pub fn send_with_hint(mut self) {
        self.text.push(b'\n');
        self.text.extend(self.diagnostics.hint());
        self.diagnostics.write(&self.text);
    }
}

/// The work does not start: an error has been reported, or a text has been written instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// A mistake on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    kind: UsageErrorKind,
    message: Vec<u8>,
}

/// The kind of mistake; some tools have different exit codes for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageErrorKind {
    /// An option: unknown, ambiguous, without its argument.
    Option,
    /// The argument of an option.
    Argument,
}

impl UsageError {
    /// A mistake in an option.
    pub fn option(message: Vec<u8>) -> Self {
        UsageError { kind: UsageErrorKind::Option, message }
    }

    /// A mistake in the argument of an option.
    pub fn argument(message: Vec<u8>) -> Self {
        UsageError { kind: UsageErrorKind::Argument, message }
    }

    /// The kind of mistake.
    pub fn kind(&self) -> UsageErrorKind {
        self.kind
    }

    /// The message after the name of the program.
    pub fn message(&self) -> &[u8] {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_worded_as_gnu_does() {
        let diagnostics = Diagnostics::new("/usr/bin/du");
        let text = diagnostics.error(1).text("cannot access ").name(b"a b").errno(Errno::NOENT).text;
        assert_eq!(text, b"du: cannot access 'a b': No such file or directory");
        let text = diagnostics.warning().name_before_colon(b"a:b").errno(Errno::ACCESS).text;
        assert_eq!(text, b"du: 'a:b': Permission denied");
        let text = diagnostics.warning().name_before_colon(b"plain").errno(Errno::IO).text;
        assert_eq!(text, b"du: plain: Input/output error");
    }

    #[test]
    fn exit_code_remembers_the_worst() {
        let diagnostics = Diagnostics::new("ls");
        let code = |d: &Diagnostics| d.exit_code.load(Ordering::Relaxed);
        assert_eq!(code(&diagnostics), 0);
        diagnostics.fail(2);
        diagnostics.fail(1);
        assert_eq!(code(&diagnostics), 2);
    }
}
