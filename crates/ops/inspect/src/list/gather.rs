//! Examines entries. The volume is asked only for what the listing shows, sorts by or colors.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_vfs::{
    CAPABILITIES, Dir, Errno, Error, Fields, FileKind, Metadata, SECURITY_CONTEXT, SymlinkBehavior, Volume,
};
use millstream_walk::Entry;

use super::color::Role;
use super::options::{Dereference, Indicator, Layout, ListOptions};
use super::report::{Diagnostics, Severity};
use super::rows::{AccessMarker, Facts, LinkState, Part};

/// Examines the entries of one listing.
#[derive(Debug)]
pub struct Gatherer<'a> {
    options: &'a ListOptions,
    diagnostics: &'a Diagnostics<'a>,
    fields: Fields,
    /// The device whose files are known to have no extended attributes, plus one; 0 if there is none.
    device_without_xattrs: AtomicU64,
}

impl<'a> Gatherer<'a> {
    /// For listings with these options.
    pub fn new(options: &'a ListOptions, diagnostics: &'a Diagnostics<'a>) -> Self {
        let fields = options.fields();
        Gatherer { options, diagnostics, fields, device_without_xattrs: AtomicU64::new(0) }
    }

    /// Whether any entry may have to be examined.
    pub fn examines(&self) -> bool {
        self.options.columns.inode || self.options.needs_attributes() || self.needs_some_kinds()
    }

    fn needs_some_kinds(&self) -> bool {
        // Types come with the names; they cost calls only on a volume that does not list types.
        use FileKind::{Directory, File, Symlink};
        [Directory, File, Symlink].into_iter().any(|kind| self.wants_attributes(kind))
    }

    /// Whether an entry of this type must be examined.
    pub fn wants_attributes(&self, kind: FileKind) -> bool {
        let options = self.options;
        if options.columns.inode || options.needs_attributes() {
            return true;
        }
        options.needs_kind()
            && match kind {
                FileKind::Unknown => true,
                FileKind::Directory => {
                    options.colors_any_of(&[Role::OtherWritable, Role::Sticky, Role::StickyOtherWritable])
                }
                FileKind::Symlink => options.dereference == Dereference::Always || options.checks_targets(),
                FileKind::File => {
                    options.indicator == Indicator::Classify
                        || options.colors_any_of(&[
                            Role::Executable,
                            Role::SetUid,
                            Role::SetGid,
                            Role::Capability,
                        ])
                }
                _ => false,
            }
    }

    /// Adds an entry of a directory to `part`.
    pub fn add_entry<V: Volume, S>(&self, entry: &Entry<'_, V, S>, part: &mut Part, names: &mut Vec<u8>) {
        let listed = entry.listed_kind();
        if !self.wants_attributes(listed) {
            return part.push(entry.name(), (listed, listed), entry.ino());
        }
        let symlinks = match self.options.dereference {
            Dereference::Always => SymlinkBehavior::Follow,
            _ => SymlinkBehavior::NoFollow,
        };
        match entry.examine(symlinks, self.fields) {
            Ok(metadata) => self.add(entry, &metadata, Severity::Minor, part, names),
            Err(error) => {
                self.complain(entry, "cannot access", error, Severity::Minor);
                part.push(entry.name(), (listed, listed), entry.ino());
            }
        }
    }

    /// Adds an operand to `part`, unless it cannot be examined.
    pub fn add_operand<V: Volume, S>(&self, entry: &Entry<'_, V, S>, part: &mut Part, names: &mut Vec<u8>) {
        match self.examine_operand(entry.handle(), entry.name()) {
            Ok(metadata) => {
                self.add(entry, &metadata, Severity::Serious, part, names);
                part.set_operand(entry.index());
            }
            Err(error) => {
                if self.options.hyperlink_host.is_some() && entry.name().is_empty() {
                    self.complain(entry, "error canonicalizing", error, Severity::Serious);
                }
                self.complain(entry, "cannot access", error, Severity::Serious);
                part.missing.push(entry.name().to_bytes().into());
            }
        }
    }

    fn examine_operand<D: Dir>(&self, base: &D, path: &CStr) -> Result<Metadata, Error> {
        let examine = |symlinks| base.metadata(path, symlinks, self.fields);
        match self.options.dereference {
            Dereference::Never => examine(SymlinkBehavior::NoFollow),
            Dereference::Always | Dereference::Operands => examine(SymlinkBehavior::Follow),
            Dereference::OperandDirectories => match examine(SymlinkBehavior::Follow) {
                Ok(target) if target.kind() == FileKind::Directory => Ok(target),
                Err(error) if !matches!(error.errno, Errno::NOENT | Errno::LOOP) => Err(error),
                _ => examine(SymlinkBehavior::NoFollow),
            },
        }
    }

