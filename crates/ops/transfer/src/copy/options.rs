//! Options of a copy operation.

use millstream_vfs::Metadata;
use millstream_walk::{Cancellation, FollowPolicy, Threads};

use super::backup::Backup;
use crate::choice::choice;
use crate::transfer::options::{AttributeOptions, DataOptions, IncompleteTimes, Namespaces};
pub use crate::transfer::options::{
    ModeSource, OwnershipErrors, Preserve, Reflink, Sparse, Verification, Xattrs,
};
use crate::transfer::temporaries::Temporaries;
pub use millstream_operation::terms::{Execution, FileSystems};

/// Options of a copy operation.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to treat directories.
    pub directories: Directories,
    /// Which symbolic links of the source are followed.
    pub follow: FollowPolicy,
    /// What to create for a file.
    pub method: Method,
    /// How to treat pipes, sockets and devices.
    pub specials: Specials,
    /// Whether to copy data.
    pub contents: Contents,
    /// How to treat existing files.
    pub existing: Existing,
    /// Which existing files are out of date.
    pub update: Update,
    /// How to treat a symbolic link to a directory at the destination of a directory.
    pub directory_links: DirectoryLinks,
    /// When to remove an existing file.
    pub removal: Removal,
    /// How to back up existing files.
    pub backup: Option<Backup>,
    /// Which attributes to preserve.
    pub preserve: Preserve,
    /// Source of the permission bits of new files.
    pub mode: ModeSource,
    /// Whether to share data with the source.
    pub reflink: Reflink,
    /// Where to create holes.
    pub sparse: Sparse,
    /// Which file systems to enter.
    pub file_systems: FileSystems,
    /// How to treat a dangling symbolic link at the destination.
    pub dangling: Dangling,
    /// Whether to make changes or only report them.
    pub effect: Execution,
    /// Under which name to write data.
    pub placement: Placement,
    /// Whether to read source and copy again and compare them.
    pub verification: Verification,
    /// Maximum bytes read per second.
    pub bytes_per_second: Option<u64>,
    /// How to report actions.
    pub trace: Trace,
    /// Whether the text about an action explains how the data was copied.
    pub explanation: Explanation,
    /// Whether failing to set the owner is an error: true for a process that may set any owner.
    pub ownership_errors: OwnershipErrors,
    /// Number of workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
    /// The temporary files of the run.
    pub temporaries: Temporaries,
}

impl Default for Options {
    /// The options of `cp` without arguments.
    fn default() -> Self {
        Options {
            directories: Directories::Omit,
            follow: FollowPolicy::Never,
            method: Method::Copy,
            specials: Specials::CopyContents,
            contents: Contents::Copy,
            existing: Existing::Overwrite,
            update: Update::All,
            directory_links: DirectoryLinks::InTheWay,
            removal: Removal::Never,
            backup: None,
            preserve: Preserve::NONE,
            mode: ModeSource::Source,
            reflink: Reflink::Auto,
            sparse: Sparse::Auto,
            file_systems: FileSystems::All,
            dangling: Dangling::Refuse,
            effect: Execution::Real,
            placement: Placement::Direct,
            verification: Verification::None,
            bytes_per_second: None,
            trace: Trace::Nothing,
            explanation: Explanation::None,
            ownership_errors: OwnershipErrors::Reported,
            threads: Threads::default(),
            cancellation: Cancellation::default(),
            temporaries: Temporaries::with_prefix("pcopy"),
        }
    }
}

