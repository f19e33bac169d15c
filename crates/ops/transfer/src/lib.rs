#![forbid(unsafe_code)]
//! The operations that copy trees, as a library over the traversal: those behind `pcopy` and `psync`, and one tree by
//! paths for tasks on Spark. What they share about one file is in `transfer`.

mod choice;
pub mod copy;
pub mod sync;
mod transfer;
pub mod tree;
