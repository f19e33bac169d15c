//! Entry points of the fuzzer: every parser of the module, on arbitrary bytes.

use std::ffi::{CStr, CString};

use super::analysis::Plan;
use super::date;
use super::environment::Nothing;
use super::mounts::Mounts;
use super::parser::parse;
use super::words::Warnings;

/// Parses any bytes as a command line of words, each terminated by a NUL: nothing outside is touched.
pub fn parse_words(bytes: &[u8]) {
    let words: Vec<CString> =
        bytes.split(|&b| b == 0).map(|word| CString::new(word).expect("split at every NUL")).collect();
    if let Ok(parsed) = parse(&words, Warnings::On, &mut Nothing::default()) {
        drop(Plan::new(parsed.options, parsed.expression));
    }
}

/// Reads any text as the date of `-newermt`.
pub fn parse_date(text: &CStr) {
    if let Some(date) = date::parse_date(text) {
        assert!(date.nsec < 1_000_000_000);
    }
}

/// Reads any bytes as a table of mounts.
pub fn parse_mounts(table: &[u8]) {
    Mounts::parse(table).type_of(0);
}

#[cfg(test)]
mod tests {
    use super::super::PRIMARIES;
    use super::*;

    /// Words of expressions in any order, mixed with invalid bytes, never make the parser panic.
    #[test]
    fn any_bytes_are_parsed_or_refused() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |bound: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed >> 33).unwrap_or(0) % bound
        };
        let names: Vec<&str> = PRIMARIES.iter().flat_map(|primary| primary.names).copied().collect();
        let others: [&[u8]; 24] = [
            b"(",
            b")",
            b"!",
            b",",
            b"-o",
            b"-a",
            b"-not",
            b";",
            b"+",
            b"{}",
            b"",
            b"-",
            b"\xff",
            b"-newermt",
            b"-newerBa",
            b"%",
            b"%-5.3p\\n",
            b"%T",
            b"+5k",
            b"-1.5",
            b"u+x,g=",
            b"f,d,",
            b"99999999999999999999999",
            b"-O",
        ];
        for _ in 0..50_000 {
            let mut bytes = Vec::new();
            for _ in 0..random(12) {
                match random(3) {
                    0 => bytes.extend_from_slice(names[random(names.len())].as_bytes()),
                    1 => bytes.extend_from_slice(others[random(others.len())]),
                    _ => (0..random(4)).for_each(|_| bytes.push(random(256) as u8)),
                }
                bytes.push(0);
            }
            parse_words(&bytes);
        }
    }
}
