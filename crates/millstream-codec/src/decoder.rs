//! Decoder.
use crate::codec::Codec;
use crate::gzip::GzipReader;
use std::io::{self, Read};
/// Decoder.
#[derive(Debug)]
pub struct Decoder<R>(GzipReader<R>);
impl<R: Read> Decoder<R> {
    /// New.
    pub fn new(_codec: Codec, input: R) -> Self {
        Decoder(GzipReader::new(input))
    }
}
impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}
