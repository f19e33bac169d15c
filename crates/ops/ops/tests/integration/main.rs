//! Operations on volumes of the kernel and in memory, and rules beside rsync. One program, so that it is linked once.

mod copy;
mod filter;
mod memory;
mod remove;
mod rsync;
