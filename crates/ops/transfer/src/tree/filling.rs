//! Files whose contents come from elsewhere, part by part.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crc_fast::{CrcAlgorithm, Digest};
use millstream_vfs::Volume;

use super::copier::with_buffer;
use super::error::TreeError;
use super::root::Tree;
use super::staged::Staged;
use crate::transfer::parts::share;

/// Files of more bytes are filled in such parts.
const PART_BYTES: u64 = 32 << 20;
/// Large enough for few calls, small enough for a cache.
const PIECE_BYTES: usize = 256 << 10;

/// A file that has its contents.
#[derive(Debug)]
pub struct Filled<T> {
    /// What came with the first part.
    pub first: T,
    /// CRC-32C of the contents.
    pub checksum: u32,
}

/// Why a file does not have its contents.
#[derive(Debug)]
pub enum Unfilled<E> {
    /// They could not be read.
    Unread(E),
    /// They could not be written.
    Unwritten(TreeError),
}

/// Takes bytes and their offset; false if it wants no more.
pub type Take<'a> = &'a mut dyn FnMut(&[u8], u64) -> bool;

impl<V: Volume> Tree<V> {
    /// Fills a staged file; none if it is to be empty. `read` gets a range of its contents and a buffer, and passes on
    /// what it reads, in order; it is called by several threads at once, and fails if what it passes on is not taken.
    /// That is so after an error, and once the tree is cancelled.
    ///
    /// # Errors
    /// The first of any part. Then the file may have some of its contents.
    pub fn fill<T: Send, E: Send>(
        &self,
        staged: &Staged<V>,
        size: u64,
        read: impl Fn(Range<u64>, &mut [u8], Take<'_>) -> Result<T, E> + Sync,
    ) -> Result<Option<Filled<T>>, Unfilled<E>> {
        let parts = Mutex::new(Vec::new());
        let count = size.div_ceil(PART_BYTES);
        let fill_part = |part: u64, piece: &mut Vec<u8>| {
            let start = part * PART_BYTES;
            piece.resize(PIECE_BYTES, 0);
            let (mut sum, mut unwritten) = (Digest::new(CrcAlgorithm::Crc32Iscsi), None);
            let result = read(start..(start + PART_BYTES).min(size), piece, &mut |piece, offset| {
                sum.update(piece);
                unwritten = staged.write(piece, offset).err();
                unwritten.is_none() && !self.is_cancelled()
            });
            if let Some(error) = unwritten {
                return Err(Unfilled::Unwritten(error));
            }
            let result = result.map_err(Unfilled::Unread)?;
            parts.lock().unwrap_or_else(PoisonError::into_inner).push((part, sum, result));
            Ok(())
        };
        with_buffer(|piece| share(&self.copier.threads, count, piece, || true, fill_part))?;
        let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        parts.sort_by_key(|(part, ..)| *part);
        let mut parts = parts.into_iter();
        let Some((_, mut sum, first)) = parts.next() else { return Ok(None) };
        parts.for_each(|(_, next, _)| sum.combine(&next));
        Ok(Some(Filled { first, checksum: sum.finalize() as u32 }))
    }
}
