#![forbid(unsafe_code)]
//! Text that the tools read and print: records of `--json`, quoted names, sizes, times, modes, names of accounts and of
//! files. It knows no operation.

pub mod accounts;
pub mod hidden;
pub mod json;
pub mod mode;
pub mod names;
pub mod operands;
pub mod quote;
pub mod size;
pub mod time;
