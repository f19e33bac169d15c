#![forbid(unsafe_code)]
//! Which version of a file is meant.
//!
//! A [`Version`] is what a listing, a stat or a response says of a file apart from its path: size, time of the last
//! change, file id, and the [`Tag`] of an object store. Not every place knows all of them, so versions are compared by
//! [`Version::is_same`], not by equality. With endpoint and path it is a [`FileVersion`], whose packed form is a key
//! for what belongs to these very contents.
//!
//! Listed objects, file ranges, files that a scan has open, sources of a copy, and indexed files have versions; in
//! Java, `io.millstream.hadoop.listing.Version` decides alike, which the tests of both hold with
//! `testdata/versions.tsv`. Some formats keep a part of one: a packed tag, size and time in file ranges and in pages of
//! listings; milliseconds and size in the names of indexes (`ops/compressed`).
//!
//! Two things are no versions. The journal of a compaction records a file by inode number, size and exact time, all of
//! which must be known and agree before the file may be removed. The quick check of psync compares attributes that
//! its options select.

mod tag;

pub use tag::Tag;

use millstream_vfs::{Fields, Metadata, Timestamp};
use millstream_wire::Encoder;

/// How a packed version tells itself from others.
const BY_TIME: u8 = 0;
const BY_TAG: u8 = 1;

/// A version of a file whose path is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents, as exact as its source.
    pub mtime: Timestamp,
    /// The inode number, or the number that the file system has for the file; 0 if unknown.
    pub file_id: u64,
    /// The object store's name of the version; none elsewhere.
    pub tag: Tag,
}

impl Version {
    /// The attributes that make up a version.
    pub const FIELDS: Fields = Fields::INO.union(Fields::SIZE).union(Fields::MTIME);

    /// The version of a file with this metadata.
    pub fn of(metadata: &Metadata) -> Self {
        let file_id = if metadata.fields.contains(Fields::INO) { metadata.ino } else { 0 };
        Version { size: metadata.size, mtime: metadata.mtime, file_id, tag: Tag::default() }
    }

    /// A version of which only size and time are known.
    pub fn at(size: u64, mtime: Timestamp) -> Self {
        Version { size, mtime, ..Version::default() }
    }

    /// The version as a source says it that has times in milliseconds.
    pub fn in_millis(&self) -> Self {
        Version { mtime: Timestamp::from_millis(self.mtime.as_millis()), ..self.clone() }
    }

    /// Whether this and another version of the same path have the same contents, as far as both tell. Tags decide if
    /// both have one; times are no help then, because some stores list them more exactly than they state them for an
    /// object. Otherwise the times decide, and the file ids if both have one. Times that do not fit 64 bits of
    /// nanoseconds are all the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_change = || {
            let has_ids = self.file_id != 0 && other.file_id != 0;
            self.mtime.as_nanos() == other.mtime.as_nanos() && (!has_ids || self.file_id == other.file_id)
        };
        let has_tags = !self.tag.is_none() && !other.tag.is_none();
        self.size == other.size && if has_tags { self.tag == other.tag } else { is_same_change() }
    }
}

/// A version of a file, wherever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion<'a> {
    /// What distinguishes the file system from others, such as `hdfs://host:8020` or an S3 endpoint with its bucket.
    pub endpoint: &'a str,
    /// The path in it, or the key.
    pub path: &'a [u8],
    /// The version.
    pub version: &'a Version,
}

