//! Where the bytes of a scan come from.
//!
//! A scan asks two things of a place that has files: to open one, and to read ranges of that open *version*, many at
//! once. A file that is replaced meanwhile is read to its end, as by a program that opened it once. [`VolumeSource`] is
//! the kind for POSIX file systems; a place that answers more slowly is read in larger portions ([`Portions`]).

use std::ffi::CString;
use std::fmt::Debug;
use std::sync::Arc;

use millstream_codec::{Codec, Index};
use millstream_version::Version;
use millstream_vfs::{Access, At, Dir, Errno, Fields, File, Result, SymlinkBehavior, Volume};

/// A range of bytes of a file, decoded ones if there is an index. A line belongs to it if it starts in (start, end];
/// the first line of the file belongs to the range at offset 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Path of the file.
    pub path: CString,
    /// First byte.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
    /// Whether the file may have a checksum file. If not, none is looked for.
    pub may_have_checksums: bool,
    /// How its bytes are those of rows.
    pub compression: Compression,
}

/// How the bytes of a file become those of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// They are those of rows.
    #[default]
    None,
    /// They are decoded from the first to the last. The range is the whole file, as it is compressed.
    Whole(Codec),
    /// The same, and an index is made ([`Scan::take_indexes`](crate::Scan::take_indexes)), if the codec has them
    /// ([`Codec::has_index`]).
    Indexing(Codec),
    /// A part of a file whose blocks can be decoded separately, as in bzip2. The range counts bytes of the file. It has
    /// the lines that begin in its blocks, which are those that begin in it: of the first block, only those after the
    /// first separator, unless it is the first block of the file; and also the line that continues in the block after
    /// the last one.
    Blocks {
        /// The size of the file when it was listed.
        size: u64,
    },
    /// They are decoded by this index, which has what [`Index::slice`] tells of the range.
    Indexed(Arc<Index>),
}

impl FileRange {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// The size of the file when it was listed, as far as the range tells: the end of the range, or more.
    pub(crate) fn size(&self) -> u64 {
        match &self.compression {
            Compression::Blocks { size } => *size,
            Compression::Indexed(index) => index.size(),
            Compression::None | Compression::Whole(_) | Compression::Indexing(_) => self.end(),
        }
    }

    /// The codec, if the file is decoded from the first byte to the last.
    pub(crate) fn streamed(&self) -> Option<Codec> {
        match self.compression {
            Compression::Whole(codec) | Compression::Indexing(codec) => Some(codec),
            Compression::Blocks { .. } => Some(Codec::Bzip2),
            Compression::None | Compression::Indexed(_) => None,
        }
    }
}

/// A place that has files.
pub trait Source: Debug + Send + Sync + 'static {
    /// An open file.
    type File: SourceFile;

    /// How its files are cut up among readers.
    const PORTIONS: Portions;

    /// Opens the file of a range, which has this index in the scan. What is read through the handle is one version of
    /// it.
    ///
    /// # Errors
    /// Those of the place. A missing file is one of [`crate::Cause::is_missing`].
    fn open(&self, index: usize, range: &FileRange) -> Result<Self::File>;

    /// Opens the file with the checksums of a range's file; `None` if there is none.
    ///
    /// # Errors
    /// As [`Source::open`], except that the file is not there.
    fn open_checksums(&self, range: &FileRange) -> Result<Option<Self::File>>;
}

/// An open file. Calls may run on many threads at once.
pub trait SourceFile: Debug + Send + Sync + 'static {
    /// Reads at a byte offset. Returns the number of bytes, 0 at the end of the file; a short read does not mean the
    /// end.
    ///
    /// # Errors
    /// Those of the place.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Greatest offset from which a reader may begin: the size now, or more where it is no error that a file has become
    /// shorter since it was listed.
    ///
    /// # Errors
    /// Those of the place.
    fn last_start(&self) -> Result<u64>;

    /// The version that the file is now.
    ///
    /// # Errors
    /// Those of the place.
    fn version(&self) -> Result<Version>;
}

/// How a source's files are cut up among readers: the more a request costs, the more bytes it is worth, and the fewer
/// requests a reader should make one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portions {
    /// Bytes that are read by one reader in one go: of a large range, or of several small ones.
    pub bytes: u64,
    /// Most small ranges that one reader reads one after the other.
    pub ranges: usize,
    /// Readers that a scan starts at once, because every answer takes a while. The caller of such a scan only waits, so
    /// that it can stop at any time, whatever the source does. With 0 the caller reads, and has help once that is found
    /// to wait. Of a file that one reader decodes, as many portions are fetched at once.
    pub first_readers: usize,
}

impl Portions {
    /// A range of more bytes is read in parts. The margin avoids a tiny last part.
    pub(crate) const fn large(self) -> u64 {
        self.bytes + self.bytes / 2
    }

    /// Size of the first piece of a range of `length` bytes.
    pub(crate) fn first_piece(self, length: u64) -> u64 {
        if length > self.large() { self.bytes } else { length }
    }

    /// How many parts a large range is read in.
    pub(crate) fn parts(self, length: u64) -> u64 {
        (length - self.large()).div_ceil(self.bytes) + 1
    }
}

/// The files of a volume. The path of a range is an operand of [`Volume::base`].
#[derive(Debug)]
pub struct VolumeSource<V: Volume> {
    base: V::Dir,
}

impl<V: Volume> VolumeSource<V> {
    /// The files of `volume`.
    pub fn new(volume: &V) -> Self {
        VolumeSource { base: volume.base() }
    }
}

impl<V: Volume> Source for VolumeSource<V> {
    type File = <V::Dir as Dir>::File;

    const PORTIONS: Portions = Portions { bytes: 1 << 20, ranges: 64, first_readers: 0 };

    fn open(&self, _index: usize, range: &FileRange) -> Result<Self::File> {
        self.base.open_file(&range.path, Access::Read, SymlinkBehavior::Follow)
    }

    fn open_checksums(&self, range: &FileRange) -> Result<Option<Self::File>> {
        match self.base.open_file(&checksum_file(&range.path), Access::Read, SymlinkBehavior::Follow) {
            Err(error) if matches!(error.errno, Errno::NOENT | Errno::NAMETOOLONG) => Ok(None),
            opened => opened.map(Some),
        }
    }
}

/// The file that holds the checksums of the file `path`.
pub(crate) fn checksum_file(path: &CString) -> CString {
    let path = path.to_bytes();
    let name = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let beside = [&path[..name], b".", &path[name..], b".crc"].concat();
    // Neither a C string nor the added parts contain a NUL.
    CString::new(beside).unwrap_or_default()
}

impl<F: File> SourceFile for F {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.read(buffer, At::Offset(offset))
    }

    fn last_start(&self) -> Result<u64> {
        self.metadata(Fields::SIZE).map(|metadata| metadata.size)
    }

    fn version(&self) -> Result<Version> {
        self.metadata(Version::FIELDS).map(|metadata| Version::of(&metadata))
    }
}
