//! Conditions on a row's bytes.
//!
//! In Spark's default collation strings compare byte for byte, and patterns match the text that Java makes of the
//! bytes, so these conditions are exact and may be negated and combined. If a condition has a literal, every matching
//! row contains it: the scan searches the whole buffer for the longest literal and evaluates the condition only on the
//! lines that contain it.
//!
//! One condition, [`Predicate::MayContainIgnoringCase`], is not exact: it only drops rows that cannot match one of
//! Spark's.

use memchr::memmem;
use millstream_wire::{Decoder, Malformed};

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

    /// Decodes a predicate in the encoding of [`millstream_wire`]: the operator's letter (a `u8`), then its operands. A
    /// literal is a prefixed byte string, a number is a `u32`, a list is a `u32` count and its members.
    ///
    /// ```text
    /// t  true          c LITERAL  contains      s LITERAL  starts with    e LITERAL  ends with   = LITERAL  equals
    /// & LIST  and      | LIST  or               ! P  not                  l LIST of LITERAL  like, the parts between %
    /// r LITERAL LITERAL  a regular expression, and a literal that every match contains, or an empty one
    /// i LITERAL  contains, ignoring the case of ASCII letters, or is not of ASCII
    /// n NUMBER NUMBER  has at least and at most so many characters     b  consists of spaces
    /// ```
    ///
    /// # Errors
    /// If the bytes are malformed, or a regular expression is too large.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Decoder::new(bytes);
        let predicate = decode(&mut input, 0)?;
        input.end()?;
        Ok(predicate)
    }
}

/// Decodes arbitrary bytes as a row and a predicate. A predicate that holds must have its literal in the row. The first
/// byte is the row's length, that byte included; the encoded predicate follows the row.
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

/// Number of characters, as Spark's `UTF8String.numChars` counts them: a first byte tells how many bytes a character
/// has, whatever these are, and any other byte is a character.
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

fn decode(input: &mut Decoder<'_>, depth: usize) -> Result<Predicate, Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed);
    }
    Ok(match input.u8()? {
        b't' => Predicate::True,
        b'c' => Predicate::contains(input.prefixed()?),
        b's' => Predicate::StartsWith(input.prefixed()?.to_vec()),
        b'e' => Predicate::EndsWith(input.prefixed()?.to_vec()),
        b'=' => Predicate::Equals(input.prefixed()?.to_vec()),
        b'&' => Predicate::And(list(input, |input| decode(input, depth + 1))?),
        b'|' => Predicate::Or(list(input, |input| decode(input, depth + 1))?),
        b'!' => Predicate::Not(Box::new(decode(input, depth + 1)?)),
        b'l' => Predicate::Like(like(list(input, |input| input.prefixed().map(<[u8]>::to_vec))?)?),
        b'r' => {
            let (pattern, required) = (input.prefixed()?, input.prefixed()?);
            Predicate::Matches(Box::new(Pattern::new(pattern, required).ok_or(Malformed)?))
        }
        b'i' => {
            let literal = Caseless::new(input.prefixed()?).ok_or(Malformed)?;
            Predicate::MayContainIgnoringCase(Box::new(literal))
        }
        b'n' => Predicate::Length(input.u32()?, input.u32()?),
        b'b' => Predicate::Blank,
        _ => return Err(Malformed),
    })
}

fn like(mut parts: Vec<Vec<u8>>) -> Result<Like, Malformed> {
    let suffix = parts.pop().ok_or(Malformed)?;
    let mut parts = parts.into_iter();
    let prefix = parts.next().ok_or(Malformed)?;
    let middle = parts.map(|part| memmem::Finder::new(&part).into_owned()).collect();
    Ok(Like { prefix, middle, suffix })
}

