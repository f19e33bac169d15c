//! `-perm`: a mode, and the way to compare it.

use millstream_vfs::FileKind;

use millstream_text::mode::{ALL_BITS, FileClass, Mode};

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
    /// One of these is set, or the mode has no bits (`/mode`).
    Any,
}

impl ModeTest {
    /// Parses the argument of `-perm`.
    pub fn parse(argument: &[u8]) -> Option<Self> {
        let (relation, mode) = match argument {
            [b'-', mode @ ..] => (ModeRelation::All, mode),
            [b'/', mode @ ..] => (ModeRelation::Any, mode),
            mode => (ModeRelation::Exactly, mode),
        };
        // An obsolete form of `/222`.
        if relation == ModeRelation::Exactly && matches!(mode, [b'+', b'0'..=b'9', ..]) {
            return None;
        }
        let mode = Mode::parse(mode)?;
        let bits = |class| mode.adjust(0, class, 0);
        Some(ModeTest { relation, file: bits(FileClass::File), directory: bits(FileClass::Directory) })
    }

    /// Whether a file of mode `mode` passes.
    pub fn matches(self, mode: u32) -> bool {
        let wanted =
            if FileKind::from_mode(mode) == FileKind::Directory { self.directory } else { self.file };
        let bits = mode & ALL_BITS;
        match self.relation {
            ModeRelation::Exactly => bits == wanted,
            ModeRelation::All => bits & wanted == wanted,
            ModeRelation::Any => wanted == 0 || bits & wanted != 0,
        }
    }
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
            (b"=222", Exactly, 0o222, 0o222),
            (b"/+222", Any, 0o222, 0o222),
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
