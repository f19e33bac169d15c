//! Names with their quotes, colors, hyperlinks and indicators.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use millstream_vfs::FileKind;

use super::block::Block;
use super::color::{Colors, Role, Subject, Target};
use super::options::{Dereference, Indicator, Layout, ListOptions};
use super::rows::{EntryView, LinkState};
use millstream_text::quote::{Colon, Quoter, QuotingStyle};

/// Whether unquoted names are indented by the width of a quote, to line up with those that are quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// They are not.
    Flush,
    /// They are.
    PastQuotes,
}

/// Writes names for one listing.
#[derive(Debug)]
pub struct Painter<'a> {
    options: &'a ListOptions,
    quoter: Quoter,
}

/// A name about to be written.
struct Text<'a> {
    name: &'a [u8],
    color: Option<&'a [u8]>,
    /// Absolute path that the name links to.
    link: Option<PathBuf>,
    alignment: Alignment,
    /// Whether it is indented where it has no quotes; the target of a link is not.
    indents: bool,
    /// Columns before the name, for lines that wrap.
    start_column: usize,
}

impl<'a> Painter<'a> {
    /// A painter for listings with these options.
    pub fn new(options: &'a ListOptions, quoter: Quoter) -> Self {
        Painter { options, quoter }
    }

    /// The quoter of names.
    pub fn quoter(&self) -> &Quoter {
        &self.quoter
    }

    /// Whether names are aligned if some names of a directory have quotes.
    pub fn aligns_quotes(&self) -> bool {
        let layout = match self.options.layout {
            Layout::Long => true,
            Layout::Columns | Layout::Across => self.options.line_width > 0,
            Layout::OnePerLine | Layout::Commas => false,
        };
        layout
            && matches!(
                self.quoter.style,
                QuotingStyle::Shell | QuotingStyle::ShellEscape | QuotingStyle::CMaybe
            )
    }

