//! The traversal on POSIX and in-memory volumes. One program, so that it is linked once.

mod census;
mod memory;
mod model;
mod recorder;
