//! Modes as `chmod` and `find -perm` accept them and listings show them.
//!
//! A mode is a list of changes, each of which turns old permission bits into new ones. Octal digits are changes too:
//! they keep the set-user-ID and set-group-ID bits of directories unless they name them.

/// All bits that a mode sets.
pub const ALL_BITS: u32 = 0o7777;
const SET_ID_BITS: u32 = 0o6000;
const EXECUTE_BITS: u32 = 0o111;
/// With at least this many digits, an octal mode names the set-user-ID and set-group-ID bits even if they are zeros.
const DIGITS_THAT_NAME_ALL: usize = 5;

/// The type of file that a mode is applied to: `X`, and the bits that survive, differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileClass {
    /// Anything but a directory.
    File,
    /// A directory.
    Directory,
}

/// A mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    operator: Operator,
    /// Bits of the classes that were named; [`None`] if none were, and the umask decides.
    affected: Option<u32>,
    /// Bits that are named, and changed in directories too even if they are set-ID bits.
    named: u32,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Remove,
    Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Bits {
        bits: u32,
        /// `X`: the execute bits of directories, and of files that have one.
        execute_if_any: bool,
    },
    /// The bits of the class whose bits are shifted this far from those of others.
    CopyOf { shift: u32 },
}

impl Mode {
    /// Parses octal digits or symbolic clauses.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.first().is_some_and(u8::is_ascii_digit) {
            let bits = octal(text)?;
            let named =
                if text.len() < DIGITS_THAT_NAME_ALL { bits | (ALL_BITS & !SET_ID_BITS) } else { ALL_BITS };
            return Some(Mode { changes: vec![Change::to(bits, named)] });
        }
        let mut changes = Vec::new();
        for clause in text.split(|&b| b == b',') {
            parse_clause(clause, &mut changes)?;
        }
        Some(Mode { changes })
    }

    /// The mode that sets all bits to `bits`.
    pub fn exactly(bits: u32) -> Self {
        Mode { changes: vec![Change::to(bits & ALL_BITS, ALL_BITS)] }
    }

    /// The new permission bits for `old`; `umask` masks changes that name no class.
    pub fn adjust(&self, old: u32, class: FileClass, umask: u32) -> u32 {
        self.changes.iter().fold(old & ALL_BITS, |bits, change| change.adjust(bits, class, umask))
    }
}

impl Change {
    fn to(bits: u32, named: u32) -> Self {
        let value = Value::Bits { bits, execute_if_any: false };
        Change { operator: Operator::Set, affected: Some(ALL_BITS), named, value }
    }

    fn adjust(self, old: u32, class: FileClass, umask: u32) -> u32 {
        let kept = if class == FileClass::Directory { SET_ID_BITS & !self.named } else { 0 };
        let value = self.value.bits(old, class) & self.affected.unwrap_or(!umask) & !kept;
        match self.operator {
            Operator::Add => old | value,
            Operator::Remove => old & !value,
            Operator::Set => (old & (self.affected.map_or(0, |affected| !affected) | kept)) | value,
        }
    }
}

impl Value {
    fn bits(self, old: u32, class: FileClass) -> u32 {
        match self {
            Value::Bits { bits, execute_if_any: true }
                if class == FileClass::Directory || old & EXECUTE_BITS != 0 =>
            {
                bits | EXECUTE_BITS
            }
            Value::Bits { bits, .. } => bits,
            Value::CopyOf { shift } => (old >> shift & 7) * 0o111,
        }
    }
}

fn octal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |bits, digit| {
        let bits = bits * 8 + char::from(*digit).to_digit(8)?;
        (bits <= ALL_BITS).then_some(bits)
    })
}

/// Appends the changes of `u+x-w`, or of `=644`, which names no classes.
fn parse_clause(clause: &[u8], changes: &mut Vec<Change>) -> Option<()> {
    let who_len = clause.iter().take_while(|b| b"ugoa".contains(b)).count();
    let (who, mut actions) = clause.split_at(who_len);
    let affected = affected_bits(who);
    if actions.is_empty() {
        return None;
    }
    while let [operator, rest @ ..] = actions {
        let operator = match operator {
            b'+' => Operator::Add,
            b'-' => Operator::Remove,
            b'=' => Operator::Set,
            _ => return None,
        };
        if rest.first().is_some_and(u8::is_ascii_digit) {
            // Digits name all classes, and end the clause.
            let bits = octal(rest).filter(|_| who.is_empty())?;
            changes.push(Change { operator, ..Change::to(bits, ALL_BITS) });
            return Some(());
        }
        let len = rest.iter().take_while(|b| !b"+-=".contains(b)).count();
        let (permissions, next) = rest.split_at(len);
        let value = parse_permissions(permissions)?;
        let bits = match value {
            Value::Bits { bits, .. } => bits,
            Value::CopyOf { .. } => 0,
        };
        changes.push(Change { operator, affected, named: bits & affected.unwrap_or(ALL_BITS), value });
        actions = next;
    }
    Some(())
}

