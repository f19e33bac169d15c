//! Formats of times.
//!
//! Converting a time to local time costs more than everything else in a long line. It is therefore done once per
//! quarter of an hour of file time: since 1973, offsets from UTC have changed only at quarters, so within one quarter
//! the minutes and seconds simply count on. Formats made of common fields do not use `strftime` at all.

use std::ffi::CString;

use millstream_system::locale::{LocalTime, Locale};
use millstream_vfs::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::size::write_integer;

/// Half of a mean year: files older than that, or from the future, show the year instead of the time.
const RECENT_SECONDS: i64 = 31_556_952 / 2;
const QUARTER_SECONDS: i64 = 900;
/// 1973-01-01: by then every zone had an offset of whole quarters of an hour.
const WHOLE_QUARTERS_SINCE: i64 = 94_694_400;
/// Broken-down quarters that are remembered.
const REMEMBERED_QUARTERS: usize = 256;

/// The pair of formats for a listing.
#[derive(Clone, Debug)]
pub struct TimeStyle {
    old: Format,
    recent: Format,
}

impl TimeStyle {
    /// From two formats of `strftime`, extended by GNU's `%N`, `%:z`, `%::z` and `%:::z`.
    pub fn new(old: &[u8], recent: &[u8], locale: &Locale) -> Self {
        let months = aligned_months(locale);
        TimeStyle { old: Format::parse(old, &months), recent: Format::parse(recent, &months) }
    }

    /// Columns of the current time, for entries whose time is not known.
    pub fn width_of_unknown(&self, clock: &mut Clock) -> usize {
        let mut sample = Vec::new();
        clock.write(self, Timestamp { sec: 0, nsec: 0 }, &mut sample);
        sample.len()
    }
}

/// Months padded to the width of the widest, so that columns line up.
fn aligned_months(locale: &Locale) -> [Vec<u8>; 12] {
    let mut months = locale.months().clone();
    let width = |month: &[u8]| String::from_utf8_lossy(month).chars().count();
    let widest = months.iter().map(|m| width(m)).max().unwrap_or(0);
    for month in &mut months {
        let padding = widest - width(month);
        month.extend(std::iter::repeat_n(b' ', padding));
    }
    months
}

#[derive(Clone, Debug)]
enum Field {
    Literal(Vec<u8>),
    Month(Box<[Vec<u8>; 12]>),
    MonthNumber,
    Day,
    DaySpaced,
    Year,
    Hour,
    Minute,
    Second,
    Nanoseconds {
        flag: u8,
        digits: usize,
    },
    Offset {
        colons: usize,
    },
    /// The quarter of the year.
    Quarter {
        padding: Option<u8>,
        width: usize,
    },
    /// Any other conversion, left to `strftime`.
    Other(CString),
}

#[derive(Clone, Debug)]
struct Format {
    fields: Vec<Field>,
}

impl Format {
    fn parse(format: &[u8], months: &[Vec<u8>; 12]) -> Format {
        let mut fields = Vec::new();
        let mut rest = format;
        while let Some(&first) = rest.first() {
            let len = if first == b'%' { conversion_len(rest) } else { literal_len(rest) };
            let (text, after) = rest.split_at(len);
            fields.push(Field::parse(text, months));
            rest = after;
        }
        Format { fields }
    }
}

fn literal_len(text: &[u8]) -> usize {
    text.iter().position(|&b| b == b'%').unwrap_or(text.len())
}

/// Length of the conversion that `text` begins with: flags, width, modifiers, and the letter.
fn conversion_len(text: &[u8]) -> usize {
    let is_prefix = |b: &u8| matches!(b, b'_' | b'-' | b'0'..=b'9' | b'^' | b'#' | b'+' | b':' | b'E' | b'O');
    let prefix = text[1..].iter().take_while(|&b| is_prefix(b)).count();
    (prefix + 2).min(text.len())
}

impl Field {
    fn parse(text: &[u8], months: &[Vec<u8>; 12]) -> Field {
        match text {
            [b'%', b'b' | b'h'] => Field::Month(Box::new(months.clone())),
            b"%m" => Field::MonthNumber,
            b"%d" => Field::Day,
            b"%e" => Field::DaySpaced,
            b"%Y" => Field::Year,
            b"%H" => Field::Hour,
            b"%M" => Field::Minute,
            b"%S" => Field::Second,
            b"%z" => Field::Offset { colons: 0 },
            [b'%', colons @ .., b'z']
                if (1..=3).contains(&colons.len()) && colons.iter().all(|&b| b == b':') =>
            {
                Field::Offset { colons: colons.len() }
            }
            [b'%', modifiers @ .., b'N'] => Field::nanoseconds(modifiers),
            [b'%', modifiers @ .., b'q'] if !modifiers.contains(&b':') => Field::quarter(modifiers),
            // The C library has no alternative year for it, and shows the letters.
            [b'%', modifiers @ .., b'O', b'Y'] => Field::parse(&[b"%", modifiers, b"Y"].concat(), months),
            [b'%', .., _] => CString::new(text).map_or_else(|_| Field::Literal(text.to_vec()), Field::Other),
            _ => Field::Literal(text.to_vec()),
        }
    }

