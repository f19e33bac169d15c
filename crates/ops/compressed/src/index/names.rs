//! The names of index files, as Spark looks them up (`IndexStore` and `IndexJob` in jvm/spark). Tests of both sides
//! read `testdata/index-names.tsv`.
//!
//! ```text
//! next to the file     _millstream/.NAME.MTIME-SIZE.gzidx
//! in a directory       .UUID-NAME.MTIME-SIZE.gzidx
//! ```
//!
//! The files are hidden, although the directory is, too: Spark reads the visible files of a hidden directory that a
//! pattern like `/logs/*` matches. Earlier versions omitted the dot; [`HIDDEN`] distinguishes the names.
//!
//! A name of more than 250 bytes has `%~` and the UUID of NAME instead of NAME.
//! In NAME, `:` is written `%3A` and `%` is written `%25`: Hadoop cannot keep checksums of a local file whose name has
//! a colon. MTIME is the time of the last change in milliseconds; on object stores Spark uses the ETag instead. UUID is
//! Java's `UUID.nameUUIDFromBytes` of the path of the file's directory as Hadoop writes it, `file:/data/logs`.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use millstream_text::names::c_string;
use millstream_version::Version;
use millstream_vfs::Timestamp;

/// The directory for indexes next to their files.
pub(super) const BESIDE: &CStr = c"_millstream";
/// The prefix of the names of indexes.
pub(super) const HIDDEN: &[u8] = b".";
const EXTENSION: &[u8] = b".gzidx";
/// Maximum bytes of the name of an index: file systems allow 255, and the name of Hadoop's checksum file has five more.
const LONGEST_NAME: usize = 250;
/// The prefix of [`short`] names; no [`escaped`] name has it.
const SHORT: &[u8] = b"%~";

/// What names a version in the name of its index.
fn tag(version: &Version) -> String {
    format!("{}-{}", version.mtime.as_millis(), version.size)
}

/// The name of the index of a version of a file.
pub(super) fn index_name(prefix: &[u8], name: &CStr, version: &Version) -> CString {
    let tag = format!(".{}", tag(version));
    let with = |name: &[u8]| c_string(&[HIDDEN, prefix, name, tag.as_bytes(), EXTENSION]);
    let whole = with(&escaped(name.to_bytes()));
    if whole.count_bytes() <= LONGEST_NAME { whole } else { with(&short(name.to_bytes())) }
}

/// The replacement of a name that would make the index's name too long.
pub(super) fn short(name: &[u8]) -> Vec<u8> {
    [SHORT, uuid_of(name).as_bytes()].concat()
}

/// The file that an index belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IndexedFile {
    /// With this name.
    Named(Vec<u8>),
    /// With a name that this one replaces.
    Short(Vec<u8>),
}

impl IndexedFile {
    /// Whether the file has this name.
    pub(super) fn is(&self, name: &[u8]) -> bool {
        match self {
            IndexedFile::Named(found) => found == name,
            IndexedFile::Short(found) => *found == short(name),
        }
    }
}

fn escaped(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for &byte in name {
        match byte {
            b'%' => out.extend(b"%25"),
            b':' => out.extend(b"%3A"),
            _ => out.push(byte),
        }
    }
    out
}

/// Inverts [`escaped`]; `None` if it returns no such name.
fn unescaped(escaped: &[u8]) -> Option<Vec<u8>> {
    let mut parts = escaped.split(|&byte| byte == b'%');
    let mut name = parts.next()?.to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(match code {
            b"25" => b'%',
            b"3A" => b':',
            _ => return None,
        });
        name.extend(rest);
    }
    (!name.is_empty() && !escaped.contains(&b':')).then_some(name)
}

/// The file and the version that an index is of, with a time in milliseconds; its name follows a prefix. `None` for
/// other files, and for indexes of an object store, which name an ETag.
pub(super) fn parse(index_name: &[u8]) -> Option<(IndexedFile, Version)> {
    let tagged = index_name.strip_suffix(EXTENSION)?;
    let (name, stated) = tagged.split_at(tagged.iter().rposition(|&b| b == b'.')?);
    let stated = std::str::from_utf8(&stated[1..]).ok()?;
    let (mtime_ms, size) = stated.rsplit_once('-')?;
    let version = Version::at(size.parse().ok()?, Timestamp::from_millis(mtime_ms.parse().ok()?));
    // No other spelling of the numbers is one of Spark's.
    let is_spelled = tag(&version) == stated;
    let file = if name.starts_with(SHORT) {
        IndexedFile::Short(name.to_vec())
    } else {
        IndexedFile::Named(unescaped(name)?)
    };
    Some((file, version)).filter(|_| is_spelled)
}

/// The prefix of the names of indexes of a directory's files, in a directory for all indexes.
pub(super) fn prefix(working_directory: &[u8], directory: &[u8]) -> Vec<u8> {
    let mut path = b"file:".to_vec();
    path.extend(absolute(working_directory, directory));
    format!("{}-", uuid_of(&path)).into_bytes()
}

