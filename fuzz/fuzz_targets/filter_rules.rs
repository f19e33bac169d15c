#![no_main]
//! Any rules are valid or refused, never a panic; for any path, the rule that decides is the first that
//! matches.

use libfuzzer_sys::fuzz_target;
use millstream_rsync_rules::filter::fuzz::filter;

fuzz_target!(|bytes: &[u8]| filter(bytes));
