//! The lines of a part of a file whose blocks can be decoded one by one.
//!
//! Nothing says where in the decoded bytes a block begins, or how the block before it ends. So a part has the lines up
//! to the first separator after its end, and not those up to the first separator after its start. Each part searches
//! for both in the same way: from the beginning of a block, as if there were nothing before it. So each line is in one
//! part, also if a separator is in two blocks.
//!
//! Nothing says either how much of the text is lost with a damaged block. After one, the lines are those after the
//! first separator, as at the beginning of a part.

use std::io::{self, Read};

use millstream_codec::Bzip2Blocks;

use crate::lines::Separator;

/// Reads the decoded bytes of the lines of a part.
#[derive(Debug)]
pub(crate) struct DividedLines<R> {
    blocks: Bzip2Blocks<R>,
    search: Search,
    stage: Stage,
    block: Vec<u8>,
    /// How much of the block has been returned or is passed over.
    next: usize,
    /// How much of the block belongs to the part.
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the first separator, which ends a line of the part before.
    Start,
    Inside,
    /// After the blocks of the part, in its last line.
    LastLine,
    End,
}

impl<R: Read> DividedLines<R> {
    /// The part between two offsets of the file; `input` reads the file from `start` on. The separator must be
    /// [found from anywhere](Separator::is_found_from_anywhere).
    pub(crate) fn new(input: R, start: u64, end: u64, separator: Separator) -> Self {
        DividedLines {
            blocks: Bzip2Blocks::new(input, start, end),
            search: Search { separator, tail: Vec::new() },
            stage: if start == 0 { Stage::Inside } else { Stage::Start },
            block: Vec::new(),
            next: 0,
            end: 0,
        }
    }

    /// Takes the next block.
    fn advance(&mut self) -> io::Result<()> {
        (self.next, self.end) = (0, 0);
        let is_inside = self.blocks.next_block(&mut self.block).inspect_err(|_| self.begin_anew())?;
        self.end = self.block.len();
        match (self.stage, is_inside) {
            (_, None) | (Stage::End, _) => (self.stage, self.end) = (Stage::End, 0),
            (Stage::Inside, Some(true)) => {}
            (Stage::Start, Some(true)) => match self.search.end_in(&self.block) {
                Some(at) => (self.stage, self.next) = (Stage::Inside, at),
                None => self.next = self.end,
            },
            (Stage::Start, Some(false)) => match self.search.end_of_begun(&self.block) {
                Some(at) => {
                    self.next = at;
                    self.begin_last_line();
                }
                // All of the part is in a line that begins before it.
                None => (self.stage, self.next) = (Stage::End, self.end),
            },
            (Stage::Inside, Some(false)) => self.begin_last_line(),
            (Stage::LastLine, Some(_)) => self.find_end(),
        }
        Ok(())
    }

    /// The next block does not continue the last one.
    fn begin_anew(&mut self) {
        self.stage = match self.stage {
            Stage::Start | Stage::Inside => Stage::Start,
            Stage::LastLine | Stage::End => Stage::End,
        };
        self.search.tail.clear();
    }

    fn begin_last_line(&mut self) {
        self.stage = Stage::LastLine;
        self.search.tail.clear();
        self.find_end();
    }

    fn find_end(&mut self) {
        if let Some(at) = self.search.end_in(&self.block) {
            (self.stage, self.end) = (Stage::End, at);
        }
    }
}

impl<R: Read> Read for DividedLines<R> {
    /// # Errors
    /// Those of the input, and those of a [`DecodeError`](millstream_codec::DecodeError). After one of damage that has
    /// not been passed over come the lines after it, but not the rest of the line that it cuts.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.next == self.end {
            if self.stage == Stage::End {
                return self.blocks.passed_over().map_or(Ok(0), Err);
            }
            self.advance()?;
        }
        let n = out.len().min(self.end - self.next);
        out[..n].copy_from_slice(&self.block[self.next..self.next + n]);
        self.next += n;
        Ok(n)
    }
}

/// A search for the first separator in blocks that follow each other.
#[derive(Debug)]
struct Search {
    separator: Separator,
    /// The last bytes of the blocks so far, with which a separator may begin.
    tail: Vec<u8>,
}

impl Search {
    /// Where in the next block the first separator ends.
    fn end_in(&mut self, block: &[u8]) -> Option<usize> {
        let whole = || self.separator.find(block, 0, false).map(|found| found.end);
        let end = self.end_of_begun(block).or_else(whole);
        if end.is_none() {
            let most = self.separator.max_overlap();
            self.tail.extend_from_slice(&block[block.len().saturating_sub(most)..]);
            self.tail.drain(..self.tail.len().saturating_sub(most));
        }
        end
    }

    /// The same for a separator that begins before the block.
    fn end_of_begun(&self, block: &[u8]) -> Option<usize> {
        let before = self.tail.len();
        let first = &block[..block.len().min(self.separator.max_overlap())];
        let found = self.separator.find(&[&self.tail, first].concat(), 0, false)?;
        (found.start < before).then(|| found.end - before)
    }
}
