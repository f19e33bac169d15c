#![no_main]
//! Any text is a date of `-newermt` or none, never a panic.

use std::ffi::CString;

use libfuzzer_sys::fuzz_target;
use millstream_ops::find::fuzz::parse_date;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = CString::new(bytes) {
        parse_date(&text);
    }
});
