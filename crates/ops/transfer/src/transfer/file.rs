//! The copy of one file, while both ends are open: its data, and then its attributes.

use std::sync::atomic::{AtomicU64, Ordering};

use millstream_vfs::{Dir, Errno, Error, Fields, File, FileKind, Metadata, Operation};

use super::attributes::{Attributes, Before, Report, XattrValues, trouble_of};
use super::data::{EarlyEnd, Pair};
use super::methods::Methods;
use super::options::Sparse;
use super::place::{Budget, Origin, Place};
use super::report::Trouble;
use super::verify::checksum;

/// Why a file was not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyError {
    pub(crate) trouble: Trouble,
    /// The error of the call that failed, if any.
    pub(crate) errno: Option<Errno>,
}

impl CopyError {
    pub(crate) fn new(trouble: Trouble) -> Self {
        CopyError { trouble, errno: None }
    }

    /// The error of a call as one about `trouble`.
    pub(crate) fn of(trouble: Trouble) -> impl Fn(Error) -> Self {
        move |error| CopyError { trouble, errno: Some(error.errno) }
    }
}

impl From<Error> for CopyError {
    /// The error of a call that moves data.
    fn from(error: Error) -> Self {
        CopyError { trouble: trouble_of(error), errno: Some(error.errno) }
    }
}

/// What has become of a source while it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChange {
    /// Nothing: the copy is complete.
    Unchanged,
    /// It is longer, and the copy is its beginning.
    Grown,
    /// It is another version now, or was one that nobody expected: the copy may be a mixture.
    Changed,
}

/// A copy whose two ends are open.
#[derive(Debug)]
pub(crate) struct FileCopy<F> {
    pub(crate) source: F,
    /// Metadata of the source.
    pub(crate) metadata: Metadata,
    /// What the copy gets of the source's extended attributes.
    pub(crate) xattrs: XattrValues,
    /// Whether one of them could not be read.
    pub(crate) lacks_attribute: bool,
    pub(crate) destination: F,
    /// Metadata of the copy before any data went into it; without the inode number where nobody asks for it.
    pub(crate) before: Metadata,
    /// Whether this run made the destination.
    pub(crate) fresh: bool,
    /// How the data was moved, so far.
    pub(crate) methods: Methods,
    /// Bytes that have been copied.
    pub(crate) moved: AtomicU64,
    /// Where the source ended too early.
    pub(crate) end: EarlyEnd,
}

/// A source that is open, with the attributes that its copy gets.
#[derive(Debug)]
pub(crate) struct Source<F> {
    pub(crate) file: F,
    pub(crate) metadata: Metadata,
    pub(crate) xattrs: XattrValues,
    /// Whether an attribute could not be read.
    pub(crate) lacks_attribute: bool,
}

impl<F: File> Source<F> {
    /// Reads the extended attributes of a source. What fails is reported, and ends nothing.
    pub(crate) fn gather(file: F, metadata: Metadata, attributes: &Attributes, report: Report<'_>) -> Self {
        let mut lacks_attribute = false;
        let xattrs = attributes.gather(&file, &mut |trouble, errno| {
            lacks_attribute = true;
            report(trouble, errno);
        });
        Source { file, metadata, xattrs, lacks_attribute }
    }

    /// A source whose extended attributes are of no interest.
    pub(crate) fn without_xattrs(file: F, metadata: Metadata) -> Self {
        Source { file, metadata, xattrs: XattrValues::new(), lacks_attribute: false }
    }
}

/// A destination that is open, and has none of the source's data yet.
#[derive(Debug)]
pub(crate) struct Destination<F> {
    pub(crate) file: F,
    pub(crate) metadata: Metadata,
    /// Whether this run made it.
    pub(crate) fresh: bool,
}

impl<F: File> FileCopy<F> {
    /// A copy of which nothing has been moved.
    pub(crate) fn new(source: Source<F>, destination: Destination<F>) -> Self {
        FileCopy {
            source: source.file,
            metadata: source.metadata,
            xattrs: source.xattrs,
            lacks_attribute: source.lacks_attribute,
            destination: destination.file,
            before: destination.metadata,
            fresh: destination.fresh,
            methods: Methods::default(),
            moved: AtomicU64::new(0),
            end: EarlyEnd::default(),
        }
    }

    /// Whether both ends are regular files.
    pub(crate) fn are_files(&self) -> bool {
        self.metadata.kind() == FileKind::File && self.before.kind() == FileKind::File
    }

