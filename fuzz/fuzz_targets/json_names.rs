#![no_main]
//! Any name survives `--json`: it is read back byte for byte, and the output contains no byte that JSON forbids.

use libfuzzer_sys::fuzz_target;
use millstream_text::json::{read_string, write_string};

fuzz_target!(|bytes: &[u8]| {
    let mut written = Vec::new();
    write_string(bytes, &mut written);
    assert!(std::str::from_utf8(&written).is_ok_and(|text| !text.chars().any(|c| c.is_control())));
    let (name, rest) = read_string(&written).expect("the output can be read");
    assert_eq!((name.as_slice(), rest), (bytes, &b""[..]));
    // Reading anything else must fail or succeed, but not panic.
    let _ = read_string(bytes);
});
