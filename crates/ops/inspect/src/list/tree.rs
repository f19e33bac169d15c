//! Whole trees for programs: `--json`, a record for every entry, and `--paths`, the path of every file.
//!
//! Both print entries as soon as they are known. The only guaranteed order is that a directory comes before its
//! contents. They hold no more than one chunk per worker. If a visit found directories, its lines are written before
//! the visit ends, so nobody can write about their contents earlier.
//!
//! Records are meant for scans of everything below the operands. Hidden entries therefore have one with or without
//! `-a`, while `.`, `..` and operands that are directories have none. `-I` and `-B` omit the entries they match and
//! everything below them. Paths name what `open` can read: regular files and links to them, as far as a listing shows
//! them. Hidden ones appear only with `-a` or `-A`.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::sync::Arc;

use millstream_vfs::{Dir, Errno, Fields, FileKind, Metadata, Operation, SymlinkBehavior, Volume};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, Visitor};

use super::Shared;
use super::options::{Depth, Dereference, ListOptions};
use super::owners::{Account as AccountKey, Owner, Owners};
use super::report::Severity;
use millstream_text::json::{Account, EntryRecord, ErrorRecord};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeForm {
    /// A JSON record for every entry.
    Records,
    /// The path of every file.
    Paths,
}

/// Bytes that a worker buffers.
const COMMIT_BYTES: usize = 32 << 10;

/// Prints trees of a volume.
#[derive(Debug)]
pub struct TreePrinter<'a, 'o, V> {
    form: TreeForm,
    options: &'a ListOptions,
    shared: &'a Shared<'a, 'o>,
    volume: PhantomData<fn() -> V>,
}

/// The state of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    ino: u64,
}

/// The state of a worker.
#[derive(Debug)]
pub struct Worker {
    owners: Owners,
    lines: Vec<u8>,
    path: Vec<u8>,
}

impl<'a, 'o, V: Volume> TreePrinter<'a, 'o, V> {
    /// A printer of trees in this form.
    pub fn new(form: TreeForm, options: &'a ListOptions, shared: &'a Shared<'a, 'o>) -> Self {
        TreePrinter { form, options, shared, volume: PhantomData }
    }

    fn is_wanted(&self, name: &CStr) -> bool {
        match self.form {
            TreeForm::Records => !self.options.ignores(name),
            TreeForm::Paths => self.options.shows(name),
        }
    }

    fn visit_entry(
        &self,
        entry: &Entry<'_, V, Node>,
        worker: &mut Worker,
        descend: &mut Descend<'_, V, Node>,
    ) {
        let dirid = entry.directory().state().ino;
        match self.form {
            TreeForm::Records => {
                let Some(metadata) = self.examine(entry, self.record_symlinks(), Fields::STAT, worker) else {
                    return;
                };
                self.write_record(&metadata, dirid, worker);
                if metadata.kind() == FileKind::Directory {
                    descend.into_entry(entry, Node { ino: metadata.ino });
                }
            }
            TreeForm::Paths => match self.readable_kind(entry, worker) {
                Some(FileKind::Directory) => descend.into_entry(entry, Node { ino: 0 }),
                Some(FileKind::File) => self.write_path(worker),
                _ => {}
            },
        }
    }

    fn record_symlinks(&self) -> SymlinkBehavior {
        match self.options.dereference {
            Dereference::Always => SymlinkBehavior::Follow,
            _ => SymlinkBehavior::NoFollow,
        }
    }

    /// The type; for a link `File` if it leads to one, and `Directory` if such links are entered.
    fn readable_kind(&self, entry: &Entry<'_, V, Node>, worker: &mut Worker) -> Option<FileKind> {
        let kind = match entry.listed_kind() {
            FileKind::Unknown => self.examine(entry, SymlinkBehavior::NoFollow, Fields::KIND, worker)?.kind(),
            kind => kind,
        };
        if kind != FileKind::Symlink {
            return Some(kind);
        }
        let target = entry.target_metadata(Fields::KIND).ok()?.kind();
        let entered = self.options.dereference == Dereference::Always;
        (target == FileKind::File || (target == FileKind::Directory && entered)).then_some(target)
    }

