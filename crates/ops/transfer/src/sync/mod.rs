//! Synchronization of trees: the destination becomes like the source, with the options and the meaning of rsync.
//!
//! ```text
//!  visit (parallel)                    one entry                                              after the last entry
//!  directory ─► its pair: names read ──────────────────────────────────────► names left: noted    leave: mode, owner, times
//!  any entry ─► source, destination ─► what differs? ─► nothing                    │
//!                                                    ├► attributes: set            ▼  after all directories, if all were listed
//!                                                    └► data, or kind: made        delete: looked up in the source again, then
//!                                                       under a temporary name,    removed, component by component from the root
//!                                                       renamed
//! ```
//!
//! **Two trees, one traversal.** The source is traversed; each of its directories has a [`level::Level`], which knows
//! the directory of the destination and its names ([`millstream_walk::Pairing`]). An entry that is new costs no look at
//! the destination, one that is up to date costs a `stat` on either side.
//!
//! **Nothing is half there.** Files get their names when they are complete, with all attributes; a source that changes
//! meanwhile is noticed ([`file`]). Directories get their times when everything in them is done.
//!
//! **Deleting is the last thing**, unless the user asks for it first. It needs a source that is not empty, and that
//! nothing failed before, unless errors are to be ignored ([`delete`]). A directory in the way of another entry is
//! removed when the copy of that is complete.
//!
//! **Operands** that have the same destination are synchronized one after the other, and the first operand that
//! contains an entry wins, unless a later one has a directory of that name.

mod chain;
mod delete;
mod deletions;
mod difference;
mod directory;
mod entry;
mod file;
mod item;
mod itemize;
mod level;
mod load;
mod options;
mod pass;
mod removal;
mod report;
mod stats;
mod syncer;
mod watchers;

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use millstream_rsync_rules::itemize::Difference;
use millstream_vfs::{Capabilities, Dir, Errno, Error, Fields, FileKind, Operation, SymlinkBehavior, Volume};
use millstream_walk::{Pairing, WalkOptions, walk};

use chain::Chain;
pub use millstream_rsync_rules::itemize::escape;
pub use options::*;
pub use report::{Notice, Problem, Sink, Trouble};
pub use stats::Stats;

use crate::transfer::Identity;
use crate::transfer::place::{Budget, Origin, Place, Shares};
use delete::Deleter;
use deletions::Deletions;
use level::{Level, Target, joined};
use millstream_operation::activity::Activity;
use millstream_text::operands::side_by_side;
use pass::{Pass, Purpose};
use stats::{Counters, count};
use syncer::{Shared, Syncer};
use watchers::Watchers;

/// Names of the destination that the directories being compared hold together.
const NAMES: usize = 1 << 20;

/// Destination of a synchronization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The path of the copy of the only source, which is no directory.
    Exactly(CString),
    /// A directory, which is made if it does not exist: of each source that ends with a slash the contents go into it,
    /// of the others they themselves.
    Into(CString),
}

/// The result of a synchronization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was done.
    pub stats: Stats,
    /// Largest number of workers.
    pub threads_peak: usize,
}

