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

mod attributes;
mod edit;
mod faults;
mod grow;
mod kills;
mod lists;
mod mount;
mod options;
mod oracle;
mod program;
mod safety;
mod state;
