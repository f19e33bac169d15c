//! Reading.

/// The bytes do not match their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed bytes")]
pub struct Malformed;

/// Reads values in sequence. It never reads beyond the end, whatever a length says.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

/// Each method fails if too few bytes are left.
impl<'a> Decoder<'a> {
    /// Reads from the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes }
    }

    /// Reads a number of one byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    /// Reads a number of four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a signed number of eight bytes.
    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a prefixed byte string.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).map_err(|_| Malformed)?)
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if not everything has been read.
    pub fn end(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_short_is_malformed_and_consumes_nothing() {
        let mut short = Decoder::new(b"\x01\0\0");
        assert_eq!(short.u32(), Err(Malformed));
        assert_eq!(short.u64(), Err(Malformed));
        assert_eq!(short.i64(), Err(Malformed));
        assert_eq!(short.prefixed(), Err(Malformed));
        assert_eq!(short.bytes(4), Err(Malformed));
        assert_eq!(short.bytes(3), Ok(&b"\x01\0\0"[..]));
        assert_eq!(short.u8(), Err(Malformed));
    }

    #[test]
    fn a_length_beyond_the_end_is_malformed() {
        for bytes in [&b"\x02\0\0\0x"[..], b"\xff\xff\xff\xffx"] {
            assert_eq!(Decoder::new(bytes).prefixed(), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(Decoder::new(b"\0\0\0\0").prefixed(), Ok(&b""[..]));
    }

    #[test]
    fn trailing_bytes_are_malformed() {
        let mut decoder = Decoder::new(b"\x07x");
        assert_eq!(decoder.u8(), Ok(7));
        assert!(!decoder.is_empty());
        assert_eq!(decoder.clone().end(), Err(Malformed));
        assert_eq!(decoder.u8(), Ok(b'x'));
        assert!(decoder.is_empty());
        assert_eq!(decoder.end(), Ok(()));
    }
}
