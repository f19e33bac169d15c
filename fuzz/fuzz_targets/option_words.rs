#![no_main]
//! Any words are options, operands or errors, never a panic. The words are separated by NUL bytes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use libfuzzer_sys::fuzz_target;
use millstream_cli::diagnostics::Diagnostics;
use millstream_cli::options::{Command, Syntax, flag, json, optional, take_options, threads, value};

const GROUP: &str = "Options";

static COMMAND: Command<u8> = Command {
    name: "any",
    summary: "",
    usage: &[],
    description: &[],
    syntax: Syntax::Getopt,
    options: &[
        flag(0, Some(b'a'), &["all"], GROUP, ""),
        flag(1, Some(b'A'), &["almost-all"], GROUP, ""),
        value(2, Some(b'w'), &["width"], "N", GROUP, ""),
        optional(3, Some(b'c'), &["color", "colour"], "WHEN", GROUP, ""),
        json(4),
        threads(5),
    ],
    long_order: &["almost-all", "all"],
    sections: &[],
};

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<_> = bytes.split(|&b| b == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    let count = words.len();
    let taken = take_options(&COMMAND, words, &Diagnostics::new("any"), 1, |_| Ok(()));
    assert!(taken.is_ok_and(|operands| operands.len() <= count));
});
