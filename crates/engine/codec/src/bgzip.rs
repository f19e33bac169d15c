//! Reads indexes of bgzip: `bgzip --index` (<https://www.htslib.org/doc/bgzip.html>, *GZI FORMAT*).
//!
//! The indexed file consists of many small gzip members. Numbers are little-endian.
//!
//! ```text
//! u64 number of pairs
//! for each pair   u64 offset of a member, u64 decoded offset; there is none for the first member
//! ```

use crate::index::NotAnIndex;
use crate::points::{Fields, Point, PointWindow, Points, bit_before};

/// Bytes of a pair.
const PAIR: usize = 16;

pub(crate) fn parse(index: &[u8]) -> Result<Points<'_>, NotAnIndex> {
    let mut fields = Fields(index);
    let count = u64::from_le_bytes(fields.array()?);
    // An index has no other signature.
    if fields.0.len() % PAIR != 0 || (fields.0.len() / PAIR) as u64 != count {
        return Err(NotAnIndex);
    }
    let mut points = Vec::with_capacity(fields.0.len() / PAIR);
    while !fields.0.is_empty() {
        let (byte, start) = (u64::from_le_bytes(fields.array()?), u64::from_le_bytes(fields.array()?));
        points.push(Point { bit: bit_before(byte, 0)?, start, window: PointWindow::Nothing });
    }
    Ok(Points { points, size: None, length: None })
}
