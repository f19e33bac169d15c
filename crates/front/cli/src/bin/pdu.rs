#![forbid(unsafe_code)]
//! `pdu`: disk usage.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::pdu::run()
}
