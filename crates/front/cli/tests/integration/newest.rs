//! What GNU's tools do since releases that are newer than the installed ones, with which the other tests compare.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::copy_program;

const NOBODY: u32 = 65534;

const TOOLS: [(&str, &str); 8] = [
    ("find", env!("CARGO_BIN_EXE_pfind")),
    ("ls", env!("CARGO_BIN_EXE_pls")),
    ("du", env!("CARGO_BIN_EXE_pdu")),
    ("rm", env!("CARGO_BIN_EXE_prm")),
    ("cp", env!("CARGO_BIN_EXE_pcopy")),
    ("chmod", env!("CARGO_BIN_EXE_pchmod")),
    ("chown", env!("CARGO_BIN_EXE_pchown")),
    ("chgrp", env!("CARGO_BIN_EXE_pchown")),
];

/// What a shell writes for `line` in a new directory, our tools under GNU's names.
fn written(line: &str, bin: &Path) -> String {
    let scratch = tempfile::tempdir().expect("a directory");
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).expect("chmod");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("umask 022; ({line}) 2>&1")]).current_dir(scratch.path()).env_clear();
    shell.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("LC_ALL", "C").env("TERM", "dumb");
    shell.env("LS_COLORS", "di=1:ln=2").stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        shell.uid(NOBODY).gid(NOBODY);
    }
    let output = shell.output().expect("a shell");
    // What nobody may enter keeps nobody from removing it but root.
    let opened = Command::new("chmod").args(["-R", "u+rwX"]).arg(scratch.path()).status();
    assert!(opened.expect("chmod").success(), "{line}");
    String::from_utf8(output.stdout).expect("ASCII")
}

/// Lines: which of the two streams is first, and which of several files, is free.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn newer_releases_of_gnu_are_followed() {
    let bin = tempfile::tempdir().expect("a directory");
    fs::set_permissions(bin.path(), Permissions::from_mode(0o755)).expect("chmod");
    for (name, program) in TOOLS {
        copy_program(program, &bin.path().join(name));
    }
    let cases = include_str!("newest/cases.txt");
    let mut wrong = String::new();
    for case in cases.split("\n\n").filter_map(|case| case.strip_prefix("$ ")) {
        let (line, expected) = case.split_once('\n').unwrap_or((case, ""));
        let found = written(line, bin.path());
        if sorted(&found) != sorted(expected) {
            wrong.push_str(&format!("$ {line}\n{found}--- instead of\n{expected}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
