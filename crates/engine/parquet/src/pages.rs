//! Whether Spark's reader accepts the pages of a column chunk.
//!
//! The library is less strict than Spark's reader: it accepts levels in an encoding that Spark refuses, skips unknown
//! pages, and reads no more rows than requested, however many there are.

use std::ops::Range;

use crate::thrift::{
    DATA_PAGE_HEADER, DATA_PAGE_HEADER_V2, DICTIONARY_PAGE_HEADER, Fields, PAGE_HEADER, Type, Visit, Walk,
};

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

// Encodings.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const BIT_PACKED: i64 = 4;

/// The properties of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Number of its values.
    pub(crate) rows: i64,
    /// Whether rows may have no value.
    pub(crate) is_nullable: bool,
    pub(crate) is_compressed: bool,
}

/// The header of a page; numbers that are missing are -1.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: i64,
    uncompressed: i64,
    compressed: i64,
    /// The numbers of the header for its kind.
    numbers: [i64; 7],
}

/// Whether these bytes of a file are the pages of a chunk, each with at most `most` bytes when decompressed.
pub(crate) fn are_pages(file: &[u8], range: Range<usize>, chunk: Chunk, most: u32) -> bool {
    rows(file, range, chunk, most) == Some(chunk.rows)
}

/// The rows of all pages; `None` if one is unusual.
fn rows(file: &[u8], range: Range<usize>, chunk: Chunk, most: u32) -> Option<i64> {
    let mut walk = Walk::new(file.get(range)?);
    let (mut rows, mut is_first) = (0_i64, true);
    while !walk.is_at_end() {
        let header = Header::read(&mut walk)?;
        let page = walk.take(usize::try_from(header.compressed).ok()?)?;
        let is_known = header.uncompressed <= i64::from(most) && header.has_sizes(chunk, page);
        rows += header.rows(chunk, is_first).filter(|&count| is_known && count >= 0)?;
        is_first = false;
    }
    Some(rows)
}

impl Header {
    fn read(walk: &mut Walk<'_>) -> Option<Self> {
        let mut header = Header { kind: -1, uncompressed: -1, compressed: -1, numbers: [-1; 7] };
        walk.structure(PAGE_HEADER, |walk, field| {
            match (field, header.kind) {
                (1, _) => header.kind = walk.integer()?,
                (2, _) => header.uncompressed = walk.integer()?,
                (3, _) => header.compressed = walk.integer()?,
                (5, DATA) => header.read_numbers(walk, DATA_PAGE_HEADER)?,
                (7, DICTIONARY) => header.read_numbers(walk, DICTIONARY_PAGE_HEADER)?,
                (8, DATA_V2) => header.read_numbers(walk, DATA_PAGE_HEADER_V2)?,
                _ => return Some(Visit::Skip),
            }
            Some(Visit::Taken)
        })?;
        Some(header)
    }

    fn read_numbers(&mut self, walk: &mut Walk<'_>, fields: Fields) -> Option<()> {
        walk.structure(fields, |walk, field| {
            let is_integer = fields.iter().any(|(known, kind)| *known == field && matches!(kind, Type::Int));
            let number = usize::try_from(field).ok().and_then(|field| self.numbers.get_mut(field));
            let Some(number) = number.filter(|_| is_integer) else { return Some(Visit::Skip) };
            *number = walk.integer()?;
            Some(Visit::Taken)
        })
    }

    /// Whether the page has as many bytes as its header says. The library decompresses any number of bytes.
    fn has_sizes(&self, chunk: Chunk, page: &[u8]) -> bool {
        let levels = if self.kind == DATA_V2 { self.numbers[5] } else { 0 };
        let plain = page.len() as i64 == self.uncompressed;
        if !chunk.is_compressed || self.kind == DATA_V2 && plain {
            return plain;
        }
        let after_levels = usize::try_from(levels).ok().and_then(|levels| page.get(levels..));
        // Snappy begins with the length.
        let length = after_levels.and_then(|snappy| Walk::new(snappy).varint());
        length.and_then(|length| i64::try_from(length).ok()) == Some(self.uncompressed - levels)
    }

