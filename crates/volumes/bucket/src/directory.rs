//! Directories of a bucket, and their files.

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex};

use millstream_vfs::{
    Access, Capabilities, Dir, DirentBatch, Errno, Error, Fields, FileKind, Intended, Metadata,
    MountBehavior, NodeKind, Operation, Ownership, Permission, ReadState, RemoveKind, Result,
    SymlinkBehavior, Timestamp, User, open_by_names,
};

use crate::bucket::{Bucket, lock, time_of};
use crate::file::{ObjectFile, unsupported};
use crate::listing::{Cursor, Listed, Memory};
use crate::location::below;
use crate::reader::ObjectReader;
use crate::upload::{Staging, Upload};

/// An object is written once, as a whole, and has nothing of what the mode of a file means.
pub const CAPABILITIES: Capabilities = Capabilities::empty();

/// A directory of a bucket: a prefix of keys.
#[derive(Clone, Debug)]
pub struct BucketDir {
    bucket: Arc<Bucket>,
    staging: Arc<Staging>,
    /// Ends with a slash unless it is empty.
    prefix: Vec<u8>,
    /// What was listed, until it is asked for.
    memory: Arc<Mutex<Memory>>,
    /// Whether names mean directories only.
    is_beside_files: bool,
}

impl BucketDir {
    /// A bucket.
    pub(crate) fn root(bucket: Bucket) -> Self {
        let bucket = Arc::new(bucket);
        let memory = Arc::new(Mutex::new(Memory::of(&bucket)));
        BucketDir { bucket, staging: Arc::default(), prefix: Vec::new(), memory, is_beside_files: false }
    }

    /// The same directory, without what was listed.
    pub(crate) fn without_listing(&self) -> Self {
        self.at(self.own_key())
    }

    /// The directory of this bucket with this key, without a slash at its end.
    fn at(&self, key: &[u8]) -> Self {
        let prefix = if key.is_empty() { Vec::new() } else { [key, b"/"].concat() };
        let memory = Arc::new(Mutex::new(Memory::of(&self.bucket)));
        let (bucket, staging) = (Arc::clone(&self.bucket), Arc::clone(&self.staging));
        BucketDir { bucket, staging, prefix, memory, is_beside_files: false }
    }

    /// Its own key, without a slash.
    fn own_key(&self) -> &[u8] {
        self.prefix.strip_suffix(b"/").unwrap_or(&self.prefix)
    }

    /// The key of an entry, without a slash.
    ///
    /// # Errors
    /// If it is not UTF-8, which keys are: `EILSEQ` if something is to be made there, otherwise `ENOENT`.
    fn key(&self, operation: Operation, name: &CStr) -> Result<Vec<u8>> {
        let is_made = matches!(operation, Operation::CreateFile | Operation::CreateDir | Operation::Rename);
        match name.to_str() {
            Ok(name) => Ok(below(&self.prefix, name.as_bytes())),
            Err(_) => Err(Error::new(operation, if is_made { Errno::ILSEQ } else { Errno::NOENT })),
        }
    }

    /// The directory `name`, which must be one.
    fn checked(&self, name: &CStr) -> Result<Self> {
        const OPENING: Operation = Operation::OpenDir;
        let key = self.key(OPENING, name)?;
        if key == self.own_key() && !key.is_empty() {
            return Ok(self.clone());
        }
        match lock(&self.memory).get(name.to_bytes()).map(Listed::kind) {
            Some(FileKind::Directory) => return Ok(self.at(&key)),
            Some(_) => return Err(Error::new(OPENING, Errno::NOTDIR)),
            None => {}
        }
        if self.bucket.is_directory(OPENING, &key)? {
            return Ok(self.at(&key));
        }
        let errno = if self.bucket.object(OPENING, &key)?.is_some() { Errno::NOTDIR } else { Errno::NOENT };
        Err(Error::new(OPENING, errno))
    }

    fn forget(&self, name: &CStr) {
        lock(&self.memory).take(name.to_bytes());
    }
}

impl Dir for BucketDir {
    type Cursor = Cursor;
    type File = ObjectFile;

