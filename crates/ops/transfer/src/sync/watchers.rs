//! Who is told what a synchronization does.

use super::options::Report;
use super::report::{Problem, Sink, Trouble};
use super::stats::{Counters, count};
use millstream_operation::activity::Activity;
use millstream_text::json::ErrorRecord;

/// A failure that has already been reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// The outcome of an operation that reports its own errors.
pub(super) type Done<T> = Result<T, Reported>;

/// What a synchronization reports to, and counts on.
#[derive(Clone, Copy)]
pub(super) struct Watchers<'a> {
    pub(super) sink: &'a dyn Sink,
    pub(super) activity: &'a Activity,
    pub(super) counters: &'a Counters,
}

impl Watchers<'_> {
    /// Counts and reports a problem.
    pub(super) fn problem(&self, report: Report, problem: &Problem<'_>) -> Reported {
        count(&self.counters.errors);
        let is_about_attributes =
            matches!(problem.trouble, Trouble::Times | Trouble::Mode | Trouble::Ownership | Trouble::Xattr);
        if !is_about_attributes {
            count(&self.counters.obstacles);
        }
        self.activity.add_error();
        self.sink.problem(problem);
        if report == Report::Json {
            let path = if problem.is_about_source() { problem.source } else { problem.destination };
            let errno = problem.errno.unwrap_or(problem.trouble.nearest_errno());
            let mut record = Vec::new();
            ErrorRecord { errno, operation: problem.trouble.operation(), path }.write(&mut record);
            self.sink.lines(&record);
        }
        Reported
    }
}
