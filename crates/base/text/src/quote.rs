//! Quoting styles for names, and the display width of the result.
//!
//! A name of plain ASCII letters, the usual case, is recognised in one pass over a table and copied.

use millstream_system::locale::{CharacterClass, Decoded, Encoding, Locale};

/// A quoting style, as `--quoting-style` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotingStyle {
    /// As is.
    Literal,
    /// Quoted for a shell where that is needed.
    Shell,
    /// Quoted for a shell.
    ShellAlways,
    /// As `Shell`, with unprintable characters as `$'…'`.
    ShellEscape,
    /// As `ShellAlways`, with unprintable characters as `$'…'`.
    ShellEscapeAlways,
    /// A C string literal.
    C,
    /// A C string literal where the name needs escapes.
    CMaybe,
    /// A C string literal without the quotes.
    Escape,
    /// A C string literal in the locale's single quotes.
    Locale,
    /// A C string literal in the locale's double quotes.
    Clocale,
}

/// How to write unprintable characters that the style does not escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlCharacters {
    /// They are written.
    Show,
    /// A question mark is written for each.
    Hide,
}

/// Whether a colon needs quoting: in the heading of a directory, which ends with one, it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colon {
    /// Like a letter.
    Plain,
    /// Like a space.
    Special,
}

/// The result of quoting a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Columns on a terminal.
    pub width: usize,
    /// Whether quotes or escapes were added.
    pub quoted: bool,
}

/// Writes names in one style.
#[derive(Clone, Copy, Debug)]
pub struct Quoter {
    /// The style.
    pub style: QuotingStyle,
    /// How to write control characters.
    pub control: ControlCharacters,
    /// The locale that decides which characters are printable.
    pub locale: &'static Locale,
}

/// Bytes that no style changes, wherever they are in a name.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'%' | b'+' | b',' | b'-' | b'.' | b'/' | b'@' | b']' | b'_');
        byte += 1;
    }
    table
};

/// One character of a name, or one byte that is part of none.
struct Piece<'a> {
    bytes: &'a [u8],
    width: usize,
    class: CharacterClass,
}

impl Quoter {
    /// Appends `name`.
    pub fn write(&self, name: &[u8], colon: Colon, out: &mut Vec<u8>) -> Shown {
        match colon {
            Colon::Plain => self.write_special(name, b" ", out),
            Colon::Special => self.write_special(name, b":", out),
        }
    }

    /// Appends `name`, quoting these characters too. A space among them only matters where there are no quotes.
    pub fn write_special(&self, name: &[u8], special: &[u8], out: &mut Vec<u8>) -> Shown {
        let is_plain = |b: u8| PLAIN[usize::from(b)] && (b != b'@' || !special.contains(&b));
        let plain = name.iter().all(|&b| is_plain(b));
        match self.style {
            QuotingStyle::Literal
            | QuotingStyle::Shell
            | QuotingStyle::ShellEscape
            | QuotingStyle::CMaybe
            | QuotingStyle::Escape
                if plain && !name.is_empty() =>
            {
                out.extend_from_slice(name);
                Shown { width: name.len(), quoted: false }
            }
            _ => self.write_slowly(name, special, out),
        }
    }

    fn write_slowly(&self, name: &[u8], special: &[u8], out: &mut Vec<u8>) -> Shown {
        let start = out.len();
        match self.style {
            QuotingStyle::Literal => out.extend_from_slice(name),
            QuotingStyle::Shell
            | QuotingStyle::ShellAlways
            | QuotingStyle::ShellEscape
            | QuotingStyle::ShellEscapeAlways => self.write_shell(name, special, out),
            QuotingStyle::C => self.write_c(name, (b"\"", b"\""), special, out),
            QuotingStyle::CMaybe => {
                // A backslash is doubled if there are quotes, but is no reason for them.
                if has_special(name, special) || name.contains(&b'"') || self.has_unprintable(name) {
                    self.write_c(name, (b"\"", b"\""), special, out);
                } else {
                    out.extend_from_slice(name);
                }
            }
            QuotingStyle::Escape => self.write_c(name, (b"", b""), special, out),
            QuotingStyle::Locale => self.write_c(name, self.locale_quotes(b"'"), special, out),
            QuotingStyle::Clocale => self.write_c(name, self.locale_quotes(b"\""), special, out),
        }
        let text = &out[start..];
        let quoted = text.first() != name.first() || text.len() != name.len();
        if self.control == ControlCharacters::Hide && self.leaves_control_characters() {
            self.hide_control_characters(start, out);
        }
        Shown { width: self.width_in_columns(&out[start..]), quoted }
    }

