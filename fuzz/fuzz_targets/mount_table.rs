#![no_main]
//! Any bytes are a table of mounts, never a panic.

use libfuzzer_sys::fuzz_target;
use millstream_ops::find::fuzz::parse_mounts;

fuzz_target!(|bytes: &[u8]| parse_mounts(bytes));
