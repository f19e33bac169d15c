#![forbid(unsafe_code)]
//! `psync`: synchronization.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::psync::run()
}
