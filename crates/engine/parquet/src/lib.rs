#![forbid(unsafe_code)]
//! Decodes flat columns of small Parquet files.
//!
//! Setting up Parquet's Java reader costs more than decoding a small file, and most of it runs before the JVM has
//! compiled it. Here a file that is in memory is decoded as a whole, and its columns are returned as Spark's column
//! vectors hold them, so that the JVM only copies arrays.
//!
//! ```text
//! request: columns and their types ─┐
//! bytes of a file ─► footer ─► is every column what Spark expects? ─► values and nulls of each column
//!                                       no: `None`, and Spark reads the file
//! ```
//!
//! The rows must be exactly Spark's. So a file is decoded only if each requested column is flat, exists once, and has
//! the one Parquet type of the Spark type; if its chunks are in the order of the schema; if dates need no other
//! calendar; and if Spark reads its encodings and codec, too. For everything else, including damaged files, the answer
//! is `None`: Spark then reads the file, or fails with its own message. The crate knows no Spark classes; the Parquet
//! format is documented in <https://parquet.apache.org/docs/file-format/>.

mod chunks;
mod columns;
mod decode;
mod pages;
mod request;
mod thrift;

pub use columns::Column;
pub use decode::{Decoded, decode};
pub use request::{ColumnRequest, ColumnType, Request};

/// Decodes arbitrary bytes as a request and a file. The first byte is the length of the encoded request, which follows
/// it; the rest is the file. The decoded columns must have as many rows as the result says.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_decode(bytes: &[u8]) {
    let Some((&length, rest)) = bytes.split_first() else { return };
    let (encoded, file) = rest.split_at(usize::from(length).min(rest.len()));
    let Ok(request) = Request::decode(encoded) else { return };
    if let Some(decoded) = decode(file.to_vec(), &request) {
        assert_eq!(decoded.columns.len(), request.columns.len());
        for (column, asked) in decoded.columns.iter().zip(&request.columns) {
            assert!(column.nulls.is_empty() || column.nulls.len() == decoded.rows);
            match asked.kind.width() {
                Some(width) => assert_eq!(column.values.len(), decoded.rows * width),
                None => assert_eq!(column.offsets.len(), decoded.rows + 1),
            }
        }
    }
}
