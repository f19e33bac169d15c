//! Changes of attributes: modes and owners, of single files and of whole trees.
//!
//! ```text
//!  visit (parallel)                                      leave (parallel, children before their parents)
//!  stat ─► Attribute::plan ─┬─► nothing to be done
//!                           ├─► set, relative to the handle of the directory that holds the file
//!                           └─► a directory whose change waits ─► set, when all below it is done
//! ```
//!
//! What is the same already is left alone in a tree, without a call, unless the call would do more than it says. A directory's
//! owner is set when its subtree is done, and its mode too if that takes away what the traversal needs; any other mode
//! is set before the directory is opened, as it may be what makes that possible.
//!
//! Nobody is followed below the operands but links that the options say to follow: every other call names an entry of an
//! open directory and refuses to go through a link. A file that may be reached twice (by several links, by operands
//! that overlap, through links) is examined and changed under a lock that its inode number chooses, so that the second
//! to come finds what the first one did.

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

use crate::activity::Activity;
use tree::Tree;

/// An attribute, and what is to become of it.
pub trait Attribute: Sync {
    /// The attribute's value.
    type Value: Copy + Debug + Send + Sync;

    /// What the user `uid` is to do about a file.
    fn plan(&self, file: &Status, uid: u32) -> Plan<Self::Value>;

    /// The value that every file gets, whatever it has; [`None`] if it depends on that.
    fn unconditional(&self) -> Option<Self::Value>;

    /// Sets the value.
    ///
    /// # Errors
    /// Those of the volume.
    fn set<D: Dir>(&self, dir: &D, name: &CStr, value: Self::Value, symlinks: SymlinkBehavior) -> Result<()>;

    /// When a directory is changed that is traversed.
    fn turn(&self, directory: &Status) -> Turn;

    /// Whether some directory may have to wait for its turn.
    fn may_wait(&self) -> bool;

    /// What becomes of a directory that waited and could not be read.
    fn if_unreadable(&self) -> IfUnreadable;

    /// Whether `file`, after `value` was set, may have another one: the system sets some bits for those only who may.
    fn is_doubtful(&self, value: Self::Value) -> bool;

    /// Whether `file` has another value now than when it was planned for.
    fn differs(&self, planned: &Status, now: &Status) -> bool;

    /// The value that who gave the change may have expected, if that is not the one that was set.
    fn expected_instead(&self, file: &Status) -> Option<Self::Value>;
}

/// When a directory is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Before it is opened.
    BeforeSubtree,
    /// When all below it is done.
    AfterSubtree,
}

/// What becomes of a directory that waited for its subtree and could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUnreadable {
    /// It is changed all the same.
    Change,
    /// It stays as it is.
    Leave,
}

/// What is to be done about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan<V> {
    /// It is not meant.
    Leave {
        /// What it has.
        before: V,
    },
    /// A value is to be set.
    Set {
        /// What it has.
        before: V,
        /// What it is to have.
        after: V,
        /// What comes of it.
        effect: Effect,
    },
}

/// What comes of setting a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is another one.
    Changes,
    /// It is the same, but the call may change something else.
    Touches,
    /// None.
    Nothing,
}

/// What is known of a file.
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

/// How changes are made, whatever the attribute.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is changed.
    pub recursion: Recursion,
    /// Links that the traversal follows.
    pub follow: FollowPolicy,
    /// What becomes of the other links.
    pub links: Links,
    /// Device and inode number of the root directory, if it is not to be traversed.
    pub preserved_root: Option<(u64, u64)>,
    /// What is told besides failures.
    pub detail: Detail,
    /// Whether anything is changed at all.
    pub execution: Execution,
    /// Workers.
    pub threads: Threads,
    /// Ends the work early.
    pub cancellation: Cancellation,
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recursion {
    /// The operands.
    Operands,
    /// They and all that is below them (`-R`).
    Trees,
}

/// What becomes of links that the traversal does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Nothing; an operand must lead somewhere.
    PassOver,
    /// They are changed themselves.
    Change,
    /// What they lead to is changed.
    Dereference,
}

/// What is told besides failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing.
    Failures,
    /// Changes (`-c`).
    Changes,
    /// Every file (`-v`).
    Everything,
}

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It is.
    Real,
    /// It is only told what would be.
    DryRun,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a, V> {
    /// Its path, starting with the operand.
    pub path: &'a [u8],
    /// What it had, if that is known.
    pub before: Option<V>,
    /// What it was to have, if that is known.
    pub after: Option<V>,
    /// What came of it.
    pub outcome: Outcome<V>,
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<V> {
    /// It was made.
    Changed,
    /// It would have been made.
    WouldChange,
    /// The file has what it had.
    Retained,
    /// A link, which is left alone as is what it leads to.
    PassedOver,
    /// It was made, but another one may have been expected.
    Surprising {
        /// That one.
        expected: V,
    },
    /// It was not made.
    Failed(Problem),
}

impl<V> Outcome<V> {
    /// From which detail on it is told.
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
    /// It is a link, and what it leads to could not be examined.
    Dereference(Errno),
    /// The value could not be set.
    Set(Errno),
    /// The value was set, but not what came of it could be examined.
    Check(Errno),
    /// The directory could not be read.
    ReadDirectory(Errno),
    /// It is the root directory, which is not to be traversed.
    PreservedRoot,
    /// It is a directory that it is in.
    Cycle,
}

/// Takes the results. Calls may come from several threads at once.
pub trait Sink<V>: Sync {
    /// Tells about an event; what goes to the output is appended to `lines`.
    fn event(&self, event: &Event<'_, V>, lines: &mut Vec<u8>);

    /// Writes whole lines.
    fn lines(&self, lines: &[u8]);
}

/// Changes an attribute of `operands`, tells `sink`, and counts on `activity`.
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
    walk(volume, operands, &tree, &walk_options)
}
