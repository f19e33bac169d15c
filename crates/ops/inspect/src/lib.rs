#![forbid(unsafe_code)]
//! The read-only operations behind `pfind`, `pls` and `pdu`, as a library over the traversal.

pub mod du;
pub mod find;
pub mod list;
