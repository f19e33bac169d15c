//! A standard output that was closed before the start is reported as the GNU tools report it.

use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs a program under the name `tool` with its standard output closed by the shell.
fn without_stdout(program: &str, tool: &str, arguments: &str, directory: &TempDir) -> Output {
    let script = format!("exec -a {tool} {program} {arguments} >&-");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(directory.path()).env("LC_ALL", "C").output().expect("bash")
}

#[test]
fn a_closed_standard_output_is_an_error_as_of_the_gnu_tools() {
    let bed = TempDir::new().expect("temporary directory");
    std::fs::create_dir(bed.path().join("empty")).expect("mkdir");
    std::fs::write(bed.path().join("file"), "").expect("write");
    let (ls, find, du) = (env!("CARGO_BIN_EXE_pls"), env!("CARGO_BIN_EXE_pfind"), env!("CARGO_BIN_EXE_pdu"));
    // Directories are told of apart.
    for directory in ["a", "b", "c"] {
        let directory = bed.path().join("tree").join(directory);
        std::fs::create_dir_all(&directory).expect("mkdir");
        std::fs::write(directory.join("file"), "").expect("write");
    }
    let cp = env!("CARGO_BIN_EXE_pcopy");
    let (chmod, chown) = (env!("CARGO_BIN_EXE_pchmod"), env!("CARGO_BIN_EXE_pchown"));
    for (tool, ours, arguments, code) in [
        ("ls", ls, "-l", 2),
        ("ls", ls, "-R", 2),
        ("ls", ls, "empty", 0),
        ("ls", ls, "gone", 2),
        ("ls", ls, "--version", 2),
        ("find", find, ".", 1),
        ("find", find, ". -false", 0),
        ("find", find, r"-name file -exec echo {} \;", 0),
        ("find", find, "--version", 1),
        ("find", find, ". -maxdepth 0 <&-", 1),
        ("du", du, "-s", 1),
        ("du", du, "--version", 1),
        ("chmod", chmod, "-v 644 file", 1),
        ("chmod", chmod, "-c 644 file", 0),
        ("chmod", chmod, "--version", 1),
        ("chown", chown, "-v '' file", 1),
        ("chown", chown, "'' file", 0),
        ("chgrp", chown, "-v '' file", 1),
        ("cp", cp, "-r tree copy", 0),
        ("cp", cp, "-rvT tree copy", 1),
        ("cp", cp, "-rv gone file copy", 1),
        ("cp", cp, "--version", 1),
    ] {
        let ours = without_stdout(ours, tool, arguments, &bed);
        let theirs = without_stdout(tool, tool, arguments, &bed);
        assert_eq!(
            String::from_utf8_lossy(&ours.stderr),
            String::from_utf8_lossy(&theirs.stderr),
            "{tool} {arguments}"
        );
        assert_eq!(
            (ours.status.code(), theirs.status.code()),
            (Some(code), Some(code)),
            "{tool} {arguments}"
        );
    }
}