    fn add<V: Volume, S>(
        &self,
        entry: &Entry<'_, V, S>,
        metadata: &Metadata,
        severity: Severity,
        part: &mut Part,
        names: &mut Vec<u8>,
    ) {
        let kind = metadata.kind();
        let ino = if self.options.columns.inode { metadata.ino } else { entry.ino() };
        part.push(entry.name(), (entry.listed_kind(), kind), ino);
        let mut facts = Facts::new(metadata, self.options.time.of(metadata));
        let is_long = self.options.layout == Layout::Long;
        // Attributes fetched for a followed link would be those of the link.
        if is_long && (kind == FileKind::Symlink || entry.listed_kind() != FileKind::Symlink) {
            facts.access = self.access(entry.handle(), entry.name(), metadata, names);
        }
        if kind == FileKind::File && self.options.colors_any_of(&[Role::Capability]) {
            let value = entry.handle().get_xattr(entry.name(), CAPABILITIES, SymlinkBehavior::Follow);
            facts.is_capable = value.is_ok_and(|value| !value.is_empty());
        }
        part.set_facts(facts);
        if self.options.columns.context {
            let symlinks =
                if kind == FileKind::Symlink { SymlinkBehavior::NoFollow } else { SymlinkBehavior::Follow };
            part.set_context(context(entry.handle(), entry.name(), symlinks));
        }
        if kind == FileKind::Symlink && (is_long || self.options.checks_targets()) {
            self.add_target(entry, is_long, severity, part);
        }
    }

    fn add_target<V: Volume, S>(
        &self,
        entry: &Entry<'_, V, S>,
        is_long: bool,
        severity: Severity,
        part: &mut Part,
    ) {
        match entry.read_link() {
            Err(error) => self.complain(entry, "cannot read symbolic link", error, severity),
            Ok(target) if self.options.checks_targets() || (is_long && self.options.marks_targets()) => {
                match entry.target_metadata(Fields::KIND | Fields::MODE) {
                    Ok(metadata) => part.set_target(&target, metadata.mode, LinkState::Exists),
                    Err(_) => part.set_target(&target, 0, LinkState::Missing),
                }
            }
            Ok(target) => part.set_target(&target, 0, LinkState::Read),
        }
    }

    fn access<D: Dir>(
        &self,
        directory: &D,
        name: &CStr,
        metadata: &Metadata,
        names: &mut Vec<u8>,
    ) -> AccessMarker {
        let device = metadata.dev.wrapping_add(1);
        if self.device_without_xattrs.load(Ordering::Relaxed) == device {
            return AccessMarker::None;
        }
        names.clear();
        match directory.list_xattr(name, names) {
            Ok(()) => access_marker(names),
            Err(error) => {
                if matches!(error.errno, Errno::OPNOTSUPP | Errno::NOSYS) {
                    self.device_without_xattrs.store(device, Ordering::Relaxed);
                }
                AccessMarker::None
            }
        }
    }

    fn complain<V: Volume, S>(&self, entry: &Entry<'_, V, S>, what: &str, error: Error, severity: Severity) {
        let mut path = Vec::new();
        // As in a listing, entries of the current directory are shown by name.
        if entry.depth() == 1 && entry.directory().name() == c"." {
            path.extend_from_slice(entry.name().to_bytes());
        } else {
            entry.write_path(&mut path);
        }
        self.diagnostics.failed(what, &path, error.errno, severity);
    }
}

/// The security context of a file, `?` if it has none, without the NUL that ends it.
fn context<D: Dir>(directory: &D, name: &CStr, symlinks: SymlinkBehavior) -> Vec<u8> {
    match directory.get_xattr(name, SECURITY_CONTEXT, symlinks) {
        Ok(value) if !value.is_empty() => value.strip_suffix(b"\0").unwrap_or(&value).to_vec(),
        _ => b"?".to_vec(),
    }
}

/// What the names of extended attributes, each ended by a NUL, say about access.
fn access_marker(names: &[u8]) -> AccessMarker {
    let mut marker = AccessMarker::None;
    if names.is_empty() {
        return marker;
    }
    for name in names.split(|&b| b == 0) {
        match name {
            b"system.posix_acl_access" | b"system.posix_acl_default" => return AccessMarker::List,
            b"security.selinux" => marker = AccessMarker::Context,
            _ => {}
        }
    }
    marker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_markers() {
        for (names, marker) in [
            (&b""[..], AccessMarker::None),
            (b"user.x\0", AccessMarker::None),
            (b"security.selinux\0user.x\0", AccessMarker::Context),
            (b"security.selinux\0system.posix_acl_access\0", AccessMarker::List),
            (b"system.posix_acl_default\0", AccessMarker::List),
        ] {
            assert_eq!(access_marker(names), marker);
        }
    }
}
