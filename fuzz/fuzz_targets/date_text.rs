#![no_main]
//! Any text is either a valid date of `-newermt` or an error, never a panic.

use std::ffi::CString;

use libfuzzer_sys::fuzz_target;
use millstream_inspect::find::fuzz::parse_date;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = CString::new(bytes) {
        parse_date(&text);
    }
});
