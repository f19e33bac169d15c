//! How times of two files are compared (`--modify-window`, `--update`).

use millstream_vfs::Timestamp;

/// How exactly the times of files are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeAccuracy {
    /// As exactly as the coarser of the two is stored.
    AsStored,
    /// Differences of up to so many seconds are none (`--modify-window`).
    Seconds(u32),
    /// To the nanosecond (`--modify-window=-1`).
    Nanoseconds,
}

impl TimeAccuracy {
    /// Whether two times are the same.
    pub fn are_same(self, one: Timestamp, other: Timestamp) -> bool {
        match self {
            TimeAccuracy::Nanoseconds => one == other,
            TimeAccuracy::Seconds(window) => one.sec.abs_diff(other.sec) <= u64::from(window),
            TimeAccuracy::AsStored => {
                let unit = unit(one).max(unit(other));
                one.sec == other.sec && one.nsec / unit == other.nsec / unit
            }
        }
    }

    /// Whether a file of the destination counts as newer than its source (`--update`). One with the same time does not.
    pub fn is_newer(self, found: Timestamp, source: Timestamp) -> bool {
        match self {
            // As by rsync: a source that is newer by less than the window is not newer.
            TimeAccuracy::Seconds(window @ 1..) => source.sec - found.sec < i64::from(window),
            _ => found > source && !self.are_same(found, source),
        }
    }
}

/// The unit that a time may have been cut to, in nanoseconds: volumes store 1, 100, 1,000, and so on.
fn unit(time: Timestamp) -> u32 {
    const UNITS: [u32; 9] =
        [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 1];
    UNITS.into_iter().find(|unit| time.nsec.is_multiple_of(*unit)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sec: i64, nsec: u32) -> Timestamp {
        Timestamp { sec, nsec }
    }

    #[test]
    fn times_are_as_exact_as_the_coarser_one() {
        for (one, other, expected) in [
            (at(5, 123_456_789), at(5, 123_456_789), true),
            (at(5, 123_456_789), at(5, 123_456_788), false),
            (at(5, 123_456_789), at(5, 123_456_000), true),
            (at(5, 123_456_789), at(5, 123_457_000), false),
            (at(5, 123_456_789), at(5, 0), true),
            (at(5, 123_456_789), at(6, 0), false),
            (at(5, 123_456_700), at(5, 123_456_789), true),
            (at(-5, 500_000_000), at(-5, 0), true),
        ] {
            assert_eq!(TimeAccuracy::AsStored.are_same(one, other), expected, "{one:?} {other:?}");
            assert_eq!(TimeAccuracy::AsStored.are_same(other, one), expected, "{other:?} {one:?}");
        }
        assert!(TimeAccuracy::Seconds(1).are_same(at(5, 1), at(6, 999)));
        assert!(!TimeAccuracy::Seconds(0).are_same(at(5, 1), at(6, 1)));
        assert!(!TimeAccuracy::Nanoseconds.are_same(at(5, 1), at(5, 0)));
    }

    #[test]
    fn what_has_the_same_time_is_not_newer() {
        use TimeAccuracy::{AsStored, Nanoseconds, Seconds};
        for (accuracy, found, source, expected) in [
            (AsStored, at(6, 0), at(5, 0), true),
            (AsStored, at(5, 0), at(6, 0), false),
            (AsStored, at(5, 500), at(5, 0), false),
            (AsStored, at(5, 2), at(5, 1), true),
            (Seconds(0), at(5, 2), at(5, 1), false),
            (Seconds(0), at(6, 0), at(5, 1), true),
            (Nanoseconds, at(5, 2), at(5, 0), true),
            (Nanoseconds, at(5, 2), at(5, 2), false),
            (Seconds(1), at(5, 0), at(5, 0), true),
            (Seconds(1), at(5, 0), at(6, 0), false),
            (Seconds(2), at(5, 0), at(6, 0), true),
        ] {
            assert_eq!(accuracy.is_newer(found, source), expected, "{accuracy:?} {found:?} {source:?}");
        }
    }
}
