//! The output of one directory, packed by one worker and written by another.
//!
//! Some of the output depends on earlier output: the blank line above a heading, the reset before the first color,
//! the offsets reported to Emacs. A block records their positions in a trailer after its text, so that writing it is
//! little more than a copy.

/// A text, and the facts needed to write it.
#[derive(Debug, Default)]
pub struct Block {
    /// The text, without a blank line before the heading.
    pub text: Vec<u8>,
    /// Whether the text begins with a heading.
    pub headed: bool,
    /// Where the first color sequence is.
    pub first_color: Option<usize>,
    /// Bytes of color sequences in the text, which Emacs does not count.
    pub uncounted: usize,
    /// Start and end of names, for Emacs.
    pub names: Vec<(usize, usize)>,
    /// Start and end of the directory in the heading, for Emacs.
    pub heading: Option<(usize, usize)>,
}

/// Size of the trailer without the offsets of names: count of names, first color, heading, uncounted bytes, flags.
const TRAILER: usize = 8 * 6;
const ABSENT: u64 = u64::MAX;

impl Block {
    /// Appends a color sequence, which `write` writes.
    pub fn add_color(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        self.first_color.get_or_insert(start);
        write(&mut self.text);
        self.uncounted += self.text.len() - start;
    }

    /// The end of the text as Emacs counts.
    pub fn position(&self) -> usize {
        self.text.len() - self.uncounted
    }

    /// Appends the block to `out` in the form that [`Block::unpack`] reads.
    pub fn pack(self, out: &mut Vec<u8>) {
        let Block { text, headed, first_color, uncounted, names, heading } = self;
        if out.is_empty() {
            *out = text;
        } else {
            out.extend_from_slice(&text);
        }
        let mut put = |value: u64| out.extend_from_slice(&value.to_le_bytes());
        for (begin, end) in &names {
            put(*begin as u64);
            put(*end as u64);
        }
        put(names.len() as u64);
        put(first_color.map_or(ABSENT, |at| at as u64));
        put(heading.map_or(ABSENT, |(begin, _)| begin as u64));
        put(heading.map_or(ABSENT, |(_, end)| end as u64));
        put(uncounted as u64);
        put(u64::from(headed));
    }

    /// Reads what [`Block::pack`] wrote.
    pub fn unpack(packed: &[u8]) -> Unpacked<'_> {
        let (rest, trailer) = packed.split_at(packed.len().saturating_sub(TRAILER));
        let value = |index: usize| read(trailer, index);
        let names = value(0) as usize;
        let (text, offsets) = rest.split_at(rest.len().saturating_sub(names * 16));
        Unpacked {
            text,
            headed: value(5) == 1,
            uncounted: value(4),
            first_color: (value(1) != ABSENT).then_some(value(1) as usize),
            heading: (value(2) != ABSENT).then_some((value(2), value(3))),
            offsets,
        }
    }
}

fn read(bytes: &[u8], index: usize) -> u64 {
    bytes[index * 8..].first_chunk().map_or(ABSENT, |eight| u64::from_le_bytes(*eight))
}

/// A block as it is read.
#[derive(Debug)]
pub struct Unpacked<'a> {
    /// See [`Block::text`].
    pub text: &'a [u8],
    /// See [`Block::headed`].
    pub headed: bool,
    /// See [`Block::first_color`].
    pub first_color: Option<usize>,
    /// See [`Block::uncounted`].
    pub uncounted: u64,
    /// See [`Block::heading`].
    pub heading: Option<(u64, u64)>,
    offsets: &'a [u8],
}

impl Unpacked<'_> {
    /// Start and end of every name.
    pub fn names(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.offsets.len() / 16).map(|i| (read(self.offsets, 2 * i), read(self.offsets, 2 * i + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_as_they_were_packed() {
        for (headed, first_color, names, heading) in
            [(false, None, vec![], None), (true, Some(3), vec![(1, 2), (5, 9)], Some((0, 1)))]
        {
            let block = Block {
                text: b"some text".to_vec(),
                headed,
                first_color,
                uncounted: 4,
                names: names.clone(),
                heading,
            };
            let mut packed = Vec::new();
            block.pack(&mut packed);
            let unpacked = Block::unpack(&packed);
            assert_eq!(unpacked.text, b"some text");
            assert_eq!((unpacked.headed, unpacked.first_color, unpacked.uncounted), (headed, first_color, 4));
            assert_eq!(unpacked.heading, heading.map(|(a, b)| (a as u64, b as u64)));
            let expected: Vec<_> = names.into_iter().map(|(a, b)| (a as u64, b as u64)).collect();
            assert_eq!(unpacked.names().collect::<Vec<_>>(), expected);
        }
    }
}