    pub(crate) fn pair(&self) -> Pair<'_, F> {
        Pair {
            source: &self.source,
            metadata: &self.metadata,
            destination: &self.destination,
            device: self.before.dev,
            methods: &self.methods,
            moved: &self.moved,
            end: &self.end,
        }
    }

    /// Bytes of the source that were not copied: holes, or what is left of a file that failed. Modulo 2^64.
    pub(crate) fn spared(&self) -> u64 {
        self.metadata.size.wrapping_sub(self.moved.load(Ordering::Relaxed))
    }

    /// Gives a regular destination its length after `bytes` of data.
    ///
    /// # Errors
    /// Those of the call, as troubles of writing.
    pub(crate) fn finish_data(&self, bytes: u64, sparse: Sparse) -> Result<(), CopyError> {
        let may_end_in_hole = sparse == Sparse::Always || self.pair().has_holes();
        if may_end_in_hole && bytes > 0 {
            self.destination.set_len(bytes).map_err(CopyError::of(Trouble::Write))?;
        }
        Ok(())
    }

    /// Takes off what is beyond `bytes` of data: more may have been written when the source was thought to be longer.
    ///
    /// # Errors
    /// Those of the call, as troubles of writing.
    pub(crate) fn cut(&self, bytes: u64) -> Result<(), CopyError> {
        if bytes < self.metadata.size {
            self.destination.set_len(bytes).map_err(CopyError::of(Trouble::Write))?;
        }
        Ok(())
    }

    /// What has become of the source, of which `bytes` were read.
    ///
    /// # Errors
    /// That of examining it; `ENODATA` if it ended before the length that it still has.
    pub(crate) fn change(&self, bytes: u64) -> Result<SourceChange, Error> {
        let (before, now) = (&self.metadata, self.source.metadata(Fields::STAT)?);
        // Its time may have been put back. Where it has got or lost a name, as one does that is replaced, nothing else
        // need have changed.
        let is_touched = now.ctime != before.ctime && now.nlink == before.nlink;
        // Files of /proc are said to be empty.
        let is_other_length = bytes != before.size && before.size > 0;
        let is_same = (now.mtime, now.size) == (before.mtime, before.size) && !is_touched;
        if is_same && bytes < before.size {
            return Err(Error::new(Operation::Read, Errno::NODATA));
        }
        Ok(if is_same && !is_other_length {
            SourceChange::Unchanged
        } else if now.size > before.size && bytes >= before.size {
            SourceChange::Grown
        } else {
            SourceChange::Changed
        })
    }

    /// Hands the data to the volume.
    ///
    /// # Errors
    /// Those that only closing the destination would show.
    pub(crate) fn flush(&self) -> Result<(), CopyError> {
        self.destination.flush().map_err(CopyError::of(Trouble::Close))
    }

    /// Reads both ends again and compares them; `copy` is the destination, open for reading. Returns the checksum of
    /// the contents.
    ///
    /// # Errors
    /// If they differ, or one cannot be read.
    pub(crate) fn compare(&self, copy: &F, buffer: &mut Vec<u8>) -> Result<u128, CopyError> {
        let expected = checksum(&self.source, buffer).map_err(CopyError::of(Trouble::Read))?;
        let found = checksum(copy, buffer).map_err(CopyError::of(Trouble::Differs))?;
        if expected == found { Ok(expected.0) } else { Err(CopyError::new(Trouble::Differs)) }
    }

    /// Gives the destination the attributes of the source. What fails is reported, and ends nothing.
    pub(crate) fn set_attributes(
        &self,
        attributes: &Attributes,
        may_have_acl: bool,
        replaced_mode: Option<u32>,
        report: Report<'_>,
    ) {
        let before = Before {
            metadata: &self.before,
            made_with: None,
            fresh: self.fresh,
            may_have_acl: !self.fresh || may_have_acl,
            lacks_attribute: self.lacks_attribute,
            replaced_mode,
        };
        attributes.set(&self.destination, &self.metadata, &self.xattrs, before, report);
    }
}

/// What a new file will be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The mode to make it with.
    pub(crate) mode: u32,
    /// Its metadata then, without the inode number, if that is known.
    pub(crate) metadata: Option<Metadata>,
}

impl Expected {
    /// What a file is like that is made in `place` for `source`. In a directory that this run made, without a list of
    /// permissions for what is made in it, all files are made like the first one.
    pub(crate) fn of<D: Dir, F>(
        attributes: &Attributes,
        place: &Place<D>,
        budget: &Budget,
        source: &Source<F>,
    ) -> Self {
        let Source { metadata, xattrs, .. } = source;
        let careful = Expected { mode: attributes.creation_mode(metadata), metadata: None };
        let new_file = place.new_file.get().copied().flatten();
        let is_uniform =
            place.origin == Origin::Made && new_file.is_some() && !attributes.inherits_acl(place, budget);
        let Some(new_file) = new_file.filter(|_| is_uniform) else { return careful };
        let mode =
            if xattrs.is_empty() { attributes.mode_at_once(metadata, &new_file) } else { careful.mode };
        let found = new_file.mode & !0o7777 | mode & !attributes.umask;
        let fields = new_file.fields - Fields::INO;
        Expected { mode, metadata: Some(Metadata { fields, mode: found, ..new_file }) }
    }

    /// Notes what the first file of a directory that this run made is like.
    pub(crate) fn note<D: Dir>(&self, attributes: &Attributes, place: &Place<D>, made: &Metadata) {
        if place.origin == Origin::Made {
            let is_as_asked = made.mode & 0o7777 == self.mode & !attributes.umask;
            place.new_file.get_or_init(|| is_as_asked.then_some(*made));
        }
    }
}
