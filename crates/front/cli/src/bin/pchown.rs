#![forbid(unsafe_code)]
//! `pchown`: owners and groups of files.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::pchown::run()
}
