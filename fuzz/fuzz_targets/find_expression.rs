#![no_main]
//! Any words are either a valid expression or an error, never a panic. The words are separated by NUL bytes.

use libfuzzer_sys::fuzz_target;
use millstream_inspect::find::fuzz::parse_words;

fuzz_target!(|bytes: &[u8]| parse_words(bytes));
