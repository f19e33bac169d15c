//! The visitor of a listing.
//!
//! Chunks of a directory are examined on all workers and kept as parts. The last worker to finish sorts them, writes
//! the directory's block, and descends in the sorted order. Blocks therefore come out in the order of a recursive
//! listing, while everything before the output runs ahead. A single directory in its own order, one name per line, is
//! written as it is read.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millstream_vfs::{FileKind, Operation, Volume};
use millstream_walk::{Chunk, Descend, Directory, FanOut, Fault, FaultSite, Visitor};

use super::Shared;
use super::block::Block;
use super::gather::Gatherer;
use super::grid::{Direction, Grid, indent};
use super::long::{Attributes, Ledger, Widths};
use super::options::{Depth, Hidden, Layout, ListOptions, SortKey};
use super::order::{self, Position};
use super::paint::{self, Alignment, Painter};
use super::report::Severity;
use super::rows::Part;
use millstream_text::time::Clock;

/// The state of a directory.
#[derive(Debug)]
pub struct Listed {
    heading: Heading,
    delivery: Delivery,
    parts: Mutex<Vec<Part>>,
    failed: AtomicBool,
}

/// Whether the listing of a directory begins with its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    Path,
    None,
}

/// When to write entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// When the last one is known.
    Whole,
    /// As they are read.
    Streamed,
}

impl Listed {
    fn new(heading: Heading, delivery: Delivery) -> Self {
        Listed { heading, delivery, parts: Mutex::default(), failed: AtomicBool::new(false) }
    }
}

/// The state of a worker.
#[derive(Debug)]
pub struct Worker {
    ledger: Ledger,
    scratch: Vec<u8>,
}

/// Lists directories of a volume.
#[derive(Debug)]
pub struct Lister<'a, 'o, V> {
    options: &'a ListOptions,
    gatherer: Gatherer<'a>,
    painter: &'a Painter<'a>,
    attributes: Attributes<'a>,
    shared: &'a Shared<'a, 'o>,
    operand_count: usize,
    volume: PhantomData<fn() -> V>,
}

type Node<V> = Arc<Directory<V, Listed>>;

impl<'a, 'o, V: Volume> Lister<'a, 'o, V> {
    /// A listing of `operand_count` operands.
    pub fn new(
        options: &'a ListOptions,
        painter: &'a Painter<'a>,
        shared: &'a Shared<'a, 'o>,
        operand_count: usize,
    ) -> Self {
        Lister {
            options,
            gatherer: Gatherer::new(options, &shared.diagnostics),
            painter,
            attributes: Attributes::new(options, painter, &shared.owners),
            shared,
            operand_count,
            volume: PhantomData,
        }
    }

    /// Whether each entry of a directory is written independently of the others.
    fn writes_singly(&self) -> bool {
        self.options.layout == Layout::OnePerLine
            && self.options.sort == SortKey::None
            && self.options.depth != Depth::Tree
            && !self.options.columns.blocks
    }

    /// Whether a directory's entries may be written as they are read, by its only reader.
    fn streams(&self) -> bool {
        self.writes_singly() && !self.gatherer.examines()
    }

    fn padding(&self) -> Padding {
        if self.options.layout == Layout::Commas { Padding::None } else { Padding::ToWidest }
    }

    fn gather(&self, chunk: &Chunk<'_, V, Listed>, scratch: &mut Vec<u8>) -> Part {
        let mut part = Part::new(chunk.first_index());
        let mut tally = self.shared.activity.tally();
        if chunk.directory().parent().is_none() {
            for entry in chunk.entries() {
                self.gatherer.add_operand(&entry, &mut part, scratch);
                tally.add();
            }
        } else if self.options.hidden == Hidden::ShowWithDots {
            for entry in chunk.entries_and_dots().filter(|entry| self.options.shows(entry.name())) {
                self.gatherer.add_entry(&entry, &mut part, scratch);
                tally.add();
            }
        } else {
            for entry in chunk.entries().filter(|entry| self.options.shows(entry.name())) {
                self.gatherer.add_entry(&entry, &mut part, scratch);
                tally.add();
            }
        }
        part
    }

    fn stream(&self, directory: &Node<V>, part: &Part) {
        let mut block = Block::default();
        self.write_heading_once(directory, &mut block);
        let links = self.link_directory(directory);
        for entry in part.entries() {
            self.painter.begin(&mut block);
            self.attributes.write_frills(&entry, &Widths::default(), &mut block.text);
            self.painter.write_name(&entry, links.as_deref(), Alignment::Flush, 0, &mut block);
            block.text.extend(self.painter.indicator(&entry));
            block.text.push(self.options.line_end);
        }
        let mut packed = Vec::new();
        block.pack(&mut packed);
        self.shared.output.write_block(&packed, self.options.colors.as_ref());
    }

