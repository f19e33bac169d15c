//! Lines about changes, in the form of rsync's `--itemize-changes`.
//!
//! Source: the manual rsync(1), *--itemize-changes* and *--8-bit-output*.

use millstream_vfs::FileKind;

bitflags::bitflags! {
    /// What differs, or has been changed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Difference: u16 {
        /// The entry is new.
        const NEW = 1;
        /// Contents that were compared, the target of a link, the number of a device.
        const CONTENTS = 2;
        /// The size.
        const SIZE = 4;
        /// The time.
        const TIME = 8;
        /// The permissions.
        const MODE = 16;
        /// The owner.
        const OWNER = 32;
        /// The group.
        const GROUP = 64;
        /// An access control list.
        const ACL = 128;
        /// Another extended attribute.
        const XATTR = 256;
        /// The time will be that of the run.
        const TIME_OF_RUN = 512;
        /// It counts as different, whatever differs.
        const ASSUMED = 1024;
    }
}

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
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
}

/// Which bytes of names are printed as they are, of those that are not ASCII; the others are printed as `\#ooo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighBytes {
    /// Those of characters in UTF-8.
    Utf8,
    /// None, as in the C locale.
    Escaped,
    /// All (`-8`).
    Printed,
}

/// The letters that say what changes.
pub fn letters(update: Update, kind: FileKind, differs: Difference) -> [u8; 11] {
    let mut letters = [b' '; 11];
    letters[0] = update.letter();
    letters[1] = match kind {
        FileKind::File => b'f',
        FileKind::Directory => b'd',
        FileKind::Symlink => b'L',
        FileKind::CharDevice | FileKind::BlockDevice => b'D',
        _ => b'S',
    };
    let differing = &mut letters[2..];
    if differs.contains(Difference::NEW) {
        differing.fill(b'+');
        return letters;
    }
    if differs.is_empty() {
        return letters;
    }
    let time = if differs.contains(Difference::TIME_OF_RUN) { b'T' } else { b't' };
    let each = [
        (Difference::CONTENTS, b'c'),
        (Difference::SIZE, b's'),
        (Difference::TIME | Difference::TIME_OF_RUN, time),
        (Difference::MODE, b'p'),
        (Difference::OWNER, b'o'),
        (Difference::GROUP, b'g'),
        (Difference::empty(), b'u'),
        (Difference::ACL, b'a'),
        (Difference::XATTR, b'x'),
    ];
    for (place, (difference, letter)) in differing.iter_mut().zip(each) {
        *place = if differs.intersects(difference) { letter } else { b'.' };
    }
    letters
}

/// How much a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Names (`-v`). Nothing but a directory has a line if at most its attributes are set.
    Names,
    /// The letters and the name (`-i`).
    Items,
}

/// What the name of an entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The target of a symbolic link.
    OfLink(&'a [u8]),
    /// Another name of the same file, of which it becomes one.
    Name(&'a [u8]),
}

/// An entry that changes, or that is noted because it does not.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// As [`letters`] returns them.
    pub letters: &'a [u8],
    /// Its name in the transfer; empty for the root.
    pub name: &'a [u8],
    /// Whether a slash ends its name.
    pub is_directory: bool,
    /// What it leads to, if it is a link or becomes one.
    pub target: Option<Target<'a>>,
}

/// Appends the line about a change: the name of a directory ends with a slash, and what an entry leads to follows.
pub fn change(change: &Change<'_>, form: Form, high: HighBytes, out: &mut Vec<u8>) {
    let sets_attributes = change.letters.first() == Some(&Update::Attributes.letter());
    match form {
        Form::Names if sets_attributes && !change.is_directory => return,
        Form::Names => {}
        Form::Items => {
            out.extend_from_slice(change.letters);
            out.push(b' ');
        }
    }
    if change.name.is_empty() {
        out.push(b'.');
    }
    escape(change.name, high, out);
    if change.is_directory {
        out.push(b'/');
    }
    let target = change.target.map(|target| match target {
        Target::OfLink(target) => (b" -> ", target),
        Target::Name(target) => (b" => ", target),
    });
    if let Some((arrow, target)) = target {
        out.extend_from_slice(arrow);
        escape(target, high, out);
    }
    out.push(b'\n');
}

/// Appends that an entry of the destination is deleted; the name of a directory ends with a slash.
pub fn deletion(path: &[u8], is_directory: bool, form: Form, high: HighBytes, out: &mut Vec<u8>) {
    out.extend_from_slice(match form {
        Form::Names => b"deleting ",
        Form::Items => b"*deleting   ",
    });
    escape(path, high, out);
    out.extend_from_slice(if is_directory { b"/\n" } else { b"\n" });
}

/// Appends a name as rsync prints it. Control characters except the tab, the bytes that `high` selects, and a backslash
/// that looks like the beginning of an escape are written as `\#ooo`.
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
    fn lines_name_what_changes() {
        let file = Change { letters: b">f+++++++++", name: b"a/b", is_directory: false, target: None };
        let root = Change { letters: b".d..t......", name: b"", is_directory: true, target: None };
        let link = Change { letters: b"cL+++++++++", target: Some(Target::OfLink(b"t\n")), ..file };
        let other = Change { letters: b"hf         ", target: Some(Target::Name(b"c")), ..file };
        let same = Change { letters: b".f...p.....", ..file };
        for (of, names, items) in [
            (file, "a/b\n", ">f+++++++++ a/b\n"),
            (root, "./\n", ".d..t...... ./\n"),
            (Change { name: b"d", ..root }, "d/\n", ".d..t...... d/\n"),
            (link, "a/b -> t\\#012\n", "cL+++++++++ a/b -> t\\#012\n"),
            (other, "a/b => c\n", "hf          a/b => c\n"),
            (same, "", ".f...p..... a/b\n"),
        ] {
            for (form, expected) in [(Form::Names, names), (Form::Items, items)] {
                let mut out = Vec::new();
                change(&of, form, HighBytes::Utf8, &mut out);
                assert_eq!(String::from_utf8_lossy(&out), expected);
            }
        }
    }

    #[test]
    fn lines_name_what_is_deleted() {
        let mut out = Vec::new();
        deletion(b"d", true, Form::Items, HighBytes::Utf8, &mut out);
        deletion(b"f\xff", false, Form::Names, HighBytes::Utf8, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "*deleting   d/\ndeleting f\\#377\n");
    }

    #[test]
    fn control_characters_escapes_and_invalid_bytes_are_escaped() {
        for (name, expected) in [
            (&b"a\nb"[..], "a\\#012b"),
            (b"\t\x7f", "\t\x7f"),
            (b"\\#012", "\\#134#012"),
            (b"\\#12", "\\#12"),
            ("é漢🙂".as_bytes(), "é漢🙂"),
            (b"\xff\xe9a", "\\#377\\#351a"),
            (b"a\xc3", "a\\#303"),
            (b"\xed\xa0\x80", "\\#355\\#240\\#200"),
        ] {
            let mut out = Vec::new();
            escape(name, HighBytes::Utf8, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
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
