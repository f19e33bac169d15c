//! Lines about changes, in the form of rsync's `--itemize-changes`, and records of them.
//!
//! Source: the manual rsync(1), *--itemize-changes* and *--8-bit-output*.

use millstream_vfs::FileKind;

use super::difference::Difference;
use super::options::{Execution, HighBytes, Report};
use millstream_text::json::Object;

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// Data is copied.
    Transfer,
    /// Something other than a file is made or replaced.
    Create,
    /// It becomes a link to another entry.
    Link,
    /// At most its attributes are set.
    Attributes,
}

impl Update {
    fn letter(self) -> u8 {
        match self {
            Update::Transfer => b'>',
            Update::Create => b'c',
            Update::Link => b'h',
            Update::Attributes => b'.',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Update::Transfer => "copy",
            Update::Create => "create",
            Update::Link => "link",
            Update::Attributes => "set attributes",
        }
    }
}

/// One entry that changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) update: Update,
    pub(super) kind: FileKind,
    pub(super) differs: Difference,
    /// Its name in the transfer.
    pub(super) name: &'a [u8],
    /// What it leads to: the target of a symbolic link, or the other name of a hard link.
    pub(super) target: Option<&'a [u8]>,
    /// Bytes of a file that is copied.
    pub(super) bytes: Option<u64>,
}

impl Report {
    /// Appends a line about a change.
    pub(super) fn change(
        self,
        change: &Change<'_>,
        execution: Execution,
        high: HighBytes,
        out: &mut Vec<u8>,
    ) {
        let is_nothing = change.update == Update::Attributes && change.differs.is_empty();
        match self {
            Report::Nothing => {}
            _ if is_nothing && self != Report::AllItems => {}
            Report::Names if change.update == Update::Attributes && change.kind != FileKind::Directory => {}
            Report::Names => name(change, high, out),
            Report::Items | Report::AllItems => {
                letters(change, out);
                out.push(b' ');
                name(change, high, out);
            }
            Report::Json => {
                let action = in_words(change.update.word(), execution);
                let mut changes = Vec::new();
                letters(change, &mut changes);
                let mut object = Object::begin(out)
                    .string("action", &action)
                    .string("path", change.name)
                    .string("changes", &changes);
                if let Some(target) = change.target {
                    object = object.string("target", target);
                }
                if let Some(bytes) = change.bytes {
                    object = object.number("bytes", bytes.into());
                }
                object.end();
            }
        }
    }

    /// Appends that an entry of the destination is deleted; the name of a directory ends with a slash.
    pub(super) fn deletion(
        self,
        path: &[u8],
        is_directory: bool,
        execution: Execution,
        high: HighBytes,
        out: &mut Vec<u8>,
    ) {
        match self {
            Report::Nothing => return,
            Report::Json => {
                Object::begin(out)
                    .string("action", &in_words("delete", execution))
                    .string("path", path)
                    .end();
                return;
            }
            Report::Names => out.extend_from_slice(b"deleting "),
            Report::Items | Report::AllItems => out.extend_from_slice(b"*deleting   "),
        }
        escape(path, high, out);
        out.extend_from_slice(if is_directory { b"/\n" } else { b"\n" });
    }
}

/// The name of an action, or of one that is only reported.
fn in_words(words: &str, execution: Execution) -> Vec<u8> {
    match execution {
        Execution::Real => words.into(),
        Execution::DryRun => [b"would ", words.as_bytes()].concat(),
    }
}

