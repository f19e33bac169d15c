//! Formats of sizes: plain, in units of a block, or human-readable. All are rounded up.

use std::num::NonZeroU64;

use millstream_system::locale::{Grouping, Locale};

/// The base of the letters of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Powers of 1000: `kB`, `MB`.
    Decimal,
    /// Powers of 1024: `K`, `M` or `KiB`, `MiB`.
    Binary,
}

impl Base {
    fn value(self) -> u128 {
        match self {
            Base::Decimal => 1000,
            Base::Binary => 1024,
        }
    }
}

/// How sizes are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeFormat {
    /// Three or four characters and a unit that fits the size.
    Human(Base),
    /// A number of blocks.
    Blocks {
        /// Bytes of a block.
        bytes: NonZeroU64,
        /// Written after the number.
        suffix: String,
        /// Whether digits are grouped as in the locale.
        digits: Digits,
    },
}

/// Whether the digits of a number are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// They are not.
    Plain,
    /// As in the locale.
    Grouped,
}

/// Why a block size was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockSizeError {
    /// Not a number.
    #[error("not a number")]
    Invalid,
    /// The letters after the number are not a unit.
    #[error("unknown unit")]
    InvalidSuffix,
    /// Larger than 2^64 - 1.
    #[error("too large")]
    TooLarge,
}

const LETTERS: &[u8] = b"KMGTPEZY";

impl SizeFormat {
    /// Plain bytes.
    pub const BYTES: SizeFormat = SizeFormat::blocks(NonZeroU64::MIN);
    /// Blocks of 1024 bytes.
    pub const KIBIBYTES: SizeFormat = SizeFormat::blocks(NonZeroU64::new(1024).unwrap());

    /// Blocks of 512 bytes, as POSIX has it.
    pub const HALF_KIBIBYTES: SizeFormat = SizeFormat::blocks(NonZeroU64::new(512).unwrap());

    /// Blocks of `bytes` bytes, without a suffix.
    pub const fn blocks(bytes: NonZeroU64) -> Self {
        SizeFormat::Blocks { bytes, suffix: String::new(), digits: Digits::Plain }
    }

    /// From `--block-size` and the environment variables of that name: `human-readable`, `si`, or a number, a unit or
    /// both, after an apostrophe where digits are to be grouped. A unit alone is also the suffix.
    ///
    /// # Errors
    /// If `text` is none of these.
    pub fn parse(text: &str) -> Result<Self, BlockSizeError> {
        let (text, digits) = match text.strip_prefix('\'') {
            Some(rest) => (rest, Digits::Grouped),
            None => (text, Digits::Plain),
        };
        if text == "si" {
            return Ok(SizeFormat::Human(Base::Decimal));
        }
        if text.len() >= 5 && "human-readable".starts_with(text) || text == "human-readable" {
            return Ok(SizeFormat::Human(Base::Binary));
        }
        let (number, unit) = split_number(text);
        let count: u64 = match number {
            "" if unit.is_empty() => return Err(BlockSizeError::Invalid),
            "" => 1,
            _ => number.parse().map_err(|_| BlockSizeError::TooLarge)?,
        };
        let (factor, suffix) = parse_unit(unit).ok_or(match number {
            "" if power_of(unit).is_none() => BlockSizeError::Invalid,
            _ => BlockSizeError::InvalidSuffix,
        })?;
        let bytes =
            u64::try_from(factor).ok().and_then(|f| f.checked_mul(count)).ok_or(BlockSizeError::TooLarge)?;
        let bytes = NonZeroU64::new(bytes).ok_or(BlockSizeError::Invalid)?;
        let suffix = if number.is_empty() { suffix } else { String::new() };
        Ok(SizeFormat::Blocks { bytes, suffix, digits })
    }

