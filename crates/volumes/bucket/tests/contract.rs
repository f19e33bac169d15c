//! A bucket keeps the contract as far as its capabilities go. This needs an S3 server that keeps objects as files:
//! `testbed/s3 -- cargo test -p millstream-bucket --test contract -- --ignored`.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millstream_bucket::aws::Access;
use millstream_bucket::{BucketVolume, Buckets, Reads};
use millstream_vfs::contract::{Outside, Subject, System, all};
use millstream_vfs::{At, Dir, Error, File, Intended, Metadata, SymlinkBehavior, Volume};

/// The server's files. What is made has to be made by requests, of another client: files lack the attributes of
/// objects.
#[derive(Debug)]
struct Server {
    files: System,
    root: PathBuf,
    client: BucketVolume,
}

fn told(error: Error) -> io::Error {
    error.errno.into()
}

impl Server {
    fn key(&self, path: &Path) -> CString {
        CString::new(self.root.join(path).as_os_str().as_bytes()).expect("no NUL")
    }
}

impl Outside for Server {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (base, path) = (self.client.base(), self.key(path));
        let made = base.create_dir(&path, 0o700);
        made.and_then(|()| base.open_dir(&path, SymlinkBehavior::NoFollow)?.complete()).map_err(told)
    }

    fn write(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let (base, name) = (self.client.base(), self.key(path));
        let intended = Intended { name: &name, size: contents.len() as u64, mtime: None };
        let file = base.create_staged(c".staged", 0o600, &intended).map_err(told)?;
        file.write_all(contents, At::Offset(0)).map_err(told)?;
        base.rename(c".staged", &base, &name).map_err(told)
    }

    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.files.symlink(target, path)
    }

    fn hard_link(&self, path: &Path, new: &Path) -> io::Result<()> {
        self.files.hard_link(path, new)
    }

    fn rename(&self, path: &Path, new: &Path) -> io::Result<()> {
        self.files.rename(path, new)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.files.set_mode(path, mode)
    }

    fn metadata(&self, path: &Path, symlinks: SymlinkBehavior) -> io::Result<Metadata> {
        self.files.metadata(path, symlinks)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.files.read_link(path)
    }

    fn count(&self, path: &Path) -> io::Result<usize> {
        self.files.count(path)
    }

    fn is_privileged(&self) -> bool {
        self.files.is_privileged()
    }
}

#[test]
#[ignore = "needs an S3 server: testbed/s3"]
fn a_bucket_keeps_the_contract() {
    let variable = |name| std::env::var(name).expect("a variable of testbed/s3");
    let bucket = variable("S3_BUCKET");
    let root = PathBuf::from(format!("contract-{}", std::process::id()));
    let data = PathBuf::from(variable("S3_DATA")).join(&bucket).join(&root);
    std::fs::create_dir(&data).expect("mkdir");
    let volume = || {
        let access = Access::from_environment().expect("access");
        let tell = Arc::new(|remark: &str| eprintln!("{remark}"));
        Buckets::new(access, Reads::AtOnce, tell).volume(&bucket)
    };
    let outside = Server { files: System(data.clone()), root: root.clone(), client: volume() };
    let root = CString::new(root.into_os_string().into_encoded_bytes()).expect("no NUL");
    all(&Subject { volume: volume(), outside: Box::new(outside), root });
    std::fs::remove_dir_all(data).expect("removed");
}
