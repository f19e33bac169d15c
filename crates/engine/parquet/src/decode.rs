//! Decoding a file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use millstream_wire::Encoder;
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;

use crate::chunks::are_in_order;
use crate::columns::{Column, MAX_BYTES};
use crate::pages::{Chunk, are_pages};
use crate::request::{ColumnRequest, ColumnType, Request};
use crate::thrift::has_footer;

/// Maximum rows of a file: a few bytes may stand for any number of equal rows.
const MAX_ROWS: usize = 1 << 20;

/// The requested columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Number of rows.
    pub rows: usize,
    /// The columns, in the order of the request.
    pub columns: Vec<Column>,
}

impl Decoded {
    /// Encodes the columns as [`millstream_wire`] describes: the number of rows (`u32`), and for each column whether it
    /// has nulls (a flag), the nulls if so, the offsets (`u32` each) if it has any, and the values.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sizes = self
            .columns
            .iter()
            .map(|column| 1 + column.nulls.len() + column.values.len() + 4 * column.offsets.len());
        let mut output = Encoder::with_capacity(4 + sizes.sum::<usize>());
        output.u32(u32::try_from(self.rows).unwrap_or(u32::MAX));
        for column in &self.columns {
            output.u8(u8::from(!column.nulls.is_empty()));
            output.bytes(&column.nulls);
            column.offsets.iter().for_each(|&offset| output.u32(offset));
            output.bytes(&column.values);
        }
        output.into_bytes()
    }
}

/// Decodes the requested columns of a file, given all its bytes. `None` if Spark might read the file differently.
pub fn decode(file: Vec<u8>, request: &Request) -> Option<Decoded> {
    // The library may panic on a damaged file.
    catch_unwind(AssertUnwindSafe(|| decoded(Bytes::from(file), request))).ok().flatten()
}

fn decoded(file: Bytes, request: &Request) -> Option<Decoded> {
    if !has_footer(&file) {
        return None;
    }
    let reader = SerializedFileReader::new(file.clone()).ok()?;
    let footer = reader.metadata();
    if !are_in_order(&file, footer) {
        return None;
    }
    let schema = footer.file_metadata();
    // Spark's reader fails on a key without a value.
    if schema.key_value_metadata().is_some_and(|pairs| pairs.iter().any(|pair| pair.value.is_none())) {
        return None;
    }
    let positions = request.columns.iter().map(|column| Position::of(schema, column, request));
    let positions = positions.collect::<Option<Vec<_>>>()?;
    let mut rows = 0;
    for group in footer.row_groups() {
        rows += usize::try_from(group.num_rows()).ok()?;
        let is_known = |position: &Position| {
            is_known(group.column(position.leaf), group.num_rows(), position.is_nullable, &file)
        };
        if rows > MAX_ROWS || !positions.iter().all(is_known) {
            return None;
        }
    }
    let mut columns: Vec<_> = request.columns.iter().map(|column| Column::new(column.kind)).collect();
    for (column, (asked, position)) in columns.iter_mut().zip(request.columns.iter().zip(&positions)) {
        let mut before = 0;
        for index in 0..reader.num_row_groups() {
            let group = reader.get_row_group(index).ok()?;
            let rows = usize::try_from(group.metadata().num_rows()).ok()?;
            let values = group.get_column_reader(position.leaf).ok()?;
            column.read(values, asked.kind, position.is_nullable, rows, before)?;
            before += rows;
        }
    }
    Some(Decoded { rows, columns })
}

/// The position of a column in a file.
struct Position {
    leaf: usize,
    is_nullable: bool,
}

