//! The program under test and rsync, run by root or by somebody else.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::programs::copy_program;

pub const NOBODY: u32 = 65534;
pub const RSYNC: &str = "/usr/bin/rsync";

/// Who runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests.
    Own,
    /// An unprivileged user; the tests must run as root then.
    Nobody,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// `PSYNC_PROGRAM`, else our binary.
pub fn psync() -> PathBuf {
    let ours = option_env!("CARGO_BIN_EXE_psync").map(PathBuf::from);
    let given = std::env::var_os("PSYNC_PROGRAM").map(PathBuf::from);
    given.or(ours).expect("there is no psync in this build: set PSYNC_PROGRAM")
}

/// Whether rsync stands in for psync.
pub fn is_rsync() -> bool {
    psync().file_name() == Some(OsStr::new("rsync"))
}

/// psync in a place where everybody can run it.
fn psync_for_everybody() -> PathBuf {
    static COPY: OnceLock<TempDir> = OnceLock::new();
    let directory = COPY.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("a mode");
        let program = psync();
        copy_program(program.to_str().expect("UTF-8"), &directory.path().join("psync"));
        directory
    });
    directory.path().join("psync")
}

/// A program as this user, without the environment of the test.
pub fn command(program: &Path, user: User, directory: &Path) -> Command {
    let mut command = match user {
        User::Own => Command::new(program),
        User::Nobody => {
            assert!(is_root(), "this test becomes another user");
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
            setpriv
        }
    };
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// psync as this user.
pub fn psync_command(user: User, directory: &Path) -> Command {
    match user {
        User::Own => command(&psync(), user, directory),
        User::Nobody => command(&psync_for_everybody(), user, directory),
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory of a test that everybody may enter, removed in the end whatever the modes in it are.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Scratch {
        let scratch = tempfile::tempdir().expect("a directory");
        fs::set_permissions(&scratch, Permissions::from_mode(0o755)).expect("a mode");
        Scratch(scratch)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("PSYNC_KEEP").is_some() {
            println!("kept: {}", self.path().display());
            self.0.disable_cleanup(true);
            return;
        }
        // What is closed could not be removed by others than root.
        let opened = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.path()).output();
        assert!(opened.is_ok() || std::thread::panicking());
    }
}
