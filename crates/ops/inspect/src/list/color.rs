//! Colors of names: the `LS_COLORS` language.
//!
//! `LS_COLORS` is a colon-separated list of `xx=SEQUENCE` and `*SUFFIX=SEQUENCE`. A sequence is written between those
//! of `lc` and `rc`. After a name comes `ec`, or else `rs` between `lc` and `rc`. The case of a suffix matters if the
//! list has the same suffix in another case with another sequence. If a suffix is given several times, the last one
//! counts.

use std::collections::{HashMap, HashSet};

use millstream_system::pattern::CaseSensitivity;
use millstream_vfs::FileKind;

/// The roles that can have a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `lc`: begins a sequence.
    Left,
    /// `rc`: ends a sequence.
    Right,
    /// `ec`: returns to normal.
    End,
    /// `rs`: returns to normal, between `lc` and `rc`.
    Reset,
    /// `no`: all text that is not a name.
    Normal,
    /// `fi`: regular files.
    File,
    /// `di`
    Directory,
    /// `ln`
    Link,
    /// `pi`
    Fifo,
    /// `so`
    Socket,
    /// `bd`
    BlockDevice,
    /// `cd`
    CharDevice,
    /// `mi`: the missing target of a link.
    Missing,
    /// `or`: a link whose target is missing.
    Orphan,
    /// `ex`
    Executable,
    /// `do`
    Door,
    /// `su`
    SetUid,
    /// `sg`
    SetGid,
    /// `st`
    Sticky,
    /// `ow`
    OtherWritable,
    /// `tw`
    StickyOtherWritable,
    /// `ca`: files with capabilities, which are only looked up if they have a color.
    Capability,
    /// `mh`
    MultipleHardLinks,
    /// `cl`: clears to the end of the line.
    ClearLine,
}

/// Key in `LS_COLORS` and sequence without it, in the order of [`Role`].
const ROLES: [(&[u8; 2], Option<&[u8]>); 24] = [
    (b"lc", Some(b"\x1b[")),
    (b"rc", Some(b"m")),
    (b"ec", None),
    (b"rs", Some(b"0")),
    (b"no", None),
    (b"fi", None),
    (b"di", Some(b"01;34")),
    (b"ln", Some(b"01;36")),
    (b"pi", Some(b"33")),
    (b"so", Some(b"01;35")),
    (b"bd", Some(b"01;33")),
    (b"cd", Some(b"01;33")),
    (b"mi", None),
    (b"or", None),
    (b"ex", Some(b"01;32")),
    (b"do", Some(b"01;35")),
    (b"su", Some(b"37;41")),
    (b"sg", Some(b"30;43")),
    (b"st", Some(b"37;44")),
    (b"ow", Some(b"34;42")),
    (b"tw", Some(b"30;42")),
    (b"ca", None),
    (b"mh", None),
    (b"cl", Some(b"\x1b[K")),
];

/// The sequences of a listing.
#[derive(Clone, Debug)]
pub struct Colors {
    roles: [Option<Vec<u8>>; 24],
    /// Suffixes, the last one given first.
    suffixes: Vec<Suffix>,
    links_as_targets: bool,
}

/// A suffix of names, with its sequence.
#[derive(Clone, Debug)]
struct Suffix {
    text: Vec<u8>,
    sequence: Vec<u8>,
    case: CaseSensitivity,
}

/// An error in `LS_COLORS`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColorError {
    /// A key that does not exist.
    #[error("unrecognized prefix: {}", .0.escape_ascii())]
    UnrecognizedPrefix(Vec<u8>),
    /// Anything else.
    #[error("unparsable value")]
    Unparsable,
}

/// The properties that decide the color of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The name, whose suffix may have a color.
    pub name: &'a [u8],
    /// The type.
    pub kind: FileKind,
    /// Mode and number of links, if they are known.
    pub attributes: Option<(u32, u32)>,
    /// Whether it has capabilities.
    pub is_capable: bool,
    /// The state of its target, if it is a link.
    pub target: Target,
}

/// The state of a link's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Unknown.
    Unknown,
    /// It exists.
    Exists,
    /// It is missing, and the subject is the link.
    MissingFromLink,
    /// It is missing, and the subject is the target.
    Missing,
}

impl Default for Colors {
    fn default() -> Self {
        let roles = ROLES.map(|(_, sequence)| sequence.map(<[u8]>::to_vec));
        Colors { roles, suffixes: Vec::new(), links_as_targets: false }
    }
}

