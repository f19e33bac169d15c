//! Receivers of the reports of a copy operation.

use super::options::{Options, Trace};
use super::report::{Problem, Sink};
use crate::transfer::report::Reported;
use millstream_operation::activity::Activity;

/// What a copy operation reports to, and counts on.
#[derive(Clone, Copy)]
pub(super) struct Watchers<'a> {
    pub(super) options: &'a Options,
    pub(super) sink: &'a dyn Sink,
    pub(super) activity: &'a Activity,
}

impl Watchers<'_> {
    /// Counts and reports a problem.
    pub(super) fn problem(&self, problem: &Problem<'_>) -> Reported {
        self.activity.add_error();
        self.sink.problem(problem);
        if self.options.trace == Trace::Json {
            let mut record = Vec::new();
            problem.write_record(&mut record);
            self.sink.lines(&record);
        }
        Reported
    }
}
