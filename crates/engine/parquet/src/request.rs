//! The requested columns.

use millstream_wire::{Decoder, Malformed};

/// Columns of a file, and how Spark would look them up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The columns, in the order in which they are returned.
    pub columns: Vec<ColumnRequest>,
    /// Whether names that differ only in case are different.
    pub case_sensitive: bool,
    /// Whether dates of files not written by Spark are in the proleptic Gregorian calendar.
    pub dates_are_gregorian: bool,
    /// The same for timestamps that are stored as `INT96`.
    pub int96_is_gregorian: bool,
}

/// A column at the top level of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRequest {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
}

/// A Spark type. Each stands for exactly one Parquet type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `BOOLEAN`; one byte, 0 or 1.
    Boolean,
    /// `INT32` with the annotation `INT(8, true)`; one byte.
    Byte,
    /// `INT32` with the annotation `INT(16, true)`; two bytes.
    Short,
    /// `INT32`; four bytes.
    Int,
    /// `INT32` with the annotation `DATE`; days since 1970-01-01, four bytes.
    Date,
    /// `INT64`; eight bytes.
    Long,
    /// `INT64` with the annotation `TIMESTAMP(true, MICROS)`, or `INT96`; microseconds since 1970-01-01, eight bytes.
    Timestamp,
    /// `INT64` with the annotation `TIMESTAMP(false, MICROS)`; microseconds since 1970-01-01 in no time zone, eight
    /// bytes.
    TimestampWithoutZone,
    /// `FLOAT`; four bytes.
    Float,
    /// `DOUBLE`; eight bytes.
    Double,
    /// `BYTE_ARRAY` with the annotation `STRING`.
    String,
    /// `BYTE_ARRAY`.
    Binary,
    /// `DECIMAL(precision, scale)` as `INT32` of up to 9 digits, four bytes, or `INT64` of 10 to 18, eight bytes.
    Decimal {
        /// Number of digits.
        precision: u8,
        /// Number of digits after the point.
        scale: u8,
    },
}

/// Maximum digits in an `INT32`.
const INT_DIGITS: u8 = 9;

impl ColumnType {
    /// Bytes of a value; `None` if their number varies.
    pub fn width(self) -> Option<usize> {
        match self {
            ColumnType::Boolean | ColumnType::Byte => Some(1),
            ColumnType::Short => Some(2),
            ColumnType::Int | ColumnType::Date | ColumnType::Float => Some(4),
            ColumnType::Long | ColumnType::Double => Some(8),
            ColumnType::Timestamp | ColumnType::TimestampWithoutZone => Some(8),
            ColumnType::Decimal { .. } => Some(if self.is_short_decimal() { 4 } else { 8 }),
            ColumnType::String | ColumnType::Binary => None,
        }
    }

    pub(crate) fn is_short_decimal(self) -> bool {
        matches!(self, ColumnType::Decimal { precision: 0..=INT_DIGITS, .. })
    }
}

impl Request {
    /// Decodes a request in the encoding of [`millstream_wire`]: the three flags in the order of `Request`, then
    /// columns up to the end. A column is the letter of its type, the precision and the scale of a decimal (a `u8`
    /// each), and its name: a prefixed string in UTF-8.
    ///
    /// ```text
    /// z boolean   b byte   s short   i int   l long   f float   g double   d date   t timestamp
    /// T timestamp without time zone   S string    B binary   n PRECISION SCALE  decimal
    /// ```
    ///
    /// # Errors
    /// If the bytes are malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Decoder::new(bytes);
        let mut request = Request {
            case_sensitive: input.u8()? == 1,
            dates_are_gregorian: input.u8()? == 1,
            int96_is_gregorian: input.u8()? == 1,
            columns: Vec::new(),
        };
        while !input.is_empty() {
            request.columns.push(column(&mut input)?);
        }
        Ok(request)
    }
}

fn column(input: &mut Decoder<'_>) -> Result<ColumnRequest, Malformed> {
    let kind = kind(input)?;
    let name = std::str::from_utf8(input.prefixed()?).map_err(|_| Malformed)?;
    Ok(ColumnRequest { name: name.into(), kind })
}

fn kind(input: &mut Decoder<'_>) -> Result<ColumnType, Malformed> {
    Ok(match input.u8()? {
        b'z' => ColumnType::Boolean,
        b'b' => ColumnType::Byte,
        b's' => ColumnType::Short,
        b'i' => ColumnType::Int,
        b'd' => ColumnType::Date,
        b'l' => ColumnType::Long,
        b't' => ColumnType::Timestamp,
        b'T' => ColumnType::TimestampWithoutZone,
        b'f' => ColumnType::Float,
        b'g' => ColumnType::Double,
        b'S' => ColumnType::String,
        b'B' => ColumnType::Binary,
        b'n' => ColumnType::Decimal { precision: input.u8()?, scale: input.u8()? },
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use millstream_wire::vector;

    use super::*;

    /// `tests/spark/cases/test_wire.py` encodes the same request.
    #[test]
    fn the_shared_vector_is_decoded() {
        let column = |name: &str, kind| ColumnRequest { name: name.into(), kind };
        let expected = Request {
            columns: vec![
                column("truth", ColumnType::Boolean),
                column("byte", ColumnType::Byte),
                column("short", ColumnType::Short),
                column("int", ColumnType::Int),
                column("long", ColumnType::Long),
                column("float", ColumnType::Float),
                column("double", ColumnType::Double),
                column("date", ColumnType::Date),
                column("time", ColumnType::Timestamp),
                column("clock", ColumnType::TimestampWithoutZone),
                column("é text", ColumnType::String),
                column("bytes", ColumnType::Binary),
                column("price", ColumnType::Decimal { precision: 9, scale: 2 }),
            ],
            case_sensitive: false,
            dates_are_gregorian: true,
            int96_is_gregorian: false,
        };
        assert_eq!(Request::decode(&vector("parquet-request.hex")), Ok(expected));
    }

    #[test]
    fn malformed_requests_are_refused() {
        for malformed in [
            &b""[..],
            b"\x01\0",
            b"\0\0\0?\0\0\0\0",
            b"\0\0\0i\x02\0\0\0a",
            b"\0\0\0n\x01",
            b"\0\0\0i\x01\0\0\0\xff",
        ] {
            assert_eq!(Request::decode(malformed), Err(Malformed), "{malformed:?}");
        }
    }
}
