//! Whether the beginning of a file is that of lines.

use crate::error::JoinError;
use crate::range::BYTE_ORDER_MARK;

/// Bytes at the start of a file that are searched for signs of a binary format.
pub(crate) const BEGINNING: usize = 4096;
/// Lists and objects of JSON that may be inside one another.
const MAX_DEPTH: usize = 512;

/// What the lines of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Text.
    #[default]
    Text,
    /// Each is a JSON value. Checked for the first line, which tells them from a document of several lines.
    Json,
}

/// Refuses a file by its beginning, which is the whole file if `is_whole`.
pub(crate) fn check(beginning: &[u8], is_whole: bool, contents: Contents) -> Result<(), JoinError> {
    if let Some(format) = millstream_codec::recognize(beginning) {
        return Err(JoinError::Format(format));
    }
    let searched = &beginning[..beginning.len().min(BEGINNING)];
    if searched.contains(&0) {
        return Err(JoinError::Binary);
    }
    if !is_text(searched, is_whole && searched.len() == beginning.len()) {
        return Err(JoinError::Control);
    }
    let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
    let text = text.trim_ascii_start();
    let end = text.iter().position(|b| matches!(b, b'\r' | b'\n'));
    let (line, is_complete) = (text[..end.unwrap_or(text.len())].trim_ascii_end(), end.is_some() || is_whole);
    if line.starts_with(b"<?xml") || line.starts_with(b"<!DOCTYPE") {
        return Err(JoinError::Document("an XML document"));
    }
    match contents {
        Contents::Text if is_complete && matches!(line, b"{" | b"[") => {
            Err(JoinError::Document("a multi-line JSON document"))
        }
        Contents::Json if !line.is_empty() && !is_json(line, is_complete) => Err(JoinError::NotJson),
        _ => Ok(()),
    }
}

/// Whether bytes have no control characters but those of text: white space, escapes, and the separators of Hive's
/// fields.
fn is_text(bytes: &[u8], is_whole: bool) -> bool {
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && !is_whole,
    };
    !bytes.iter().any(|&b| match b {
        b'\t' | b'\n' | b'\r' | 0x0c | 0x01..=0x03 => false,
        0x04..=0x08 | 0x0b | 0x1b..=0x1f => !is_utf8,
        _ => b < 0x20 || b == 0x7f,
    })
}

/// Whether a line is one JSON value, or begins like one if it is not complete. Strings may be in single quotes, and
/// numbers be `NaN`, as in Spark.
fn is_json(line: &[u8], is_complete: bool) -> bool {
    let mut parser = Parser { rest: line };
    match parser.value(0) {
        Ok(()) => parser.next_byte().is_none(),
        Err(Stop::End) => !is_complete,
        Err(Stop::Wrong) => false,
    }
}

