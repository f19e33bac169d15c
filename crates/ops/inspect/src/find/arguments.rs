//! Arguments of tests: numbers, sizes, ages, lists of types.

use millstream_vfs::FileKind;

use super::expression::{Comparison, KindSet, Number};
use super::moment::Window;

/// Splits off the sign that determines how a number is compared.
pub(super) fn comparison(text: &[u8]) -> (Comparison, &[u8]) {
    match text {
        [b'+', rest @ ..] => (Comparison::Greater, rest),
        [b'-', rest @ ..] => (Comparison::Less, rest),
        rest => (Comparison::Equal, rest),
    }
}

/// The prefix of a number that the C library accepts: white space, then at most one sign.
fn without_white_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|b| !matches!(b, b' ' | b'\t'..=b'\r')).unwrap_or(text.len());
    &text[start..]
}

/// Digits only.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    text.iter().try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// The number of a user or a group, which may begin with a plus sign.
pub(super) fn account(text: &[u8]) -> Option<u32> {
    decimal(text.strip_prefix(b"+").unwrap_or(text)).and_then(|id| u32::try_from(id).ok())
}

/// `N`, `+N` or `-N`; `N` may have white space and a plus sign before it.
pub(super) fn number(text: &[u8]) -> Option<Number> {
    let (comparison, rest) = comparison(text);
    let digits = without_white_space(rest);
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    Some(Number { comparison, value: decimal(digits)? })
}

/// A number as `strtod(3)` reads it: white space, a sign, a fraction, an exponent, hexadecimal digits, `inf`.
fn real(text: &[u8]) -> Option<f64> {
    let text = without_white_space(text);
    let (sign, text) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        rest => (1.0, rest),
    };
    let text = std::str::from_utf8(text).ok()?.to_ascii_lowercase();
    let value = match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits)?,
        None if text == "inf" || text == "infinity" => f64::INFINITY,
        None if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            text.parse().ok().filter(|value: &f64| value.is_finite())?
        }
        None => return None,
    };
    Some(sign * value)
}

/// Whether `strtod(3)` reads it as something that is not a number.
pub(super) fn is_nan(text: &[u8]) -> bool {
    let text = without_white_space(text);
    let text = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text).to_ascii_lowercase();
    text == b"nan" || (text.starts_with(b"nan(") && text.ends_with(b")"))
}

/// Hexadecimal digits that may have a fraction and a power of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, power) = match text.split_once('p') {
        Some((digits, power)) => (digits, power.parse().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let value = value * f64::powi(2.0, power) * f64::powi(16.0, -i32::try_from(fraction.len()).ok()?);
    Some(value).filter(|value| value.is_finite())
}

/// Why a size is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeError {
    /// There is nothing.
    Empty,
    /// The letter after the number is not a known unit.
    Unit,
    /// The text before the unit is not a number.
    Digits,
}

/// The argument of `-size`: the number and the bytes of its unit.
pub(super) fn size(text: &[u8]) -> Result<(Number, u64), SizeError> {
    let Some((&last, front)) = text.split_last() else { return Err(SizeError::Empty) };
    let (digits, unit_bytes) = match last {
        b'0'..=b'9' => (text, 512),
        b'b' => (front, 512),
        b'c' => (front, 1),
        b'w' => (front, 2),
        b'k' => (front, 1 << 10),
        b'M' => (front, 1 << 20),
        b'G' => (front, 1 << 30),
        _ => return Err(SizeError::Unit),
    };
    Ok((number(digits).ok_or(SizeError::Digits)?, unit_bytes))
}

/// How the age of a file is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgeUnit {
    /// In whole days, fractions dropped.
    Days,
    /// In minutes, fractions rounded up.
    Minutes,
}

impl AgeUnit {
    fn nanoseconds(self) -> f64 {
        match self {
            AgeUnit::Days => 86_400e9,
            AgeUnit::Minutes => 60e9,
        }
    }
}

/// A second in nanoseconds.
const SECOND: i128 = 1_000_000_000;

