//! What copying and synchronizing share: how the data and the attributes of one file get to another.
//!
//! ```text
//!  the source, open ──► its attributes ──► a new file ──► the data: small, at once; large, by copy workers ──► finish
//!                                          under a         clone, or the volume copies,                    length, errors of
//!                                          temporary       or read and write                               closing, comparison,
//!                                          name                                                            attributes
//! ```
//!
//! Both operations decide by themselves what to copy, and under which name; what goes wrong with a copy is a
//! [`report::Trouble`] for both.

pub(crate) mod attributes;
pub(crate) mod buffers;
pub(crate) mod copy_workers;
pub(crate) mod data;
pub(crate) mod file;
pub(crate) mod links;
pub(crate) mod methods;
pub mod options;
pub(crate) mod parts;
pub(crate) mod place;
pub mod report;
pub(crate) mod temporaries;
pub(crate) mod throttle;
pub(crate) mod verify;

use millstream_vfs::{FileKind, Metadata, NodeKind};

use report::Trouble;

/// The special file to create as a copy, and the error to report if that fails; none if the source is not a special
/// file.
pub(crate) fn special(source: &Metadata) -> Option<(NodeKind, Trouble)> {
    match source.kind() {
        FileKind::Fifo => Some((NodeKind::Fifo, Trouble::CreateFifo)),
        FileKind::Socket => Some((NodeKind::Socket, Trouble::CreateSpecial)),
        FileKind::CharDevice => Some((NodeKind::CharDevice(source.rdev), Trouble::CreateSpecial)),
        FileKind::BlockDevice => Some((NodeKind::BlockDevice(source.rdev), Trouble::CreateSpecial)),
        _ => None,
    }
}

/// Device and inode number of a file.
pub(crate) type Identity = (u64, u64);
