#![no_main]
//! Any text is either an owner and group or an error, never a panic; names mean the same as their numbers.

use libfuzzer_sys::fuzz_target;
use millstream_cli::pchown::fuzz_spec;

fuzz_target!(|bytes: &[u8]| fuzz_spec(bytes));
