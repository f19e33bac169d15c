//! Copying of files and trees.
//!
//! ```text
//!  visit (parallel)                        one entry                                   later
//!  directory ─► create it, u+rwx ──────────────────────────► leave: mode, owner, times, after its subtree
//!  file ──────► examine the destination ─► open both ─► small: move the data, set attributes and name
//!                (same file, -n -i -u,               └► large: copy workers, chunk by chunk, in parallel
//!                 backup, removal)
//!  further name of a file already copied ─► wait for its copy, link
//!  symbolic link, pipe, device ─► create it, set attributes by name
//! ```
//!
//! Every source directory has a [`Place`], the destination directory that is its copy. All calls are relative to
//! the handles of these two. A directory created by this run holds only files of this run. Nothing is therefore looked
//! up before it is created with `O_EXCL`, and no symbolic link is followed. In a directory that existed before,
//! existing entries are treated as in GNU's tool: a file is overwritten, and a link to a file is written through.
//!
//! Operands whose copies would have the same name, or contain one another, are copied one after the other, so that the
//! first one wins. With prompts (`-i`) one thread does everything.

mod backup;
mod copier;
mod directory;
mod entry;
mod existing;
mod finish;
mod item;
mod job;
mod names;
mod options;
mod parents;
mod report;
mod trace;
mod transfer;
mod visitor;
mod watchers;

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::thread;

use millstream_vfs::{Error, Volume};
use millstream_walk::{Threads, WalkOptions, walk};

pub use backup::{Backup, BackupStyle};
pub use options::*;
pub use report::{Problem, Question, Sink, Trouble};

use crate::transfer::place::{Budget, Origin, Place, Shares};
pub use crate::transfer::temporaries::{NoMore, Temporaries};
use copier::Copier;
use item::{Target, joined, split};
use millstream_operation::activity::Activity;
use millstream_text::operands::side_by_side;
use parents::Parents;
use visitor::Pass;
use watchers::Watchers;

/// Destination of the copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The path of the single operand's copy.
    Exactly(CString),
    /// A directory; each copy is named after the last component of its operand.
    Into(CString),
    /// A directory; each copy keeps the whole path of its operand (`--parents`).
    IntoWithParents(CString),
}

impl Destination {
    /// The path of a copy relative to the destination directory, whatever that is called.
    fn below<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        match self {
            Destination::Exactly(_) => path,
            Destination::Into(directory) | Destination::IntoWithParents(directory) => {
                path.strip_prefix(directory.to_bytes()).unwrap_or(path)
            }
        }
    }
}

/// The result of a copy operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Largest number of workers.
    pub threads_peak: usize,
}

/// Copies `sources`, reports to `sink`, and counts on `activity`.
///
/// # Errors
/// If the destination directory cannot be opened.
pub fn copy<V: Volume>(
    volume: &V,
    sources: &[CString],
    destination: &Destination,
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) -> Result<Outcome, Error> {
    let watchers = Watchers { options, sink, activity };
    let base = Place::holding(volume.base());
    let budget = Budget::new(Shares::of(volume).places);
    let place = match destination {
        Destination::Exactly(_) => base,
        Destination::Into(directory) | Destination::IntoWithParents(directory) => {
            Place::below(&base, directory, Origin::Found)
        }
    };
    place.handle(&budget)?;
    let (targets, parents) = match destination {
        Destination::Exactly(path) => {
            let (source, name) = (sources[0].clone(), path.clone());
            (vec![Target { source, path: path.to_bytes().to_vec(), place, name }], Parents::default())
        }
        Destination::Into(directory) => {
            let into = |source: &CString| {
                let name = last_component(source);
                let path = joined(directory.to_bytes(), name.to_bytes());
                Target { source: source.clone(), path, place: Arc::clone(&place), name }
            };
            (sources.iter().map(into).collect(), Parents::default())
        }
        Destination::IntoWithParents(directory) => {
            Parents::make(volume, sources, directory, &place, &budget, watchers)
        }
    };
    activity.expect(targets.len());
    // The destination directory stays incomplete until its operands are done.
    targets.iter().for_each(|target| target.place.begin());
    let copier = Copier::new(volume, &targets, watchers, budget);
    if let Destination::Exactly(path) = destination {
        let (directory, _) = split(path.to_bytes());
        copier.attributes.look_for_default_acl(&volume.base(), &directory, &targets[0].place);
    }
    let mut outcome = Outcome::default();
    let mut first = 0;
    while first < targets.len() {
        let count = side_by_side(targets[first..].iter().map(|target| destination.below(&target.path)));
        outcome.threads_peak = outcome.threads_peak.max(run(volume, &copier, first, count));
        first += count;
    }
    parents.finish(&copier);
    Ok(outcome)
}

/// Copies the operands from `first` on in parallel; returns the largest number of workers.
fn run<V: Volume>(volume: &V, copier: &Copier<'_, V>, first: usize, count: usize) -> usize {
    let options = copier.options;
    let sources: Vec<CString> =
        copier.targets[first..first + count].iter().map(|t| t.source.clone()).collect();
    let walk_options = WalkOptions {
        threads: if options.existing == Existing::Ask { Threads::Fixed(1) } else { options.threads },
        follow: options.follow,
        reserved_handles: Shares::of(volume).reserved,
        cancellation: options.cancellation.clone(),
        census: copier.watchers.activity.census(),
        ..WalkOptions::default()
    };
    thread::scope(|scope| {
        let pass = Pass { copier, scope, first };
        let traverse = || walk(volume, &sources, &pass, &walk_options);
        copier.workers.during(traverse, || copier.run_worker(&pass)).threads_peak
    })
}

/// The name of an operand's copy.
fn last_component(path: &CStr) -> CString {
    let name = path.to_bytes().split(|&b| b == b'/').rfind(|c| !c.is_empty()).unwrap_or(b".");
    // The contents of `..` go into the destination directory itself, not above it.
    let name = if name == b".." { b"." } else { name };
    CString::new(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_compared_below_the_destination() {
        for (directory, names, count) in [
            ("../d", &["a", "b", "c"][..], 3),
            ("x/../d/", &["a", "b/c", "b"], 2),
            ("/", &["a", "a"], 1),
            ("..", &["a", "../b"], 1),
        ] {
            let destination = Destination::Into(CString::new(directory).expect("no NUL"));
            let paths: Vec<_> =
                names.iter().map(|name| joined(directory.as_bytes(), name.as_bytes())).collect();
            let found = side_by_side(paths.iter().map(|path| destination.below(path)));
            assert_eq!(found, count, "{directory} {names:?}");
        }
    }

    #[test]
    fn copies_are_called_as_their_source() {
        for (path, name) in [
            (c"a", c"a"),
            (c"a/b", c"b"),
            (c"a/b//", c"b"),
            (c"..", c"."),
            (c"a/..", c"."),
            (c"/", c"."),
            (c"", c"."),
        ] {
            assert_eq!(&*last_component(path), name, "{path:?}");
        }
    }
}
