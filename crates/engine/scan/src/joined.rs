//! Many text files as one sequence of bytes, from wherever a [`Source`] has them.
//!
//! The inputs are read ahead as in any [`Scan`], and joined by the rules of [`Joiner`]. Each must still be the file
//! that was listed. [`check`] reads only the beginnings of the inputs.

use std::ffi::CString;

use millstream_version::Version;
use millstream_vfs::Error;

use crate::contents::{BEGINNING, Contents};
use crate::error::{Cause, JoinError, ScanError};
use crate::join::{Header, JoinRule, Joiner, Place};
use crate::source::{Compression, FileRange, Source};
use crate::{Damage, Grouping, Missing, Output, Predicate, Rows, Scan, ScanOptions, Verification};

/// A file to concatenate, as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Path of the file.
    pub path: CString,
    /// The version that was listed, with a time in milliseconds.
    pub version: Version,
}

impl Input {
    /// Whether a version is the one that was listed.
    pub fn is(&self, version: &Version) -> bool {
        self.version.is_same(&version.in_millis())
    }
}

/// The reason files cannot be concatenated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConcatenateError {
    /// An input cannot be read.
    #[error("{cause}")]
    Read {
        /// Index of the input.
        input: usize,
        /// The cause.
        cause: Cause,
    },
    /// An input has changed since it was listed.
    #[error("has changed since it was listed")]
    Changed {
        /// Index of the input.
        input: usize,
    },
    /// An input cannot be joined to others.
    #[error("{cause}")]
    Join {
        /// Index of the input.
        input: usize,
        /// The cause.
        cause: JoinError,
    },
    /// The output cannot be written.
    #[error("{0}")]
    Write(#[from] Error),
    /// The output was read back with different contents.
    #[error("the file reads back differently from the data written")]
    Differs,
}

impl ConcatenateError {
    /// Index of the input concerned; `None` if the error concerns the output.
    pub fn input(&self) -> Option<usize> {
        match *self {
            ConcatenateError::Read { input, .. }
            | ConcatenateError::Changed { input }
            | ConcatenateError::Join { input, .. } => Some(input),
            ConcatenateError::Write(_) | ConcatenateError::Differs => None,
        }
    }
}

/// The bytes of many files, joined.
#[derive(Debug)]
pub struct JoinedFiles<S: Source> {
    scan: Scan<S>,
    reading: Reading,
    joiner: Joiner,
    /// A single file is passed on as it is, whatever it contains.
    is_copy: bool,
}

impl<S: Source> JoinedFiles<S> {
    /// The bytes of `inputs`; nothing is read yet.
    pub fn new(source: S, inputs: Vec<Input>, rule: impl Into<JoinRule>, max_readers: usize) -> Self {
        let rule = rule.into();
        let ranges = inputs.iter().map(|input| FileRange {
            path: input.path.clone(),
            start: 0,
            length: input.version.size,
            may_have_checksums: true,
            compression: Compression::None,
        });
        JoinedFiles {
            scan: Scan::new(source, ranges.collect(), scan_options(max_readers)),
            joiner: Joiner::new(rule),
            is_copy: inputs.len() == 1 && rule.header == Header::None,
            reading: Reading { at: 0, left: None, versions: Vec::with_capacity(inputs.len()), inputs },
        }
    }

