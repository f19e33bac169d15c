//! Copies of files from one tree to another.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

use millstream_vfs::{Error, File, Volume};
use millstream_walk::Cancellation;

use super::attributes::{Wanted, first_error, operation_of};
use super::error::TreeError;
use super::staged::Staged;
use super::tree::Tree;
use crate::activity::Activity;
use crate::transfer::data::Mover;
use crate::transfer::file::{CopyError, FileCopy, SourceChange};
use crate::transfer::methods::Methods;
use crate::transfer::options::{DataOptions, Reflink, Sparse, Verification};

/// Nobody watches single copies.
static UNWATCHED: LazyLock<Activity> = LazyLock::new(Activity::default);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Moves the data of copies into a tree, and remembers between which devices that can be done how.
#[derive(Debug)]
pub(super) struct Copier {
    mover: Mover<'static>,
    sparse: Sparse,
}

impl Copier {
    pub(super) fn new(sparse: Sparse, cancellation: Cancellation) -> Self {
        let options = DataOptions { reflink: Reflink::Auto, sparse, bytes_per_second: None, cancellation };
        Copier { mover: Mover::new(options, &UNWATCHED), sparse }
    }
}

/// What is known of a source from an earlier look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Length in bytes.
    pub size: u64,
    /// When its contents were changed last, in nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// The result of copying a file.
#[derive(Debug)]
pub struct Copied<V: Volume> {
    /// The copy; none if the source was another version than the one that was expected.
    pub staged: Option<Staged<V>>,
    /// The length of the copy in bytes.
    pub bytes: u64,
    /// What has become of the source.
    pub change: SourceChange,
    /// XXH3 of the contents, of 128 bits, if the copy was verified.
    pub checksum: Option<u128>,
}

impl<V: Volume> Tree<V> {
    /// Copies the file at `path` of another tree to this one, where it is staged as by [`Tree::stage`]. Data moves in the way that
    /// the volume can do best. The source is examined again at the end, and only then compared with the copy, if that is wanted.
    ///
    /// # Errors
    /// The first of any call. Then nothing is left of the copy.
    pub fn copy_from(
        &self,
        from: &Tree<V>,
        path: &[u8],
        expected: &Version,
        (temporary, wanted): (&CStr, &Wanted),
        verification: Verification,
    ) -> Result<Copied<V>, TreeError> {
        let (source, metadata) = from.open_file(path)?;
        if (metadata.size, metadata.mtime.as_nanos()) != (expected.size, expected.mtime_ns) {
            return Ok(Copied { staged: None, bytes: 0, change: SourceChange::Changed, checksum: None });
        }
        let mut staged = self.stage(path, temporary, wanted)?;
        let attributes = wanted.attributes(self.preserve());
        let gathered = first_error(|report| staged.xattrs = attributes.gather(&source, report));
        gathered.map_err(TreeError::of(path))?;
        staged.attributes = attributes;
        let Some(destination) = staged.file.take() else { unreachable!("it has just been staged") };
        let copy = FileCopy {
            source,
            metadata,
            xattrs: Vec::new(),
            lacks_attribute: false,
            destination,
            before: staged.before,
            fresh: true,
            methods: Methods::default(),
            moved: AtomicU64::new(0),
        };
        let (bytes, change, checksum) = BUFFER
            .with_borrow_mut(|buffer| self.copier.fill(&copy, verification, buffer))
            .map_err(|error| match error.errno {
                Some(errno) => TreeError::of(path)(Error::new(operation_of(error.trouble), errno)),
                None => TreeError::Differs { path: path.to_owned() },
            })?;
        staged.file = Some(copy.destination);
        Ok(Copied { staged: Some(staged), bytes, change, checksum })
    }
}

impl Copier {
    /// Copies the data; the length, what has become of the source, and the checksum if it was computed.
    fn fill<F: File>(
        &self,
        copy: &FileCopy<F>,
        verification: Verification,
        buffer: &mut Vec<u8>,
    ) -> Result<(u64, SourceChange, Option<u128>), CopyError> {
        let bytes = self.mover.whole(&copy.pair(), buffer)?;
        copy.finish_data(bytes, self.sparse)?;
        let change = copy.change(bytes)?;
        // What is not complete cannot be like its source.
        let verifies = verification == Verification::Checksum && change == SourceChange::Unchanged;
        let checksum = if verifies { Some(copy.compare(&copy.destination, buffer)?) } else { None };
        Ok((bytes, change, checksum))
    }
}
