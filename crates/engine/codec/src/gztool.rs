//! Reads and writes indexes of gztool (<https://github.com/circulosmeos/gztool>).
//!
//! The format is described in that program's README.md, *Index file format*. Numbers are big-endian.
//!
//! ```text
//! u64 0, "gzipindx"              version 0; "gzipindX": version 1, which counts lines
//! [u32 kind of line feeds]       version 1: 0 for LF
//! u64 number of points, the same again; while the index is being written, they differ, and the second may be 2^64-1
//! for each point                 u64 decoded offset, u64 offset of the first whole byte, u32 bits of the byte before it,
//!                                u32 length of the window, the window as zlib compresses it, [u64 number of the line]
//! u64 decoded length             if the index is complete
//! [u64 number of lines]
//! ```

use std::io::{self, Read};

use crate::deflate::{Wrapper, deflated};
use crate::gzip::Members;
use crate::index::{Index, NotAnIndex, Window};
use crate::indexer::inflated;
use crate::inflate::WINDOW;
use crate::points::{Fields, Point, PointWindow, Points, bit_before};

const MAGIC: &[u8; 15] = b"\0\0\0\0\0\0\0\0gzipind";
const LINE_FEEDS: u32 = 0;
/// Compression of windows.
const WINDOW_LEVEL: i32 = 6;

pub(crate) fn is_index(index: &[u8]) -> bool {
    index.starts_with(MAGIC)
}

pub(crate) fn parse(index: &[u8]) -> Result<Points<'_>, NotAnIndex> {
    let mut fields = Fields(index);
    fields.bytes(MAGIC.len())?;
    let counts_lines = match fields.array()? {
        [b'x'] => false,
        [b'X'] => true,
        _ => return Err(NotAnIndex),
    };
    if counts_lines {
        fields.array::<4>()?;
    }
    let (have, size) = (u64::from_be_bytes(fields.array()?), u64::from_be_bytes(fields.array()?));
    let is_complete = have == size;
    let mut points = Vec::new();
    while if is_complete { (points.len() as u64) < have } else { !fields.0.is_empty() } {
        points.push(point(&mut fields, counts_lines)?);
    }
    let length = if is_complete { Some(u64::from_be_bytes(fields.array()?)) } else { None };
    Ok(Points { points, size: None, length })
}

fn point<'a>(fields: &mut Fields<'a>, counts_lines: bool) -> Result<Point<'a>, NotAnIndex> {
    let (start, byte) = (u64::from_be_bytes(fields.array()?), u64::from_be_bytes(fields.array()?));
    let bits = u32::from_be_bytes(fields.array()?);
    let window = match u32::from_be_bytes(fields.array()?) {
        0 => PointWindow::Nothing,
        length => PointWindow::Zlib(fields.bytes(length as usize)?),
    };
    if counts_lines {
        fields.array::<8>()?;
    }
    Ok(Point { bit: bit_before(byte, bits)?, start, window })
}

/// The index of a gzip file as gztool writes it. `open` opens the file at an offset.
///
/// # Errors
/// Those of the file; if it is not the indexed file; and if a window of the index is damaged.
pub fn to_gztool<R: Read>(index: &Index, open: impl Fn(u64) -> io::Result<R>) -> io::Result<Vec<u8>> {
    let points: Vec<_> = index.chunks.iter().filter(|chunk| chunk.window != Window::LeftOut).collect();
    let mut out = [&MAGIC[..], b"X", &LINE_FEEDS.to_be_bytes()].concat();
    let count = (points.len() as u64).to_be_bytes();
    out.extend([count, count].concat());
    let mut lines = 0;
    for chunk in points {
        let (bit, window) = match &chunk.window {
            Window::Stored(at) if !at.is_empty() => {
                let window = zlib(&index.windows[at.clone()]);
                (chunk.bit, window.ok_or_else(|| index.damaged(chunk.bit / 8))?)
            }
            // gztool's points begin after a member's header.
            _ => {
                let mut members = Members::at(chunk.bit / 8, open(chunk.bit / 8)?);
                members.enter()?;
                (members.input.offset() * 8, Vec::new())
            }
        };
        let byte = bit.div_ceil(8);
        out.extend(chunk.start.to_be_bytes());
        out.extend(byte.to_be_bytes());
        out.extend(((byte * 8 - bit) as u32).to_be_bytes());
        out.extend((window.len() as u32).to_be_bytes());
        out.extend(window);
        out.extend((lines + 1_u64).to_be_bytes());
        lines += chunk.lines;
    }
    out.extend(index.length.to_be_bytes());
    out.extend(index.lines.to_be_bytes());
    Ok(out)
}

/// A window of an index, which is raw deflate data, compressed by zlib; `None` if it cannot be decoded.
fn zlib(window: &[u8]) -> Option<Vec<u8>> {
    let mut plain = [0; WINDOW];
    Some(deflated(inflated(window, &mut plain)?, WINDOW_LEVEL, Wrapper::Zlib))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::index::Chunk;

    #[test]
    fn a_window_that_cannot_be_decoded_is_an_error() {
        let chunk = Chunk { bit: 80, start: 0, window: Window::Stored(0..1), crc: 0, lines: 0 };
        let windows = vec![0xff];
        let index = Index {
            chunks: vec![chunk],
            windows,
            length: 1,
            end: (1, 96),
            ..Index::of_nothing(Codec::Gzip, 12)
        };
        let error = to_gztool(&index, |_| Ok(&b""[..])).expect_err("no window");
        assert_eq!(error.to_string(), "damaged gzip data at byte 10: its index is damaged");
    }
}
