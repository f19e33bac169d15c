//! The traversal on volumes of the kernel and in memory. One program, so that it is linked once.

mod census;
mod memory;
mod model;
mod recorder;
