#![forbid(unsafe_code)]
//! `pls`: directory listings.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::pls::run()
}
