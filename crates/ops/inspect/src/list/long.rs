//! The columns other than the name, and long lines.

use std::path::Path;

use millstream_vfs::FileKind;
use rustix::fs::{major, minor};

use super::block::Block;
use super::options::{Columns, Layout, ListOptions};
use super::order::Position;
use super::owners::{Account, Owners, SharedOwners};
use super::paint::{Alignment, Painter};
use super::rows::{AccessMarker, EntryView, Facts, Part};
use millstream_text::mode::permission_text;
use millstream_text::size::{SizeFormat, integer_width, write_integer};
use millstream_text::time::Clock;

/// Widths of the columns of one directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Widths {
    /// Inode numbers.
    pub inode: usize,
    /// Allocated blocks.
    pub blocks: usize,
    /// Security contexts.
    pub context: usize,
    nlink: usize,
    owner: usize,
    group: usize,
    author: usize,
    size: usize,
    major: usize,
    minor: usize,
    time: usize,
    marks_access: bool,
}

/// The largest values of numeric columns, whose widths follow from them.
#[derive(Default)]
struct Largest {
    ino: u64,
    nlink: u64,
    blocks: u64,
    size: u64,
    major: u64,
    minor: u64,
    devices: bool,
}

/// The state a worker needs to write attributes.
#[derive(Debug)]
pub struct Ledger {
    owners: Owners,
    clock: Clock,
    number: Vec<u8>,
}

impl Ledger {
    /// For one worker.
    pub fn new(clock: Clock) -> Self {
        Ledger { owners: Owners::default(), clock, number: Vec::new() }
    }
}

/// Writes attributes for one listing.
#[derive(Debug)]
pub struct Attributes<'a> {
    options: &'a ListOptions,
    painter: &'a Painter<'a>,
    owners: &'a SharedOwners,
}

impl<'a> Attributes<'a> {
    /// For listings with these options.
    pub fn new(options: &'a ListOptions, painter: &'a Painter<'a>, owners: &'a SharedOwners) -> Self {
        Attributes { options, painter, owners }
    }

    /// The widths that the columns of these entries need.
    pub fn widths(&self, parts: &[Part], ledger: &mut Ledger) -> Widths {
        let Columns { inode, blocks, owner, group, author, .. } = self.options.columns;
        let mut widths = Widths { context: 1, ..Widths::default() };
        let mut largest = Largest::default();
        for entry in parts.iter().flat_map(Part::entries) {
            let Some(facts) = entry.facts() else { continue };
            largest.ino = largest.ino.max(entry.ino());
            widths.context = widths.context.max(entry.context().len());
            largest.add(facts);
            if self.is_long() {
                if owner || author {
                    let width = ledger.owners.get(Account::User(facts.uid), self.owners).width;
                    widths.owner = widths.owner.max(width);
                }
                if group {
                    let width = ledger.owners.get(Account::Group(facts.gid), self.owners).width;
                    widths.group = widths.group.max(width);
                }
                widths.marks_access |= facts.access != AccessMarker::None;
                if matches!(self.options.file_size, SizeFormat::Human(_)) && !facts.is_device() {
                    widths.size = widths.size.max(self.size_width(facts.size, ledger));
                }
            }
            if (blocks || self.is_long()) && matches!(self.options.block_size, SizeFormat::Human(_)) {
                widths.blocks = widths.blocks.max(self.blocks_width(facts.blocks, ledger));
            }
        }
        widths.author = widths.owner;
        widths.inode = if inode && largest.nlink > 0 { integer_width(largest.ino) } else { 0 };
        self.finish_widths(&largest, &mut widths, ledger);
        widths
    }

    fn is_long(&self) -> bool {
        self.options.layout == Layout::Long
    }

    fn finish_widths(&self, largest: &Largest, widths: &mut Widths, ledger: &mut Ledger) {
        if let (SizeFormat::Blocks { .. }, true) = (&self.options.block_size, largest.nlink > 0) {
            widths.blocks = self.blocks_width(largest.blocks, ledger);
        }
        if !self.is_long() {
            return;
        }
        if largest.nlink > 0 {
            widths.nlink = integer_width(largest.nlink);
        }
        if let (SizeFormat::Blocks { .. }, true) = (&self.options.file_size, largest.nlink > 0) {
            widths.size = widths.size.max(self.size_width(largest.size, ledger));
        }
        if largest.devices {
            widths.major = integer_width(largest.major);
            widths.minor = integer_width(largest.minor);
            widths.size = widths.size.max(widths.major + 2 + widths.minor);
        }
        widths.time = self.options.time_style.width_of_unknown(&mut ledger.clock);
    }

    fn size_width(&self, size: u64, ledger: &mut Ledger) -> usize {
        ledger.number.clear();
        self.options.file_size.write(u128::from(size), self.options.locale, &mut ledger.number);
        self.painter.quoter().width(&ledger.number)
    }

