//! Copying of files and trees.
//!
//! ```text
//!  visit (parallel)                        one entry                                   later
//!  directory ─► make it, u+rwx ────────────────────────────► leave: mode, owner, times, when all in it is done
//!  file ──────► what is in its place? ─► open both ─► small: move the data, attributes, name
//!                (same file, -n -i -u,             └► large: carriers, chunk by chunk, side by side
//!                 backup, removal)
//!  further name of a file already copied ─► wait for its copy, link
//!  symbolic link, pipe, device ─► make it, attributes by name
//! ```
//!
//! Every source directory has a [`place::Place`], its copy; whatever is done is relative to the handles of the two. In a
//! directory that this run made nothing can be there but what this run put there, so nothing is looked up before it is
//! created, with `O_EXCL`, and no symbolic link is ever followed. In a directory that was there, what was there is treated
//! as GNU's tool does: a file is written over, a link to one is written through.
//!
//! Operands whose copies would have one name, or be in one another, are copied one after the other, so that the first one
//! wins. With prompts (`-i`) all is done by one thread.

mod attributes;
mod backup;
mod carriers;
mod copier;
mod data;
mod directory;
mod entry;
mod existing;
mod item;
mod job;
mod links;
mod names;
mod options;
mod parents;
mod place;
mod report;
mod temporaries;
mod throttle;
mod trace;
mod transfer;
mod verify;
mod visitor;

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::thread;

use millstream_vfs::{Error, Volume};
use millstream_walk::{Threads, WalkOptions, walk};

pub use backup::{Backup, BackupStyle};
pub use options::*;
pub use report::{Problem, Question, Sink, Trouble};
pub use temporaries::{NoMore, Temporaries};

use crate::activity::Activity;
use crate::operands::side_by_side;
use copier::Copier;
use item::{Target, joined};
use parents::Parents;
use place::{Budget, Origin, Place};
use visitor::Pass;

/// Where copies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The one operand becomes this.
    Exactly(CString),
    /// Each operand goes into this directory, under its last component.
    Into(CString),
    /// Each operand goes into this directory, under all of its path (`--parents`).
    IntoWithParents(CString),
}

impl Destination {
    /// What of the path of a copy is below the directory that all copies go into, whatever that is called.
    fn below<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        match self {
            Destination::Exactly(_) => path,
            Destination::Into(directory) | Destination::IntoWithParents(directory) => {
                path.strip_prefix(directory.to_bytes()).unwrap_or(path)
            }
        }
    }
}

/// What a copying did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Most workers that there were.
    pub threads_peak: usize,
}

/// Copies `sources`, tells `sink`, and counts on `activity`.
///
/// # Errors
/// If the directory that the copies are to go into cannot be opened.
pub fn copy<V: Volume>(
    volume: &V,
    sources: &[CString],
    destination: &Destination,
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) -> Result<Outcome, Error> {
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
            Parents::make(volume, sources, directory, &place, &budget, (options, sink, activity))
        }
    };
    activity.expect(targets.len());
    // A place waits for its operands.
    targets.iter().for_each(|target| target.place.begin());
    let copier = Copier::new(volume, &targets, options, sink, activity, budget);
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

/// How the handles of a volume are divided. What is left is for the two files and the places that each worker of the
/// traversal has open.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// For all but the directories of the source.
    reserved: usize,
    /// Places that keep theirs.
    places: usize,
    /// Large files that wait, each with two.
    waiting_files: usize,
    /// Carriers, each with two files and a place or two.
    carriers: usize,
}

impl Shares {
    fn of<V: Volume>(volume: &V) -> Self {
        let all = volume.max_open_dirs();
        Shares { reserved: all - all / 3, places: all / 6, waiting_files: all / 24, carriers: all / 32 }
    }
}

/// Copies the operands from `first` on, side by side; the most workers that there were.
fn run<V: Volume>(volume: &V, copier: &Copier<'_, V>, first: usize, count: usize) -> usize {
    let options = copier.options;
    let sources: Vec<CString> =
        copier.targets[first..first + count].iter().map(|t| t.source.clone()).collect();
    let walk_options = WalkOptions {
        threads: if options.existing == Existing::Ask { Threads::Fixed(1) } else { options.threads },
        follow: options.follow,
        reserved_handles: Shares::of(volume).reserved,
        cancellation: options.cancellation.clone(),
        census: copier.activity.census(),
        ..WalkOptions::default()
    };
    copier.carriers.reopen();
    thread::scope(|scope| {
        let pass = Pass { copier, scope, first };
        let stats = walk(volume, &sources, &pass, &walk_options);
        copier.carriers.close();
        copier.carry_on(&pass);
        stats.threads_peak
    })
}

/// What the copy of an operand is called.
fn last_component(path: &CStr) -> CString {
    let name = path.to_bytes().split(|&b| b == b'/').rfind(|c| !c.is_empty()).unwrap_or(b".");
    // What is copied from `..` goes into the directory itself, not above it.
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
