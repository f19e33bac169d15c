//! Standard output as the kernel has it.
//!
//! [`std::io::Stdout`] cuts each write at its last newline, and takes a closed descriptor for a successful write.

use std::io;

/// Standard output without a buffer; a write to a closed one fails.
#[derive(Clone, Copy, Debug)]
pub struct StandardOutput;

impl io::Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
