//! The record of the files that a compaction in place replaced, and of their replacements.

use std::ffi::{CStr, CString};

use super::journal::{FieldsOf, Malformed, Manifest, ManifestEntry, Planned, entry, is_name, is_path_below};

const FORMAT: &[u8] = b"millstream replaced files 1";
const END: &[u8] = b"end";

/// An output, as it was when it replaced its inputs, and the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) planned: Planned,
    pub(super) output: ManifestEntry,
    pub(super) inputs: Manifest,
}

/// The outputs of a compaction, grouped by directory as in its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The number of the compaction: later ones have higher numbers.
    pub(super) number: u64,
    /// When the files may be removed, in seconds since 1970.
    pub(super) keep_until: i64,
    /// Path of the tree.
    pub(super) root: CString,
    pub(super) replacements: Vec<Replacement>,
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut add = |field: &[u8]| text.extend([field, b"\0"].concat());
        add(FORMAT);
        add(self.number.to_string().as_bytes());
        add(self.keep_until.to_string().as_bytes());
        add(self.root.to_bytes());
        for Replacement { planned, output, inputs } in &self.replacements {
            for name in [&planned.staged, &planned.directory, &planned.name] {
                add(name.to_bytes());
            }
            add(output.numbers().as_bytes());
            // It has a trailing NUL already.
            let inputs = inputs.encode();
            add(&inputs[..inputs.len() - 1]);
        }
        add(END);
        text
    }

    pub(super) fn decode(text: &[u8]) -> Result<Self, Malformed> {
        let mut fields = FieldsOf(text);
        let mut next = || fields.next().ok_or(Malformed);
        if next()?.to_bytes() != FORMAT {
            return Err(Malformed);
        }
        let (number, keep_until, root) = (number(next()?)?, number(next()?)?, next()?.to_owned());
        let mut replacements = Vec::new();
        loop {
            let staged = fields.next().ok_or(Malformed)?.to_owned();
            if staged.to_bytes() == END {
                return Ok(Record { number, keep_until, root, replacements });
            }
            let directory = fields.next().ok_or(Malformed)?.to_owned();
            let name = fields.next().ok_or(Malformed)?.to_owned();
            if !is_name(&staged) || !is_name(&name) || !is_path_below(&directory) {
                return Err(Malformed);
            }
            let output = entry(&name, fields.next().ok_or(Malformed)?).ok_or(Malformed)?;
            let inputs = Manifest::decode_from(&mut fields)?;
            replacements.push(Replacement { planned: Planned { directory, staged, name }, output, inputs });
        }
    }
}

fn number<T: std::str::FromStr>(field: &CStr) -> Result<T, Malformed> {
    field.to_str().ok().and_then(|text| text.parse().ok()).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use millstream_vfs::Timestamp;

    use super::*;

    #[test]
    fn records_are_read_as_written() {
        let file = |name: &CStr, ino| ManifestEntry {
            name: name.to_owned(),
            ino,
            size: 2,
            mtime: Timestamp { sec: -3, nsec: 4 },
        };
        let planned =
            Planned { directory: c"a/b=\n".to_owned(), staged: c"0.1".to_owned(), name: c"part".to_owned() };
        let inputs = Manifest { entries: vec![file(c"end", 1), file(c"x", 2)] };
        let replacement = Replacement { planned, output: file(c"part", 3), inputs };
        let none = Replacement { inputs: Manifest::default(), ..replacement.clone() };
        let record = Record {
            number: 7,
            keep_until: -1,
            root: c"/r".to_owned(),
            replacements: vec![replacement.clone(), none, replacement],
        };
        assert_eq!(Record::decode(&record.encode()), Ok(record.clone()));
        for cut in 0..record.encode().len() {
            assert_eq!(Record::decode(&record.encode()[..cut]), Err(Malformed));
        }
    }
}
