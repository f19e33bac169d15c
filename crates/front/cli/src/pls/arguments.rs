//! The possible arguments of options.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use millstream_inspect::list::options::{Indicator, Layout, SortKey, TimeField};
use millstream_system::pattern::{CaseSensitivity, matches_glob};
use millstream_text::quote::QuotingStyle;
use millstream_text::size::BlockSizeError;

use super::table::Id;
use crate::options::{Choice, Occurrence};

/// `--format`.
pub const FORMATS: &[Choice<Layout>] = &[
    Choice { words: &["verbose", "long"], meaning: Layout::Long },
    Choice { words: &["commas"], meaning: Layout::Commas },
    Choice { words: &["horizontal", "across"], meaning: Layout::Across },
    Choice { words: &["vertical"], meaning: Layout::Columns },
    Choice { words: &["single-column"], meaning: Layout::OnePerLine },
];

/// `--sort`.
pub const SORTS: &[Choice<SortKey>] = &[
    Choice { words: &["none"], meaning: SortKey::None },
    Choice { words: &["size"], meaning: SortKey::Size },
    Choice { words: &["time"], meaning: SortKey::Time },
    Choice { words: &["version"], meaning: SortKey::Version },
    Choice { words: &["extension"], meaning: SortKey::Extension },
    Choice { words: &["name"], meaning: SortKey::Name },
    Choice { words: &["width"], meaning: SortKey::Width },
];

/// `--time`.
pub const TIMES: &[Choice<TimeField>] = &[
    Choice { words: &["atime", "access", "use"], meaning: TimeField::Access },
    Choice { words: &["ctime", "status"], meaning: TimeField::Change },
    Choice { words: &["mtime", "modification"], meaning: TimeField::Modification },
    Choice { words: &["birth", "creation"], meaning: TimeField::Birth },
];

/// `--quoting-style`.
pub const QUOTING_STYLES: &[Choice<QuotingStyle>] = &[
    Choice { words: &["literal"], meaning: QuotingStyle::Literal },
    Choice { words: &["shell"], meaning: QuotingStyle::Shell },
    Choice { words: &["shell-always"], meaning: QuotingStyle::ShellAlways },
    Choice { words: &["shell-escape"], meaning: QuotingStyle::ShellEscape },
    Choice { words: &["shell-escape-always"], meaning: QuotingStyle::ShellEscapeAlways },
    Choice { words: &["c"], meaning: QuotingStyle::C },
    Choice { words: &["c-maybe"], meaning: QuotingStyle::CMaybe },
    Choice { words: &["escape"], meaning: QuotingStyle::Escape },
    Choice { words: &["locale"], meaning: QuotingStyle::Locale },
    Choice { words: &["clocale"], meaning: QuotingStyle::Clocale },
];

/// `--indicator-style`.
pub const INDICATORS: &[Choice<Indicator>] = &[
    Choice { words: &["none"], meaning: Indicator::None },
    Choice { words: &["slash"], meaning: Indicator::Slash },
    Choice { words: &["file-type"], meaning: Indicator::FileType },
    Choice { words: &["classify"], meaning: Indicator::Classify },
];

/// When to do something that is meant for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Never.
    Never,
    /// If standard output is a terminal.
    Auto,
}

/// `--color` and its like.
pub const WHENS: &[Choice<When>] = &[
    Choice { words: &["always", "yes", "force"], meaning: When::Always },
    Choice { words: &["never", "no", "none"], meaning: When::Never },
    Choice { words: &["auto", "tty", "if-tty"], meaning: When::Auto },
];

/// A number as C writes it: decimal, octal or hexadecimal. `None` if invalid, `Some(None)` if too large.
pub fn integer(text: &[u8]) -> Option<Option<usize>> {
    let text = std::str::from_utf8(text).ok()?.trim_start_matches([' ', '\t']);
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    valid.then(|| usize::from_str_radix(digits, radix).ok())
}

/// The error in a block size, in GNU's words.
pub fn block_size_message(error: BlockSizeError, option: &Occurrence<Id>) -> Vec<u8> {
    let text = option.bytes();
    let name = "--block-size argument '".as_bytes();
    let looks_like_unit = |b: &u8| b"eEgGkKmMpPtTyYzZ".contains(b);
    match error {
        BlockSizeError::TooLarge => [name, text, b"' too large"].concat(),
        BlockSizeError::Invalid if !text.first().is_some_and(looks_like_unit) => {
            [b"invalid ", name, text, b"'"].concat()
        }
        _ => [b"invalid suffix in ", name, text, b"'"].concat(),
    }
}

/// Whether `dircolors` lists the terminal as having colors.
pub fn known_terminal() -> bool {
    const TERMINALS: [&CStr; 25] = [
        c"Eterm",
        c"ansi",
        c"*color*",
        c"con[0-9]*x[0-9]*",
        c"cons25",
        c"console",
        c"cygwin",
        c"*direct*",
        c"dtterm",
        c"gnome",
        c"hurd",
        c"jfbterm",
        c"konsole",
        c"kterm",
        c"linux",
        c"linux-c",
        c"mlterm",
        c"putty",
        c"rxvt*",
        c"screen*",
        c"st",
        c"terminator",
        c"tmux*",
        c"vt100",
        c"xterm*",
    ];
    let variable = |name| std::env::var_os(name).map(OsString::into_vec).unwrap_or_default();
    let terminal = CString::new(variable("TERM")).unwrap_or_default();
    let is_known = |pattern: &&CStr| matches_glob(pattern, &terminal, CaseSensitivity::Sensitive);
    !variable("COLORTERM").is_empty() || TERMINALS.iter().any(is_known)
}

/// The operands; the current directory if there are none.
pub fn operands(operands: Vec<OsString>) -> Vec<CString> {
    let operands: Vec<_> = operands.into_iter().filter_map(|o| CString::new(o.as_bytes()).ok()).collect();
    if operands.is_empty() { vec![c".".to_owned()] } else { operands }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_c_writes_them() {
        for (text, value) in [
            ("0", Some(Some(0))),
            ("80", Some(Some(80))),
            ("0x10", Some(Some(16))),
            ("010", Some(Some(8))),
            ("08", None),
            ("-1", None),
            ("", None),
            ("x", None),
            ("99999999999999999999", Some(None)),
        ] {
            assert_eq!(integer(text.as_bytes()), value, "{text}");
        }
    }
}