    /// Writes the heading of a streamed directory unless that has been done; only its reader calls this.
    fn write_heading_once(&self, directory: &Node<V>, block: &mut Block) {
        // A streamed directory keeps no parts; an empty part means that the heading has been written.
        let mut marker = lock(&directory.state().parts);
        if marker.is_empty() {
            self.write_heading(directory, block);
            marker.push(Part::new(0));
        }
    }

    fn write_heading(&self, directory: &Node<V>, block: &mut Block) {
        if directory.state().heading == Heading::None {
            return;
        }
        let path = shown_path(directory);
        block.headed = true;
        if self.options.dired {
            block.text.extend_from_slice(b"  ");
        }
        let link = self.options.hyperlink_host.as_ref().map(|_| resolve_bytes(&path));
        self.painter.write_heading(&path, link.as_deref(), block);
        block.text.extend_from_slice(b":\n");
    }

    fn link_directory(&self, directory: &Node<V>) -> Option<PathBuf> {
        self.options.hyperlink_host.as_ref()?;
        let mut path = Vec::new();
        directory.write_path(&mut path);
        Some(resolve_bytes(if path.is_empty() { b"." } else { &path }))
    }

    fn finish_operands(
        &self,
        parts: &[Part],
        worker: &mut Worker,
        descend: &mut Descend<'_, V, Listed>,
    ) -> Block {
        let alignment = self.alignment(parts, &mut worker.scratch);
        let positions = self.sorted(parts, alignment);
        let (directories, files): (Vec<_>, Vec<_>) = positions.into_iter().partition(|position| {
            self.options.depth != Depth::Entries && position.entry(parts).kind() == FileKind::Directory
        });
        let mut block = Block::default();
        if !files.is_empty() {
            let here = self.options.hyperlink_host.as_ref().map(|_| resolve_bytes(b"."));
            let style = Style { links: here.as_deref(), alignment, padding: self.padding() };
            self.write_entries(&files, parts, style, worker, &mut block);
            if !directories.is_empty() {
                block.text.push(b'\n');
            }
        }
        let alone = directories.len() == 1 && files.is_empty();
        let heading = match self.options.depth {
            Depth::Tree => Heading::Path,
            _ if alone && self.operand_count <= 1 => Heading::None,
            _ => Heading::Path,
        };
        let delivery = if alone && self.streams() { Delivery::Streamed } else { Delivery::Whole };
        for position in directories {
            let entry = position.entry(parts);
            let state = Listed::new(heading, delivery);
            descend.into_name(entry.name_with_nul(), entry.listed_kind(), entry.operand(), state);
        }
        block
    }

    fn finish_directory(
        &self,
        directory: &Node<V>,
        parts: &[Part],
        worker: &mut Worker,
        descend: &mut Descend<'_, V, Listed>,
    ) -> Block {
        let alignment = self.alignment(parts, &mut worker.scratch);
        let positions = self.sorted(parts, alignment);
        let mut block = Block::default();
        self.write_heading(directory, &mut block);
        if self.attributes.shows_total() {
            self.attributes.write_total(parts, &mut block);
        }
        let links = self.link_directory(directory);
        let padding = if self.writes_singly() { Padding::None } else { self.padding() };
        let style = Style { links: links.as_deref(), alignment, padding };
        self.write_entries(&positions, parts, style, worker, &mut block);
        if self.options.depth == Depth::Tree {
            for position in positions {
                let entry = position.entry(parts);
                if entry.kind() == FileKind::Directory && !matches!(entry.name(), b"." | b"..") {
                    let operand = directory.operand().unwrap_or_default();
                    let state = Listed::new(Heading::Path, Delivery::Whole);
                    descend.into_name(entry.name_with_nul(), entry.listed_kind(), operand, state);
                }
            }
        }
        block
    }

    fn sorted(&self, parts: &[Part], alignment: Alignment) -> Vec<Position> {
        order::sorted(parts, self.options, |entry| self.painter.name_width(entry, alignment, &mut Vec::new()))
    }

