//! Attribute changes: modes and owners, of single files and of whole trees.
//!
//! ```text
//!  visit (parallel)                                      leave (parallel, children before their parents)
//!  stat ─► Attribute::plan ─┬─► nothing to do
//!                           ├─► set, relative to the handle of the parent directory
//!                           └─► a directory whose change is deferred ─► set, after its subtree
//! ```
//!
//! In a tree, a file that already has the value is skipped without a call, unless the call would have a further effect.
//! A directory's owner is set after its subtree. So is its mode if the new mode removes permissions that the traversal
//! needs. Any other mode is set before the directory is opened, because the new mode may be what makes opening
//! possible.
//!
//! Below the operands, only the links selected by the options are followed: every other call names an entry of an open
//! directory and refuses to follow a link. A file may be reached twice: through several hard links, overlapping
//! operands or symbolic links. Such a file is examined and changed under a lock chosen by its inode number, so the
//! second worker sees the first one's change. An operand that is, contains or lies in an earlier one is changed after
//! it: the change of a directory may deny or permit access to its files.

mod locks;
mod mode;
mod owner;
mod tree;

use std::ffi::{CStr, CString};
use std::fmt::Debug;

use millstream_vfs::{Dir, Errno, FileKind, Metadata, Result, SymlinkBehavior, Volume};
use millstream_walk::{Cancellation, FollowPolicy, HandleRetention, Threads, WalkOptions, WalkStats, walk};

pub use mode::{ModeChange, Surprise};
pub use owner::OwnerChange;

pub use millstream_operation::terms::Execution;

use millstream_operation::activity::Activity;
use millstream_text::operands::groups;
use tree::Tree;

/// An attribute and the change to make to it.
pub trait Attribute: Sync {
    /// The attribute's value.
    type Value: Copy + Debug + Send + Sync;

    /// Plans the change of one file, made by the user `uid`.
    fn plan(&self, file: &Status, uid: u32) -> Plan<Self::Value>;

    /// The value that every file gets, if it is the same for all files; [`None`] if it depends on the file's own value.
    fn unconditional(&self) -> Option<Self::Value>;

    /// Sets the value.
    ///
    /// # Errors
    /// Those of the volume.
    fn set<D: Dir>(&self, dir: &D, name: &CStr, value: Self::Value, symlinks: SymlinkBehavior) -> Result<()>;

    /// When to change a directory that is traversed.
    fn turn(&self, directory: &Status) -> Turn;

    /// Whether the change of some directory may be deferred.
    fn may_wait(&self) -> bool;

    /// How to treat an unreadable directory whose change was deferred.
    fn if_unreadable(&self) -> IfUnreadable;

    /// Whether `file` may still differ from `value` after it was set: the system sets some bits only for privileged
    /// callers.
    fn is_doubtful(&self, value: Self::Value) -> bool;

    /// Whether the value of `file` has changed since the plan was made.
    fn differs(&self, planned: &Status, now: &Status) -> bool;

    /// The value that the user may have expected, if it differs from the one that was set.
    fn expected_instead(&self, file: &Status) -> Option<Self::Value>;
}

/// When to change a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Before it is opened.
    BeforeSubtree,
    /// After its subtree.
    AfterSubtree,
}

/// How to treat an unreadable directory whose change was deferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUnreadable {
    /// Change it all the same.
    Change,
    /// Leave it as it is.
    Leave,
}

/// The plan for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan<V> {
    /// The change does not apply to this file.
    Leave {
        /// The current value.
        before: V,
    },
    /// Set a value.
    Set {
        /// The current value.
        before: V,
        /// The new value.
        after: V,
        /// The effect of the call.
        effect: Effect,
    },
}

/// The effect of setting a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The value changes.
    Changes,
    /// The value stays the same, but the call may change something else.
    Touches,
    /// No effect.
    Nothing,
}

/// The examined metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    identity: (u64, u64),
    has_several_links: bool,
}

impl Status {
    /// The type of the file.
    pub fn kind(&self) -> FileKind {
        FileKind::from_mode(self.mode)
    }
}