impl Colors {
    /// From the value of `LS_COLORS`, on top of the defaults.
    ///
    /// # Errors
    /// If the value is not understood.
    pub fn parse(value: &[u8]) -> Result<Self, ColorError> {
        let mut colors = Colors::default();
        let mut rest = value;
        while let Some(&first) = rest.first() {
            match first {
                b':' => rest = &rest[1..],
                b'*' => {
                    let (suffix, after) = unescape(&rest[1..], Terminator::Equals)?;
                    let after = after.strip_prefix(b"=").ok_or(ColorError::Unparsable)?;
                    let (sequence, after) = unescape(after, Terminator::Colon)?;
                    let case = CaseSensitivity::Insensitive;
                    colors.suffixes.push(Suffix { text: suffix, sequence, case });
                    rest = after;
                }
                _ => {
                    let [a, b, b'=', after @ ..] = rest else { return Err(ColorError::Unparsable) };
                    let role = ROLES.iter().position(|(key, _)| *key == &[*a, *b]);
                    let role = role.ok_or_else(|| ColorError::UnrecognizedPrefix(vec![*a, *b]))?;
                    let (sequence, after) = unescape(after, Terminator::Colon)?;
                    colors.roles[role] = Some(sequence);
                    rest = after;
                }
            }
        }
        if colors.sequence(Role::Link) == Some(b"target") {
            colors.links_as_targets = true;
        }
        colors.suffixes.reverse();
        tell_cases_apart(&mut colors.suffixes);
        Ok(colors)
    }

    /// The sequence of a role, if it has one.
    pub fn sequence(&self, role: Role) -> Option<&[u8]> {
        self.roles[role as usize].as_deref()
    }

    /// Whether a role has a color that differs from no color at all.
    pub fn is_colored(&self, role: Role) -> bool {
        self.sequence(role).is_some_and(|s| !matches!(s, b"" | b"0" | b"00"))
    }

    /// Whether links have the colors of their targets.
    pub fn links_as_targets(&self) -> bool {
        self.links_as_targets
    }

    /// The sequence for an entry, if it has one.
    pub fn of(&self, subject: &Subject<'_>) -> Option<&[u8]> {
        let role = self.role_of(subject);
        if role == Role::File
            && let Some(suffix) = self.suffixes.iter().find(|suffix| suffix.matches(subject.name))
        {
            return Some(&suffix.sequence);
        }
        let orphan = role == Role::Link
            && matches!(subject.target, Target::Unknown | Target::MissingFromLink)
            && (self.links_as_targets || self.is_colored(Role::Orphan));
        self.sequence(if orphan { Role::Orphan } else { role })
    }

    fn role_of(&self, subject: &Subject<'_>) -> Role {
        if subject.target == Target::Missing && self.is_colored(Role::Missing) {
            return Role::Missing;
        }
        match (subject.kind, subject.attributes) {
            (FileKind::File, Some((mode, nlink))) => self.role_of_file(mode, nlink, subject.is_capable),
            (FileKind::Directory, Some((mode, _))) => self.role_of_directory(mode),
            (FileKind::File, None) => Role::File,
            (FileKind::Directory, None) => Role::Directory,
            (FileKind::Symlink, _) => Role::Link,
            (FileKind::Fifo, _) => Role::Fifo,
            (FileKind::Socket, _) => Role::Socket,
            (FileKind::BlockDevice, _) => Role::BlockDevice,
            (FileKind::CharDevice, _) => Role::CharDevice,
            (FileKind::Unknown, _) => Role::Orphan,
        }
    }

    fn role_of_file(&self, mode: u32, nlink: u32, is_capable: bool) -> Role {
        let candidates = [
            (mode & 0o4000 != 0, Role::SetUid),
            (mode & 0o2000 != 0, Role::SetGid),
            (is_capable, Role::Capability),
            (mode & 0o111 != 0, Role::Executable),
            (nlink > 1, Role::MultipleHardLinks),
        ];
        let found = candidates.into_iter().find(|&(applies, role)| applies && self.is_colored(role));
        found.map_or(Role::File, |(_, role)| role)
    }

