//! Finding line separators.

use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memmem, memrchr, memrchr2};

/// The separator between lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separator {
    /// LF, CR or CRLF, whichever comes first.
    AnyNewline,
    /// These bytes, at least one.
    Bytes(Vec<u8>),
}

/// A separator that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where the separator begins.
    pub(crate) start: usize,
    /// Where the next line begins.
    pub(crate) end: usize,
}

impl Separator {
    /// The first separator at or after `from`. `None` if there is none, and also if its length depends on bytes after
    /// `data`; `at_end` says that there are no such bytes.
    pub(crate) fn find(&self, data: &[u8], from: usize, at_end: bool) -> Option<Found> {
        let rest = data.get(from..)?;
        let start = match self {
            Separator::Bytes(bytes) => {
                let start = from + find_bytes(rest, bytes)?;
                return Some(Found { start, end: start + bytes.len() });
            }
            Separator::AnyNewline => from + memchr2(b'\n', b'\r', rest)?,
        };
        let end = match (data[start], data.get(start + 1)) {
            (b'\r', Some(b'\n')) => start + 2,
            (b'\r', None) if !at_end => return None,
            _ => start + 1,
        };
        Some(Found { start, end })
    }

    /// Where the last line of `data` ends, which starts at the beginning of a line and is not all: after the last
    /// separator that does not depend on bytes after `data`.
    pub(crate) fn last_end(&self, data: &[u8]) -> Option<usize> {
        match self {
            Separator::AnyNewline => {
                let found = memrchr2(b'\n', b'\r', data)?;
                // An LF may follow.
                let open = data[found] == b'\r' && found + 1 == data.len();
                let found = if open { memrchr2(b'\n', b'\r', &data[..found])? } else { found };
                Some(found + 1)
            }
            Separator::Bytes(bytes) if bytes.len() == 1 => Some(memrchr(bytes[0], data)? + 1),
            Separator::Bytes(bytes) if self.is_found_from_anywhere() => {
                Some(memmem::rfind(data, bytes)? + bytes.len())
            }
            Separator::Bytes(bytes) => Some(memmem::find_iter(data, bytes).last()? + bytes.len()),
        }
    }

    /// Whether a search finds the same separators from any starting point, so that a file can be cut into ranges.
    /// Separators that begin as they end (`||`, `aba`) may overlap, and are found reliably only from the beginning of a
    /// line.
    pub(crate) fn is_found_from_anywhere(&self) -> bool {
        match self {
            Separator::AnyNewline => true,
            Separator::Bytes(bytes) => (1..bytes.len()).all(|length| !bytes.ends_with(&bytes[..length])),
        }
    }

    /// Whether each byte that separates lines can be told by itself.
    pub(crate) fn is_one_byte(&self) -> bool {
        match self {
            Separator::AnyNewline => true,
            Separator::Bytes(bytes) => bytes.len() == 1,
        }
    }

    /// Whether the line after `found` belongs to a range that ends at `end`.
    pub(crate) fn begins_line_before(&self, found: &Found, end: usize) -> bool {
        match self {
            Separator::AnyNewline => found.end <= end,
            Separator::Bytes(_) => found.start < end,
        }
    }

    /// How many bytes at the end of the data may belong to a separator that continues after it.
    pub(crate) fn max_overlap(&self) -> usize {
        match self {
            Separator::AnyNewline => 1,
            Separator::Bytes(bytes) => bytes.len() - 1,
        }
    }

    /// Whether a line can contain `literal`.
    pub(crate) fn may_contain(&self, literal: &[u8]) -> bool {
        match self {
            Separator::AnyNewline => memchr2(b'\n', b'\r', literal).is_none(),
            Separator::Bytes(bytes) => find_bytes(literal, bytes).is_none(),
        }
    }

    /// Start of the line that contains `position`, searching back to `from`, where a line starts. Only for separators
    /// of [one byte](Separator::is_one_byte).
    pub(crate) fn line_start(&self, data: &[u8], from: usize, position: usize) -> usize {
        let before = &data[from..position];
        let found = match self {
            // A single CR cannot end just before the LF of a CRLF: `position` is in a line, not in a separator.
            Separator::AnyNewline => memrchr2(b'\n', b'\r', before),
            Separator::Bytes(bytes) => memrchr(bytes[0], before),
        };
        found.map_or(from, |at| from + at + 1)
    }

