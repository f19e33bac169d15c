//! Names in messages and on terminals, in the locale's characters.

use millstream_vfs::posix::locale::{CharacterClass, Decoded, Encoding, Locale};

/// Appends `name` in the locale's quotation marks, unusual characters as in C.
pub(super) fn push_quoted(out: &mut Vec<u8>, name: &[u8], locale: &Locale) {
    let (open, close): (&[u8], &[u8]) = match locale.encoding() {
        Encoding::Utf8 => ("\u{2018}".as_bytes(), "\u{2019}".as_bytes()),
        Encoding::Other => (b"'", b"'"),
    };
    out.extend_from_slice(open);
    for_each_character(name, locale, |character, printable| {
        match character {
            b"'" if close == b"'" => out.extend_from_slice(b"\\'"),
            b"\\" => out.extend_from_slice(b"\\\\"),
            character if character == close => {
                out.push(b'\\');
                out.extend_from_slice(character);
            }
            character if printable => out.extend_from_slice(character),
            bytes => bytes.iter().for_each(|&b| push_escaped(out, b)),
        };
    });
    out.extend_from_slice(close);
}

/// Appends `name` with `?` for every character that a terminal may take for a command.
pub(super) fn push_for_terminal(out: &mut Vec<u8>, name: &[u8], locale: &Locale) {
    for_each_character(name, locale, |character, printable| {
        if printable { out.extend_from_slice(character) } else { out.push(b'?') }
    });
}

/// Appends `name` as `-ls` shows it: ASCII only, everything else and spaces escaped.
pub(super) fn push_listed(out: &mut Vec<u8>, name: &[u8]) {
    for &byte in name {
        match byte {
            b' ' | b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x21..=0x7e => out.push(byte),
            _ => push_escaped(out, byte),
        }
    }
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        0x07 => b'a',
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0b => b'v',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Calls `look` on every character, or byte that is part of none, and tells whether it is printable.
fn for_each_character(mut text: &[u8], locale: &Locale, mut look: impl FnMut(&[u8], bool)) {
    while let Some(&first) = text.first() {
        let (len, printable) = match first {
            0x20..=0x7e => (1, true),
            0..=0x1f | 0x7f => (1, false),
            _ => match locale.decode(text) {
                Decoded::Character { len, class, .. } => (len, class == CharacterClass::Printable),
                Decoded::Invalid | Decoded::Incomplete => (1, false),
            },
        };
        let (character, rest) = text.split_at(len.clamp(1, text.len()));
        look(character, printable);
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_names_are_pure_ascii() {
        for (name, expected) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"a b", b"a\\ b"),
            (b"q\"u'o", b"q\\\"u'o"),
            (b"new\nline\x01", b"new\\nline\\001"),
            ("\u{e9}".as_bytes(), b"\\303\\251"),
            (b"back\\", b"back\\\\"),
        ] {
            let mut out = Vec::new();
            push_listed(&mut out, name);
            assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }
}
