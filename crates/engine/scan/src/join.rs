//! Joins text files into one file with the same lines.
//!
//! Files are appended unchanged, except where that would change their lines. A last line without a line break gets one.
//! A byte order mark is dropped unless it starts the result. A CR at the end of one file is kept apart from an LF at
//! the start of the next. With [`Header::Same`] all files share their first line, and the result has it once.

use memchr::memchr2;

use crate::contents::{Contents, check};
use crate::error::JoinError;
use crate::range::BYTE_ORDER_MARK;

/// Meaning of the first line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// An ordinary line.
    None,
    /// A header, the same in all files; the result has it once.
    Same,
}

/// What files that are joined have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRule {
    /// Their first lines.
    pub header: Header,
    /// Their lines.
    pub contents: Contents,
}

impl From<Header> for JoinRule {
    fn from(header: Header) -> Self {
        JoinRule { header, contents: Contents::Text }
    }
}

/// Position of a piece in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// It is the first piece.
    pub first: bool,
    /// It is the last piece.
    pub last: bool,
}

/// Joins files, piece by piece.
#[derive(Debug)]
pub struct Joiner {
    rule: JoinRule,
    /// The first line of the first file that has one, without its break.
    first_line: Option<Vec<u8>>,
    /// The last byte so far.
    last: Option<u8>,
    /// The result consists of a byte order mark so far.
    only_mark: bool,
}

impl Joiner {
    /// A joiner with an empty result.
    pub fn new(rule: impl Into<JoinRule>) -> Self {
        Joiner { rule: rule.into(), first_line: None, last: None, only_mark: false }
    }

    /// Adds the next piece of the current file, or the first of the next file. Returns the bytes to insert before it,
    /// and the part of the piece to append.
    ///
    /// # Errors
    /// If the piece starts a file that cannot be joined to others.
    pub fn add<'p>(&mut self, piece: &'p [u8], place: Place) -> Result<(&'static [u8], &'p [u8]), JoinError> {
        if !place.first {
            self.last = piece.last().copied().or(self.last);
            self.only_mark &= piece.is_empty();
            return Ok((b"", piece));
        }
        check(piece, place.last, self.rule.contents)?;
        let unmarked = piece.strip_prefix(BYTE_ORDER_MARK).unwrap_or(piece);
        let rest = match self.rule.header {
            Header::None => unmarked,
            Header::Same => self.without_header(unmarked, place)?,
        };
        let added = if self.last.is_none() { piece } else { rest };
        let before: &[u8] = match (self.last, added.first()) {
            (Some(b'\r'), Some(b'\n')) => b"\n",
            (Some(b'\r' | b'\n') | None, _) | (_, None) => b"",
            (Some(_), Some(_)) if self.only_mark => b"",
            (Some(_), Some(_)) => b"\n",
        };
        self.only_mark =
            if self.last.is_none() { added == BYTE_ORDER_MARK } else { self.only_mark && added.is_empty() };
        self.last = added.last().copied().or(self.last);
        Ok((before, added))
    }

    /// Strips the header, except from the first file that has one.
    fn without_header<'p>(&mut self, file: &'p [u8], place: Place) -> Result<&'p [u8], JoinError> {
        if file.is_empty() {
            return Ok(file);
        }
        let end = match memchr2(b'\r', b'\n', file) {
            Some(end) => end,
            None if place.last => file.len(),
            None => return Err(JoinError::LongHeader),
        };
        let (line, rest) = file.split_at(end);
        match &self.first_line {
            None => {
                self.first_line = Some(line.to_vec());
                Ok(file)
            }
            Some(first) if first == line => {
                let ending = if rest.starts_with(b"\r\n") { 2 } else { usize::from(!rest.is_empty()) };
                Ok(&rest[ending..])
            }
            Some(_) => Err(JoinError::Header),
        }
    }
}

