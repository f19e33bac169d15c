//! A directory of a test, in which commands of `millstream` run.

use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Scratch {
    pub dir: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        Scratch { dir: tempfile::tempdir().expect("scratch") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command in the directory.
    pub fn millstream(&self, command: &str, arguments: &[&str]) -> Command {
        let mut millstream = Command::new(env!("CARGO_BIN_EXE_millstream"));
        millstream.arg(command).args(arguments).current_dir(&self.dir).env("LC_ALL", "C");
        millstream
    }

    /// Changes an access control list.
    pub fn setfacl(&self, arguments: &[&str]) {
        let set = Command::new("setfacl").args(arguments).current_dir(&self.dir).status();
        assert!(set.expect("setfacl runs (testbed/setup test installs it)").success(), "{arguments:?}");
    }
}

/// The permissions of a file, with its access control list.
pub fn permissions(file: &Path) -> String {
    let listed = Command::new("getfacl").args(["-cpnE"]).arg(file).output().expect("getfacl runs");
    assert!(listed.status.success(), "{}", file.display());
    String::from_utf8_lossy(&listed.stdout).trim().replace('\n', " ")
}
