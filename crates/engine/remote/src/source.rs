//! The source of a scan.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use millstream_scan::{FileRange, Portions, Source, SourceFile};
use millstream_version::Version;
use millstream_vfs::Result;

use crate::reader::{Cost, NativeRead, NativeReader, RemoteFile, RemoteFiles};

/// The files of a scan. The index of a range is its key.
#[derive(Debug)]
pub struct RemoteSource<R, F> {
    files: Arc<F>,
    /// With the listed version of each range's file, if a native client can read them.
    native: Option<(Arc<R>, Vec<Version>)>,
}

impl<R: NativeReader, F: RemoteFiles> RemoteSource<R, F> {
    /// The files that `files` can open. Those whose listed versions have a tag are read by the native reader, if there
    /// is one; it comes with the versions of all ranges.
    pub fn new(files: F, native: Option<(R, Vec<Version>)>) -> Self {
        let native = native.map(|(reader, listed)| (Arc::new(reader), listed));
        RemoteSource { files: Arc::new(files), native }
    }

    /// The native reader and the object of a range, if they are known. An empty object is not read natively: no request
    /// would tell whether it still exists.
    fn native(&self, index: usize, range: &FileRange) -> Option<Native<R>> {
        let (reader, listed) = self.native.as_ref()?;
        let is_readable = |v: &&Version| (1..=i64::MAX as u64).contains(&v.size) && !v.tag.is_none();
        let version = listed.get(index).filter(is_readable)?;
        let path = range.path.to_bytes();
        let key = &path[path.iter().position(|&b| b != b'/').unwrap_or(path.len())..];
        Some(Native {
            reader: Arc::clone(reader),
            key: key.to_vec(),
            version: version.clone(),
            is_left: AtomicBool::new(false),
        })
    }
}

impl<R: NativeReader, F: RemoteFiles> Source for RemoteSource<R, F> {
    type File = SourceObject<R, F>;

    /// A file each, since requests take long; large files in parts, each of which is one request.
    const PORTIONS: Portions = Portions { bytes: 8 << 20, ranges: 1, first_readers: 8 };

    fn open(&self, index: usize, range: &FileRange) -> Result<Self::File> {
        let native = self.native(index, range);
        Ok(SourceObject { files: Arc::clone(&self.files), index, opened: OnceLock::new(), native })
    }

    fn open_checksums(&self, _range: &FileRange) -> Result<Option<Self::File>> {
        Ok(None)
    }
}

/// A file of a [`RemoteSource`].
#[derive(Debug)]
pub struct SourceObject<R, F: RemoteFiles> {
    files: Arc<F>,
    index: usize,
    /// The file of [`RemoteFiles`], once that has to read.
    opened: OnceLock<F::File>,
    native: Option<Native<R>>,
}

/// An object that the native reader reads.
#[derive(Debug)]
struct Native<R> {
    reader: Arc<R>,
    key: Vec<u8>,
    version: Version,
    /// Whether the other client reads it from now on.
    is_left: AtomicBool,
}

impl<R: NativeReader, F: RemoteFiles> SourceObject<R, F> {
    /// The other client's file.
    fn opened(&self) -> Result<&F::File> {
        if let Some(file) = self.opened.get() {
            return Ok(file);
        }
        let file = self.files.open(self.index)?;
        // If another thread was faster, its file is the one, and this one has not been read.
        Ok(self.opened.get_or_init(|| file))
    }

    /// What the native reader reads; `None` if the other client has to.
    fn native(&self) -> Option<&Native<R>> {
        self.native.as_ref().filter(|native| !native.is_left.load(Ordering::Relaxed) && native.reader.reads())
    }

    /// Reads by the native reader; `None` if the other client has to.
    fn read_natively(&self, native: &Native<R>, buffer: &mut [u8], offset: u64) -> Option<Result<usize>> {
        let size = native.version.size;
        let Some(rest) = size.checked_sub(offset).filter(|&rest| rest > 0) else {
            return Some(Ok(0));
        };
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(buffer.len());
        let mut cost = Cost::default();
        let read = native.reader.read(&native.key, &native.version, offset, &mut buffer[..wanted], &mut cost);
        let bytes = if read.is_ok() { wanted } else { 0 };
        self.files.has_read_natively(NativeRead { cost, bytes, refusal: read.clone().err() });
        let is_accepted = match read {
            // All rows of the file come from these bytes.
            Ok(()) if wanted as u64 == size => Ok(true),
            // If another part has been read from a new version meanwhile, this one has to be as well.
            Ok(()) => self.opened().map(RemoteFile::accept),
            Err(_) => Ok(false),
        };
        match is_accepted {
            Err(error) => Some(Err(error)),
            Ok(true) => Some(Ok(wanted)),
            Ok(false) => {
                native.is_left.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

impl<R: NativeReader, F: RemoteFiles> SourceFile for SourceObject<R, F> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if let Some(read) = self.native().and_then(|native| self.read_natively(native, buffer, offset)) {
            return read;
        }
        self.opened()?.read_at(buffer, offset)
    }

    fn last_start(&self) -> Result<u64> {
        match self.native() {
            Some(native) => Ok(native.version.size),
            None => self.opened()?.last_start(),
        }
    }

    fn version(&self) -> Result<Version> {
        match self.native() {
            Some(native) => Ok(native.version.clone()),
            None => self.opened()?.version(),
        }
    }
}
