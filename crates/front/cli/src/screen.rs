//! The terminal: a progress line that makes way for messages and output.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The terminal that the progress line shares with messages and output.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl Screen {
    /// Calls `write` while the progress line is hidden.
    pub fn without_progress<T>(&self, write: impl FnOnce() -> T) -> T {
        // The lock keeps the line from reappearing meanwhile.
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match &*bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Draws or redraws the progress line.
    pub(crate) fn draw(&self, text: String) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        bar.get_or_insert_with(new_bar).set_message(text);
    }

    /// Hides the line.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
