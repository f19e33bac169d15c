//! Decoders that can start in the middle of a file.

use std::io::{self, Read};

/// A decoder that can start between the frames or independent blocks of a file.
///
/// A read returns bytes of one frame or block only, so that callers know where it ends.
pub(crate) trait Restart: Read {
    /// The offset in the file after the last byte that was used.
    fn offset(&self) -> u64;

    /// The few bytes of state for a decoder that starts at [`Restart::offset`]; `None` if no decoder can start there.
    /// This reads the end of a frame.
    ///
    /// # Errors
    /// As those of a read.
    fn restart_state(&mut self) -> io::Result<Option<Vec<u8>>>;
}
