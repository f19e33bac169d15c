//! Decoders compared with the usual programs, and indexes of other programs. One program, so that it is linked once.

mod decoder;
mod foreign;
