//! What is wrong with compressed data.

use std::io;

use crate::codec::Codec;

/// Compressed data that cannot be decoded. An [`io::Error`] wraps it: of kind `UnexpectedEof` if the data ends too early, otherwise
/// of kind `InvalidData`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged {} data at byte {offset}: {reason}", codec.name())]
pub struct DecodeError {
    /// What the data was taken for.
    pub codec: Codec,
    /// Compressed bytes that were used before the damage was found; it begins there or earlier.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
    /// What becomes of the data around the damage.
    pub kind: DamageKind,
}

/// What becomes of the data around damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The data ends too early.
    Truncated,
    /// Nothing after it has been decoded.
    Invalid,
    /// It was passed over: all that can be decoded before and after it has been.
    PassedOver,
}

impl DecodeError {
    /// The data ends where more of it must follow.
    pub(crate) fn truncated(codec: Codec, offset: u64) -> io::Error {
        let reason = "the file ends too early".into();
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            DecodeError { codec, offset, reason, kind: DamageKind::Truncated },
        )
    }

    /// The data is not what the format asks for.
    pub(crate) fn invalid(codec: Codec, offset: u64, reason: impl Into<String>) -> io::Error {
        let damage = DecodeError { codec, offset, reason: reason.into(), kind: DamageKind::Invalid };
        io::Error::new(io::ErrorKind::InvalidData, damage)
    }

    /// The same, where it did not keep other data from being decoded.
    pub(crate) fn passed_over(codec: Codec, offset: u64, reason: impl Into<String>) -> io::Error {
        let damage = DecodeError { codec, offset, reason: reason.into(), kind: DamageKind::PassedOver };
        io::Error::new(io::ErrorKind::InvalidData, damage)
    }
}
