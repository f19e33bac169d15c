#![no_main]
//! Joining files with any contents keeps their lines.

use libfuzzer_sys::fuzz_target;
use millstream_scan::fuzz_join;

fuzz_target!(|bytes: &[u8]| fuzz_join(bytes));
