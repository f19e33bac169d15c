//! Points in a gzip file where decoding may begin, from the indexes of other programs.

use crate::index::NotAnIndex;
use crate::inflate::WINDOW;

/// The contents of another program's index. It refers to the bytes of that index, which may be large.
#[derive(Debug)]
pub struct Points<'a> {
    /// Their offsets increase, both in the file and in the decoded bytes.
    pub(crate) points: Vec<Point<'a>>,
    /// Bytes of the file, if the index has the number.
    pub(crate) size: Option<u64>,
    /// Decoded bytes, if the index has the number.
    pub(crate) length: Option<u64>,
}

/// A point where decoding may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<'a> {
    /// Bit of the file.
    pub(crate) bit: u64,
    /// Decoded offset.
    pub(crate) start: u64,
    pub(crate) window: PointWindow<'a>,
}

/// The decoded bytes before a point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PointWindow<'a> {
    /// None are given, as at the beginning of a member.
    Nothing,
    /// Uncompressed.
    Plain(&'a [u8]),
    /// Compressed by zlib.
    Zlib(&'a [u8]),
}

impl PointWindow<'_> {
    /// The bytes, at most [`WINDOW`]; `None` if they cannot be decoded.
    pub(crate) fn decoded(self) -> Option<Vec<u8>> {
        match self {
            PointWindow::Nothing => Some(Vec::new()),
            PointWindow::Plain(window) => Some(window[window.len().saturating_sub(WINDOW)..].to_vec()),
            PointWindow::Zlib(window) => {
                let mut out = vec![0; WINDOW];
                let mut inflate = zlib_rs::Inflate::new(true, 15);
                let status = inflate.decompress(window, &mut out, zlib_rs::InflateFlush::Finish);
                out.truncate(inflate.total_out() as usize);
                (status == Ok(zlib_rs::Status::StreamEnd)).then_some(out)
            }
        }
    }
}

/// Takes fields from the front of an index.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], NotAnIndex> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(NotAnIndex)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], NotAnIndex> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(NotAnIndex)?;
        self.0 = rest;
        Ok(*taken)
    }
}

/// The bit that is this many bits before a byte.
pub(crate) fn bit_before(byte: u64, bits: u32) -> Result<u64, NotAnIndex> {
    let bit = byte.checked_mul(8).and_then(|bit| bit.checked_sub(bits.into()));
    bit.filter(|_| bits < 8).ok_or(NotAnIndex)
}
