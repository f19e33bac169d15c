//! Records of the `--json` options: one JSON object per line.
//!
//! File names are bytes; JSON strings are Unicode. Valid UTF-8 in a name stays as it is. Every other byte `XX` becomes
//! the lone surrogate `\udcXX`, like Python's `surrogateescape`, so that `os.fsencode(json.loads(...))` restores the
//! name. Valid UTF-8 contains no surrogates, so the encoding is unambiguous and [`read_string`] can undo it. The
//! characters that some readers treat as line ends are escaped, too, which JSON does not require.

use millstream_vfs::{Errno, Metadata, errno_text};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a JSON string with its quotes.
pub fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if text.iter().all(|&b| is_plain(b)) {
        out.extend_from_slice(text);
    } else {
        for chunk in text.utf8_chunks() {
            chunk.valid().chars().for_each(|c| write_char(c, out));
            chunk.invalid().iter().for_each(|&b| write_unit(0xdc00 | u16::from(b), out));
        }
    }
    out.push(b'"');
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn write_char(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => write_unit(c as u16, out),
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn write_unit(unit: u16, out: &mut Vec<u8>) {
    let digit = |shift: u16| HEX[usize::from(unit >> shift & 15)];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// Why a JSON string could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadStringError {
    /// There is no opening quote, or no closing one.
    #[error("no string")]
    NoString,
    /// An escape that JSON does not have, or a surrogate that stands for no byte.
    #[error("bad escape")]
    BadEscape,
    /// A character that must be escaped, or invalid UTF-8.
    #[error("bad character")]
    BadCharacter,
}

/// Reads the JSON string at the start of `text`: its bytes before [`write_string`], and the text after it.
///
/// # Errors
/// If `text` does not begin with a JSON string that stands for bytes.
pub fn read_string(text: &[u8]) -> Result<(Vec<u8>, &[u8]), ReadStringError> {
    let mut rest = text.strip_prefix(b"\"").ok_or(ReadStringError::NoString)?;
    let mut bytes = Vec::new();
    loop {
        let plain = rest.iter().position(|&b| b == b'"' || b == b'\\' || b < b' ');
        let (before, from) = rest.split_at(plain.ok_or(ReadStringError::NoString)?);
        let valid = std::str::from_utf8(before).map_err(|_| ReadStringError::BadCharacter)?;
        bytes.extend_from_slice(valid.as_bytes());
        rest = match from {
            [b'"', after @ ..] => return Ok((bytes, after)),
            [b'\\', escape @ ..] => read_escape(escape, &mut bytes)?,
            _ => return Err(ReadStringError::BadCharacter),
        };
    }
}

fn read_escape<'a>(escape: &'a [u8], bytes: &mut Vec<u8>) -> Result<&'a [u8], ReadStringError> {
    let (&letter, rest) = escape.split_first().ok_or(ReadStringError::NoString)?;
    match letter {
        b'"' | b'\\' | b'/' => bytes.push(letter),
        b'b' => bytes.push(0x08),
        b'f' => bytes.push(0x0c),
        b'n' => bytes.push(b'\n'),
        b'r' => bytes.push(b'\r'),
        b't' => bytes.push(b'\t'),
        b'u' => return read_unit(rest, bytes),
        _ => return Err(ReadStringError::BadEscape),
    }
    Ok(rest)
}

/// A unit of UTF-16: a character, half of one, or the surrogate of a byte.
fn read_unit<'a>(text: &'a [u8], bytes: &mut Vec<u8>) -> Result<&'a [u8], ReadStringError> {
    let (unit, rest) = hex_unit(text).ok_or(ReadStringError::BadEscape)?;
    if let 0xdc80..=0xdcff = unit {
        bytes.push((unit & 0xff) as u8);
        return Ok(rest);
    }
    let (character, rest) = match unit {
        0xd800..=0xdbff => {
            let low = rest.strip_prefix(b"\\u").and_then(hex_unit).ok_or(ReadStringError::BadEscape)?;
            (char::decode_utf16([unit, low.0]).next(), low.1)
        }
        _ => (char::decode_utf16([unit]).next(), rest),
    };
    let character = character.and_then(Result::ok).ok_or(ReadStringError::BadEscape)?;
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(rest)
}