    fn visit_operand(
        &self,
        entry: &Entry<'_, V, Node>,
        worker: &mut Worker,
        descend: &mut Descend<'_, V, Node>,
    ) {
        let followed = self.options.dereference != Dereference::Never;
        let symlinks = if followed { SymlinkBehavior::Follow } else { SymlinkBehavior::NoFollow };
        let fields = if self.form == TreeForm::Records { Fields::STAT } else { Fields::KIND | Fields::INO };
        let target = entry.handle().metadata(entry.name(), symlinks, fields);
        let is_directory = target.as_ref().is_ok_and(|m| m.kind() == FileKind::Directory);
        // As in a listing, an operand that is a link counts as a directory but not as a file, unless the options say
        // so.
        let kept =
            is_directory || matches!(self.options.dereference, Dereference::Always | Dereference::Operands);
        let metadata = match target {
            Ok(metadata) if kept => Some(metadata),
            Ok(_) => self.examine(entry, SymlinkBehavior::NoFollow, fields, worker),
            Err(error) if !kept && error.errno == Errno::NOENT => {
                self.examine(entry, SymlinkBehavior::NoFollow, fields, worker)
            }
            Err(error) => {
                self.report("cannot access", error.operation, &worker.path.clone(), error.errno, 0, worker);
                None
            }
        };
        let Some(metadata) = metadata else { return };
        if metadata.kind() == FileKind::Directory && self.options.depth != Depth::Entries {
            descend.into_entry(entry, Node { ino: metadata.ino });
        } else if self.form == TreeForm::Records {
            let dirid = parent_ino(entry.handle(), entry.name());
            self.write_record(&metadata, dirid, worker);
        } else {
            self.write_path(worker);
        }
    }

    fn examine(
        &self,
        entry: &Entry<'_, V, Node>,
        symlinks: SymlinkBehavior,
        fields: Fields,
        worker: &mut Worker,
    ) -> Option<Metadata> {
        match entry.examine(symlinks, fields) {
            Ok(metadata) => Some(metadata),
            Err(error) => {
                let path = worker.path.clone();
                self.report("cannot access", error.operation, &path, error.errno, entry.depth(), worker);
                None
            }
        }
    }

    fn write_record(&self, metadata: &Metadata, dirid: u64, worker: &mut Worker) {
        let user = worker.owners.get(AccountKey::User(metadata.uid), &self.shared.owners).clone();
        let group = worker.owners.get(AccountKey::Group(metadata.gid), &self.shared.owners);
        let (uid, gid) = (account(&user, metadata.uid), account(group, metadata.gid));
        EntryRecord { dirid, metadata, uid, gid, path: &worker.path }.write(&mut worker.lines);
    }

    fn write_path(&self, worker: &mut Worker) {
        worker.lines.extend_from_slice(&worker.path);
        worker.lines.push(self.options.line_end);
    }

    fn report(
        &self,
        what: &str,
        operation: Operation,
        path: &[u8],
        errno: Errno,
        depth: u32,
        worker: &mut Worker,
    ) {
        let severity = if depth == 0 { Severity::Serious } else { Severity::Minor };
        self.shared.activity.add_error();
        self.shared.diagnostics.failed(what, path, errno, severity);
        if self.form == TreeForm::Records {
            ErrorRecord { errno, operation: &operation.to_string(), path }.write(&mut worker.lines);
        }
    }

    fn commit(&self, worker: &mut Worker) {
        if !worker.lines.is_empty() {
            self.shared.output.write(&worker.lines);
            worker.lines.clear();
        }
    }
}

fn account(owner: &Owner, id: u32) -> Account<'_> {
    if owner.named { Account::Name(&owner.text) } else { Account::Id(id) }
}

