//! Makes the index of a compressed file.

use std::io::ErrorKind;

use millstream_codec::{Index, Indexer, SPACING};
use millstream_vfs::{Errno, Error, Operation};

use crate::error::{Cause, ScanError};
use crate::file_reader::FileReader;
use crate::source::{FileRange, Source};
use crate::stream::cause;

/// Decodes the file of `range`, a whole compressed file, to make its index. `should_continue` is asked from time to
/// time.
///
/// # Errors
/// Those of a scan of the file; and `EOPNOTSUPP` if the file cannot be divided: its codec has no indexes, or it has a
/// frame, or a block of deflate, that is too long.
pub fn index_file<S: Source>(
    source: &S,
    range: &FileRange,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Index, ScanError> {
    index(source, range, should_continue).map_err(|cause| ScanError { range: 0, cause })
}

fn index<S: Source>(
    source: &S,
    range: &FileRange,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Index, Cause> {
    let undivided = || Cause::from(Error::new(Operation::Read, Errno::NOTSUP));
    let codec = range.streamed().filter(|codec| codec.has_index()).ok_or_else(undivided)?;
    let file = source.open(0, range)?;
    let portion = usize::try_from(S::PORTIONS.bytes).unwrap_or(usize::MAX);
    let reader = FileReader::new(file, 0..range.end(), range.size(), portion, S::PORTIONS.first_readers);
    let ending = reader.ending();
    let indexer = Indexer::new(codec, reader, SPACING).ok_or_else(undivided)?;
    let made = indexer.run(should_continue);
    if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
        return Err(Cause::Interrupted);
    }
    ending.check()?;
    made.map_err(cause)?.ok_or_else(undivided)
}
