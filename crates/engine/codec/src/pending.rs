//! Decoded blocks that do not fit in the caller's buffer.

/// The part of a decoded block that has not been returned.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    memory: Vec<u8>,
    next: usize,
    end: usize,
}

impl Pending {
    /// Whether all has been returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// Moves bytes to `out`. Returns how many; none only if none are left.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> usize {
        let n = out.len().min(self.end - self.next);
        out[..n].copy_from_slice(&self.memory[self.next..self.next + n]);
        self.next += n;
        n
    }

    /// Calls `decode` with room for `most` bytes; it returns how many it has written. The room is `out` if that is
    /// large enough; otherwise it is here, and `out` gets the beginning. Returns the number of bytes in `out`. Nothing
    /// may be left from before.
    ///
    /// # Errors
    /// Those of `decode`.
    pub(crate) fn decode<E>(
        &mut self,
        out: &mut [u8],
        most: usize,
        decode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        debug_assert_eq!(self.next, self.end);
        if out.len() >= most {
            return decode(&mut out[..most]);
        }
        if self.memory.len() < most {
            self.memory.resize(most, 0);
        }
        (self.next, self.end) = (0, 0);
        self.end = decode(&mut self.memory[..most])?;
        Ok(self.take(out))
    }
}