    /// From an environment variable. The longest valid prefix counts: `1Q` is 1 and `2Kx` is 2K. A value that is too
    /// large becomes the largest size.
    pub fn from_variable(text: &str) -> Option<Self> {
        if let Ok(format) = SizeFormat::parse(text) {
            return Some(format);
        }
        let (text, digits) = match text.strip_prefix('\'') {
            Some(rest) => (rest, Digits::Grouped),
            None => (text, Digits::Plain),
        };
        let (number, unit) = split_number(text);
        let known = (1..=unit.len().min(3)).rev().find_map(|end| parse_unit(unit.get(..end)?));
        let count = match (number, &known) {
            ("", None) => return None,
            ("", Some(_)) => 1,
            _ => number.parse().unwrap_or(u64::MAX),
        };
        let factor = known.map_or(1, |(factor, _)| u64::try_from(factor).unwrap_or(u64::MAX));
        let bytes = NonZeroU64::new(count.saturating_mul(factor))?;
        Some(SizeFormat::Blocks { bytes, suffix: String::new(), digits })
    }

    /// Appends `bytes`.
    pub fn write(&self, bytes: u128, locale: &Locale, out: &mut Vec<u8>) {
        match self {
            SizeFormat::Blocks { bytes: unit, suffix, digits } => {
                if unit.get() == 1 && *digits == Digits::Plain {
                    write_integer(u64::try_from(bytes).unwrap_or(u64::MAX), out);
                } else {
                    let blocks = bytes.div_ceil(u128::from(unit.get()));
                    let blocks = u64::try_from(blocks).unwrap_or(u64::MAX);
                    match digits {
                        Digits::Plain => write_integer(blocks, out),
                        Digits::Grouped => write_grouped(blocks, locale.grouping(), out),
                    }
                }
                out.extend_from_slice(suffix.as_bytes());
            }
            SizeFormat::Human(base) => write_human(bytes, *base, locale.decimal_point(), out),
        }
    }
}

/// The digits that a size begins with, which may follow white space and a plus sign, and the rest.
fn split_number(text: &str) -> (&str, &str) {
    let number = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let number = number.strip_prefix('+').unwrap_or(number);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return ("", text);
    }
    number.split_at(number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len()))
}

/// The power that the letter of a unit stands for.
fn power_of(unit: &str) -> Option<u32> {
    let &letter = unit.as_bytes().first()?;
    let upper = if b"gkmt".contains(&letter) { letter.to_ascii_uppercase() } else { letter };
    LETTERS.iter().position(|&l| l == upper).map(|at| at as u32 + 1)
}

/// The factor of a unit, and its form as a suffix: `K`, `KiB`, `KB` (written `kB`).
fn parse_unit(unit: &str) -> Option<(u128, String)> {
    let Some(&letter) = unit.as_bytes().first() else { return Some((1, String::new())) };
    let power = power_of(unit)?;
    let letter = letter.to_ascii_uppercase() as char;
    match &unit[1..] {
        "" => Some((Base::Binary.value().pow(power), letter.to_string())),
        "iB" => Some((Base::Binary.value().pow(power), format!("{letter}iB"))),
        "B" => {
            let letter = if power == 1 { 'k' } else { letter };
            Some((Base::Decimal.value().pow(power), format!("{letter}B")))
        }
        _ => None,
    }
}

/// Up to three digits, or two with a decimal point, and the letter of the unit.
fn write_human(bytes: u128, base: Base, decimal_point: &[u8], out: &mut Vec<u8>) {
    let step = base.value();
    if bytes < step {
        return write_integer(bytes as u64, out);
    }
    let mut power = 1;
    let mut unit = step;
    while power < LETTERS.len() && bytes.div_ceil(unit) >= step {
        power += 1;
        unit *= step;
    }
    let tenths = (bytes * 10).div_ceil(unit);
    if tenths < 100 {
        out.push(b'0' + (tenths / 10) as u8);
        out.extend_from_slice(decimal_point);
        out.push(b'0' + (tenths % 10) as u8);
    } else {
        write_integer(u64::try_from(bytes.div_ceil(unit)).unwrap_or(u64::MAX), out);
    }
    out.push(match (LETTERS[power - 1], base) {
        (b'K', Base::Decimal) => b'k',
        (letter, _) => letter,
    });
}

