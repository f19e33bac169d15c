//! Who is told what a synchronization does.

use super::options::{Options, Report};
use super::report::{Problem, Sink, Trouble};
use super::stats::{Counters, count};
use crate::transfer::report::Reported;
use millstream_operation::activity::Activity;

/// What a synchronization reports to, and counts on.
#[derive(Clone, Copy)]
pub(super) struct Watchers<'a> {
    pub(super) options: &'a Options,
    pub(super) sink: &'a dyn Sink,
    pub(super) activity: &'a Activity,
    pub(super) counters: &'a Counters,
}

impl Watchers<'_> {
    /// Counts and reports a problem.
    pub(super) fn problem(&self, problem: &Problem<'_>) -> Reported {
        count(&self.counters.errors);
        let is_about_attributes =
            matches!(problem.trouble, Trouble::Times | Trouble::Mode | Trouble::Ownership | Trouble::Xattr);
        if !is_about_attributes {
            count(&self.counters.obstacles);
        }
        self.activity.add_error();
        self.sink.problem(problem);
        if self.options.report == Report::Json {
            let mut record = Vec::new();
            problem.write_record(&mut record);
            self.sink.lines(&record);
        }
        Reported
    }
}
