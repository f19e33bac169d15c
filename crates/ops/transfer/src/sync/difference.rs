//! What of an entry of the destination differs from its source.

use millstream_vfs::{FileKind, Metadata, Timestamp};

use super::options::{Comparison, Options, TimeAccuracy};
use crate::transfer::attributes::XattrValues;

bitflags::bitflags! {
    /// What differs, or has been changed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Difference: u16 {
        /// The entry is new.
        const NEW = 1;
        /// Contents that were compared, the target of a link, the number of a device.
        const CONTENTS = 2;
        const SIZE = 4;
        const TIME = 8;
        const MODE = 16;
        const OWNER = 32;
        const GROUP = 64;
        const ACL = 128;
        const XATTR = 256;
        /// The time will be that of the run.
        const TIME_OF_RUN = 512;
        /// It counts as different, whatever differs.
        const ASSUMED = 1024;
    }
}

impl TimeAccuracy {
    /// Whether two times are the same.
    pub(super) fn are_same(self, one: Timestamp, other: Timestamp) -> bool {
        match self {
            TimeAccuracy::Nanoseconds => one == other,
            TimeAccuracy::Seconds(window) => one.sec.abs_diff(other.sec) <= u64::from(window),
            TimeAccuracy::AsStored => {
                let unit = unit(one).max(unit(other));
                one.sec == other.sec && one.nsec / unit == other.nsec / unit
            }
        }
    }
}

/// The unit that a time may have been cut to, in nanoseconds: volumes store 1, 100, 1,000, and so on.
fn unit(time: Timestamp) -> u32 {
    const UNITS: [u32; 9] =
        [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 1];
    UNITS.into_iter().find(|unit| time.nsec.is_multiple_of(*unit)).unwrap_or(1)
}

impl Options {
    /// Whether the data of a file is up to date, as far as metadata tells.
    pub(super) fn seems_up_to_date(&self, source: &Metadata, found: &Metadata) -> bool {
        source.size == found.size
            && match self.comparison {
                Comparison::SizeAndTime => self.time_accuracy.are_same(source.mtime, found.mtime),
                Comparison::Size | Comparison::Contents => true,
                Comparison::None => false,
            }
    }

    /// Whether the time of an entry is set.
    pub(super) fn sets_time(&self, kind: FileKind) -> bool {
        self.preserve.timestamps
            && !match kind {
                FileKind::Directory => self.untimed.directories,
                FileKind::Symlink => self.untimed.links,
                _ => false,
            }
    }

    /// What differs in the attributes that are preserved; extended attributes are in the order of their names.
    pub(super) fn difference(
        &self,
        (source, xattrs): (&Metadata, &XattrValues),
        (found, found_xattrs): (&Metadata, &XattrValues),
    ) -> Difference {
        let mut differs = self.metadata_difference(source, found) | differing(xattrs, found_xattrs);
        if differs.contains(Difference::MODE | Difference::ACL) {
            // With an access control list, the group's bits of a mode are the list's mask.
            let group = |xattrs: &XattrValues, mode: u32| owning_group(xattrs).unwrap_or(mode >> 3 & 7) << 3;
            let one = source.mode & 0o7707 | group(xattrs, source.mode);
            let other = found.mode & 0o7707 | group(found_xattrs, found.mode);
            differs.set(Difference::MODE, one != other);
        }
        differs
    }

    /// What differs in the attributes that are preserved, access control lists and other extended attributes apart.
    pub(super) fn metadata_difference(&self, source: &Metadata, found: &Metadata) -> Difference {
        let mut differs = Difference::empty();
        let is_link = source.kind() == FileKind::Symlink;
        let is_other_time = !self.time_accuracy.are_same(source.mtime, found.mtime);
        differs.set(Difference::TIME, self.sets_time(source.kind()) && is_other_time);
        let is_other_mode = (source.mode ^ found.mode) & 0o7777 != 0;
        differs.set(Difference::MODE, self.preserve.mode && !is_link && is_other_mode);
        let sets_owner = self.attributes().preserve.owner;
        differs.set(Difference::OWNER, sets_owner && source.uid != found.uid);
        let sets_group = self.preserve.group && self.user.may_set_group(source.gid);
        differs.set(Difference::GROUP, sets_group && source.gid != found.gid);
        differs
    }
}

/// Which of two sets of extended attributes' kinds differ; both are in the order of their names.
fn differing(xattrs: &XattrValues, found: &XattrValues) -> Difference {
    let mut differs = Difference::empty();
    let only = |one: &XattrValues, other: &XattrValues, differs: &mut Difference| {
        for attribute in one.iter().filter(|attribute| !other.contains(attribute)) {
            let is_acl = attribute.0.to_bytes().starts_with(b"system.posix_acl_");
            *differs |= if is_acl { Difference::ACL } else { Difference::XATTR };
        }
    };
    if xattrs != found {
        only(xattrs, found, &mut differs);
        only(found, xattrs, &mut differs);
    }
    differs
}

/// The permissions of the owning group in an access control list. Source: acl(5), and `linux/posix_acl_xattr.h` for the layout: a
/// version of four bytes, then for each entry tag and permissions of two bytes, and an ID of four.
fn owning_group(xattrs: &XattrValues) -> Option<u32> {
    const OWNING_GROUP: [u8; 2] = 4u16.to_le_bytes();
    let (_, list) = xattrs.iter().find(|(name, _)| name.to_bytes() == b"system.posix_acl_access")?;
    let entries = list.get(4..)?.chunks_exact(8);
    entries.filter(|entry| entry[..2] == OWNING_GROUP).map(|entry| u32::from(entry[2] & 7)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_the_coarser_one() {
        let at = |sec, nsec| Timestamp { sec, nsec };
        for (one, other, expected) in [
            (at(5, 123_456_789), at(5, 123_456_789), true),
            (at(5, 123_456_789), at(5, 123_456_788), false),
            (at(5, 123_456_789), at(5, 123_456_000), true),
            (at(5, 123_456_789), at(5, 123_457_000), false),
            (at(5, 123_456_789), at(5, 0), true),
            (at(5, 123_456_789), at(6, 0), false),
            (at(5, 123_456_700), at(5, 123_456_789), true),
            (at(-5, 500_000_000), at(-5, 0), true),
        ] {
            assert_eq!(TimeAccuracy::AsStored.are_same(one, other), expected, "{one:?} {other:?}");
            assert_eq!(TimeAccuracy::AsStored.are_same(other, one), expected, "{other:?} {one:?}");
        }
        assert!(TimeAccuracy::Seconds(1).are_same(at(5, 1), at(6, 999)));
        assert!(!TimeAccuracy::Seconds(0).are_same(at(5, 1), at(6, 1)));
        assert!(!TimeAccuracy::Nanoseconds.are_same(at(5, 1), at(5, 0)));
    }
}
