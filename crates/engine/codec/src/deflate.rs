//! Compression by deflate.

/// The wrapper of deflate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrapper {
    /// Nothing.
    None,
    /// The header and the checksum of zlib (RFC 1950).
    Zlib,
}

/// Compresses bytes at a level of zlib.
pub(crate) fn deflated(bytes: &[u8], level: i32, wrapper: Wrapper) -> Vec<u8> {
    let mut deflate = zlib_rs::Deflate::new(level, wrapper == Wrapper::Zlib, 15);
    let mut out = vec![0; zlib_rs::compress_bound(bytes.len())];
    let status = deflate.compress(bytes, &mut out, zlib_rs::DeflateFlush::Finish);
    assert_eq!(status, Ok(zlib_rs::Status::StreamEnd), "there is room");
    out.truncate(deflate.total_out() as usize);
    out
}