impl Position {
    /// `None` unless the column exists exactly once, with this type.
    fn of(schema: &FileMetaData, asked: &ColumnRequest, request: &Request) -> Option<Self> {
        let descriptor = schema.schema_descr();
        let fields = descriptor.root_schema().get_fields();
        let index = fields.iter().position(|field| field.name() == asked.name)?;
        let mut others = fields.iter().enumerate().filter(|(other, _)| *other != index);
        let is_ambiguous = others.any(|(_, other)| may_be_same(other.name(), &asked.name, request));
        let leaf =
            (0..descriptor.num_columns()).find(|&leaf| descriptor.get_column_root_idx(leaf) == index)?;
        let field = &fields[index];
        let has_type =
            field.is_primitive() && field.get_basic_info().has_repetition() && is_of(field, asked.kind);
        if is_ambiguous || !has_type || !is_gregorian(field, asked.kind, schema, request) {
            return None;
        }
        match field.get_basic_info().repetition() {
            Repetition::REQUIRED => Some(Position { leaf, is_nullable: false }),
            Repetition::OPTIONAL => Some(Position { leaf, is_nullable: true }),
            Repetition::REPEATED => None,
        }
    }
}

/// Whether Spark may treat the names of two columns as equal. Its rules for letters beyond ASCII are not known here.
fn may_be_same(one: &str, other: &str, request: &Request) -> bool {
    one == other
        || !request.case_sensitive
            && (one.eq_ignore_ascii_case(other) || !one.is_ascii() && !other.is_ascii())
}

/// Whether a column has the Parquet type that a Spark type stands for.
fn is_of(field: &Type, kind: ColumnType) -> bool {
    let info = field.get_basic_info();
    let is_plain = info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE;
    // An annotation may be in its old form alone.
    let is_annotated = |logical: LogicalType, converted: ConvertedType| match info.logical_type_ref() {
        // If they contradict each other, Spark uses the old form.
        Some(found) => *found == logical && [ConvertedType::NONE, converted].contains(&info.converted_type()),
        None => info.converted_type() == converted,
    };
    let is_integer = |width: i8, converted| is_annotated(LogicalType::integer(width, true), converted);
    match (field.get_physical_type(), kind) {
        (Physical::BOOLEAN, ColumnType::Boolean)
        | (Physical::FLOAT, ColumnType::Float)
        | (Physical::DOUBLE, ColumnType::Double)
        | (Physical::INT96, ColumnType::Timestamp)
        | (Physical::BYTE_ARRAY, ColumnType::Binary) => is_plain,
        (Physical::INT32, ColumnType::Byte) => is_integer(8, ConvertedType::INT_8),
        (Physical::INT32, ColumnType::Short) => is_integer(16, ConvertedType::INT_16),
        (Physical::INT32, ColumnType::Int) => is_plain || is_integer(32, ConvertedType::INT_32),
        (Physical::INT64, ColumnType::Long) => is_plain || is_integer(64, ConvertedType::INT_64),
        (Physical::INT32, ColumnType::Date) => is_annotated(LogicalType::Date, ConvertedType::DATE),
        (Physical::INT64, ColumnType::Timestamp) => is_annotated(
            LogicalType::timestamp(true, parquet::basic::TimeUnit::MICROS),
            ConvertedType::TIMESTAMP_MICROS,
        ),
        (Physical::INT64, ColumnType::TimestampWithoutZone) => {
            let micros = LogicalType::timestamp(false, parquet::basic::TimeUnit::MICROS);
            info.logical_type_ref().is_some() && is_annotated(micros, ConvertedType::TIMESTAMP_MICROS)
        }
        (Physical::BYTE_ARRAY, ColumnType::String) => is_annotated(LogicalType::String, ConvertedType::UTF8),
        (physical @ (Physical::INT32 | Physical::INT64), ColumnType::Decimal { precision, scale }) => {
            let decimal = LogicalType::decimal(i32::from(scale), i32::from(precision));
            (physical == Physical::INT32) == kind.is_short_decimal()
                && precision <= 18
                && is_annotated(decimal, ConvertedType::DECIMAL)
                && (field.get_precision(), field.get_scale()) == (i32::from(precision), i32::from(scale))
        }
        _ => false,
    }
}

