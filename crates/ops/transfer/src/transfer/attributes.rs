//! The attributes that a copy gets.
//!
//! The order matters. The owner comes first, because setting it clears set-user-ID bits and capabilities. Extended
//! attributes follow while the file is still writable, then the mode. The times come last, so that an incomplete file
//! never has the time of its source.

use std::cell::Cell;
use std::ffi::{CStr, CString};

use millstream_vfs::{
    Dir, Errno, Error, Fields, File, FileKind, Metadata, Operation, Ownership, Result, SymlinkBehavior,
    Volume,
};
use millstream_walk::Entry;

use super::options::{
    AttributeOptions, IncompleteTimes, ModeSource, Namespaces, OwnershipErrors, Preserve, Xattrs,
};
use super::place::{Budget, Origin, Place};
use super::report::Trouble;

const ACCESS_ACL: &CStr = c"system.posix_acl_access";
const DEFAULT_ACL: &CStr = c"system.posix_acl_default";
const CAPABILITIES: &CStr = c"security.capability";
const SPECIAL_BITS: u32 = 0o7000;

/// Extended attributes with their values.
pub(crate) type XattrValues = Vec<(CString, Vec<u8>)>;

/// The settings and process state that decide on attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    pub(crate) options: AttributeOptions,
    /// The umask of the process.
    pub(crate) umask: u32,
}

/// The state of a file before its attributes are set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before<'a> {
    /// Its metadata.
    pub(crate) metadata: &'a Metadata,
    /// The permission bits it was created with, if its owner has been given more since.
    pub(crate) made_with: Option<u32>,
    /// Whether this run created it.
    pub(crate) fresh: bool,
    /// Whether it may have an access control list of its own.
    pub(crate) may_have_acl: bool,
    /// Whether an attribute of its source could not be read.
    pub(crate) lacks_attribute: bool,
    /// The permission bits of the file that it replaces, which it gets unless those of the source are preserved.
    pub(crate) replaced_mode: Option<u32>,
}

/// Receives failures.
pub(crate) type Report<'r> = &'r mut dyn FnMut(Trouble, Errno);

impl Attributes {
    pub(crate) fn new(options: AttributeOptions) -> Self {
        // Reading the umask means setting it. No other thread creates files yet.
        let umask = rustix::process::umask(rustix::fs::Mode::empty());
        rustix::process::umask(umask);
        Attributes { options, umask: umask.bits() }
    }

    /// The mode to create something with. If the owner, mode or access control list will change later, nobody else gets
    /// access until then.
    pub(crate) fn creation_mode(&self, source: &Metadata) -> u32 {
        let AttributeOptions { preserve, mode, .. } = self.options;
        let mode = match (mode, preserve.mode, source.kind()) {
            (ModeSource::Default, false, FileKind::Directory) => 0o777 | source.mode & 0o1000,
            (ModeSource::Default, false, _) => 0o666,
            (_, _, FileKind::Directory) => source.mode & 0o1777,
            _ => source.mode & 0o777,
        };
        let mode = if preserve.owns() || preserve.mode || preserve.acls { mode & !0o077 } else { mode };
        if source.kind() == FileKind::Directory { mode | 0o700 } else { mode }
    }

    /// The mode to create a file with, if it is known to get no access control list and how new files look in the same
    /// directory. It is the final mode if that gives nobody access too early.
    pub(crate) fn mode_at_once(&self, source: &Metadata, new_file: &Metadata) -> u32 {
        let is_owner = self.has_owner_of(source, new_file);
        let is_kept = self.options.preserve.mode && source.mode & (SPECIAL_BITS | self.umask) == 0;
        if is_owner && is_kept { source.mode & 0o777 } else { self.creation_mode(source) }
    }

    /// The final permission bits of something new that was created with the mode `made`.
    fn final_mode(&self, source: &Metadata, made: u32) -> u32 {
        if self.options.preserve.mode {
            return source.mode & 0o7777;
        }
        let given = match (self.options.mode, source.kind()) {
            (ModeSource::Source, _) => source.mode & 0o777,
            (ModeSource::Default, FileKind::Directory | FileKind::Socket) => 0o777,
            (ModeSource::Default, _) => 0o666,
        };
        match source.kind() {
            // It was created with that mode, less what the umask or the parent's default list removed.
            kind if kind != FileKind::Directory && self.is_made_as_wanted() => made & 0o7777,
            // Bits that the directory adds, such as the parent's set-group-ID bit, stay.
            FileKind::Directory if self.is_made_as_wanted() => made & (given | SPECIAL_BITS),
            FileKind::Directory => given & !self.umask | made & SPECIAL_BITS,
            _ => given & !self.umask,
        }
    }

