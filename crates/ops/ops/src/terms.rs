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
    /// All.
    All,
    /// That of the operand (`-x`, `-xdev`, `--one-file-system`).
    One,
}

/// Defines an enumeration of choices without data.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $(($data:ty))?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant $(($data))?),+ }
    };
}

pub(crate) use choice;
