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

/// Appends the letters that say what changes.
pub fn letters(update: Update, kind: FileKind, differs: Difference, out: &mut Vec<u8>) {
    out.push(update.letter());
    out.push(match kind {
        FileKind::File => b'f',
        FileKind::Directory => b'd',
        FileKind::Symlink => b'L',
        FileKind::CharDevice | FileKind::BlockDevice => b'D',
        _ => b'S',
    });
    if differs.contains(Difference::NEW) {
        return out.extend_from_slice(b"+++++++++");
    }
    if differs.is_empty() {
        return out.extend_from_slice(b"         ");
    }
    let time = if differs.contains(Difference::TIME_OF_RUN) { b'T' } else { b't' };
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
        out.push(if differs.intersects(difference) { letter } else { b'.' });
    }
}

/// What the name of an entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The target of a symbolic link.
    OfLink(&'a [u8]),
    /// Another name of the same file, of which it becomes one.
    Name(&'a [u8]),
}

/// Appends the name of an entry in the transfer, with a slash for a directory, what it leads to, and a newline.
pub fn name(name: &[u8], is_directory: bool, target: Option<Target<'_>>, high: HighBytes, out: &mut Vec<u8>) {
    if name.is_empty() {
        out.push(b'.');
    }
    escape(name, high, out);
    if is_directory {
        out.push(b'/');
    }
    let target = target.map(|target| match target {
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
pub fn deletion(path: &[u8], is_directory: bool, is_itemized: bool, high: HighBytes, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_itemized { b"*deleting   " } else { b"deleting " });
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