/// Synchronizes `destination` with `sources`, reports to `sink`, and counts on `activity`.
///
/// # Errors
/// If the destination directory cannot be opened or made.
pub fn sync<V: Volume>(
    volume: &V,
    sources: &[CString],
    destination: &Destination,
    options: &Options,
    sink: &dyn Sink,
    activity: &Activity,
) -> Result<Outcome, Error> {
    let budget = Budget::new(Shares::of(volume).places);
    let pairing = Pairing::new(NAMES);
    let deletions = Deletions::new(options.most_deletions);
    let counters = Counters::default();
    let watchers = Watchers { options, sink, activity, counters: &counters };
    let base = volume.base();
    let exists = |source: &&CString| match base.metadata(source, SymlinkBehavior::NoFollow, Fields::KIND) {
        Ok(_) => true,
        Err(error) => {
            let (trouble, errno) = (Trouble::StatSource, Some(error.errno));
            let problem = Problem { trouble, source: source.to_bytes(), destination: b"", errno };
            watchers.problem(&problem);
            false
        }
    };
    let sources: Vec<CString> = sources.iter().filter(exists).cloned().collect();
    let protected = protected::<V>(&base, &sources);
    if sources.is_empty() {
        return Ok(Outcome { stats: counters.total(), threads_peak: 0 });
    }
    let targets = targets(volume, &sources, destination, options, sink)?;
    activity.expect(targets.len());
    // The directories that hold the operands' copies stay incomplete until those are done.
    targets.iter().for_each(|target| target.level.place.begin());
    let shared = Shared { budget: &budget, pairing: &pairing, deletions: &deletions, protected: &protected };
    let syncer = Syncer::new(volume, &targets, watchers, shared);
    let mut threads_peak = 0;
    let mut traverse = |purpose| {
        let mut first = 0;
        while first < targets.len() {
            let count = side_by_side(targets[first..].iter().map(|target| target.path.as_slice()));
            threads_peak = threads_peak.max(run(volume, &syncer, first, count, purpose));
            first += count;
        }
        syncer.finish_roots(purpose);
    };
    let delete = || {
        report_missing(&base, &targets[0], watchers);
        let prevents = |deletion: Deletion| deletion.errors == Errors::PreventDeletion;
        if options.deletion.is_some_and(prevents) && counters.obstacles.load(Ordering::Relaxed) > 0 {
            return sink.notice(&Notice::NothingDeleted);
        }
        if syncer.has_empty_source.load(Ordering::Relaxed) {
            return;
        }
        if let Some((outer, inner)) = nested(&targets) {
            count(&counters.errors);
            return sink.notice(&Notice::Nested(&outer.path, &inner.path));
        }
        let (budget, deletions, targets, protected) = (&budget, &deletions, &targets, &protected);
        let alone = Mutex::default();
        Deleter { volume, base: &base, options, targets, budget, deletions, watchers, protected, alone }
            .run();
    };
    match options.deletion.map(|deletion| deletion.timing) {
        Some(Timing::Before) => {
            traverse(Purpose::Deletion);
            targets.iter().for_each(|target| target.level.place.begin());
            delete();
            traverse(Purpose::Update);
        }
        Some(Timing::After) => {
            traverse(Purpose::Both);
            delete();
        }
        None => {
            traverse(Purpose::Update);
            report_missing(&base, &targets[0], watchers);
        }
    }
    let stats = counters.total();
    if stats.undeleted > 0 {
        sink.notice(&Notice::DeletionsEnded(stats.undeleted));
    }
    Ok(Outcome { stats, threads_peak })
}

/// Reports the paths of a list of files that do not exist. Others may not have been met, because nothing is done in the
/// directories that they are in.
fn report_missing<D: Dir>(base: &D, target: &Target<'_, D>, watchers: Watchers<'_>) {
    let mut root = None;
    for unmet in watchers.options.files.iter().flat_map(|files| files.missing()) {
        let chain = root.get_or_insert_with(|| {
            base.open_dir_for_names(&target.source, SymlinkBehavior::Follow).map(Chain::new)
        });
        let found = chain.as_mut().map_err(|error| *error).and_then(|chain| chain.look_up(unmet));
        let errno = match found {
            Ok(Some(_)) => continue,
            Ok(None) => Errno::NOENT,
            Err(error) => error.errno,
        };
        let source = target.source_path(unmet);
        let problem =
            Problem { trouble: Trouble::StatSource, source: &source, destination: b"", errno: Some(errno) };
        watchers.problem(&problem);
    }
}

/// The sources that are directories, and the directories that lead to them.
fn protected<V: Volume>(base: &V::Dir, sources: &[CString]) -> HashSet<Identity> {
    let mut protected = HashSet::new();
    for source in sources {
        let mut next = base.open_dir_for_names(source, SymlinkBehavior::Follow);
        // Where the way up cannot be followed, what is above is protected by its own permissions.
        while let Ok(directory) = next {
            let is_new = directory.identity().is_ok_and(|identity| protected.insert(identity));
            if !is_new {
                break;
            }
            next = directory.open_parent();
        }
    }
    protected
}

/// The first two operands of which one's destination is inside that of the other.
fn nested<'t, 'p, D>(targets: &'t [Target<'p, D>]) -> Option<(&'t Target<'p, D>, &'t Target<'p, D>)> {
    let by_path: HashMap<Vec<u8>, &Target<'p, D>> =
        targets.iter().map(|target| (normal(&target.path), target)).collect();
    targets.iter().find_map(|inner| {
        let path = normal(&inner.path);
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let above = slashes.filter_map(|at| by_path.get(&path[..at])).next();
        above.map(|outer| (*outer, inner))
    })
}

