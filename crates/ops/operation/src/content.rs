//! The content of open files as readers, and the owner and permissions that a new file gets from the one it replaces.

use std::ffi::CStr;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_codec::DecodeError;
use millstream_vfs::{At, Errno, Error, File, Metadata, Operation, Result};

/// The extended attribute with the access control list.
const ACCESS_LIST: &CStr = c"system.posix_acl_access";

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The work is done.
    Real,
    /// The work is only reported.
    DryRun,
}

/// The cause of an error of a decoder that reads [`Content`]: the data, or else the volume.
pub fn damage(error: io::Error) -> std::result::Result<Box<DecodeError>, Error> {
    error.downcast().map(Box::new).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        Error::new(Operation::Read, errno)
    })
}

/// Counts bytes of a file that have been read.
#[derive(Debug, Default)]
pub struct Counted<'a> {
    /// The count of all files.
    pub all: Option<&'a AtomicU64>,
    /// The count of this file.
    pub own: AtomicU64,
}

/// Reads a file from an offset on.
#[derive(Debug)]
pub struct Content<'a, F> {
    /// The file.
    pub file: &'a F,
    /// The offset of the next read, in bytes.
    pub offset: u64,
    /// The counter of bytes.
    pub counted: &'a Counted<'a>,
}

impl<F: File> Read for Content<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer, At::Offset(self.offset));
        let count = read.map_err(|error| io::Error::from(error.errno))?;
        self.offset += count as u64;
        for bytes in self.counted.all.into_iter().chain([&self.counted.own]) {
            bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// Gives a new, empty file the owner and the permissions of another one with this metadata, as far as permitted. Nobody
/// gets permissions that they do not have on the other one.
///
/// # Errors
/// If permissions cannot be set, or an access control list cannot be read or removed.
pub fn take_after<F: File>(file: &F, other: &F, metadata: &Metadata) -> Result<()> {
    let has_group = file.set_owner(Some(metadata.uid), Some(metadata.gid)).is_ok()
        || file.set_owner(None, Some(metadata.gid)).is_ok();
    permit(file, other, metadata.mode & 0o777, if has_group { Group::Same } else { Group::Another })
}

/// The group of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// The other file's group.
    Same,
    /// A group whose members may lack the group's permissions on the other file.
    Another,
}

fn permit<F: File>(file: &F, other: &F, mode: u32, group: Group) -> Result<()> {
    let list = access_list(other)?;
    if let (Some(list), Group::Same) = (&list, group)
        && file.set_xattr(ACCESS_LIST, list).is_ok()
    {
        return Ok(());
    }
    // The file may have inherited a list from the directory. Its entries would become effective with the mode, which is
    // then their mask.
    remove_access_list(file)?;
    // Members of the new group, and users excluded by the other file's group or list, may have counted as others there.
    let of_all = |permissions: u32| mode & 0o700 | permissions << 3 | permissions;
    file.set_mode(match (list, group) {
        (None, Group::Same) => mode,
        (None, Group::Another) => of_all(mode >> 3 & mode & 0o007),
        (Some(list), _) => of_all(least(&list)),
    })
}

/// The access control list of a file; [`None`] if it has none, or the volume has no lists.
fn access_list<F: File>(file: &F) -> Result<Option<Vec<u8>>> {
    match file.xattr(ACCESS_LIST) {
        Err(error) if has_no_list(error) => Ok(None),
        list => list.map(Some),
    }
}

fn remove_access_list<F: File>(file: &F) -> Result<()> {
    match file.remove_xattr(ACCESS_LIST) {
        Err(error) if has_no_list(error) => Ok(()),
        removed => removed,
    }
}

fn has_no_list(error: Error) -> bool {
    matches!(error.errno, Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)
}

/// The permissions that an access control list gives everyone but the owner: those of others that every other entry
/// has, too.
fn least(list: &[u8]) -> u32 {
    const HEADER_BYTES: usize = 4;
    const OWNER: u16 = 1;
    // The tag, the permissions, and an ID of four bytes.
    let (entries, _) = list.get(HEADER_BYTES..).unwrap_or_default().as_chunks::<8>();
    let permissions = entries.iter().filter_map(|&[tag0, tag1, low, high, ..]| {
        (u16::from_le_bytes([tag0, tag1]) != OWNER).then_some(u16::from_le_bytes([low, high]))
    });
    permissions.map(u32::from).reduce(|least, other| least & other).unwrap_or(0) & 0o007
}

#[cfg(test)]
mod tests {
    use millstream_posix::{PosixFile, PosixVolume};
    use millstream_vfs::{Access, Dir, Fields, SymlinkBehavior, Volume};

    use super::*;
    use millstream_text::names::c_string;

    const DEFAULT_LIST: &CStr = c"system.posix_acl_default";

    /// `u::rw-`, an entry for a user, `g::r--`, `m::r--`, and these permissions for others.
    fn list(user: u16, others: u16) -> Vec<u8> {
        let entry = |(tag, permissions, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let entries =
            [(1, 6, u32::MAX), (2, user, 12345), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, others, u32::MAX)];
        [&2_u32.to_le_bytes()[..], &entries.map(entry).concat()].concat()
    }

    /// A directory whose new files inherit a list, and a file in it with this list and this mode.
    fn files(own: Option<&[u8]>, mode: u32) -> (tempfile::TempDir, [PosixFile; 2]) {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = c_string(&[scratch.path().as_os_str().as_encoded_bytes()]);
        let dir = PosixVolume.base().open_dir(&path, SymlinkBehavior::Follow).expect("a directory");
        let set = dir.as_file().and_then(|file| file.set_xattr(DEFAULT_LIST, &list(4, 0)));
        set.expect("the volume of temporary files has access control lists");
        let [other, new] = [c"other", c"new"].map(|name| {
            let file = dir.create_file(name, 0o600).expect("created");
            assert!(access_list(&file).expect("a list").is_some(), "it is inherited");
            file
        });
        remove_access_list(&other).and_then(|()| other.set_mode(mode)).expect("a mode");
        if let Some(own) = own {
            other.set_xattr(ACCESS_LIST, own).expect("a list");
        }
        let other = dir.open_file(c"other", Access::Read, SymlinkBehavior::NoFollow).expect("opened");
        (scratch, [other, new])
    }

    #[test]
    fn a_new_file_has_the_list_of_the_other_one_or_none() {
        for own in [None, Some(list(4, 0)), Some(list(0, 4))] {
            let (_scratch, [other, new]) = files(own.as_deref(), 0o640);
            let metadata = other.metadata(Fields::STAT).expect("stat");
            take_after(&new, &other, &metadata).expect("permissions");
            assert_eq!(access_list(&new), Ok(own));
            assert_eq!(new.metadata(Fields::MODE).expect("stat").mode, metadata.mode);
        }
    }

    #[test]
    fn without_the_group_a_new_file_is_for_those_whom_the_other_one_admits() {
        for (own, mode, expected) in [
            (None, 0o644, 0o644),
            (None, 0o754, 0o744),
            (None, 0o640, 0o600),
            (None, 0o604, 0o600),
            (Some(list(4, 4)), 0o644, 0o644),
            (Some(list(0, 4)), 0o644, 0o600),
        ] {
            let (_scratch, [other, new]) = files(own.as_deref(), mode);
            permit(&new, &other, mode, Group::Another).expect("permissions");
            let made = new.metadata(Fields::MODE).expect("stat").mode & 0o777;
            assert_eq!((access_list(&new), made), (Ok(None), expected), "{mode:o} {own:?}");
        }
    }
}