    fn role_of_directory(&self, mode: u32) -> Role {
        let (sticky, writable) = (mode & 0o1000 != 0, mode & 0o002 != 0);
        let candidates = [
            (sticky && writable, Role::StickyOtherWritable),
            (writable, Role::OtherWritable),
            (sticky, Role::Sticky),
        ];
        let found = candidates.into_iter().find(|&(applies, role)| applies && self.is_colored(role));
        found.map_or(Role::Directory, |(_, role)| role)
    }

    /// Appends `sequence` between those of `lc` and `rc`.
    pub fn write(&self, sequence: &[u8], out: &mut Vec<u8>) {
        self.append(Role::Left, out);
        out.extend_from_slice(sequence);
        self.append(Role::Right, out);
    }

    /// Appends the sequence that resets the color.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        if self.sequence(Role::End).is_some() {
            self.append(Role::End, out);
        } else {
            self.append(Role::Left, out);
            self.append(Role::Reset, out);
            self.append(Role::Right, out);
        }
    }

    /// Appends the end of a listing in which a color was written: nothing if `lc` and `rc` are the usual ones.
    pub fn write_farewell(&self, out: &mut Vec<u8>) {
        let usual = self.sequence(Role::Left) == Some(b"\x1b[") && self.sequence(Role::Right) == Some(b"m");
        if !usual {
            self.write(b"", out);
        }
    }

    /// Appends the bare sequence of a role.
    pub fn append(&self, role: Role, out: &mut Vec<u8>) {
        out.extend_from_slice(self.sequence(role).unwrap_or_default());
    }
}

impl Suffix {
    fn matches(&self, name: &[u8]) -> bool {
        let Some(start) = name.len().checked_sub(self.text.len()) else { return false };
        match self.case {
            CaseSensitivity::Sensitive => name[start..] == self.text[..],
            CaseSensitivity::Insensitive => name[start..].eq_ignore_ascii_case(&self.text),
        }
    }
}

/// Makes case significant for suffixes that differ only in case and have different sequences; drops repeated suffixes,
/// except the last.
fn tell_cases_apart(suffixes: &mut Vec<Suffix>) {
    let mut seen = HashSet::new();
    suffixes.retain(|suffix| seen.insert(suffix.text.clone()));
    let mut sequences: HashMap<Vec<u8>, (Vec<u8>, bool)> = HashMap::new();
    for Suffix { text, sequence, .. } in suffixes.iter() {
        let (first, differ) =
            sequences.entry(text.to_ascii_lowercase()).or_insert_with(|| (sequence.clone(), false));
        *differ |= first != sequence;
    }
    for suffix in suffixes {
        if sequences[&suffix.text.to_ascii_lowercase()].1 {
            suffix.case = CaseSensitivity::Sensitive;
        }
    }
}

/// The terminators of a part of `LS_COLORS`, in addition to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminator {
    Colon,
    Equals,
}

/// Reads a part with its `\` and `^` escapes; returns it and the rest, terminator included.
fn unescape(text: &[u8], terminator: Terminator) -> Result<(Vec<u8>, &[u8]), ColorError> {
    let mut value = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [] | [b':', ..] => return Ok((value, rest)),
            [b'=', ..] if terminator == Terminator::Equals => return Ok((value, rest)),
            [b'\\', b'x' | b'X', after @ ..] => {
                let (byte, after) = read_number(after, 16)?;
                value.push(byte);
                rest = after;
            }
            [b'\\', b'0'..=b'7', ..] => {
                let (byte, after) = read_number(&rest[1..], 8)?;
                value.push(byte);
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                value.push(named_escape(*escaped));
                rest = after;
            }
            [b'\\'] => return Err(ColorError::Unparsable),
            [b'^', control @ (b'@'..=b'~'), after @ ..] => {
                value.push(control & 0x1f);
                rest = after;
            }
            [b'^', b'?', after @ ..] => {
                value.push(0x7f);
                rest = after;
            }
            [b'^', ..] => return Err(ColorError::Unparsable),
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
        }
    }
}

fn named_escape(letter: u8) -> u8 {
    match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'e' => 0x1b,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'?' => 0x7f,
        b'_' => b' ',
        other => other,
    }
}