/// The span of a file's time in which its age at `now` is `N`, `+N` or `-N` units.
pub(super) fn age(text: &[u8], unit: AgeUnit, now: i128) -> Option<Window> {
    let (comparison, digits) = comparison(text);
    let count = real(digits)?;
    let before = |count: f64| now.saturating_sub((count * unit.nanoseconds()) as i128);
    Some(match (comparison, unit) {
        // findutils 4.9 and 4.11 also accept times less than a second older.
        (Comparison::Less, AgeUnit::Days) => Window::later_than(before(count).saturating_sub(SECOND)),
        (Comparison::Less, AgeUnit::Minutes) => Window::later_than(before(count)),
        (Comparison::Greater, AgeUnit::Days) => Window::earlier_than(before(count + 1.0)),
        (Comparison::Greater, AgeUnit::Minutes) => Window::earlier_than(before(count)),
        (Comparison::Equal, AgeUnit::Days) => Window { after: before(count + 1.0), until: before(count) },
        (Comparison::Equal, AgeUnit::Minutes) => Window { after: before(count), until: before(count - 1.0) },
    })
}

/// How many days may be between two times: `N` for at least N - 1 and less than N, `+N` or `-N`.
pub(super) fn span_of_days(text: &[u8]) -> Option<Window> {
    let (comparison, digits) = comparison(text);
    let days = |count: f64| (count * AgeUnit::Days.nanoseconds()) as i128;
    let count = real(digits)?;
    Some(match comparison {
        Comparison::Less => Window { after: -1, until: days(count).saturating_sub(1) },
        Comparison::Equal => {
            Window { after: days(count - 1.0).saturating_sub(1), until: days(count).saturating_sub(1) }
        }
        Comparison::Greater => Window::later_than(days(count)),
    })
}

/// Why a list of types is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindsError {
    /// There is nothing.
    Empty,
    /// This letter is not a type.
    Unknown(u8),
    /// Doors exist only on another system.
    Door,
    /// The letters need commas.
    Separator,
    /// The list ends in a comma.
    Trailing,
    /// This letter is there twice.
    Duplicate(u8),
}