    fn nanoseconds(modifiers: &[u8]) -> Field {
        let flag = modifiers.iter().copied().rfind(|b| matches!(b, b'-' | b'_')).unwrap_or(b'0');
        let digits =
            modifiers.iter().skip_while(|b| !matches!(b, b'1'..=b'9')).take_while(|b| b.is_ascii_digit());
        let digits = digits.fold(0usize, |n, &b| n.saturating_mul(10).saturating_add(usize::from(b - b'0')));
        Field::Nanoseconds { flag, digits: if digits == 0 { 9 } else { digits.min(1024) } }
    }

    fn quarter(modifiers: &[u8]) -> Field {
        let flag = modifiers.iter().copied().rfind(|b| matches!(b, b'-' | b'_' | b'0' | b'+'));
        let width =
            modifiers.iter().skip_while(|b| !matches!(b, b'1'..=b'9')).take_while(|b| b.is_ascii_digit());
        let width = width.fold(0usize, |n, &b| n.saturating_mul(10).saturating_add(usize::from(b - b'0')));
        let padding = match flag {
            Some(b'-') => None,
            Some(b'_') => Some(b' '),
            _ => Some(b'0'),
        };
        Field::Quarter { padding, width: width.min(1024) }
    }

    fn write(&self, time: &LocalTime, nanoseconds: u32, locale: &Locale, out: &mut Vec<u8>) {
        match self {
            Field::Literal(text) => out.extend_from_slice(text),
            Field::Month(names) => out.extend_from_slice(&names[time.month() as usize % 12]),
            Field::MonthNumber => write_two_digits(time.month() + 1, b'0', out),
            Field::Day => write_two_digits(time.day(), b'0', out),
            Field::DaySpaced => write_two_digits(time.day(), b' ', out),
            Field::Year => match u64::try_from(time.year()) {
                Ok(year) => write_integer(year, out),
                Err(_) => locale.format_time(c"%Y", time, out),
            },
            Field::Hour => write_two_digits(time.hour(), b'0', out),
            Field::Minute => write_two_digits(time.minute(), b'0', out),
            Field::Second => write_two_digits(time.second(), b'0', out),
            Field::Nanoseconds { flag, digits } => write_nanoseconds(nanoseconds, *flag, *digits, out),
            Field::Offset { colons } => write_offset(time.utc_offset_seconds(), *colons, out),
            Field::Quarter { padding, width } => {
                if let Some(padding) = padding {
                    out.extend(std::iter::repeat_n(*padding, width.saturating_sub(1)));
                }
                write_integer(u64::from(time.month()) / 3 + 1, out);
            }
            Field::Other(format) => locale.format_time(format, time, out),
        }
    }
}

fn write_two_digits(value: u32, padding: u8, out: &mut Vec<u8>) {
    out.push(if value < 10 { padding } else { b'0' + (value / 10) as u8 });
    out.push(b'0' + (value % 10) as u8);
}

/// The first `digits` digits of the fraction; `-` drops zeros at the end, `_` makes them spaces.
fn write_nanoseconds(nanoseconds: u32, flag: u8, digits: usize, out: &mut Vec<u8>) {
    let all = format!("{nanoseconds:09}");
    let shown = &all.as_bytes()[..digits.min(9)];
    match flag {
        b'-' | b'_' => {
            let significant = shown.iter().rposition(|&b| b != b'0').map_or(0, |n| n + 1);
            // At least one digit is left.
            let significant = significant.max(1);
            out.extend_from_slice(&shown[..significant]);
            if flag == b'_' {
                out.extend(std::iter::repeat_n(b' ', digits - significant));
            }
        }
        _ => {
            out.extend_from_slice(shown);
            out.extend(std::iter::repeat_n(b'0', digits - shown.len()));
        }
    }
}

/// `+hhmm`, `+hh:mm`, `+hh:mm:ss`, or with three colons as short as is exact.
fn write_offset(seconds: i64, colons: usize, out: &mut Vec<u8>) {
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let seconds = seconds.unsigned_abs() as u32;
    let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60];
    let shown = match colons {
        0 | 1 => 2,
        2 => 3,
        _ if parts[2] != 0 => 3,
        _ if parts[1] != 0 => 2,
        _ => 1,
    };
    for (i, part) in parts.iter().take(shown).enumerate() {
        if i > 0 && colons > 0 {
            out.push(b':');
        }
        write_two_digits(*part, b'0', out);
    }
}

