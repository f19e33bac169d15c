//! Injected errors.

use millstream_vfs::{Errno, Error, Operation, Result};

/// Rules for failing operations.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    /// Number of calls of any kind until one fails.
    next: Option<(usize, Errno)>,
}

#[derive(Debug)]
struct Rule {
    path: Vec<u8>,
    /// [`None`] stands for every operation.
    operation: Option<Operation>,
    /// Number of calls that still succeed.
    spared: usize,
    errno: Errno,
}

impl Faults {
    pub fn add(&mut self, path: &[u8], operation: Option<Operation>, spared: usize, errno: Errno) {
        self.rules.push(Rule { path: normal(path), operation, spared, errno });
    }

    /// Makes one call fail, whatever it is, after so many others. Replaces an earlier rule of this kind.
    pub fn set_next(&mut self, calls: usize, errno: Errno) {
        self.next = Some((calls, errno));
    }

    /// Withdraws the rule of [`Faults::set_next`]; returns whether that call has not been made.
    pub fn take_next(&mut self) -> bool {
        self.next.take().is_some()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.next.is_none()
    }

    /// Fails if a rule applies.
    pub fn check(&mut self, operation: Operation, path: &[u8]) -> Result<()> {
        match &mut self.next {
            Some((0, errno)) => {
                let errno = *errno;
                self.next = None;
                return Err(Error::new(operation, errno));
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        let path = normal(path);
        let applies =
            |rule: &&mut Rule| rule.path == path && rule.operation.is_none_or(|wanted| wanted == operation);
        for rule in self.rules.iter_mut().filter(applies) {
            match rule.spared.checked_sub(1) {
                None => return Err(Error::new(operation, rule.errno)),
                Some(left) => rule.spared = left,
            }
        }
        Ok(())
    }
}

/// A path with one slash before each component and none at its end.
fn normal(path: &[u8]) -> Vec<u8> {
    path.split(|&b| b == b'/')
        .filter(|part| !part.is_empty())
        .flat_map(|part| [b"/", part].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_apply_to_their_path_operation_and_call() {
        let mut faults = Faults::default();
        faults.add(b"a/b", Some(Operation::Stat), 1, Errno::IO);
        faults.add(b"gone", None, 0, Errno::NOENT);
        assert_eq!(faults.check(Operation::Stat, b"/a/b"), Ok(()));
        assert_eq!(faults.check(Operation::OpenDir, b"/a/b"), Ok(()));
        assert_eq!(faults.check(Operation::Stat, b"//a/b/"), Err(Error::new(Operation::Stat, Errno::IO)));
        assert_eq!(faults.check(Operation::Stat, b"/a"), Ok(()));
        assert_eq!(
            faults.check(Operation::Remove, b"gone"),
            Err(Error::new(Operation::Remove, Errno::NOENT))
        );
    }
}
