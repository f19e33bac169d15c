//! What happens to a path, by what source and destination have.
//!
//! `psync` asks for one aspect after the other, because it examines an entry only as far as it has to:
//! [`Comparing::contents`], [`Preserved::difference`]. `psync --spark` has listed both sides completely, and asks for
//! the whole step ([`Rules::step`]).

mod step;

use millstream_vfs::{FileKind, Timestamp};

use crate::itemize::Difference;
use crate::times::TimeAccuracy;

pub use step::{Action, Deletion, Entry, Reason, Rules, Step};

/// How to find that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// By size and time.
    SizeAndTime,
    /// By size alone (`--size-only`).
    Size,
    /// By size and contents (`-c`).
    Contents,
    /// Not at all: every file is copied (`-I`).
    None,
}

/// What to do about a file of the destination that is newer than its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newer {
    /// It is replaced.
    Replaced,
    /// It stays (`-u`).
    Kept,
}

/// What to do about entries that the destination does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Create them.
    Created,
    /// Skip them (`--existing`).
    Skipped,
}

/// What to do about entries, other than directories, that the destination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// Update them.
    Updated,
    /// Leave them (`--ignore-existing`).
    Left,
}

/// Which kinds of entries take part, besides regular files and directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Symbolic links (`-l`).
    pub links: bool,
    /// Devices (`--devices`).
    pub devices: bool,
    /// Named pipes and sockets (`--specials`).
    pub specials: bool,
}

impl Kinds {
    /// Whether entries of a kind take part.
    pub fn include(self, kind: FileKind) -> bool {
        match kind {
            FileKind::File | FileKind::Directory => true,
            FileKind::Symlink => self.links,
            FileKind::CharDevice | FileKind::BlockDevice => self.devices,
            FileKind::Fifo | FileKind::Socket => self.specials,
            FileKind::Unknown => false,
        }
    }
}

/// The times of files of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Those of their sources.
    OfSources,
    /// Those at which they were written, because the file system keeps no others.
    OfCopies,
}

/// What is known of an entry. What its volume does not have, or the destination cannot have, is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<Account> {
    /// Its kind.
    pub kind: FileKind,
    /// Its size, if it is a file.
    pub size: u64,
    /// The time of its contents.
    pub mtime: Option<Timestamp>,
    /// Its mode.
    pub mode: Option<u32>,
    /// Its owner.
    pub owner: Option<Account>,
    /// Its group.
    pub group: Option<Account>,
}

/// Which files have changed.
#[derive(Clone, Copy, Debug)]
pub struct Comparing {
    /// How to find that.
    pub comparison: Comparison,
    /// How exactly times are compared.
    pub accuracy: TimeAccuracy,
    /// What the times of the destination are.
    pub times: Times,
    /// Whether one stays that is newer.
    pub newer: Newer,
}

/// How the contents of two files compare, as far as metadata tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// They count as the same.
    Same,
    /// The sizes differ.
    OtherSize,
    /// The times do.
    OtherTime,
    /// Every file counts as different.
    Assumed,
    /// They have to be compared.
    Unknown,
}

impl Comparing {
    /// How the contents of a file and its copy compare; `is_same_object` if both are known to have the same.
    pub fn contents<A>(&self, source: &Facts<A>, found: &Facts<A>, is_same_object: bool) -> Contents {
        if source.size != found.size {
            return Contents::OtherSize;
        }
        match self.comparison {
            Comparison::Contents => Contents::Unknown,
            Comparison::None => Contents::Assumed,
            Comparison::Size => Contents::Same,
            Comparison::SizeAndTime if is_same_object || self.is_current(source, found) => Contents::Same,
            Comparison::SizeAndTime => Contents::OtherTime,
        }
    }

    fn is_current<A>(&self, source: &Facts<A>, found: &Facts<A>) -> bool {
        match (self.times, source.mtime, found.mtime) {
            (Times::OfSources, Some(source), Some(found)) => self.accuracy.are_same(source, found),
            (Times::OfCopies, Some(source), Some(found)) => source <= found,
            _ => true,
        }
    }

    /// Whether a file of the destination stays because it is newer than its source.
    pub fn keeps_newer<A>(&self, source: &Facts<A>, found: &Facts<A>) -> bool {
        let accuracy = match (self.times, self.accuracy) {
            (Times::OfSources, accuracy) | (_, accuracy @ TimeAccuracy::Seconds(1..)) => accuracy,
            (Times::OfCopies, _) => TimeAccuracy::Nanoseconds,
        };
        self.newer == Newer::Kept
            && [source.kind, found.kind] == [FileKind::File; 2]
            && source.mtime.zip(found.mtime).is_some_and(|(source, found)| accuracy.is_newer(found, source))
    }
}

/// Which attributes are preserved.
#[derive(Clone, Copy, Debug)]
pub struct Preserved {
    /// The bits of modes; 0 for none.
    pub modes: u32,
    /// Owners.
    pub owner: bool,
    /// Groups.
    pub group: bool,
    /// Times of files, devices, pipes and sockets.
    pub times: bool,
    /// Times of directories.
    pub directory_times: bool,
    /// Times of links.
    pub link_times: bool,
}

impl Preserved {
    /// Whether the time of an entry is set.
    pub fn sets_time(&self, kind: FileKind) -> bool {
        match kind {
            FileKind::Directory => self.directory_times,
            FileKind::Symlink => self.link_times,
            _ => self.times,
        }
    }

    /// Which of the attributes that are preserved differ, those apart that need further calls.
    pub fn difference<A: PartialEq>(
        &self,
        source: &Facts<A>,
        found: &Facts<A>,
        comparing: &Comparing,
    ) -> Difference {
        let mut differs = Difference::empty();
        let is_other_time = comparing.times == Times::OfSources && has_other_time(source, found, comparing);
        differs.set(Difference::TIME, self.sets_time(source.kind) && is_other_time);
        let mode = |facts: &Facts<A>| facts.mode.map(|mode| mode & self.modes);
        let compares_modes = self.modes != 0 && source.kind != FileKind::Symlink && source.mode.is_some();
        differs.set(Difference::MODE, compares_modes && mode(source) != mode(found));
        let is_other = |one: &Option<A>, other: &Option<A>| one.is_some() && one != other;
        differs.set(Difference::OWNER, self.owner && is_other(&source.owner, &found.owner));
        differs.set(Difference::GROUP, self.group && is_other(&source.group, &found.group));
        differs
    }

    /// How the time of a copy will differ that gets none.
    pub fn time_of_copy<A>(&self, source: &Facts<A>, found: &Facts<A>, comparing: &Comparing) -> Difference {
        if self.sets_time(source.kind) {
            Difference::empty()
        } else if !self.times {
            Difference::TIME_OF_RUN
        } else if has_other_time(source, found, comparing) {
            Difference::TIME
        } else {
            Difference::empty()
        }
    }
}

fn has_other_time<A>(source: &Facts<A>, found: &Facts<A>, comparing: &Comparing) -> bool {
    let both = source.mtime.zip(found.mtime);
    both.is_some_and(|(source, found)| !comparing.accuracy.are_same(source, found))
}
