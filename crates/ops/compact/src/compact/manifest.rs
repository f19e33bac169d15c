//! The inputs of an output, recorded before or after they are read.

use std::ffi::CString;

use millstream_vfs::{Dir, SymlinkBehavior, Timestamp, Volume};

use super::CompactError;
use super::journal::{Manifest, ManifestEntry};
use super::kept::STAMP;

/// A file as it was when it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path.
    pub path: CString,
    /// Its name in its directory.
    pub name: CString,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents, in milliseconds since 1970.
    pub mtime_ms: i64,
}

impl Manifest {
    /// Records files that have not been read yet, as they are now.
    ///
    /// # Errors
    /// Those of the volume, and if a file has changed since it was listed.
    pub fn of_listed<V: Volume>(volume: &V, files: Vec<ListedFile>) -> Result<Self, CompactError> {
        let base = volume.base();
        let entry = |file: ListedFile| {
            let found = base
                .metadata(&file.path, SymlinkBehavior::Follow, STAMP)
                .map_err(|error| CompactError::Volume { path: file.path.clone(), error })?;
            if (found.size, found.mtime.as_millis()) != (file.size, file.mtime_ms) {
                return Err(CompactError::Changed { path: file.path });
            }
            Ok(ManifestEntry { name: file.name, ino: found.ino, size: found.size, mtime: found.mtime })
        };
        Ok(Manifest { entries: files.into_iter().map(entry).collect::<Result<_, _>>()? })
    }

    /// Records files that have been read, with the inode number, size and time that each had then.
    pub fn of_read(names: Vec<CString>, stamps: impl IntoIterator<Item = (u64, u64, Timestamp)>) -> Self {
        let entry = |(name, (ino, size, mtime))| ManifestEntry { name, ino, size, mtime };
        Manifest { entries: names.into_iter().zip(stamps).map(entry).collect() }
    }
}

#[cfg(test)]
mod tests {
    use millstream_memory::MemoryVolume;
    use millstream_vfs::{Errno, Operation};

    use super::*;

    #[test]
    fn files_that_have_changed_since_they_were_listed_are_refused() {
        let volume = MemoryVolume::default();
        volume.write("file", b"1\n").expect("write");
        let found = volume.metadata("file", SymlinkBehavior::NoFollow).expect("stat");
        let listed = |size| ListedFile {
            path: c"/file".to_owned(),
            name: c"file".to_owned(),
            size,
            mtime_ms: found.mtime.as_millis(),
        };
        let entry = ManifestEntry { name: c"file".to_owned(), ino: found.ino, size: 2, mtime: found.mtime };
        let expected = Manifest { entries: vec![entry] };
        assert_eq!(Manifest::of_listed(&volume, vec![listed(2)]), Ok(expected.clone()));
        let read = Manifest::of_read(vec![c"file".to_owned()], [(found.ino, 2, found.mtime)]);
        assert_eq!(read, expected);
        let changed = Manifest::of_listed(&volume, vec![listed(2), listed(3)]).expect_err("its size is 2");
        assert_eq!(changed.to_string(), "/file: has changed since it was listed");
        volume.fail("file", Operation::Stat, Errno::IO);
        let failed = Manifest::of_listed(&volume, vec![listed(2)]).expect_err("cannot be looked at");
        assert_eq!(failed.to_string(), "/file: stat: Input/output error");
    }
}
