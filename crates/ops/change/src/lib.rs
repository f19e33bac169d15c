#![forbid(unsafe_code)]
//! The operations behind `prm`, `pchmod` and `pchown`, as a library over the traversal: removal and attribute changes.

pub mod attributes;
pub mod remove;