    fn open_dir(&self, name: &CStr, _: SymlinkBehavior) -> Result<Self> {
        self.checked(name)
    }

    /// Asks for nothing: whether there is a directory shows when something in it is asked for.
    fn open_dir_for_names(&self, name: &CStr, _: SymlinkBehavior) -> Result<Self> {
        let key = self.key(Operation::OpenDir, name)?;
        Ok(if key == self.own_key() { self.clone() } else { self.at(&key) })
    }

    fn open_below(&self, path: &CStr, mounts: MountBehavior) -> Result<Self> {
        open_by_names(self, path, mounts)
    }

    fn open_parent(&self) -> Result<Self> {
        Ok(self.at(&below(&self.prefix, b"..")))
    }

    fn metadata(&self, name: &CStr, _: SymlinkBehavior, fields: Fields) -> Result<Metadata> {
        const EXAMINING: Operation = Operation::Stat;
        let key = self.key(EXAMINING, name)?;
        let directory = || self.bucket.metadata(&key, FileKind::Directory, 0, None);
        let needs_time = fields.intersects(Fields::MTIME | Fields::CTIME | Fields::ATIME | Fields::BTIME);
        let is_directory = self.is_beside_files || name.to_bytes().ends_with(b"/");
        let listed = lock(&self.memory).get(name.to_bytes()).cloned().filter(|_| !is_directory);
        match listed {
            Some(Listed::Directory) => return Ok(directory()),
            Some(Listed::Object(known)) if !needs_time => {
                return Ok(self.bucket.metadata(&key, FileKind::File, known.size, None));
            }
            _ => {}
        }
        if key != self.own_key() && !is_directory {
            if let Some(object) = self.bucket.object(EXAMINING, &key)? {
                lock(&self.memory).note(name.to_bytes(), Listed::Object(object.version.clone()));
                let time = Some(time_of(&object));
                return Ok(self.bucket.metadata(&key, FileKind::File, object.version.size, time));
            }
            self.forget(name);
        }
        if self.bucket.is_directory(EXAMINING, &key)? {
            return Ok(directory());
        }
        let is_object = is_directory && self.bucket.object(EXAMINING, &key)?.is_some();
        Err(Error::new(EXAMINING, if is_object { Errno::NOTDIR } else { Errno::NOENT }))
    }

