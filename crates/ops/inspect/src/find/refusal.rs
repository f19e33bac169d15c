//! Why a command line is refused, and the wording of the message.

/// Why a command line is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It asks for help.
    #[error("help was asked for")]
    Help,
    /// It asks for the version.
    #[error("the version was asked for")]
    Version,
    /// It asks which arguments `-D` takes.
    #[error("help on debugging was asked for")]
    DebugHelp,
    /// It is wrong, and help may help.
    #[error("{}", String::from_utf8_lossy(.0))]
    Usage(Vec<u8>),
    /// It is wrong: the lines that say why.
    #[error("{}", .0.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join("\n"))]
    Mistake(Vec<Vec<u8>>),
}

impl Refusal {
    /// A mistake that takes one line.
    pub(super) fn mistake(parts: &[&[u8]]) -> Self {
        Refusal::Mistake(vec![parts.concat()])
    }
}
