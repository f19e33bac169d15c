#![forbid(unsafe_code)]
//! Replaces the inputs of a compaction by its outputs and undoes that, finds trees that must not be changed
//! ([`table_logs`]), and replaces a directory by another one ([`exchange`]).

pub mod compact;
pub mod exchange;
pub mod table_logs;
