//! Failure messages and their severity.

use std::sync::atomic::{AtomicU8, Ordering};

use millstream_system::locale::Locale;
use millstream_vfs::{Errno, errno_text};

use millstream_text::quote::{Colon, ControlCharacters, Quoter, QuotingStyle};

/// Severity of a failure; the worst one is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing failed.
    None = 0,
    /// Something below the operands, exit code 1.
    Minor = 1,
    /// An operand, exit code 2.
    Serious = 2,
}

/// Receives messages, without program name and newline, one at a time from any thread.
pub type Console<'a> = &'a (dyn Fn(&[u8]) + Sync);

/// The destination of failures.
pub struct Diagnostics<'a> {
    console: Console<'a>,
    quoter: Quoter,
    worst: AtomicU8,
}

impl std::fmt::Debug for Diagnostics<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diagnostics").field("worst", &self.worst).finish_non_exhaustive()
    }
}

impl<'a> Diagnostics<'a> {
    /// Messages go to `console`.
    pub fn new(console: Console<'a>, locale: &'static Locale) -> Self {
        let style = QuotingStyle::ShellEscapeAlways;
        let quoter = Quoter { style, control: ControlCharacters::Show, locale };
        Diagnostics { console, quoter, worst: AtomicU8::new(Severity::None as u8) }
    }

    /// Reports that `what` failed on `path`.
    pub fn failed(&self, what: &str, path: &[u8], errno: Errno, severity: Severity) {
        self.raise(severity);
        (self.console)(&self.message(what, path, errno));
    }

    /// The message that [`Diagnostics::failed`] makes.
    pub fn message(&self, what: &str, path: &[u8], errno: Errno) -> Vec<u8> {
        let mut message = format!("{what} ").into_bytes();
        self.quoter.write(path, Colon::Plain, &mut message);
        message.extend_from_slice(b": ");
        message.extend_from_slice(errno_text(errno).as_bytes());
        message
    }

    /// Reports a directory that is its own ancestor through a link.
    pub fn already_listed(&self, path: &[u8]) {
        self.raise(Severity::Serious);
        let mut message = Vec::new();
        Quoter { style: QuotingStyle::ShellEscape, ..self.quoter }.write(path, Colon::Special, &mut message);
        message.extend_from_slice(b": not listing already-listed directory");
        (self.console)(&message);
    }

    /// Makes the result at least this bad.
    pub fn raise(&self, severity: Severity) {
        self.worst.fetch_max(severity as u8, Ordering::Relaxed);
    }

    /// The worst failure so far.
    pub fn worst(&self) -> Severity {
        match self.worst.load(Ordering::Relaxed) {
            0 => Severity::None,
            1 => Severity::Minor,
            _ => Severity::Serious,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_failure_counts() {
        let messages = std::sync::Mutex::new(Vec::new());
        let console = |message: &[u8]| messages.lock().expect("no panic").push(message.to_vec());
        let diagnostics = Diagnostics::new(&console, Locale::from_environment());
        assert_eq!(diagnostics.worst(), Severity::None);
        diagnostics.failed("cannot access", b"it's", Errno::NOENT, Severity::Serious);
        diagnostics.failed("cannot open directory", b"a", Errno::ACCESS, Severity::Minor);
        assert_eq!(diagnostics.worst(), Severity::Serious);
        let messages = messages.lock().expect("no panic");
        assert_eq!(messages[0], b"cannot access \"it's\": No such file or directory");
        assert_eq!(messages[1], b"cannot open directory 'a': Permission denied");
    }
}