    fn write_entries(
        &self,
        positions: &[Position],
        parts: &[Part],
        Style { links, alignment, padding }: Style<'_>,
        worker: &mut Worker,
        block: &mut Block,
    ) {
        let columns = self.options.columns;
        let framed = columns.inode || columns.blocks || columns.context;
        let widths = if padding == Padding::ToWidest && (framed || self.options.layout == Layout::Long) {
            self.attributes.widths(parts, &mut worker.ledger)
        } else {
            Widths::default()
        };
        let page = Page { lister: self, positions, parts, links, alignment, widths };
        match self.options.layout {
            Layout::Long => {
                for &position in positions {
                    let ledger = &mut worker.ledger;
                    self.attributes.write_line(position, parts, &widths, (alignment, links), ledger, block);
                }
            }
            Layout::OnePerLine => page.write_lines(block),
            Layout::Commas => page.write_commas(&mut worker.scratch, block),
            Layout::Columns | Layout::Across if self.options.line_width == 0 => {
                page.write_one_row(&mut worker.scratch, block);
            }
            Layout::Columns => page.write_grid(Direction::Down, &mut worker.scratch, block),
            Layout::Across => page.write_grid(Direction::Across, &mut worker.scratch, block),
        }
    }

    fn alignment(&self, parts: &[Part], scratch: &mut Vec<u8>) -> Alignment {
        let mut quotes = |name: &[u8]| self.painter.quotes(name, scratch);
        let quotes = self.painter.aligns_quotes()
            && parts.iter().any(|part| {
                part.entries().any(|entry| quotes(entry.name()))
                    || part.missing.iter().any(|name| quotes(name))
            });
        if quotes { Alignment::PastQuotes } else { Alignment::Flush }
    }
}

/// How the entries of one directory are written.
#[derive(Clone, Copy)]
struct Style<'p> {
    /// The directory, if names are links.
    links: Option<&'p Path>,
    alignment: Alignment,
    padding: Padding,
}

/// Whether the columns before names are as wide as the widest of the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    ToWidest,
    None,
}

/// The entries of one directory, laid out.
struct Page<'p, 'o, V> {
    lister: &'p Lister<'p, 'o, V>,
    positions: &'p [Position],
    parts: &'p [Part],
    links: Option<&'p Path>,
    alignment: Alignment,
    widths: Widths,
}

impl<V: Volume> Page<'_, '_, V> {
    fn item_width(&self, position: Position, scratch: &mut Vec<u8>) -> usize {
        let entry = position.entry(self.parts);
        let frills = self.lister.attributes.frills_width(&entry, &self.widths, scratch);
        self.lister.painter.width(&entry, self.alignment, scratch).wrapping_add(frills)
    }

    fn write_item(&self, position: Position, start_column: usize, block: &mut Block) {
        let entry = position.entry(self.parts);
        self.lister.painter.begin(block);
        self.lister.attributes.write_frills(&entry, &self.widths, &mut block.text);
        self.lister.painter.write_name(&entry, self.links, self.alignment, start_column, block);
        block.text.extend(self.lister.painter.indicator(&entry));
    }

    fn write_lines(&self, block: &mut Block) {
        for &position in self.positions {
            self.write_item(position, 0, block);
            block.text.push(self.lister.options.line_end);
        }
    }

    fn write_grid(&self, direction: Direction, scratch: &mut Vec<u8>, block: &mut Block) {
        let options = self.lister.options;
        let items: Vec<usize> =
            self.positions.iter().map(|&position| self.item_width(position, scratch)).collect();
        let grid = Grid::fit(&items, options.line_width, direction);
        let tab_width = if options.colors.is_some() { 0 } else { options.tab_width };
        for row in 0..grid.row_count(items.len()) {
            let (mut column_start, mut end) = (0, 0);
            for (column, width) in grid.columns.iter().enumerate() {
                let Some(item) = grid.item(row, column, items.len()) else { break };
                indent(end, column_start, tab_width, block);
                self.write_item(self.positions[item], column_start, block);
                end = items[item].wrapping_add(column_start);
                column_start = column_start.wrapping_add(*width);
            }
            block.text.push(options.line_end);
        }
    }

    fn write_one_row(&self, scratch: &mut Vec<u8>, block: &mut Block) {
        let mut column = 0;
        for (i, &position) in self.positions.iter().enumerate() {
            if i > 0 {
                block.text.extend_from_slice(b"  ");
                column += 2;
            }
            self.write_item(position, column, block);
            column = self.item_width(position, scratch).wrapping_add(column);
        }
        if !self.positions.is_empty() {
            block.text.push(self.lister.options.line_end);
        }
    }

    fn write_commas(&self, scratch: &mut Vec<u8>, block: &mut Block) {
        let options = self.lister.options;
        let mut column: usize = 0;
        for (i, &position) in self.positions.iter().enumerate() {
            let width = self.item_width(position, scratch);
            if i > 0 {
                // With a width that is not known, the sum is modulo 2^64.
                let most = usize::MAX.wrapping_sub(width).wrapping_sub(2);
                let fits = options.line_width == 0
                    || (column <= most && width.wrapping_add(column).wrapping_add(2) < options.line_width);
                block.text.extend_from_slice(&[b',', if fits { b' ' } else { options.line_end }]);
                column = if fits { column + 2 } else { 0 };
            }
            self.write_item(position, column, block);
            column = column.wrapping_add(width);
        }
        if !self.positions.is_empty() {
            block.text.push(options.line_end);
        }
    }
}

