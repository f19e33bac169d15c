#![forbid(unsafe_code)]
//! How the outputs of a compaction replace their inputs and how that is undone, which trees must stay as they are
//! ([`table_logs`]), and how a directory replaces another one ([`exchange`]).

pub mod compact;
pub mod exchange;
pub mod table_logs;
