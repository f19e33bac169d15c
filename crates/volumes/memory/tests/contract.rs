//! The in-memory volume meets the contract.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use millstream_memory::MemoryVolume;
use millstream_vfs::contract::{Outside, Subject, all};
use millstream_vfs::{
    Dir, DirentBatch, Errno, Error, Fields, Metadata, Operation, ReadState, SymlinkBehavior, Volume,
};

/// Access to the volume by paths below `/root`.
#[derive(Debug)]
struct ByPath(MemoryVolume);

fn path(path: &Path) -> Vec<u8> {
    [b"/root/", path.as_os_str().as_bytes()].concat()
}

impl Outside for ByPath {
    fn create_dir(&self, at: &Path) -> io::Result<()> {
        Ok(self.0.create_dir(path(at))?)
    }

    fn write(&self, at: &Path, contents: &[u8]) -> io::Result<()> {
        Ok(self.0.write(path(at), contents)?)
    }

    fn symlink(&self, target: &Path, at: &Path) -> io::Result<()> {
        Ok(self.0.symlink(target.as_os_str().as_bytes(), path(at))?)
    }

    fn hard_link(&self, at: &Path, new: &Path) -> io::Result<()> {
        Ok(self.0.hard_link(path(at), path(new))?)
    }

    fn rename(&self, at: &Path, new: &Path) -> io::Result<()> {
        Ok(self.0.rename(path(at), path(new))?)
    }

    fn set_mode(&self, at: &Path, mode: u32) -> io::Result<()> {
        Ok(self.0.set_mode(path(at), mode)?)
    }

    fn metadata(&self, at: &Path, symlinks: SymlinkBehavior) -> io::Result<Metadata> {
        Ok(self.0.metadata(path(at), symlinks)?)
    }

    fn read(&self, at: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.read(path(at))?)
    }

    fn read_link(&self, at: &Path) -> io::Result<PathBuf> {
        Ok(OsString::from_vec(self.0.read_link(path(at))?).into())
    }

    fn count(&self, at: &Path) -> io::Result<usize> {
        Ok(self.0.names(path(at))?.len())
    }

    fn is_privileged(&self) -> bool {
        true
    }
}

#[test]
fn the_volume_keeps_the_contract() {
    let volume = MemoryVolume::default();
    volume.create_dir("root").expect("mkdir");
    all(&Subject { volume: volume.clone(), outside: Box::new(ByPath(volume)), root: c"/root".to_owned() });
}

#[test]
fn calls_fail_as_injected() {
    let volume = MemoryVolume::default();
    volume.create_dir("d").expect("mkdir");
    volume.write("d/file", b"data").expect("write");
    volume.fail("d/file", Operation::Stat, Errno::ACCESS);
    volume.fail_after(1, "d", Operation::ReadDir, Errno::IO);
    let dir = volume.base().open_dir(c"d", SymlinkBehavior::NoFollow).expect("opens");
    let stat = || dir.metadata(c"file", SymlinkBehavior::NoFollow, Fields::STAT);
    assert_eq!(stat(), Err(Error::new(Operation::Stat, Errno::ACCESS)));
    let (mut cursor, mut batch) = (Default::default(), DirentBatch::with_capacity(4096));
    assert_eq!(dir.read_entries(&mut cursor, &mut batch), Ok(ReadState::More));
    assert_eq!(batch.iter().map(|entry| entry.name.to_owned()).collect::<Vec<_>>(), [c"file".to_owned()]);
    assert_eq!(dir.read_entries(&mut cursor, &mut batch), Err(Error::new(Operation::ReadDir, Errno::IO)));
    // A rule applies to the path, also after the directory is renamed.
    volume.rename("d", "e").expect("renamed");
    assert!(stat().is_ok());
}

#[test]
fn a_vanished_name_is_still_listed() {
    let volume = MemoryVolume::default();
    volume.create_dir("d").expect("mkdir");
    volume.vanish("/d");
    let opened = volume.base().open_dir(c"d", SymlinkBehavior::NoFollow).expect_err("it is gone");
    assert_eq!((opened.operation, opened.errno), (Operation::OpenDir, Errno::NOENT));
    assert!(opened.is_vanished());
    assert_eq!(volume.names("").expect("names"), [c"d".to_owned()]);
}

#[test]
fn circular_links_are_an_error() {
    let volume = MemoryVolume::default();
    volume.symlink("b", "a").expect("symlink");
    volume.symlink("/a", "b").expect("symlink");
    let found = volume.metadata("a", SymlinkBehavior::Follow);
    assert_eq!(found.map(|metadata| metadata.ino), Err(Errno::LOOP));
}
