//! Output lines.

use millstream_system::locale::Locale;

use super::tree::Totals;
use super::{GrandTotal, Measure, Options, TimeField};
use millstream_text::json::Object;
use millstream_text::size::{SizeFormat, write_integer};
use millstream_text::time::Clock;

/// How lines are written.
#[derive(Clone, Debug)]
pub enum LineFormat {
    /// Number, optional time, and path.
    Text {
        /// How numbers are written.
        sizes: Sizes,
        /// The line terminator.
        terminator: u8,
    },
    /// One JSON object per line.
    Json,
}

/// How numbers are written, with the locale for the decimal point.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Block or unit.
    pub format: SizeFormat,
    /// The locale.
    pub locale: &'static Locale,
}

/// Writes lines.
#[derive(Debug)]
pub(super) struct LineWriter<'a> {
    options: &'a Options,
    clock: Clock,
    /// The last line had a time outside the range of the calendar.
    odd_time: Option<i64>,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        LineWriter { options, clock: Clock::new(Locale::from_environment()), odd_time: None }
    }

    /// The time in the last line, if it was written as a number of seconds.
    pub(super) fn take_odd_time(&mut self) -> Option<i64> {
        self.odd_time.take()
    }

    /// The number to print for `totals`.
    pub(super) fn value(&self, totals: &Totals) -> u64 {
        match self.options.measure {
            Measure::Allocated => totals.blocks.saturating_mul(512),
            Measure::Apparent => totals.bytes,
            Measure::Inodes => totals.inodes,
        }
    }

    /// Appends the line of `path`, unless the threshold leaves it out.
    pub(super) fn write(&mut self, path: &[u8], totals: &Totals, out: &mut Vec<u8>) {
        let value = self.value(totals);
        if self.options.threshold.is_some_and(|threshold| !threshold.admits(value)) {
            return;
        }
        match &self.options.format {
            LineFormat::Json => self.record(totals, out).string("path", path).end(),
            LineFormat::Text { .. } => self.write_text(path, totals, out),
        }
    }

    /// Appends the line of the grand total.
    pub(super) fn write_grand_total(&mut self, totals: &Totals, out: &mut Vec<u8>) {
        if self.options.grand_total == GrandTotal::Omit {
            return;
        }
        match &self.options.format {
            LineFormat::Json => self.record(totals, out).number("total", 1).end(),
            LineFormat::Text { .. } => self.write_text(b"total", totals, out),
        }
    }

    fn write_text(&mut self, path: &[u8], totals: &Totals, out: &mut Vec<u8>) {
        let LineFormat::Text { sizes, terminator } = &self.options.format else { return };
        let value = self.value(totals);
        match (self.options.measure, &sizes.format) {
            (Measure::Inodes, SizeFormat::Blocks { suffix, .. }) => {
                write_integer(value, out);
                // If the unit of a suffix does not apply, GNU du keeps the last letter.
                out.extend(suffix.bytes().last().filter(|&letter| letter == b'B'));
            }
            _ => sizes.format.write(value.into(), sizes.locale, out),
        }
        if let Some((_, style)) = &self.options.time {
            out.push(b'\t');
            let time = totals.shown_time();
            if !self.clock.write(style, time, out) {
                self.odd_time = Some(time.sec);
            }
        }
        out.push(b'\t');
        out.extend_from_slice(path);
        out.push(*terminator);
    }

    fn record<'o>(&self, totals: &Totals, out: &'o mut Vec<u8>) -> Object<'o> {
        let object = Object::begin(out)
            .number("bytes", totals.bytes.into())
            .number("blocks", totals.blocks.into())
            .number("inodes", totals.inodes.into());
        let seconds = totals.shown_time().sec.into();
        match &self.options.time {
            None => object,
            Some((TimeField::Modified, _)) => object.number("mtime", seconds),
            Some((TimeField::Accessed, _)) => object.number("atime", seconds),
            Some((TimeField::Changed, _)) => object.number("ctime", seconds),
        }
    }
}
