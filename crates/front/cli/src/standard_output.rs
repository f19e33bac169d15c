//! Standard output without the buffering of Rust's library.
//!
//! [`std::io::Stdout`] splits each write at its last newline, and treats a closed descriptor as a successful write.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use millstream_system::process::check_as_on_close;

use crate::diagnostics::Diagnostics;
use crate::screen::Screen;

/// Unbuffered standard output; a write fails if it is closed. [`flush`](Write::flush), at the end, reports what closing
/// it would.
#[derive(Clone, Copy, Debug)]
pub struct StandardOutput;

impl StandardOutput {
    /// Writes `bytes` completely.
    ///
    /// # Errors
    /// Those of writing and of closing.
    pub fn write_text(mut self, text: &[u8]) -> io::Result<()> {
        self.write_all(text)?;
        self.flush()
    }
}

impl io::Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        check_as_on_close(io::stdout())
    }
}

/// Writes lines to standard output while a progress line may be shown.
///
/// A failed write does not stop the rest of the work: it is reported once, at the end.
#[derive(Debug)]
pub(crate) struct Lines {
    screen: Screen,
    failure: Mutex<Option<io::Error>>,
}

impl Lines {
    pub(crate) fn new(screen: Screen) -> Self {
        Lines { screen, failure: Mutex::default() }
    }

    /// Writes whole lines, unless writing has failed before.
    pub(crate) fn write(&self, lines: &[u8]) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = self.screen.without_progress(|| StandardOutput.write_all(lines)).err();
        }
    }

    pub(crate) fn finish(self, diagnostics: &Diagnostics, exit_code: u8) {
        let failure = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failure.or_else(|| StandardOutput.flush().err()) {
            diagnostics.write_error(&error, exit_code);
        }
    }
}
