#![no_main]
//! Parsing any bytes as a mount table never panics.

use libfuzzer_sys::fuzz_target;
use millstream_inspect::find::fuzz::parse_mounts;

fuzz_target!(|bytes: &[u8]| parse_mounts(bytes));
