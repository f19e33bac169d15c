//! The POSIX volume keeps the contract; `MILLSTREAM_CONTRACT_DIR` selects another mount for the test.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use millstream_posix::PosixVolume;
use millstream_vfs::contract::{Subject, System, all};
use millstream_vfs::{Dir, SymlinkBehavior, Volume};

#[test]
fn posix_volume_keeps_the_contract() {
    let scratch = match std::env::var_os("MILLSTREAM_CONTRACT_DIR") {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    }
    .expect("scratch directory");
    let root = CString::new(scratch.path().as_os_str().as_bytes()).expect("no NUL");
    let outside = Box::new(System(scratch.path().to_path_buf()));
    all(&Subject { volume: PosixVolume, outside, root });
}

#[test]
fn extended_attributes_are_listed_by_handle() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let file = scratch.path().join("with\nnewline");
    std::fs::write(&file, b"").expect("write");
    rustix::fs::setxattr(&file, c"user.millstream", b"1", rustix::fs::XattrFlags::empty()).expect("setxattr");
    let root = CString::new(scratch.path().as_os_str().as_bytes()).expect("no NUL");
    let dir = PosixVolume.base().open_dir(&root, SymlinkBehavior::Follow).expect("opens");
    let mut names = b"before\0".to_vec();
    dir.list_xattr(c"with\nnewline", &mut names).expect("listed");
    assert_eq!(names, b"before\0user.millstream\0");
    assert!(dir.list_xattr(c"missing", &mut names).is_err());
    assert_eq!(names, b"before\0user.millstream\0", "a failure leaves the buffer as it was");
}