choice!(
    /// How to treat directories.
    Directories {
        /// Skip them, with an error.
        Omit,
        /// Copy them recursively (`-r`).
        Copy,
    }
);
choice!(
    /// What to create for a file.
    Method {
        /// A copy.
        Copy,
        /// Another hard link (`-l`).
        HardLink,
        /// A symbolic link to it (`-s`).
        SymbolicLink,
    }
);
choice!(
    /// How to treat pipes, sockets and devices.
    Specials {
        /// Copy their contents.
        CopyContents,
        /// Create new ones.
        Recreate,
    }
);
choice!(
    /// Whether to copy data.
    Contents {
        /// Copy it.
        Copy,
        /// Only copy attributes (`--attributes-only`).
        Omit,
    }
);
choice!(
    /// How to treat existing files.
    Existing {
        /// Overwrite them.
        Overwrite,
        /// Keep them (`-n`).
        Keep,
        /// Ask the user (`-i`).
        Ask,
    }
);
choice!(
    /// Which existing files are out of date.
    Update {
        /// All.
        All,
        /// Those older than their source (`-u`).
        Older,
        /// Those that differ from their source in kind, size or time (`--resume`).
        Incomplete,
        /// None (`--update=none`).
        None,
        /// None, and an existing file is an error (`--update=none-fail`).
        NoneOrFail,
    }
);
choice!(
    /// How to treat a symbolic link to a directory at the destination of a directory.
    DirectoryLinks {
        /// It is in the way.
        InTheWay,
        /// Follow it (`--keep-directory-symlink`).
        Followed,
    }
);
choice!(
    /// When to remove an existing file.
    Removal {
        /// Never: overwrite its data.
        Never,
        /// If it cannot be opened (`-f`).
        IfUnwritable,
        /// Always (`--remove-destination`).
        Always,
    }
);
choice!(
    /// How to treat a dangling symbolic link at the destination.
    Dangling {
        /// It is an error.
        Refuse,
        /// Create its target.
        WriteThrough,
    }
);
choice!(
    /// Under which name to write data.
    Placement {
        /// The final one.
        Direct,
        /// A temporary one, renamed after all data is written (`--atomic`).
        Atomic,
    }
);
choice!(
    /// How to report actions.
    Trace {
        /// Nothing.
        Nothing,
        /// A line for people (`-v`).
        Text,
        /// A JSON record.
        Json,
    }
);
choice!(
    /// Whether the text about an action explains how the data was copied.
    Explanation {
        /// It does not.
        None,
        /// It does (`--debug`).
        Methods,
    }
);

impl Options {
    /// Whether temporary names may be used, for data or for a link or node that replaces an existing file.
    pub fn makes_temporaries(&self) -> bool {
        self.effect == Execution::Real
            && (self.placement == Placement::Atomic
                || self.preserve.links
                || self.follow != FollowPolicy::Always
                || self.removal != Removal::Never
                || self.existing == Existing::Ask)
    }

    /// Whether every existing file is kept, with or without an error.
    pub fn keeps_existing(&self) -> bool {
        self.existing == Existing::Keep || matches!(self.update, Update::None | Update::NoneOrFail)
    }

    /// Whether the text about a file is written at its end, to explain how its data was copied.
    pub(super) fn explains(&self) -> bool {
        self.explanation == Explanation::Methods
            && self.trace == Trace::Text
            && self.effect == Execution::Real
    }

    /// The settings of moving data.
    pub(super) fn data(&self) -> DataOptions {
        DataOptions {
            reflink: self.reflink,
            sparse: self.sparse,
            bytes_per_second: self.bytes_per_second,
            cancellation: self.cancellation.clone(),
        }
    }

    /// The settings of giving a copy its attributes.
    pub(super) fn attributes(&self) -> AttributeOptions {
        AttributeOptions {
            preserve: self.preserve,
            mode: self.mode,
            ownership_errors: self.ownership_errors,
            incomplete_times: match self.update {
                Update::Incomplete => IncompleteTimes::Withheld,
                _ => IncompleteTimes::Set,
            },
            namespaces: Namespaces::All,
        }
    }

    /// Whether an existing file is up to date and is therefore kept.
    pub(super) fn is_up_to_date(&self, source: &Metadata, existing: &Metadata) -> bool {
        match self.update {
            Update::All | Update::None | Update::NoneOrFail => false,
            Update::Older => source.mtime <= existing.mtime,
            Update::Incomplete => {
                let mode = !self.preserve.mode || source.mode & 0o7777 == existing.mode & 0o7777;
                source.kind() == existing.kind()
                    && source.size == existing.size
                    && source.rdev == existing.rdev
                    && source.mtime == existing.mtime
                    && mode
            }
        }
    }
}
