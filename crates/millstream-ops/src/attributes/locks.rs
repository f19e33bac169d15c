//! Files that may be reached twice are changed by one worker at a time.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

const LOCKS: usize = 64;

/// A lock for each inode, several inodes to a lock.
#[derive(Debug)]
pub(super) struct InodeLocks {
    locks: [Mutex<()>; LOCKS],
}

impl Default for InodeLocks {
    fn default() -> Self {
        InodeLocks { locks: std::array::from_fn(|_| Mutex::new(())) }
    }
}

impl InodeLocks {
    pub(super) fn lock(&self, (_, ino): (u64, u64)) -> MutexGuard<'_, ()> {
        self.locks[ino as usize % LOCKS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one operand may be in another one or the same, links aside: they are not if they are different names in one
/// directory, as those are that a shell makes of a pattern.
pub(super) fn may_overlap(operands: &[CString]) -> bool {
    let mut names = HashSet::new();
    let mut directory = None;
    operands.len() > 1
        && operands.iter().any(|operand| {
            let path = operand.to_bytes();
            let path = path.strip_suffix(b"/").unwrap_or(path);
            let (above, name) = path.split_at(path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1));
            *directory.get_or_insert(above) != above
                || matches!(name, b"" | b"." | b"..")
                || !names.insert(name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_one_directory_do_not_overlap() {
        for (operands, expected) in [
            (&["a"][..], false),
            (&["."], false),
            (&["a", "b", "b2/"], false),
            (&["/x/a", "/x/b"], false),
            (&["a", "a"], true),
            (&["a", "a/"], true),
            (&["a", "a/b"], true),
            (&["a", "."], true),
            (&["x/..", "x/a"], true),
            (&["/", "/a"], true),
            (&["/a", "a"], true),
        ] {
            let operands: Vec<_> = operands.iter().map(|o| CString::new(*o).expect("no NUL")).collect();
            assert_eq!(may_overlap(&operands), expected, "{operands:?}");
        }
    }
}
