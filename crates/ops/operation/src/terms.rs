//! Options that several operations share.

/// Whether to make changes or only report them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Make them.
    Real,
    /// Only report them (`--dry-run`).
    DryRun,
}

/// Which file systems a traversal enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystems {
    /// All of them.
    All,
    /// Only the operand's (`-x`, `-xdev`, `--one-file-system`).
    One,
}
