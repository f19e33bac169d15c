//! Decodes compressed files, from the beginning or by an index.
//!
//! ```text
//! Decoder      a whole file, of any codec: one module each, and hadoop.rs for the blocks that LZ4 and Snappy have in common
//! Indexer      the same, and makes an Index; not for bzip2 and deflate
//! Index        the chunks of a file that can be decoded by themselves
//! Bzip2Blocks  the blocks in a part of a bzip2 file, which needs no index
//! ```
//!
//! The rows must be those of Hadoop's decoders, as far as these return all. Where they lose rows without an error, because a file is
//! damaged, cut off, or of a form that they do not know, there is an error here, or all rows. The crate knows no file system: bytes
//! come from a [`Read`](std::io::Read).

mod bzip2;
mod codec;
mod compressed;
mod decoder;
mod error;
mod gzip;
mod hadoop;
mod index;
mod indexer;
mod inflate;
mod input;
mod lz4;
mod pending;
mod restart;
mod snappy;
mod zlib;
mod zstd;

pub use bzip2::Bzip2Blocks;
pub use codec::{Codec, recognize};
pub use decoder::Decoder;
pub use error::DecodeError;
pub use index::{Index, NotAnIndex};
pub use indexer::{Indexer, SPACING, decode_chunk};
pub use inflate::WINDOW;
#[cfg(feature = "fuzzing")]
pub use {decoder::fuzz_decoder, indexer::fuzz_index};