    /// Passes the next bytes to `put`, piece by piece. Returns false at the end. `should_continue` is asked repeatedly
    /// while inputs are read; false ends the call.
    ///
    /// # Errors
    /// The first error of an input, or of `put`. An input that has changed since it was listed is one.
    pub fn next(
        &mut self,
        should_continue: &mut dyn FnMut() -> bool,
        put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<bool, ConcatenateError> {
        let Some(batch) = self.scan.next_batch_while(should_continue).map_err(unreadable)? else {
            return self.reading.end().map(|()| false);
        };
        let (mut versions, mut last_versions) = (batch.versions().iter(), batch.last_versions().iter());
        for piece in batch.iter() {
            let (input, place) = self.reading.place(piece, &mut versions, &mut last_versions)?;
            if self.is_copy {
                put(piece)?;
                continue;
            }
            let (before, added) =
                self.joiner.add(piece, place).map_err(|cause| ConcatenateError::Join { input, cause })?;
            put(before)?;
            put(added)?;
        }
        Ok(true)
    }

    /// The files.
    pub fn inputs(&self) -> &[Input] {
        &self.reading.inputs
    }

    /// The version of each input that was read.
    pub fn into_versions(self) -> Vec<Version> {
        self.reading.versions
    }
}

/// Checks whether `inputs` can be concatenated, as far as their beginnings tell. Checksums are not verified.
///
/// # Errors
/// The first error that [`JoinedFiles`] would meet at the beginning of an input.
pub fn check<S: Source>(
    source: S,
    inputs: &[Input],
    rule: impl Into<JoinRule>,
    max_readers: usize,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<(), ConcatenateError> {
    let rule = rule.into();
    let decisive = |input: &Input| match rule {
        JoinRule { header: Header::None, contents: Contents::Text } => {
            input.version.size.min(BEGINNING as u64)
        }
        _ => S::PORTIONS.first_piece(input.version.size),
    };
    let ranges = inputs.iter().map(|input| FileRange {
        path: input.path.clone(),
        start: 0,
        length: decisive(input),
        may_have_checksums: false,
        compression: Compression::None,
    });
    let mut scan = Scan::new(source, ranges.collect(), scan_options(max_readers));
    let (mut joiner, mut seen) = (Joiner::new(rule), 0);
    while let Some(batch) = scan.next_batch_while(should_continue).map_err(unreadable)? {
        for (piece, version) in batch.iter().zip(batch.versions()) {
            let input = seen;
            let is_listed = |listed: &&Input| listed.is(version) && decisive(listed) == piece.len() as u64;
            let listed = inputs.get(input).filter(is_listed).ok_or(ConcatenateError::Changed { input })?;
            let place = Place { first: true, last: listed.version.size == piece.len() as u64 };
            joiner.add(piece, place).map_err(|cause| ConcatenateError::Join { input, cause })?;
            seen += 1;
        }
    }
    if seen == inputs.len() { Ok(()) } else { Err(ConcatenateError::Changed { input: seen }) }
}

fn unreadable(error: ScanError) -> ConcatenateError {
    ConcatenateError::Read { input: error.range, cause: error.cause }
}

fn scan_options(max_readers: usize) -> ScanOptions {
    ScanOptions {
        rows: Rows::Bytes,
        predicate: Predicate::True,
        words: None,
        output: Output::Values,
        grouping: Grouping::Any,
        missing: Missing::Fail,
        verification: Verification::Checksums,
        damage: Damage::Fail,
        max_readers,
    }
}

/// Assigns pieces to inputs.
#[derive(Debug)]
struct Reading {
    inputs: Vec<Input>,
    at: usize,
    /// Bytes left of that input, once its first piece has arrived.
    left: Option<u64>,
    versions: Vec<Version>,
}

impl Reading {
    fn place<'s>(
        &mut self,
        piece: &[u8],
        versions: &mut impl Iterator<Item = &'s Version>,
        last_versions: &mut impl Iterator<Item = &'s Version>,
    ) -> Result<(usize, Place), ConcatenateError> {
        let input = self.at;
        let changed = || ConcatenateError::Changed { input };
        let listed = self.inputs.get(input).ok_or_else(changed)?;
        let first = self.left.is_none();
        if first {
            let version = versions.next().filter(|version| listed.is(version)).ok_or_else(changed)?;
            self.versions.push(version.clone());
        }
        let left = self.left.unwrap_or(listed.version.size);
        let rest = left.checked_sub(piece.len() as u64).ok_or_else(changed)?;
        if piece.is_empty() && left > 0 {
            return Err(changed());
        }
        let last = rest == 0;
        let is_unchanged = |versions: &[Version], now: Option<&Version>| {
            versions.last().zip(now).is_some_and(|(before, now)| before.is_same(now))
        };
        if last && !first && !is_unchanged(&self.versions, last_versions.next()) {
            return Err(changed());
        }
        (self.at, self.left) = if last { (input + 1, None) } else { (input, Some(rest)) };
        Ok((input, Place { first, last }))
    }

    /// Fails if an input has ended early.
    fn end(&self) -> Result<(), ConcatenateError> {
        let is_complete = (self.at, self.left) == (self.inputs.len(), None);
        if is_complete { Ok(()) } else { Err(ConcatenateError::Changed { input: self.at }) }
    }
}