    fn leaves_control_characters(&self) -> bool {
        matches!(self.style, QuotingStyle::Literal | QuotingStyle::Shell | QuotingStyle::ShellAlways)
    }

    fn locale_quotes(&self, ascii: &'static [u8]) -> (&'static [u8], &'static [u8]) {
        match self.locale.encoding() {
            Encoding::Utf8 => ("‘".as_bytes(), "’".as_bytes()),
            Encoding::SingleByte | Encoding::Multibyte => (ascii, ascii),
        }
    }

    fn write_c(&self, name: &[u8], (open, close): (&[u8], &[u8]), special: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(open);
        let mut rest = name;
        while !rest.is_empty() {
            if !close.is_empty() && rest.starts_with(close) {
                out.push(b'\\');
                out.extend_from_slice(close);
                rest = &rest[close.len()..];
                continue;
            }
            let piece = self.next_piece(&mut rest);
            match piece.bytes {
                b"\\" => out.extend_from_slice(b"\\\\"),
                &[b' '] if !open.is_empty() => out.push(b' '),
                &[byte] if special.contains(&byte) && self.style != QuotingStyle::CMaybe => {
                    out.extend_from_slice(&[b'\\', byte]);
                }
                bytes if piece.class == CharacterClass::Printable => out.extend_from_slice(bytes),
                bytes => write_escapes(bytes, out),
            }
        }
        out.extend_from_slice(close);
    }

