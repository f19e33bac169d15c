//! The visitor: adds up the entries it sees.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use millstream_vfs::{Error, Fields, FileKind, Metadata, Operation, SymlinkBehavior, Volume};
use millstream_walk::{Chunk, Descend, Directory, Entry, FanOut, Fault, FaultSite, FollowPolicy, Visitor};

use super::inodes::{Identity, IdentityMap, Inodes, Sharded};
use super::line::LineFormat;
use super::report::Report;
use super::tree::{Child, FileLines, LinkedFile, Node, NodeKind, Totals};
use super::{FileSystems, HardLinks, Lines, Measure, Options, Problem, Sink, Subdirectories, TimeField};
use millstream_operation::activity::Activity;
use millstream_text::json::ErrorRecord;

pub(super) struct Survey<'a, V> {
    operands: &'a [CString],
    options: &'a Options,
    sink: &'a dyn Sink,
    activity: &'a Activity,
    fields: Fields,
    reach: Reach,
    inodes: &'a Inodes,
    /// Nodes of directories that may be reached twice: all directories if links are followed, otherwise the operands.
    directories: Sharded<IdentityMap<Arc<Node>>>,
    /// Operands that are not directories, if another operand may contain them.
    file_operands: OnceLock<IdentityMap<()>>,
    progress: Mutex<Progress<'a>>,
    /// An operand was found inside another one. Which lines belong to which is known only when all operands are
    /// complete.
    overlap: AtomicBool,
    volume: PhantomData<fn() -> V>,
}

/// Files that may be reached by more than one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Irrelevant: everything counts each time.
    Ignored,
    /// Files with several links.
    Links,
    /// Files with several links, and operands inside other operands.
    Operands,
    /// Everything, because links are followed.
    Everything,
}

impl Reach {
    fn new(operands: usize, options: &Options) -> Self {
        match (options.hard_links, options.follow) {
            (HardLinks::Each, _) => Reach::Ignored,
            (HardLinks::Once, FollowPolicy::Always) => Reach::Everything,
            (HardLinks::Once, _) if operands > 1 => Reach::Operands,
            (HardLinks::Once, _) => Reach::Links,
        }
    }
}

/// The complete operands, and the report of those before the first incomplete one.
struct Progress<'a> {
    operands: Vec<Operand>,
    reported: usize,
    report: Report<'a>,
}

#[derive(Clone, Debug, Default)]
struct Operand {
    found: Option<FoundOperand>,
    complete: bool,
}

#[derive(Clone, Debug)]
struct FoundOperand {
    kind: NodeKind,
    identity: Identity,
    node: Arc<Node>,
}

/// The node that a directory's entries are added to.
pub(super) struct Base {
    node: Arc<Node>,
    /// The node of the operand.
    device: u64,
}

/// Buffers of a worker.
#[derive(Default)]
pub(super) struct Buffers {
    path: Vec<u8>,
    totals: Totals,
    links: Vec<u32>,
    linked_files: Vec<LinkedFile>,
    files: FileLines,
    children: Vec<Child>,
}

fn fields(options: &Options) -> Fields {
    let sizes = match (&options.format, options.measure) {
        (LineFormat::Json, _) => Fields::SIZE | Fields::BLOCKS,
        (_, Measure::Allocated) => Fields::BLOCKS,
        (_, Measure::Apparent) => Fields::SIZE,
        (_, Measure::Inodes) => Fields::empty(),
    };
    let time = match options.time {
        None => Fields::empty(),
        Some((TimeField::Modified, _)) => Fields::MTIME,
        Some((TimeField::Accessed, _)) => Fields::ATIME,
        Some((TimeField::Changed, _)) => Fields::CTIME,
    };
    Fields::KIND | Fields::NLINK | Fields::INO | sizes | time
}

