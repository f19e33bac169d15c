//! Permission bits.

use std::ffi::CStr;

use millstream_vfs::{Dir, FileKind, Result, SymlinkBehavior};

use super::{Attribute, Effect, IfUnreadable, Plan, Status, Turn};
use millstream_text::mode::{ALL_BITS, FileClass, Mode};

/// The permissions that the owner needs to traverse a directory.
const TRAVERSAL_BITS: u32 = 0o500;
/// The bits that the system may drop without an error.
const SPECIAL_BITS: u32 = 0o7000;
const SET_GROUP_ID: u32 = 0o2000;

/// A change of permission bits.
#[derive(Clone, Debug)]
pub struct ModeChange {
    /// The mode.
    pub mode: Mode,
    /// The process' umask.
    pub umask: u32,
    /// Whether to warn about bits that the umask kept: yes if the mode looks like an option.
    pub surprise: Surprise,
}

/// Whether to warn about bits that the umask kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surprise {
    /// Warn.
    Told,
    /// Do not warn.
    Untold,
}

fn class(file: &Status) -> FileClass {
    match file.kind() {
        FileKind::Directory => FileClass::Directory,
        _ => FileClass::File,
    }
}

fn loses_traversal(before: u32, after: u32) -> bool {
    before & TRAVERSAL_BITS & !after != 0
}

impl ModeChange {
    fn after(&self, file: &Status) -> u32 {
        self.mode.adjust(file.mode, class(file), self.umask)
    }
}

impl Attribute for ModeChange {
    type Value = u32;

    fn plan(&self, file: &Status, uid: u32) -> Plan<u32> {
        let (before, after) = (file.mode & ALL_BITS, self.after(file));
        let effect = match before == after {
            false => Effect::Changes,
            // For a caller outside the file's group, every call clears the bit.
            true if after & SET_GROUP_ID != 0 && uid != 0 => Effect::Touches,
            true => Effect::Nothing,
        };
        Plan::Set { before, after, effect }
    }

    fn unconditional(&self) -> Option<u32> {
        None
    }

    fn set<D: Dir>(&self, dir: &D, name: &CStr, value: u32, symlinks: SymlinkBehavior) -> Result<()> {
        dir.set_mode(name, value, symlinks)
    }

    fn turn(&self, directory: &Status) -> Turn {
        match loses_traversal(directory.mode, self.after(directory)) {
            true => Turn::AfterSubtree,
            false => Turn::BeforeSubtree,
        }
    }

    fn may_wait(&self) -> bool {
        let mut every = 0..=0o777;
        every
            .any(|before| loses_traversal(before, self.mode.adjust(before, FileClass::Directory, self.umask)))
    }

    fn if_unreadable(&self) -> IfUnreadable {
        IfUnreadable::Change
    }

    fn is_doubtful(&self, value: u32) -> bool {
        value & SPECIAL_BITS != 0
    }

    fn differs(&self, planned: &Status, now: &Status) -> bool {
        (planned.mode ^ now.mode) & ALL_BITS != 0
    }

    fn expected_instead(&self, file: &Status) -> Option<u32> {
        let expected = self.mode.adjust(file.mode, class(file), 0);
        (self.surprise == Surprise::Told && self.after(file) & !expected != 0).then_some(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(mode: &str) -> ModeChange {
        let mode = Mode::parse(mode.as_bytes()).expect(mode);
        ModeChange { mode, umask: 0o022, surprise: Surprise::Told }
    }

    fn status(mode: u32) -> Status {
        Status { mode, uid: 1, gid: 1, identity: (1, 1), has_several_links: false }
    }

    #[test]
    fn directories_that_would_be_closed_wait() {
        for (mode, before, turn) in [
            ("600", 0o040_755, Turn::AfterSubtree),
            ("u-r", 0o040_755, Turn::AfterSubtree),
            ("u-x", 0o040_600, Turn::BeforeSubtree),
            ("go-rwx", 0o040_755, Turn::BeforeSubtree),
            ("u+rwx", 0o040_000, Turn::BeforeSubtree),
        ] {
            assert_eq!(change(mode).turn(&status(before)), turn, "{mode}");
        }
        for (mode, may_wait) in
            [("644", true), ("755", false), ("u=g", true), ("u+rwx,u-w", false), ("-w", false)]
        {
            assert_eq!(change(mode).may_wait(), may_wait, "{mode}");
        }
    }

    #[test]
    fn the_call_is_left_out_only_where_it_does_nothing() {
        for (mode, before, uid, expected) in [
            ("644", 0o100_644, 1, Effect::Nothing),
            ("640", 0o100_644, 1, Effect::Changes),
            ("g+s", 0o042_755, 1, Effect::Touches),
            ("g+s", 0o042_755, 0, Effect::Nothing),
        ] {
            let Plan::Set { effect, .. } = change(mode).plan(&status(before), uid) else { panic!("{mode}") };
            assert_eq!(effect, expected, "{mode} {uid}");
        }
    }

    #[test]
    fn bits_that_the_umask_keeps_are_a_surprise() {
        assert_eq!(change("-w").expected_instead(&status(0o100_666)), Some(0o444));
        assert_eq!(change("-w").expected_instead(&status(0o100_644)), None);
        let told = ModeChange { surprise: Surprise::Untold, ..change("-w") };
        assert_eq!(told.expected_instead(&status(0o100_666)), None);
    }
}
