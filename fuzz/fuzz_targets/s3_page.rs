#![no_main]
//! Parsing any bytes as an answer of S3 never panics.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| millstream_s3::parse_page(bytes));