impl From<Metadata> for Status {
    fn from(metadata: Metadata) -> Self {
        Status {
            mode: metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            identity: metadata.identity(),
            has_several_links: metadata.nlink > 1 && metadata.kind() != FileKind::Directory,
        }
    }
}

/// Settings that do not depend on the attribute.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which files to change.
    pub recursion: Recursion,
    /// Which links the traversal follows.
    pub follow: FollowPolicy,
    /// How to treat the links that are not followed.
    pub links: Links,
    /// Device and inode number of the root directory, if it must not be traversed.
    pub preserved_root: Option<(u64, u64)>,
    /// What to report in addition to failures.
    pub detail: Detail,
    /// Whether to make the changes or only report them.
    pub execution: Execution,
    /// Number of workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
}

/// Which files to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recursion {
    /// Only the operands.
    Operands,
    /// The operands and everything below them (`-R`).
    Trees,
}

/// How to treat links that the traversal does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Ignore them; a link that the traversal would follow must lead somewhere.
    PassOver,
    /// Ignore them. The target of a followed link is ignored too, but its contents are changed.
    Leave,
    /// Change the links themselves.
    Change,
    /// Change their targets.
    Dereference,
}

/// What to report in addition to failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing.
    Failures,
    /// Changes (`-c`).
    Changes,
    /// Every file (`-v`).
    Everything,
}

/// The outcome for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a, V> {
    /// Its path, starting with the operand.
    pub path: &'a [u8],
    /// The old value, if known.
    pub before: Option<V>,
    /// The requested value, if known.
    pub after: Option<V>,
    /// The result.
    pub outcome: Outcome<V>,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<V> {
    /// It was made.
    Changed,
    /// It would have been made.
    WouldChange,
    /// The file already had the value.
    Retained,
    /// A link; neither it nor its target is changed.
    PassedOver,
    /// It was made, but the user may have expected another value.
    Surprising {
        /// The expected value.
        expected: V,
    },
    /// It was not made.
    Failed(Problem),
}

impl<V> Outcome<V> {
    /// The lowest level of detail that reports this result.
    fn detail(&self) -> Detail {
        match self {
            Outcome::Failed(_) | Outcome::Surprising { .. } => Detail::Failures,
            Outcome::Changed | Outcome::WouldChange => Detail::Changes,
            Outcome::Retained | Outcome::PassedOver => Detail::Everything,
        }
    }
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The file could not be examined.
    Access(Errno),
    /// It is a link that leads nowhere.
    Dangling,
    /// It is a link whose target could not be examined.
    Dereference(Errno),
    /// The value could not be set.
    Set(Errno),
    /// The value was set, but the resulting value could not be read.
    Check(Errno),
    /// The directory could not be read.
    ReadDirectory(Errno),
    /// It is the root directory, which must not be traversed.
    PreservedRoot,
    /// It is a directory that contains itself.
    Cycle,
}

/// Receives the results. Calls may come from several threads at once.
pub trait Sink<V>: Sync {
    /// Reports an event; text for the output is appended to `lines`.
    fn event(&self, event: &Event<'_, V>, lines: &mut Vec<u8>);

    /// Writes whole lines.
    fn lines(&self, lines: &[u8]);
}

/// Changes an attribute of `operands`, reports to `sink`, and counts on `activity`.
pub fn change<V: Volume, A: Attribute>(
    volume: &V,
    operands: &[CString],
    attribute: &A,
    options: &Options,
    sink: &dyn Sink<A::Value>,
    activity: &Activity,
) -> WalkStats {
    let waits = options.recursion == Recursion::Trees && attribute.may_wait();
    let walk_options = WalkOptions {
        threads: options.threads,
        follow: options.follow,
        retention: if waits { HandleRetention::UntilLeft } else { HandleRetention::UntilChildrenOpen },
        cancellation: options.cancellation.clone(),
        census: activity.census(),
        ..WalkOptions::default()
    };
    let tree = Tree::<V, A>::new(operands, attribute, options, sink, activity);
    activity.expect(operands.len());
    let mut stats = WalkStats::default();
    for group in groups(operands).take_while(|_| !options.cancellation.is_cancelled()) {
        stats += walk(volume, group, &tree, &walk_options);
    }
    stats
}
