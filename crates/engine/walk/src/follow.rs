//! Which symbolic links a traversal follows.

use millstream_vfs::SymlinkBehavior;

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowPolicy {
    /// None (`-P`).
    #[default]
    Never,
    /// Those that are operands (`-H`).
    Operands,
    /// All (`-L`).
    Always,
}

impl FollowPolicy {
    /// The behaviour for an entry at `depth`; operands are at depth 0.
    pub fn at_depth(self, depth: u32) -> SymlinkBehavior {
        match self {
            FollowPolicy::Always => SymlinkBehavior::Follow,
            FollowPolicy::Operands if depth == 0 => SymlinkBehavior::Follow,
            FollowPolicy::Operands | FollowPolicy::Never => SymlinkBehavior::NoFollow,
        }
    }
}
