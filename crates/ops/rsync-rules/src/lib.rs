#![forbid(unsafe_code)]
//! The rules of rsync that decide what takes part in a synchronization, filters (`--filter`, `--exclude`) and lists of
//! files (`--files-from`); what happens to each entry; and how changes are reported. `psync` and `psync --spark` ask
//! them alike.

pub mod decision;
mod entries;
pub mod files;
pub mod filter;
pub mod itemize;
pub mod times;

pub use entries::Separator;
