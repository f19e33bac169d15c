#![no_main]
//! Parsing any bytes as directory records never panics or reads past the end.

use libfuzzer_sys::fuzz_target;
use millstream_vfs::fuzz_records;

fuzz_target!(|bytes: &[u8]| fuzz_records(bytes));