    /// Characters that names must not seem to have as indicators.
    fn special(&self) -> &'static [u8] {
        match self.options.indicator {
            Indicator::None | Indicator::Slash => b" ",
            Indicator::FileType => b" *=>@|",
            Indicator::Classify => b" =>@|",
        }
    }

    /// Columns of a name with its indicator; for a name without a width, added to
    /// [`millstream_text::quote::UNKNOWN_WIDTH`].
    pub fn width(&self, entry: &EntryView<'_>, alignment: Alignment, scratch: &mut Vec<u8>) -> usize {
        self.name_width(entry, alignment, scratch).wrapping_add(usize::from(self.indicator(entry).is_some()))
    }

    /// Columns of a name without its indicator.
    pub fn name_width(&self, entry: &EntryView<'_>, alignment: Alignment, scratch: &mut Vec<u8>) -> usize {
        scratch.clear();
        let shown = self.quoter.write_special(entry.name(), self.special(), scratch);
        shown.width.wrapping_add(usize::from(alignment == Alignment::PastQuotes && !shown.quoted))
    }

    /// Whether quoting changes the name.
    pub fn quotes(&self, name: &[u8], scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        self.quoter.write_special(name, self.special(), scratch).quoted
    }

    /// Begins a line, or an item of one, in the color of ordinary text.
    pub fn begin(&self, block: &mut Block) {
        if let Some(colors) = self.options.colors.as_ref().filter(|c| c.is_colored(Role::Normal)) {
            let normal = colors.sequence(Role::Normal).unwrap_or_default();
            block.add_color(|out| colors.write(normal, out));
        }
    }

    /// Appends the name of `entry`, in `directory` if names are links; returns how long it is.
    pub fn write_name(
        &self,
        entry: &EntryView<'_>,
        directory: Option<&Path>,
        alignment: Alignment,
        start_column: usize,
        block: &mut Block,
    ) -> usize {
        let color = self.options.colors.as_ref().and_then(|colors| colors.of(&self.subject(entry, colors)));
        let link = directory.map(|directory| self.absolute(directory, entry));
        self.write_text(
            &Text { name: entry.name(), color, link, alignment, indents: true, start_column },
            block,
        )
    }

    /// Appends the target of a link, as a name.
    pub fn write_target(
        &self,
        entry: &EntryView<'_>,
        target: &[u8],
        (alignment, directory): (Alignment, Option<&Path>),
        start_column: usize,
        block: &mut Block,
    ) {
        let color = self.options.colors.as_ref().and_then(|colors| colors.of(&target_subject(entry, target)));
        let link = directory.map(|directory| self.absolute(directory, entry));
        let names = block.names.len();
        self.write_text(&Text { name: target, color, link, alignment, indents: false, start_column }, block);
        block.names.truncate(names);
    }

    /// Appends the path of a directory as a heading shows it.
    pub fn write_heading(&self, path: &[u8], link: Option<&Path>, block: &mut Block) {
        if let Some(link) = link {
            self.write_link_start(link, &mut block.text);
        }
        let begin = block.position();
        self.quoter.write(path, Colon::Special, &mut block.text);
        if self.options.dired {
            block.heading = Some((begin, block.position()));
        }
        if link.is_some() {
            block.text.extend_from_slice(LINK_END);
        }
    }

    fn write_text(&self, text: &Text<'_>, block: &mut Block) -> usize {
        let colors = self.options.colors.as_ref();
        // The name is quoted first to see whether it gets quotes; it nearly never does.
        let start = block.text.len();
        let shown = self.quoter.write_special(text.name, self.special(), &mut block.text);
        let length = block.text.len() - start;
        let padded = text.indents && text.alignment == Alignment::PastQuotes && !shown.quoted;
        let decorated = padded || text.color.is_some() || text.link.is_some();
        if decorated {
            let quoted = block.text.split_off(start);
            self.write_decorated(&quoted, text, padded, shown.quoted, block);
        }
        if self.options.dired {
            let end = block.position();
            block.names.push((end - length, end));
        }
        // GNU ls counts bytes here, and so clears lines that do not wrap.
        let width = length + usize::from(padded);
        if let Some(colors) = colors.filter(|c| text.color.is_some() || c.is_colored(Role::Normal)) {
            block.add_color(|out| colors.write_end(out));
            let line = self.options.line_width;
            if line > 0 && text.start_column / line != (text.start_column + width).saturating_sub(1) / line {
                block.add_color(|out| colors.append(Role::ClearLine, out));
            }
        }
        width
    }

    /// Appends a quoted name with its color, hyperlink and indent.
    fn write_decorated(
        &self,
        quoted: &[u8],
        text: &Text<'_>,
        padded: bool,
        has_quotes: bool,
        block: &mut Block,
    ) {
        if padded {
            block.text.push(b' ');
        }
        if let (Some(colors), Some(sequence)) = (&self.options.colors, text.color) {
            if colors.is_colored(Role::Normal) {
                block.add_color(|out| colors.write(b"", out));
            }
            block.add_color(|out| colors.write(sequence, out));
        }
        let Some(link) = &text.link else {
            block.text.extend_from_slice(quoted);
            return;
        };
        // Where names are aligned, the quotes are not part of the link.
        let outside = usize::from(text.alignment == Alignment::PastQuotes && has_quotes);
        let (before, rest) = quoted.split_at(outside);
        let (inside, after) = rest.split_at(rest.len() - outside);
        block.text.extend_from_slice(before);
        self.write_link_start(link, &mut block.text);
        block.text.extend_from_slice(inside);
        block.text.extend_from_slice(LINK_END);
        block.text.extend_from_slice(after);
    }

    /// The path of a hyperlink: absolute, with links resolved; it need not exist.
    fn absolute(&self, directory: &Path, entry: &EntryView<'_>) -> PathBuf {
        let name = entry.name();
        let path = directory.join(OsStr::from_bytes(name));
        let followed = matches!(self.options.dereference, Dereference::Always | Dereference::Operands);
        let may_be_link = followed || matches!(entry.kind(), FileKind::Symlink | FileKind::Unknown);
        if may_be_link || name == b"." || name == b".." || name.contains(&b'/') {
            resolve(&path)
        } else {
            path
        }
    }

    fn write_link_start(&self, link: &Path, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b]8;;file://");
        write_uri(self.options.hyperlink_host.as_deref().unwrap_or_default(), out);
        write_uri(link.as_os_str().as_bytes(), out);
        out.extend_from_slice(STRING_TERMINATOR);
    }

    fn subject<'e>(&self, entry: &EntryView<'e>, colors: &Colors) -> Subject<'e> {
        let facts = entry.facts();
        let state = facts.map_or(LinkState::NotRead, |f| f.link);
        let as_target = facts.filter(|_| colors.links_as_targets() && state == LinkState::Exists);
        let mode = as_target.map_or_else(|| facts.map(|f| f.mode), |f| Some(f.target_mode()));
        Subject {
            name: entry.name(),
            kind: mode.map_or(entry.kind(), FileKind::from_mode),
            attributes: facts.zip(mode).map(|(f, mode)| (mode, f.nlink)),
            is_capable: facts.is_some_and(|f| f.is_capable),
            target: match state {
                LinkState::NotRead | LinkState::Read => Target::Unknown,
                LinkState::Exists => Target::Exists,
                LinkState::Missing => Target::MissingFromLink,
            },
        }
    }

    /// The type indicator after a name.
    pub fn indicator(&self, entry: &EntryView<'_>) -> Option<u8> {
        self.indicator_of(entry.kind(), entry.facts().map_or(0, |f| f.mode))
    }

    /// The type indicator after the target of a link.
    pub fn target_indicator(&self, entry: &EntryView<'_>) -> Option<u8> {
        let mode = entry.facts().map_or(0, |f| f.target_mode());
        self.indicator_of(FileKind::from_mode(mode), mode)
    }

    fn indicator_of(&self, kind: FileKind, mode: u32) -> Option<u8> {
        let style = self.options.indicator;
        match kind {
            FileKind::Directory if style >= Indicator::Slash => Some(b'/'),
            FileKind::Symlink if style >= Indicator::FileType => Some(b'@'),
            FileKind::Fifo if style >= Indicator::FileType => Some(b'|'),
            FileKind::Socket if style >= Indicator::FileType => Some(b'='),
            FileKind::File if style == Indicator::Classify && mode & 0o111 != 0 => Some(b'*'),
            _ => None,
        }
    }
}

