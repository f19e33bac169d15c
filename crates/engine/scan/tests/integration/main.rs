//! Scans of files as they are and compressed. One program, so that it is linked once.

mod compressed;
mod scan;