fn hex_unit(text: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let unit = digits.iter().try_fold(0, |n, &b| Some(n << 4 | char::from(b).to_digit(16)?))?;
    Some((u16::try_from(unit).ok()?, rest))
}

/// Writes one JSON object, member by member, and the end of its line.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    separator: u8,
}

impl<'a> Object<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        Object { out, separator: b'{' }
    }

    fn key(&mut self, key: &str) {
        self.out.push(self.separator);
        self.separator = b',';
        write_string(key.as_bytes(), self.out);
        self.out.push(b':');
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, key: &str, value: i128) -> Self {
        self.key(key);
        let digits = u64::try_from(value.unsigned_abs());
        if value < 0 {
            self.out.push(b'-');
        }
        match digits {
            Ok(small) => crate::size::write_integer(small, self.out),
            Err(_) => self.out.extend_from_slice(value.unsigned_abs().to_string().as_bytes()),
        }
        self
    }

    /// Adds a string.
    #[must_use]
    pub fn string(mut self, key: &str, value: &[u8]) -> Self {
        self.key(key);
        write_string(value, self.out);
        self
    }

    /// Ends the object and the line.
    pub fn end(self) {
        if self.separator == b'{' {
            self.out.push(b'{');
        }
        self.out.extend_from_slice(b"}\n");
    }
}

/// An owner or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account<'a> {
    /// By name.
    Name(&'a [u8]),
    /// By number, because it has no name or none was wanted.
    Id(u32),
}

impl Account<'_> {
    /// Adds a member to a record.
    #[must_use]
    pub fn write<'o>(self, key: &str, object: Object<'o>) -> Object<'o> {
        match self {
            Account::Name(name) => object.string(key, name),
            Account::Id(id) => object.number(key, id.into()),
        }
    }
}

/// A file, as all tools describe it.
#[derive(Clone, Copy, Debug)]
pub struct EntryRecord<'a> {
    /// Inode number of the directory.
    pub dirid: u64,
    /// Metadata with all fields of `stat(2)`.
    pub metadata: &'a Metadata,
    /// Owner.
    pub uid: Account<'a>,
    /// Group.
    pub gid: Account<'a>,
    /// Path, starting with the operand as the user gave it.
    pub path: &'a [u8],
}

impl EntryRecord<'_> {
    /// Appends the record's line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let metadata = self.metadata;
        let object = Object::begin(out)
            .number("dirid", self.dirid.into())
            .number("fileid", metadata.ino.into())
            .number("filetype", (metadata.mode & 0o170_000).into())
            .number("mode", octal_as_decimal(metadata.mode & 0o7777).into())
            .number("nlink", metadata.nlink.into());
        let object = self.gid.write("gid", self.uid.write("uid", object));
        object
            .number("size", metadata.size.into())
            .number("atime", metadata.atime.sec.into())
            .number("mtime", metadata.mtime.sec.into())
            .number("ctime", metadata.ctime.sec.into())
            .string("path", self.path)
            .end();
    }
}

/// The number whose decimal digits are the octal digits of `mode`: 0o644 becomes 644.
pub fn octal_as_decimal(mode: u32) -> u32 {
    [9, 6, 3, 0].iter().fold(0, |n, shift| n * 10 + (mode >> shift & 7))
}

/// A failure, as all tools describe it.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRecord<'a> {
    /// Why.
    pub errno: Errno,
    /// The attempted operation, in the words of [`millstream_vfs::Operation`].
    pub operation: &'a str,
    /// Path, starting with the operand as the user gave it.
    pub path: &'a [u8],
}

