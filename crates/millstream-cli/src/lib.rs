#![forbid(unsafe_code)]
//! What the command line tools share: option tables, diagnostics, progress.

pub mod diagnostics;

pub mod options;
pub mod pfind;
pub mod pls;
pub mod pdu;
pub mod progress;
pub mod startup;
