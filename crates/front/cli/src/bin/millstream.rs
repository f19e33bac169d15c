#![forbid(unsafe_code)]
//! `millstream`: compaction on Spark, the conf block for Spark, manual pages and completions.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::millstream::run()
}