    /// Whether a file has the owner and the group that the copy of `source` gets.
    fn has_owner_of(&self, source: &Metadata, found: &Metadata) -> bool {
        let Preserve { owner, group, .. } = self.options.preserve;
        (!owner || source.uid == found.uid) && (!group || source.gid == found.gid)
    }

    /// Whether files are created with their final mode.
    fn is_made_as_wanted(&self) -> bool {
        let AttributeOptions { preserve, mode, .. } = self.options;
        mode == ModeSource::Source && !preserve.mode && !preserve.acls && !preserve.owns()
    }

    /// Whether a copy gets the times of its source. The next run with `--resume` skips one that has them.
    fn sets_times(&self, is_complete: bool) -> bool {
        self.options.preserve.timestamps
            && (is_complete || self.options.incomplete_times == IncompleteTimes::Set)
    }

    /// Whether to remove an access control list that the source does not have.
    pub(crate) fn drops_acl(&self, fresh: bool) -> bool {
        self.options.preserve.acls || (fresh && self.options.mode == ModeSource::Default)
    }

    /// Looks whether files may inherit an access control list that are created as `directory/NAME` in a place that is
    /// only where paths begin.
    pub(crate) fn look_for_default_acl<D: Dir>(&self, base: &D, directory: &CStr, place: &Place<D>) {
        if !directory.is_empty() && self.drops_acl(true) {
            let opened =
                base.open_dir(directory, SymlinkBehavior::Follow).and_then(|handle| handle.as_file());
            place.default_acl.get_or_init(|| opened.map_or(true, |file| has_default_acl(&file)));
        }
    }

    /// Whether files created in a destination directory may inherit an access control list that they must not have.
    pub(crate) fn may_inherit_acl<D: Dir>(&self, place: &Place<D>, budget: &Budget) -> bool {
        if !self.drops_acl(true) {
            return false;
        }
        *place.default_acl.get_or_init(|| {
            place
                .handle(budget)
                .and_then(|handle| handle.as_file())
                // If the directory cannot be read, this is unknown.
                .map_or(true, |file| has_default_acl(&file))
        })
    }

    /// Whether files that are created in a destination directory may get an access control list, which can take
    /// permissions from them. A directory that this run made has that of the one that it is in.
    pub(crate) fn inherits_acl<D: Dir>(&self, place: &Place<D>, budget: &Budget) -> bool {
        let mut known = place;
        while known.default_acl.get().is_none()
            && known.origin == Origin::Made
            && let Some(parent) = known.parent()
        {
            known = parent;
        }
        let inherits = *known.default_acl.get_or_init(|| {
            let found = known.handle(budget).and_then(|handle| handle.as_file());
            // If the directory cannot be read, this is unknown.
            found.map_or(true, |file| has_default_acl(&file))
        });
        *place.default_acl.get_or_init(|| inherits)
    }

    /// Whether any attribute of a source is needed.
    pub(crate) fn gathers(&self) -> bool {
        self.options.preserve.acls || self.options.preserve.xattrs != Xattrs::Ignore
    }

    /// Whether to examine a new directory again after its subtree.
    pub(crate) fn finishes_directory(&self, source: &Metadata) -> bool {
        let made = self.creation_mode(source) & 0o777 & !self.umask;
        self.options.preserve.any() || made != self.final_mode(source, made)
    }

    /// The attributes of `source` to give to its copy.
    pub(crate) fn gather<F: File>(&self, source: &F, report: Report<'_>) -> XattrValues {
        self.gather_from(&|names| source.list_xattr(names), &|name| source.xattr(name), report)
    }

    /// The attributes of `entry`, a symbolic link or special file, to give to its copy.
    pub(crate) fn gather_by_name<V: Volume, S>(
        &self,
        entry: &Entry<'_, V, S>,
        source: &Metadata,
        report: Report<'_>,
    ) -> XattrValues {
        let is_followed = entry.symlinks() == SymlinkBehavior::Follow
            && source.kind() != FileKind::Symlink
            && entry.link_metadata(Fields::KIND).is_ok_and(|link| link.kind() == FileKind::Symlink);
        let symlinks = if is_followed { SymlinkBehavior::Follow } else { SymlinkBehavior::NoFollow };
        let get = |attribute: &CStr| entry.handle().get_xattr(entry.name(), attribute, symlinks);
        if is_followed {
            // Attributes can only be listed by name. Access control lists must not be lost.
            let list = |names: &mut Vec<u8>| {
                names.extend_from_slice(ACCESS_ACL.to_bytes_with_nul());
                Ok(())
            };
            return self.gather_from(&list, &get, report);
        }
        self.gather_from(&|names| entry.handle().list_xattr(entry.name(), names), &get, report)
    }

