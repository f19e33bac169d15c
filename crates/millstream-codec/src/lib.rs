//! Decodes compressed files, from the beginning or by an index.
mod codec;
mod decoder;
mod error;
mod gzip;
mod index;
mod indexer;
mod inflate;
mod input;

pub use codec::Codec;
pub use decoder::Decoder;
pub use error::DecodeError;
pub use index::{Index, NotAnIndex};
pub use indexer::{Indexer, SPACING, decode_chunk};
