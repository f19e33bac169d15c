//! Services of the C library and the kernel other than files.
//!
//! The GNU tools use the C library for these, so ours do too: sort order and printable characters ([`locale`]), names
//! of users and groups from the machine's name services ([`accounts`]), shell patterns and the GNU dialects of regular
//! expressions ([`pattern`]). The rest concerns the process itself: its signals and standard output ([`process`]), the
//! resource usage of its threads ([`usage`]), and how many of them help ([`concurrency`]).
//!
//! Nothing here knows a volume. `unsafe` is allowed, for calls to the C library.

pub mod accounts;
pub mod concurrency;
pub mod locale;
pub mod pattern;
pub mod process;
pub mod usage;
