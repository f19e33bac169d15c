//! The wording of GNU `chown` and `chgrp`.

use std::sync::{Mutex, PoisonError};

use millstream_change::attributes::{Event, Outcome};
use millstream_text::accounts::AccountNames;
use millstream_text::json::{Account, Object};
use millstream_vfs::{Operation, Ownership};

use super::spec::Spec;
use super::table::PCHOWN;
use crate::attributes::Wording;

/// Lines and messages about owners.
#[derive(Debug)]
pub(super) struct OwnerWording {
    spec: Spec,
    names: Mutex<AccountNames>,
}

impl OwnerWording {
    pub(super) fn new(spec: Spec) -> Self {
        OwnerWording { spec, names: Mutex::default() }
    }

    /// `ownership` or `group`, depending on the specification.
    fn subject(&self) -> &'static str {
        match (&self.spec.user, &self.spec.group) {
            (None, Some(_)) => "group",
            _ => "ownership",
        }
    }

    /// The current owner and group of a file, as far as the specification covers them.
    fn before(&self, owner: Ownership) -> Vec<u8> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let number = |id: u32| id.to_string().into_bytes();
        let uid = owner.uid.filter(|_| self.spec.user.is_some());
        let gid = owner.gid.filter(|_| self.spec.group.is_some());
        let user = uid.map(|uid| names.user(uid).map_or_else(|| number(uid), <[u8]>::to_vec));
        let group = gid.map(|gid| names.group(gid).map_or_else(|| number(gid), <[u8]>::to_vec));
        joined(user.as_deref(), group.as_deref())
    }

    /// The requested owner and group.
    fn after(&self) -> Vec<u8> {
        joined(self.spec.user.as_deref(), self.spec.group.as_deref())
    }
}

/// `user`, `group` or `user:group`.
fn joined(user: Option<&[u8]>, group: Option<&[u8]>) -> Vec<u8> {
    match (user, group) {
        (Some(user), Some(group)) => [user, b":", group].concat(),
        (Some(one), None) | (None, Some(one)) => one.to_vec(),
        (None, None) => Vec::new(),
    }
}

impl Wording for OwnerWording {
    type Value = Ownership;

    const TOOL: &'static str = PCHOWN.name;
    const OPERATION: Operation = Operation::SetOwner;

    fn setting(&self) -> &'static str {
        match self.spec.owner.uid {
            Some(_) => "changing ownership of ",
            None => "changing group of ",
        }
    }

    fn line(&self, event: &Event<'_, Ownership>, name: &[u8], out: &mut Vec<u8>) {
        let subject = self.subject().as_bytes();
        let after = self.after();
        let before = event.before.map(|before| self.before(before)).filter(|before| !before.is_empty());
        let parts: &[&[u8]] = match (event.outcome, &before) {
            (Outcome::Retained, Some(before)) => &[subject, b" of ", name, b" retained as ", before],
            (Outcome::Retained, None) => &[subject, b" of ", name, b" retained"],
            (Outcome::Failed(_), Some(before)) => {
                &[b"failed to change ", subject, b" of ", name, b" from ", before, b" to ", &after]
            }
            (Outcome::Failed(_), None) if after.is_empty() => &[b"failed to change ", subject, b" of ", name],
            (Outcome::Failed(_), None) => &[b"failed to change ", subject, b" of ", name, b" to ", &after],
            (Outcome::WouldChange, Some(before)) => {
                &[b"would change ", subject, b" of ", name, b" from ", before, b" to ", &after]
            }
            (_, Some(before)) => &[b"changed ", subject, b" of ", name, b" from ", before, b" to ", &after],
            (_, None) => &[b"changed ", subject, b" of ", name, b" to ", &after],
        };
        out.extend(parts.concat());
    }

    fn values<'o>(&self, event: &Event<'_, Ownership>, mut record: Object<'o>) -> Object<'o> {
        let Some(before) = event.before else { return record };
        let after = event.after.unwrap_or_default();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, id) in [("uid_before", before.uid), ("uid", after.uid.or(before.uid))] {
            if let Some(uid) = id {
                record = names.user(uid).map_or(Account::Id(uid), Account::Name).write(key, record);
            }
        }
        for (key, id) in [("gid_before", before.gid), ("gid", after.gid.or(before.gid))] {
            if let Some(gid) = id {
                record = names.group(gid).map_or(Account::Id(gid), Account::Name).write(key, record);
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use millstream_change::attributes::Problem;
    use millstream_vfs::Errno;

    use super::super::spec::{parse, parse_group};
    use super::*;

    fn line(spec: Spec, before: Option<(u32, u32)>, outcome: Outcome<Ownership>) -> String {
        let wording = OwnerWording::new(spec);
        let before = before.map(|(uid, gid)| Ownership { uid: Some(uid), gid: Some(gid) });
        let mut out = Vec::new();
        wording.line(&Event { path: b"f", before, after: None, outcome }, b"'f'", &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn lines_are_gnus() {
        let owner = |text: &str| parse(text.as_bytes()).expect(text).spec;
        let root = Some((0, 0));
        let failed = Outcome::Failed(Problem::Set(Errno::PERM));
        for (spec, before, outcome, expected) in [
            (owner("7"), root, Outcome::Changed, "changed ownership of 'f' from root to 7"),
            (owner(":7"), root, Outcome::Changed, "changed group of 'f' from root to 7"),
            (owner("7:8"), root, Outcome::Changed, "changed ownership of 'f' from root:root to 7:8"),
            (owner(":root"), root, failed, "failed to change ownership of 'f' from root:root to :root"),
            (owner(""), root, Outcome::Retained, "ownership of 'f' retained"),
            (owner("7"), None, failed, "failed to change ownership of 'f' to 7"),
            (owner(""), None, failed, "failed to change ownership of 'f'"),
            (
                parse_group(b"+7").expect("a group"),
                root,
                failed,
                "failed to change group of 'f' from root to +7",
            ),
            (parse_group(b"7").expect("a group"), root, Outcome::Retained, "group of 'f' retained as root"),
        ] {
            assert_eq!(line(spec, before, outcome), expected);
        }
    }
}