/// The argument of `-type`: letters with commas between them.
pub(super) fn kinds(text: &[u8]) -> Result<KindSet, KindsError> {
    let mut set = KindSet::default();
    let mut rest = text;
    if rest.is_empty() {
        return Err(KindsError::Empty);
    }
    while let [letter, tail @ ..] = rest {
        let kind = match letter {
            b'b' => FileKind::BlockDevice,
            b'c' => FileKind::CharDevice,
            b'd' => FileKind::Directory,
            b'f' => FileKind::File,
            b'l' => FileKind::Symlink,
            b'p' => FileKind::Fifo,
            b's' => FileKind::Socket,
            b'D' => return Err(KindsError::Door),
            &other => return Err(KindsError::Unknown(other)),
        };
        if !set.insert(kind) {
            return Err(KindsError::Duplicate(*letter));
        }
        rest = match tail {
            [] => tail,
            [b','] => return Err(KindsError::Trailing),
            [b',', more @ ..] => more,
            _ => return Err(KindsError::Separator),
        };
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::{Equal, Greater, Less};

    #[test]
    fn numbers_carry_their_comparison() {
        for (text, expected) in [
            (&b"5"[..], Some(Number { comparison: Equal, value: 5 })),
            (b"+5", Some(Number { comparison: Greater, value: 5 })),
            (b"-5", Some(Number { comparison: Less, value: 5 })),
            (b"", None),
            (b"+", None),
            (b"5x", None),
            (b"--5", None),
            (b"+ +5", Some(Number { comparison: Greater, value: 5 })),
            (b" 5", Some(Number { comparison: Equal, value: 5 })),
            (b"-+5", Some(Number { comparison: Less, value: 5 })),
            (b"+-5", None),
            (b"18446744073709551615", Some(Number { comparison: Equal, value: u64::MAX })),
            (b"18446744073709551616", None),
        ] {
            assert_eq!(number(text), expected);
        }
    }

    #[test]
    fn accounts_have_32_bits() {
        for (text, expected) in [
            (&b"0"[..], Some(0)),
            (b"+1", Some(1)),
            (b"007", Some(7)),
            (b"4294967295", Some(u32::MAX)),
            (b"4294967296", None),
            (b"-1", None),
            (b"1x", None),
            (b"", None),
        ] {
            assert_eq!(account(text), expected);
        }
    }

    #[test]
    fn what_is_no_number_says_so() {
        for text in [&b"nan"[..], b"NaN", b" -nan", b"nan(1)"] {
            assert!(is_nan(text), "{}", text.escape_ascii());
        }
        for text in [&b""[..], b"1", b"nano", b"inf", b"nan("] {
            assert!(!is_nan(text), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn sizes_have_units() {
        let number = |comparison, value| Number { comparison, value };
        for (text, expected) in [
            (&b"5"[..], Ok((number(Equal, 5), 512))),
            (b"+5k", Ok((number(Greater, 5), 1024))),
            (b"-2M", Ok((number(Less, 2), 1 << 20))),
            (b"3w", Ok((number(Equal, 3), 2))),
            (b"", Err(SizeError::Empty)),
            (b"x", Err(SizeError::Unit)),
            (b"+", Err(SizeError::Unit)),
            (b"5kk", Err(SizeError::Digits)),
            (b"-c", Err(SizeError::Digits)),
        ] {
            assert_eq!(size(text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn ages_match_as_documented() {
        const HOUR: i128 = 3600 * SECOND;
        for (text, unit, age_of_file, expected) in [
            (&b"0"[..], AgeUnit::Days, 23 * HOUR, true),
            (b"0", AgeUnit::Days, 24 * HOUR, false),
            (b"1", AgeUnit::Days, 47 * HOUR, true),
            (b"+1", AgeUnit::Days, 47 * HOUR, false),
            (b"+1", AgeUnit::Days, 49 * HOUR, true),
            (b"-1", AgeUnit::Days, 23 * HOUR, true),
            (b"-1", AgeUnit::Days, 24 * HOUR + SECOND - 1, true),
            (b"-1", AgeUnit::Days, 24 * HOUR + SECOND, false),
            (b"-0", AgeUnit::Days, SECOND - 1, true),
            (b"-0", AgeUnit::Days, SECOND, false),
            (b"1.5", AgeUnit::Days, 36 * HOUR, true),
            (b"1.5", AgeUnit::Days, 35 * HOUR, false),
            (b"2", AgeUnit::Minutes, 61 * SECOND, true),
            (b"2", AgeUnit::Minutes, 59 * SECOND, false),
            (b"+1", AgeUnit::Minutes, 61 * SECOND, true),
            (b"-1", AgeUnit::Minutes, 59 * SECOND, true),
        ] {
            let window = age(text, unit, 0).expect("valid");
            assert_eq!(window.contains(-age_of_file), expected, "{} {age_of_file}", text.escape_ascii());
        }
        for bad in [&b""[..], b"x", b"+", b"1.5x", b"nan", b"+++1", b"0x", b"1e", b"1 ", b"1e400"] {
            assert_eq!(age(bad, AgeUnit::Days, 0), None);
        }
    }

    #[test]
    fn reals_are_those_of_the_c_library() {
        for (text, expected) in [
            (&b"1.5"[..], 1.5),
            (b" +1e1", 10.0),
            (b"\t-.5", -0.5),
            (b"0x1F", 31.0),
            (b"0x1.8p3", 12.0),
            (b"Infinity", f64::INFINITY),
        ] {
            assert_eq!(real(text), Some(expected), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn days_between_access_and_change_are_rounded_up() {
        const DAY: i128 = 86_400_000_000_000;
        for (text, span, expected) in [
            (&b"11"[..], 10 * DAY + 1, true),
            (b"10", 10 * DAY + 1, false),
            (b"10", 10 * DAY, false),
            (b"10", 10 * DAY - 1, true),
            (b"0", 0, false),
            (b"+10", 10 * DAY + 1, true),
            (b"+10", 10 * DAY, false),
            (b"-11", 10 * DAY + 1, true),
            (b"-10", 10 * DAY + 1, false),
            (b"-1", -DAY, false),
        ] {
            let window = span_of_days(text).expect("valid");
            assert_eq!(window.contains(span), expected, "{} {span}", text.escape_ascii());
        }
    }

    #[test]
    fn type_lists() {
        let both = kinds(b"f,d").expect("valid");
        assert!(both.contains(FileKind::File) && both.contains(FileKind::Directory));
        assert!(!both.contains(FileKind::Symlink));
        for (text, error) in [
            (&b""[..], KindsError::Empty),
            (b"fd", KindsError::Separator),
            (b"ff", KindsError::Separator),
            (b"f,", KindsError::Trailing),
            (b",f", KindsError::Unknown(b',')),
            (b"f,f", KindsError::Duplicate(b'f')),
            (b"D", KindsError::Door),
        ] {
            assert_eq!(kinds(text), Err(error));
        }
    }
}
