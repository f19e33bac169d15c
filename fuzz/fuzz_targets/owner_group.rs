#![no_main]
//! Any text is an owner and a group or neither, never a panic; what is understood means the same as its numbers.

use libfuzzer_sys::fuzz_target;
use millstream_cli::pchown::fuzz_spec;

fuzz_target!(|bytes: &[u8]| fuzz_spec(bytes));
