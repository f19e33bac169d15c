//! File systems of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::is_root;

/// A file system in memory, unmounted in the end.
pub struct Mount(PathBuf);

impl Mount {
    pub fn new(at: &Path, options: &str) -> Mount {
        assert!(is_root(), "this test mounts a file system");
        fs::create_dir_all(at).expect("a directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).status();
        assert!(mounted.expect("mount runs").success());
        Mount(at.to_owned())
    }

    /// With other options.
    pub fn again(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(done.expect("mount runs").success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Processes that other tests are about to start may still share this one's descriptors.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}
