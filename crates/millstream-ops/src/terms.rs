//! Choices that several operations offer, said once.

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It is.
    Real,
    /// It is only told what would be (`--dry-run`).
    DryRun,
}

/// Which file systems a traversal enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystems {
    /// All.
    All,
    /// That of the operand (`-x`, `-xdev`, `--one-file-system`).
    One,
}
