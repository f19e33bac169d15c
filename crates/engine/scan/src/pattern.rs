//! Regular expressions.
//!
//! The JVM translates a pattern of Java's into one that means the same here (`PortableRegex`), or does not push it
//! down. It is matched against the text that Java makes of a row, not against its bytes.

use regex::bytes::{Regex, RegexBuilder};

use crate::text::java_text;

/// A limit for compiled patterns, in bytes; a longer one stays with Spark.
const SIZE_LIMIT: usize = 1 << 20;

/// A regular expression that is searched for in a row.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    literal: Vec<u8>,
}

impl Pattern {
    /// Compiles a pattern in the syntax of the `regex` crate.
    ///
    /// `literal` is contained in every text that matches; empty if there is none.
    ///
    /// `None` if the pattern is malformed or too large.
    pub(crate) fn new(pattern: &[u8], literal: &[u8]) -> Option<Self> {
        let pattern = std::str::from_utf8(pattern).ok()?;
        let regex = RegexBuilder::new(pattern).size_limit(SIZE_LIMIT).build().ok()?;
        Some(Pattern { regex, literal: literal.to_vec() })
    }

    pub(crate) fn matches(&self, row: &[u8]) -> bool {
        self.regex.is_match(&java_text(row))
    }

    /// Contained in every row that matches; may be empty.
    pub(crate) fn literal(&self) -> &[u8] {
        &self.literal
    }
}

/// A literal of ASCII that is searched for in upper and lower case.
#[derive(Clone, Debug)]
pub struct Caseless {
    regex: Regex,
}

impl Caseless {
    /// `None` if the literal is empty, not of ASCII, or too long.
    pub(crate) fn new(literal: &[u8]) -> Option<Self> {
        let literal = std::str::from_utf8(literal).ok().filter(|text| text.is_ascii() && !text.is_empty())?;
        let mut builder = RegexBuilder::new(&regex::escape(literal));
        let regex = builder.unicode(false).case_insensitive(true).size_limit(SIZE_LIMIT).build().ok()?;
        Some(Caseless { regex })
    }

    /// Where it begins in `bytes`.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.regex.find(bytes).map(|found| found.start())
    }
}