fn affected_bits(who: &[u8]) -> Option<u32> {
    let bits = who.iter().map(|who| match who {
        b'u' => 0o4700,
        b'g' => 0o2070,
        b'o' => 0o1007,
        _ => ALL_BITS,
    });
    bits.reduce(|all, bits| all | bits)
}

/// The bits of a permission list, in all classes.
fn parse_permissions(permissions: &[u8]) -> Option<Value> {
    match permissions {
        b"u" => return Some(Value::CopyOf { shift: 6 }),
        b"g" => return Some(Value::CopyOf { shift: 3 }),
        b"o" => return Some(Value::CopyOf { shift: 0 }),
        _ => {}
    }
    let bits = permissions.iter().try_fold(0, |bits, permission| {
        let more = match permission {
            b'r' => 0o444,
            b'w' => 0o222,
            b'x' => EXECUTE_BITS,
            b'X' => 0,
            b's' => SET_ID_BITS,
            b't' => 0o1000,
            _ => return None,
        };
        Some(bits | more)
    })?;
    Some(Value::Bits { bits, execute_if_any: permissions.contains(&b'X') })
}

/// The permission bits as `ls -l` shows them: `rwxr-x--t`.
pub fn permission_text(mode: u32) -> [u8; 9] {
    let mut text = *b"rwxrwxrwx";
    for (bit, letter) in text.iter_mut().rev().enumerate() {
        if mode & (1 << bit) == 0 {
            *letter = b'-';
        }
    }
    for (bit, at, letter) in [(0o4000, 2, b's'), (0o2000, 5, b's'), (0o1000, 8, b't')] {
        if mode & bit != 0 {
            text[at] = if text[at] == b'x' { letter } else { letter.to_ascii_uppercase() };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileClass::{Directory, File};

    #[test]
    fn modes_are_applied() {
        for (mode, old, class, umask, expected) in [
            ("644", 0o7777, File, 0o022, 0o644),
            ("755", 0o7000, Directory, 0o022, 0o6755),
            ("00755", 0o7000, Directory, 0o022, 0o755),
            ("4755", 0o2700, Directory, 0, 0o6755),
            ("=755", 0o7000, Directory, 0o777, 0o755),
            ("+222", 0o444, File, 0o777, 0o666),
            ("-222", 0o666, File, 0o777, 0o444),
            ("+w", 0o444, File, 0o022, 0o644),
            ("a+w", 0o444, File, 0o022, 0o666),
            ("-w", 0o777, File, 0o022, 0o577),
            ("=rw", 0o777, File, 0o027, 0o640),
            ("g=rx", 0o2777, Directory, 0, 0o2757),
            ("g=rx", 0o2777, File, 0, 0o757),
            ("u=s", 0o6644, Directory, 0, 0o6044),
            ("g-s", 0o6755, Directory, 0, 0o4755),
            ("a+X", 0o644, File, 0, 0o644),
            ("a+X", 0o744, File, 0, 0o755),
            ("a+X", 0o644, Directory, 0, 0o755),
            ("u+x,a+X", 0o600, File, 0, 0o711),
            ("u=rwx,g=u,o=g-w", 0, File, 0, 0o775),
            ("+t,u+s", 0, File, 0o777, 0o5000),
            ("o+t", 0, Directory, 0, 0o1000),
            ("u+t", 0, Directory, 0, 0),
            ("+r+222", 0, File, 0o777, 0o222),
            ("a=", 0o7777, Directory, 0, 0o6000),
            ("u-rwx-x", 0o777, File, 0, 0o077),
        ] {
            let parsed = Mode::parse(mode.as_bytes()).expect(mode);
            assert_eq!(parsed.adjust(old, class, umask), expected, "{mode} of {old:o}, {class:?}");
        }
        assert_eq!(Mode::exactly(0o100_640).adjust(0o6777, Directory, 0o777), 0o640);
    }

    #[test]
    fn bad_modes_are_refused() {
        for bad in [
            "", "x", "9", "08", "77777", "10000", "644,", ",644", "u", "u=q", "u+222", "+222u", "+222+r",
            "+08", "u+rg", "+ug", "a=755", "u,g", "644u", "+77777",
        ] {
            assert_eq!(Mode::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn permissions_are_shown_as_letters() {
        for (mode, expected) in [
            (0o644, "rw-r--r--"),
            (0o7777, "rwsrwsrwt"),
            (0o7000, "--S--S--T"),
            (0o1777, "rwxrwxrwt"),
            (0o041_776, "rwxrwxrwT"),
            (0, "---------"),
        ] {
            assert_eq!(permission_text(mode), expected.as_bytes(), "{mode:o}");
        }
    }
}