fn resolve_bytes(path: &[u8]) -> PathBuf {
    paint::resolve(Path::new(OsStr::from_bytes(path)))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: Volume> Visitor for Lister<'_, '_, V> {
    type Volume = V;
    type State = Listed;
    type Worker = Worker;

    fn root_state(&self) -> Listed {
        Listed::new(Heading::None, Delivery::Whole)
    }

    fn worker(&self) -> Worker {
        self.shared.activity.add_thread();
        Worker { ledger: Ledger::new(Clock::new(self.options.locale)), scratch: Vec::new() }
    }

    fn fan_out(&self) -> FanOut {
        match self.gatherer.examines() {
            true => FanOut::Parallel,
            false if self.streams() => FanOut::Sequential,
            false => FanOut::Inline,
        }
    }

    fn visit(
        &self,
        worker: &mut Worker,
        chunk: &Chunk<'_, V, Listed>,
        _descend: &mut Descend<'_, V, Listed>,
    ) {
        let mut part = self.gather(chunk, &mut worker.scratch);
        let state = chunk.directory().state();
        match state.delivery {
            Delivery::Streamed => self.stream(chunk.directory(), &part),
            Delivery::Whole if part.is_empty() => {}
            Delivery::Whole => {
                part.shrink();
                lock(&state.parts).push(part);
            }
        }
    }

    fn end_of_directory(
        &self,
        worker: &mut Worker,
        directory: &Node<V>,
        descend: &mut Descend<'_, V, Listed>,
        block: &mut Vec<u8>,
    ) {
        let state = directory.state();
        if state.failed.load(Ordering::Acquire) {
            return;
        }
        if directory.parent().is_some() {
            self.shared.activity.add_directory();
        }
        if state.delivery == Delivery::Streamed {
            let mut heading = Block::default();
            self.write_heading_once(directory, &mut heading);
            return heading.pack(block);
        }
        let mut parts = std::mem::take(&mut *lock(&state.parts));
        parts.sort_by_key(|part| part.first_index);
        let finished = match directory.parent() {
            None => self.finish_operands(&parts, worker, descend),
            Some(_) => self.finish_directory(directory, &parts, worker, descend),
        };
        if !finished.text.is_empty() {
            finished.pack(block);
        }
    }

    fn emit(&self, block: &[u8]) {
        self.shared.output.write_block(block, self.options.colors.as_ref());
    }

    fn fault(&self, _worker: &mut Worker, place: &FaultSite<'_, V, Listed>, fault: &Fault) {
        self.shared.activity.add_error();
        let mut path = Vec::new();
        match place {
            FaultSite::Directory(directory) => path = shown_path(directory),
            FaultSite::Entry(entry) => entry.write_path(&mut path),
        }
        let depth = match place {
            FaultSite::Directory(directory) => {
                // Entries read before the failure are still listed. A directory that could not be opened has none.
                let unread = !matches!(fault, Fault::Volume(error) if error.operation == Operation::ReadDir);
                directory.state().failed.fetch_or(unread, Ordering::Release);
                directory.depth()
            }
            FaultSite::Entry(entry) => Some(entry.depth()),
        };
        let severity = if depth.unwrap_or(0) == 0 { Severity::Serious } else { Severity::Minor };
        match fault {
            Fault::Loop { .. } => self.shared.diagnostics.already_listed(&path),
            Fault::Volume(error) => {
                let what = match error.operation {
                    Operation::OpenDir => "cannot open directory",
                    Operation::ReadDir => "reading directory",
                    _ => "cannot access",
                };
                self.shared.diagnostics.failed(what, &path, error.errno, severity);
            }
        }
    }
}

/// Path of a directory for headings and messages: of several slashes at the end of an operand, one is kept for paths
/// below it.
fn shown_path<V: Volume>(directory: &Node<V>) -> Vec<u8> {
    let mut path = Vec::new();
    directory.write_path(&mut path);
    if directory.depth().is_some_and(|depth| depth > 0)
        && let Some(operand) = directory.ancestors().last()
    {
        let name = operand.name().to_bytes();
        let slashes = name.iter().rev().take_while(|&&b| b == b'/').count();
        if slashes > 1 {
            path.drain(name.len() - slashes + 1..name.len());
        }
    }
    path
}
