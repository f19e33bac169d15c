//! The attributes that entries of a tree get.

use std::ffi::CStr;

use millstream_vfs::{Dir, Errno, Error, Fields, Metadata, Operation, SymlinkBehavior, Timestamp};

pub(super) use crate::transfer::attributes::is_acl;
use crate::transfer::attributes::{Attributes, Report, XattrValues};
use crate::transfer::options::{
    AttributeOptions, IncompleteTimes, ModeSource, Namespaces, OwnershipErrors, Preserve, Xattrs,
};
use crate::transfer::report::Trouble;

/// Attributes to set; [`None`] leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The lower twelve bits of the mode.
    pub mode: Option<u32>,
    /// When the contents were changed last.
    pub mtime: Option<Timestamp>,
}

impl Wanted {
    /// The metadata that a file will have which has `found` now.
    pub(super) fn over(&self, found: &Metadata) -> Metadata {
        let mode = self.mode.map_or(found.mode, |mode| found.mode & !0o7777 | mode & 0o7777);
        let (uid, gid) = (self.uid.unwrap_or(found.uid), self.gid.unwrap_or(found.gid));
        Metadata { mode, uid, gid, mtime: self.mtime.unwrap_or(found.mtime), ..*found }
    }

    /// How to set them.
    pub(super) fn attributes(&self, preserve: Preserve) -> Attributes {
        let preserve = Preserve {
            mode: self.mode.is_some(),
            owner: self.uid.is_some(),
            group: self.gid.is_some(),
            timestamps: self.mtime.is_some(),
            ..preserve
        };
        let options = AttributeOptions {
            preserve,
            mode: ModeSource::Source,
            ownership_errors: OwnershipErrors::Reported,
            incomplete_times: IncompleteTimes::Set,
            // Others may neither see nor set what is not theirs.
            namespaces: match preserve.xattrs {
                Xattrs::Ignore => Namespaces::All,
                _ if rustix::process::geteuid().is_root() => Namespaces::All,
                _ => Namespaces::User,
            },
        };
        // The umask is for modes that follow from others, and each of these is given.
        Attributes { options, umask: 0 }
    }
}

/// Extended attributes of a source that an entry gets, and which of its own they replace.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) values: XattrValues,
    pub(super) preserve: Preserve,
}

impl Gathered {
    pub(super) const NOTHING: Gathered = Gathered { values: XattrValues::new(), preserve: Preserve::NONE };
}

/// The extended attributes of an entry; none where the volume has none, or where the user may not read them.
///
/// # Errors
/// The first other error.
pub(super) fn gather<D: Dir>(directory: &D, name: &CStr, carried: &Attributes) -> Result<XattrValues, Error> {
    let mut values = XattrValues::new();
    first_supported(|report| {
        values = carried.gather_named(directory, name, &mut |trouble, errno| {
            if errno != Errno::ACCESS {
                report(trouble, errno);
            }
        });
    })?;
    Ok(values)
}

/// As [`first_error`], for reading attributes: a volume that has none is no failure.
pub(super) fn first_supported(run: impl FnOnce(Report<'_>)) -> Result<(), Error> {
    first_error(|report| {
        run(&mut |trouble, errno| {
            if !matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS) {
                report(trouble, errno);
            }
        });
    })
}

/// Sets those attributes of the entry `name` that differ.
pub(super) fn amend<D: Dir>(
    directory: &D,
    name: &CStr,
    wanted: &Wanted,
    gathered: &Gathered,
) -> Result<(), Error> {
    let found = directory.metadata(name, SymlinkBehavior::NoFollow, Fields::STAT)?;
    let attributes = wanted.attributes(gathered.preserve);
    let values = gather(directory, name, &attributes)?;
    first_error(|report| {
        let source = (&wanted.over(&found), &gathered.values);
        attributes.amend(directory, name, source, (&found, &values), report);
    })
}

/// Runs what reports failures; the first of them is the error.
pub(super) fn first_error(run: impl FnOnce(Report<'_>)) -> Result<(), Error> {
    let mut first = None;
    run(&mut |trouble, errno| {
        first.get_or_insert(Error::new(operation_of(trouble), errno));
    });
    first.map_or(Ok(()), Err)
}

/// The operation that a trouble with a copy is about.
pub(super) fn operation_of(trouble: Trouble) -> Operation {
    match trouble {
        Trouble::Ownership => Operation::SetOwner,
        Trouble::Mode => Operation::SetMode,
        Trouble::Times => Operation::SetTimes,
        Trouble::Read => Operation::Read,
        Trouble::Close => Operation::Close,
        Trouble::Xattr => Operation::SetXattr,
        _ => Operation::Write,
    }
}