/// The components of a path without `.`, each after a slash.
fn normal(path: &[u8]) -> Vec<u8> {
    let path = absolute(path);
    let names = path.split(|&b| b == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.flat_map(|name| [b"/", name].concat()).collect()
}

/// Synchronizes the operands from `first` on in parallel; returns the largest number of workers.
fn run<V: Volume>(
    volume: &V,
    syncer: &Syncer<'_, '_, V>,
    first: usize,
    count: usize,
    purpose: Purpose,
) -> usize {
    let options = syncer.options;
    let sources: Vec<CString> =
        syncer.targets[first..first + count].iter().map(|target| target.source.clone()).collect();
    let walk_options = WalkOptions {
        threads: options.threads,
        reserved_handles: Shares::of(volume).reserved,
        cancellation: options.cancellation.clone(),
        census: syncer.watchers.activity.census(),
        ..WalkOptions::default()
    };
    thread::scope(|scope| {
        let pass = Pass { syncer, scope, purpose, first };
        let traverse = || walk(volume, &sources, &pass, &walk_options);
        syncer.workers.during(traverse, || syncer.run_worker(&pass)).threads_peak
    })
}

/// The operands with their destinations; makes the destination directory if it does not exist.
fn targets<'p, V: Volume>(
    volume: &V,
    sources: &[CString],
    destination: &Destination,
    options: &Options,
    sink: &dyn Sink,
) -> Result<Vec<Target<'p, V::Dir>>, Error> {
    let base =
        Arc::new(Level::new(None, Place::holding(volume.base()), None, Difference::empty(), Vec::new()));
    let directory = match destination {
        Destination::Exactly(path) => {
            let source = sources[0].clone();
            require_parent::<V>(&volume.base(), path)?;
            let prefix = last_component(source.to_bytes()).to_vec();
            let roots = [parent(&source), parent(path)].map(|path| absolute(&path));
            let (path, name) = (path.to_bytes().to_vec(), path.clone());
            let (symlinks, others) = (SymlinkBehavior::NoFollow, Vec::new());
            let (operand, identity) = (0, OnceLock::new());
            return Ok(vec![Target {
                source,
                path,
                prefix,
                level: base,
                name,
                roots,
                operand,
                identity,
                others,
                symlinks,
            }]);
        }
        Destination::Into(directory) => directory,
    };
    let root = volume.base();
    let origin = match root.metadata(directory, SymlinkBehavior::Follow, Fields::KIND) {
        Ok(found) if found.kind() == FileKind::Directory => Origin::Found,
        Ok(_) => return Err(Error::new(Operation::OpenDir, Errno::NOTDIR)),
        Err(error) if error.errno != Errno::NOENT => return Err(error),
        // A dangling link is in the way.
        Err(_) if root.metadata(directory, SymlinkBehavior::NoFollow, Fields::KIND).is_ok() => {
            return Err(Error::new(Operation::CreateDir, Errno::EXIST));
        }
        Err(_) => Origin::Imagined,
    };
    if origin == Origin::Imagined {
        require_parent::<V>(&root, directory)?;
    }
    let needs_directory = sources.iter().any(|source| !means_contents(source.to_bytes()));
    let is_made = origin == Origin::Imagined
        && needs_directory
        && options.execution == Execution::Real
        && options.missing == Missing::Created;
    if is_made {
        root.create_dir(directory, first_mode::<V>(&root, sources, options))?;
        sink.notice(&Notice::Created(directory.to_bytes()));
    }
    let origin = if is_made { Origin::Found } else { origin };
    let place = Place::below(&base.place, directory, origin);
    let into = Arc::new(Level::new(Some(Arc::clone(&base)), place, None, Difference::empty(), Vec::new()));
    let target = |source: &CString| {
        let name = last_component(source.to_bytes());
        if means_contents(source.to_bytes()) {
            let (level, path, name) = (Arc::clone(&base), directory.to_bytes().to_vec(), directory.clone());
            let roots = [source.to_bytes(), directory.to_bytes()].map(absolute);
            let (source, prefix, symlinks) = (source.clone(), Vec::new(), SymlinkBehavior::Follow);
            let others = Vec::new();
            let (operand, identity) = (0, OnceLock::new());
            return Target { source, path, prefix, level, name, roots, operand, identity, others, symlinks };
        }
        Target {
            source: source.clone(),
            path: joined(directory.to_bytes(), name),
            prefix: name.to_vec(),
            level: Arc::clone(&into),
            name: CString::new(name).unwrap_or_default(),
            roots: [&parent(source)[..], directory.to_bytes()].map(absolute),
            operand: 0,
            identity: OnceLock::new(),
            others: Vec::new(),
            symlinks: SymlinkBehavior::NoFollow,
        }
    };
    let mut targets: Vec<Target<'p, V::Dir>> = sources.iter().map(target).collect();
    let prefixes: Vec<Vec<u8>> = targets.iter().map(|target| target.prefix.clone()).collect();
    let mut by_prefix: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, prefix) in prefixes.iter().enumerate() {
        by_prefix.entry(prefix).or_default().push(at);
    }
    let of_contents = by_prefix.get(&b""[..]).cloned().unwrap_or_default();
    for (at, target) in targets.iter_mut().enumerate() {
        target.operand = at;
        // The contents of one operand may have the name of another one.
        let same = by_prefix.get(&target.prefix[..]).into_iter().flatten().chain(&of_contents);
        target.others = match target.prefix.is_empty() {
            true => (0..prefixes.len()).collect(),
            false => same.copied().collect(),
        };
        target.others.retain(|other| *other != at);
        target.others.sort_unstable();
    }
    Ok(targets)
}

