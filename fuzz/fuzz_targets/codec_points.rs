#![no_main]
//! Any bytes are either an index of another program or an error, never a panic, whatever the file is.

use libfuzzer_sys::fuzz_target;
use millstream_codec::fuzz_points;

fuzz_target!(|bytes: &[u8]| fuzz_points(bytes));
