#![forbid(unsafe_code)]
//! What the command line tools share: option tables, diagnostics, progress.

mod attributes;
mod compact;
pub mod diagnostics;
pub mod millstream;
mod operand;
pub mod options;
pub mod pchmod;
pub mod pchown;
pub mod pcopy;
pub mod pdu;
pub mod pfind;
pub mod pls;
pub mod prm;
pub mod progress;
mod recover;
pub mod screen;
pub mod standard_output;
pub mod startup;
mod submit;
