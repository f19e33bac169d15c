#![no_main]
//! Parsing any bytes as an S3 response never panics.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| millstream_s3::parse_page(bytes));
