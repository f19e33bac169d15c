//! Decodes compressed files, from the beginning or by an index, and encodes such that can be divided.
//!
//! ```text
//! Decoder      a whole file, of any codec: one module each, and hadoop.rs for the blocks that LZ4 and Snappy have in common
//! Indexer      the same, and makes an Index; not for bzip2 and deflate
//! Encoder      the other way, in forms that can be divided
//! Index        the chunks of a file that can be decoded by themselves
//! Bzip2Blocks  the blocks in a part of a bzip2 file, which needs no index
//! Points       the index of another program; import makes an Index with it, to_gztool writes one for gztool
//! ```
//!
//! The rows must be those of Hadoop's decoders, as far as these return all. Where they lose rows without an error, because a file is
//! damaged, cut off, or of a form that they do not know, there is an error here, or all rows. The crate knows no file system: bytes
//! come from a [`Read`](std::io::Read).

mod bgzip;
mod bzip2;
mod codec;
mod compressed;
mod crc;
mod decoder;
mod deflate;
mod encode;
mod error;
mod foreign;
mod gzidx;
mod gzip;
mod gztool;
mod hadoop;
mod import;
mod index;
mod indexer;
mod inflate;
mod input;
mod lz4;
mod pending;
mod points;
mod restart;
mod snappy;
mod zlib;
mod zstd;

pub use bzip2::Bzip2Blocks;
pub use codec::{Codec, recognize};
pub use crc::Crc32;
pub use decoder::Decoder;
pub use encode::{BLOCK, Encoded, Encoder, Form, Sizes};
pub use error::{DamageKind, DecodeError};
pub use gztool::to_gztool;
pub use import::import;
pub use index::{Index, MAGIC as INDEX_MAGIC, NotAnIndex};
pub use indexer::{Indexer, SPACING, decode_chunk};
pub use inflate::WINDOW;
pub use points::Points;
#[cfg(feature = "fuzzing")]
pub use {decoder::fuzz_decoder, foreign::fuzz_points, indexer::fuzz_index};
