#![no_main]
//! Files of any bytes, joined to one, have the lines that they have.

use libfuzzer_sys::fuzz_target;
use millstream_scan::fuzz_join;

fuzz_target!(|bytes: &[u8]| fuzz_join(bytes));
