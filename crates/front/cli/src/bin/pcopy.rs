#![forbid(unsafe_code)]
//! `pcopy`: copies files and trees, in parallel.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::pcopy::run()
}
