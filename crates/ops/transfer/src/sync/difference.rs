//! What of an entry of the destination differs from its source.

use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{FileKind, Metadata};

use super::options::{Comparison, Options};
use crate::transfer::attributes::XattrValues;

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