/// Joins files of arbitrary bytes: the result must have the lines of the files. The first byte separates the files.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_join(bytes: &[u8]) {
    let [separator, rest @ ..] = bytes else { return };
    let files: Vec<_> = rest.split(|b| b == separator).collect();
    let mut joiner = Joiner::new(Header::None);
    let mut joined = Vec::new();
    for file in &files {
        let Ok((before, added)) = joiner.add(file, Place { first: true, last: true }) else { return };
        joined.extend_from_slice(before);
        joined.extend_from_slice(added);
    }
    let expected: Vec<_> = files.iter().flat_map(|file| lines(file)).collect();
    assert_eq!(lines(&joined), expected);
}

/// The lines of a file, as Spark sees them.
#[cfg(any(test, feature = "fuzzing"))]
fn lines(file: &[u8]) -> Vec<&[u8]> {
    let data = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
    let mut lines = Vec::new();
    crate::Separator::AnyNewline.split(data, |start, end| lines.push(&data[start..end]));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Place = Place { first: true, last: true };

    fn joined(files: &[&[u8]], header: Header) -> Result<Vec<u8>, JoinError> {
        let mut joiner = Joiner::new(header);
        let mut all = Vec::new();
        for file in files {
            let (before, added) = joiner.add(file, WHOLE)?;
            all.extend_from_slice(before);
            all.extend_from_slice(added);
        }
        Ok(all)
    }

    #[test]
    fn lines_are_unchanged() {
        const MARK: &[u8] = BYTE_ORDER_MARK;
        for (files, expected) in [
            (&[&b"a\n"[..], b"b\n"][..], &b"a\nb\n"[..]),
            (&[b"a", b"b"], b"a\nb"),
            (&[b"a\r", b"b"], b"a\rb"),
            (&[b"a\r", b"\nb"], b"a\r\n\nb"),
            (&[b"a\r", b"", b"\nb"], b"a\r\n\nb"),
            (&[b"a\r\n", b"\r\nb"], b"a\r\n\r\nb"),
            (&[b"", b"a", b"", b""], b"a"),
            (&[&[MARK, b"a"].concat(), &[MARK, b"b"].concat()], &[MARK, b"a\nb"].concat()),
            (&[MARK, b"a"], &[MARK, b"a"].concat()),
            (&[MARK, &[MARK, MARK, b"a"].concat()], &[MARK, MARK, b"a"].concat()),
            (&[MARK, MARK, b"", b"\n"], &[MARK, b"\n"].concat()),
        ] {
            assert_eq!(joined(files, Header::None).as_deref(), Ok(expected), "{files:?}");
        }
    }

    #[test]
    fn lines_are_unchanged_for_all_short_inputs() {
        let pieces: [&[u8]; 6] = [b"a", b"\n", b"\r", BYTE_ORDER_MARK, b"|", b"|"];
        for number in 0..6_u32.pow(6) {
            let chosen = (0..6).map(|place| pieces[(number / 6_u32.pow(place)) as usize % 6]);
            fuzz_join(&std::iter::once(&b"|"[..]).chain(chosen).collect::<Vec<_>>().concat());
        }
    }

    #[test]
    fn one_header_is_kept() {
        let same = |files: &[&[u8]]| joined(files, Header::Same);
        assert_eq!(same(&[b"h\n1\n", b"h\r\n2", b"", b"h", b"h\n3\n"]).as_deref(), Ok(&b"h\n1\n2\n3\n"[..]));
        assert_eq!(same(&[b"", b"h", b"h\n1"]).as_deref(), Ok(&b"h\n1"[..]));
        assert_eq!(same(&[b"h\n", b"i\n"]), Err(JoinError::Header));
        let mut joiner = Joiner::new(Header::Same);
        assert_eq!(joiner.add(b"hh", Place { first: true, last: false }), Err(JoinError::LongHeader));
    }

    #[test]
    fn binary_files_are_refused() {
        assert_eq!(joined(&[b"PAR1\x15\x04"], Header::None), Err(JoinError::Format("Parquet")));
        assert_eq!(joined(&[b"\x1f\x8b\x08"], Header::None), Err(JoinError::Format("gzip")));
        assert_eq!(joined(&[b"ORC\x0a\x00"], Header::None), Err(JoinError::Format("ORC")));
        assert_eq!(joined(&[b"ORCHESTRA\n"], Header::None).as_deref(), Ok(&b"ORCHESTRA\n"[..]));
    }
}