impl FileVersion<'_> {
    /// The packed form: equal bytes are the same contents. It has the prefixed endpoint and path, the size, and after a
    /// byte that says which, the tag, or if there is none the file id and the time in nanoseconds. A tag stands alone,
    /// because a store does not always state the same time for it.
    pub fn pack(&self) -> Vec<u8> {
        let Version { size, mtime, file_id, tag } = self.version;
        let mut packed =
            Encoder::with_capacity(32 + self.endpoint.len() + self.path.len() + tag.as_bytes().len());
        packed.prefixed(self.endpoint.as_bytes());
        packed.prefixed(self.path);
        packed.u64(*size);
        if tag.is_none() {
            packed.u8(BY_TIME);
            packed.u64(*file_id);
            packed.i64(mtime.as_nanos());
        } else {
            packed.u8(BY_TAG);
            packed.bytes(tag.as_bytes());
        }
        packed.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tag: &str) -> Version {
        Version { tag: Tag::pack(tag.as_bytes()), ..Version::at(5, Timestamp { sec: 7, nsec: 123_456_789 }) }
    }

    #[test]
    fn tags_decide_if_both_versions_have_one() {
        let (one, later) = (tagged("a"), Version { mtime: Timestamp::default(), ..tagged("a") });
        assert!(one.is_same(&later), "a store states the time less exactly than it lists it");
        assert!(!one.is_same(&tagged("b")));
        assert!(!one.is_same(&Version { size: 6, ..tagged("a") }));
        assert!(one.is_same(&tagged("")), "the other has none, but the same time");
        assert!(!later.is_same(&tagged("")));
    }

    #[test]
    fn same_versions_are_those_of_the_shared_vector() {
        let lines = include_str!("../../../../testdata/versions.tsv").lines().skip(1);
        assert!(lines.clone().count() > 8);
        for line in lines {
            let columns: Vec<&str> = line.split('\t').collect();
            let version = |columns: &[&str]| {
                let number = |text: &str| text.parse::<i64>().expect("a number");
                let tag = Tag::pack(columns[2].trim_start_matches('-').as_bytes());
                Version {
                    tag,
                    ..Version::at(number(columns[0]) as u64, Timestamp::from_millis(number(columns[1])))
                }
            };
            let (one, other) = (version(&columns[1..4]), version(&columns[4..7]));
            assert_eq!(one.is_same(&other), columns[0] == "yes", "{line}");
            assert_eq!(one.is_same(&other), other.is_same(&one), "{line}");
        }
    }

    #[test]
    fn times_decide_otherwise_and_file_ids_if_both_are_known() {
        let one = Version { file_id: 3, ..tagged("") };
        assert!(one.is_same(&tagged("")));
        assert!(!one.is_same(&Version { file_id: 4, ..one.clone() }), "another file with the same time");
        let earlier = Version { mtime: Timestamp { sec: 7, nsec: 123_456_788 }, ..one.clone() };
        assert!(!one.is_same(&earlier));
        assert!(one.in_millis().is_same(&earlier.in_millis()));
        assert_eq!(one.in_millis().mtime, Timestamp { sec: 7, nsec: 123_000_000 });
    }

    #[test]
    fn metadata_without_an_inode_number_has_no_file_id() {
        let metadata = Metadata { fields: Version::FIELDS, ino: 3, size: 5, ..Metadata::default() };
        assert_eq!(Version::of(&metadata).file_id, 3);
        let metadata = Metadata { fields: Fields::SIZE.union(Fields::MTIME), ..metadata };
        assert_eq!(Version::of(&metadata), Version::at(5, Timestamp::default()));
    }

    /// Caches of several processes share keys.
    #[test]
    fn keys_keep_their_bytes() {
        let (file, before_1970) = (
            Version { file_id: 16_400, ..tagged("") },
            Version::at(0, Timestamp { sec: -1, nsec: 999_999_999 }),
        );
        let hex = |endpoint, path: &str, version: &Version| {
            let packed = FileVersion { endpoint, path: path.as_bytes(), version }.pack();
            packed.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(
            hex("s3://b", "\u{e9}", &tagged("d41d8cd98f00b204e9800998ecf8427e-3")),
            "0600000073333a2f2f6202000000c3a905000000000000000101d41d8cd98f00b204e9800998ecf8427e2d33"
        );
        assert_eq!(
            hex("s3://b", "k", &tagged("\"id\"")),
            "0600000073333a2f2f62010000006b050000000000000001006964"
        );
        assert_eq!(
            hex("hdfs://n", "/a", &file),
            "08000000686466733a2f2f6e020000002f610500000000000000001040000000000000155397a801000000"
        );
        assert_eq!(
            hex("", "/", &before_1970),
            "00000000010000002f0000000000000000000000000000000000ffffffffffffffff"
        );
    }

    #[test]
    fn a_key_with_a_tag_does_not_depend_on_time_and_file_id() {
        let key = |version: &Version| FileVersion { endpoint: "e", path: b"p", version }.pack();
        let other = Version { mtime: Timestamp::default(), file_id: 9, ..tagged("a") };
        assert_eq!(key(&tagged("a")), key(&other));
        assert_ne!(key(&tagged("a")), key(&tagged("b")));
        assert_ne!(key(&tagged("")), key(&other));
        let at = |endpoint, path| FileVersion { endpoint, path, version: &other }.pack();
        assert_ne!(at("e", b"fp"), at("ef", b"p"));
    }
}
