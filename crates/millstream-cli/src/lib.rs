#![forbid(unsafe_code)]
//! What the command line tools share: option tables, diagnostics, progress.

pub mod diagnostics;
pub mod millstream;

pub mod options;
pub mod pcopy;
pub mod pdu;
pub mod pfind;
pub mod pls;
pub mod progress;
pub mod standard_output;
pub mod startup;