enum Stop {
    /// The line ends within the value.
    End,
    Wrong,
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    /// The next byte that is no white space; it stays.
    fn next_byte(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn take(&mut self) -> Result<u8, Stop> {
        let byte = self.next_byte().ok_or(Stop::End)?;
        self.rest = &self.rest[1..];
        Ok(byte)
    }

    fn value(&mut self, depth: usize) -> Result<(), Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Wrong);
        }
        match self.next_byte().ok_or(Stop::End)? {
            b'{' => self.members(b'}', |parser| {
                parser.string()?;
                if parser.take()? != b':' {
                    return Err(Stop::Wrong);
                }
                parser.value(depth + 1)
            }),
            b'[' => self.members(b']', |parser| parser.value(depth + 1)),
            b'"' | b'\'' => self.string(),
            _ => self.word(),
        }
    }

    fn members(
        &mut self,
        end: u8,
        mut member: impl FnMut(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.take()?;
        if self.next_byte().ok_or(Stop::End)? == end {
            return self.take().map(drop);
        }
        loop {
            member(self)?;
            match self.take()? {
                b',' => {}
                byte if byte == end => return Ok(()),
                _ => return Err(Stop::Wrong),
            }
        }
    }

    fn string(&mut self) -> Result<(), Stop> {
        let quote = self.take()?;
        if !matches!(quote, b'"' | b'\'') {
            return Err(Stop::Wrong);
        }
        let mut bytes = self.rest.iter().enumerate();
        while let Some((at, &byte)) = bytes.next() {
            if byte == b'\\' {
                bytes.next();
            } else if byte == quote {
                self.rest = &self.rest[at + 1..];
                return Ok(());
            }
        }
        Err(Stop::End)
    }

    /// A number or a word.
    fn word(&mut self) -> Result<(), Stop> {
        let is_of_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let length = self.rest.iter().take_while(|b| is_of_word(b)).count();
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        let is_known = matches!(
            word,
            b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity" | b"INF" | b"-INF"
        );
        let is_number = std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok());
        if is_known || is_number {
            Ok(())
        } else if rest.is_empty() {
            Err(Stop::End)
        } else {
            Err(Stop::Wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_bytes() {
        for text in [
            &b""[..],
            b"\n\n",
            b"a\x01b\x02c\x03d\n",
            b"a\x01b\x04c\x08\n",
            b"caf\xe9\x01\n",
            "\u{1b}[1mé\u{1b}[0m\n".as_bytes(),
            "строка\n".as_bytes(),
            b"\xf1\xf2\xf0\xee\xea\xe0\n",
            b"\xef\xbb\xbfa\n",
            b"\x1c\x1d\x1e\x1f",
            b"<msg>1</msg>\n",
            b"{a\n",
        ] {
            assert_eq!(check(text, true, Contents::Text), Ok(()), "{text:?}");
        }
        for (bytes, why) in [
            (&b"a\0b"[..], JoinError::Binary),
            (b"a\x0eb", JoinError::Control),
            (b"a\x7f", JoinError::Control),
            (b"a\xff\x05", JoinError::Control),
            (b"\xac\xed\x00\x05", JoinError::Binary),
            (b"<?xml version=\"1.0\"?><a>", JoinError::Document("an XML document")),
            (b"\xef\xbb\xbf \n<!DOCTYPE html>", JoinError::Document("an XML document")),
            (b"{\n \"a\": 1\n}\n", JoinError::Document("a multi-line JSON document")),
            (b"PAR1\x15", JoinError::Format("Parquet")),
        ] {
            assert_eq!(check(bytes, true, Contents::Text), Err(why), "{bytes:?}");
        }
        // A character that the beginning cuts.
        let long = [b"a\x05".to_vec(), vec![b'x'; BEGINNING - 3], "é".as_bytes().to_vec()].concat();
        assert_eq!(check(&long, true, Contents::Text), Ok(()));
    }

    #[test]
    fn lines_of_json_are_told_from_documents() {
        for line in [
            &b"{}"[..],
            b"{\"a\": [1, -2.5e3, null, true], 'b': {\"c\": \"\\\"}\"}}",
            b"[]",
            b"[{\"a\":1},{\"a\":2}]",
            b"1",
            b"\"x\"",
            b"NaN",
            b"",
            b"\n\r\n {\"a\":1} ",
        ] {
            let file = [line, b"\n{\"b\":2}\n"].concat();
            assert_eq!(check(&file, true, Contents::Json), Ok(()), "{line:?}");
        }
        for line in [
            &b"{"[..],
            b"[",
            b"{\"a\":",
            b"{\"a\": 1,",
            b"{\"a\" 1}",
            b"[1 2]",
            b"x",
            b"{\"a\":1}}",
            b"{\"a\":1} {\"a\":2}",
            b"\"x",
            b"{a:1}",
        ] {
            let file = [line, b"\n \"b\": 2}\n"].concat();
            assert_eq!(check(&file, true, Contents::Json), Err(JoinError::NotJson), "{line:?}");
        }
        let whole = b"{\"a\": [1, {\"b\": \"c\"}], \"d\": truexxxx".split_at(30).0;
        for cut in 1..whole.len() {
            assert_eq!(check(&whole[..cut], false, Contents::Json), Ok(()), "{cut}");
            assert_eq!(check(&whole[..cut], true, Contents::Json), Err(JoinError::NotJson), "{cut}");
        }
        let deep = vec![b'['; 100_000];
        assert_eq!(check(&deep, false, Contents::Json), Err(JoinError::NotJson));
    }
}
