//! Conditions on a row's bytes.
//!
//! In Spark's default collation strings compare byte for byte, and patterns match the text that Java makes of the bytes, so
//! these conditions are exact and may be negated and combined. If a condition has a literal, every matching row contains it:
//! the scan searches the whole buffer for the longest literal and evaluates the condition only on the lines that contain it.
//!
//! One condition, [`Predicate::MayContainIgnoringCase`], is not exact: it only drops rows that cannot match one of Spark's.

use memchr::memmem;

use crate::pattern::{Caseless, Pattern};

/// A condition on a row.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Every row matches.
    True,
    /// The row contains these bytes.
    Contains(Box<memmem::Finder<'static>>),
    /// The row starts with these bytes.
    StartsWith(Vec<u8>),
    /// The row ends with these bytes.
    EndsWith(Vec<u8>),
    /// The row equals these bytes.
    Equals(Vec<u8>),
    /// The row matches an SQL `LIKE` pattern whose only wildcard is `%`.
    Like(Like),
    /// The row contains text that matches a regular expression.
    Matches(Box<Pattern>),
    /// If the row is of ASCII, it contains a literal in upper or lower case.
    MayContainIgnoringCase(Box<Caseless>),
    /// The row has at least and at most so many characters, as Spark counts them.
    Length(u32, u32),
    /// The row consists of spaces, or is empty.
    Blank,
    /// All of these hold.
    And(Vec<Predicate>),
    /// At least one of these holds.
    Or(Vec<Predicate>),
    /// This does not hold.
    Not(Box<Predicate>),
}

/// The literals of a `LIKE` pattern that has at least one `%`.
#[derive(Clone, Debug)]
pub struct Like {
    /// Before the first `%`.
    pub prefix: Vec<u8>,
    /// Between two `%`, in order.
    pub middle: Vec<memmem::Finder<'static>>,
    /// After the last `%`.
    pub suffix: Vec<u8>,
}

impl Like {
    fn matches(&self, row: &[u8]) -> bool {
        let rest = row.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_suffix(&*self.suffix));
        let Some(mut rest) = rest else { return false };
        self.middle.iter().all(|part| {
            let found = part.find(rest);
            rest = found.map_or(&[][..], |at| &rest[at + part.needle().len()..]);
            found.is_some()
        })
    }
}

/// The bytes are not a well-formed predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed predicate")]
pub struct DecodeError;

impl Predicate {
    /// The row contains `bytes`.
    pub fn contains(bytes: &[u8]) -> Self {
        Predicate::Contains(Box::new(memmem::Finder::new(bytes).into_owned()))
    }

    /// Whether it holds for `row`.
    pub fn holds(&self, row: &[u8]) -> bool {
        match self {
            Predicate::True => true,
            Predicate::Contains(finder) => finder.find(row).is_some(),
            Predicate::StartsWith(bytes) => row.starts_with(bytes),
            Predicate::EndsWith(bytes) => row.ends_with(bytes),
            Predicate::Equals(bytes) => row == bytes,
            Predicate::Like(like) => like.matches(row),
            Predicate::Matches(pattern) => pattern.matches(row),
            Predicate::MayContainIgnoringCase(literal) => !row.is_ascii() || literal.find(row).is_some(),
            Predicate::Length(least, most) => (*least as usize..=*most as usize).contains(&characters(row)),
            Predicate::Blank => row.iter().all(|&byte| byte == b' '),
            Predicate::And(all) => all.iter().all(|predicate| predicate.holds(row)),
            Predicate::Or(any) => any.iter().any(|predicate| predicate.holds(row)),
            Predicate::Not(predicate) => !predicate.holds(row),
        }
    }

    /// The longest literal that every matching row must contain.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        let found = match self {
            Predicate::Contains(finder) => Some(finder.needle()),
            Predicate::StartsWith(bytes) | Predicate::EndsWith(bytes) | Predicate::Equals(bytes) => {
                Some(&**bytes)
            }
            Predicate::Like(like) => {
                let middle = like.middle.iter().map(memmem::Finder::needle);
                middle.chain([&*like.prefix, &*like.suffix]).max_by_key(|literal| literal.len())
            }
            Predicate::Matches(pattern) => Some(pattern.literal()),
            Predicate::And(all) => {
                all.iter().filter_map(Predicate::literal).max_by_key(|literal| literal.len())
            }
            Predicate::True
            | Predicate::MayContainIgnoringCase(_)
            | Predicate::Length(..)
            | Predicate::Blank
            | Predicate::Or(_)
            | Predicate::Not(_) => None,
        };
        found.filter(|literal| !literal.is_empty())
    }

    /// A literal that every matching row contains in upper or lower case, if the row is of ASCII.
    pub(crate) fn caseless(&self) -> Option<&Caseless> {
        match self {
            Predicate::MayContainIgnoringCase(literal) => Some(literal),
            Predicate::And(all) => all.iter().find_map(Predicate::caseless),
            _ => None,
        }
    }

    /// Decodes a predicate: the operator's letter, then its operands. A literal is a length (four bytes, big-endian) and its
    /// bytes; a list is a length and its members.
    ///
    /// ```text
    /// t  true          c LITERAL  contains      s LITERAL  starts with    e LITERAL  ends with   = LITERAL  equals
    /// & LIST  and      | LIST  or               ! P  not                  l LIST of LITERAL  like, the parts between %
    /// r LITERAL LITERAL  a regular expression, and a literal that every match contains, or an empty one
    /// i LITERAL  contains, ignoring the case of ASCII letters, or is not of ASCII
    /// n LENGTH LENGTH  has at least and at most so many characters     b  consists of spaces
    /// ```
    ///
    /// # Errors
    /// If the bytes are malformed, or a regular expression is too large.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        let predicate = decode(&mut rest, 0)?;
        if rest.is_empty() { Ok(predicate) } else { Err(DecodeError) }
    }
}

