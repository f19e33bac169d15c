//! The format of journals and manifests: fields of bytes or decimal numbers, each terminated by a NUL.

use std::ffi::{CStr, CString};

use millstream_vfs::Timestamp;

const FORMAT: &[u8] = b"millstream compact 1";
const IN_PLACE: &[u8] = b"in place";
/// Followed by a time, instead of [`IN_PLACE`].
const KEEPING: &[u8] = b"in place, keeping what is replaced until ";
const NEW: &[u8] = b"new";
const END: &[u8] = b"end";

/// The fate of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The outputs replace them.
    InPlace {
        /// When the replaced files may be removed, in seconds since 1970; at once, if there is no such time.
        keep_until: Option<i64>,
    },
    /// They stay: the outputs go to another tree.
    New,
}

/// An output and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The directory's path below the root; empty for the root.
    pub directory: CString,
    /// Its name in the staging directory; the name of its manifest begins with it.
    pub staged: CString,
    /// Its name in the destination directory.
    pub name: CString,
}

/// The list of outputs, grouped by directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The fate of the inputs.
    pub kind: Kind,
    /// Path of the tree that the outputs go to.
    pub root: CString,
    /// The outputs.
    pub outputs: Vec<Planned>,
}

/// The text was not written by this program, or is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a compaction journal")]
pub struct Malformed;

/// The fields of a text.
pub(super) struct FieldsOf<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for FieldsOf<'a> {
    type Item = &'a CStr;

    fn next(&mut self) -> Option<&'a CStr> {
        let field = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = &self.0[field.to_bytes_with_nul().len()..];
        Some(field)
    }
}

impl Journal {
    /// Serialises the journal.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut add = |field: &[u8]| {
            text.extend_from_slice(field);
            text.push(0);
        };
        add(FORMAT);
        match self.kind {
            Kind::InPlace { keep_until: None } => add(IN_PLACE),
            Kind::InPlace { keep_until: Some(time) } => add(&[KEEPING, time.to_string().as_bytes()].concat()),
            Kind::New => add(NEW),
        }
        add(self.root.to_bytes());
        for output in &self.outputs {
            add(output.staged.to_bytes());
            add(output.directory.to_bytes());
            add(output.name.to_bytes());
        }
        add(END);
        text
    }

    /// Parses a journal.
    ///
    /// # Errors
    /// If the text is not a complete journal.
    pub fn decode(text: &[u8]) -> Result<Self, Malformed> {
        let mut fields = FieldsOf(text);
        let mut next = || fields.next().ok_or(Malformed);
        if next()?.to_bytes() != FORMAT {
            return Err(Malformed);
        }
        let kind = match next()?.to_bytes() {
            IN_PLACE => Kind::InPlace { keep_until: None },
            NEW => Kind::New,
            other => {
                let time =
                    other.strip_prefix(KEEPING).and_then(|time| std::str::from_utf8(time).ok()?.parse().ok());
                Kind::InPlace { keep_until: Some(time.ok_or(Malformed)?) }
            }
        };
        let root = next()?.to_owned();
        let mut outputs = Vec::new();
        loop {
            let staged = next()?;
            if staged.to_bytes() == END {
                return Ok(Journal { kind, root, outputs });
            }
            let (directory, name) = (next()?, next()?);
            if !is_name(staged) || !is_name(name) || !is_path_below(directory) {
                return Err(Malformed);
            }
            let (directory, staged, name) = (directory.to_owned(), staged.to_owned(), name.to_owned());
            outputs.push(Planned { directory, staged, name });
        }
    }
}

pub(super) fn is_name(name: &CStr) -> bool {
    let bytes = name.to_bytes();
    !matches!(bytes, b"" | b"." | b"..") && !bytes.contains(&b'/')
}

pub(super) fn is_path_below(path: &CStr) -> bool {
    path.is_empty() || path.to_bytes().split(|&b| b == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// An input file as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Its name in its directory.
    pub name: CString,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents.
    pub mtime: Timestamp,
}

impl ManifestEntry {
    /// All but the name.
    pub(super) fn numbers(&self) -> String {
        let ManifestEntry { ino, size, mtime, .. } = self;
        format!("{ino} {size} {} {}", mtime.sec, mtime.nsec)
    }
}

/// The inputs of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The files, in their order.
    pub entries: Vec<ManifestEntry>,
}

impl Manifest {
    /// Serialises the manifest.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for entry in &self.entries {
            text.extend_from_slice(entry.name.to_bytes_with_nul());
            text.extend_from_slice(entry.numbers().as_bytes());
            text.push(0);
        }
        // No name is empty.
        text.push(0);
        text
    }

    /// Parses a manifest.
    ///
    /// # Errors
    /// If the text is not a complete manifest.
    pub fn decode(text: &[u8]) -> Result<Self, Malformed> {
        Manifest::decode_from(&mut FieldsOf(text))
    }

    pub(super) fn decode_from(fields: &mut FieldsOf<'_>) -> Result<Self, Malformed> {
        let mut entries = Vec::new();
        loop {
            let name = fields.next().ok_or(Malformed)?;
            if name.is_empty() {
                return Ok(Manifest { entries });
            }
            let numbers = fields.next().ok_or(Malformed)?;
            entries.push(entry(name, numbers).filter(|_| is_name(name)).ok_or(Malformed)?);
        }
    }
}

pub(super) fn entry(name: &CStr, numbers: &CStr) -> Option<ManifestEntry> {
    let mut numbers = numbers.to_str().ok()?.split(' ');
    let (ino, size) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    let mtime = Timestamp { sec: numbers.next()?.parse().ok()?, nsec: numbers.next()?.parse().ok()? };
    numbers.next().is_none().then(|| ManifestEntry { name: name.to_owned(), ino, size, mtime })
}
