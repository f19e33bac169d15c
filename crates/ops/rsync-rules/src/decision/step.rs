//! The whole decision about a path, once both sides have been listed.

use millstream_vfs::FileKind;

use super::{Comparing, Contents, Facts, Kinds, Missing, Present, Preserved};
use crate::itemize::{Difference, Update, letters};

/// An entry as it was listed.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// What psync knows with and without Spark.
    pub facts: Facts<&'a [u8]>,
    /// Where a link leads, and the number of a device.
    pub target: (Option<&'a [u8]>, u64),
    /// The version of an object.
    pub etag: Option<&'a [u8]>,
    /// Checksums of access control lists and of other extended attributes.
    pub extended: [Option<&'a [u8]>; 2],
    /// Whether the file has other names that matter.
    pub has_other_names: bool,
    /// Whether it is mounted in the tree, or in something that is.
    pub is_mounted: bool,
}

/// What happens to entries that only the destination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// They stay.
    None,
    /// They are deleted.
    All,
    /// The entries above and below decide.
    Examined,
}

/// The rules of a synchronization.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Which kinds of entries take part.
    pub kinds: Kinds,
    /// Which files have changed.
    pub comparing: Comparing,
    /// What the destination does not have.
    pub missing: Missing,
    /// What it has.
    pub present: Present,
    /// What only it has.
    pub deletion: Deletion,
    /// Which attributes are preserved.
    pub preserved: Preserved,
    /// Whether access control lists or other extended attributes are.
    pub preserves_extended: bool,
    /// Whether attributes of entries that exist can be set.
    pub amends: bool,
    /// Whether what stays is noted.
    pub notes_all: bool,
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A directory is made.
    Directory,
    /// A file is copied.
    Copy,
    /// Contents are compared, and copied if they differ.
    Compare,
    /// A link, a device, a pipe or a socket is made.
    Create,
    /// Attributes are set.
    Amend,
    /// It is deleted.
    Delete,
    /// Whether it is deleted depends on what is above and below.
    Examine,
    /// Nothing, and what is in a directory stays, too.
    Leave,
    /// Nothing: both sides are alike.
    Stay,
    /// Nothing, and that is reported.
    Skip,
    /// Nothing, which is an error.
    Fail,
}

/// Why that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The destination does not have it.
    New,
    /// The sizes differ.
    Size,
    /// The times differ.
    Time,
    /// Contents are to be compared.
    Contents,
    /// All files are wanted.
    Assumed,
    /// Attributes differ.
    Attributes,
    /// The destination has something of another kind.
    Kind,
    /// A link leads somewhere else.
    Target,
    /// Entries of this kind take no part.
    Unwanted,
    /// The source does not have it.
    Surplus,
    /// It is mounted.
    Mounted,
    /// The destination has it.
    Present,
    /// Something else has the name of a directory.
    Blocked,
    /// Nothing differs.
    UpToDate,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Whether an entry that a rename cannot replace has to be removed first.
    pub makes_way: bool,
    /// Which attributes differ.
    pub differs: Difference,
    /// The letters of `--itemize-changes`; empty if the path gets no line.
    pub letters: Vec<u8>,
}

impl Step {
    fn new(action: Action, reason: Reason) -> Self {
        Step { action, reason, makes_way: false, differs: Difference::empty(), letters: Vec::new() }
    }
}

impl Rules {
    /// What happens to a path; none if nothing does.
    pub fn step(&self, source: Option<&Entry<'_>>, found: Option<&Entry<'_>>) -> Option<Step> {
        match (source, found) {
            (None, None) => None,
            (None, Some(found)) => self.surplus(found),
            (Some(_), None) if self.missing == Missing::Skipped => None,
            (Some(source), None) => Some(self.creation(source, None, Reason::New)),
            (Some(source), Some(found)) => self
                .both(source, found)
                .or_else(|| if self.leaves(source, found) { None } else { self.staying(source) }),
        }
    }

    fn surplus(&self, found: &Entry<'_>) -> Option<Step> {
        let action = match self.deletion {
            Deletion::None => return None,
            _ if found.is_mounted => return Some(Step::new(Action::Skip, Reason::Mounted)),
            Deletion::All => Action::Delete,
            Deletion::Examined => Action::Examine,
        };
        Some(Step::new(action, Reason::Surplus))
    }

