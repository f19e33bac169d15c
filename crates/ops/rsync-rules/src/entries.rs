//! Files that list rules, patterns or paths.

/// What ends an entry of such a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// A newline, or a carriage return.
    #[default]
    Line,
    /// A NUL, as of `--from0`.
    Nul,
}

/// The entries that are neither empty nor comments, which begin with `#` or `;`.
pub(crate) fn entries(content: &[u8], separator: Separator) -> impl Iterator<Item = &[u8]> {
    let ends = move |byte: &u8| match separator {
        Separator::Line => matches!(byte, b'\n' | b'\r'),
        Separator::Nul => *byte == 0,
    };
    // rsync ignores what follows a NUL in a line.
    let before_nul = |entry| <[u8]>::split(entry, |&byte| byte == 0).next().unwrap_or(entry);
    let counts = |entry: &&[u8]| !matches!(entry, [] | [b'#' | b';', ..]);
    content.split(ends).map(before_nul).filter(counts)
}

/// An entry in a message: control characters are escaped.
pub(crate) fn printable(entry: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(entry).chars() {
        if c.is_control() { text.extend(c.escape_debug()) } else { text.push(c) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_entries_and_comments_do_not_count() {
        let content = b"a\r\n\n#b\n;c\n #d \ne\0f\rg\n\0h";
        let lines: Vec<&[u8]> = entries(content, Separator::Line).collect();
        assert_eq!(lines, [&b"a"[..], b" #d ", b"e", b"g"]);
        let content = b"a\r\n\0\0#b\0;c\0 d";
        let names: Vec<&[u8]> = entries(content, Separator::Nul).collect();
        assert_eq!(names, [&b"a\r\n"[..], b" d"]);
    }

    #[test]
    fn messages_hold_no_control_characters() {
        assert_eq!(printable(b"it's \xc3\xa9\n\x1b[0m"), "it's \u{e9}\\n\\u{1b}[0m");
    }
}
