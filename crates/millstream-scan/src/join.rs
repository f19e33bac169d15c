//! Joining files of lines to one file of the same lines.
//!
//! Files are appended as they are but where their lines would change: a line break is added to a last line that has none, a
//! byte order mark is left out that would no longer be at the beginning of a file, and a CR that ends a file is kept apart
//! from an LF that begins the next. With [`Header::Same`] the first line of the first file is the first of all.

use memchr::memchr2;

use crate::range::BYTE_ORDER_MARK;

/// What the first line of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A line like the others.
    None,
    /// The same in all files, and wanted once.
    Same,
}

/// Where in its file a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Nothing is before it.
    pub first: bool,
    /// Nothing is after it.
    pub last: bool,
}

/// Why a file cannot be joined to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// Its first bytes say that it holds no lines.
    #[error("begins like a file of {0}, which is not made of lines")]
    Format(&'static str),
    /// Its first bytes are not those of text.
    #[error("has a NUL byte near its beginning, as files have that are not made of lines")]
    Binary,
    /// Its header is not that of the first file.
    #[error("its first line is not that of the files before it, of which it should be the header")]
    Header,
    /// The header does not end in the first piece.
    #[error("its first line is too long to be a header")]
    LongHeader,
}

/// How far from its beginning a file is looked at.
pub(crate) const BEGINNING: usize = 512;

/// What files begin with that are not made of lines that begin and end with bytes of their own, unless a NUL tells.
const FORMATS: [(&[u8], &str); 14] = [
    (b"PAR1", "Parquet"),
    (b"PARE", "encrypted Parquet"),
    (b"ORC", "ORC"),
    (b"Obj\x01", "Avro"),
    (b"SEQ\x06", "a Hadoop sequence"),
    (b"\x1f\x8b", "gzip"),
    (b"\x1f\x9d", "compress"),
    (b"BZh", "bzip2"),
    (b"%PDF-", "PDF"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
    (b"\x04\x22\x4d\x18", "LZ4"),
    (b"PK\x03\x04", "zip"),
    (b"\xff\xfe", "UTF-16 or UTF-32"),
    (b"\xfe\xff", "UTF-16"),
];

/// Joins files, piece by piece.
#[derive(Debug)]
pub struct Joiner {
    header: Header,
    /// The first line of the first file that has one, without its break.
    first_line: Option<Vec<u8>>,
    /// The last byte so far.
    last: Option<u8>,
    /// All there is so far is a byte order mark.
    only_mark: bool,
}

impl Joiner {
    /// Joins files to nothing yet.
    pub fn new(header: Header) -> Self {
        Joiner { header, first_line: None, last: None, only_mark: false }
    }

    /// What the next piece of the current file, or the first one of the next, adds: bytes to be put before it, and from where
    /// on it counts.
    ///
    /// # Errors
    /// If the file that it begins cannot be joined to others.
    pub fn add<'p>(&mut self, piece: &'p [u8], place: Place) -> Result<(&'static [u8], &'p [u8]), JoinError> {
        if !place.first {
            self.last = piece.last().copied().or(self.last);
            self.only_mark &= piece.is_empty();
            return Ok((b"", piece));
        }
        if let Some((magic, format)) = FORMATS.iter().find(|(magic, _)| piece.starts_with(magic)) {
            // A line may begin with letters like "ORC".
            if !(magic.iter().all(u8::is_ascii_alphanumeric) && is_text(piece)) {
                return Err(JoinError::Format(format));
            }
        }
        if piece.iter().take(BEGINNING).any(|&b| b == 0) {
            return Err(JoinError::Binary);
        }
        let unmarked = piece.strip_prefix(BYTE_ORDER_MARK).unwrap_or(piece);
        let rest = match self.header {
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

    /// What follows the header of a file, unless it is the first that has one.
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

/// Whether bytes are what people write: no control characters but those of text.
fn is_text(piece: &[u8]) -> bool {
    !piece.iter().take(BEGINNING).any(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

/// Joins files made of arbitrary bytes: their lines must be those of the result. The first byte separates files.
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
    fn lines_stay_what_they_are() {
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
    fn any_bytes_keep_their_lines() {
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
    fn what_is_not_made_of_lines_is_refused() {
        assert_eq!(joined(&[b"PAR1\x15\x04"], Header::None), Err(JoinError::Format("Parquet")));
        assert_eq!(joined(&[b"\x1f\x8b\x08"], Header::None), Err(JoinError::Format("gzip")));
        assert_eq!(joined(&[b"ORC\x0a\x00"], Header::None), Err(JoinError::Format("ORC")));
        assert_eq!(joined(&[b"ORCHESTRA\n"], Header::None).as_deref(), Ok(&b"ORCHESTRA\n"[..]));
    }
}