    /// The number of rows; `None` if something is unusual.
    fn rows(&self, chunk: Chunk, is_first: bool) -> Option<i64> {
        match (self.kind, self.numbers) {
            (DATA, [_, count, _, definition, repetition, ..]) => {
                let is_known = (definition == RLE || !chunk.is_nullable)
                    && [RLE, BIT_PACKED].contains(&definition)
                    && [RLE, BIT_PACKED].contains(&repetition);
                is_known.then_some(count)
            }
            (DICTIONARY, [_, count, encoding, ..]) => {
                (is_first && count >= 0 && [PLAIN, PLAIN_DICTIONARY].contains(&encoding)).then_some(0)
            }
            (DATA_V2, [_, count, nulls, rows, _, definition, repetition]) => {
                let is_known = rows == count
                    && (0..=count).contains(&nulls)
                    && (chunk.is_nullable || nulls == 0)
                    && repetition == 0
                    && (0..=self.compressed.min(self.uncompressed)).contains(&definition)
                    && (definition > 0) == (chunk.is_nullable && count > 0);
                is_known.then_some(count)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: Chunk = Chunk { rows: 3, is_nullable: true, is_compressed: true };
    const V1: &[u8] = b"\x15\0\x15\x08\x15\x04\x2c\x15\x06\x15\0\x15\x06\x15\x06\0\0\x04y";
    const DICTIONARY_PAGE: &[u8] = b"\x15\x04\x15\x08\x15\x04\x4c\x15\x02\x15\0\0\0\x04y";
    const V2: &[u8] = b"\x15\x06\x15\x08\x15\x04\x5c\x15\x06\x15\x02\x15\x06\x15\0\x15\x02\x15\0\0\0x\x03";

    fn are(pages: &[u8], chunk: Chunk) -> bool {
        are_pages(pages, 0..pages.len(), chunk, 4)
    }

    /// A page with another byte.
    fn with(page: &[u8], at: usize, byte: u8) -> Vec<u8> {
        let mut page = page.to_vec();
        page[at] = byte;
        page
    }

    #[test]
    fn pages_are_walked() {
        for page in [V1, V2] {
            assert!(are(page, CHUNK), "{page:?}");
            assert!(are(&[DICTIONARY_PAGE, page].concat(), CHUNK), "{page:?}");
            let two = [page, page].concat();
            assert!(are(&two, Chunk { rows: 6, ..CHUNK }) && !are(&two, CHUNK), "as many rows as there are");
            assert!(!are(&[page, DICTIONARY_PAGE].concat(), CHUNK), "a dictionary is the first page");
            assert!(!are_pages(page, 0..page.len(), CHUNK, 3), "too large");
            assert!(!are_pages(page, 0..page.len() - 1, CHUNK, 4), "cut off");
            assert!(!are_pages(page, 0..page.len() + 1, CHUNK, 4), "beyond the end");
            assert!(!are(page, Chunk { is_compressed: false, ..CHUNK }), "it is as long as it says");
            assert!(!are(&with(page, 1, 2), CHUNK), "another kind of page");
            assert!(!are(&with(page, 5, 3), CHUNK), "a negative size");
            assert!(!are(&with(page, 3, 6), CHUNK), "another size than that of what is compressed");
            assert!(!are(&with(page, 4, 0x16), CHUNK), "an i64");
        }
        assert!(!are(b"\x15\0\0", CHUNK), "without sizes");
        assert!(are(b"", Chunk { rows: 0, ..CHUNK }));
    }

    #[test]
    fn levels_are_those_that_spark_reads() {
        let required = Chunk { is_nullable: false, ..CHUNK };
        // The encoding of definition levels is BIT_PACKED.
        assert!(!are(&with(V1, 12, 8), CHUNK) && are(&with(V1, 12, 8), required));
        assert!(!are(&with(V1, 12, 0), required) && !are(&with(V1, 14, 0), CHUNK), "PLAIN");
        for (at, byte) in [(10, 8), (10, 1), (12, 4), (16, 0), (16, 6), (18, 2)] {
            assert!(!are(&with(V2, at, byte), CHUNK), "nulls, rows, bytes of levels: {at}");
        }
        assert!(!are(V2, required));
    }
}
