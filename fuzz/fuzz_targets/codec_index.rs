#![no_main]
//! Any bytes are either an index or an error, never a panic, and a file that is not the index's gives no byte.

use libfuzzer_sys::fuzz_target;
use millstream_codec::fuzz_index;

fuzz_target!(|bytes: &[u8]| fuzz_index(bytes));