    fn creation(&self, source: &Entry<'_>, found: Option<&Entry<'_>>, reason: Reason) -> Step {
        let kind = source.facts.kind;
        let (action, reason) = match kind {
            FileKind::Directory => (Action::Directory, reason),
            FileKind::File => (Action::Copy, reason),
            _ if self.kinds.include(kind) => (Action::Create, reason),
            _ => (Action::Skip, Reason::Unwanted),
        };
        // Files and links are replaced by a rename, which only directories cannot be.
        let is_directory = |kind| kind == FileKind::Directory;
        let makes_way = found.is_some_and(|found| is_directory(kind) != is_directory(found.facts.kind));
        Step { makes_way, letters: self.replaced(source, found), ..Step::new(action, reason) }
    }

    fn both(&self, source: &Entry<'_>, found: &Entry<'_>) -> Option<Step> {
        let [kind, other] = [source.facts.kind, found.facts.kind];
        if self.present == Present::Left && kind != FileKind::Directory {
            let is_left = other == FileKind::Directory && self.deletion != Deletion::None;
            return is_left.then_some(Step::new(Action::Leave, Reason::Present));
        }
        if self.present == Present::Left && other != FileKind::Directory {
            return Some(Step::new(Action::Fail, Reason::Blocked));
        }
        match kind {
            FileKind::File if other == kind => self.file(source, found),
            FileKind::Directory if other == kind => self.amendment(source, found),
            FileKind::Symlink if other == kind && !self.kinds.links => None,
            _ if other == kind && self.kinds.include(kind) && source.target == found.target => {
                self.amendment(source, found)
            }
            FileKind::Symlink if other == kind => Some(self.creation(source, Some(found), Reason::Target)),
            _ => Some(self.creation(source, Some(found), Reason::Kind)),
        }
    }

    /// What happens to a file that both sides have.
    pub fn file(&self, source: &Entry<'_>, found: &Entry<'_>) -> Option<Step> {
        if self.comparing.keeps_newer(&source.facts, &found.facts) {
            return None;
        }
        let (action, reason) =
            match self.comparing.contents(&source.facts, &found.facts, is_same_object(source, found)) {
                Contents::Same => return self.amendment(source, found),
                Contents::OtherSize => (Action::Copy, Reason::Size),
                Contents::OtherTime => (Action::Copy, Reason::Time),
                Contents::Assumed => (Action::Copy, Reason::Assumed),
                Contents::Unknown => (Action::Compare, Reason::Contents),
            };
        Some(Step { letters: self.replaced(source, Some(found)), ..Step::new(action, reason) })
    }

    /// What happens to something whose contents are the same.
    pub fn amendment(&self, source: &Entry<'_>, found: &Entry<'_>) -> Option<Step> {
        let differs = self.difference(source, found);
        if !self.amends || differs.is_empty() {
            return None;
        }
        let kind = source.facts.kind;
        // Other names of what is there belong to other entries of the source.
        let is_shared = kind != FileKind::Directory && found.has_other_names && !source.has_other_names;
        let action = match kind {
            _ if !is_shared => Action::Amend,
            FileKind::File => Action::Copy,
            _ => Action::Create,
        };
        let letters = itemized(Update::Attributes, kind, differs);
        Some(Step { differs, letters, ..Step::new(action, Reason::Attributes) })
    }

    /// The step of what stays as it is, if that is noted.
    pub fn staying(&self, source: &Entry<'_>) -> Option<Step> {
        let letters = itemized(Update::Attributes, source.facts.kind, Difference::empty());
        self.notes_all.then(|| Step { letters, ..Step::new(Action::Stay, Reason::UpToDate) })
    }

    /// Whether something of the destination is left alone, whatever the source has.
    pub fn leaves(&self, source: &Entry<'_>, found: &Entry<'_>) -> bool {
        let kind = source.facts.kind;
        !self.kinds.include(kind)
            || self.present == Present::Left && kind != FileKind::Directory
            || self.comparing.keeps_newer(&source.facts, &found.facts)
    }