impl<'a, V: Volume> Survey<'a, V> {
    pub(super) fn new(
        operands: &'a [CString],
        options: &'a Options,
        sink: &'a dyn Sink,
        activity: &'a Activity,
        inodes: &'a Inodes,
    ) -> Self {
        let progress = Progress {
            operands: vec![Operand::default(); operands.len()],
            reported: 0,
            report: Report::new(options, sink, inodes),
        };
        Survey {
            operands,
            options,
            sink,
            activity,
            fields: fields(options),
            reach: Reach::new(operands.len(), options),
            inodes,
            directories: Sharded::default(),
            file_operands: OnceLock::new(),
            progress: Mutex::new(progress),
            overlap: AtomicBool::new(false),
            volume: PhantomData,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress<'a>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the rest when the traversal is over.
    pub(super) fn report_rest(&self) {
        let mut progress = self.progress();
        progress.operands.iter_mut().for_each(|operand| operand.complete = true);
        progress.report_complete(self.operands);
        progress.report.end();
    }

    fn operand_complete(&self, index: u64) {
        let mut progress = self.progress();
        progress.operands[index as usize].complete = true;
        if self.reach != Reach::Everything && !self.overlap.load(Ordering::Acquire) {
            progress.report_complete(self.operands);
        }
    }

    fn problem(&self, error: Error, is_dangling: bool, path: &[u8]) {
        self.activity.add_error();
        // GNU du gives no reason for a dangling link.
        let errno = (!is_dangling || error.errno != millstream_vfs::Errno::NOENT).then_some(error.errno);
        self.sink.problem(&Problem { operation: error.operation, errno, path });
        if let LineFormat::Json = self.options.format {
            let operation = error.operation.to_string();
            let record = ErrorRecord { errno: error.errno, operation: &operation, path };
            self.progress().report.extra(|out| record.write(out));
        }
    }

    /// Whether the entry at the end of `path` is excluded by its name.
    fn is_excluded(&self, path: &mut Vec<u8>, prefix_len: usize, name: &CStr) -> bool {
        if self.options.exclude.is_empty() {
            return false;
        }
        path.truncate(prefix_len);
        path.extend_from_slice(name.to_bytes_with_nul());
        CStr::from_bytes_with_nul(path).is_ok_and(|path| self.options.exclude.matches(path))
    }

    /// Metadata of an entry, or a problem. A dangling link that should be followed is a problem.
    fn metadata<S>(&self, entry: &Entry<'_, V, S>) -> Option<Metadata> {
        let failed = |error: Error, is_dangling: bool| {
            let mut path = Vec::new();
            entry.write_path(&mut path);
            self.problem(error, is_dangling, &path);
        };
        match entry.metadata(self.fields) {
            Ok(metadata) => {
                let is_dangling =
                    entry.symlinks() == SymlinkBehavior::Follow && metadata.kind() == FileKind::Symlink;
                if is_dangling {
                    let error = entry.target_metadata(Fields::KIND).err();
                    failed(error.unwrap_or(Error::new(Operation::Stat, millstream_vfs::Errno::NOENT)), true);
                }
                (!is_dangling).then_some(metadata)
            }
            Err(error) => {
                failed(error, false);
                None
            }
        }
    }

    fn time_field(&self) -> Option<TimeField> {
        self.options.time.as_ref().map(|(field, _)| *field)
    }

    /// Whether an entry at `depth` gets a line, apart from the threshold.
    fn has_line(&self, depth: u32) -> bool {
        depth <= self.options.max_depth
    }

    /// Adds a file.
    fn file(&self, buffers: &mut Buffers, name: &CStr, depth: u32, metadata: &Metadata) {
        let totals = Totals::of(metadata, self.time_field());
        // A file that may be reached twice gets its line where the report finds it first, which may be further up.
        let has_line =
            self.options.lines == Lines::All && (self.has_line(depth) || self.reach == Reach::Everything);
        if self.may_be_reached_twice(metadata) {
            let inode = self.inodes.number(metadata.identity(), &totals);
            if has_line {
                buffers.linked_files.push(LinkedFile { inode, name: name.to_bytes().into() });
            } else {
                buffers.links.push(inode);
            }
        } else {
            buffers.totals.add(&totals);
            if has_line {
                buffers.files.push(name.to_bytes(), &totals);
            }
        }
    }

    fn may_be_reached_twice(&self, metadata: &Metadata) -> bool {
        match self.reach {
            Reach::Ignored => false,
            Reach::Links => metadata.nlink > 1,
            Reach::Operands => {
                metadata.nlink > 1
                    || self
                        .file_operands
                        .get()
                        .is_some_and(|files| !files.is_empty() && files.contains_key(&metadata.identity()))
            }
            Reach::Everything => true,
        }
    }

    /// Whether a directory in `above` is one of its own ancestors, and so already counted.
    fn is_mounted_in_itself(&self, above: &Directory<V, Base>, metadata: &Metadata) -> bool {
        self.options.follow != FollowPolicy::Always && above.enclosing(metadata.identity()).is_some()
    }

    /// Adds a directory to the node `base`; returns the node for its entries if they are wanted and not yet being
    /// counted.
    fn directory(
        &self,
        buffers: &mut Buffers,
        entry: &Entry<'_, V, Base>,
        metadata: &Metadata,
    ) -> Option<Base> {
        let base = entry.directory().state();
        let totals = Totals::of(metadata, self.time_field());
        let has_line = self.has_line(entry.depth());
        let name = || entry.name().to_bytes().into();
        match self.known_directory(metadata.identity()) {
            Known::AnOperand(node) => {
                self.overlap.store(true, Ordering::Release);
                buffers.children.push(Child { name: name(), node });
                None
            }
            Known::Seen(node) => {
                buffers.children.push(Child { name: name(), node });
                None
            }
            Known::New(node) => {
                node.lock().own = totals;
                buffers.children.push(Child { name: name(), node: Arc::clone(&node) });
                Some(Base { node, device: base.device })
            }
            Known::Untracked if has_line || self.keeps_all_directories() => {
                let node = Node::new(NodeKind::Directory, totals);
                buffers.children.push(Child { name: name(), node: Arc::clone(&node) });
                Some(Base { node, device: base.device })
            }
            Known::Untracked => {
                buffers.totals.add(&totals);
                Some(Base { node: Arc::clone(&base.node), device: base.device })
            }
        }
    }

    /// Whether directories without a line have a node: either the directory may belong to another one's line, or its
    /// contents do not belong to the line above.
    fn keeps_all_directories(&self) -> bool {
        self.options.follow == FollowPolicy::Always || self.options.subdirectories == Subdirectories::Separate
    }

    fn known_directory(&self, identity: Identity) -> Known {
        match self.reach {
            Reach::Ignored | Reach::Links => Known::Untracked,
            Reach::Operands => self
                .directories
                .lock(identity)
                .get(&identity)
                .cloned()
                .map_or(Known::Untracked, Known::AnOperand),
            Reach::Everything => {
                let mut shard = self.directories.lock(identity);
                if let Some(node) = shard.get(&identity) {
                    return Known::Seen(Arc::clone(node));
                }
                let node = Arc::<Node>::default();
                shard.insert(identity, Arc::clone(&node));
                Known::New(node)
            }
        }
    }

    /// Examines the operands and gives each one a node if it can be measured.
    fn visit_operands(&self, buffers: &mut Buffers, chunk: &Chunk<'_, V, Base>) {
        for entry in chunk.entries() {
            if self.is_excluded(&mut buffers.path, 0, entry.name()) {
                continue;
            }
            if let Some(metadata) = self.metadata(&entry) {
                self.progress().operands[entry.index() as usize].found = Some(self.operand(&metadata));
            }
        }
    }

    fn operand(&self, metadata: &Metadata) -> FoundOperand {
        let totals = Totals::of(metadata, self.time_field());
        let kind = match metadata.kind() {
            FileKind::Directory => NodeKind::Directory,
            _ => NodeKind::File,
        };
        let node = if kind == NodeKind::Directory || self.reach == Reach::Ignored {
            Node::new(kind, totals)
        } else {
            let node = Node::new(kind, Totals::ZERO);
            node.lock().links.push(self.inodes.number(metadata.identity(), &totals));
            node
        };
        FoundOperand { kind, identity: metadata.identity(), node }
    }

    /// Descends into operands that are directories, now that all operands are known.
    fn descend_into_operands(&self, descend: &mut Descend<'_, V, Base>) {
        let mut progress = self.progress();
        let mut files = IdentityMap::default();
        for (index, operand) in progress.operands.iter_mut().enumerate() {
            operand.complete = true;
            let Some(found) = &mut operand.found else { continue };
            if found.kind == NodeKind::File {
                files.insert(found.identity, ());
                continue;
            }
            if matches!(self.reach, Reach::Operands | Reach::Everything) {
                let mut known = self.directories.lock(found.identity);
                if let Some(node) = known.get(&found.identity) {
                    // A directory given twice: the first operand gets its lines.
                    found.node = Arc::clone(node);
                    continue;
                }
                known.insert(found.identity, Arc::clone(&found.node));
            }
            operand.complete = false;
            let base = Base { node: Arc::clone(&found.node), device: found.identity.0 };
            descend.into_name(&self.operands[index], FileKind::Unknown, index as u64, base);
        }
        self.file_operands.get_or_init(|| files);
        if self.reach != Reach::Everything {
            progress.report_complete(self.operands);
        }
    }

    /// Adds the totals of a visit to its node.
    fn commit(buffers: &mut Buffers, node: &Node) {
        let mut contents = node.lock();
        contents.own.add(&buffers.totals);
        buffers.totals = Totals::ZERO;
        buffers.links.drain(..).for_each(|inode| contents.links.push(inode));
        contents.linked_files.append(&mut buffers.linked_files);
        contents.files.append(&mut buffers.files);
        contents.children.append(&mut buffers.children);
    }
}

impl Progress<'_> {
    /// Reports operands up to the first incomplete one.
    fn report_complete(&mut self, names: &[CString]) {
        while let Some(operand) = self.operands.get_mut(self.reported).filter(|o| o.complete) {
            if let Some(found) = operand.found.take() {
                self.report.operand(names[self.reported].to_bytes(), &found.node);
            }
            self.reported += 1;
        }
        self.report.flush();
    }
}

impl<V: Volume> Visitor for Survey<'_, V> {
    type Volume = V;
    type State = Base;
    type Worker = Buffers;

