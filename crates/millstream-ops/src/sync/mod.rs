//! The operation behind `psync`: which entries of a source and a destination take part.

mod entries;
pub mod files;
pub mod filter;

pub use entries::Separator;