/// Decodes arbitrary bytes as a row and a predicate. A predicate that holds must have its literal in the row. The first byte is
/// the row's length, that byte included; the encoded predicate follows the row.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_predicate(bytes: &[u8]) {
    let (row, encoded) =
        bytes.split_at(bytes.first().map_or(0, |&length| (length as usize).min(bytes.len())));
    let Ok(predicate) = Predicate::decode(encoded) else { return };
    // The literal of a regular expression is the JVM's word.
    if !predicate.has_pattern() && predicate.holds(row) {
        assert!(predicate.literal().is_none_or(|literal| memmem::find(row, literal).is_some()));
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Predicate {
    fn has_pattern(&self) -> bool {
        match self {
            Predicate::Matches(_) => true,
            Predicate::And(members) | Predicate::Or(members) => members.iter().any(Predicate::has_pattern),
            Predicate::Not(negated) => negated.has_pattern(),
            _ => false,
        }
    }
}

/// Number of characters, as Spark's `UTF8String.numChars` counts them: a first byte tells how many bytes a character has,
/// whatever these are, and any other byte is a character.
fn characters(row: &[u8]) -> usize {
    if row.is_ascii() {
        return row.len();
    }
    let (mut count, mut at) = (0, 0);
    while let Some(first) = row.get(at) {
        count += 1;
        at += match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
    }
    count
}

/// Limit of nesting, well beyond what a query contains.
const MAX_DEPTH: usize = 64;

fn decode(rest: &mut &[u8], depth: usize) -> Result<Predicate, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError);
    }
    let operator = take(rest, 1)?[0];
    Ok(match operator {
        b't' => Predicate::True,
        b'c' => Predicate::contains(literal(rest)?),
        b's' => Predicate::StartsWith(literal(rest)?.to_vec()),
        b'e' => Predicate::EndsWith(literal(rest)?.to_vec()),
        b'=' => Predicate::Equals(literal(rest)?.to_vec()),
        b'&' => Predicate::And(list(rest, |rest| decode(rest, depth + 1))?),
        b'|' => Predicate::Or(list(rest, |rest| decode(rest, depth + 1))?),
        b'!' => Predicate::Not(Box::new(decode(rest, depth + 1)?)),
        b'l' => Predicate::Like(like(list(rest, |rest| literal(rest).map(<[u8]>::to_vec))?)?),
        b'r' => {
            let (pattern, required) = (literal(rest)?, literal(rest)?);
            Predicate::Matches(Box::new(Pattern::new(pattern, required).ok_or(DecodeError)?))
        }
        b'i' => {
            let literal = Caseless::new(literal(rest)?).ok_or(DecodeError)?;
            Predicate::MayContainIgnoringCase(Box::new(literal))
        }
        b'n' => Predicate::Length(number(rest)?, number(rest)?),
        b'b' => Predicate::Blank,
        _ => return Err(DecodeError),
    })
}

fn like(mut parts: Vec<Vec<u8>>) -> Result<Like, DecodeError> {
    let suffix = parts.pop().ok_or(DecodeError)?;
    let mut parts = parts.into_iter();
    let prefix = parts.next().ok_or(DecodeError)?;
    let middle = parts.map(|part| memmem::Finder::new(&part).into_owned()).collect();
    Ok(Like { prefix, middle, suffix })
}

fn list<T>(
    rest: &mut &[u8],
    member: impl Fn(&mut &[u8]) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    (0..length(rest)?).map(|_| member(rest)).collect()
}

fn literal<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = length(rest)?;
    take(rest, length)
}

fn length(rest: &mut &[u8]) -> Result<usize, DecodeError> {
    number(rest).map(|number| number as usize)
}

