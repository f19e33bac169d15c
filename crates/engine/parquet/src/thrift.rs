//! Whether the metadata of a file can be parsed in time and memory bounded by its size.
//!
//! Footers and page headers are structures of Thrift's compact protocol. A damaged one may announce a list of two
//! billion elements, or a page of as many bytes, and the library that parses them trusts it. It also assumes that a
//! field has Parquet's type, whatever type the file says. So they are walked first, without storing anything: each
//! element must take at least a byte of the file, and each Parquet field must have its type. The format is documented
//! in <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>, the structures in
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

const MAGIC: &[u8] = b"PAR1";
/// Maximum depth of structures and lists; Parquet's have a depth of at most 6.
const MAX_DEPTH: u32 = 16;

// Types of the protocol. In a field, a boolean is its type.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    Bool,
    Byte,
    Short,
    Int,
    Long,
    Double,
    Binary,
    List(&'static Type),
    Struct(Fields),
}

/// The fields of a structure, with their numbers.
pub(crate) type Fields = &'static [(i64, Type)];

use Type::{Binary, Bool, Byte, Double, Int, List, Long, Short, Struct};

pub(crate) const FOOTER: Fields = &[
    (1, Int),
    (2, List(&Struct(SCHEMA_ELEMENT))),
    (3, Long),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Binary),
    (7, List(&Struct(COLUMN_ORDER))),
    (8, Struct(&[(1, Struct(AES)), (2, Struct(AES))])),
    (9, Binary),
];
const NONE: Fields = &[];
const AES: Fields = &[(1, Binary), (2, Binary), (3, Bool)];
const SCHEMA_ELEMENT: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Binary),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Struct(LOGICAL_TYPE)),
];
const LOGICAL_TYPE: Fields = &[
    (1, Struct(NONE)),
    (2, Struct(NONE)),
    (3, Struct(NONE)),
    (4, Struct(NONE)),
    (5, Struct(&[(1, Int), (2, Int)])),
    (6, Struct(NONE)),
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, Struct(NONE)),
    (12, Struct(NONE)),
    (13, Struct(NONE)),
    (14, Struct(NONE)),
    (15, Struct(NONE)),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Int)])),
];
const TIME: Fields = &[(1, Bool), (2, Struct(&[(1, Struct(NONE)), (2, Struct(NONE)), (3, Struct(NONE))]))];
pub(crate) const ROW_GROUP: Fields = &[
    (1, List(&Struct(COLUMN_CHUNK))),
    (2, Long),
    (3, Long),
    (4, List(&Struct(&[(1, Int), (2, Bool), (3, Bool)]))),
    (5, Long),
    (6, Long),
    (7, Short),
];
pub(crate) const COLUMN_CHUNK: Fields = &[
    (1, Binary),
    (2, Long),
    (3, Struct(COLUMN_METADATA)),
    (4, Long),
    (5, Int),
    (6, Long),
    (7, Int),
    (8, Struct(&[(1, Struct(NONE)), (2, Struct(&[(1, List(&Binary)), (2, Binary)]))])),
    (9, Binary),
];
pub(crate) const COLUMN_METADATA: Fields = &[
    (1, Int),
    (2, List(&Int)),
    (3, List(&Binary)),
    (4, Int),
    (5, Long),
    (6, Long),
    (7, Long),
    (8, List(&Struct(KEY_VALUE))),
    (9, Long),
    (10, Long),
    (11, Long),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, Int), (2, Int), (3, Int)]))),
    (14, Long),
    (15, Int),
    (16, Struct(&[(1, Long), (2, List(&Long)), (3, List(&Long))])),
    (17, Struct(&[(1, Struct(BOUNDING_BOX)), (2, List(&Int))])),
];
const BOUNDING_BOX: Fields =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];
const STATISTICS: Fields =
    &[(1, Binary), (2, Binary), (3, Long), (4, Long), (5, Binary), (6, Binary), (7, Bool), (8, Bool)];
const KEY_VALUE: Fields = &[(1, Binary), (2, Binary)];
const COLUMN_ORDER: Fields = &[(1, Struct(NONE))];
pub(crate) const PAGE_HEADER: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Struct(DATA_PAGE_HEADER)),
    (6, Struct(NONE)),
    (7, Struct(DICTIONARY_PAGE_HEADER)),
    (8, Struct(DATA_PAGE_HEADER_V2)),
];
pub(crate) const DATA_PAGE_HEADER: Fields =
    &[(1, Int), (2, Int), (3, Int), (4, Int), (5, Struct(STATISTICS))];
pub(crate) const DICTIONARY_PAGE_HEADER: Fields = &[(1, Int), (2, Int), (3, Bool)];
pub(crate) const DATA_PAGE_HEADER_V2: Fields =
    &[(1, Int), (2, Int), (3, Int), (4, Int), (5, Int), (6, Int), (7, Bool), (8, Struct(STATISTICS))];

impl Type {
    /// Whether `kind`, a type code of the protocol, is this type.
    fn is(self, kind: u8) -> bool {
        match self {
            Bool => matches!(kind, TRUE | FALSE),
            Byte => kind == BYTE,
            Short => kind == I16,
            Int => kind == I32,
            Long => kind == I64,
            Double => kind == DOUBLE,
            Binary => kind == BINARY,
            List(_) => kind == LIST,
            Struct(_) => kind == STRUCT,
        }
    }
}

/// Whether the footer of a file is well-formed.
pub(crate) fn has_footer(file: &[u8]) -> bool {
    footer(file).and_then(|mut walk| walk.structure(FOOTER, |_, _| Some(Visit::Skip))).is_some()
}

