#![forbid(unsafe_code)]
//! The encoding of data that the JVM and native code pass to each other in arrays of bytes.
//!
//! Java's half is `io.millstream.hadoop.natives.WireWriter` and `WireReader`. The conventions:
//!
//! - **Order.** Numbers are little-endian and have a fixed width. Signed numbers are two's complement. A flag is a
//!   `u8`, 0 or 1.
//! - **Prefix.** A byte string whose length the format does not give otherwise is *prefixed*: a `u32` length, then the
//!   bytes. A list of several members is a `u32` count, then the members; a list that is last may extend to the end
//!   instead.
//! - **Alignment.** Nothing is aligned, unless a format says so: the columns of listing blocks start at a multiple of
//!   8, so that the JVM can copy them as arrays of numbers.
//! - **Versions.** There are none, because a jar carries the native library that its classes call.
//!
//! Each format is documented where native code encodes or decodes it. For each, a file in `testdata/` holds one encoded
//! value in hexadecimal; a test on either side encodes or decodes this very file. Bytes that are compared rather than
//! decoded (the position in a listing block) are byte strings here, whatever they contain. Files on disk have separate
//! formats.

mod decoder;
mod encoder;
#[cfg(feature = "vectors")]
mod vectors;

pub use decoder::{Decoder, Malformed};
pub use encoder::Encoder;
#[cfg(feature = "vectors")]
pub use vectors::{lines, vector};
