#![forbid(unsafe_code)]
//! What several operations have in common: counters of their progress, options, and the rules by which a new file takes the
//! place of another.

pub mod activity;
pub mod content;
pub mod sticky;
pub mod terms;
