//! The expression as a tree. It is built once and then only read, by all workers concurrently.

use std::ffi::CString;

use millstream_system::pattern::Regex;
use millstream_vfs::{FileKind, Permission};

use super::exec::{Exec, ExecMode};
use super::format::Format;
use super::glob::Glob;
use super::mode::ModeTest;
use super::moment::{TimeField, Window};
use millstream_operation::terms::FileSystems;

/// A node of the tree.
#[derive(Debug)]
pub(super) enum Expr {
    /// True if all members are true; evaluated until one is false.
    And(Vec<Expr>),
    /// True if one member is true; evaluated until it is found.
    Or(Vec<Expr>),
    /// All members are evaluated; the value is the last one's.
    Comma(Vec<Expr>),
    /// The negation.
    Not(Box<Expr>),
    /// A test without side effects.
    Test(Test),
    /// Something that is done.
    Action(Action),
}

impl Expr {
    /// Whether there is an action that makes printing paths by default superfluous.
    pub fn acts(&self) -> bool {
        let mut acts = false;
        self.for_each_leaf(&mut |leaf| {
            if let Leaf::Action(action) = leaf {
                acts |= !matches!(action, Action::Prune | Action::Quit);
            }
        });
        acts
    }

    /// Calls `look` on every test and action, in order.
    pub fn for_each_leaf<'e>(&'e self, look: &mut dyn FnMut(Leaf<'e>)) {
        match self {
            Expr::And(all) | Expr::Or(all) | Expr::Comma(all) => {
                all.iter().for_each(|expr| expr.for_each_leaf(look));
            }
            Expr::Not(inner) => inner.for_each_leaf(look),
            Expr::Test(test) => look(Leaf::Test(test)),
            Expr::Action(action) => look(Leaf::Action(action)),
        }
    }

    /// Whether it has `-ok` or `-okdir`, which ask the user.
    pub fn asks(&self) -> bool {
        let mut asks = false;
        self.for_each_leaf(&mut |leaf| {
            asks |= matches!(leaf, Leaf::Action(Action::Exec(exec)) if exec.mode == ExecMode::Ask);
        });
        asks
    }
}

/// The leaves of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaf<'e> {
    /// A test.
    Test(&'e Test),
    /// An action.
    Action(&'e Action),
}

/// A test without side effects.
#[derive(Debug)]
pub(super) enum Test {
    /// `-true`, and options, which are true in any position.
    True,
    /// `-false`
    False,
    /// `-name`, `-iname`
    Name(Glob),
    /// `-path` and its synonyms
    Path(Glob),
    /// `-lname`, `-ilname`
    LinkTarget(Glob),
    /// `-regex`, `-iregex`
    Regex(Regex),
    /// `-type`
    Kind(KindSet),
    /// `-xtype`: the type on the other side of a symbolic link
    OtherKind(KindSet),
    /// `-empty`
    Empty,
    /// `-readable`, `-writable`, `-executable`
    Permission(Permission),
    /// `-fstype`
    FsType(Vec<u8>),
    /// `-uid`, `-user`
    Uid(Number),
    /// `-gid`, `-group`
    Gid(Number),
    /// `-nouser`
    NoUser,
    /// `-nogroup`
    NoGroup,
    /// `-links`
    Links(Number),
    /// `-inum`
    Inode(Number),
    /// `-size`, in units, rounded up
    Size {
        /// How many.
        number: Number,
        /// Size of a unit.
        unit_bytes: u64,
    },
    /// `-perm`
    Mode(ModeTest),
    /// `-mtime`, `-mmin`, `-newer` and the like
    Time {
        /// Which of the file's times.
        which: TimeField,
        /// The span that must contain it.
        window: Window,
    },
    /// `-used`: days from the last change of the attributes to the last access
    Used(Window),
    /// `-samefile`
    SameFile {
        /// Device of the file.
        dev: u64,
        /// Its inode number.
        ino: u64,
    },
}

/// Something that is done.
#[derive(Debug)]
pub(super) enum Action {
    /// `-print`, `-print0`, `-fprint`, `-fprint0`
    Print {
        /// Where to.
        stream: StreamId,
        /// The terminator after the path.
        terminator: u8,
    },
    /// `-printf`, `-fprintf`
    Printf {
        /// Where to.
        stream: StreamId,
        /// The format.
        format: Format,
    },
    /// `-ls`, `-fls`
    List {
        /// Number of blocks of 512 bytes that count as one.
        unit_blocks: u64,
        /// Where to.
        stream: StreamId,
    },
    /// The record that `--json` prints instead of the path.
    Record,
    /// `-prune`
    Prune,
    /// `-quit`
    Quit,
    /// `-delete`
    Delete,
    /// `-exec`, `-execdir`, `-ok`, `-okdir`
    Exec(Exec),
}

/// An output: its index among [`super::output::Streams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamId(pub usize);

impl StreamId {
    /// Standard output.
    pub const STDOUT: StreamId = StreamId(0);
}

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// `-N`
    Less,
    /// `N`
    Equal,
    /// `+N`
    Greater,
}

/// A number with its comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// How.
    pub comparison: Comparison,
    /// The number to compare with.
    pub value: u64,
}

impl Number {
    /// Whether `value` compares as wanted.
    pub fn matches(self, value: u64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.value,
            Comparison::Equal => value == self.value,
            Comparison::Greater => value > self.value,
        }
    }
}

/// A set of file types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KindSet(u16);

impl KindSet {
    /// Adds a type; returns false if the set already has it.
    pub fn insert(&mut self, kind: FileKind) -> bool {
        let bit = 1 << kind.dirent_type();
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new
    }

    /// Whether the type is in the set.
    pub fn contains(self, kind: FileKind) -> bool {
        self.0 & (1 << kind.dirent_type()) != 0
    }
}

/// The operands and options that apply to the whole traversal.
#[derive(Debug)]
pub(super) struct GlobalOptions {
    /// The paths to traverse.
    pub operands: Vec<CString>,
    /// `-H`, `-L`, `-P`, `-follow`
    pub follow: millstream_walk::FollowPolicy,
    /// `-depth`
    pub visits: VisitOrder,
    /// `-mindepth`
    pub min_depth: u32,
    /// `-maxdepth`
    pub max_depth: u32,
    /// `-xdev`
    pub file_systems: FileSystems,
    /// `-mount`
    pub mount_points: MountPoints,
    /// `-ignore_readdir_race`
    pub vanished: VanishedFiles,
}

/// When a directory is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VisitOrder {
    /// Before its contents.
    PreOrder,
    /// After them.
    PostOrder,
}

/// How to treat mount points of other file systems, if they are not descended into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountPoints {
    /// The expression is evaluated on them.
    Evaluate,
    /// They are skipped.
    LeaveOut,
}

/// How to treat files that disappear between being listed and being examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VanishedFiles {
    /// Report that they are gone.
    Report,
    /// Ignore them.
    Ignore,
}