    fn write_shell(&self, name: &[u8], special: &[u8], out: &mut Vec<u8>) {
        let escapes = matches!(self.style, QuotingStyle::ShellEscape | QuotingStyle::ShellEscapeAlways);
        let always = matches!(self.style, QuotingStyle::ShellAlways | QuotingStyle::ShellEscapeAlways);
        let forced = has_special(name, special);
        let unprintable = escapes && self.has_unprintable(name);
        if !always && !unprintable && !forced && !needs_shell_quotes(name) {
            out.extend_from_slice(name);
        } else if !unprintable && self.fits_double_quotes(name) {
            out.push(b'"');
            for &byte in name {
                // GNU ls prints this backslash, although a shell would keep it.
                if always && byte != b' ' && special.contains(&byte) {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        } else {
            self.write_single_quoted(name, escapes, out);
        }
    }

    /// In single quotes; unprintable characters, if `escapes`, in `$'…'` between them.
    fn write_single_quoted(&self, name: &[u8], escapes: bool, out: &mut Vec<u8>) {
        out.push(b'\'');
        let mut escaping = false;
        let mut rest = name;
        while !rest.is_empty() {
            let piece = self.next_piece(&mut rest);
            if piece.bytes == b"'" {
                out.extend_from_slice(b"'\\''");
                escaping = false;
            } else if escapes && piece.class != CharacterClass::Printable {
                if !escaping {
                    out.extend_from_slice(b"'$'");
                }
                escaping = true;
                write_escapes(piece.bytes, out);
            } else {
                if escaping {
                    out.extend_from_slice(b"''");
                }
                escaping = false;
                out.extend_from_slice(piece.bytes);
            }
        }
        out.push(b'\'');
    }

    /// Whether `name` has single quotes and means the same in double quotes.
    fn fits_double_quotes(&self, name: &[u8]) -> bool {
        let fits = |i: usize, b: u8| {
            PLAIN[usize::from(b)]
                || b >= 0x80
                || matches!(b, b' ' | b'\'' | b':')
                || (i == 0 && matches!(b, b'#' | b'~'))
        };
        name.contains(&b'\'')
            && name.iter().enumerate().all(|(i, &b)| fits(i, b))
            && !self.has_unprintable(name)
    }

    fn has_unprintable(&self, name: &[u8]) -> bool {
        let mut rest = name;
        while !rest.is_empty() {
            if self.next_piece(&mut rest).class != CharacterClass::Printable {
                return true;
            }
        }
        false
    }

    fn hide_control_characters(&self, start: usize, out: &mut Vec<u8>) {
        let text = out.split_off(start);
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let piece = self.next_piece(&mut rest);
            if piece.class == CharacterClass::Printable {
                out.extend_from_slice(piece.bytes);
            } else {
                out.push(b'?');
            }
        }
    }

    /// Columns that a name takes in a grid; [`UNKNOWN_WIDTH`] if it has invalid bytes, or a character without a width.
    fn width_in_columns(&self, text: &[u8]) -> usize {
        let mut rest = text;
        while self.locale.encoding() != Encoding::SingleByte && !rest.is_empty() {
            if self.next_piece(&mut rest).class != CharacterClass::Printable {
                return UNKNOWN_WIDTH;
            }
        }
        self.width(text)
    }

    /// Columns that `text` takes. A byte that is part of no character takes one, or none where every byte is one.
    pub fn width(&self, text: &[u8]) -> usize {
        if text.iter().all(|b| (b' '..=b'~').contains(b)) {
            return text.len();
        }
        let (mut width, mut rest) = (0, text);
        while !rest.is_empty() {
            width += self.next_piece(&mut rest).width;
        }
        width
    }

    fn next_piece<'a>(&self, rest: &mut &'a [u8]) -> Piece<'a> {
        let (len, width, class) = match rest[0] {
            b' '..=b'~' => (1, 1, CharacterClass::Printable),
            0..0x20 | 0x7f => (1, 0, CharacterClass::Control),
            _ => match self.locale.decode(rest) {
                Decoded::Character { len, width, class } => (len, width, class),
                Decoded::Invalid => (1, 1, CharacterClass::Unprintable),
                Decoded::Incomplete => (rest.len(), 1, CharacterClass::Unprintable),
            },
        };
        let counts = class == CharacterClass::Printable || self.locale.encoding() != Encoding::SingleByte;
        let width = if counts { width } else { 0 };
        let (bytes, after) = rest.split_at(len);
        *rest = after;
        Piece { bytes, width, class }
    }
}

/// The width of a name that has none: as in GNU ls, one column less than nothing, modulo 2^64.
pub const UNKNOWN_WIDTH: usize = usize::MAX;

/// Whether `name` has a character that must be quoted in addition to those that always are.
fn has_special(name: &[u8], special: &[u8]) -> bool {
    name.iter().any(|b| *b != b' ' && special.contains(b))
}

/// Bytes as C escapes: the named ones, octal for the rest.
fn write_escapes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(b'\\');
        match byte {
            0x07 => out.push(b'a'),
            0x08 => out.push(b'b'),
            b'\t' => out.push(b't'),
            b'\n' => out.push(b'n'),
            0x0b => out.push(b'v'),
            0x0c => out.push(b'f'),
            b'\r' => out.push(b'r'),
            _ => out.extend([byte >> 6, byte >> 3 & 7, byte & 7].map(|digit| b'0' + digit)),
        }
    }
}

/// `text` as one word of a shell's command line, in quotes where it needs them, whatever the locale.
pub fn shell_word(text: &[u8]) -> Vec<u8> {
    if !text.is_empty() && text.iter().all(|&b| PLAIN[usize::from(b)] || b >= 0x80) {
        return text.to_vec();
    }
    let escaped = text.iter().flat_map(|b| if *b == b'\'' { &b"'\\''"[..] } else { std::slice::from_ref(b) });
    [b'\''].iter().chain(escaped).chain(b"'").copied().collect()
}

