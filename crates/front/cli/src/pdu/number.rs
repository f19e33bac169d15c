//! Numbers in arguments, as the GNU tools read them.

use millstream_inspect::du::Threshold;
use millstream_text::size::{BlockSizeError, SizeFormat};

use crate::diagnostics::{Diagnostics, FAILURE};
use crate::options::Spelling;

/// A block size, of `-B` or from the environment.
pub(super) fn block_size(text: &[u8]) -> Result<SizeFormat, BlockSizeError> {
    SizeFormat::parse(std::str::from_utf8(text).map_err(|_| BlockSizeError::Invalid)?)
}

/// A size with a sign.
pub(super) fn threshold(text: &[u8]) -> Result<Threshold, BlockSizeError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let bytes = if digits.first() == Some(&b'\'') {
        return Err(BlockSizeError::Invalid);
    } else if !digits.is_empty() && digits.iter().all(|&b| b == b'0') {
        0
    } else {
        match block_size(digits)? {
            SizeFormat::Blocks { bytes, .. } => bytes.get(),
            SizeFormat::Human(_) => return Err(BlockSizeError::Invalid),
        }
    };
    match (negative, bytes) {
        (true, 0) => Err(BlockSizeError::Invalid),
        (true, most) => Ok(Threshold::AtMost(most)),
        (false, least) => Ok(Threshold::AtLeast(least)),
    }
}

/// A number in C's notation: octal after a 0, hexadecimal after 0x, with or without a sign.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (sign, text) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let (digits, radix) = match text.strip_prefix('0') {
        Some(rest) if rest.starts_with(['x', 'X']) => (&rest[1..], 16),
        Some(rest) if !rest.is_empty() => (rest, 8),
        _ => (text, 10),
    };
    // Rust would accept another sign.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::try_from(sign * i128::from(u64::from_str_radix(digits, radix).ok()?)).ok()
}

/// Reports a bad size in the words of the GNU tools. The exit code is 1; there is no hint.
pub(super) fn report_bad_size(
    error: BlockSizeError,
    spelling: Spelling,
    text: &[u8],
    diagnostics: &Diagnostics,
) {
    let (before, after): (_, &[u8]) = match error {
        BlockSizeError::Invalid => (format!("invalid {spelling} argument '"), b"'"),
        BlockSizeError::InvalidSuffix => (format!("invalid suffix in {spelling} argument '"), b"'"),
        BlockSizeError::TooLarge => (format!("{spelling} argument '"), b"' too large"),
    };
    diagnostics.error(FAILURE).text(&before).bytes(text).bytes(after).send();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_c_notation() {
        for (text, expected) in [
            ("0", Some(0)),
            ("00", Some(0)),
            ("017", Some(15)),
            ("0x1F", Some(31)),
            (" 1", Some(1)),
            ("+1", Some(1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("-1", Some(-1)),
            ("-010", Some(-8)),
            ("\t-0x10", Some(-16)),
            ("", None),
            ("x", None),
            ("08", None),
            ("0x", None),
            ("++1", None),
            ("-+1", None),
            ("- 1", None),
            ("1 ", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn thresholds() {
        use BlockSizeError::{Invalid, InvalidSuffix, TooLarge};
        for (text, expected) in [
            ("0", Ok(Threshold::AtLeast(0))),
            ("10K", Ok(Threshold::AtLeast(10_240))),
            ("+3KB", Ok(Threshold::AtLeast(3000))),
            ("-1M", Ok(Threshold::AtMost(1 << 20))),
            ("-0", Err(Invalid)),
            ("", Err(Invalid)),
            ("x", Err(Invalid)),
            ("si", Err(Invalid)),
            ("'1", Err(Invalid)),
            ("1x", Err(InvalidSuffix)),
            ("99999999999999999999", Err(TooLarge)),
        ] {
            assert_eq!(threshold(text.as_bytes()), expected, "{text}");
        }
    }
}
