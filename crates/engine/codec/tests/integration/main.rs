//! Decoders beside the programs that compress, and indexes that others made. One program, so that it is linked once.

mod decoder;
mod foreign;
