#![forbid(unsafe_code)]
//! The operations behind `millstream index` and `millstream recompress`.

pub mod index;
pub mod recompress;
