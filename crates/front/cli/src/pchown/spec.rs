//! `OWNER:GROUP`: parsing and display.

use std::ffi::CString;

use millstream_system::accounts;
use millstream_text::accounts::AccountNames;
use millstream_vfs::{Metadata, Ownership};

/// An owner and a group, with their names for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) owner: Ownership,
    /// The name of the user; empty if the group has a name and the user has none, which GNU chown prints as `:GROUP`.
    pub(super) user: Option<Vec<u8>>,
    /// The name of the group.
    pub(super) group: Option<Vec<u8>>,
}

/// A specification, and whether it is only valid with a dot instead of the colon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) spec: Spec,
    pub(super) separator: Separator,
}

/// The separator between owner and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// A colon, or nothing.
    Colon,
    /// A dot, the historical separator.
    Dot,
}

/// An error in a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// There is no such user.
    User,
    /// There is no such group.
    Group,
    /// A number has no login group.
    Spec,
}

impl Mistake {
    pub(super) fn text(self) -> &'static str {
        match self {
            Mistake::User => "invalid user: ",
            Mistake::Group => "invalid group: ",
            Mistake::Spec => "invalid spec: ",
        }
    }
}

/// Parses `[OWNER][:[GROUP]]`.
pub(super) fn parse(text: &[u8]) -> Result<Parsed, Mistake> {
    let colon = text.iter().position(|&b| b == b':');
    let mistake = match parse_at(text, colon) {
        Ok(spec) => return Ok(Parsed { spec, separator: Separator::Colon }),
        Err(mistake) => mistake,
    };
    let dot = text.iter().position(|&b| b == b'.').filter(|_| colon.is_none()).ok_or(mistake)?;
    let spec = parse_at(text, Some(dot)).map_err(|_| mistake)?;
    Ok(Parsed { spec, separator: Separator::Dot })
}

