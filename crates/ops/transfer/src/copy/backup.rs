//! Names of backups.

use std::ffi::{CStr, CString};

use millstream_vfs::{Dir, DirentBatch, Errno, Fields, ReadState, Result, SymlinkBehavior};

/// How existing files are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The scheme of names.
    pub style: BackupStyle,
    /// The suffix of a simple backup.
    pub suffix: Vec<u8>,
}

/// A scheme of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupStyle {
    /// `name~`.
    Simple,
    /// `name.~N~`.
    Numbered,
    /// Numbered if numbered backups exist, otherwise simple.
    Existing,
}

impl Backup {
    /// The simple backup of `name`.
    pub(super) fn simple(&self, name: &CStr) -> CString {
        appended(name, &self.suffix)
    }

    /// The backup name for `name` in `dir`. `name` is one component or, in the base directory, a path.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn name<D: Dir>(&self, dir: &D, name: &CStr) -> Result<CString> {
        let highest = match self.style {
            BackupStyle::Simple => None,
            BackupStyle::Numbered | BackupStyle::Existing => highest_number(dir, name)?,
        };
        Ok(match (self.style, highest) {
            (BackupStyle::Simple, _) | (BackupStyle::Existing, None) => self.simple(name),
            (_, highest) => {
                let number = highest.map_or_else(|| b"1".to_vec(), next);
                appended(name, &[b".~", &number[..], b"~"].concat())
            }
        })
    }
}

/// The maximum length of a backup name: one byte less than file systems allow, as in GNU's tool.
const LONGEST: usize = 254;

/// The path `name` with a suffix after its last component, or `~` in place of the end of one that is too long for it.
fn appended(name: &CStr, suffix: &[u8]) -> CString {
    let mut bytes = name.to_bytes().to_vec();
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes.pop();
    }
    let start = bytes.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    if bytes.len() - start + suffix.len() <= LONGEST {
        bytes.extend_from_slice(suffix);
    } else {
        bytes.truncate(start + LONGEST - 1);
        bytes.push(b'~');
    }
    // Neither part holds a NUL: the one is a name, the other an argument.
    CString::new(bytes).unwrap_or_else(|_| name.to_owned())
}

/// The highest number of a backup of `name`.
fn highest_number<D: Dir>(dir: &D, name: &CStr) -> Result<Option<Vec<u8>>> {
    let path = name.to_bytes();
    let base = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let parent = match &path[..base] {
        b"" => c".".to_owned(),
        parent => CString::new(parent).unwrap_or_else(|_| c".".to_owned()),
    };
    let listed = match dir.open_dir(&parent, SymlinkBehavior::Follow) {
        Err(error) if error.errno == Errno::ACCESS => return Ok(None),
        opened => opened?,
    };
    let mut batch = DirentBatch::with_capacity(32 << 10);
    let mut cursor = Default::default();
    let mut highest = None;
    while listed.read_entries(&mut cursor, &mut batch)? == ReadState::More {
        let numbers = batch.iter().filter_map(|entry| number(entry.name.to_bytes(), &path[base..]));
        let Some(number) = numbers.max_by_key(|digits| (digits.len(), *digits)) else { continue };
        let is_higher =
            highest.as_ref().is_none_or(|known: &Vec<u8>| (known.len(), &known[..]) < (number.len(), number));
        if is_higher {
            highest = Some(number.to_vec());
        }
    }
    Ok(highest)
}

/// The digits of a backup's number, up to the length of a name. Without leading zeros, the longer number is the higher
/// one.
fn number<'e>(entry: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    let digits = entry.strip_prefix(name)?.strip_prefix(b".~")?.strip_suffix(b"~")?;
    let is_number = digits.first().is_some_and(|&b| b != b'0') && digits.iter().all(u8::is_ascii_digit);
    is_number.then_some(digits)
}

/// The number that follows these digits.
fn next(mut digits: Vec<u8>) -> Vec<u8> {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return digits;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    digits
}

/// Whether renaming `name` to its backup would destroy the source, whose name without directories is `source`.
pub(super) fn destroys_source<D: Dir>(
    backup: &Backup,
    dir: &D,
    name: &CStr,
    source: &[u8],
    source_identity: (u64, u64),
) -> bool {
    if backup.style == BackupStyle::Numbered {
        return false;
    }
    let simple = backup.simple(name);
    let base = simple.to_bytes().rsplit(|&b| b == b'/').next().unwrap_or_default();
    base == source
        && dir
            .metadata(&simple, SymlinkBehavior::Follow, Fields::INO)
            .is_ok_and(|found| found.identity() == source_identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_posix::PosixVolume;
    use millstream_vfs::Volume;

    #[test]
    fn numbers_of_backups() {
        for (entry, expected) in [
            ("b.~1~", Some("1")),
            ("b.~12~", Some("12")),
            ("b.~18446744073709551616~", Some("18446744073709551616")),
            ("b.~01~", None),
            ("b.~~", None),
            ("b.~1", None),
            ("bb.~1~", None),
            ("b.~-1~", None),
        ] {
            assert_eq!(number(entry.as_bytes(), b"b"), expected.map(str::as_bytes), "{entry}");
        }
    }

    #[test]
    fn existing_style_follows_what_there_is() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = |name: &str| CString::new(format!("{}/{name}", scratch.path().display())).expect("no NUL");
        let backup = |style| Backup { style, suffix: b"~".to_vec() };
        let base = PosixVolume.base();
        let named = |style| backup(style).name(&base, &path("b")).expect("readable");
        assert_eq!(named(BackupStyle::Existing), path("b~"));
        assert_eq!(named(BackupStyle::Numbered), path("b.~1~"));
        std::fs::write(scratch.path().join("b.~9~"), "").expect("a file");
        assert_eq!(named(BackupStyle::Existing), path("b.~10~"));
        assert_eq!(named(BackupStyle::Simple), path("b~"));
        std::fs::write(scratch.path().join("b.~18446744073709551615~"), "").expect("a file");
        std::fs::write(scratch.path().join("b.~99~"), "").expect("a file");
        assert_eq!(named(BackupStyle::Numbered), path("b.~18446744073709551616~"));
    }
}
