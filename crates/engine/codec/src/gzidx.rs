//! Reads indexes of indexed_gzip (<https://github.com/pauldmccarthy/indexed_gzip>), which rapidgzip
//! (<https://github.com/mxmlnkn/rapidgzip>) writes as well.
//!
//! The format is defined by `zran_export_index` in the former's `zran.c`. Numbers are little-endian.
//!
//! ```text
//! "GZIDX", u8 version, u8 0, u64 size of the file, u64 decoded length, u32 spacing, u32 length of each window,
//! u32 number of points
//! for each point   u64 offset of the first whole byte, u64 decoded offset, u8 bits of the byte before it,
//!                  version 1: u8 1 if it has a window; in version 0 all have one except the first
//! windows          as they are
//! ```
//!
//! A point without a window is after the header of a member, or, from rapidgzip, at the end of the file.

use crate::index::NotAnIndex;
use crate::points::{Fields, Point, PointWindow, Points, bit_before};

pub(crate) const MAGIC: &[u8; 5] = b"GZIDX";
/// Bytes of a point in version 0.
const ENTRY: usize = 17;

pub(crate) fn parse(index: &[u8]) -> Result<Points<'_>, NotAnIndex> {
    let mut fields = Fields(index);
    fields.bytes(MAGIC.len())?;
    let [version, _flags] = fields.array()?;
    let (size, length) = (u64::from_le_bytes(fields.array()?), u64::from_le_bytes(fields.array()?));
    let _spacing: [u8; 4] = fields.array()?;
    let (window, count) = (u32::from_le_bytes(fields.array()?), u32::from_le_bytes(fields.array()?));
    let entry = ENTRY + usize::from(version);
    if version > 1 || window == 0 || fields.0.len() / entry < count as usize {
        return Err(NotAnIndex);
    }
    let (mut entries, mut windows) = (Fields(fields.bytes(count as usize * entry)?), fields);
    let mut points = Vec::with_capacity(count as usize);
    for i in 0..count {
        let (byte, start) = (u64::from_le_bytes(entries.array()?), u64::from_le_bytes(entries.array()?));
        let [bits] = entries.array()?;
        let has_window = if version == 0 { i > 0 } else { entries.array()? != [0] };
        let window = if has_window {
            PointWindow::Plain(windows.bytes(window as usize)?)
        } else {
            PointWindow::Nothing
        };
        points.push(Point { bit: bit_before(byte, bits.into())?, start, window });
    }
    Ok(Points { points, size: Some(size), length: Some(length) })
}
