//! Both arms keep the contract of a volume; names on two volumes do not meet.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use millstream_posix::PosixVolume;
use millstream_vfs::contract::{Subject, System, all};
use millstream_vfs::{Access, Dir, Errno, Error, File, Operation, SymlinkBehavior, Volume};

use crate::operands::Remotes;
use crate::remote::RemoteDir;
use crate::router::{Storage, StorageFile};

/// The system's own directories as a remote volume, whose operands are `remote:PATH`.
#[derive(Debug)]
struct Mirror;

impl Remotes for Mirror {
    fn locate(&self, operand: &CStr) -> Option<(Box<dyn RemoteDir>, CString)> {
        let path = operand.to_bytes().strip_prefix(b"remote:")?;
        Some((Box::new(PosixVolume.base()), CString::new(path).expect("no NUL")))
    }
}

fn storage() -> Storage {
    Storage { remotes: Arc::new(Mirror) }
}

fn operand(prefix: &str, path: &Path) -> CString {
    CString::new([prefix.as_bytes(), path.as_os_str().as_bytes()].concat()).expect("no NUL")
}

#[test]
fn both_arms_keep_the_contract() {
    for prefix in ["", "remote:"] {
        let scratch = tempfile::tempdir().expect("scratch directory");
        let root = operand(prefix, scratch.path());
        all(&Subject { volume: storage(), outside: Box::new(System(scratch.path().to_path_buf())), root });
    }
}

#[test]
fn names_on_two_volumes_are_apart() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    std::fs::write(scratch.path().join("file"), "data").expect("write");
    let [local, remote] = ["", "remote:"].map(|prefix| operand(prefix, &scratch.path().join("file")));
    let other = CString::new([remote.to_bytes(), b".new"].concat()).expect("no NUL");
    let base = storage().base();
    let apart = |operation| Err(Error::new(operation, Errno::XDEV));
    assert_eq!(Dir::rename(&base, &local, &base, &other), apart(Operation::Rename));
    assert_eq!(
        Dir::hard_link(&base, &local, SymlinkBehavior::NoFollow, &base, &other),
        apart(Operation::HardLink)
    );
    let open = |name: &CStr| -> StorageFile {
        Dir::open_file(&base, name, Access::Read, SymlinkBehavior::NoFollow).expect("opens")
    };
    assert_eq!(File::copy_range(&open(&local), &open(&remote), 0, 1).map(drop), apart(Operation::Write));
    Dir::rename(&base, &remote, &base, &other).expect("renamed on one volume");
    assert!(scratch.path().join("file.new").exists());
}

#[test]
fn operands_stay_operands_in_the_base_itself() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let root = operand("remote:", scratch.path());
    let base = Dir::open_dir(&storage().base(), c".", SymlinkBehavior::NoFollow).expect("opens");
    let beside = Dir::beside_files(&base).expect("opens");
    assert!(Dir::open_dir(&beside, &root, SymlinkBehavior::Follow).is_ok());
}
