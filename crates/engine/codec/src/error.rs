//! Errors in compressed data.

use std::io;

use crate::codec::Codec;

/// Compressed data that cannot be decoded. An [`io::Error`] wraps it: of kind `UnexpectedEof` if the data ends too
/// early, otherwise of kind `InvalidData`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged {} data at byte {offset}: {reason}", codec.name())]
pub struct DecodeError {
    /// The expected codec.
    pub codec: Codec,
    /// Number of compressed bytes used before the damage was found; it begins there or earlier.
    pub offset: u64,
    /// The reason.
    pub reason: String,
    /// How the data around the damage is treated.
    pub kind: DamageKind,
}

/// How the data around damage is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The data ends too early.
    Truncated,
    /// Decoding has stopped at the damage.
    Invalid,
    /// It was skipped: everything that can be decoded before and after it has been.
    PassedOver,
}

impl DecodeError {
    /// The data ends where more must follow.
    pub(crate) fn truncated(codec: Codec, offset: u64) -> io::Error {
        let reason = "the file ends too early".into();
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            DecodeError { codec, offset, reason, kind: DamageKind::Truncated },
        )
    }

    /// The data does not follow the format.
    pub(crate) fn invalid(codec: Codec, offset: u64, reason: impl Into<String>) -> io::Error {
        let damage = DecodeError { codec, offset, reason: reason.into(), kind: DamageKind::Invalid };
        io::Error::new(io::ErrorKind::InvalidData, damage)
    }

    /// The same, where other data could be decoded all the same.
    pub(crate) fn passed_over(codec: Codec, offset: u64, reason: impl Into<String>) -> io::Error {
        let damage = DecodeError { codec, offset, reason: reason.into(), kind: DamageKind::PassedOver };
        io::Error::new(io::ErrorKind::InvalidData, damage)
    }
}
