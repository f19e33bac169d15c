//! What operands tell by their names alone.

use std::ffi::{CStr, CString};

/// Whether an operand may be the same as another, or in it.
///
/// Links that lead from one operand to another are not looked for.
pub(super) fn may_overlap(operands: &[CString]) -> bool {
    if operands.len() < 2 {
        return false;
    }
    let mut names: Vec<Vec<&[u8]>> = operands.iter().map(|operand| components(operand)).collect();
    let is_absolute = |operand: &CString| operand.to_bytes().starts_with(b"/");
    let absolute = operands.iter().filter(|operand| is_absolute(operand)).count();
    let is_mixed = absolute > 0 && absolute < operands.len();
    if is_mixed || names.iter().flatten().any(|&name| name == b"..") {
        return true;
    }
    names.sort_unstable();
    names.windows(2).any(|pair| pair[1].starts_with(&pair[0]))
}

fn components(operand: &CStr) -> Vec<&[u8]> {
    operand.to_bytes().split(|&b| b == b'/').filter(|&name| !matches!(name, b"" | b".")).collect()
}

/// Whether the last component is `.` or `..`.
pub(super) fn ends_in_dots(operand: &CStr) -> bool {
    let last = operand.to_bytes().split(|&b| b == b'/').rfind(|name| !name.is_empty());
    matches!(last, Some(b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_that_may_overlap() {
        for (operands, expected) in [
            (&["a"][..], false),
            (&["a", "b"], false),
            (&["a", "a"], true),
            (&["a/", "./a"], true),
            (&["a/b/c", "x", "a/b"], true),
            (&["a/b", "a-b", "a/bc"], false),
            (&["a", "a-b", "a/b"], true),
            (&["a/../b", "c"], true),
            (&["/a", "b"], true),
            (&["/a/b", "//a//b/c"], true),
            (&[".", "a"], true),
        ] {
            let names: Vec<_> = operands.iter().map(|o| CString::new(*o).expect("no NUL")).collect();
            assert_eq!(may_overlap(&names), expected, "{operands:?}");
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