    fn root_state(&self) -> Base {
        Base { node: Arc::default(), device: 0 }
    }

    fn worker(&self) -> Buffers {
        self.activity.add_thread();
        Buffers::default()
    }

    fn fan_out(&self) -> FanOut {
        FanOut::Parallel
    }

    fn visit(&self, buffers: &mut Buffers, chunk: &Chunk<'_, V, Base>, descend: &mut Descend<'_, V, Base>) {
        let directory = chunk.directory();
        if directory.parent().is_none() {
            return self.visit_operands(buffers, chunk);
        }
        let base = directory.state();
        if !self.options.exclude.is_empty() {
            buffers.path.clear();
            directory.write_prefix(&mut buffers.path);
        }
        let prefix_len = buffers.path.len();
        let mut tally = self.activity.tally();
        for entry in chunk.entries() {
            tally.add();
            if self.is_excluded(&mut buffers.path, prefix_len, entry.name()) {
                continue;
            }
            let Some(metadata) = self.metadata(&entry) else { continue };
            if self.options.file_systems == FileSystems::One && metadata.dev != base.device {
                continue;
            }
            if metadata.kind() != FileKind::Directory {
                self.file(buffers, entry.name(), entry.depth(), &metadata);
            } else if !self.is_mounted_in_itself(directory, &metadata)
                && let Some(below) = self.directory(buffers, &entry, &metadata)
            {
                descend.into_entry(&entry, below);
            }
        }
        buffers.path.clear();
        Self::commit(buffers, &base.node);
    }