/// Appends a number in decimal.
pub fn write_integer(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut left = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Columns of a number in decimal.
pub fn integer_width(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |n| n as usize + 1)
}

fn write_grouped(value: u64, grouping: &Grouping, out: &mut Vec<u8>) {
    let start = out.len();
    write_integer(value, out);
    let mut sizes = grouping.sizes.iter().copied();
    let mut size = 0;
    let mut at = out.len();
    loop {
        size = match sizes.next() {
            Some(0) | None => size,
            Some(n) => n,
        };
        // A size of CHAR_MAX means no further grouping.
        if size == 0 || size == 127 || grouping.separator.is_empty() || at - start <= usize::from(size) {
            return;
        }
        at -= usize::from(size);
        out.splice(at..at, grouping.separator.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &SizeFormat, bytes: u128) -> String {
        let mut out = Vec::new();
        format.write(bytes, Locale::from_environment(), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn human_sizes_are_rounded_up() {
        for (bytes, binary, decimal) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1000, "1000", "1.0k"),
            (1023, "1023", "1.1k"),
            (1025, "1.1K", "1.1k"),
            (5000, "4.9K", "5.0k"),
            (10_137, "9.9K", "11k"),
            (10_189, "10K", "11k"),
            (1_000_000, "977K", "1.0M"),
            (1_048_575, "1.0M", "1.1M"),
            (10_737_418_240, "10G", "11G"),
            (u128::from(u64::MAX), "16E", "19E"),
        ] {
            assert_eq!(written(&SizeFormat::Human(Base::Binary), bytes), binary);
            assert_eq!(written(&SizeFormat::Human(Base::Decimal), bytes), decimal);
        }
    }

    #[test]
    fn block_sizes() {
        for (text, bytes, expected) in [
            ("K", 1025, "2K"),
            ("KiB", 1024, "1KiB"),
            ("KB", 1025, "2kB"),
            ("MB", 1, "1MB"),
            ("1K", 1025, "2"),
            ("10K", 1_000_000, "98"),
            ("512", 8192, "16"),
            ("1", 12_345, "12345"),
            ("si", 8192, "8.2k"),
        ] {
            assert_eq!(written(&SizeFormat::parse(text).expect(text), bytes), expected, "{text}");
        }
    }

    #[test]
    fn bad_block_sizes() {
        for (text, error) in [
            ("", BlockSizeError::Invalid),
            ("z", BlockSizeError::Invalid),
            ("0", BlockSizeError::Invalid),
            ("1x", BlockSizeError::InvalidSuffix),
            ("B", BlockSizeError::Invalid),
            ("1B", BlockSizeError::InvalidSuffix),
            ("Ki", BlockSizeError::InvalidSuffix),
            ("Y", BlockSizeError::TooLarge),
            ("99999999999999999999", BlockSizeError::TooLarge),
        ] {
            assert_eq!(SizeFormat::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn variables_count_as_far_as_they_are_understood() {
        let blocks = |bytes| NonZeroU64::new(bytes).map(SizeFormat::blocks);
        for (text, bytes) in [
            ("1Q", 1),
            ("5x", 5),
            ("2Kx", 2048),
            ("3KBx", 3000),
            ("KBx", 1000),
            (" +1", 1),
            ("9999999999999999999999", u64::MAX),
            ("16E", u64::MAX),
            ("Q", 0),
            ("-1", 0),
            ("0x", 0),
        ] {
            assert_eq!(SizeFormat::from_variable(text), blocks(bytes), "{text}");
        }
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        let grouping = Grouping { separator: b",".to_vec(), sizes: vec![3] };
        for (value, expected) in [(1, "1"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            let mut out = Vec::new();
            write_grouped(value, &grouping, &mut out);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
