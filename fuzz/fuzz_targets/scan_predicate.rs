#![no_main]
//! Any bytes are either a valid predicate or an error, never a panic; where it holds, its literal is found.

use libfuzzer_sys::fuzz_target;
use millstream_scan::fuzz_predicate;

fuzz_target!(|bytes: &[u8]| fuzz_predicate(bytes));
