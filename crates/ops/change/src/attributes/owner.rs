//! Owner and group.

use std::ffi::CStr;

use millstream_vfs::{Dir, FileKind, Ownership, Result, SymlinkBehavior};

use super::{Attribute, Effect, IfUnreadable, Plan, Status, Turn};

const SET_ID_BITS: u32 = 0o6000;
const EXECUTE_BITS: u32 = 0o111;

/// A change of owner and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerChange {
    /// The owner and group to set.
    pub owner: Ownership,
    /// The owner and group that a file must have for the change to apply.
    pub from: Ownership,
}

/// Whether `has` already matches the requested owner and group.
fn matches(wanted: Ownership, has: &Status) -> bool {
    wanted.uid.is_none_or(|uid| uid == has.uid) && wanted.gid.is_none_or(|gid| gid == has.gid)
}

/// Whether setting the owner may remove something: the system drops set-ID bits and the capabilities of executable
/// files, which stat does not show.
fn has_privileges(file: &Status) -> bool {
    match file.kind() {
        FileKind::Directory | FileKind::Symlink => false,
        _ => file.mode & (SET_ID_BITS | EXECUTE_BITS) != 0,
    }
}

impl Attribute for OwnerChange {
    type Value = Ownership;

    fn plan(&self, file: &Status, _uid: u32) -> Plan<Ownership> {
        let before = Ownership { uid: Some(file.uid), gid: Some(file.gid) };
        if !matches(self.from, file) {
            return Plan::Leave { before };
        }
        let effect = match (matches(self.owner, file), has_privileges(file)) {
            (false, _) => Effect::Changes,
            (true, true) => Effect::Touches,
            (true, false) => Effect::Nothing,
        };
        Plan::Set { before, after: self.owner, effect }
    }

    fn unconditional(&self) -> Option<Ownership> {
        (self.from == Ownership::default()).then_some(self.owner)
    }

    fn set<D: Dir>(&self, dir: &D, name: &CStr, value: Ownership, symlinks: SymlinkBehavior) -> Result<()> {
        dir.set_owner(name, value, symlinks)
    }

    /// After its subtree: a user who gives away a directory may no longer be able to read it.
    fn turn(&self, _directory: &Status) -> Turn {
        Turn::AfterSubtree
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn if_unreadable(&self) -> IfUnreadable {
        IfUnreadable::Leave
    }

    fn is_doubtful(&self, _value: Ownership) -> bool {
        false
    }

    fn differs(&self, planned: &Status, now: &Status) -> bool {
        (planned.uid, planned.gid) != (now.uid, now.gid)
    }

    fn expected_instead(&self, _file: &Status) -> Option<Ownership> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(change: OwnerChange, mode: u32) -> Option<Effect> {
        let file = Status { mode, uid: 5, gid: 6, identity: (1, 1), has_several_links: false };
        match change.plan(&file, 0) {
            Plan::Leave { .. } => None,
            Plan::Set { effect, .. } => Some(effect),
        }
    }

    const fn ids(uid: Option<u32>, gid: Option<u32>) -> Ownership {
        Ownership { uid, gid }
    }

    #[test]
    fn the_call_is_left_out_only_where_it_does_nothing() {
        let same = OwnerChange { owner: ids(Some(5), None), from: ids(None, None) };
        for (mode, expected) in [
            (0o100_644, Effect::Nothing),
            (0o100_755, Effect::Touches),
            (0o104_644, Effect::Touches),
            (0o102_640, Effect::Touches),
            (0o042_755, Effect::Nothing),
            (0o120_777, Effect::Nothing),
        ] {
            assert_eq!(effect(same, mode), Some(expected), "{mode:o}");
        }
        let other = OwnerChange { owner: ids(Some(5), Some(5)), ..same };
        assert_eq!(effect(other, 0o100_644), Some(Effect::Changes));
    }

    #[test]
    fn files_of_others_are_not_meant() {
        let owner = ids(Some(1), None);
        for (from, meant) in [
            (ids(Some(5), Some(6)), true),
            (ids(None, Some(6)), true),
            (ids(Some(6), None), false),
            (ids(Some(5), Some(5)), false),
        ] {
            assert_eq!(effect(OwnerChange { owner, from }, 0o100_644).is_some(), meant, "{from:?}");
        }
    }
}