const STRING_TERMINATOR: &[u8] = b"\x1b\\";
const LINK_END: &[u8] = b"\x1b]8;;\x1b\\";

fn target_subject<'e>(entry: &EntryView<'_>, target: &'e [u8]) -> Subject<'e> {
    let facts = entry.facts();
    let mode = facts.map_or(0, |f| f.target_mode());
    let state = facts.map_or(LinkState::NotRead, |f| f.link);
    Subject {
        name: target,
        kind: FileKind::from_mode(mode),
        attributes: Some((mode, 0)),
        is_capable: false,
        target: if state == LinkState::Exists { Target::Exists } else { Target::Missing },
    }
}

/// Resolves links and dots in `path` as far as it exists; the rest is kept.
pub fn resolve(path: &Path) -> PathBuf {
    /// Links that are followed before the path counts as a loop.
    const MAX_LINKS: usize = 40;
    let mut pending: Vec<PathBuf> = vec![path.to_owned()];
    let mut resolved = std::env::current_dir().unwrap_or_default();
    let mut links = 0;
    while let Some(next) = pending.pop() {
        let mut components = next.components();
        let Some(first) = components.next() else { continue };
        pending.push(components.as_path().to_owned());
        match first {
            Component::RootDir => resolved = PathBuf::from("/"),
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                let candidate = resolved.join(name);
                match std::fs::read_link(&candidate) {
                    Ok(target) if links < MAX_LINKS => {
                        links += 1;
                        pending.push(target);
                    }
                    _ => resolved = candidate,
                }
            }
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

/// Bytes of a path, percent-encoded for a URI.
fn write_uri(path: &[u8], out: &mut Vec<u8>) {
    for &byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(byte),
            _ => {
                let digit = |d: u8| if d < 10 { b'0' + d } else { b'a' + d - 10 };
                out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_percent_encoded() {
        let mut out = Vec::new();
        write_uri(b"/a b/\xc3\xa9~", &mut out);
        assert_eq!(out, b"/a%20b/%c3%a9~");
    }

    #[test]
    fn paths_are_resolved_though_they_do_not_exist() {
        assert_eq!(resolve(Path::new("/no such/./x/../y")), Path::new("/no such/y"));
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }
}
