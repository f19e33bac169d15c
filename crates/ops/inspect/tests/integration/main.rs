//! Integration tests of this crate, as one program.

mod memory;
