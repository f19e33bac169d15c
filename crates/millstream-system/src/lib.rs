//! What the C library and the kernel know besides files.
//!
//! The tools that are replaced take these answers from the C library, so ours do too: how names are sorted and which of
//! their characters can be printed ([`locale`]), who an identifier belongs to, by whatever name service the machine is set
//! up for ([`accounts`]), and which names a shell pattern or a regular expression of GNU's dialects matches ([`pattern`]).
//! The rest is about the process itself: its signals and standard output ([`process`]), and what its threads have used
//! ([`usage`]).
//!
//! Nothing here knows a volume. `unsafe` is allowed, for calls of the C library.

pub mod accounts;
pub mod locale;
pub mod pattern;
pub mod process;
pub mod usage;
