#![forbid(unsafe_code)]
//! `prm`: removal.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::prm::run()
}
