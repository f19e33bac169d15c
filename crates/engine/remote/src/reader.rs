//! Those who read for a [`RemoteSource`](crate::RemoteSource).

use std::fmt::Debug;

use millstream_scan::SourceFile;
use millstream_version::Version;
use millstream_vfs::Result;

/// What a read has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Requests.
    pub requests: u32,
    /// Those of them that repeated another.
    pub retries: u32,
    /// Those that the server turned away for now.
    pub throttled: u32,
}

/// A read by a [`NativeReader`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeRead {
    /// What it has cost.
    pub cost: Cost,
    /// Bytes that were read, 0 if it was refused.
    pub bytes: usize,
    /// Why it was refused.
    pub refusal: Option<String>,
}

/// A client in this process that reads objects by key and version.
pub trait NativeReader: Debug + Send + Sync + 'static {
    /// Whether it reads; not if too many requests were refused.
    fn reads(&self) -> bool;

    /// Reads bytes of an object of this version, as many as `buffer` takes; the object has them. Retries are made here.
    ///
    /// # Errors
    /// Why another client has to read them; what `buffer` contains is undefined then.
    fn read(
        &self,
        key: &[u8],
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
        cost: &mut Cost,
    ) -> std::result::Result<(), String>;
}

/// All files of a scan, by the file system's own client. Calls may run on many threads at once.
pub trait RemoteFiles: Debug + Send + Sync + 'static {
    /// A file.
    type File: RemoteFile;

    /// The file of the range with this index. Whether it exists may show when it is read.
    ///
    /// # Errors
    /// Those of the client.
    fn open(&self, index: usize) -> Result<Self::File>;

    /// Counts a read by the native reader.
    fn has_read_natively(&self, read: NativeRead);
}

/// A file that the file system's own client reads, once it is asked to. It is closed when it is dropped.
pub trait RemoteFile: SourceFile {
    /// Records that bytes of the listed version are used. Returns false if another version has been read here
    /// meanwhile, so that these bytes must not be used.
    fn accept(&self) -> bool;
}
