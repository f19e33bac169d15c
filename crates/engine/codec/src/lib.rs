//! Decodes compressed files, from the beginning or with an index, and encodes splittable ones.
//!
//! ```text
//! Decoder      a whole file, of any codec: one module each, and hadoop.rs for the blocks that LZ4 and Snappy share
//! Indexer      the same, and builds an Index; not for bzip2 and deflate
//! Encoder      compresses, in splittable forms
//! Index        the chunks of a file that can be decoded independently
//! Bzip2Blocks  the blocks in a part of a bzip2 file, which needs no index
//! Points       the index of another program; import builds an Index with it, to_gztool writes one for gztool
//! ```
//!
//! The rows must be the same as from Hadoop's decoders, as far as those return all. Where Hadoop silently loses rows,
//! because a file is damaged, truncated, or of a form unknown to it, this crate returns an error or all rows. It knows
//! no file system: bytes come from a [`Read`](std::io::Read).

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
