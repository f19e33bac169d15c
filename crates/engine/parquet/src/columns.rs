//! The values of a column.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int96};

use crate::request::ColumnType;

/// Maximum bytes of a column: a larger file is left to Spark.
pub(crate) const MAX_BYTES: u32 = 64 << 20;

/// The values of a column, one for each row of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// 1 where a row has no value; empty if all rows have one.
    pub nulls: Vec<u8>,
    /// The values, little-endian and one after the other. Fixed-width rows without a value have zeros.
    pub values: Vec<u8>,
    /// For types without a fixed width: the offset of each row's value in `values`, and the end of the last one.
    pub offsets: Vec<u32>,
}

impl Column {
    pub(crate) fn new(kind: ColumnType) -> Self {
        let offsets = if kind.width().is_none() { vec![0] } else { Vec::new() };
        Column { offsets, ..Column::default() }
    }

    /// Adds the `rows` rows of a row group that come after `before` others. `None` if the reader has fewer rows, fails,
    /// or has another type.
    pub(crate) fn read(
        &mut self,
        reader: ColumnReader,
        kind: ColumnType,
        is_nullable: bool,
        rows: usize,
        before: usize,
    ) -> Option<()> {
        let levels = match reader {
            ColumnReader::BoolColumnReader(reader) => {
                self.fixed(reader, is_nullable, rows, |value| [u8::from(*value)])
            }
            ColumnReader::Int32ColumnReader(reader) => match kind.width()? {
                1 => self.fixed(reader, is_nullable, rows, |value| [*value as u8]),
                2 => self.fixed(reader, is_nullable, rows, |value| (*value as u16).to_le_bytes()),
                _ => self.fixed(reader, is_nullable, rows, |value| value.to_le_bytes()),
            },
            ColumnReader::Int64ColumnReader(reader) => {
                self.fixed(reader, is_nullable, rows, |value| value.to_le_bytes())
            }
            ColumnReader::Int96ColumnReader(reader) => {
                self.fixed(reader, is_nullable, rows, |value| micros(value).to_le_bytes())
            }
            ColumnReader::FloatColumnReader(reader) => {
                self.fixed(reader, is_nullable, rows, |value| value.to_le_bytes())
            }
            ColumnReader::DoubleColumnReader(reader) => {
                self.fixed(reader, is_nullable, rows, |value| value.to_le_bytes())
            }
            ColumnReader::ByteArrayColumnReader(reader) => self.strings(reader, is_nullable, rows),
            _ => None,
        }?;
        if !self.nulls.is_empty() || levels.contains(&0) {
            self.nulls.resize(before, 0);
            self.nulls.extend(levels.iter().map(|&level| u8::from(level == 0)));
            self.nulls.resize(before + rows, 0);
        }
        Some(())
    }

    fn fixed<T: DataType, const WIDTH: usize>(
        &mut self,
        reader: ColumnReaderImpl<T>,
        is_nullable: bool,
        rows: usize,
        bytes: impl Fn(&T::T) -> [u8; WIDTH],
    ) -> Option<Vec<i16>> {
        let (levels, values) = all(reader, is_nullable, rows)?;
        each(&levels, &values, |value| {
            self.values.extend_from_slice(&value.map_or([0; WIDTH], &bytes));
            Some(())
        })?;
        Some(levels)
    }

    fn strings<T: DataType<T = ByteArray>>(
        &mut self,
        reader: ColumnReaderImpl<T>,
        is_nullable: bool,
        rows: usize,
    ) -> Option<Vec<i16>> {
        let (levels, values) = all(reader, is_nullable, rows)?;
        each(&levels, &values, |value| {
            self.values.extend_from_slice(value.map_or(&[], ByteArray::data));
            // A small dictionary may have long values that many rows share.
            let end = u32::try_from(self.values.len()).ok().filter(|&end| end <= MAX_BYTES)?;
            self.offsets.push(end);
            Some(())
        })?;
        Some(levels)
    }
}

/// Microseconds since 1970-01-01, as Spark's `DateTimeUtils.fromJulianDay` computes them from nanoseconds and a Julian
/// day.
fn micros(value: &Int96) -> i64 {
    const EPOCH: i32 = 2_440_588;
    const MICROS_PER_DAY: i64 = 86_400_000_000;
    let &[low, high, day] = value.data() else { return 0 };
    let nanos = (u64::from(high) << 32 | u64::from(low)) as i64;
    let days = (day as i32).wrapping_sub(EPOCH);
    i64::from(days).wrapping_mul(MICROS_PER_DAY).wrapping_add(nanos / 1000)
}

/// The definition levels (none if all rows have a value) and the values of a row group.
fn all<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    is_nullable: bool,
    rows: usize,
) -> Option<(Vec<i16>, Vec<T::T>)> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let definition = is_nullable.then_some(&mut levels);
        let (records, _, _) = reader.read_records(rows - read, definition, None, &mut values).ok()?;
        if records == 0 {
            return None;
        }
        read += records;
    }
    let expected = if is_nullable { levels.iter().filter(|&&level| level == 1).count() } else { rows };
    (values.len() == expected && (!is_nullable || levels.len() == rows)).then_some((levels, values))
}

/// Calls `take` with each row's value.
fn each<'a, T>(
    levels: &[i16],
    values: &'a [T],
    mut take: impl FnMut(Option<&'a T>) -> Option<()>,
) -> Option<()> {
    if levels.is_empty() {
        return values.iter().try_for_each(|value| take(Some(value)));
    }
    let mut values = values.iter();
    levels.iter().try_for_each(|&level| if level == 1 { take(Some(values.next()?)) } else { take(None) })
}
