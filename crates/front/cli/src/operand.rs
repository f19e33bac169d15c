//! Operands in the form in which the recursive GNU tools print them.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

/// The operands of a command line, as paths.
pub(crate) fn paths(operands: Vec<OsString>) -> Vec<CString> {
    // No argument of a process holds a NUL.
    operands.into_iter().filter_map(|operand| CString::new(trimmed(operand.into_vec())).ok()).collect()
}

/// Reduces slashes at the end of a path to one; `//` stays, because it may differ from `/`.
pub(crate) fn trimmed(mut name: Vec<u8>) -> Vec<u8> {
    if name.len() > 2 {
        while name.ends_with(b"//") {
            name.pop();
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slash_is_kept() {
        for (name, expected) in [
            ("a", "a"),
            ("a/", "a/"),
            ("a//", "a/"),
            ("//a///", "//a/"),
            ("/", "/"),
            ("//", "//"),
            ("///", "/"),
        ] {
            assert_eq!(trimmed(name.into()), expected.as_bytes());
        }
    }
}
