//! Reports and questions of a copy operation.

pub use crate::transfer::report::{Problem, Trouble};

/// A question to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// Path of the existing file.
    pub destination: &'a [u8],
    /// The mode of a file that cannot be written.
    pub unwritable: Option<u32>,
}

/// Receives reports and answers questions.
pub trait Sink: Sync {
    /// Whole lines about finished actions. Calls may come from several threads at once.
    fn lines(&self, lines: &[u8]);

    /// Something failed. Calls may come from several threads at once.
    fn problem(&self, problem: &Problem<'_>);

    /// An operand was given twice, which is not an error.
    fn given_twice(&self, source: &[u8], is_directory: bool);

    /// Whether the user agrees to overwrite a file.
    fn confirm(&self, question: &Question<'_>) -> bool;
}
