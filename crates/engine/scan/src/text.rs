//! Bytes as the text that Java makes of them.
//!
//! Spark matches patterns against, and splits, the Java string that `new String(bytes, UTF_8)` makes of a row. Where
//! bytes are not UTF-8, that string has U+FFFD, and how many depends on the decoder: for an encoded surrogate Java
//! makes one, where Unicode's recommendation, which `String::from_utf8_lossy` follows, makes three. The rules here were
//! found by comparing with a JVM (`PortableRegexTest`).

use std::borrow::Cow;

/// U+FFFD in UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// What is at the beginning of some bytes.
enum Piece {
    /// A character of so many bytes.
    Character(usize),
    /// So many bytes that become U+FFFD.
    Malformed(usize),
}

/// The UTF-8 encoding of the Java string of `bytes`.
pub(crate) fn java_text(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Err(error) = std::str::from_utf8(bytes) else { return Cow::Borrowed(bytes) };
    let mut text = Vec::with_capacity(bytes.len() + 16);
    let (valid, mut rest) = bytes.split_at(error.valid_up_to());
    text.extend_from_slice(valid);
    while !rest.is_empty() {
        let length = match piece(rest) {
            Piece::Character(length) => {
                text.extend_from_slice(&rest[..length]);
                length
            }
            Piece::Malformed(length) => {
                text.extend_from_slice(REPLACEMENT);
                length
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(text)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn piece(bytes: &[u8]) -> Piece {
    match bytes[0] {
        0..=0x7f => Piece::Character(1),
        0xc2..=0xdf => match bytes.get(1) {
            Some(&second) if is_continuation(second) => Piece::Character(2),
            _ => Piece::Malformed(1),
        },
        0xe0..=0xef => of_three(bytes),
        0xf0..=0xf4 => of_four(bytes),
        _ => Piece::Malformed(1),
    }
}

fn of_three(bytes: &[u8]) -> Piece {
    let may_follow = |second: u8| is_continuation(second) && (bytes[0] != 0xe0 || second >= 0xa0);
    match bytes {
        [_, second, ..] if !may_follow(*second) => Piece::Malformed(1),
        [0xed, 0xa0..=0xff, third, ..] if is_continuation(*third) => Piece::Malformed(3),
        [_, _, third, ..] if is_continuation(*third) => Piece::Character(3),
        [_, _, ..] => Piece::Malformed(2),
        _ => Piece::Malformed(1),
    }
}

fn of_four(bytes: &[u8]) -> Piece {
    let may_follow = |second: u8| match bytes[0] {
        0xf0 => (0x90..=0xbf).contains(&second),
        0xf4 => (0x80..=0x8f).contains(&second),
        _ => is_continuation(second),
    };
    match bytes {
        [_, second, ..] if !may_follow(*second) => Piece::Malformed(1),
        [_, _, third, ..] if !is_continuation(*third) => Piece::Malformed(2),
        [_, _, _, fourth, ..] if is_continuation(*fourth) => Piece::Character(4),
        _ => Piece::Malformed(bytes.len().min(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_bytes_become_what_java_makes_of_them() {
        for (bytes, expected) in [
            (&b"plain"[..], "plain"),
            ("é漢🙂".as_bytes(), "é漢🙂"),
            (b"caf\xe9", "caf\u{fffd}"),
            (b"\xed\xa0\x80x", "\u{fffd}x"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe2\x82x", "\u{fffd}x"),
            (b"\xe0\x80\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xf0\x9f\x99", "\u{fffd}"),
            (b"\xf0\x9f\x99x", "\u{fffd}x"),
            (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xc0\xaf\xff", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xc3\xc3\xa9", "\u{fffd}é"),
        ] {
            assert_eq!(std::str::from_utf8(&java_text(bytes)), Ok(expected), "{bytes:?}");
        }
    }
}
