//! `psync` against rsync: whole trees, options, lines of `--itemize-changes` and exit codes; and what happens
//! when things go wrong.
//!
//! The tests also run with rsync in the place of psync, which proves them: `PSYNC_PROGRAM=/usr/bin/rsync
//! cargo test --test psync`. Where psync promises more than rsync, the test says so and asks
//! [`program::is_rsync`].

#[path = "psync/attributes.rs"]
mod attributes;
#[path = "psync/edit.rs"]
mod edit;
#[path = "psync/faults.rs"]
mod faults;
#[path = "psync/grow.rs"]
mod grow;
#[path = "psync/kills.rs"]
mod kills;
#[path = "psync/options.rs"]
mod options;
#[path = "psync/oracle.rs"]
mod oracle;
#[path = "psync/program.rs"]
mod program;
mod programs;
mod races;
mod random;
#[path = "psync/safety.rs"]
mod safety;
#[path = "psync/state.rs"]
mod state;