fn list<T>(
    input: &mut Decoder<'_>,
    member: impl Fn(&mut Decoder<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    (0..input.u32()?).map(|_| member(input)).collect()
}

#[cfg(test)]
mod tests {
    use millstream_wire::{Encoder, vector};

    use super::*;

    fn encoded_literal(bytes: &[u8]) -> Vec<u8> {
        let mut encoded = Encoder::default();
        encoded.prefixed(bytes);
        encoded.into_bytes()
    }

    fn pattern(parts: &[&[u8]]) -> Predicate {
        let mut encoded = Encoder::default();
        encoded.u8(b'l');
        encoded.u32(u32::try_from(parts.len()).expect("few"));
        parts.iter().for_each(|part| encoded.prefixed(part));
        Predicate::decode(&encoded.into_bytes()).expect("well-formed")
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

    /// `tests/spark/cases/test_wire.py` encodes the same conditions.
    #[test]
    fn the_shared_vector_is_decoded() {
        let Ok(Predicate::And(all)) = Predicate::decode(&vector("row-predicate.hex")) else {
            panic!("not `and`")
        };
        let shown: Vec<_> = all.iter().map(shown).collect();
        let expected = [
            "true",
            "contains c",
            "starts with é",
            "not ends with e",
            "(equals x or (equals y or equals z))",
            "like a, b, ",
            "matches, with k",
            "258 to 2147483647 characters",
            "blank",
            "may contain",
        ];
        assert_eq!(shown, expected);
        assert!(
            all[6].holds(b"k12") && !all[6].holds(b"12k") && all[9].holds(b"a WORD") && !all[9].holds(b"wor")
        );
    }

    fn shown(predicate: &Predicate) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let joined = |members: &[Predicate], by| members.iter().map(shown).collect::<Vec<_>>().join(by);
        match predicate {
            Predicate::True => "true".into(),
            Predicate::Contains(finder) => format!("contains {}", text(finder.needle())),
            Predicate::StartsWith(bytes) => format!("starts with {}", text(bytes)),
            Predicate::EndsWith(bytes) => format!("ends with {}", text(bytes)),
            Predicate::Equals(bytes) => format!("equals {}", text(bytes)),
            Predicate::Like(Like { prefix, middle, suffix }) => {
                let middle = middle.iter().map(|part| text(part.needle())).collect::<Vec<_>>().join(", ");
                format!("like {}, {middle}, {}", text(prefix), text(suffix))
            }
            Predicate::Matches(pattern) => format!("matches, with {}", text(pattern.literal())),
            Predicate::MayContainIgnoringCase(_) => "may contain".into(),
            Predicate::Length(least, most) => format!("{least} to {most} characters"),
            Predicate::Blank => "blank".into(),
            Predicate::And(members) => format!("({})", joined(members, " and ")),
            Predicate::Or(members) => format!("({})", joined(members, " or ")),
            Predicate::Not(negated) => format!("not {}", shown(negated)),
        }
    }

    #[test]
    fn decoding() {
        let both =
            [b"&\x02\0\0\0c".to_vec(), encoded_literal(b"BALT"), b"!s".to_vec(), encoded_literal(b"x")]
                .concat();
        let predicate = Predicate::decode(&both).expect("well-formed");
        assert!(predicate.holds(b"in BALTIMORE") && !predicate.holds(b"x BALT") && !predicate.holds(b"y"));
        assert_eq!(predicate.literal(), Some(&b"BALT"[..]));
        assert!(Predicate::decode(b"t").is_ok());
        for malformed in
            [&b""[..], b"c\x09\0\0\0x", b"&\xff\xff\xff\xff", b"tt", b"l\x01\0\0\0\0\0\0\0", &[b'!'; 200]]
        {
            assert_eq!(Predicate::decode(malformed).err(), Some(Malformed), "{malformed:?}");
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
            assert_eq!(matching(malformed, b"").err(), Some(Malformed), "{malformed:?}");
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
                |least: u32, most: u32| [&b"n"[..], &least.to_le_bytes(), &most.to_le_bytes()].concat();
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