/// Java's `UUID.nameUUIDFromBytes`.
fn uuid_of(bytes: &[u8]) -> String {
    let mut digest = md5::compute(bytes).0;
    // The version and the variant of a UUID.
    digest[6] = digest[6] & 0x0f | 0x30;
    digest[8] = digest[8] & 0x3f | 0x80;
    uuid(digest)
}

/// An absolute path without `.`, `..` and redundant slashes, as Hadoop's `Path` normalises it: links are not resolved.
fn absolute(working_directory: &[u8], path: &[u8]) -> Vec<u8> {
    let joined = [working_directory, path].join(&b'/');
    let path = if path.starts_with(b"/") { path } else { &joined };
    let mut names: Vec<&[u8]> = Vec::new();
    for component in Path::new(std::ffi::OsStr::from_bytes(path)).components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir => drop(names.pop()),
            _ => {}
        }
    }
    [b"/", &names.join(&b'/')[..]].concat()
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A new name for an incomplete index, of the same form as Spark's.
///
/// # Panics
/// If the kernel has no random numbers.
pub(super) fn temporary_name() -> CString {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(filled, Ok(bytes.len()), "the kernel has random numbers");
    c_string(&[b".", uuid(bytes).as_bytes()])
}

/// Whether a file is an index that was not completed, or Hadoop's checksum file of one: Hadoop's local file system
/// writes it next to each file, and renames it after the file, so a process that is killed can leave it alone. Spark
/// sees no such files.
pub(super) fn is_temporary(name: &[u8]) -> bool {
    let name = name.strip_suffix(b".crc").and_then(|name| name.strip_prefix(b".")).unwrap_or(name);
    let Some(uuid) = name.strip_prefix(b".") else { return false };
    uuid.len() == 36
        && uuid.iter().enumerate().all(|(i, &b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// The file with Hadoop's checksums of a file.
pub(super) fn checksum_name(name: &CStr) -> CString {
    c_string(&[b".", name.to_bytes(), b".crc"])
}

/// The name of gztool's index of a file.
pub(super) fn gztool_name(name: &CStr) -> CString {
    let name = name.to_bytes();
    c_string(&[name.strip_suffix(b".gz").unwrap_or(name), b".gzi"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_shared_vector() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/index-names.tsv");
        let lines =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in lines.lines() {
            match *line.split('\t').collect::<Vec<_>>() {
                ["index", file, mtime_ms, size, index] => {
                    let number = |text: &str| text.parse().expect("a number");
                    let version = Version::at(number(size) as u64, Timestamp::from_millis(number(mtime_ms)));
                    let name = index_name(b"", &c_string(&[file.as_bytes()]), &version);
                    assert_eq!(name.to_bytes(), index.as_bytes());
                    let (found, of) = parse(&index.as_bytes()[HIDDEN.len()..]).expect("an index");
                    assert!(found.is(file.as_bytes()) && of == version, "{index}");
                }
                ["prefix", directory, expected] => {
                    assert_eq!(prefix(b"/", directory.as_bytes()), expected.as_bytes())
                }
                ["incomplete", name] => assert!(is_temporary(name.as_bytes()), "{name}"),
                ["complete", name] => assert!(!is_temporary(name.as_bytes()), "{name}"),
                _ => panic!("{line}"),
            }
        }
    }

    #[test]
    fn other_names_are_of_no_index() {
        for name in [
            "a.gz.1-2",
            "a.gz.1-x.gzidx",
            "a.gz.d41d8c-2.gzidx",
            ".1-2.gzidx",
            "a.gz.+1-2.gzidx",
            "a.gz.01-2.gzidx",
            "a:b.gz.1-2.gzidx",
            "a%b.gz.1-2.gzidx",
            "a%2.1-2.gzidx",
            "1-2.gzidx",
        ] {
            assert_eq!(parse(name.as_bytes()), None, "{name}");
        }
    }

    /// Java's `UUID.nameUUIDFromBytes("file:/data/logs".getBytes)`.
    #[test]
    fn directories_have_javas_uuids() {
        for (working_directory, directory) in [
            ("/", "/data/logs"),
            ("/data", "logs/"),
            ("/data/logs", "."),
            ("/", "//data/./x/..//logs"),
            ("/data/x", "../logs"),
        ] {
            let prefix = prefix(working_directory.as_bytes(), directory.as_bytes());
            assert_eq!(String::from_utf8_lossy(&prefix), "e6adb8b7-c8ee-3658-a45b-952174c42caf-");
        }
        assert_eq!(absolute(b"/", b"/"), b"/");
        assert_eq!(absolute(b"/a", b"../.."), b"/");
    }

    #[test]
    fn temporary_names_are_recognized() {
        let name = temporary_name();
        assert!(is_temporary(name.to_bytes()), "{name:?}");
        assert!(is_temporary(checksum_name(&name).to_bytes()), "{name:?}");
        assert_ne!(name, temporary_name());
        assert!(!is_temporary(b".a.gz.1-2.gzidx.crc"));
    }

    #[test]
    fn gztool_replaces_the_ending() {
        assert_eq!(gztool_name(c"a.gz").as_c_str(), c"a.gzi");
        assert_eq!(gztool_name(c"a.gzip").as_c_str(), c"a.gzip.gzi");
    }
}
