//! Options of a synchronization.

use std::collections::HashSet;
use std::sync::Arc;

use millstream_walk::{Cancellation, Threads};

use crate::choice::choice;
pub use crate::transfer::options::{
    AttributeOptions, DataOptions, IncompleteTimes, ModeSource, Namespaces, OwnershipErrors, Preserve,
    Reflink, Sparse, Verification, Xattrs,
};
use crate::transfer::temporaries::Temporaries;
pub use millstream_operation::terms::{Execution, FileSystems};
pub use millstream_rsync_rules::decision::{Comparison, Kinds, Missing, Newer, Present};
use millstream_rsync_rules::files::FileList;
use millstream_rsync_rules::filter::Filter;
pub use millstream_rsync_rules::itemize::HighBytes;
pub use millstream_rsync_rules::times::TimeAccuracy;

/// Options of a synchronization.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which directories are synchronized.
    pub recursion: Recursion,
    /// Which kinds of entries are, besides regular files and directories.
    pub kinds: Kinds,
    /// Which entries take part.
    pub filter: Filter,
    /// The only entries that take part, if there is a list of them (`--files-from`).
    pub files: Option<Arc<FileList>>,
    /// Which file systems to enter.
    pub file_systems: FileSystems,
    /// How to find that a file has changed.
    pub comparison: Comparison,
    /// How exactly times are compared.
    pub time_accuracy: TimeAccuracy,
    /// Whether a file of the destination that is newer than its source stays (`-u`).
    pub newer: Newer,
    /// What to do about entries that the destination does not have.
    pub missing: Missing,
    /// What to do about files that it has.
    pub present: Present,
    /// What to delete in the destination, if anything.
    pub deletion: Option<Deletion>,
    /// Most entries that are deleted, also where one makes way for something else.
    pub most_deletions: Option<u64>,
    /// Whether a directory with contents may be removed where its source is something else, even without deletion
    /// (`--force`).
    pub conflicts: Conflicts,
    /// Which attributes to preserve.
    pub preserve: Preserve,
    /// The kinds of entries whose times are not set.
    pub untimed: Untimed,
    /// Who the process is.
    pub user: User,
    /// Where to make holes.
    pub sparse: Sparse,
    /// Whether to read source and copy again and compare them.
    pub verification: Verification,
    /// Most bytes read per second.
    pub bytes_per_second: Option<u64>,
    /// Whether to make changes or only report them.
    pub execution: Execution,
    /// How to report changes.
    pub report: Report,
    /// Which bytes of names are printed as they are, of those that are not ASCII.
    pub high_bytes: HighBytes,
    /// Number of workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
    /// The temporary files of the run.
    pub temporaries: Temporaries,
}

impl Default for Options {
    /// The options of `rsync` without arguments, for the superuser.
    fn default() -> Self {
        Options {
            recursion: Recursion::None,
            kinds: Kinds::default(),
            filter: Filter::default(),
            files: None,
            file_systems: FileSystems::All,
            comparison: Comparison::SizeAndTime,
            time_accuracy: TimeAccuracy::AsStored,
            newer: Newer::Replaced,
            missing: Missing::Created,
            present: Present::Updated,
            deletion: None,
            most_deletions: None,
            conflicts: Conflicts::Kept,
            preserve: Preserve::NONE,
            untimed: Untimed::default(),
            user: User::Superuser,
            sparse: Sparse::Auto,
            verification: Verification::None,
            bytes_per_second: None,
            execution: Execution::Real,
            report: Report::Nothing,
            high_bytes: HighBytes::Utf8,
            threads: Threads::default(),
            cancellation: Cancellation::default(),
            temporaries: Temporaries::with_prefix("psync"),
        }
    }
}

impl Options {
    /// Whether anything of the destination may be deleted.
    pub(super) fn deletes(&self) -> bool {
        self.deletion.is_some()
    }

    pub(super) fn is_superuser(&self) -> bool {
        self.user == User::Superuser
    }

    /// The settings of moving data.
    pub(super) fn data(&self) -> DataOptions {
        DataOptions {
            reflink: Reflink::Auto,
            sparse: self.sparse,
            bytes_per_second: self.bytes_per_second,
            cancellation: self.cancellation.clone(),
        }
    }

    /// The settings of giving a copy its attributes.
    pub(super) fn attributes(&self) -> AttributeOptions {
        let is_superuser = self.is_superuser();
        AttributeOptions {
            preserve: Preserve { owner: self.preserve.owner && is_superuser, ..self.preserve },
            mode: ModeSource::Source,
            ownership_errors: OwnershipErrors::Reported,
            incomplete_times: IncompleteTimes::Set,
            namespaces: if is_superuser { Namespaces::All } else { Namespaces::User },
        }
    }
}

choice!(
    /// Which directories are synchronized.
    Recursion {
        /// None: they are skipped, and said to be.
        None,
        /// Those that are named, and those in them, without their contents (`-d`).
        Directories,
        /// All, with their contents (`-r`).
        Recursive,
    }
);
choice!(
    /// What to do about a directory with contents whose source is something else.
    Conflicts {
        /// It stays, which is an error, unless the destination is deleted in anyway.
        Kept,
        /// It is removed (`--force`).
        Removed,
    }
);
choice!(
    /// When the destination is deleted in.
    Timing {
        /// Before anything is copied (`--delete-before`).
        Before,
        /// After everything has been copied.
        After,
    }
);
choice!(
    /// Whether to delete although something failed before: what could not be listed may be there, and what could not be
    /// copied may be in the destination under its old name only.
    Errors {
        /// Nothing is deleted.
        PreventDeletion,
        /// They do not matter (`--ignore-errors`).
        Ignored,
    }
);
choice!(
    /// How to report changes.
    Report {
        /// Nothing.
        Nothing,
        /// The names of what changes (`-v`).
        Names,
        /// A line with what changes of it (`-i`).
        Items,
        /// As [`Report::Items`], and of what does not change, too (`-ii`).
        AllItems,
        /// A JSON record.
        Json,
    }
);

/// The kinds of entries whose times are not set, even if times are preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untimed {
    /// Directories (`-O`).
    pub directories: bool,
    /// Symbolic links (`-J`).
    pub links: bool,
}

/// What is deleted in the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When.
    pub timing: Timing,
    /// Whether to delete although something failed before.
    pub errors: Errors,
}

/// Who the process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// Somebody who may give files to others and make devices.
    Superuser,
    /// A user, with the groups that files can be given to.
    Other {
        /// The groups.
        groups: HashSet<u32>,
    },
}

impl User {
    /// Whether files can be given to a group.
    pub(super) fn may_set_group(&self, group: u32) -> bool {
        match self {
            User::Superuser => true,
            User::Other { groups } => groups.contains(&group),
        }
    }
}
