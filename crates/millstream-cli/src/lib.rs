#![forbid(unsafe_code)]
//! What the command line tools share: option tables, diagnostics, progress.