    fn device_within(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<u64> {
        self.metadata(name, symlinks, Fields::INO).map(|metadata| metadata.dev)
    }

    fn identity(&self) -> Result<(u64, u64)> {
        Ok(self.bucket.identity(self.own_key()))
    }

    fn own_metadata(&self, _: Fields) -> Result<Metadata> {
        Ok(self.bucket.metadata(self.own_key(), FileKind::Directory, 0, None))
    }

    fn read_entries(&self, cursor: &mut Cursor, batch: &mut DirentBatch) -> Result<ReadState> {
        let note = |name: &CString, listed| lock(&self.memory).note(name.to_bytes(), listed);
        cursor.read(&self.bucket, &self.prefix, batch, note)
    }

    fn read_link(&self, _: &CStr) -> Result<Vec<u8>> {
        Err(Error::new(Operation::ReadLink, Errno::INVAL))
    }

    fn list_xattr(&self, _: &CStr, _: &mut Vec<u8>) -> Result<()> {
        unsupported(Operation::ListXattr)
    }

    fn get_xattr(&self, _: &CStr, _: &CStr, _: SymlinkBehavior) -> Result<Vec<u8>> {
        unsupported(Operation::GetXattr)
    }

    fn set_xattr(&self, _: &CStr, _: &CStr, _: &[u8]) -> Result<()> {
        unsupported(Operation::SetXattr)
    }

    fn remove_xattr(&self, _: &CStr, _: &CStr) -> Result<()> {
        unsupported(Operation::SetXattr)
    }

    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()> {
        let key = self.key(Operation::Remove, name)?;
        self.forget(name);
        match kind {
            RemoveKind::File => match self.staging.remove(&key) {
                Some(upload) => {
                    upload.abort();
                    Ok(())
                }
                None => self.bucket.remove_object(&key),
            },
            RemoveKind::Directory => self.bucket.remove_directory(&key),
        }
    }

    fn open_file(&self, name: &CStr, access: Access, _: SymlinkBehavior) -> Result<ObjectFile> {
        if !matches!(access, Access::Read | Access::ReadStream) {
            return unsupported(Operation::OpenFile);
        }
        let key = self.key(Operation::OpenFile, name)?;
        let known = match lock(&self.memory).take(name.to_bytes()) {
            Some(Listed::Object(known)) => Some(known),
            _ => None,
        };
        ObjectReader::open(&self.bucket, key, known).map(|reader| ObjectFile::Read(Arc::new(reader)))
    }

    fn create_file(&self, name: &CStr, mode: u32) -> Result<ObjectFile> {
        self.create_staged(name, mode, &Intended { name, size: 0, mtime: None })
    }

    fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<ObjectFile> {
        let key = self.key(Operation::CreateFile, name)?;
        let target = self.key(Operation::CreateFile, intended.name)?;
        let upload = Upload::new(&self.bucket, target, intended.size, intended.mtime, mode)?;
        self.staging.add(key, Arc::clone(&upload));
        Ok(ObjectFile::Write(upload))
    }

    fn complete(&self) -> Result<()> {
        self.bucket.complete_directory(self.own_key())
    }

    fn capabilities(&self, _: &CStr) -> Capabilities {
        CAPABILITIES
    }

    fn beside_files(&self) -> Result<Self> {
        Ok(BucketDir { is_beside_files: true, ..self.without_listing() })
    }

    fn as_file(&self) -> Result<ObjectFile> {
        self.own_metadata(Fields::STAT).map(ObjectFile::Directory)
    }

    fn create_dir(&self, name: &CStr, _: u32) -> Result<()> {
        self.bucket.make_directory(self.key(Operation::CreateDir, name)?);
        Ok(())
    }

    fn create_symlink(&self, _: &CStr, _: &CStr) -> Result<()> {
        unsupported(Operation::CreateSymlink)
    }

    fn create_node(&self, _: &CStr, _: NodeKind, _: u32) -> Result<()> {
        unsupported(Operation::CreateNode)
    }

    fn hard_link(&self, _: &CStr, _: SymlinkBehavior, _: &Self, _: &CStr) -> Result<()> {
        unsupported(Operation::HardLink)
    }

    fn rename_new(&self, _: &CStr, _: &Self, _: &CStr) -> Result<()> {
        unsupported(Operation::Rename)
    }

    /// Completes what was made by [`Dir::create_staged`]; nothing else can be renamed.
    fn rename(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        const RENAMING: Operation = Operation::Rename;
        let (key, target) = (self.key(RENAMING, name)?, other.key(RENAMING, new_name)?);
        let Some(upload) = self.staging.get(&key).filter(|upload| upload.is_for(&target)) else {
            return unsupported(RENAMING);
        };
        upload.finish()?;
        self.staging.remove(&key);
        other.forget(new_name);
        Ok(())
    }

    fn exchange(&self, _: &CStr, _: &Self, _: &CStr) -> Result<()> {
        unsupported(Operation::Rename)
    }

    /// The time of an object that is there changes as the server copies it onto itself.
    fn set_times(&self, name: &CStr, _: Timestamp, mtime: Timestamp) -> Result<()> {
        const SETTING: Operation = Operation::SetTimes;
        let key = self.key(SETTING, name)?;
        if let Some(upload) = self.staging.get(&key) {
            upload.set_time(mtime);
            return Ok(());
        }
        let object = self.bucket.object(SETTING, &key)?.ok_or(Error::new(SETTING, Errno::NOENT))?;
        self.bucket.set_time(&key, &object, mtime)
    }

    fn permits(&self, _: &CStr, _: Permission, _: User) -> Result<bool> {
        Ok(true)
    }

    fn path_for_children(&self) -> Result<CString> {
        unsupported(Operation::OpenDir)
    }

    fn set_mode(&self, _: &CStr, _: u32, _: SymlinkBehavior) -> Result<()> {
        Ok(())
    }

    fn set_owner(&self, _: &CStr, _: Ownership, _: SymlinkBehavior) -> Result<()> {
        unsupported(Operation::SetOwner)
    }
}