    /// The attributes of the entry `name` of `dir`, never of what it leads to, in the order of their names.
    pub(crate) fn gather_named<D: Dir>(&self, dir: &D, name: &CStr, report: Report<'_>) -> XattrValues {
        const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
        let get = |attribute: &CStr| dir.get_xattr(name, attribute, LINK);
        let mut gathered = self.gather_from(&|names| dir.list_xattr(name, names), &get, report);
        gathered.sort_unstable();
        gathered
    }

    /// The access control lists of a directory to give to its copy; `get` reads one.
    pub(crate) fn gather_acls(
        &self,
        get: &dyn Fn(&CStr) -> Result<Vec<u8>>,
        report: Report<'_>,
    ) -> XattrValues {
        if !self.options.preserve.acls {
            return Vec::new();
        }
        let mut gathered = Vec::new();
        for name in [ACCESS_ACL, DEFAULT_ACL] {
            match get(name) {
                Ok(value) => gathered.push((name.to_owned(), value)),
                Err(error) if matches!(error.errno, Errno::NODATA | Errno::OPNOTSUPP) => {}
                Err(error) => report(Trouble::Mode, error.errno),
            }
        }
        gathered
    }

    fn gather_from(
        &self,
        list: &dyn Fn(&mut Vec<u8>) -> Result<()>,
        get: &dyn Fn(&CStr) -> Result<Vec<u8>>,
        report: Report<'_>,
    ) -> XattrValues {
        if !self.gathers() {
            return Vec::new();
        }
        let mut names = Vec::new();
        if let Err(error) = list(&mut names) {
            match error.errno {
                Errno::OPNOTSUPP | Errno::NOSYS => self.xattr_trouble(error, report),
                // An access control list may be among those that are not known.
                errno if self.options.preserve.acls => report(Trouble::Mode, errno),
                _ => self.xattr_trouble(error, report),
            }
            return Vec::new();
        }
        let mut gathered = Vec::new();
        for name in names.split_inclusive(|&b| b == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            if !self.wants(name) {
                continue;
            }
            match get(name) {
                Ok(value) => gathered.push((name.to_owned(), value)),
                Err(error) if error.errno == Errno::NODATA => {}
                Err(error) if is_acl(name) && error.errno != Errno::OPNOTSUPP => {
                    report(Trouble::Mode, error.errno)
                }
                Err(error) => self.xattr_trouble(error, report),
            }
        }
        gathered
    }

    fn wants(&self, name: &CStr) -> bool {
        match name.to_bytes() {
            b"system.posix_acl_access" | b"system.posix_acl_default" => self.options.preserve.acls,
            // Other access control lists, and attributes that the system derives from the file itself.
            name if name.starts_with(b"system.")
                || name == b"security.evm"
                || name == b"security.selinux" =>
            {
                false
            }
            name => {
                self.options.preserve.xattrs != Xattrs::Ignore
                    && (self.options.namespaces == Namespaces::All || name.starts_with(b"user."))
            }
        }
    }

    fn xattr_trouble(&self, error: Error, report: Report<'_>) {
        if self.options.preserve.xattrs == Xattrs::Required {
            report(Trouble::Xattr, error.errno);
        }
    }

