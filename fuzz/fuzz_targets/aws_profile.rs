#![no_main]
//! Any text is a valid profiles file, in which a section is found or not.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| millstream_bucket::aws::parse_profile(
    &String::from_utf8_lossy(bytes),
    "profile a"
));