    fn end_of_directory(
        &self,
        _buffers: &mut Buffers,
        directory: &Arc<Directory<V, Base>>,
        descend: &mut Descend<'_, V, Base>,
        _block: &mut Vec<u8>,
    ) {
        if directory.parent().is_none() {
            self.descend_into_operands(descend);
        } else {
            self.activity.add_directory();
        }
    }

    fn leave(&self, _buffers: &mut Buffers, directory: &Arc<Directory<V, Base>>) {
        if let (Some(0), Some(operand)) = (directory.depth(), directory.operand()) {
            self.operand_complete(operand);
        }
    }

    fn fault(&self, _buffers: &mut Buffers, place: &FaultSite<'_, V, Base>, fault: &Fault) {
        match (fault, place) {
            (Fault::Volume(error), place) => {
                let mut path = Vec::new();
                place.write_path(&mut path);
                self.problem(*error, false, &path);
            }
            // A directory that contains itself, found again where everything counts each time: it ends there, without a
            // line.
            (Fault::Loop { .. }, FaultSite::Directory(directory)) => drop(directory.state().node.spend()),
            (Fault::Loop { .. }, FaultSite::Entry(_)) => {}
        }
    }
}

enum Known {
    /// It can be reached only once, or counts each time.
    Untracked,
    /// It is an operand.
    AnOperand(Arc<Node>),
    /// It has already been reached.
    Seen(Arc<Node>),
    /// It is reached for the first time; this is its node.
    New(Arc<Node>),
}