    /// Whether the decision needs the times that belong to the contents, which may cost a request.
    pub fn needs_times(&self, source: &Entry<'_>, found: &Entry<'_>) -> bool {
        let is_same_size = source.facts.size == found.facts.size;
        let compares = is_same_size
            && self.comparing.comparison != super::Comparison::Size
            && !is_same_object(source, found);
        [source.facts.kind, found.facts.kind] == [FileKind::File; 2]
            && (self.comparing.newer == super::Newer::Kept || compares)
    }

    /// The letters for something that is made, in the place of what was found.
    pub fn replaced(&self, source: &Entry<'_>, found: Option<&Entry<'_>>) -> Vec<u8> {
        let kind = source.facts.kind;
        let update = if kind == FileKind::File { Update::Transfer } else { Update::Create };
        let Some(found) = found.filter(|found| found.facts.kind == kind) else {
            return itemized(update, kind, Difference::NEW);
        };
        let mut differs = self.difference(source, found) | Difference::ASSUMED;
        differs |= self.preserved.time_of_copy(&source.facts, &found.facts, &self.comparing);
        let compares = self.comparing.comparison == super::Comparison::Contents;
        differs.set(Difference::CONTENTS, kind != FileKind::File || compares);
        differs.set(Difference::SIZE, kind == FileKind::File && source.facts.size != found.facts.size);
        itemized(update, kind, differs)
    }

    /// The letters for something that becomes another name of a file.
    pub fn linked(&self, source: &Entry<'_>, found: Option<&Entry<'_>>) -> Vec<u8> {
        let kind = source.facts.kind;
        let found = found.filter(|found| found.facts.kind == kind);
        let differs = found.map_or(Difference::NEW, |found| {
            self.preserved.difference(&source.facts, &found.facts, &self.comparing)
        });
        itemized(Update::Link, kind, differs)
    }

    fn difference(&self, source: &Entry<'_>, found: &Entry<'_>) -> Difference {
        let mut differs = self.preserved.difference(&source.facts, &found.facts, &self.comparing);
        let [is_other_acl, is_other_xattr] = [0, 1].map(|at| source.extended[at] != found.extended[at]);
        differs.set(Difference::ACL, self.preserves_extended && is_other_acl);
        differs.set(Difference::XATTR, self.preserves_extended && is_other_xattr);
        differs
    }
}

fn itemized(update: Update, kind: FileKind, differs: Difference) -> Vec<u8> {
    letters(update, kind, differs).into()
}

/// Simple ETags of two objects are checksums of what is in them. Those of multipart uploads have a dash.
fn is_same_object(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    let is_checksum = one.etag.is_some_and(|tag| !tag.contains(&b'-'));
    is_checksum && one.etag == other.etag && one.facts.size == other.facts.size
}

#[cfg(test)]
mod tests {
    use millstream_vfs::Timestamp;

    use super::super::{Comparison, Newer, Times};
    use super::*;
    use crate::times::TimeAccuracy;

    const RULES: Rules = Rules {
        kinds: Kinds { links: true, devices: false, specials: false },
        comparing: Comparing {
            comparison: Comparison::SizeAndTime,
            accuracy: TimeAccuracy::AsStored,
            times: Times::OfSources,
            newer: Newer::Replaced,
        },
        missing: Missing::Created,
        present: Present::Updated,
        deletion: Deletion::None,
        preserved: Preserved {
            modes: 0o7777,
            owner: true,
            group: true,
            times: true,
            directory_times: true,
            link_times: true,
        },
        preserves_extended: false,
        amends: true,
        notes_all: false,
    };