impl ErrorRecord<'_> {
    /// Appends the record's line.
    pub fn write(&self, out: &mut Vec<u8>) {
        Object::begin(out)
            .string("error", errno_text(self.errno).as_bytes())
            .number("errno", self.errno.raw_os_error().into())
            .string("operation", self.operation.as_bytes())
            .string("path", self.path)
            .end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &[u8]) -> String {
        let mut out = Vec::new();
        write_string(text, &mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn strings() {
        for (bytes, json) in [
            (&b"plain"[..], r#""plain""#),
            (b"", r#""""#),
            (b"a\"b\\c/d", r#""a\"b\\c/d""#),
            (b"\n\t\r\x01\x7f", r#""\n\t\r\u0001\u007f""#),
            ("é€😀".as_bytes(), "\"é€😀\""),
            ("\u{85}\u{2028}".as_bytes(), r#""\u0085\u2028""#),
            (b"\xff", r#""\udcff""#),
            (b"a\xc3", r#""a\udcc3""#),
            // A surrogate encoded like UTF-8 is not valid UTF-8.
            (b"\xed\xb3\xbf", r#""\udced\udcb3\udcbf""#),
        ] {
            assert_eq!(written(bytes), json);
            assert_eq!(read_string(json.as_bytes()), Ok((bytes.to_vec(), &b""[..])));
        }
    }

    #[test]
    fn other_writers_strings_are_read() {
        for (json, bytes) in [
            (r#""\/foo\/key""#, &b"/foo/key"[..]),
            (r#""\ud83d\ude00\b\f""#, "😀\x08\x0c".as_bytes()),
            (r#""\u00E9""#, "é".as_bytes()),
        ] {
            assert_eq!(read_string(json.as_bytes()), Ok((bytes.to_vec(), &b""[..])));
        }
    }

    #[test]
    fn bad_strings() {
        use ReadStringError::{BadCharacter, BadEscape, NoString};
        for (json, error) in [
            (&b"x"[..], NoString),
            (b"\"abc", NoString),
            (b"\"abc\\", NoString),
            (b"\"\\x\"", BadEscape),
            (b"\"\\u12\"", BadEscape),
            (b"\"\\ud800\"", BadEscape),
            (b"\"\\ud800\\u0041\"", BadEscape),
            (b"\"\\udc00\"", BadEscape),
            (b"\"\n\"", BadCharacter),
            (b"\"\xff\"", BadCharacter),
        ] {
            assert_eq!(read_string(json), Err(error), "{}", json.escape_ascii());
        }
    }

    /// Every string of up to two bytes, and random longer ones made of the bytes that matter, come back.
    #[test]
    fn writing_is_reversible() {
        let check = |bytes: &[u8]| {
            assert_eq!(read_string(written(bytes).as_bytes()), Ok((bytes.to_vec(), &b""[..])));
        };
        for a in 0..=255 {
            check(&[a]);
            (0..=255).for_each(|b| check(&[a, b]));
        }
        let pieces: [&[u8]; 12] = [
            b"a",
            b"\"",
            b"\\",
            b"\\udc80",
            b"\xc3",
            b"\xa9",
            b"\xed\xb2\x80",
            b"\xf0\x9f",
            b"\x98\x80",
            b"\n",
            b"\xff",
            "é".as_bytes(),
        ];
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..8 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                bytes.extend_from_slice(pieces[(seed % 12) as usize]);
            }
            check(&bytes);
        }
    }

    #[test]
    fn records() {
        let metadata = Metadata { ino: 7, mode: 0o100_644, nlink: 1, size: 1024, ..Metadata::default() };
        let (uid, gid) = (Account::Name(b"root"), Account::Id(5));
        let mut out = Vec::new();
        EntryRecord { dirid: 3, metadata: &metadata, uid, gid, path: b"/foo/key" }.write(&mut out);
        ErrorRecord { errno: Errno::NOENT, operation: "stat", path: b"x" }.write(&mut out);
        Object::begin(&mut out).end();
        assert_eq!(
            String::from_utf8_lossy(&out),
            concat!(
                r#"{"dirid":3,"fileid":7,"filetype":32768,"mode":644,"nlink":1,"uid":"root","gid":5,"#,
                r#""size":1024,"atime":0,"mtime":0,"ctime":0,"path":"/foo/key"}"#,
                "\n",
                r#"{"error":"No such file or directory","errno":2,"operation":"stat","path":"x"}"#,
                "\n{}\n",
            )
        );
    }

    #[test]
    fn modes_are_octal_digits() {
        for (mode, digits) in [(0o644, 644), (0o4755, 4755), (0, 0), (0o7777, 7777)] {
            assert_eq!(octal_as_decimal(mode), digits);
        }
    }
}