/// The structure with the fields of [`FOOTER`] at the end of a file.
pub(crate) fn footer(file: &[u8]) -> Option<Walk<'_>> {
    let before = file.strip_suffix(MAGIC)?;
    let (before, length) = before.split_last_chunk::<4>()?;
    let start = before.len().checked_sub(u32::from_le_bytes(*length) as usize)?;
    Some(Walk::new(&before[start..]))
}

/// Whether a visitor walked the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// It did.
    Taken,
    /// It did not.
    Skip,
}

/// Bytes to walk; every step is `None` if they are malformed.
pub(crate) struct Walk<'a> {
    rest: &'a [u8],
    /// Structures and lists around the next value.
    depth: u32,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Walk { rest: bytes, depth: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// An integer of any width but a byte.
    pub(crate) fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Bytes after their length.
    pub(crate) fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    /// A list. Calls `element` for each, which walks it.
    pub(crate) fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let (count, _) = self.list_header()?;
        (0..count).try_for_each(|_| element(self))
    }

    /// The number of elements, and their type.
    fn list_header(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let count = if header >> 4 == 0xf { self.varint()? } else { u64::from(header >> 4) };
        Some((count, header & 0xf))
    }

    /// A structure with these fields, and others. Calls `visit` with the number of each field that has value bytes,
    /// before these.
    pub(crate) fn structure(
        &mut self,
        fields: Fields,
        mut visit: impl FnMut(&mut Self, i64) -> Option<Visit>,
    ) -> Option<()> {
        let mut field = 0;
        loop {
            let header = self.byte()?;
            let (delta, kind) = (header >> 4, header & 0xf);
            if kind == 0 {
                return Some(());
            }
            field = if delta == 0 { self.integer()? } else { field + i64::from(delta) };
            let known = fields.iter().find(|(number, _)| *number == field).map(|&(_, known)| known);
            // The library reads some structures as if their fields were in order.
            if known.is_some_and(|known| delta == 0 || !known.is(kind)) {
                return None;
            }
            match kind {
                TRUE | FALSE => (),
                _ if visit(self, field)? == Visit::Taken => (),
                _ => self.value(known, kind)?,
            }
        }
    }

    /// A value in a field, a list or a map. Booleans are not expected in lists and maps, where not all agree on their
    /// length.
    fn value(&mut self, known: Option<Type>, kind: u8) -> Option<()> {
        if self.depth > MAX_DEPTH || known.is_some_and(|known| !known.is(kind)) {
            return None;
        }
        self.depth += 1;
        self.value_inside(known, kind)?;
        self.depth -= 1;
        Some(())
    }

    fn value_inside(&mut self, known: Option<Type>, kind: u8) -> Option<()> {
        match kind {
            BYTE => self.byte().map(drop),
            I16..=I64 => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | SET => {
                let element = if let Some(List(element)) = known { Some(*element) } else { None };
                let (count, kind) = self.list_header()?;
                (0..count).try_for_each(|_| self.value(element, kind))
            }
            MAP => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.value(None, kinds >> 4)?;
                    self.value(None, kinds & 0xf)
                })
            }
            STRUCT => {
                let fields = if let Some(Struct(fields)) = known { fields } else { NONE };
                self.structure(fields, |_, _| Some(Visit::Skip))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(footer: &[u8]) -> Vec<u8> {
        let length = u32::try_from(footer.len()).expect("short").to_le_bytes();
        [MAGIC, footer, &length, MAGIC].concat()
    }

    /// The footer with a number in a field unknown to Parquet, and these fields after it.
    fn with_unknown(fields: &[u8]) -> Vec<u8> {
        file(&[b"\x06\x80\x01\x02", fields].concat())
    }

    #[test]
    fn structures_are_walked() {
        let list_of_structures = b"\x19\x2c\x15\x02\0\x11\0\0";
        // A byte, a double, two bytes, a set of an i64, a map from one byte to an i32.
        let others = b"\x13\x07\x17\0\0\0\0\0\0\0\0\x18\x02ab\x1a\x16\x02\x1b\x01\x85\x01a\x02\0";
        for good in [&b"\0"[..], list_of_structures, others, b"\x1b\0\0", b"\x11\x12\0"] {
            assert!(has_footer(&with_unknown(good)), "{good:?}");
        }
        for bad in [
            &b""[..],
            b"\x19\xf5\xff\xff\xff\xff\x07\0",
            b"\x19\xf1\xff\xff\xff\xff\x07\0",
            b"\x18\x05ab\0",
            b"\x15",
            b"\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0",
            b"\x1d\0",
            b"\x1b\x01\x11\0\0",
            &[0x1c; 100],
        ] {
            assert!(!has_footer(&with_unknown(bad)), "{bad:?}");
        }
        assert!(!has_footer(b"PAR1") && !has_footer(b"\xff\xff\xff\xffPAR1") && !has_footer(b""));
    }

    /// The library reads each field as the type that it should have.
    #[test]
    fn fields_have_their_types() {
        let field_of_element: &[u8] = b"\x29\x1c\x15\x02\0\0";
        let is_sorted = b"\x49\x1c\x49\x1c\x15\x02\x12\x11\0\0\0";
        for good in [&b"\x15\x02\0"[..], field_of_element, b"\x29\x0c\0", is_sorted] {
            assert!(has_footer(&file(good)), "{good:?}");
        }
        for bad in [
            &b"\x16\x02\0"[..],
            b"\x05\x02\x02\0",
            b"\x2a\x1c\x15\x02\0\0",
            b"\x29\x15\x02\0",
            b"\x29\x1c\x13\x02\0\0",
            b"\x49\x1c\x49\x1c\x15\x02\x15\x02\0\0\0",
        ] {
            assert!(!has_footer(&file(bad)), "{bad:?}");
        }
    }
}