/// Whether a shell would read `name` as anything but that one word.
fn needs_shell_quotes(name: &[u8]) -> bool {
    match name {
        [] | [b'{' | b'}'] | [b'#' | b'~', ..] => true,
        _ => name.iter().any(|b| {
            matches!(
                b,
                b'\t'
                    | b'\n'
                    | b'\r'
                    | b' '
                    | b'!'
                    | b'"'
                    | b'$'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'*'
                    | b';'
                    | b'<'
                    | b'='
                    | b'>'
                    | b'?'
                    | b'['
                    | b'\\'
                    | b'^'
                    | b'`'
                    | b'|'
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn shown(style: QuotingStyle, name: &[u8]) -> String {
        let quoter = Quoter { style, control: ControlCharacters::Show, locale: Locale::from_environment() };
        let mut out = Vec::new();
        quoter.write(name, Colon::Plain, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn shell_styles() {
        use QuotingStyle::{Shell, ShellAlways, ShellEscape};
        for (style, name, expected) in [
            (Shell, "plain", "plain"),
            (Shell, "a b", "'a b'"),
            (Shell, "it's", "\"it's\""),
            (Shell, "both'\"", "'both'\\''\"'"),
            (Shell, "a#b", "a#b"),
            (Shell, "#b", "'#b'"),
            (Shell, "{a", "{a"),
            (Shell, "}", "'}'"),
            (Shell, "b=c", "'b=c'"),
            (Shell, "new\nline", "'new\nline'"),
            (Shell, "\x01", "\x01"),
            (Shell, "", "''"),
            (ShellAlways, "plain", "'plain'"),
            (ShellEscape, "new\nline", "'new'$'\\n''line'"),
            (ShellEscape, "\x01\x012", "''$'\\001\\001''2'"),
            (ShellEscape, "ab\x01'c", "'ab'$'\\001'\\''c'"),
            (ShellEscape, "it's\x01", "'it'\\''s'$'\\001'"),
            (ShellEscape, "'\x01", "''\\'''$'\\001'"),
            (ShellEscape, "tab\t", "'tab'$'\\t'"),
            (ShellEscape, "it's", "\"it's\""),
        ] {
            assert_eq!(shown(style, name.as_bytes()), expected, "{style:?} {name:?}");
        }
    }

    #[test]
    fn words_of_a_shell() {
        for text in [
            "plain/k_1.txt",
            "é",
            "a b",
            "it's",
            "''",
            "{a,b}",
            "~",
            "$x",
            "new\nline",
            "\x01",
            "-a",
            "k=1",
            "",
            "*",
        ] {
            let command = [b"printf %s ", &shell_word(text.as_bytes())[..]].concat();
            let command = std::ffi::OsString::from_vec(command);
            let printed =
                std::process::Command::new("bash").arg("-c").arg(command).output().expect("bash runs");
            assert_eq!(printed.stdout, text.as_bytes(), "{text:?}");
        }
        assert_eq!([shell_word(b"/a/b-1"), shell_word(b"it's")], [&b"/a/b-1"[..], b"'it'\\''s'"]);
    }

    #[test]
    fn c_styles() {
        use QuotingStyle::{C, CMaybe, Escape};
        for (style, name, expected) in [
            (C, "a b", "\"a b\""),
            (C, "dq\"", "\"dq\\\"\""),
            (C, "back\\slash", "\"back\\\\slash\""),
            (CMaybe, "a b", "a b"),
            (CMaybe, "a\\b", "a\\b"),
            (CMaybe, "a\tb", "\"a\\tb\""),
            (Escape, "a b", "a\\ b"),
            (Escape, "dq\"", "dq\""),
            (Escape, "\x01\n", "\\001\\n"),
        ] {
            assert_eq!(shown(style, name.as_bytes()), expected, "{style:?} {name:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_characters_are_octal() {
        assert_eq!(shown(QuotingStyle::C, b"\xff"), "\"\\377\"");
        assert_eq!(shown(QuotingStyle::ShellEscape, b"\xff"), "''$'\\377'");
    }
}
