#![forbid(unsafe_code)]
//! The parts shared by the command line tools: option tables, diagnostics, progress.

mod attributes;
mod compact;
pub mod diagnostics;
mod doctor;
mod formats;
mod index;
pub mod millstream;
pub mod mounted;
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
pub mod psync;
mod recompress;
mod recover;
pub mod screen;
pub mod standard_output;
pub mod startup;
mod submit;
