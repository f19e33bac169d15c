//! The output of listings: one writer for all workers.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millstream_walk::Cancellation;

use super::block::{Block, Unpacked};
use super::color::Colors;
use millstream_text::size::write_integer;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// When buffered output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// When the buffer is full.
    Full,
    /// After every piece, so that a person sees it.
    Always,
}

/// The output of a listing. The first error ends the traversal and is kept.
pub struct Output<'a> {
    flush: Flush,
    cancellation: Cancellation,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    writer: Box<dyn Write + Send + 'a>,
    buffer: Vec<u8>,
    position: u64,
    headed: bool,
    colored: bool,
    names: Vec<(u64, u64)>,
    headings: Vec<(u64, u64)>,
    error: Option<io::Error>,
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("flush", &self.flush).finish_non_exhaustive()
    }
}

impl<'a> Output<'a> {
    /// Output to `writer`; `cancellation` is called when it fails.
    pub fn new(writer: Box<dyn Write + Send + 'a>, flush: Flush, cancellation: Cancellation) -> Self {
        let state = State {
            writer,
            buffer: Vec::with_capacity(WRITE_BYTES),
            position: 0,
            headed: false,
            colored: false,
            names: Vec::new(),
            headings: Vec::new(),
            error: None,
        };
        Output { flush, cancellation, state: Mutex::new(state) }
    }

    /// Whether output should be written without delay.
    pub fn is_immediate(&self) -> bool {
        self.flush == Flush::Always
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `bytes`, whole.
    pub fn write(&self, bytes: &[u8]) {
        let mut state = self.lock();
        state.put(bytes);
        self.after_write(&mut state);
    }

    /// Writes a block that was packed.
    pub fn write_block(&self, packed: &[u8], colors: Option<&Colors>) {
        let block = Block::unpack(packed);
        let mut state = self.lock();
        if block.headed && state.headed {
            state.put(b"\n");
        }
        state.headed |= block.headed;
        state.put_text(&block, colors);
        self.after_write(&mut state);
    }

    fn after_write(&self, state: &mut State<'_>) {
        if self.flush == Flush::Always {
            state.write_out();
        }
        if state.error.is_some() {
            self.cancellation.cancel();
        }
    }

    /// Writes the rest, with the trailers that colors and Emacs need.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(self, colors: Option<&Colors>, dired_style: Option<&str>) -> io::Result<()> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(colors) = colors.filter(|_| state.colored) {
            let mut farewell = Vec::new();
            colors.write_farewell(&mut farewell);
            state.put(&farewell);
        }
        if let Some(style) = dired_style {
            state.put_dired(style);
        }
        state.write_out();
        let flushed = state.writer.flush();
        state.error.map_or(flushed, Err)
    }
}

impl State<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.position += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > WRITE_BYTES {
            self.write_out();
            if bytes.len() >= WRITE_BYTES {
                return self.write_through(bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn put_text(&mut self, block: &Unpacked<'_>, colors: Option<&Colors>) {
        let mut text = block.text;
        let base = self.position;
        if let (false, Some(at), Some(colors)) = (self.colored, block.first_color, colors) {
            self.colored = true;
            let (before, after) = text.split_at(at);
            self.put(before);
            let mut reset = Vec::new();
            colors.write_end(&mut reset);
            self.put(&reset);
            text = after;
        }
        self.put(text);
        // Emacs does not count colors.
        self.position = base + block.text.len() as u64 - block.uncounted;
        self.names.extend(block.names().map(|(begin, end)| (base + begin, base + end)));
        self.headings.extend(block.heading.map(|(begin, end)| (base + begin, base + end)));
    }

    fn put_dired(&mut self, style: &str) {
        let mut lines = Vec::new();
        for (label, offsets) in [("//DIRED//", &self.names), ("//SUBDIRED//", &self.headings)] {
            if offsets.is_empty() {
                continue;
            }
            lines.extend_from_slice(label.as_bytes());
            for (begin, end) in offsets {
                lines.push(b' ');
                write_integer(*begin, &mut lines);
                lines.push(b' ');
                write_integer(*end, &mut lines);
            }
            lines.push(b'\n');
        }
        lines.extend_from_slice(b"//DIRED-OPTIONS// --quoting-style=");
        lines.extend_from_slice(style.as_bytes());
        lines.push(b'\n');
        self.put(&lines);
    }

    fn write_out(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.write_through(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
    }

    fn write_through(&mut self, mut bytes: &[u8]) {
        while self.error.is_none() && !bytes.is_empty() {
            match self.writer.write(bytes) {
                Ok(0) => self.error = Some(ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => self.error = Some(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn headings_are_separated_by_blank_lines() {
        let mut written = Vec::new();
        let output = Output::new(Box::new(&mut written), Flush::Full, Cancellation::default());
        for (text, headed) in [("f\n\n", false), ("a:\n", true), ("b:\n", true)] {
            let mut packed = Vec::new();
            Block { text: text.into(), headed, ..Block::default() }.pack(&mut packed);
            output.write_block(&packed, None);
        }
        output.finish(None, None).expect("memory");
        assert_eq!(written, b"f\n\na:\n\nb:\n");
    }

    #[test]
    fn the_first_color_is_preceded_by_a_reset() {
        let mut written = Vec::new();
        let colors = Colors::default();
        let output = Output::new(Box::new(&mut written), Flush::Full, Cancellation::default());
        for _ in 0..2 {
            let mut packed = Vec::new();
            Block { text: b"x C".to_vec(), first_color: Some(2), ..Block::default() }.pack(&mut packed);
            output.write_block(&packed, Some(&colors));
        }
        output.finish(Some(&colors), None).expect("memory");
        assert_eq!(written, b"x \x1b[0mCx C");
    }

    #[test]
    fn a_failed_write_ends_the_traversal() {
        let cancellation = Cancellation::default();
        let output = Output::new(Box::new(Full), Flush::Always, cancellation.clone());
        output.write(b"x");
        assert!(cancellation.is_cancelled());
        assert_eq!(output.finish(None, None).map_err(|e| e.kind()), Err(ErrorKind::StorageFull));
    }
}
