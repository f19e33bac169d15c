#![forbid(unsafe_code)]
//! `pchmod`: file modes.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::pchmod::run()
}
