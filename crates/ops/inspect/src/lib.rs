#![forbid(unsafe_code)]
//! The operations that change nothing, as a library over the traversal: those behind `pfind`, `pls` and `pdu`.

pub mod du;
pub mod find;
pub mod list;