/// Whether values need no conversion from another calendar: the rules of Spark's `DataSourceUtils`,
/// `datetimeRebaseSpec` and `int96RebaseSpec`.
fn is_gregorian(field: &Type, kind: ColumnType, schema: &FileMetaData, request: &Request) -> bool {
    let (since, legacy, otherwise) = match (field.get_physical_type(), kind) {
        (Physical::INT96, _) => ("3.1.0", "org.apache.spark.legacyINT96", request.int96_is_gregorian),
        (_, ColumnType::Date | ColumnType::Timestamp) => {
            ("3.0.0", "org.apache.spark.legacyDateTime", request.dates_are_gregorian)
        }
        _ => return true,
    };
    let value_of = |key: &str| {
        let found = schema.key_value_metadata()?.iter().rfind(|pair| pair.key == key)?;
        Some(found.value.clone().unwrap_or_default())
    };
    match value_of("org.apache.spark.version") {
        None => otherwise,
        Some(version) => *version >= *since && value_of(legacy).is_none(),
    }
}

/// Whether a chunk consists of pages in this file, with encodings and a codec that both Spark and this crate read.
fn is_known(chunk: &ColumnChunkMetaData, rows: i64, is_nullable: bool, file: &[u8]) -> bool {
    let is_compressed = chunk.compression() != Compression::UNCOMPRESSED;
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (start, size) = (usize::try_from(start), usize::try_from(chunk.compressed_size()));
    let range = start.ok().zip(size.ok()).and_then(|(start, size)| Some(start..start.checked_add(size)?));
    let pages = Chunk { rows, is_nullable, is_compressed };
    range.is_some_and(|range| are_pages(file, range, pages, MAX_BYTES))
        && chunk.dictionary_page_offset().is_none_or(|offset| offset < chunk.data_page_offset())
        && chunk.num_values() == rows
        && u32::try_from(chunk.uncompressed_size()).is_ok_and(|bytes| bytes <= MAX_BYTES)
        && matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::SNAPPY)
        && chunk.encodings().all(is_read_by_spark)
}

