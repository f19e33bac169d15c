//! A directory of a test, in which commands of `millstream` run.

use std::path::PathBuf;
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
}
