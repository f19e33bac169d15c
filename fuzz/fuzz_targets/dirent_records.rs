#![no_main]
//! Any bytes are taken for the records of a directory without a panic, and never read past.

use libfuzzer_sys::fuzz_target;
use millstream_vfs::fuzz_records;

fuzz_target!(|bytes: &[u8]| fuzz_records(bytes));