fn number(rest: &mut &[u8]) -> Result<u32, DecodeError> {
    let bytes = take(rest, 4)?;
    Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], DecodeError> {
    let (taken, left) = rest.split_at_checked(count).ok_or(DecodeError)?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded_literal(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).expect("short").to_be_bytes(), bytes].concat()
    }

    fn pattern(parts: &[&[u8]]) -> Predicate {
        let count = u32::try_from(parts.len()).expect("few").to_be_bytes().to_vec();
        let parts = parts.iter().flat_map(|part| encoded_literal(part));
        Predicate::decode(&[b"l".to_vec(), count, parts.collect()].concat()).expect("well-formed")
    }

    #[test]
    fn like_patterns() {
        for (parts, row, expected) in [
            (&[&b"a"[..], b"b"][..], &b"ab"[..], true),
            (&[b"a", b"a"], b"a", false),
            (&[b"", b"b", b""], b"abc", true),
            (&[b"", b"b", b"b", b""], b"abc", false),
            (&[b"", b"b", b"b", b""], b"abcb", true),
            (&[b"a", b"", b"c"], b"ac", true),
            (&[b"", b"ab", b"b"], b"ab", false),
        ] {
            assert_eq!(pattern(parts).holds(row), expected, "{parts:?} {row:?}");
        }
    }

    #[test]
    fn decoding() {
        let both =
            [b"&\0\0\0\x02c".to_vec(), encoded_literal(b"BALT"), b"!s".to_vec(), encoded_literal(b"x")]
                .concat();
        let predicate = Predicate::decode(&both).expect("well-formed");
        assert!(predicate.holds(b"in BALTIMORE") && !predicate.holds(b"x BALT") && !predicate.holds(b"y"));
        assert_eq!(predicate.literal(), Some(&b"BALT"[..]));
        assert!(Predicate::decode(b"t").is_ok());
        for malformed in
            [&b""[..], b"c\0\0\0\x09x", b"&\xff\xff\xff\xff", b"tt", b"l\0\0\0\x01\0\0\0\0", &[b'!'; 200]]
        {
            assert_eq!(Predicate::decode(malformed).err(), Some(DecodeError), "{malformed:?}");
            fuzz_predicate(malformed);
        }
    }

    #[test]
    fn regular_expressions() {
        let matching = |pattern: &[u8], literal: &[u8]| {
            Predicate::decode(&[b"r".to_vec(), encoded_literal(pattern), encoded_literal(literal)].concat())
        };
        let predicate = matching(b"AB[0-9]{2}", b"AB").expect("well-formed");
        assert!(predicate.holds(b"xAB12") && !predicate.holds(b"AB1"));
        assert_eq!(predicate.literal(), Some(&b"AB"[..]));
        let any = matching("^(?s:.)$".as_bytes(), b"").expect("well-formed");
        assert!(any.holds("é".as_bytes()) && any.holds(b"\xed\xa0\x80") && !any.holds(b"\xff\xff"));
        assert_eq!(any.literal(), None);
        for malformed in [&b"("[..], b"\xff", b"(?:a{1000}){1000}"] {
            assert_eq!(matching(malformed, b"").err(), Some(DecodeError), "{malformed:?}");
        }
    }

    #[test]
    fn letters_in_either_case() {
        let encoded = [b"i".to_vec(), encoded_literal(b"le.k")].concat();
        let predicate = Predicate::decode(&encoded).expect("well-formed");
        for (row, expected) in [
            (&b"A Le.K"[..], true),
            (b"leak", false),
            (b"", false),
            ("Ünrelated".as_bytes(), true),
            (b"\xff", true),
        ] {
            assert_eq!(predicate.holds(row), expected, "{row:?}");
        }
        assert!(predicate.literal().is_none() && predicate.caseless().is_some());
    }

    #[test]
    fn lengths_and_spaces() {
        for (row, length) in [
            (&b""[..], 0),
            (b"abc", 3),
            ("é漢🙂".as_bytes(), 3),
            (b"\xffab", 3),
            (b"\x80\xc0", 2),
            (b"\xe6a", 1),
            (b"a\xf4", 2),
        ] {
            let encoded =
                |least: u32, most: u32| [&b"n"[..], &least.to_be_bytes(), &most.to_be_bytes()].concat();
            let holds =
                |least, most| Predicate::decode(&encoded(least, most)).expect("well-formed").holds(row);
            assert!(holds(length, length) && holds(0, u32::MAX) && !holds(length + 1, u32::MAX), "{row:?}");
            assert!(length == 0 || !holds(0, length - 1), "{row:?}");
        }
        for (row, expected) in [(&b""[..], true), (b"  ", true), (b" \t", false), (b" x", false)] {
            assert_eq!(Predicate::Blank.holds(row), expected, "{row:?}");
        }
    }

    #[test]
    fn alternatives_and_negations_have_no_literal() {
        let either = Predicate::Or(vec![Predicate::contains(b"a"), Predicate::contains(b"b")]);
        assert_eq!(either.literal(), None);
        assert_eq!(Predicate::Not(Box::new(either)).literal(), None);
        assert_eq!(Predicate::contains(b"").literal(), None);
    }
}
