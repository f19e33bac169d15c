//! Buffers of a thread.

/// Lines are written once they reach this many bytes.
const LINES: usize = 8 << 10;

/// Buffers of a thread that copies or synchronizes.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Lines and records not written yet.
    pub(crate) lines: Vec<u8>,
    /// Data being copied.
    pub(crate) data: Vec<u8>,
}

impl Buffers {
    /// Passes the lines on if there are enough of them.
    pub(crate) fn write_some(&mut self, write: impl FnOnce(&[u8])) {
        if self.lines.len() >= LINES {
            self.write(write);
        }
    }

    /// Passes the lines on.
    pub(crate) fn write(&mut self, write: impl FnOnce(&[u8])) {
        if !self.lines.is_empty() {
            write(&self.lines);
            self.lines.clear();
        }
    }
}