/// Writes times; each worker has one, with a separate cache.
#[derive(Debug)]
pub struct Clock {
    locale: &'static Locale,
    now: Timestamp,
    quarters: Vec<Option<(i64, LocalTime)>>,
}

impl Clock {
    /// A clock with an empty cache.
    pub fn new(locale: &'static Locale) -> Self {
        Clock { locale, now: current_time(), quarters: vec![None; REMEMBERED_QUARTERS] }
    }

    /// Appends `time` in local time, or as a number of seconds and returns false if it has no year.
    pub fn write(&mut self, style: &TimeStyle, time: Timestamp, out: &mut Vec<u8>) -> bool {
        let Some(local) = self.local_time(time.sec) else {
            write_signed(time.sec, out);
            return false;
        };
        let format = if self.is_recent(time) { &style.recent } else { &style.old };
        for field in &format.fields {
            field.write(&local, time.nsec, self.locale, out);
        }
        true
    }

    fn is_recent(&mut self, time: Timestamp) -> bool {
        if time > self.now {
            // The file may have been touched since the clock was read.
            self.now = current_time();
        }
        let horizon = Timestamp { sec: self.now.sec - RECENT_SECONDS, nsec: self.now.nsec };
        horizon < time && time < self.now
    }

    fn local_time(&mut self, seconds: i64) -> Option<LocalTime> {
        if seconds < WHOLE_QUARTERS_SINCE {
            return self.locale.local_time(seconds);
        }
        let (quarter, into) = (seconds / QUARTER_SECONDS, (seconds % QUARTER_SECONDS) as u32);
        let slot = &mut self.quarters[quarter as usize % REMEMBERED_QUARTERS];
        let start = match slot {
            Some((at, start)) if *at == quarter => *start,
            _ => {
                let start = self.locale.local_time(quarter * QUARTER_SECONDS)?;
                if start.second() != 0 || start.minute() % 15 != 0 {
                    // A zone that counts leap seconds.
                    return self.locale.local_time(seconds);
                }
                slot.insert((quarter, start)).1
            }
        };
        Some(start.later_in_hour(into / 60, into % 60))
    }
}

fn current_time() -> Timestamp {
    let now = clock_gettime(ClockId::Realtime);
    Timestamp { sec: now.tv_sec, nsec: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

fn write_signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_integer(value.unsigned_abs(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, time: Timestamp) -> String {
        let locale = Locale::from_environment();
        let style = TimeStyle::new(format.as_bytes(), format.as_bytes(), locale);
        let mut out = Vec::new();
        Clock::new(locale).write(&style, time, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn nanosecond_formats() {
        for (format, nsec, expected) in [
            ("%N", 789_000_000, "789000000"),
            ("%3N", 314_487_717, "314"),
            ("%5N", 789_000_000, "78900"),
            ("%12N", 314_487_717, "314487717000"),
            ("%-N", 789_000_000, "789"),
            ("%_N", 789_000_000, "789      "),
            ("x%%y", 0, "x%y"),
            ("%", 0, "%"),
        ] {
            assert_eq!(written(format, Timestamp { sec: 1_000_000_000, nsec }), expected, "{format}");
        }
    }

    #[test]
    fn offsets() {
        for (seconds, colons, expected) in [
            (0, 0, "+0000"),
            (3600, 1, "+01:00"),
            (-12_600, 0, "-0330"),
            (20_700, 2, "+05:45:00"),
            (3600, 3, "+01"),
            (20_700, 3, "+05:45"),
        ] {
            let mut out = Vec::new();
            write_offset(seconds, colons, &mut out);
            assert_eq!(out, expected.as_bytes());
        }
    }

    /// The cached quarters give the same result as `strftime`, in the past, around changes of the offset, and far
    /// ahead.
    #[test]
    fn remembered_quarters_agree_with_the_c_library() {
        let locale = Locale::from_environment();
        let format = b"%b|%m|%d|%e|%Y|%H|%M|%S|%z";
        let style = TimeStyle::new(format, format, locale);
        let mut clock = Clock::new(locale);
        let mut seconds = -4_000_000_000i64;
        while seconds < 8_000_000_000 {
            let mut ours = Vec::new();
            clock.write(&style, Timestamp { sec: seconds, nsec: 0 }, &mut ours);
            let mut theirs = Vec::new();
            let local = locale.local_time(seconds).expect("a year");
            locale.format_time(c"%b|%m|%d|%e|%Y|%H|%M|%S|%z", &local, &mut theirs);
            assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "{seconds}");
            seconds += 977_777;
        }
    }

    #[test]
    fn a_time_without_a_year_is_a_number() {
        assert_eq!(written("%Y", Timestamp { sec: i64::MAX, nsec: 0 }), "9223372036854775807");
    }
}