    fn blocks_width(&self, blocks: u64, ledger: &mut Ledger) -> usize {
        ledger.number.clear();
        self.write_blocks(blocks, &mut ledger.number);
        self.painter.quoter().width(&ledger.number)
    }

    /// Appends allocated space.
    pub fn write_blocks(&self, blocks: u64, out: &mut Vec<u8>) {
        self.options.block_size.write(u128::from(blocks) * 512, self.options.locale, out);
    }

    /// Width of the columns that [`Attributes::write_frills`] writes.
    pub fn frills_width(&self, entry: &EntryView<'_>, widths: &Widths, scratch: &mut Vec<u8>) -> usize {
        scratch.clear();
        self.write_frills(entry, widths, scratch);
        self.painter.quoter().width(scratch)
    }

    /// Appends the columns before a name in layouts other than the long one, each with a space after it.
    pub fn write_frills(&self, entry: &EntryView<'_>, widths: &Widths, out: &mut Vec<u8>) {
        let Columns { inode, blocks, context, .. } = self.options.columns;
        if inode {
            write_inode(entry, widths.inode, out);
        }
        if blocks {
            self.write_blocks_column(entry.facts(), widths.blocks, out);
        }
        if context {
            let context = entry.context();
            write_right(context, context.len(), widths.context, out);
            out.push(b' ');
        }
    }

    fn write_blocks_column(&self, facts: Option<&Facts>, width: usize, out: &mut Vec<u8>) {
        let start = out.len();
        match facts {
            Some(facts) => self.write_blocks(facts.blocks, out),
            None => out.push(b'?'),
        }
        let taken = self.painter.quoter().width(&out[start..]);
        pad_before(start, width.saturating_sub(taken), out);
        out.push(b' ');
    }

    /// Appends a long line.
    pub fn write_line(
        &self,
        position: Position,
        parts: &[Part],
        widths: &Widths,
        (alignment, link_directory): (Alignment, Option<&Path>),
        ledger: &mut Ledger,
        block: &mut Block,
    ) {
        let entry = position.entry(parts);
        self.painter.begin(block);
        if self.options.dired {
            block.text.extend_from_slice(b"  ");
        }
        let line_start = block.text.len();
        if self.options.columns.inode {
            write_inode(&entry, widths.inode, &mut block.text);
        }
        if self.options.columns.blocks {
            self.write_blocks_column(entry.facts(), widths.blocks, &mut block.text);
        }
        write_mode(&entry, widths.marks_access, &mut block.text);
        let size_start = match entry.facts() {
            Some(facts) => self.write_facts(&entry, facts, widths, ledger, &mut block.text),
            None => self.write_unknown(widths, &mut block.text),
        };
        // GNU ls ignores the text before the size once it has written an owner.
        let column = block.text.len() - if self.shows_owners() { size_start } else { line_start };
        let width = self.painter.write_name(&entry, link_directory, alignment, column, block);
        if let Some(target) = entry.target() {
            block.text.extend_from_slice(b" -> ");
            let place = (alignment, link_directory);
            self.painter.write_target(&entry, target, place, column + width + 4, block);
            block.text.extend(self.painter.target_indicator(&entry));
        } else if entry.kind() != FileKind::Symlink {
            block.text.extend(self.painter.indicator(&entry));
        }
        block.text.push(self.options.line_end);
    }

    fn shows_owners(&self) -> bool {
        let Columns { owner, group, author, context, .. } = self.options.columns;
        owner || group || author || context
    }

    /// Appends the columns from the number of links to the time; returns the position of the size.
    fn write_facts(
        &self,
        entry: &EntryView<'_>,
        facts: &Facts,
        widths: &Widths,
        ledger: &mut Ledger,
        out: &mut Vec<u8>,
    ) -> usize {
        let Columns { owner, group, author, context, .. } = self.options.columns;
        write_number(u64::from(facts.nlink), widths.nlink, out);
        out.push(b' ');
        if owner {
            self.write_owner(Account::User(facts.uid), widths.owner, ledger, out);
        }
        if group {
            self.write_owner(Account::Group(facts.gid), widths.group, ledger, out);
        }
        if author {
            self.write_owner(Account::User(facts.uid), widths.author, ledger, out);
        }
        if context {
            write_left(entry.context(), entry.context().len(), widths.context, out);
            out.push(b' ');
        }
        let size_start = out.len();
        self.write_size(facts, widths, out);
        out.push(b' ');
        self.write_time(facts, widths, ledger, out);
        out.push(b' ');
        size_start
    }

    fn write_size(&self, facts: &Facts, widths: &Widths, out: &mut Vec<u8>) {
        if facts.is_device() {
            let blank = widths.size.saturating_sub(widths.major + 2 + widths.minor);
            write_number(u64::from(major(facts.size)), widths.major + blank, out);
            out.extend_from_slice(b", ");
            write_number(u64::from(minor(facts.size)), widths.minor, out);
        } else if self.options.file_size == SizeFormat::BYTES {
            write_number(facts.size, widths.size, out);
        } else {
            let start = out.len();
            self.options.file_size.write(u128::from(facts.size), self.options.locale, out);
            let taken = self.painter.quoter().width(&out[start..]);
            pad_before(start, widths.size.saturating_sub(taken), out);
        }
    }

