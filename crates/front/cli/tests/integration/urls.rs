//! Operands that are URLs, which only `psync` takes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::programs::copy_program;

/// Each tool with its arguments, `URL` for the operand, and the exit code of its errors.
const CALLS: [(&str, &str, &[&str], i32); 9] = [
    (env!("CARGO_BIN_EXE_pls"), "ls", &["URL"], 2),
    (env!("CARGO_BIN_EXE_pdu"), "du", &["-s", "URL"], 1),
    (env!("CARGO_BIN_EXE_pfind"), "find", &["URL", "-print"], 1),
    (env!("CARGO_BIN_EXE_pchmod"), "chmod", &["600", "URL"], 1),
    (env!("CARGO_BIN_EXE_pchown"), "chown", &["-f", "0", "URL"], 1),
    (env!("CARGO_BIN_EXE_prm"), "rm", &["-f", "here", "URL"], 1),
    (env!("CARGO_BIN_EXE_pcopy"), "cp", &["URL", "copy"], 1),
    (env!("CARGO_BIN_EXE_pcopy"), "cp", &["here", "URL"], 1),
    (env!("CARGO_BIN_EXE_pcopy"), "cp", &["-t", "URL", "here"], 1),
];

fn run(program: impl AsRef<Path>, arguments: &[&str], url: &str, directory: &Path) -> (Output, String) {
    let arguments = arguments.iter().map(|&argument| if argument == "URL" { url } else { argument });
    let mut command = Command::new(program.as_ref());
    let output = command.args(arguments).current_dir(directory).env("LC_ALL", "C").output();
    let output = output.expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

#[test]
fn a_url_is_refused_by_name_before_anything_is_done() {
    for (program, _, arguments, code) in CALLS {
        for url in ["s3://bucket/key", "s3a://bucket/key", "hdfs://host/path"] {
            let scratch = tempfile::tempdir().expect("a directory");
            fs::write(scratch.path().join("here"), "here").expect("a file");
            let (output, errors) = run(program, arguments, url, scratch.path());
            assert_eq!(output.status.code(), Some(code), "{program} {url}: {errors}");
            assert!(errors.contains(&format!("cannot use the URL '{url}'")), "{program}: {errors}");
            assert!(errors.contains("psync") && errors.lines().count() == 1, "{program}: {errors}");
            let left: Vec<_> = fs::read_dir(scratch.path()).expect("listed").collect();
            assert!(left.len() == 1 && scratch.path().join("here").exists(), "{program}: {left:?}");
        }
    }
}

#[test]
fn a_path_that_looks_like_a_url_is_a_path() {
    for (program, _, arguments, _) in CALLS {
        let scratch = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(scratch.path().join("s3:/bucket/key")).expect("a directory");
        fs::write(scratch.path().join("here"), "here").expect("a file");
        let (_, errors) = run(program, arguments, "s3://bucket/key", scratch.path());
        assert!(!errors.contains("URL"), "{program}: {errors}");
    }
}

#[test]
fn under_the_name_of_gnu_the_error_is_that_of_gnu() {
    for (program, gnu, arguments, _) in CALLS {
        let scratch = tempfile::tempdir().expect("a directory");
        let ours = scratch.path().join("bin").join(gnu);
        fs::create_dir(scratch.path().join("bin")).expect("a directory");
        copy_program(program, &ours);
        for file in ["here", "there"] {
            fs::create_dir(scratch.path().join(format!("in-{file}"))).expect("a directory");
            fs::write(scratch.path().join(format!("in-{file}/here")), "here").expect("a file");
        }
        let (by_gnu, expected) = run(gnu, arguments, "s3://bucket/key", &scratch.path().join("in-here"));
        let (by_ours, errors) = run(&ours, arguments, "s3://bucket/key", &scratch.path().join("in-there"));
        assert_eq!((by_ours.status.code(), errors), (by_gnu.status.code(), expected), "{gnu} {arguments:?}");
    }
}
