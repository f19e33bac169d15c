//! After a run rsync finds nothing to do, and neither does a comparison of our own.

use std::fs;
use std::path::Path;

use super::attributes::set_owner;
use super::edit::{Comparison, copy_tree, edit};
use super::grow::Growing;
use super::program::{NOBODY, RSYNC, Scratch, User, command, is_root, is_rsync, psync_command, run, text};
use super::state::Tree;
use crate::random::{Random, given_seed, seed_of_the_clock};

/// What the destination is at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    Missing,
    Empty,
    Edited,
}

/// As many seeds as `PSYNC_SEEDS` says; `MILLSTREAM_SEED` is the first.
pub fn seeds(default: u64) -> impl Iterator<Item = u64> {
    let count = std::env::var("PSYNC_SEEDS").ok().map(|number| number.parse().expect("a number"));
    let first = given_seed().unwrap_or_else(|| seed_of_the_clock() % 1_000_000_000);
    (0..count.unwrap_or(default)).map(move |number| first + number)
}

/// Runs the program, which has nothing to complain of.
fn synchronize(scratch: &Scratch, user: User, options: &str, round: &str) {
    let output = run(psync_command(user, scratch.path()).args([options, "--delete", "src/", "dst/"]));
    // Where something else than a directory becomes one rsync asks it for the list that only directories
    // have.
    let excused = is_rsync() && output.status.code() == Some(23);
    let complaints: Vec<_> = text(&output.stderr)
        .lines()
        .filter(|line| !excused || !(line.contains("ACL_TYPE_DEFAULT") || line.contains("(code 23)")))
        .map(str::to_owned)
        .collect();
    assert!(complaints.is_empty() && (excused || output.status.success()), "{round}: {output:?}");
}

/// What rsync would still do, by contents.
pub fn left_to_do(directory: &Path) -> String {
    let mut rsync = command(Path::new(RSYNC), User::Own, directory);
    let output = run(rsync.args(["-aHAXSnic", "--delete", "src/", "dst/"]));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    text(&output.stdout)
}

fn prepare(scratch: &Scratch, random: &mut Random, user: User, comparison: Comparison) -> Destination {
    let (source, destination) = (scratch.at("src"), scratch.at("dst"));
    fs::create_dir(&source).expect("a directory");
    let entries = 20 + random.below(120);
    Growing { root: &source, random, user, serial: 0 }.fill(entries);
    if user == User::Nobody {
        // It makes the destination.
        set_owner(scratch.path(), NOBODY, NOBODY);
    }
    match random.below(5) {
        0 => Destination::Missing,
        1 => {
            fs::create_dir(&destination).expect("a directory");
            if user == User::Nobody {
                set_owner(&destination, NOBODY, NOBODY);
            }
            Destination::Empty
        }
        _ => {
            copy_tree(&source, &destination);
            edit(&destination, random, user, comparison);
            Destination::Edited
        }
    }
}

/// Synchronizes what grows from a seed, after `first` was done to it.
pub fn check(seed: u64, user: User, first: impl FnOnce(&Scratch, &mut Random, &str)) {
    let mut random = Random::from_seed(seed);
    let comparison = random.pick(&[Comparison::Quick, Comparison::Checksums]);
    let options = if comparison == Comparison::Quick { "-aHAXS" } else { "-aHAXSc" };
    let scratch = Scratch::new();
    let state = prepare(&scratch, &mut random, user, comparison);
    let round = format!("MILLSTREAM_SEED={seed} {user:?} {state:?} {options}");
    let source = Tree::read(&scratch.at("src"));
    let known = match state {
        Destination::Edited => Tree::read(&scratch.at("dst")),
        _ => Tree(Default::default()),
    };

    first(&scratch, &mut random, options);
    synchronize(&scratch, user, options, &round);
    let copied = Tree::read(&scratch.at("dst"));
    assert_eq!(copied.differences(&source, &known), Vec::<String>::new(), "{round}");
    assert_eq!(left_to_do(scratch.path()), "", "{round}");

    synchronize(&scratch, user, options, &round);
    let mut again = Tree::read(&scratch.at("dst"));
    if is_rsync() && user == User::Nobody {
        // rsync opens directories that are closed to their owner, and closes them again.
        again.forget_changes_of_directories(&copied);
    }
    assert_eq!(again.touched(&copied), Vec::<String>::new(), "{round}: a second run");
    assert_eq!(Tree::read(&scratch.at("src")).touched(&source), Vec::<String>::new(), "{round}: the source");
}

#[test]
fn a_destination_becomes_what_the_source_is() {
    for seed in seeds(20) {
        check(seed, User::Own, |_, _, _| {});
    }
}

#[test]
fn a_destination_of_an_unprivileged_user_becomes_what_the_source_is() {
    assert!(is_root(), "this test becomes another user");
    for seed in seeds(10) {
        check(seed, User::Nobody, |_, _, _| {});
    }
}