    /// Gives `file` the attributes of `source`.
    pub(crate) fn set<F: File>(
        &self,
        file: &F,
        source: &Metadata,
        xattrs: &[(CString, Vec<u8>)],
        before: Before<'_>,
        report: Report<'_>,
    ) {
        let is_complete = Cell::new(!before.lacks_attribute);
        let report: Report<'_> = &mut |trouble, errno| {
            is_complete.set(false);
            report(trouble, errno);
        };
        let mut mode = match before.replaced_mode {
            Some(mode) if !self.options.preserve.mode => mode & 0o7777,
            _ => self.final_mode(source, before.made_with.unwrap_or(before.metadata.mode)),
        };
        let mut changed = false;
        if !self.has_owner_of(source, before.metadata) {
            changed = true;
            if !self.set_owner(source, &|uid, gid| file.set_owner(uid, gid), report) {
                mode &= !SPECIAL_BITS;
            }
        }
        let widened = self.set_xattrs(file, source.kind(), mode, xattrs, before, report);
        if widened && !before.fresh && !self.options.preserve.mode {
            mode = before.metadata.mode & 0o7777;
        }
        let differs = mode != before.metadata.mode & 0o7777 || (changed && mode & SPECIAL_BITS != 0);
        let is_wanted = widened
            || (self.options.preserve.mode && (differs || !xattrs.is_empty()))
            || (before.fresh && differs);
        if is_wanted && let Err(error) = file.set_mode(mode) {
            report(Trouble::Mode, error.errno);
        }
        if self.sets_times(is_complete.get())
            && let Err(error) = file.set_times(source.atime, source.mtime)
        {
            report(Trouble::Times, error.errno);
        }
    }

    /// Sets the owner; returns whether it succeeded.
    fn set_owner(
        &self,
        source: &Metadata,
        set: &dyn Fn(Option<u32>, Option<u32>) -> Result<()>,
        report: Report<'_>,
    ) -> bool {
        let Preserve { owner, group, .. } = self.options.preserve;
        let gid = group.then_some(source.gid);
        let Err(error) = set(owner.then_some(source.uid), gid) else { return true };
        if matches!(error.errno, Errno::PERM | Errno::INVAL) {
            // A user who may not give files away may still be a member of the group. A failure here is expected.
            let _ = set(None, gid);
            if self.options.ownership_errors == OwnershipErrors::Ignored {
                return false;
            }
        }
        report(Trouble::Ownership, error.errno);
        false
    }

    /// Sets extended attributes; returns whether the mode had to be widened for that.
    fn set_xattrs<F: File>(
        &self,
        file: &F,
        kind: FileKind,
        mode: u32,
        xattrs: &[(CString, Vec<u8>)],
        before: Before<'_>,
        report: Report<'_>,
    ) -> bool {
        let mut widened = false;
        for (name, value) in xattrs {
            let mut done = file.set_xattr(name, value);
            if done.is_err_and(|error| error.errno == Errno::ACCESS) {
                // Setting them needs write permission; the mode is set afterwards.
                widened = true;
                done = file.set_mode(mode & 0o777 | 0o600).and_then(|()| file.set_xattr(name, value));
            }
            match done {
                Err(error) if is_acl(name) => report(Trouble::Mode, error.errno),
                Err(error) => self.xattr_trouble(error, report),
                Ok(()) => {}
            }
        }
        if before.may_have_acl && self.drops_acl(before.fresh) {
            for acl in [ACCESS_ACL, DEFAULT_ACL] {
                let is_wanted = xattrs.iter().any(|(name, _)| **name == *acl);
                // If the source has no default list, remove the one inherited from the parent directory.
                let is_dropped =
                    acl == ACCESS_ACL || (kind == FileKind::Directory && self.options.preserve.acls);
                if !is_wanted && is_dropped {
                    // Usually there is none. If there is one and it cannot be removed, the mode shows it.
                    let _ = file.remove_xattr(acl);
                }
            }
        }
        widened
    }

    /// Gives the existing entry `name` of `dir` those attributes of `source` that differ from the ones found.
    pub(crate) fn amend<D: Dir>(
        &self,
        dir: &D,
        name: &CStr,
        (source, xattrs): (&Metadata, &XattrValues),
        (found, found_xattrs): (&Metadata, &XattrValues),
        report: Report<'_>,
    ) {
        const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
        let mut mode = if self.options.preserve.mode { source.mode } else { found.mode } & 0o7777;
        let mut is_mode_lost = false;
        if self.options.preserve.owns() && !self.has_owner_of(source, found) {
            is_mode_lost = mode & SPECIAL_BITS != 0;
            if !self.set_owner(source, &|uid, gid| dir.set_owner(name, Ownership { uid, gid }, LINK), report)
            {
                mode &= !SPECIAL_BITS;
            }
        }
        // A change of the owner has removed them.
        let lost: &[&CStr] = if self.has_owner_of(source, found) { &[] } else { &[CAPABILITIES] };
        let differs =
            |wanted: &&(CString, Vec<u8>)| !found_xattrs.contains(wanted) || lost.contains(&&*wanted.0);
        for (attribute, value) in xattrs.iter().filter(differs) {
            let mut done = dir.set_xattr(name, attribute, value);
            if done.is_err_and(|error| error.errno == Errno::ACCESS) {
                // Setting them needs write permission; the mode is set afterwards.
                let widened = dir.set_mode(name, mode & 0o777 | 0o600, LINK);
                done = widened.and_then(|()| dir.set_xattr(name, attribute, value));
                is_mode_lost = true;
            }
            is_mode_lost |= is_acl(attribute);
            match done {
                Err(error) if is_acl(attribute) => report(Trouble::Mode, error.errno),
                Err(error) => self.xattr_trouble(error, report),
                Ok(()) => {}
            }
        }
        for (attribute, _) in found_xattrs {
            if !xattrs.iter().any(|(wanted, _)| wanted == attribute) {
                is_mode_lost |= is_acl(attribute);
                let mut removed = dir.remove_xattr(name, attribute);
                if removed.is_err_and(|error| error.errno == Errno::ACCESS) {
                    let widened = dir.set_mode(name, mode & 0o777 | 0o600, LINK);
                    removed = widened.and_then(|()| dir.remove_xattr(name, attribute));
                    is_mode_lost = true;
                }
                match removed {
                    Err(error) if error.errno != Errno::NODATA => self.xattr_trouble(error, report),
                    _ => {}
                }
            }
        }
        let differs = is_mode_lost || mode != found.mode & 0o7777;
        if source.kind() != FileKind::Symlink
            && differs
            && let Err(error) = dir.set_mode(name, mode, LINK)
        {
            report(Trouble::Mode, error.errno);
        }
        if source.mtime != found.mtime {
            self.set_times_by_name(dir, name, source, true, report);
        }
    }

    /// Gives the new symbolic link or special file `name` in `dir` the attributes of `source`.
    pub(crate) fn set_by_name<D: Dir>(
        &self,
        dir: &D,
        name: &CStr,
        source: &Metadata,
        xattrs: &[(CString, Vec<u8>)],
        may_have_acl: bool,
        report: Report<'_>,
    ) {
        const LINK: SymlinkBehavior = SymlinkBehavior::NoFollow;
        let mut mode = source.mode & 0o7777;
        // A new file may have inherited the group of the directory.
        if self.options.preserve.owns()
            && !self.set_owner(source, &|uid, gid| dir.set_owner(name, Ownership { uid, gid }, LINK), report)
        {
            mode &= !SPECIAL_BITS;
        }
        for (attribute, value) in xattrs {
            match dir.set_xattr(name, attribute, value) {
                Err(error) if is_acl(attribute) => report(Trouble::Mode, error.errno),
                Err(error) => self.xattr_trouble(error, report),
                Ok(()) => {}
            }
        }
        if source.kind() != FileKind::Symlink {
            let has_acl = xattrs.iter().any(|(name, _)| is_acl(name));
            if may_have_acl && !has_acl && self.drops_acl(true) {
                // If it cannot be removed, the mode shows it.
                let _ = dir.remove_xattr(name, ACCESS_ACL);
            }
            let wanted = if self.options.preserve.mode { mode } else { self.final_mode(source, source.mode) };
            let is_set = self.is_made_as_wanted()
                || (!may_have_acl && !has_acl && self.creation_mode(source) & !self.umask == wanted);
            if !is_set && let Err(error) = dir.set_mode(name, wanted, LINK) {
                report(Trouble::Mode, error.errno);
            }
        }
    }

    /// Sets the times of a copy that cannot be opened. They come last: `is_complete` says whether all else could be
    /// set.
    pub(crate) fn set_times_by_name<D: Dir>(
        &self,
        dir: &D,
        name: &CStr,
        source: &Metadata,
        is_complete: bool,
        report: Report<'_>,
    ) {
        if self.sets_times(is_complete)
            && let Err(error) = dir.set_times(name, source.atime, source.mtime)
        {
            report(Trouble::Times, error.errno);
        }
    }
}

/// Whether an extended attribute is an access control list.
pub(crate) fn is_acl(name: &CStr) -> bool {
    name == ACCESS_ACL || name == DEFAULT_ACL
}

/// Whether files created in `directory` inherit an access control list.
fn has_default_acl<F: File>(directory: &F) -> bool {
    directory.xattr(DEFAULT_ACL).is_ok()
}

/// The problem to report for a failed call that moves data.
pub(crate) fn trouble_of(error: Error) -> Trouble {
    match error.operation {
        // Only the source is examined while data moves, to see whether it has become shorter.
        Operation::Read | Operation::Stat => Trouble::Read,
        Operation::Clone => Trouble::Clone,
        Operation::Close => Trouble::Close,
        _ => Trouble::Write,
    }
}
