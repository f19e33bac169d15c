#![no_main]
//! Any rules are valid or refused, never a panic; for any path, the first rule that matches decides.

use libfuzzer_sys::fuzz_target;
use millstream_rsync_rules::filter::fuzz::filter;

fuzz_target!(|bytes: &[u8]| filter(bytes));
