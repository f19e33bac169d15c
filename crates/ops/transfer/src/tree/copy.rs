//! Copies of files from one tree to another.

use std::ffi::CStr;

use millstream_version::Version;
use millstream_vfs::{At, Error, Fields, File, Volume};

use super::attributes::{Wanted, first_supported, operation_of};
use super::error::TreeError;
use super::root::Tree;
use super::staged::Staged;
use crate::transfer::file::{Destination, FileCopy, Source, SourceChange};
use crate::transfer::options::Verification;

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
    /// Reads all of a small file into `content`, if it is of this version before and after that.
    ///
    /// # Errors
    /// The first of any call.
    pub fn read_version(
        &self,
        path: &[u8],
        expected: &Version,
        content: &mut Vec<u8>,
    ) -> Result<bool, TreeError> {
        let (file, before) = self.open_file(path)?;
        if !expected.is_same(&Version::of(&before)) {
            return Ok(false);
        }
        content.resize(usize::try_from(expected.size).unwrap_or(usize::MAX), 0);
        let mut filled = 0;
        while filled < content.len() {
            match file.read(&mut content[filled..], At::Offset(filled as u64)).map_err(TreeError::of(path))? {
                0 => return Ok(false),
                read => filled += read,
            }
        }
        let after = file.metadata(Fields::STAT).map_err(TreeError::of(path))?;
        Ok(expected.is_same(&Version::of(&after)))
    }

    /// Copies the file at `path` of another tree to this one, where it is staged as by [`Tree::stage`]. Data moves in
    /// the way that the volume can do best. The source is examined again at the end, and only then compared with the
    /// copy, if that is wanted.
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
        if !expected.is_same(&Version::of(&metadata)) {
            return Ok(Copied { staged: None, bytes: 0, change: SourceChange::Changed, checksum: None });
        }
        let mut staged = self.stage(path, temporary, wanted)?;
        let attributes = wanted.attributes(self.preserve());
        let gathered = first_supported(|report| staged.xattrs = attributes.gather(&source, report));
        gathered.map_err(TreeError::of(path))?;
        staged.attributes = attributes;
        let Some(destination) = staged.file.take() else { unreachable!("it has just been staged") };
        let destination = Destination { file: destination, metadata: staged.before, fresh: true };
        let copy = FileCopy::new(Source::without_xattrs(source, metadata), destination);
        let filled = self.copier.fill(&copy, verification).map_err(|error| match error.errno {
            Some(errno) => TreeError::of(path)(Error::new(operation_of(error.trouble), errno)),
            None => TreeError::Differs { path: path.to_owned() },
        });
        let (bytes, change, checksum) = filled?;
        staged.file = Some(copy.destination);
        Ok(Copied { staged: Some(staged), bytes, change, checksum })
    }
}