/// Inode number of an operand's parent directory, 0 if unknown.
fn parent_ino<D: Dir>(base: &D, operand: &CStr) -> u64 {
    let path = operand.to_bytes();
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |last| last + 1);
    let parent = match path[..end].iter().rposition(|&b| b == b'/') {
        Some(0) => b"/",
        Some(slash) => &path[..slash],
        None if end == 0 => b"/",
        None => &b"."[..],
    };
    let parent = CString::new(parent).ok();
    let metadata = parent.and_then(|path| base.metadata(&path, SymlinkBehavior::Follow, Fields::INO).ok());
    metadata.map_or(0, |m| m.ino)
}

impl<V: Volume> Visitor for TreePrinter<'_, '_, V> {
    type Volume = V;
    type State = Node;
    type Worker = Worker;

    fn root_state(&self) -> Node {
        Node { ino: 0 }
    }

    fn worker(&self) -> Worker {
        self.shared.activity.add_thread();
        Worker { owners: Owners::default(), lines: Vec::with_capacity(COMMIT_BYTES), path: Vec::new() }
    }

    fn fan_out(&self) -> FanOut {
        match self.form {
            TreeForm::Records => FanOut::Parallel,
            TreeForm::Paths => FanOut::Inline,
        }
    }

    fn visit(&self, worker: &mut Worker, chunk: &Chunk<'_, V, Node>, descend: &mut Descend<'_, V, Node>) {
        worker.path.clear();
        chunk.directory().write_prefix(&mut worker.path);
        let prefix = worker.path.len();
        let are_operands = chunk.directory().parent().is_none();
        let mut tally = self.shared.activity.tally();
        for entry in chunk.entries() {
            tally.add();
            worker.path.truncate(prefix);
            worker.path.extend_from_slice(entry.name().to_bytes());
            if are_operands {
                self.visit_operand(&entry, worker, descend);
            } else if self.is_wanted(entry.name()) {
                self.visit_entry(&entry, worker, descend);
            }
            if worker.lines.len() >= COMMIT_BYTES {
                self.commit(worker);
            }
        }
        drop(tally);
        if !descend.is_empty() || self.shared.output.is_immediate() {
            self.commit(worker);
        }
    }

    fn leave(&self, _worker: &mut Worker, directory: &Arc<Directory<V, Node>>) {
        if directory.parent().is_some() {
            self.shared.activity.add_directory();
        }
    }

    fn fault(&self, worker: &mut Worker, place: &FaultSite<'_, V, Node>, fault: &Fault) {
        let mut path = Vec::new();
        place.write_path(&mut path);
        let depth = match place {
            FaultSite::Directory(directory) => directory.depth().unwrap_or(0),
            FaultSite::Entry(entry) => entry.depth(),
        };
        match fault {
            Fault::Loop { .. } => {
                self.shared.diagnostics.already_listed(&path);
                self.shared.activity.add_error();
                if self.form == TreeForm::Records {
                    ErrorRecord { errno: Errno::LOOP, operation: "open directory", path: &path }
                        .write(&mut worker.lines);
                }
            }
            Fault::Volume(error) => {
                let what = match error.operation {
                    Operation::OpenDir => "cannot open directory",
                    Operation::ReadDir => "reading directory",
                    _ => "cannot access",
                };
                self.report(what, error.operation, &path, error.errno, depth, worker);
            }
        }
    }

    fn finish(&self, mut worker: Worker) {
        self.commit(&mut worker);
    }
}

#[cfg(test)]
mod tests {
    use millstream_posix::PosixVolume;

    use super::*;

    #[test]
    fn parents_of_operands() {
        let base = PosixVolume.base();
        let ino =
            |path: &CStr| base.metadata(path, SymlinkBehavior::Follow, Fields::INO).expect("exists").ino;
        for (operand, parent) in [
            (c"x", c"."),
            (c"x/", c"."),
            (c"/etc/passwd", c"/etc"),
            (c"/etc/", c"/"),
            (c"/", c"/"),
            (c"", c"/"),
        ] {
            assert_eq!(parent_ino(&base, operand), ino(parent), "{operand:?}");
        }
    }
}
