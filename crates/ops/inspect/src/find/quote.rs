//! Names in messages and on terminals, in the locale's characters.

use millstream_system::locale::Locale;

use millstream_text::quote::{Colon, ControlCharacters, Quoter, QuotingStyle};

/// Appends `name` in the locale's quotation marks, unusual characters as in C.
pub(super) fn push_quoted(out: &mut Vec<u8>, name: &[u8], locale: &'static Locale) {
    Quoter { style: QuotingStyle::Locale, control: ControlCharacters::Show, locale }.write(
        name,
        Colon::Plain,
        out,
    );
}

/// Appends `name` with `?` for every character that a terminal may take for a command.
pub(super) fn push_for_terminal(out: &mut Vec<u8>, name: &[u8], locale: &'static Locale) {
    Quoter { style: QuotingStyle::Literal, control: ControlCharacters::Hide, locale }.write(
        name,
        Colon::Plain,
        out,
    );
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
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
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
            (b"\x07\x08\t\x0b\x0c\r\x1b", b"\\007\\b\\t\\013\\f\\r\\033"),
            ("\u{e9}".as_bytes(), b"\\303\\251"),
            (b"back\\", b"back\\\\"),
        ] {
            let mut out = Vec::new();
            push_listed(&mut out, name);
            assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }
}
