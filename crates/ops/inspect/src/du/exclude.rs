//! Patterns of `--exclude` and `--exclude-from`.
//!
//! A pattern excludes a path if it matches the whole path or the part after any of its slashes. Wildcards match
//! slashes.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

use millstream_system::pattern::{CaseSensitivity, matches_glob};

/// The exclude patterns.
#[derive(Clone, Debug, Default)]
pub struct Exclude {
    /// Patterns without special characters.
    literals: HashSet<Vec<u8>>,
    globs: Vec<CString>,
}

impl Exclude {
    /// Adds a pattern. One that holds a NUL matches nothing and is ignored.
    pub fn add(&mut self, pattern: &[u8]) {
        if pattern.iter().any(|b| b"*?[\\".contains(b)) {
            self.globs.extend(CString::new(pattern));
        } else {
            self.literals.insert(pattern.to_vec());
        }
    }

    /// Adds the patterns of a file, one per line; white space at the end of a line is ignored.
    pub fn add_lines(&mut self, text: &[u8]) {
        let lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
        lines.filter(|line| !line.is_empty()).for_each(|line| self.add(line));
    }

    /// Whether nothing is excluded.
    pub fn is_empty(&self) -> bool {
        self.literals.is_empty() && self.globs.is_empty()
    }

    /// Whether `path` is excluded.
    pub fn matches(&self, path: &CStr) -> bool {
        let bytes = path.to_bytes_with_nul();
        let after_slash = |at: &usize| *at == 0 || (bytes[*at - 1] == b'/' && bytes[*at] != b'/');
        (0..bytes.len() - 1).filter(after_slash).any(|at| self.matches_whole(&bytes[at..]))
    }

    fn matches_whole(&self, text: &[u8]) -> bool {
        self.literals.contains(&text[..text.len() - 1])
            || CStr::from_bytes_with_nul(text).is_ok_and(|text| {
                self.globs.iter().any(|glob| matches_glob(glob, text, CaseSensitivity::Sensitive))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_from_any_slash_on() {
        for (pattern, path, expected) in [
            ("g", c"a/sub/g", true),
            ("g", c"a/sub/gg", false),
            ("sub/g", c"a/sub/g", true),
            ("/g", c"a/sub/g", false),
            ("a/s*", c"a/sub", true),
            ("a*g", c"a/sub/g", true),
            ("*.o", c"x/y.o", true),
            ("\\g", c"a/g", true),
            ("[", c"[", true),
            ("a", c"a/", false),
            ("", c"a/b", false),
        ] {
            let mut exclude = Exclude::default();
            exclude.add(pattern.as_bytes());
            assert_eq!(exclude.matches(path), expected, "{pattern} {path:?}");
        }
    }

    #[test]
    fn lines_of_a_file_are_patterns() {
        let mut exclude = Exclude::default();
        exclude.add_lines(b"x \t\n\n*.o\n  \n lead\n#\nlast");
        for (path, expected) in [
            (c"d/x", true),
            (c"d/y.o", true),
            (c"last", true),
            (c" lead", true),
            (c"#", true),
            (c"d/y", false),
        ] {
            assert_eq!(exclude.matches(path), expected, "{path:?}");
        }
    }
}
