#![forbid(unsafe_code)]
//! Code shared by several operations: progress counters, options, and the rules for a new file that replaces another.

pub mod activity;
pub mod content;
pub mod sticky;
pub mod terms;
