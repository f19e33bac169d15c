#![forbid(unsafe_code)]
//! Reads the rows of many files: read-ahead, line splitting, filtering, packed batches.
//!
//! ```text
//! ranges of files ─► units ─► readers, more of them while reads wait ─► batches, in the order of the ranges
//!                              read · split at separators · keep the rows that match the predicate
//! ```
//!
//! A *unit* is one reader's piece of work: several small files, or a part of a large range. The caller's thread is the
//! first reader. More readers join while reading waits more than it computes: files in the page cache are read without
//! any hand-over between threads, files on a server with many requests in flight. Finished batches wait in a window
//! until it is their turn; the window bounds memory.
//!
//! Compressed files come decoded: by an index as if they had been decoded before, in parts like any file; or from the
//! first byte to the last, by one reader, in pieces, whose bytes are fetched ahead where every answer takes a while.
//!
//! The scan knows no file system, only a [`Source`] of files to open and to read ranges of.
//!
//! Line endings, and the range that a line across a border belongs to, follow Hadoop's `LineRecordReader`
//! ([`Separator`], [`FileRange`]), so Spark gets the same rows as from its own reader. The crate knows nothing of
//! Spark.

mod batch;
mod checksum;
mod concatenate;
mod contents;
mod decoded;
mod distinct;
mod divided;
mod error;
mod file_reader;
mod indexing;
mod join;
mod joined;
mod lines;
mod pattern;
mod predicate;
mod range;
mod scan;
mod shared;
mod source;
mod stream;
mod text;
mod unit;

pub use batch::{Batch, Line};
pub use concatenate::{Concatenated, concatenate};
pub use contents::Contents;
pub use error::{Cause, JoinError, ScanError};
pub use indexing::index_file;
pub use join::{Header, JoinRule, Joiner, Place};
pub use joined::{ConcatenateError, Input, JoinedFiles, check};
pub use lines::Separator;
pub use pattern::{Caseless, Pattern};
pub use predicate::{Like, Predicate};
pub use scan::{Progress, Scan};
pub use source::{Compression, FileRange, Portions, Source, SourceFile, VolumeSource};
pub use stream::Damage;
pub use unit::{Grouping, Missing, Output, Rows, ScanOptions, Verification};

#[cfg(feature = "fuzzing")]
pub use {join::fuzz_join, predicate::fuzz_predicate, unit::fuzz_lines};
