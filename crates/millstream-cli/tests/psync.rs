//! `psync` against rsync: whole trees, options, lines of `--itemize-changes` and exit codes; and what happens
//! when things go wrong.
//!
//! | variable | does |
//! |---|---|
//! | `PSYNC_PROGRAM=/usr/bin/rsync` | rsync in psync's place, which proves the tests |
//! | `PSYNC_SEEDS` | how many pairs of trees each test grows; 200 in `tests/groups run psync` |
//! | `PSYNC_CASES=all` | every case of the tables, instead of one in eight |
//! | `MILLSTREAM_SEED` | the first seed, as the messages of a failure tell it |
//! | `PSYNC_KEEP=1` | keeps the trees of a failure and tells where they are |

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
#[path = "psync/lists.rs"]
mod lists;
#[path = "psync/mount.rs"]
mod mount;
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
