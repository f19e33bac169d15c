//! The encoded values that the tests of both sides share.

use std::path::Path;

/// The bytes of a file of `testdata/`.
///
/// # Panics
/// If the file cannot be read, or is not hexadecimal.
pub fn vector(name: &str) -> Vec<u8> {
    let text = text(name);
    let (pairs, odd) = text.trim().as_bytes().as_chunks::<2>();
    assert!(odd.is_empty(), "{name} has an odd number of digits");
    let byte = |pair: &[u8; 2]| {
        let digits = std::str::from_utf8(pair).expect("hexadecimal");
        u8::from_str_radix(digits, 16).expect("hexadecimal")
    };
    pairs.iter().map(byte).collect()
}

/// The lines of a file of `testdata/`.
///
/// # Panics
/// If the file cannot be read.
pub fn lines(name: &str) -> Vec<String> {
    text(name).lines().map(str::to_owned).collect()
}

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
