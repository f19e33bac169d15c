#![no_main]
//! Any bytes are either a Parquet file that is decoded as a whole, or left to Spark; never a crash, and never much
//! memory.
//!
//! The library that decodes panics on some damaged files. `decode` catches that, so only what leaves it counts here.

use libfuzzer_sys::fuzz_target;
use millstream_parquet::fuzz_decode;

fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |bytes: &[u8]| fuzz_decode(bytes));