    fn write_time(&self, facts: &Facts, widths: &Widths, ledger: &mut Ledger, out: &mut Vec<u8>) {
        let start = out.len();
        if facts.time_known() {
            if !ledger.clock.write(&self.options.time_style, facts.time, out) {
                pad_before(start, widths.time.saturating_sub(out.len() - start), out);
            }
        } else {
            write_right(b"?", 1, widths.time, out);
        }
    }

    /// Likewise, where nothing is known.
    fn write_unknown(&self, widths: &Widths, out: &mut Vec<u8>) -> usize {
        let Columns { owner, group, author, context, .. } = self.options.columns;
        write_right(b"?", 1, widths.nlink, out);
        out.push(b' ');
        let left = [(owner, widths.owner), (group, widths.group), (author, widths.author)];
        for (_, width) in left.into_iter().chain([(context, widths.context)]).filter(|(shown, _)| *shown) {
            write_left(b"?", 1, width, out);
            out.push(b' ');
        }
        let size_start = out.len();
        write_right(b"?", 1, widths.size, out);
        out.push(b' ');
        write_right(b"?", 1, widths.time, out);
        out.push(b' ');
        size_start
    }

    fn write_owner(&self, account: Account, width: usize, ledger: &mut Ledger, out: &mut Vec<u8>) {
        let owner = ledger.owners.get(account, self.owners);
        if owner.named {
            write_left(&owner.text, owner.width, width, out);
        } else {
            write_right(&owner.text, owner.width, width, out);
        }
        out.push(b' ');
    }

    /// Appends the line that sums up the allocated space.
    pub fn write_total(&self, parts: &[Part], block: &mut Block) {
        let total: u128 = parts
            .iter()
            .flat_map(Part::entries)
            .filter_map(|e| e.facts())
            .map(|f| u128::from(f.blocks))
            .sum();
        if self.options.dired {
            block.text.extend_from_slice(b"  ");
        }
        block.text.extend_from_slice(b"total ");
        self.options.block_size.write(total * 512, self.options.locale, &mut block.text);
        block.text.push(self.options.line_end);
    }

    /// Whether a listing of a directory begins with a total.
    pub fn shows_total(&self) -> bool {
        self.is_long() || self.options.columns.blocks
    }
}

impl Largest {
    fn add(&mut self, facts: &Facts) {
        // Every existing file has a link; a volume that does not count links reports 0.
        self.nlink = self.nlink.max(u64::from(facts.nlink)).max(1);
        self.blocks = self.blocks.max(facts.blocks);
        if facts.is_device() {
            self.devices = true;
            self.major = self.major.max(u64::from(major(facts.size)));
            self.minor = self.minor.max(u64::from(minor(facts.size)));
        } else {
            self.size = self.size.max(facts.size);
        }
    }
}

fn write_inode(entry: &EntryView<'_>, width: usize, out: &mut Vec<u8>) {
    match entry.facts() {
        Some(_) => write_number(entry.ino(), width, out),
        None => write_right(b"?", 1, width, out),
    }
    out.push(b' ');
}

/// Appends the type and permissions as ten characters, and the mark of an access control list where some entry has one.
fn write_mode(entry: &EntryView<'_>, marks_access: bool, out: &mut Vec<u8>) {
    let kind = match entry.kind() {
        FileKind::Directory => b'd',
        FileKind::Symlink => b'l',
        FileKind::Fifo => b'p',
        FileKind::Socket => b's',
        FileKind::BlockDevice => b'b',
        FileKind::CharDevice => b'c',
        FileKind::File => b'-',
        FileKind::Unknown => b'?',
    };
    out.push(kind);
    match entry.facts() {
        Some(facts) => out.extend(permission_text(facts.mode)),
        None => out.extend_from_slice(b"?????????"),
    }
    if marks_access {
        out.push(match entry.facts().map(|facts| facts.access) {
            None => b'?',
            Some(AccessMarker::None) => b' ',
            Some(AccessMarker::Context) => b'.',
            Some(AccessMarker::List) => b'+',
        });
    }
    out.push(b' ');
}

fn write_number(value: u64, width: usize, out: &mut Vec<u8>) {
    let taken = integer_width(value);
    if taken < width {
        out.extend(std::iter::repeat_n(b' ', width - taken));
    }
    write_integer(value, out);
}

fn write_right(text: &[u8], taken: usize, width: usize, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(taken)));
    out.extend_from_slice(text);
}

fn write_left(text: &[u8], taken: usize, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(taken)));
}

fn pad_before(start: usize, padding: usize, out: &mut Vec<u8>) {
    out.splice(start..start, std::iter::repeat_n(b' ', padding));
}
