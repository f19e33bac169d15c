//! From nodes to lines: depth first, names sorted, children before parents.

use std::sync::Arc;
use std::vec::IntoIter;

use super::inodes::Inodes;
use super::line::LineWriter;
use super::tree::{Child, FileLines, Node, NodeKind, Totals};
use super::{Lines, Options, Sink, Subdirectories};

/// The buffer is flushed when it reaches this many bytes.
const FLUSH_BYTES: usize = 64 << 10;

/// The buffered output.
pub(super) struct Report<'a> {
    options: &'a Options,
    sink: &'a dyn Sink,
    inodes: &'a Inodes,
    writer: LineWriter<'a>,
    lines: Vec<u8>,
    grand_total: Totals,
}

/// A directory on the path from the operand to the current position of the report.
struct Level {
    path_len: usize,
    items: Items,
    /// Totals of the directory and everything below it so far.
    inclusive: Totals,
    /// Totals without subdirectories.
    own: Totals,
}

/// The contents of a directory by name: lines of files, and directories.
struct Items {
    files: FileLines,
    file_starts: IntoIter<usize>,
    next_file: Option<usize>,
    children: IntoIter<Child>,
    next_child: Option<Child>,
}

enum Item {
    File(usize),
    Directory(Child),
}

impl Items {
    fn new(files: FileLines, mut children: Vec<Child>) -> Self {
        children.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut file_starts = files.sorted().into_iter();
        let mut children = children.into_iter();
        let (next_file, next_child) = (file_starts.next(), children.next());
        Items { files, file_starts, next_file, children, next_child }
    }

    fn next(&mut self) -> Option<Item> {
        let file_first = match (&self.next_file, &self.next_child) {
            (Some(file), Some(child)) => self.files.name(*file) < &*child.name,
            (file, _) => file.is_some(),
        };
        if file_first {
            let file = std::mem::replace(&mut self.next_file, self.file_starts.next());
            file.map(Item::File)
        } else {
            std::mem::replace(&mut self.next_child, self.children.next()).map(Item::Directory)
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(options: &'a Options, sink: &'a dyn Sink, inodes: &'a Inodes) -> Self {
        let writer = LineWriter::new(options);
        Report { options, sink, inodes, writer, lines: Vec::new(), grand_total: Totals::ZERO }
    }

    /// Adds the lines of an operand; none if it has been counted before. Empties the tree.
    pub(super) fn operand(&mut self, path: &[u8], root: &Arc<Node>) {
        let mut path = path.to_vec();
        let mut levels = Vec::new();
        levels.extend(self.enter(root, &path, 0));
        while let Some(level) = levels.last_mut() {
            if self.options.cancellation.is_cancelled() {
                // Standard output could not be written.
                return;
            }
            path.truncate(level.path_len);
            match level.items.next() {
                Some(Item::File(start)) => {
                    let (name, totals) = level.items.files.get(start);
                    push_name(&mut path, name);
                    self.line(&path, levels.len(), &totals);
                }
                Some(Item::Directory(child)) => {
                    push_name(&mut path, &child.name);
                    let entered = self.enter(&child.node, &path, levels.len());
                    levels.extend(entered);
                }
                None => self.leave(&path, &mut levels),
            }
        }
    }

    /// Counts the totals of a node. `None` if the node has already been reported.
    fn enter(&mut self, node: &Node, path: &[u8], depth: usize) -> Option<Level> {
        let mut contents = node.spend()?;
        for inode in contents.links.iter() {
            if let Some(totals) = self.inodes.count(inode) {
                contents.own.add(&totals);
            }
        }
        contents.linked_files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for file in &contents.linked_files {
            if let Some(totals) = self.inodes.count(file.inode) {
                contents.own.add(&totals);
                contents.files.push(&file.name, &totals);
            }
        }
        if contents.kind == NodeKind::File && contents.own.inodes == 0 {
            return None;
        }
        if self.options.lines == Lines::Directories || !self.has_lines(depth + 1) {
            contents.files = FileLines::default();
        }
        let items = Items::new(contents.files, contents.children);
        Some(Level { path_len: path.len(), items, inclusive: contents.own, own: contents.own })
    }

    /// Writes the line of the deepest directory, which is complete, and adds it to the directory above.
    fn leave(&mut self, path: &[u8], levels: &mut Vec<Level>) {
        let Some(level) = levels.pop() else { return };
        let shown = match self.options.subdirectories {
            Subdirectories::Included => &level.inclusive,
            Subdirectories::Separate => &level.own,
        };
        self.line(path, levels.len(), shown);
        match levels.last_mut() {
            Some(above) => above.inclusive.add(&level.inclusive),
            None => self.grand_total.add(&level.inclusive),
        }
    }

    fn has_lines(&self, depth: usize) -> bool {
        u32::try_from(depth).is_ok_and(|depth| depth <= self.options.max_depth)
    }

    fn line(&mut self, path: &[u8], depth: usize, totals: &Totals) {
        if self.has_lines(depth) {
            self.writer.write(path, totals, &mut self.lines);
            self.tell_odd_time();
            if self.lines.len() >= FLUSH_BYTES {
                self.flush();
            }
        }
    }

    fn tell_odd_time(&mut self) {
        if let Some(seconds) = self.writer.take_odd_time() {
            self.sink.odd_time(seconds);
        }
    }

    /// Flushes the buffer.
    pub(super) fn flush(&mut self) {
        if !self.lines.is_empty() {
            self.sink.lines(&self.lines);
            self.lines.clear();
        }
    }

    /// Adds a line that is not part of a tree.
    pub(super) fn extra(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.lines);
        self.flush();
    }

    /// Ends the report.
    pub(super) fn end(&mut self) {
        self.writer.write_grand_total(&self.grand_total, &mut self.lines);
        self.tell_odd_time();
        self.flush();
    }
}

fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
