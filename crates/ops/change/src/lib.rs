#![forbid(unsafe_code)]
//! The operations that remove entries or change their attributes, as a library over the traversal: those behind `prm`, `pchmod`
//! and `pchown`.

pub mod attributes;
pub mod remove;
