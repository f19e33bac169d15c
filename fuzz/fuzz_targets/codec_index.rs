#![no_main]
//! Any bytes are either an index or an error, never a panic; with an index of another file, no byte is decoded.

use libfuzzer_sys::fuzz_target;
use millstream_codec::fuzz_index;

fuzz_target!(|bytes: &[u8]| fuzz_index(bytes));