    /// Number of lines in `data`, which starts at the beginning of a line. Bytes after the last separator count as a
    /// line.
    pub(crate) fn count(&self, data: &[u8]) -> u64 {
        let (separators, ended) = match self {
            Separator::Bytes(bytes) if bytes.len() == 1 => {
                (memchr_iter(bytes[0], data).count(), data.ends_with(bytes))
            }
            Separator::Bytes(bytes) => {
                let mut last = 0;
                let count = memmem::find_iter(data, bytes).inspect(|at| last = at + bytes.len()).count();
                (count, last == data.len())
            }
            Separator::AnyNewline if memchr(b'\r', data).is_none() => {
                (memchr_iter(b'\n', data).count(), data.ends_with(b"\n"))
            }
            Separator::AnyNewline => {
                let alone = memchr_iter(b'\r', data).filter(|at| data.get(at + 1) != Some(&b'\n')).count();
                let ended = data.ends_with(b"\n") || data.ends_with(b"\r");
                (memchr_iter(b'\n', data).count() + alone, ended)
            }
        };
        separators as u64 + u64::from(!data.is_empty() && !ended)
    }

    /// Calls `line(start, end)` for each line of `data`.
    pub(crate) fn split(&self, data: &[u8], mut line: impl FnMut(usize, usize)) {
        let mut start = 0;
        match self {
            Separator::Bytes(bytes) if bytes.len() > 1 => {
                for at in memmem::find_iter(data, bytes) {
                    line(start, at);
                    start = at + bytes.len();
                }
            }
            Separator::Bytes(bytes) => split_at(data, bytes[0], &mut start, &mut line),
            Separator::AnyNewline if memchr(b'\r', data).is_none() => {
                split_at(data, b'\n', &mut start, &mut line);
            }
            Separator::AnyNewline => {
                for at in memchr2_iter(b'\n', b'\r', data) {
                    if data[at] == b'\n' && at > 0 && data[at - 1] == b'\r' {
                        start = at + 1;
                        continue;
                    }
                    line(start, at);
                    start = at + 1;
                }
            }
        }
        if start < data.len() {
            line(start, data.len());
        }
    }
}

fn split_at(data: &[u8], separator: u8, start: &mut usize, line: &mut impl FnMut(usize, usize)) {
    for at in memchr_iter(separator, data) {
        line(*start, at);
        *start = at + 1;
    }
}

fn find_bytes(data: &[u8], bytes: &[u8]) -> Option<usize> {
    match bytes {
        [byte] => memchr(*byte, data),
        _ => memmem::find(data, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'a>(separator: &Separator, data: &'a [u8]) -> Vec<&'a [u8]> {
        let mut found = Vec::new();
        separator.split(data, |start, end| found.push(&data[start..end]));
        assert_eq!(found.len() as u64, separator.count(data), "{separator:?} {data:?}");
        found
    }

    #[test]
    fn any_newline_ends_a_line() {
        for (data, expected) in [
            (&b""[..], &[][..]),
            (b"a", &[&b"a"[..]]),
            (b"a\n", &[b"a"]),
            (b"a\r\nb\rc\nd", &[b"a", b"b", b"c", b"d"]),
            (b"\n\n", &[b"", b""]),
            (b"\r\r\n\n", &[b"", b"", b""]),
            (b"\n\r", &[b"", b""]),
            (b"\r", &[b""]),
        ] {
            assert_eq!(lines(&Separator::AnyNewline, data), expected, "{data:?}");
        }
    }

    #[test]
    fn custom_separators() {
        let bar = Separator::Bytes(b"|".to_vec());
        assert_eq!(lines(&bar, b"a|b\n||"), [&b"a"[..], b"b\n", b""]);
        let long = Separator::Bytes(b"aa".to_vec());
        assert_eq!(lines(&long, b"aaaxaa"), [&b""[..], b"ax"]);
        assert!(bar.is_found_from_anywhere() && bar.is_one_byte());
        assert!(!long.is_found_from_anywhere() && !long.is_one_byte());
        let crlf = Separator::Bytes(b"\r\n".to_vec());
        assert!(crlf.is_found_from_anywhere() && !crlf.is_one_byte());
        assert!(!Separator::Bytes(b"aba".to_vec()).is_found_from_anywhere());
    }

    #[test]
    fn a_cr_at_the_end_of_the_data_may_be_half_of_a_crlf() {
        let any = Separator::AnyNewline;
        assert_eq!(any.find(b"ab\r", 0, false), None);
        assert_eq!(any.find(b"ab\r", 0, true), Some(Found { start: 2, end: 3 }));
        assert_eq!(any.find(b"ab\r\n", 0, false), Some(Found { start: 2, end: 4 }));
        assert_eq!(any.find(b"ab\rc", 0, false), Some(Found { start: 2, end: 3 }));
    }
}
