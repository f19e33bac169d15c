#![forbid(unsafe_code)]
//! The rules of rsync that decide what takes part in a synchronization, filters (`--filter`, `--exclude`) and lists of files
//! (`--files-from`); how times are compared; and how changes are reported. `psync` and `psync --spark` ask them alike.

mod entries;
pub mod files;
pub mod filter;
pub mod itemize;
pub mod times;

pub use entries::Separator;
