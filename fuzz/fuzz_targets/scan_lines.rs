#![no_main]
//! Any bytes have the same lines however they are counted, split and searched.

use libfuzzer_sys::fuzz_target;
use millstream_scan::fuzz_lines;

fuzz_target!(|bytes: &[u8]| fuzz_lines(bytes));
