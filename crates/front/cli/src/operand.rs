//! Helpers for operands: GNU's form of their trailing slashes, and recognizing URLs.

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

/// Whether an operand is the URL of a file system; that of a bucket (`s3:`) is one, too.
pub(crate) fn is_url(operand: &[u8]) -> bool {
    before_colon(operand).is_some_and(|(scheme, rest)| match scheme {
        b"rsync" => false,
        b"file" => rest.starts_with(b"/"),
        _ => rest.starts_with(b"//"),
    })
}

/// The parts before and after the colon of a path that begins like a host's or a URL.
pub(crate) fn before_colon(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = match path {
        [b'[', address @ ..] => address.windows(2).position(|pair| pair == b"]:")? + 2,
        _ => path.iter().position(|&b| b == b':')?,
    };
    Some((&path[..colon], &path[colon + 1..])).filter(|(before, _)| !before.contains(&b'/'))
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

    #[test]
    fn urls_are_told_from_names_with_colons() {
        for path in ["s3://b/k", "s3a://b/k", "hdfs://n/p", "file:///p", "file:/p"] {
            assert!(is_url(path.as_bytes()), "{path}");
        }
        for path in [
            "dir",
            "./a:b",
            "/a:b",
            "dir/a:b",
            "",
            "host:dir",
            "u@host:dir",
            "rsync://host/m",
            "a:",
            "[::1]:p",
        ] {
            assert!(!is_url(path.as_bytes()), "{path}");
        }
    }
}
