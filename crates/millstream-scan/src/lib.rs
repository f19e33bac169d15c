#![forbid(unsafe_code)]
//! Rows of many files: reading ahead, splitting into lines, filtering, packed batches.
//!
//! ```text
//! ranges of files ─► units ─► readers, as many as waiting for the volume asks for ─► batches, in the order of the ranges
//!                              read · split at separators · keep what the predicate accepts
//! ```
//!
//! A *unit* is what one reader does at once: some small files, or a part of a large range. The caller's thread is the first
//! reader; others join while reading waits more than it computes, so that files in the page cache are read without handing
//! anything over, and files on a server with many requests in flight. Batches wait for their turn in a window that bounds
//! memory.
//!
//! What a line is, and to which of two ranges one that crosses their border belongs, is as Hadoop's `LineRecordReader` has
//! it ([`Separator`], [`FileRange`]), so that Spark gets the rows of its own reader. The crate knows nothing of Spark.

mod batch;
mod checksum;
mod concatenate;
mod error;
mod join;
mod lines;
mod predicate;
mod range;
mod scan;
mod unit;

pub use batch::{Batch, Line, Stamp};
pub use concatenate::{ConcatenateError, Concatenated, Input, check, concatenate};
pub use error::{Cause, ScanError};
pub use join::{Header, JoinError, Joiner, Place};
pub use lines::Separator;
pub use predicate::{DecodeError, Like, Predicate};
pub use range::FileRange;
pub use scan::{Progress, Scan};
pub use unit::{Grouping, Missing, Output, Rows, ScanOptions, Verification};

#[cfg(feature = "fuzzing")]
pub use {join::fuzz_join, predicate::fuzz_predicate, unit::fuzz_lines};
