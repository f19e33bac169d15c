//! Dates as people write them: `@SECONDS`, `2026-05-01 12:00`, `yesterday`.
//!
//! A date without a zone is a local time, which is skipped or repeated on a day on which clocks change. Then the C
//! library decides, as for GNU find: it picks one of the repeated times, and a skipped time is not a date.

use std::ffi::CStr;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Zoned};
use millstream_system::locale::{ClockReading, Locale};
use millstream_vfs::Timestamp;
use parse_datetime::{ParsedDateTime, parse_datetime_at_date};

/// An offset from UTC that no text can give: further than any zone.
const NO_ZONE: Offset = Offset::constant(25);

/// The moment denoted by a text.
pub(super) fn parse_date(text: &CStr) -> Option<Timestamp> {
    let text = text.to_str().ok()?;
    // Words of dates are case-insensitive, and an empty text is the last midnight.
    let text = if text.trim().is_empty() { "00:00" } else { text };
    if let Some(sec) = text.strip_prefix('@').and_then(|seconds| seconds.parse().ok()) {
        return Some(Timestamp { sec, nsec: 0 });
    }
    let now = Zoned::now();
    let zoned = match parse_datetime_at_date(now.clone(), text).ok()? {
        ParsedDateTime::InRange(zoned) => zoned,
        // From the last day of 9999 on.
        ParsedDateTime::Extended(date) => {
            return Some(Timestamp { sec: date.unix_seconds(), nsec: date.nanosecond });
        }
    };
    let moment = match meaning(text, &now)? {
        Meaning::Local(local, later) => {
            let nsec = i128::from(local.subsec_nanosecond());
            i128::from(seconds_of(&local).0) * 1_000_000_000 + nsec + later.as_nanos()
        }
        Meaning::Moment(moment) => moment.as_nanosecond(),
        Meaning::Resolved => zoned.timestamp().as_nanosecond(),
    };
    let sec = i64::try_from(moment.div_euclid(1_000_000_000)).ok()?;
    Some(Timestamp { sec, nsec: u32::try_from(moment.rem_euclid(1_000_000_000)).ok()? })
}

/// How a text denotes a moment.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    /// By a local time, and a span of hours, minutes and seconds from it.
    Local(DateTime, SignedDuration),
    /// By a time with a zone.
    Moment(jiff::Timestamp),
    /// By a distance from now or another moment, or in a zone with separate rules, which the parser knows.
    Resolved,
}

/// `None` if the text denotes a local time that does not exist.
fn meaning(text: &str, now: &Zoned) -> Option<Meaning> {
    if text.contains(['@', '=']) {
        return Some(Meaning::Resolved);
    }
    let base = TimeZone::fixed(NO_ZONE).to_zoned(now.datetime()).ok()?;
    let in_no_zone = |text: &str| match parse_datetime_at_date(base.clone(), text) {
        Ok(ParsedDateTime::InRange(parsed)) if !text.is_empty() => Some(parsed),
        _ => None,
    };
    let Some(parsed) = in_no_zone(text) else { return Some(Meaning::Resolved) };
    if parsed.offset() != NO_ZONE {
        // GNU find looks up such a time, too, and the C library remembers the offset for the next repeated time.
        seconds_of(&parsed.datetime());
        return Some(Meaning::Moment(parsed.timestamp()));
    }
    if let Some(from) = in_no_zone(&without(text, &[DATE_UNITS, TIME_UNITS].concat())) {
        // The time itself must exist, not the time a number of days from it.
        if seconds_of(&from.datetime()).1 == ClockReading::Skipped {
            return None;
        }
    }
    Some(match in_no_zone(&without(text, TIME_UNITS)) {
        Some(start) if start.datetime() != now.datetime() => {
            Meaning::Local(start.datetime(), parsed.duration_since(&start))
        }
        _ => Meaning::Resolved,
    })
}

const DATE_UNITS: &[&str] = &["day", "week", "fortnight", "month", "year"];
const TIME_UNITS: &[&str] = &["hour", "minute", "min", "second", "sec"];

/// A text without distances of some units, such as `2 days ago`; empty if there is nothing else.
fn without(text: &str, units: &[&str]) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_left_out = false;
    for word in text.split_whitespace() {
        let lower = word.to_ascii_lowercase();
        let is_digit = |c: char| c.is_ascii_digit() || "+-".contains(c);
        let unit = lower.trim_start_matches(is_digit);
        if units.contains(&unit.trim_end_matches('s')) {
            let is_count = |word: &&str| word.chars().all(is_digit) || ["next", "last"].contains(word);
            // The number is a word before it, unless it is part of it.
            if unit.len() == lower.len() && kept.last().is_some_and(is_count) {
                kept.pop();
            }
            is_left_out = true;
        } else if lower != "ago" || !is_left_out {
            kept.push(word);
            is_left_out = false;
        }
    }
    kept.join(" ")
}

fn seconds_of(local: &DateTime) -> (i64, ClockReading) {
    let date = [local.year().into(), i32::from(local.month()), i32::from(local.day())];
    let time = [local.hour(), local.minute(), local.second()].map(i32::from);
    Locale::from_environment().seconds_of_local_time(date, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_a_zone_are_moments() {
        let now = Zoned::now();
        let kind = |text: &str| match meaning(text, &now) {
            Some(Meaning::Local(..)) => "local",
            Some(Meaning::Moment(_)) => "moment",
            Some(Meaning::Resolved) => "resolved",
            None => "none",
        };
        for (text, expected) in [
            ("2024-03-12 12:30", "local"),
            ("yesterday 12:00", "local"),
            ("2024-03-12", "local"),
            ("12:00", "local"),
            ("2024-03-12 12:30 2 days ago", "local"),
            ("2024-03-10 02:30 UTC", "moment"),
            ("2024-03-10 02:30Z", "moment"),
            ("2024-03-10 02:30 +0100", "moment"),
            ("2024-03-10 02:30 UTC 1 hour", "moment"),
            ("TZ=\"Asia/Tokyo\" 2024-03-10 02:30", "resolved"),
            ("@1.5", "resolved"),
            ("2024-03-12 12:30 1 hour", "local"),
            ("now", "resolved"),
            ("2 minutes ago", "resolved"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn spans_are_left_out() {
        for (text, units, expected) in [
            ("2024-03-10 02:30", DATE_UNITS, "2024-03-10 02:30"),
            ("2024-03-10 02:30 2 days ago", DATE_UNITS, "2024-03-10 02:30"),
            ("2024-03-10 02:30 2 days ago", TIME_UNITS, "2024-03-10 02:30 2 days ago"),
            ("2024-03-10 02:30 +1day 1 HOUR", TIME_UNITS, "2024-03-10 02:30 +1day"),
            ("02:30 next month", DATE_UNITS, "02:30"),
            ("5 mins ago", TIME_UNITS, ""),
            ("5 Mar 2024", TIME_UNITS, "5 Mar 2024"),
        ] {
            assert_eq!(without(text, units), expected, "{text}");
        }
    }
}