fn letters(change: &Change<'_>, out: &mut Vec<u8>) {
    out.push(change.update.letter());
    out.push(match change.kind {
        FileKind::File => b'f',
        FileKind::Directory => b'd',
        FileKind::Symlink => b'L',
        FileKind::CharDevice | FileKind::BlockDevice => b'D',
        _ => b'S',
    });
    if change.differs.contains(Difference::NEW) {
        return out.extend_from_slice(b"+++++++++");
    }
    if change.differs.is_empty() {
        return out.extend_from_slice(b"         ");
    }
    let time = if change.differs.contains(Difference::TIME_OF_RUN) { b'T' } else { b't' };
    for (difference, letter) in [
        (Difference::CONTENTS, b'c'),
        (Difference::SIZE, b's'),
        (Difference::TIME | Difference::TIME_OF_RUN, time),
        (Difference::MODE, b'p'),
        (Difference::OWNER, b'o'),
        (Difference::GROUP, b'g'),
        (Difference::empty(), b'u'),
        (Difference::ACL, b'a'),
        (Difference::XATTR, b'x'),
    ] {
        out.push(if change.differs.intersects(difference) { letter } else { b'.' });
    }
}

/// The name, with a slash for a directory, and what it leads to.
fn name(change: &Change<'_>, high: HighBytes, out: &mut Vec<u8>) {
    if change.name.is_empty() {
        out.push(b'.');
    }
    escape(change.name, high, out);
    if change.kind == FileKind::Directory {
        out.push(b'/');
    }
    if let Some(target) = change.target {
        out.extend_from_slice(if change.update == Update::Link { b" => " } else { b" -> " });
        escape(target, high, out);
    }
    out.push(b'\n');
}

/// Appends a name as rsync prints it: what comes before the space in ASCII (apart from the tab), bytes of which `high` says so, and
/// what looks like an escape are written as `\#ooo`.
pub fn escape(text: &[u8], high: HighBytes, out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid().as_bytes();
        for (at, &byte) in valid.iter().enumerate() {
            let is_like_escape = byte == b'\\'
                && valid.get(at + 1) == Some(&b'#')
                && valid.get(at + 2..at + 5).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
            let is_control = byte < b' ' && byte != b'\t';
            let is_escaped = is_control || is_like_escape || !byte.is_ascii() && high == HighBytes::Escaped;
            if is_escaped { octal(byte, out) } else { out.push(byte) }
        }
        for &byte in chunk.invalid() {
            if high == HighBytes::Printed { out.push(byte) } else { octal(byte, out) }
        }
    }
}

fn octal(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'\\', b'#', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_rsync() {
        for (update, kind, differs, name, target, expected) in [
            (Update::Transfer, FileKind::File, Difference::NEW, &b"a"[..], None, &b">f+++++++++ a\n"[..]),
            (Update::Create, FileKind::Directory, Difference::NEW, b"d", None, b"cd+++++++++ d/\n"),
            (Update::Attributes, FileKind::Directory, Difference::TIME, b"", None, b".d..t...... ./\n"),
            (
                Update::Create,
                FileKind::Symlink,
                Difference::CONTENTS,
                b"l",
                Some(&b"t"[..]),
                b"cLc........ l -> t\n",
            ),
            (Update::Link, FileKind::File, Difference::empty(), b"h", Some(b"g"), b"hf          h => g\n"),
            (
                Update::Transfer,
                FileKind::File,
                Difference::SIZE | Difference::TIME_OF_RUN | Difference::XATTR,
                b"a\n\xff\\#012",
                None,
                b">f.sT.....x a\\#012\\#377\\#134#012\n",
            ),
        ] {
            let change = Change { update, kind, differs, name, target, bytes: None };
            let mut out = Vec::new();
            Report::Items.change(&change, Execution::Real, HighBytes::Utf8, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected));
        }
    }

    #[test]
    fn bytes_that_are_not_ascii() {
        for (high, expected) in [
            (HighBytes::Utf8, &b"\xc3\xa9\\#377\x7f\\#001\t"[..]),
            (HighBytes::Escaped, b"\\#303\\#251\\#377\x7f\\#001\t"),
            (HighBytes::Printed, b"\xc3\xa9\xff\x7f\\#001\t"),
        ] {
            let mut out = Vec::new();
            escape(b"\xc3\xa9\xff\x7f\x01\t", high, &mut out);
            assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }
}