fn read_number(text: &[u8], radix: u32) -> Result<(u8, &[u8]), ColorError> {
    let digits = text.iter().take_while(|&&b| (b as char).is_digit(radix)).count();
    let value = text[..digits].iter().fold(0u8, |n, &b| {
        n.wrapping_mul(radix as u8).wrapping_add((b as char).to_digit(radix).unwrap_or(0) as u8)
    });
    Ok((value, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &[u8], mode: u32, nlink: u32) -> Subject<'_> {
        let kind = FileKind::from_mode(mode);
        let attributes = Some((mode, nlink));
        Subject { name, kind, attributes, is_capable: false, target: Target::Unknown }
    }

    #[test]
    fn defaults_by_mode() {
        let colors = Colors::default();
        for (mode, expected) in [
            (0o100_644, None),
            (0o100_755, Some(&b"01;32"[..])),
            (0o104_755, Some(b"37;41")),
            (0o102_755, Some(b"30;43")),
            (0o040_755, Some(b"01;34")),
            (0o041_777, Some(b"30;42")),
            (0o040_777, Some(b"34;42")),
            (0o041_755, Some(b"37;44")),
            (0o120_777, Some(b"01;36")),
            (0o010_644, Some(b"33")),
        ] {
            assert_eq!(colors.of(&subject(b"x", mode, 1)), expected, "{mode:o}");
        }
    }

    #[test]
    fn endings_ignore_case_unless_their_sequences_differ_and_the_last_wins() {
        for (value, name, expected) in [
            ("*.txt=31:*~=33", "a.Txt", Some("31")),
            ("*.txt=31:*~=33", "a~", Some("33")),
            ("*.txt=31:*.TXT=32", "a.txt", Some("31")),
            ("*.txt=31:*.TXT=32", "a.TXT", Some("32")),
            ("*.txt=31:*.TXT=32", "a.Txt", None),
            ("*.txt=31:*.txt=32:*.TXT=32", "a.Txt", Some("32")),
            ("*.txt=32:*.txt=31:*.TXT=32", "a.Txt", None),
            ("*.txt=32:*.txt=31:*.TXT=32", "a.txt", Some("31")),
            ("*.gz=1:*.tar.gz=2", "a.tar.GZ", Some("2")),
            ("*.tar.gz=2:*.gz=1", "a.tar.gz", Some("1")),
        ] {
            let colors = Colors::parse(value.as_bytes()).expect("valid");
            let found = colors.of(&subject(name.as_bytes(), 0o100_644, 1));
            assert_eq!(found, expected.map(str::as_bytes), "{value} {name}");
        }
        let colors = Colors::parse(b"*.txt=31").expect("valid");
        assert_eq!(colors.of(&subject(b"a.txt", 0o100_755, 1)), Some(&b"01;32"[..]));
    }

    #[test]
    fn capabilities_come_after_set_id_bits_and_before_execution() {
        let colors = Colors::parse(b"ca=1").expect("valid");
        for (mode, expected) in [(0o104_755, "37;41"), (0o100_755, "1"), (0o100_644, "1")] {
            let capable = Subject { is_capable: true, ..subject(b"x", mode, 1) };
            assert_eq!(colors.of(&capable), Some(expected.as_bytes()), "{mode:o}");
            assert_eq!(Colors::default().of(&capable), Colors::default().of(&subject(b"x", mode, 1)));
        }
    }

    #[test]
    fn escapes() {
        let colors = Colors::parse(b"di=4;x\\e^a\\?\\n=:fi=\\x41\\101^[\\_x").expect("valid");
        assert_eq!(colors.sequence(Role::Directory), Some(&b"4;x\x1b\x01\x7f\n="[..]));
        assert_eq!(colors.sequence(Role::File), Some(&b"AA\x1b x"[..]));
    }

    #[test]
    fn bad_values() {
        for value in ["foo=1", "x=1", "di", "*.txt", "di=\\", "zz"] {
            assert!(Colors::parse(value.as_bytes()).is_err(), "{value}");
        }
        assert_eq!(Colors::parse(b"zz=1").err(), Some(ColorError::UnrecognizedPrefix(b"zz".to_vec())));
    }

    #[test]
    fn orphans() {
        let link = |target| Subject { target, ..subject(b"l", 0o120_777, 1) };
        let colors = Colors::parse(b"or=31:mi=32").expect("valid");
        assert_eq!(colors.of(&link(Target::MissingFromLink)), Some(&b"31"[..]));
        assert_eq!(colors.of(&link(Target::Exists)), Some(&b"01;36"[..]));
        assert_eq!(colors.of(&link(Target::Missing)), Some(&b"32"[..]));
        assert_eq!(Colors::default().of(&link(Target::MissingFromLink)), Some(&b"01;36"[..]));
    }
}