/// Whether Spark's vectorized reader supports this encoding. `DELTA_BYTE_ARRAY` is left to Spark, which works around
/// faulty writers.
#[expect(deprecated, reason = "files name BIT_PACKED for levels that they do not have")]
fn is_read_by_spark(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::PLAIN
            | Encoding::PLAIN_DICTIONARY
            | Encoding::RLE_DICTIONARY
            | Encoding::RLE
            | Encoding::BIT_PACKED
            | Encoding::DELTA_BINARY_PACKED
            | Encoding::DELTA_LENGTH_BYTE_ARRAY
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millstream_wire::vector;
    use parquet::column::writer::ColumnWriter;
    use parquet::data_type::{ByteArray, Int96};
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn request(encoded: &[u8]) -> Request {
        Request::decode(encoded).expect("well-formed")
    }

    /// A file with these columns, in which rows without a value are null, and as many row groups.
    fn file(schema: &str, groups: &[Vec<Values>], properties: WriterProperties) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(schema).expect("a schema"));
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).expect("a writer");
        for columns in groups {
            let mut group = writer.next_row_group().expect("a row group");
            for values in columns {
                let mut column = group.next_column().expect("valid").expect("a column");
                match (column.untyped(), values) {
                    (ColumnWriter::Int32ColumnWriter(writer), Values::Ints(values)) => {
                        let (values, levels) = split(values);
                        writer.write_batch(&values, Some(&levels), None).expect("written");
                    }
                    (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(values)) => {
                        let (values, levels) = split(values);
                        let values: Vec<_> = values.into_iter().map(ByteArray::from).collect();
                        writer.write_batch(&values, Some(&levels), None).expect("written");
                    }
                    _ => panic!("another type"),
                }
                column.close().expect("closed");
            }
            group.close().expect("closed");
        }
        writer.close().expect("closed");
        bytes
    }

    enum Values {
        Ints(Vec<Option<i32>>),
        Texts(Vec<Option<&'static str>>),
    }

    fn split<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
        (
            values.iter().flatten().copied().collect(),
            values.iter().map(|value| i16::from(value.is_some())).collect(),
        )
    }

    const SCHEMA: &str = "message m { optional int32 a; optional binary b (string); }";

    fn groups() -> Vec<Vec<Values>> {
        vec![
            vec![Values::Ints(vec![Some(1), Some(-2)]), Values::Texts(vec![Some("x"), Some("")])],
            vec![Values::Ints(vec![None, Some(3), None]), Values::Texts(vec![Some("é"), None, Some("x")])],
        ]
    }

    fn ints(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn columns_are_decoded_over_row_groups() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for (codec, dictionary) in [(Compression::SNAPPY, true), (Compression::UNCOMPRESSED, false)] {
                let properties = WriterProperties::builder().set_writer_version(version);
                let properties = properties.set_compression(codec).set_dictionary_enabled(dictionary);
                let properties = properties.set_encoding(Encoding::PLAIN).build();
                let file = file(SCHEMA, &groups(), properties);
                let decoded =
                    decode(file.clone(), &request(b"\x01\0\0S\x01\0\0\0bi\x01\0\0\0a")).expect("decoded");
                assert_eq!(decoded.rows, 5);
                let text = Column {
                    nulls: vec![0, 0, 0, 1, 0],
                    values: "xéx".into(),
                    offsets: vec![0, 1, 1, 3, 3, 4],
                };
                let numbers =
                    Column { nulls: vec![0, 0, 1, 0, 1], values: ints(&[1, -2, 0, 3, 0]), offsets: vec![] };
                assert_eq!(decoded.columns, [text, numbers]);
                assert_eq!(
                    decode(file.clone(), &request(b"\x01\0\0")),
                    Some(Decoded { rows: 5, columns: vec![] })
                );
            }
        }
    }

    #[test]
    fn other_types_names_encodings_and_codecs_are_left() {
        let plain = || WriterProperties::builder().build();
        let simple = file(SCHEMA, &groups(), plain());
        for refused in [
            &b"\x01\0\0i\x01\0\0\0c"[..],
            b"\x01\0\0i\x01\0\0\0A",
            b"\0\0\0i\x01\0\0\0A",
            b"\x01\0\0l\x01\0\0\0a",
            b"\x01\0\0d\x01\0\0\0a",
            b"\x01\0\0b\x01\0\0\0a",
            b"\x01\0\0B\x01\0\0\0b",
            b"\x01\0\0i\x01\0\0\0b",
            b"\x01\0\0n\x09\0\x01\0\0\0a",
        ] {
            assert_eq!(decode(simple.clone(), &request(refused)), None, "{refused:?}");
        }
        let twice = "message m { optional int32 a; optional binary A (string); }";
        let twice = file(twice, &groups(), plain());
        assert!(decode(twice.clone(), &request(b"\x01\0\0i\x01\0\0\0a")).is_some(), "case matters");
        assert_eq!(decode(twice.clone(), &request(b"\0\0\0i\x01\0\0\0a")), None, "it does not");
        let delta = WriterProperties::builder().set_dictionary_enabled(false);
        let delta = file(
            SCHEMA,
            &groups(),
            delta
                .set_encoding(Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding("a".into(), Encoding::PLAIN)
                .build(),
        );
        assert_eq!(decode(delta.clone(), &request(b"\x01\0\0S\x01\0\0\0b")), None);
        assert!(
            decode(delta.clone(), &request(b"\x01\0\0i\x01\0\0\0a")).is_some(),
            "the other column is plain"
        );
    }

    #[test]
    fn dates_need_spark_to_have_written_them_as_they_are() {
        let version = |version: &str| KeyValue::new("org.apache.spark.version".into(), version.to_owned());
        let legacy = KeyValue::new("org.apache.spark.legacyDateTime".into(), String::new());
        let schema = "message m { optional int32 a (date); }";
        let rows = || vec![vec![Values::Ints(vec![Some(-200_000)])]];
        for (pairs, gregorian, expected) in [
            (vec![], false, false),
            (vec![], true, true),
            (vec![version("3.0.0")], false, true),
            (vec![version("4.0.1"), legacy], true, false),
            (vec![version("2.4.8")], true, false),
        ] {
            let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs.clone())).build();
            let mut asked = request(b"\x01\0\0d\x01\0\0\0a");
            asked.dates_are_gregorian = gregorian;
            let found = decode(file(schema, &rows(), properties), &asked);
            assert_eq!(found.is_some(), expected, "{pairs:?} {gregorian}");
        }
    }

    #[test]
    fn int96_is_a_julian_day_and_nanoseconds() {
        let schema = Arc::new(parse_message_type("message m { required int96 a; }").expect("a schema"));
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).expect("a writer");
        let mut group = writer.next_row_group().expect("a row group");
        let mut column = group.next_column().expect("valid").expect("a column");
        let ColumnWriter::Int96ColumnWriter(values) = column.untyped() else { panic!("another type") };
        let int96 = |nanos: u64, day: u32| {
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, day);
            value
        };
        let values_and_days = [int96(0, 2_440_588), int96(86_399_999_999_999, 2_440_587), int96(1_999, 0)];
        values.write_batch(&values_and_days, None, None).expect("written");
        column.close().expect("closed");
        group.close().expect("closed");
        writer.close().expect("closed");
        assert_eq!(
            decode(bytes.clone(), &request(b"\x01\x01\0t\x01\0\0\0a")),
            None,
            "the calendar is not known"
        );
        let decoded = decode(bytes, &request(b"\x01\0\x01t\x01\0\0\0a")).expect("decoded");
        let expected = [0i64, -1, -2_440_588 * 86_400_000_000 + 1];
        let expected = expected.iter().flat_map(|micros| micros.to_le_bytes()).collect();
        assert_eq!(decoded.columns, [Column { values: expected, ..Column::default() }]);
    }

    #[test]
    fn damaged_files_are_left() {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = file(SCHEMA, &groups(), properties);
        let asked = request(b"\x01\0\0S\x01\0\0\0bi\x01\0\0\0a");
        for end in 0..file.len() {
            assert_eq!(decode(file[..end].to_vec(), &asked), None);
        }
        for at in 0..file.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                // Any result will do: a value may have changed.
                let _ = decode(damaged, &asked).map(|decoded| assert!(decoded.rows <= MAX_ROWS));
            }
        }
    }

    /// Spark looks up chunks by path, which the library does not read.
    #[test]
    fn chunks_that_are_not_the_columns_of_the_schema_are_left() {
        let file = file(SCHEMA, &groups(), WriterProperties::builder().build());
        let asked = request(b"\x01\0\0i\x01\0\0\0a");
        assert!(decode(file.clone(), &asked).is_some());
        // A field with a list of one string of one byte.
        let path = |name: u8| [0x19, 0x18, 1, name];
        let positions =
            |name| Vec::from_iter((0..file.len()).filter(|&at| file[at..].starts_with(&path(name))));
        let (a, b) = (positions(b'a'), positions(b'b'));
        assert_eq!((a.len(), b.len()), (groups().len(), groups().len()));
        for (what, edits) in [
            ("swapped", vec![(a[0], b'b'), (b[0], b'a')]),
            ("swapped in the last row group", vec![(a[a.len() - 1], b'b'), (b[b.len() - 1], b'a')]),
            ("twice", vec![(b[0], b'a')]),
            ("the other one twice", vec![(a[0], b'b')]),
            ("unknown", vec![(b[0], b'x')]),
        ] {
            let mut edited = file.clone();
            for (at, name) in edits {
                edited[at + 3] = name;
            }
            assert_eq!(decode(edited, &asked), None, "{what}");
        }
    }

    /// `tests/spark/cases/test_wire.py` reads the same bytes.
    #[test]
    fn columns_are_the_shared_vector() {
        let numbers = Column { nulls: vec![0, 1, 0], values: ints(&[1, 0, -2]), offsets: vec![] };
        let text = Column { nulls: vec![], values: "xé".into(), offsets: vec![0, 1, 1, 3] };
        let flags = Column { nulls: vec![1, 0, 0], values: vec![0, 1, 0], offsets: vec![] };
        let decoded = Decoded { rows: 3, columns: vec![numbers, text, flags] };
        assert_eq!(decoded.to_bytes(), vector("parquet-columns.hex"));
    }

    #[test]
    fn any_bytes_can_be_decoded() {
        let file = file(SCHEMA, &groups(), WriterProperties::builder().build());
        let encoded = b"\x01\0\0S\x01\0\0\0bi\x01\0\0\0a";
        crate::fuzz_decode(&[&[encoded.len() as u8][..], encoded, &file].concat());
        crate::fuzz_decode(b"\x09\x01\x02");
        crate::fuzz_decode(b"");
    }
}
