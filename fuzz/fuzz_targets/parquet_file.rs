#![no_main]
//! Any bytes are either a Parquet file that is decoded as a whole, or left to Spark; never a crash, and never much memory.

use libfuzzer_sys::fuzz_target;
use millstream_parquet::fuzz_decode;

fuzz_target!(|bytes: &[u8]| fuzz_decode(bytes));
