//! Shell patterns, with a fast path for the most common shapes.
//!
//! A pattern of plain ASCII characters with at most one `*` at either end needs no matcher if the text is ASCII too.
//! Everything else goes to the C library, which knows the locale.

use std::ffi::{CStr, CString};

use millstream_system::pattern::{CaseSensitivity, matches_glob};

/// A shell pattern.
#[derive(Debug)]
pub(super) struct Glob {
    pattern: CString,
    case: CaseSensitivity,
    shape: Shape,
}

/// The kind of the pattern, with the range of its literal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Literal,
    Suffix,
    Prefix,
    Infix,
    General,
}

impl Glob {
    /// Analyses the pattern once.
    pub fn new(pattern: CString, case: CaseSensitivity) -> Self {
        let shape = match case {
            CaseSensitivity::Sensitive => shape_of(pattern.to_bytes()),
            CaseSensitivity::Insensitive => Shape::General,
        };
        Glob { pattern, case, shape }
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &CStr) -> bool {
        let pattern = self.pattern.to_bytes();
        let bytes = text.to_bytes();
        if self.shape == Shape::General || !bytes.is_ascii() {
            return matches_glob(&self.pattern, text, self.case);
        }
        match self.shape {
            Shape::Literal => bytes == pattern,
            Shape::Suffix => bytes.ends_with(&pattern[1..]),
            Shape::Prefix => bytes.starts_with(&pattern[..pattern.len() - 1]),
            Shape::Infix => contains(bytes, &pattern[1..pattern.len() - 1]),
            Shape::General => matches_glob(&self.pattern, text, self.case),
        }
    }
}

fn shape_of(pattern: &[u8]) -> Shape {
    let plain = |text: &[u8]| text.is_ascii() && !text.iter().any(|b| b"*?[\\".contains(b));
    match pattern {
        text if plain(text) => Shape::Literal,
        [b'*', text @ ..] if plain(text) => Shape::Suffix,
        [text @ .., b'*'] if plain(text) => Shape::Prefix,
        [b'*', text @ .., b'*'] if !text.is_empty() && plain(text) => Shape::Infix,
        _ => Shape::General,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use CaseSensitivity::Sensitive;

    #[test]
    fn short_cuts_agree_with_the_c_library() {
        let patterns = [c"", c"*", c"**", c"a", c"*.txt", c"ab*", c"*b*", c"a*b", c"[ab]*", c"?", c"a\\*"];
        let texts = [c"", c"a", c"b", c"ab", c"x.txt", c".txt", c"a*", c"\xff", c"b\xc3\xa9", c"xbx", c"txt"];
        for pattern in patterns {
            let glob = Glob::new(pattern.to_owned(), Sensitive);
            for text in texts {
                assert_eq!(
                    glob.matches(text),
                    matches_glob(pattern, text, Sensitive),
                    "{pattern:?} {text:?}"
                );
            }
        }
    }

    #[test]
    fn common_patterns_need_no_matcher() {
        for (pattern, shape) in [
            (&b"core"[..], Shape::Literal),
            (b"*.txt", Shape::Suffix),
            (b"lib*", Shape::Prefix),
            (b"*part*", Shape::Infix),
            (b"*", Shape::Suffix),
            (b"*.[ch]", Shape::General),
            (b"*\xc3\xa9", Shape::General),
        ] {
            assert_eq!(shape_of(pattern), shape, "{}", pattern.escape_ascii());
        }
    }
}
