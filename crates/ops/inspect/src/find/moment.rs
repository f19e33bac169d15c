//! The times of a file, and the periods that tests compare them with.

use millstream_vfs::{Metadata, Timestamp};

/// One of a file's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeField {
    /// Last access.
    Access,
    /// Creation.
    Birth,
    /// Last change of the attributes.
    Change,
    /// Last change of the contents.
    Modification,
}

impl TimeField {
    /// The time, in nanoseconds since 1970.
    pub fn of(self, metadata: &Metadata) -> Timestamp {
        match self {
            TimeField::Access => metadata.atime,
            TimeField::Birth => metadata.btime,
            TimeField::Change => metadata.ctime,
            TimeField::Modification => metadata.mtime,
        }
    }
}

/// A stretch of time, in nanoseconds: `after < t <= until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Exclusive lower end.
    pub after: i128,
    /// Inclusive upper end.
    pub until: i128,
}

impl Window {
    /// Everything later than `moment`.
    pub fn later_than(moment: i128) -> Self {
        Window { after: moment, until: i128::MAX }
    }

    /// Everything earlier than `moment`.
    pub fn earlier_than(moment: i128) -> Self {
        Window { after: i128::MIN, until: moment - 1 }
    }

    /// Whether the moment or span lies within.
    pub fn contains(self, nanoseconds: i128) -> bool {
        self.after < nanoseconds && nanoseconds <= self.until
    }
}

/// Nanoseconds since 1970.
pub(super) fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec)
}