/// The mode to make the destination of several sources with: that of the first whose contents go into it. With `-p`
/// nobody else gets access until it has its permissions.
fn first_mode<V: Volume>(base: &V::Dir, sources: &[CString], options: &Options) -> u32 {
    let of_contents = sources.iter().filter(|source| means_contents(source.to_bytes()));
    let found = of_contents.filter_map(|source| {
        base.metadata(source, SymlinkBehavior::Follow, Fields::KIND | Fields::MODE).ok()
    });
    let first = found
        .filter(|_| options.recursion != Recursion::None)
        .find(|found| found.kind() == FileKind::Directory);
    match first {
        Some(_) if options.preserve.mode => 0o700,
        Some(first) => first.mode & 0o777 | 0o700,
        None => 0o777,
    }
}

/// Fails if the path that leads to a destination leads to no directory, and has to.
fn require_parent<V: Volume>(base: &V::Dir, destination: &CString) -> Result<(), Error> {
    if !base.capabilities(destination).contains(Capabilities::DIRECTORIES) {
        return Ok(());
    }
    let path = parent(destination);
    let path = CString::new(if path.is_empty() { b".".to_vec() } else { path }).unwrap_or_default();
    match base.metadata(&path, SymlinkBehavior::Follow, Fields::KIND)?.kind() {
        FileKind::Directory => Ok(()),
        _ => Err(Error::new(Operation::OpenDir, Errno::NOTDIR)),
    }
}

/// Whether a source stands for what is in it: it ends with a slash, or with `.` or `..`.
pub fn means_contents(path: &[u8]) -> bool {
    path.ends_with(b"/") || matches!(last_component(path), b"." | b"..")
}

fn last_component(path: &[u8]) -> &[u8] {
    path.split(|&b| b == b'/').rfind(|name| !name.is_empty()).unwrap_or_default()
}

/// The directory that a path is in, as the path goes.
fn parent(path: &CString) -> Vec<u8> {
    let path = path.to_bytes();
    let end = path.iter().rposition(|&b| b != b'/').map_or(path.len(), |at| at + 1);
    path[..end - last_component(path).len()].to_vec()
}

/// An absolute path without its first and last slash; that of a URL is what follows its host.
fn absolute(path: &[u8]) -> Vec<u8> {
    let host = path.windows(3).position(|part| part == b"://").filter(|at| !path[..*at].contains(&b'/'));
    if let Some(scheme) = host {
        let rest = &path[scheme + 3..];
        let key = rest.iter().position(|&b| b == b'/').map_or(&b""[..], |at| &rest[at + 1..]);
        return key.strip_suffix(b"/").unwrap_or(key).to_vec();
    }
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(if path.is_empty() { b"." } else { path }));
    // Where there is no current directory, rules of absolute paths match relative ones.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = path.as_os_str().as_bytes();
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.strip_suffix(b"/").unwrap_or(path).to_vec()
}
