#![no_main]
//! Any name survives `--json`: it comes back byte for byte, and what is written holds no byte that JSON forbids.

use libfuzzer_sys::fuzz_target;
use millstream_ops::json::{read_string, write_string};

fuzz_target!(|bytes: &[u8]| {
    let mut written = Vec::new();
    write_string(bytes, &mut written);
    assert!(std::str::from_utf8(&written).is_ok_and(|text| !text.chars().any(|c| c.is_control())));
    let (name, rest) = read_string(&written).expect("what is written can be read");
    assert_eq!((name.as_slice(), rest), (bytes, &b""[..]));
    // Reading anything else must fail or succeed, but not panic.
    let _ = read_string(bytes);
});
