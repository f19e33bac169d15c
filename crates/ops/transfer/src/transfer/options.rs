//! What is to be done about the data and the attributes of a copy.

use millstream_walk::Cancellation;

use crate::choice::choice;

choice!(
    /// Whether to share data with the source.
    Reflink {
        /// If the file system can.
        Auto,
        /// Always; otherwise it is an error.
        Always,
        /// Never.
        Never,
    }
);
choice!(
    /// Where to create holes.
    Sparse {
        /// Where the source has holes.
        Auto,
        /// Wherever the source has zeros.
        Always,
        /// Nowhere.
        Never,
    }
);
choice!(
    /// Whether to read source and copy again and compare them.
    Verification {
        /// Do not compare.
        None,
        /// Compare (`--verify`).
        Checksum,
    }
);
choice!(
    /// Source of the permission bits of new files.
    ModeSource {
        /// The source, less the umask.
        Source,
        /// The default for new files (`--no-preserve=mode`).
        Default,
    }
);
choice!(
    /// Whether failing to set the owner is an error.
    OwnershipErrors {
        /// It is.
        Reported,
        /// It is expected.
        Ignored,
    }
);
choice!(
    /// Whether to copy extended attributes.
    Xattrs {
        /// Do not copy them.
        Ignore,
        /// Copy those that can be copied.
        IfPossible,
        /// Copy all of them; a failure is an error.
        Required,
    }
);
choice!(
    /// Whether a copy that lacks an attribute of its source gets the times of its source.
    IncompleteTimes {
        /// It does.
        Set,
        /// It does not, so that the next run finds it incomplete.
        Withheld,
    }
);

/// Which attributes to preserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preserve {
    /// Permission bits.
    pub mode: bool,
    /// Access control lists.
    pub acls: bool,
    /// Owner.
    pub owner: bool,
    /// Group.
    pub group: bool,
    /// Times.
    pub timestamps: bool,
    /// Which names are links to the same file.
    pub links: bool,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

impl Preserve {
    /// Nothing.
    pub const NONE: Preserve = Preserve {
        mode: false,
        acls: false,
        owner: false,
        group: false,
        timestamps: false,
        links: false,
        xattrs: Xattrs::Ignore,
    };

    /// Whether the owner or the group is preserved.
    pub(crate) fn owns(self) -> bool {
        self.owner || self.group
    }

    /// Whether any attribute is set after the copy has been created.
    pub(crate) fn any(self) -> bool {
        self.mode || self.acls || self.owns() || self.timestamps || self.xattrs != Xattrs::Ignore
    }
}

choice!(
    /// Which extended attributes are copied.
    Namespaces {
        /// All that can be set.
        All,
        /// Those of users (`user.`), which everybody can set.
        User,
    }
);

/// How data is moved.
#[derive(Clone, Debug)]
pub struct DataOptions {
    /// Whether to share data with the source.
    pub reflink: Reflink,
    /// Where to create holes.
    pub sparse: Sparse,
    /// Maximum bytes read per second.
    pub bytes_per_second: Option<u64>,
    /// Ends the work early.
    pub cancellation: Cancellation,
}

impl DataOptions {
    /// Whether the volume may copy data itself, which may share blocks between the files and
    /// may not keep the layout of holes.
    pub(crate) fn may_offload(&self) -> bool {
        self.sparse == Sparse::Auto && self.reflink != Reflink::Never
    }
}

/// How a copy gets its attributes.
#[derive(Clone, Copy, Debug)]
pub struct AttributeOptions {
    /// Which attributes to preserve.
    pub preserve: Preserve,
    /// Source of the permission bits of new files.
    pub mode: ModeSource,
    /// Whether failing to set the owner is an error.
    pub ownership_errors: OwnershipErrors,
    /// Whether a copy that lacks an attribute gets the times of its source.
    pub incomplete_times: IncompleteTimes,
    /// Which extended attributes are copied, if any are.
    pub namespaces: Namespaces,
}