    fn entry(kind: FileKind) -> Entry<'static> {
        let mtime = Some(Timestamp { sec: 100, nsec: 0 });
        let facts =
            Facts { kind, size: 1, mtime, mode: Some(0o644), owner: Some(&b"o"[..]), group: Some(&b"g"[..]) };
        Entry {
            facts,
            target: (None, 0),
            etag: None,
            extended: [None; 2],
            has_other_names: false,
            is_mounted: false,
        }
    }

    fn told(
        rules: &Rules,
        source: Option<&Entry<'_>>,
        found: Option<&Entry<'_>>,
    ) -> Option<(Action, String)> {
        let step = rules.step(source, found)?;
        Some((step.action, String::from_utf8(step.letters).expect("letters")))
    }

    #[test]
    fn what_only_one_side_has() {
        let (file, pipe) = (entry(FileKind::File), entry(FileKind::Fifo));
        assert_eq!(told(&RULES, Some(&file), None), Some((Action::Copy, ">f+++++++++".into())));
        assert_eq!(told(&RULES, Some(&pipe), None), Some((Action::Skip, "cS+++++++++".into())));
        assert_eq!(told(&RULES, None, Some(&file)), None);
        let existing = Rules { missing: Missing::Skipped, ..RULES };
        assert_eq!(told(&existing, Some(&file), None), None);
        let deleting = Rules { deletion: Deletion::All, ..RULES };
        assert_eq!(told(&deleting, None, Some(&file)), Some((Action::Delete, String::new())));
        let mounted = Entry { is_mounted: true, ..file };
        assert_eq!(told(&deleting, None, Some(&mounted)), Some((Action::Skip, String::new())));
    }

    #[test]
    fn files_that_both_sides_have() {
        let file = entry(FileKind::File);
        let later = Some(Timestamp { sec: 200, nsec: 0 });
        let newer = Entry { facts: Facts { mtime: later, ..file.facts }, ..file };
        let larger = Entry { facts: Facts { size: 2, ..file.facts }, ..file };
        let hidden = Entry { facts: Facts { mode: Some(0o600), ..file.facts }, ..file };
        let by = |comparison| Rules { comparing: Comparing { comparison, ..RULES.comparing }, ..RULES };
        let update = Rules { comparing: Comparing { newer: Newer::Kept, ..RULES.comparing }, ..RULES };
        let left = Rules { present: Present::Left, ..RULES };
        for (rules, found, expected) in [
            (RULES, &file, None),
            (RULES, &larger, Some((Action::Copy, ">f.s......."))),
            (RULES, &newer, Some((Action::Copy, ">f..t......"))),
            (RULES, &hidden, Some((Action::Amend, ".f...p....."))),
            (by(Comparison::Size), &newer, Some((Action::Amend, ".f..t......"))),
            (by(Comparison::Contents), &file, Some((Action::Compare, ">fc........"))),
            (by(Comparison::None), &file, Some((Action::Copy, ">f........."))),
            (update, &newer, None),
            (left, &larger, None),
        ] {
            let expected = expected.map(|(action, letters)| (action, letters.to_owned()));
            assert_eq!(told(&rules, Some(&file), Some(found)), expected, "{found:?}");
        }
    }

    #[test]
    fn what_has_another_kind_makes_way() {
        let [file, directory, link] = [FileKind::File, FileKind::Directory, FileKind::Symlink].map(entry);
        for (source, found, action, makes_way) in [
            (&directory, &file, Action::Directory, true),
            (&file, &directory, Action::Copy, true),
            (&link, &file, Action::Create, false),
            (&file, &link, Action::Copy, false),
        ] {
            let step = RULES.step(Some(source), Some(found)).expect("a step");
            assert_eq!((step.action, step.reason, step.makes_way), (action, Reason::Kind, makes_way));
        }
    }

    #[test]
    fn objects_with_the_same_checksum_need_no_times() {
        let file = entry(FileKind::File);
        let later = Some(Timestamp { sec: 200, nsec: 0 });
        let object = |etag: &'static [u8]| Entry { etag: Some(etag), ..file };
        let newer =
            |etag: &'static [u8]| Entry { facts: Facts { mtime: later, ..file.facts }, ..object(etag) };
        for (etag, needs) in [(&b"a"[..], false), (b"a-2", true)] {
            assert_eq!(RULES.needs_times(&object(etag), &newer(etag)), needs);
            let step = RULES.step(Some(&object(etag)), Some(&newer(etag))).expect("a step");
            assert_eq!(step.action, if needs { Action::Copy } else { Action::Amend });
        }
    }
}