fn parse_at(text: &[u8], separator: Option<usize>) -> Result<Spec, Mistake> {
    let (user, group) = match separator {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    let mut spec = Spec::default();
    let mut is_number = false;
    if !user.is_empty() {
        let wants_login_group = separator.is_some() && group.is_empty();
        match named(user).and_then(|name| accounts::user_and_login_group(&name)) {
            Some((uid, login)) => {
                spec.owner.uid = Some(uid);
                spec.user = Some(user.to_vec());
                if wants_login_group {
                    spec.owner.gid = Some(login);
                    spec.group = Some(group_text(login));
                }
            }
            None if wants_login_group => return Err(Mistake::Spec),
            None => {
                let uid = number(user).filter(|&uid| uid != u32::MAX).ok_or(Mistake::User)?;
                spec.owner.uid = Some(uid);
                spec.user = Some(uid.to_string().into_bytes());
                is_number = true;
            }
        }
    }
    if !group.is_empty() {
        match named(group).and_then(|name| accounts::group_id(&name)) {
            Some(gid) => {
                spec.owner.gid = Some(gid);
                spec.group = Some(group.to_vec());
                if is_number || spec.user.is_none() {
                    spec.user = Some(Vec::new());
                }
            }
            None => {
                let gid = number(group).filter(|&gid| gid != u32::MAX).ok_or(Mistake::Group)?;
                spec.owner.gid = Some(gid);
                spec.group = Some(gid.to_string().into_bytes());
            }
        }
    }
    Ok(spec)
}

/// Parses the group of `chgrp`.
pub(super) fn parse_group(text: &[u8]) -> Result<Spec, Mistake> {
    if text.is_empty() {
        return Ok(Spec::default());
    }
    let name = CString::new(text).map_err(|_| Mistake::Group)?;
    let gid = accounts::group_id(&name).or_else(|| number(text)).ok_or(Mistake::Group)?;
    // The largest number means "unchanged" in the system call.
    let gid = Some(gid).filter(|&gid| gid != u32::MAX);
    Ok(Spec { owner: Ownership { uid: None, gid }, user: None, group: Some(text.to_vec()) })
}

/// The owner and group of a file.
pub(super) fn of_file(metadata: &Metadata) -> Spec {
    Spec {
        owner: Ownership { uid: Some(metadata.uid), gid: Some(metadata.gid) },
        user: Some(user_text(metadata.uid)),
        group: Some(group_text(metadata.gid)),
    }
}

/// The group of a file.
pub(super) fn group_of_file(metadata: &Metadata) -> Spec {
    let owner = Ownership { uid: None, gid: Some(metadata.gid) };
    Spec { owner, user: None, group: Some(group_text(metadata.gid)) }
}

fn user_text(uid: u32) -> Vec<u8> {
    AccountNames::default().user(uid).map_or_else(|| uid.to_string().into_bytes(), <[u8]>::to_vec)
}

fn group_text(gid: u32) -> Vec<u8> {
    AccountNames::default().group(gid).map_or_else(|| gid.to_string().into_bytes(), <[u8]>::to_vec)
}

/// The name to look up; with a plus sign it is a number, even if a user has that name.
fn named(text: &[u8]) -> Option<CString> {
    if text.starts_with(b"+") { None } else { CString::new(text).ok() }
}

/// A number as `strtoul(3)` reads it, but not negative.
fn number(text: &[u8]) -> Option<u32> {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
    let digits = &text[text.iter().take_while(|b| is_space(b)).count()..];
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Result<(Option<u32>, Option<u32>, String, Separator), Mistake> {
        parse(text.as_bytes()).map(|Parsed { spec, separator }| {
            let word = |word: &Option<Vec<u8>>| {
                word.as_ref().map_or("-".into(), |word| String::from_utf8_lossy(word).into_owned())
            };
            let words = format!("{} {}", word(&spec.user), word(&spec.group));
            (spec.owner.uid, spec.owner.gid, words, separator)
        })
    }

    #[test]
    fn owners_and_groups() {
        use Separator::{Colon, Dot};
        for (text, uid, gid, words, separator) in [
            ("", None, None, "- -", Colon),
            (":", None, None, "- -", Colon),
            ("root", Some(0), None, "root -", Colon),
            ("root:", Some(0), Some(0), "root root", Colon),
            (":root", None, Some(0), " root", Colon),
            (":7", None, Some(7), "- 7", Colon),
            ("+0:root", Some(0), Some(0), " root", Colon),
            ("root:7", Some(0), Some(7), "root 7", Colon),
            ("0077:+9", Some(77), Some(9), "77 9", Colon),
            (" 5", Some(5), None, "5 -", Colon),
            ("root.root", Some(0), Some(0), "root root", Dot),
            ("root.", Some(0), Some(0), "root root", Dot),
            ("1.2", Some(1), Some(2), "1 2", Dot),
        ] {
            assert_eq!(parts(text), Ok((uid, gid, words.into(), separator)), "{text}");
        }
    }

    #[test]
    fn mistakes() {
        for (text, mistake) in [
            ("no such user", Mistake::User),
            ("no such user:root", Mistake::User),
            ("no such user:", Mistake::Spec),
            ("5:", Mistake::Spec),
            ("root:no such group", Mistake::Group),
            ("1:2:3", Mistake::Group),
            ("1.2.3", Mistake::User),
            ("5.", Mistake::User),
            ("-1", Mistake::User),
            ("1 ", Mistake::User),
            ("+", Mistake::User),
            ("+root", Mistake::User),
            ("4294967295", Mistake::User),
            (":4294967296", Mistake::Group),
        ] {
            assert_eq!(parts(text), Err(mistake), "{text}");
        }
    }

    #[test]
    fn groups_alone() {
        let gid = |text: &str| parse_group(text.as_bytes()).map(|spec| spec.owner.gid);
        assert_eq!(gid("root"), Ok(Some(0)));
        assert_eq!(gid("+5"), Ok(Some(5)));
        assert_eq!((gid(""), gid("4294967295")), (Ok(None), Ok(None)));
        assert_eq!((gid("root:"), gid("+root")), (Err(Mistake::Group), Err(Mistake::Group)));
    }
}
