//! What is to be copied, and how.

use millstream_vfs::Metadata;
use millstream_walk::{Cancellation, FollowPolicy, Threads};

use super::backup::Backup;
use super::temporaries::Temporaries;
pub use crate::terms::FileSystems;

/// What is to be copied, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// What becomes of directories.
    pub directories: Directories,
    /// Symbolic links of the source that are followed.
    pub follow: FollowPolicy,
    /// What is made of a file.
    pub method: Method,
    /// What becomes of pipes, sockets and devices.
    pub specials: Specials,
    /// Whether data is copied.
    pub contents: Contents,
    /// What becomes of files that exist.
    pub existing: Existing,
    /// Which existing files are out of date.
    pub update: Update,
    /// What becomes of symbolic links to directories where a directory is to be copied to.
    pub directory_links: DirectoryLinks,
    /// How an existing file makes room.
    pub removal: Removal,
    /// How existing files are kept under another name.
    pub backup: Option<Backup>,
    /// Attributes of the source that the copy gets.
    pub preserve: Preserve,
    /// Where the permission bits of what is made come from.
    pub mode: ModeSource,
    /// Whether files share their data with the source.
    pub reflink: Reflink,
    /// Where the copy has holes.
    pub sparse: Sparse,
    /// Which file systems are entered.
    pub file_systems: FileSystems,
    /// What becomes of a symbolic link in the destination that leads nowhere.
    pub dangling: Dangling,
    /// Whether anything is changed.
    pub effect: Effect,
    /// Under which name data is written.
    pub placement: Placement,
    /// Whether source and copy are read again and compared.
    pub verification: Verification,
    /// Most bytes read a second.
    pub bytes_per_second: Option<u64>,
    /// What is told of each action.
    pub trace: Trace,
    /// Whether the text about an action tells how it was done.
    pub explanation: Explanation,
    /// Whether a refusal to set the owner is an error: for a process that may set any.
    pub ownership_errors: OwnershipErrors,
    /// Workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
    /// The temporary files of the run.
    pub temporaries: Temporaries,
}

impl Default for Options {
    /// What `cp` does without options.
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
            effect: Effect::Real,
            placement: Placement::Direct,
            verification: Verification::None,
            bytes_per_second: None,
            trace: Trace::Nothing,
            explanation: Explanation::None,
            ownership_errors: OwnershipErrors::Reported,
            threads: Threads::default(),
            cancellation: Cancellation::default(),
            temporaries: Temporaries::default(),
        }
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    };
}

choice!(
    /// What becomes of directories.
    Directories {
        /// They are left out, with an error.
        Omit,
        /// They are copied with all that is in them (`-r`).
        Copy,
    }
);
choice!(
    /// What is made of a file.
    Method {
        /// A copy.
        Copy,
        /// Another link (`-l`).
        HardLink,
        /// A symbolic link to it (`-s`).
        SymbolicLink,
    }
);
choice!(
    /// What becomes of pipes, sockets and devices.
    Specials {
        /// What can be read from them is copied.
        CopyContents,
        /// They are made anew.
        Recreate,
    }
);
choice!(
    /// Whether data is copied.
    Contents {
        /// It is.
        Copy,
        /// Only attributes are (`--attributes-only`).
        Omit,
    }
);
choice!(
    /// What becomes of files that exist.
    Existing {
        /// They are written over.
        Overwrite,
        /// They stay (`-n`).
        Keep,
        /// The user decides (`-i`).
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
        /// None, and that there is one is an error (`--update=none-fail`).
        NoneOrFail,
    }
);
choice!(
    /// What becomes of symbolic links to directories where a directory is to be copied to.
    DirectoryLinks {
        /// They are in its way.
        InTheWay,
        /// They are followed (`--keep-directory-symlink`).
        Followed,
    }
);
choice!(
    /// How an existing file makes room.
    Removal {
        /// Its data is written over.
        Never,
        /// It is removed if it cannot be opened (`-f`).
        IfUnwritable,
        /// It is removed in any case (`--remove-destination`).
        Always,
    }
);
choice!(
    /// Where the permission bits of what is made come from.
    ModeSource {
        /// The source, less what the process masks.
        Source,
        /// The default for something new (`--no-preserve=mode`).
        Default,
    }
);
choice!(
    /// Whether files share their data with the source.
    Reflink {
        /// Where the file system can.
        Auto,
        /// They must.
        Always,
        /// They must not.
        Never,
    }
);
choice!(
    /// Where the copy has holes.
    Sparse {
        /// Where the source has.
        Auto,
        /// Wherever the source has zeros.
        Always,
        /// Nowhere.
        Never,
    }
);
choice!(
    /// What becomes of a symbolic link in the destination that leads nowhere.
    Dangling {
        /// It is an error.
        Refuse,
        /// The file that it names is made.
        WriteThrough,
    }
);
choice!(
    /// Whether anything is changed.
    Effect {
        /// It is.
        Real,
        /// It is only told (`--dry-run`).
        Told,
    }
);
choice!(
    /// Under which name data is written.
    Placement {
        /// The final one.
        Direct,
        /// A temporary one, renamed when all is written (`--atomic`).
        Atomic,
    }
);
choice!(
    /// Whether source and copy are read again and compared.
    Verification {
        /// They are not.
        None,
        /// They are (`--verify`).
        Checksum,
    }
);
choice!(
    /// What is told of each action.
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
    /// Whether the text about an action tells how it was done.
    Explanation {
        /// It does not.
        None,
        /// It does (`--debug`).
        Methods,
    }
);
choice!(
    /// Whether a refusal to set the owner is an error.
    OwnershipErrors {
        /// It is.
        Reported,
        /// It is expected.
        Ignored,
    }
);
choice!(
    /// Whether extended attributes are copied.
    Xattrs {
        /// They are not.
        Ignore,
        /// Those that can be.
        IfPossible,
        /// All, or it is an error.
        Required,
    }
);

/// Attributes of the source that the copy gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preserve {
    /// Permission bits and access control lists.
    pub mode: bool,
    /// Owner and group.
    pub ownership: bool,
    /// Times.
    pub timestamps: bool,
    /// Which names are links of one file.
    pub links: bool,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

impl Preserve {
    /// Nothing.
    pub const NONE: Preserve =
        Preserve { mode: false, ownership: false, timestamps: false, links: false, xattrs: Xattrs::Ignore };

    /// Whether the copy gets anything that is set after it has been made.
    pub(super) fn any(self) -> bool {
        self.mode || self.ownership || self.timestamps || self.xattrs != Xattrs::Ignore
    }
}

impl Options {
    /// Whether anything may be made under a temporary name: data, or a link that takes the place of what is there.
    pub fn makes_temporaries(&self) -> bool {
        self.effect == Effect::Real
            && (self.placement == Placement::Atomic
                || self.preserve.links
                || self.removal == Removal::IfUnwritable
                || self.existing == Existing::Ask)
    }

    /// Whether the text about a file waits for its end, to tell how its data was moved.
    pub(super) fn explains(&self) -> bool {
        self.explanation == Explanation::Methods && self.trace == Trace::Text && self.effect == Effect::Real
    }

    /// Whether the volume may be asked to copy data, which may make files share it, and need not keep what is no hole.
    pub(super) fn may_offload(&self) -> bool {
        self.sparse == Sparse::Auto && self.reflink != Reflink::Never
    }

    /// Whether an existing file is up to date and stays as it is.
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
