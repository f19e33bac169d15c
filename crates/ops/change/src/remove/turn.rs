//! Keeps reports in the order of the operands, which are removed in parallel.
//!
//! Reports about an operand wait until all operands before it are done. The waiting reports are bounded: beyond
//! [`MAX_WAITING`] bytes they are emitted at once, out of order.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Cause, Problem, Sink};

/// Bytes of reports that may wait.
const MAX_WAITING: usize = 16 << 20;

/// Emits reports, operand by operand.
pub(super) struct Turns<'a> {
    sink: &'a dyn Sink,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first unfinished operand.
    turn: u64,
    /// Waiting reports, for each operand from `turn` on.
    waiting: BTreeMap<u64, Operand>,
    waiting_bytes: usize,
}

#[derive(Default)]
struct Operand {
    said: Vec<Said>,
    done: bool,
}

enum Said {
    Lines(Vec<u8>),
    Problem(Cause, Vec<u8>),
}

impl Said {
    fn len(&self) -> usize {
        match self {
            Said::Lines(text) | Said::Problem(_, text) => text.len(),
        }
    }

    fn say(&self, sink: &dyn Sink) {
        match self {
            Said::Lines(lines) => sink.lines(lines),
            Said::Problem(cause, path) => sink.problem(&Problem { cause: *cause, path }),
        }
    }
}

impl<'a> Turns<'a> {
    pub(super) fn new(sink: &'a dyn Sink) -> Self {
        Turns { sink, state: Mutex::default() }
    }

    /// Whole lines about an operand or its contents.
    pub(super) fn lines(&self, operand: u64, lines: &[u8]) {
        self.say(operand, Said::Lines(lines.to_vec()));
    }

    /// Part of an operand stays.
    pub(super) fn problem(&self, operand: u64, problem: &Problem<'_>) {
        self.say(operand, Said::Problem(problem.cause, problem.path.to_vec()));
    }

    fn say(&self, operand: u64, said: Said) {
        let mut state = self.state();
        if operand <= state.turn || state.waiting_bytes + said.len() > MAX_WAITING {
            return said.say(self.sink);
        }
        state.waiting_bytes += said.len();
        state.waiting.entry(operand).or_default().said.push(said);
    }

    /// An operand is finished.
    pub(super) fn done(&self, operand: u64) {
        let mut state = self.state();
        state.waiting.entry(operand).or_default().done = true;
        loop {
            let turn = state.turn;
            let Some(operand) = state.waiting.get_mut(&turn) else { return };
            let (said, done) = (std::mem::take(&mut operand.said), operand.done);
            for said in said {
                state.waiting_bytes -= said.len();
                said.say(self.sink);
            }
            if !done {
                return;
            }
            state.waiting.remove(&turn);
            state.turn += 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remove::Question;

    #[derive(Default)]
    struct Heard(Mutex<Vec<u8>>);

    impl Sink for Heard {
        fn lines(&self, lines: &[u8]) {
            self.0.lock().expect("one thread").extend_from_slice(lines);
        }

        fn problem(&self, problem: &Problem<'_>) {
            self.lines(problem.path);
        }

        fn approve(&self, _question: &Question<'_>) -> bool {
            true
        }
    }

    #[test]
    fn an_operand_waits_for_those_before_it() {
        let heard = Heard::default();
        let turns = Turns::new(&heard);
        let so_far = || String::from_utf8(heard.0.lock().expect("one thread").clone()).expect("text");
        turns.lines(2, b"c");
        turns.done(2);
        turns.problem(1, &Problem { cause: Cause::Dots, path: b"b" });
        turns.lines(0, b"a");
        assert_eq!(so_far(), "a");
        turns.done(0);
        assert_eq!(so_far(), "ab");
        turns.lines(1, b"B");
        turns.done(1);
        assert_eq!(so_far(), "abBc");
    }

    #[test]
    fn what_waits_is_bounded() {
        let heard = Heard::default();
        let turns = Turns::new(&heard);
        turns.lines(1, &vec![b'x'; MAX_WAITING]);
        turns.lines(1, b"y");
        assert_eq!(*heard.0.lock().expect("one thread"), b"y");
    }
}
