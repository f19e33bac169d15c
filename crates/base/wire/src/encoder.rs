//! Writing.

/// Appends values to an array.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// An empty array with room for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Encoder { bytes: Vec::with_capacity(bytes) }
    }

    /// Appends a number of one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a number of four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number of eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a signed number of eight bytes.
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a prefixed byte string.
    ///
    /// # Panics
    /// If it has 4 GiB or more, which no array of the JVM can hold.
    pub fn prefixed(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).expect("less than 4 GiB"));
        self.bytes(bytes);
    }

    /// Appends zeros up to a multiple of `alignment`, counted from the start of the array.
    pub fn pad_to(&mut self, alignment: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
    }

    /// The array.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;

    #[test]
    fn numbers_are_little_endian_and_strings_prefixed() {
        let mut encoder = Encoder::default();
        encoder.u8(0xfe);
        encoder.u32(0x0403_0201);
        encoder.pad_to(8);
        encoder.pad_to(8);
        encoder.u64(0x0807_0605_0403_0201);
        encoder.i64(-2);
        encoder.prefixed(b"ab");
        encoder.bytes(b"c");
        let bytes = encoder.into_bytes();
        let expected = b"\xfe\x01\x02\x03\x04\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\xfe\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0abc";
        assert_eq!(bytes, expected);

        let mut decoder = Decoder::new(&bytes);
        assert_eq!((decoder.u8(), decoder.u32()), (Ok(0xfe), Ok(0x0403_0201)));
        assert_eq!(decoder.bytes(3), Ok(&b"\0\0\0"[..]));
        assert_eq!((decoder.u64(), decoder.i64()), (Ok(0x0807_0605_0403_0201), Ok(-2)));
        assert_eq!((decoder.prefixed(), decoder.bytes(1)), (Ok(&b"ab"[..]), Ok(&b"c"[..])));
        assert_eq!(decoder.end(), Ok(()));
    }
}
