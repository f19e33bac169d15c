//! How operands relate to one another, judged by their paths alone.
//!
//! | two operands are | if their components, without `.`, | and are handled |
//! |---|---|---|
//! | the same | are equal | one after the other |
//! | one inside the other | of one begin with all those of the other | one after the other |
//! | unclear | include `..` after a name, or begin differently (`/`, `../`, `../../`, a name) | one after the other |
//! | apart | are none of these | in parallel |
//!
//! Operands that are apart can still meet through a symbolic link: the operand itself, or a component of its path. Only
//! [`are_siblings`] rules out the second case.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

/// How many of the first operands are apart from one another, and may be handled in parallel: at least one.
pub fn side_by_side<'a>(operands: impl IntoIterator<Item = &'a [u8]>) -> usize {
    let mut met = Met::default();
    operands.into_iter().take_while(|path| met.add(path)).count().max(1)
}

/// Divides `operands` into groups, in their order: within a group all are apart.
pub fn groups(operands: &[CString]) -> impl Iterator<Item = &[CString]> {
    let mut rest = operands;
    std::iter::from_fn(move || {
        let count =
            (!rest.is_empty()).then(|| side_by_side(rest.iter().map(|operand| operand.to_bytes())))?;
        let (group, later) = rest.split_at(count);
        rest = later;
        Some(group)
    })
}

/// Whether all operands are different names in one directory, like those that a shell expands from a pattern.
pub fn are_siblings(operands: &[CString]) -> bool {
    let mut above = operands.iter().map(|operand| directory(operand.to_bytes()));
    let first = above.next();
    above.all(|other| Some(other) == first) && groups(operands).nth(1).is_none()
}

/// Whether the last component is `.` or `..`.
pub fn ends_in_dots(operand: &CStr) -> bool {
    let last = operand.to_bytes().split(|&b| b == b'/').rfind(|name| !name.is_empty());
    matches!(last, Some(b"." | b".."))
}

fn components(path: &[u8]) -> Vec<&[u8]> {
    path.split(|&b| b == b'/').filter(|name| !matches!(*name, b"" | b".")).collect()
}

fn directory(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    &path[..path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1)]
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Root,
    /// So many directories above the current one.
    Above(usize),
}

/// Operands that are apart, by their components.
#[derive(Default)]
struct Met<'a> {
    start: Option<Start>,
    operands: HashSet<Vec<&'a [u8]>>,
    /// All directories above them.
    directories: HashSet<Vec<&'a [u8]>>,
}

impl<'a> Met<'a> {
    /// Adds a path if it is apart from the others.
    fn add(&mut self, path: &'a [u8]) -> bool {
        let mut components = components(path);
        let start = if path.starts_with(b"/") {
            Start::Root
        } else {
            let names = components.iter().position(|&name| name != b"..").unwrap_or(components.len());
            components.drain(..names);
            Start::Above(names)
        };
        let is_unclear =
            *self.start.get_or_insert(start) != start || components.iter().any(|&name| name == b"..");
        if is_unclear || self.directories.contains(&components) {
            return false;
        }
        // The directories above a known one are known, and are not operands.
        for depth in (0..components.len()).rev() {
            let above = &components[..depth];
            if self.operands.contains(above) {
                return false;
            }
            if self.directories.contains(above) {
                break;
            }
            self.directories.insert(above.to_vec());
        }
        self.operands.insert(components)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(operands: &[&str]) -> Vec<CString> {
        operands.iter().map(|operand| CString::new(*operand).expect("no NUL")).collect()
    }

    #[test]
    fn operands_that_are_apart_go_side_by_side() {
        for (operands, count) in [
            (&["a"][..], 1),
            (&["a", "b", "b2/"], 3),
            (&["a", "a"], 1),
            (&["a/", "./a"], 1),
            (&["x", "a/b/c", "y", "a/b", "z"], 3),
            (&["x", "a/b", "y", "a/b/c", "z"], 3),
            (&["a/b", "a-b", "a/bc"], 3),
            (&["a", "a-b", "a/b"], 2),
            (&["a/../b", "c"], 1),
            (&["../a", "../b", "../b/c"], 2),
            (&["../a", ".."], 1),
            (&["..", "../a"], 1),
            (&["../a", "a"], 1),
            (&["../a", "../../a"], 1),
            (&["/../a", "/b"], 1),
            (&["a", "b", "x/../c", "d"], 2),
            (&["/a", "b"], 1),
            (&["a", "/b"], 1),
            (&["/a/b", "//a//b/c"], 1),
            (&[".", "a"], 1),
            (&["a", "."], 1),
            (&["/", "/a"], 1),
        ] {
            let operands = paths(operands);
            assert_eq!(side_by_side(operands.iter().map(|o| o.to_bytes())), count, "{operands:?}");
            let first = groups(&operands).next().expect("a group");
            assert_eq!(first, &operands[..count]);
            assert_eq!(groups(&operands).flatten().collect::<Vec<_>>(), operands.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn siblings_are_different_names_in_one_directory() {
        for (operands, expected) in [
            (&["a"][..], true),
            (&["a", "b", "b2/"], true),
            (&["/x/a", "/x/b"], true),
            (&["a", "a/"], false),
            (&["a", "."], false),
            (&["x/..", "x/a"], false),
            (&["x/a", "y/b"], false),
            (&["/a", "a"], false),
        ] {
            assert_eq!(are_siblings(&paths(operands)), expected, "{operands:?}");
        }
    }

    #[test]
    fn operands_that_end_in_dots() {
        for (operand, expected) in [
            (c".", true),
            (c"..", true),
            (c"a/..//", true),
            (c"./", true),
            (c"/.", true),
            (c"/", false),
            (c"", false),
            (c"...", false),
            (c"../a", false),
            (c"a.", false),
        ] {
            assert_eq!(ends_in_dots(operand), expected, "{operand:?}");
        }
    }
}
