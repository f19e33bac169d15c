//! Names of versions (ETags) in few bytes.
//!
//! An index of a data set holds one for each of millions of objects, and most are the hexadecimal digits of an MD5 sum.
//! After a byte that tells the form follow the sum and what follows its digits, or the text. Java's half is
//! `io.millstream.hadoop.listing.Versions`.

use std::fmt::{self, Display, Formatter};

const TEXT: u8 = 0;
const SUM: u8 = 1;
const SUM_BYTES: usize = 16;

/// The name that an object store has for a version, an ETag or a version id, packed; the empty one stands for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tag(Vec<u8>);

impl Tag {
    /// Packs an ETag, with quotes or without.
    pub fn pack(etag: &[u8]) -> Self {
        let plain = etag.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(etag);
        if plain.is_empty() {
            return Tag::default();
        }
        let mut packed = Vec::with_capacity(1 + plain.len());
        match plain.split_at_checked(2 * SUM_BYTES).and_then(|(digits, rest)| Some((sum(digits)?, rest))) {
            Some((sum, rest)) => {
                packed.push(SUM);
                packed.extend_from_slice(&sum);
                packed.extend_from_slice(rest);
            }
            None => {
                packed.push(TEXT);
                packed.extend_from_slice(plain);
            }
        }
        Tag(packed)
    }

    /// A tag that is packed already.
    pub fn packed(bytes: &[u8]) -> Self {
        Tag(bytes.to_vec())
    }

    /// The packed form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it stands for none.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

/// The ETag, without quotes.
impl Display for Tag {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (sum, text) = match self.0.split_first() {
            Some((&SUM, rest)) => rest.split_at(rest.len().min(SUM_BYTES)),
            Some((_, text)) => (&[][..], text),
            None => return Ok(()),
        };
        for byte in sum {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(&String::from_utf8_lossy(text))
    }
}

/// The bytes of lower-case hexadecimal digits.
fn sum(digits: &[u8]) -> Option<[u8; SUM_BYTES]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut sum = [0; SUM_BYTES];
    for (byte, pair) in sum.iter_mut().zip(digits.chunks(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_packed_and_all_come_back() {
        let sum = "d41d8cd98f00b204e9800998ecf8427e";
        for (etag, bytes) in
            [(sum, 17), (&*format!("{sum}-3"), 19), (&*sum.to_uppercase(), 33), ("a-b", 4), (&sum[1..], 32)]
        {
            let tag = Tag::pack(format!("\"{etag}\"").as_bytes());
            assert_eq!(tag.as_bytes().len(), bytes, "{etag}");
            assert_eq!(tag.to_string(), etag);
            assert_eq!(Tag::pack(etag.as_bytes()), tag);
        }
        assert!(Tag::pack(b"").is_none());
        assert!(Tag::pack(b"\"\"").is_none());
    }
}
