//! `-perm`: octal and symbolic modes.

/// A test of permission bits. Directories have their own bits because of `X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModeTest {
    /// How the bits are compared.
    pub relation: ModeRelation,
    /// Bits for all but directories.
    pub file: u32,
    /// Bits for directories.
    pub directory: u32,
}

/// How permission bits are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeRelation {
    /// They are exactly these.
    Exactly,
    /// All of these are set (`-mode`).
    All,
    /// One of these is set, or there are none to be set (`/mode`).
    Any,
}

const ALL_BITS: u32 = 0o7777;
const TYPE_BITS: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;

impl ModeTest {
    /// Parses the argument of `-perm`.
    pub fn parse(argument: &[u8]) -> Option<Self> {
        let (relation, mode) = match argument {
            [b'-', mode @ ..] => (ModeRelation::All, mode),
            [b'/', mode @ ..] => (ModeRelation::Any, mode),
            mode => (ModeRelation::Exactly, mode),
        };
        let (file, directory) = match parse_octal(mode)? {
            Some(bits) => (bits, bits),
            None => (symbolic(mode, FileClass::File)?, symbolic(mode, FileClass::Directory)?),
        };
        Some(ModeTest { relation, file, directory })
    }

    /// Whether a file of mode `mode` passes.
    pub fn matches(self, mode: u32) -> bool {
        let wanted = if mode & TYPE_BITS == DIRECTORY { self.directory } else { self.file };
        let bits = mode & ALL_BITS;
        match self.relation {
            ModeRelation::Exactly => bits == wanted,
            ModeRelation::All => bits & wanted == wanted,
            ModeRelation::Any => wanted == 0 || bits & wanted != 0,
        }
    }
}

/// `Some(None)` if the mode is not written in digits, `None` if it is and is wrong.
fn parse_octal(mode: &[u8]) -> Option<Option<u32>> {
    if !mode.first()?.is_ascii_digit() {
        return Some(None);
    }
    let mut bits = 0;
    for digit in mode {
        if !(b'0'..=b'7').contains(digit) {
            return None;
        }
        bits = bits * 8 + u32::from(digit - b'0');
        if bits > ALL_BITS {
            return None;
        }
    }
    Some(Some(bits))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileClass {
    File,
    Directory,
}

/// Applies the clauses to a mode without any bits, as if no bit were masked.
fn symbolic(text: &[u8], class: FileClass) -> Option<u32> {
    let mut bits = 0;
    for clause in text.split(|&b| b == b',') {
        let who_len = clause.iter().take_while(|b| b"ugoa".contains(b)).count();
        let (who, mut actions) = clause.split_at(who_len);
        let affected = affected_bits(who);
        if actions.is_empty() {
            return None;
        }
        while let [operator, rest @ ..] = actions {
            let len = rest.iter().take_while(|b| !b"+-=".contains(b)).count();
            let (permissions, next) = rest.split_at(len);
            let value = permission_bits(permissions, bits, class)? & affected;
            bits = match operator {
                b'+' => bits | value,
                b'-' => bits & !value,
                b'=' => (bits & !affected) | value,
                _ => return None,
            };
            actions = next;
        }
    }
    Some(bits)
}

fn affected_bits(who: &[u8]) -> u32 {
    if who.is_empty() {
        return ALL_BITS;
    }
    who.iter().fold(0, |bits, who| {
        bits | match who {
            b'u' => 0o4700,
            b'g' => 0o2070,
            b'o' => 0o1007,
            _ => ALL_BITS,
        }
    })
}

/// The bits of a permission list, in all places where they may apply.
fn permission_bits(permissions: &[u8], present: u32, class: FileClass) -> Option<u32> {
    if let [b'u' | b'g' | b'o'] = permissions {
        let shift = match permissions[0] {
            b'u' => 6,
            b'g' => 3,
            _ => 0,
        };
        return Some((present >> shift & 7) * 0o111);
    }
    permissions.iter().try_fold(0, |bits, permission| {
        let more = match permission {
            b'r' => 0o444,
            b'w' => 0o222,
            b'x' => 0o111,
            b'X' if class == FileClass::Directory || present & 0o111 != 0 => 0o111,
            b'X' => 0,
            b's' => 0o6000,
            b't' => 0o1000,
            _ => return None,
        };
        Some(bits | more)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ModeRelation::{All, Any, Exactly};

    #[test]
    fn modes_are_read_in_octal_and_in_symbols() {
        for (argument, relation, file, directory) in [
            (&b"644"[..], Exactly, 0o644, 0o644),
            (b"-022", All, 0o022, 0o022),
            (b"/7000", Any, 0o7000, 0o7000),
            (b"u=rw,g=r,o=r", Exactly, 0o644, 0o644),
            (b"-g+w,u+w", All, 0o220, 0o220),
            (b"/u=s,g=s", Any, 0o6000, 0o6000),
            (b"a+X", Exactly, 0, 0o111),
            (b"u=rwx,g=u,o=g-w", Exactly, 0o775, 0o775),
            (b"+t", Exactly, 0o1000, 0o1000),
            (b"u+", Exactly, 0, 0),
        ] {
            let expected = ModeTest { relation, file, directory };
            assert_eq!(ModeTest::parse(argument), Some(expected), "{}", argument.escape_ascii());
        }
    }

    #[test]
    fn bad_modes_are_refused() {
        for bad in [&b""[..], b"-", b"/", b"x", b"9", b"+222", b"77777", b"644,", b"u", b"u=q", b"08"] {
            assert_eq!(ModeTest::parse(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn relations_compare_as_documented() {
        for (argument, mode, expected) in [
            (&b"644"[..], 0o100_644, true),
            (b"644", 0o100_645, false),
            (b"-600", 0o100_644, true),
            (b"-111", 0o100_644, false),
            (b"/222", 0o100_444, false),
            (b"/444", 0o100_400, true),
            (b"/0", 0o100_000, true),
            (b"-a+X", 0o040_755, true),
        ] {
            let test = ModeTest::parse(argument).expect("valid");
            assert_eq!(test.matches(mode), expected, "{} {mode:o}", argument.escape_ascii());
        }
    }
}
