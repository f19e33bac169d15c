//! The progress line, and the report of `--verbose`.
//!
//! The line is drawn on standard error, if that is a terminal, once the work has taken a second. If standard output
//! goes to a terminal as well, the two would mix: a tool that writes its results at the end hides the line for that
//! ([`Screen::without_progress`]); a tool that streams them has no line, as the output itself shows progress.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use millstream_operation::activity::{Activity, Share};

use crate::diagnostics::Diagnostics;
use crate::screen::Screen;

/// Shorter work shows no line.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

/// When a tool writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdoutUse {
    /// All the time.
    Streams,
    /// Now and then, within [`Screen::without_progress`].
    WithoutProgress,
}

/// The progress line of a piece of work; dropping it removes the line.
#[derive(Debug)]
pub struct Progress {
    screen: Screen,
    drawer: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts to watch `activity`.
    pub fn start(activity: &Arc<Activity>, stdout: StdoutUse, diagnostics: &Diagnostics) -> Self {
        let screen = Screen::default();
        let visible = io::stderr().is_terminal()
            && (stdout == StdoutUse::WithoutProgress || !io::stdout().is_terminal());
        let drawer = visible.then(|| {
            activity.watch();
            diagnostics.share_screen(screen.clone());
            let (stop, stopped) = mpsc::channel();
            let (screen, activity) = (screen.clone(), Arc::clone(activity));
            let drawer = thread::spawn(move || {
                let mut wait = PATIENCE;
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    screen.draw(line(&activity));
                    wait = REDRAW;
                }
                screen.clear();
            });
            (stop, drawer)
        });
        Progress { screen, drawer }
    }

    /// The terminal, for writers to standard output.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, drawer)) = self.drawer.take() {
            drop(stop);
            // A panic of the drawer leaves a line on the screen, and must not cause another panic.
            let _ = drawer.join();
        }
    }
}

/// `62%, 9 s left, 12,345 of 20,000 entries (823/s), 12 directories, 3 errors, 2 threads`; without the first two as
/// long as there may be more entries than have been found.
fn line(activity: &Activity) -> String {
    let count = |counter: &AtomicU64, noun| counted(counter.load(Ordering::Relaxed), noun, grouped);
    let seconds = activity.elapsed().as_secs_f64().max(0.001);
    let entries = activity.entries.load(Ordering::Relaxed);
    let per_second = grouped((entries as f64 / seconds) as u64);
    let mut parts = Vec::new();
    if let Some(total) = activity.total() {
        parts.extend(left(&[total, activity.data()], seconds));
    }
    let found = match (activity.total(), activity.found()) {
        (Some(Share { done, total }), _) if done < total => {
            format!("{} of {}", grouped(done), counted(total, ENTRIES, grouped))
        }
        (None, Some(Share { done, total })) if done < total => {
            format!("{} of {} found", counted(done, ENTRIES, grouped), grouped(total))
        }
        _ => counted(entries, ENTRIES, grouped),
    };
    parts.extend([format!("{found} ({per_second}/s)"), count(&activity.directories, DIRECTORIES)]);
    let bytes = activity.bytes.load(Ordering::Relaxed);
    if bytes > 0 {
        let per_second = (bytes as f64 / seconds) as u64;
        parts.push(format!("{} MB ({} MB/s)", grouped(bytes / 1_000_000), grouped(per_second / 1_000_000)));
    }
    if activity.errors.load(Ordering::Relaxed) > 0 {
        parts.push(count(&activity.errors, ERRORS));
    }
    parts.push(count(&activity.threads, THREADS));
    parts.join(", ")
}

/// Percent done and time left, at the mean rate since the start, of the slowest of several counts.
fn left(shares: &[Share], seconds: f64) -> Vec<String> {
    let slowest = shares.iter().map(|share| share.fraction()).fold(1.0, f64::min);
    let mut parts = vec![format!("{}%", (slowest * 100.0) as u64)];
    if slowest > 0.0 && slowest < 1.0 {
        parts.push(format!("{} left", rounded((seconds / slowest - seconds).ceil() as u64)));
    }
    parts
}

/// `9 s`, `2 min 5 s`, `3 h 20 min`.
fn rounded(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{} h {minutes} min", grouped(hours)),
    }
}

/// A noun for one, and for several.
type Noun = [&'static str; 2];

const ENTRIES: Noun = ["entry", "entries"];
const DIRECTORIES: Noun = ["directory", "directories"];
const ERRORS: Noun = ["error", "errors"];
const THREADS: Noun = ["thread", "threads"];

fn counted(number: u64, [one, several]: Noun, digits: impl Fn(u64) -> String) -> String {
    format!("{} {}", digits(number), if number == 1 { one } else { several })
}

/// A number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes the report of `--verbose`.
pub fn report(activity: &Activity, threads_peak: usize, started: Instant, diagnostics: &Diagnostics) {
    let count = |number, noun| counted(number, noun, |number| number.to_string());
    let text = [
        count(activity.entries.load(Ordering::Relaxed), ENTRIES),
        count(activity.directories.load(Ordering::Relaxed), DIRECTORIES),
        count(activity.errors.load(Ordering::Relaxed), ERRORS),
        count(threads_peak as u64, THREADS),
        format!("{:.3} seconds", started.elapsed().as_secs_f64()),
    ];
    diagnostics.warning().text(&text.join(", ")).send();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_is_known() {
        let activity = Activity::default();
        activity.entries.store(1_234_567, Ordering::Relaxed);
        activity.directories.store(89, Ordering::Relaxed);
        activity.threads.store(2, Ordering::Relaxed);
        let text = line(&activity);
        assert!(text.starts_with("1,234,567 entries ("), "{text}");
        assert!(text.ends_with("/s), 89 directories, 2 threads"), "{text}");
        activity.bytes.store(5_678_901_234, Ordering::Relaxed);
        assert!(line(&activity).contains("89 directories, 5,678 MB ("), "{}", line(&activity));
        activity.bytes.store(0, Ordering::Relaxed);
        activity.errors.store(1000, Ordering::Relaxed);
        assert!(line(&activity).ends_with("/s), 89 directories, 1,000 errors, 2 threads"));
    }

    #[test]
    fn the_time_left_is_shown_once_the_total_is_known() {
        let share = |done, total| Share { done, total };
        assert_eq!(left(&[share(1, 4), share(0, 0)], 10.0), ["25%", "30 s left"]);
        assert_eq!(
            left(&[share(4, 4), share(1, 10)], 10.0),
            ["10%", "1 min 30 s left"],
            "the data lags behind"
        );
        assert_eq!(left(&[share(3, 3), share(5, 5)], 1.0), ["100%"]);
        assert_eq!(left(&[share(0, 3)], 1.0), ["0%"], "no rate yet");
        assert_eq!(left(&[share(1, 1001)], 12.0), ["0%", "3 h 20 min left"]);
        let activity = Activity::default();
        activity.entries.store(5, Ordering::Relaxed);
        assert!(line(&activity).starts_with("5 entries ("), "nothing is known that nobody counts");
        activity.watch();
        let census = activity.census().expect("watched");
        census.expect(9);
        assert!(line(&activity).starts_with("5 entries of 9 found ("), "{}", line(&activity));
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(0, ENTRIES, grouped), "0 entries");
        assert_eq!(counted(1, ENTRIES, grouped), "1 entry");
        assert_eq!(counted(1001, ENTRIES, grouped), "1,001 entries");
    }

    #[test]
    fn writing_without_progress_writes() {
        let screen = Screen::default();
        assert_eq!(screen.without_progress(|| 5), 5);
    }
}
