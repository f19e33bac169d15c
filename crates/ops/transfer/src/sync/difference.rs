//! What of an entry of the destination differs from its source.

use millstream_rsync_rules::decision::{Comparing, Contents, Facts, Preserved, Times};
use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{FileKind, Metadata};

use super::options::Options;
use crate::transfer::attributes::XattrValues;

impl Options {
    /// How the data of a file and its copy compare, as far as metadata tells.
    pub(super) fn contents(&self, source: &Metadata, found: &Metadata) -> Contents {
        self.comparing().contents(&facts(source), &facts(found), false)
    }

    /// Whether a file of the destination stays because it is newer than its source.
    pub(super) fn keeps_newer(&self, source: &Metadata, found: &Metadata) -> bool {
        self.comparing().keeps_newer(&facts(source), &facts(found))
    }

    /// Whether the time of an entry is set.
    pub(super) fn sets_time(&self, kind: FileKind) -> bool {
        self.preserved().sets_time(kind)
    }

    /// How the time of a copy will differ that gets none.
    pub(super) fn time_of_copy(&self, source: &Metadata, found: &Metadata) -> Difference {
        self.preserved().time_of_copy(&facts(source), &facts(found), &self.comparing())
    }

    fn comparing(&self) -> Comparing {
        Comparing {
            comparison: self.comparison,
            accuracy: self.time_accuracy,
            times: Times::OfSources,
            newer: self.newer,
        }
    }

    fn preserved(&self) -> Preserved {
        let times = self.preserve.timestamps;
        Preserved {
            modes: if self.preserve.mode { 0o7777 } else { 0 },
            owner: self.attributes().preserve.owner,
            group: self.preserve.group,
            times,
            directory_times: times && !self.untimed.directories,
            link_times: times && !self.untimed.links,
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
        let (mut one, other) = (facts(source), facts(found));
        // Files cannot be given to it.
        one.group = one.group.filter(|&group| self.user.may_set_group(group));
        self.preserved().difference(&one, &other, &self.comparing())
    }
}

fn facts(metadata: &Metadata) -> Facts<u32> {
    Facts {
        kind: metadata.kind(),
        size: metadata.size,
        mtime: Some(metadata.mtime),
        mode: Some(metadata.mode),
        owner: Some(metadata.uid),
        group: Some(metadata.gid),
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

/// The permissions of the owning group in an access control list. Source: acl(5), and `linux/posix_acl_xattr.h` for the
/// layout: a version of four bytes, then for each entry tag and permissions of two bytes, and an ID of four.
fn owning_group(xattrs: &XattrValues) -> Option<u32> {
    const OWNING_GROUP: [u8; 2] = 4u16.to_le_bytes();
    let (_, list) = xattrs.iter().find(|(name, _)| name.to_bytes() == b"system.posix_acl_access")?;
    let entries = list.get(4..)?.chunks_exact(8);
    entries.filter(|entry| entry[..2] == OWNING_GROUP).map(|entry| u32::from(entry[2] & 7)).next()
}
