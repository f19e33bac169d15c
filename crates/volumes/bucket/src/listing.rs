//! The entries of a directory, page by page.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::sync::Arc;

use millstream_s3::{Page, PageRequest};
use millstream_version::Version;
use millstream_vfs::{Dirent, DirentBatch, Errno, Error, FileKind, Operation, ReadState, Result};

use crate::bucket::Bucket;

const IS_BOTH: &str = "is both an object and a directory";

/// What a listing says of an entry.
#[derive(Clone, Debug)]
pub(crate) enum Listed {
    Directory,
    Object(Version),
}

impl Listed {
    pub(crate) fn kind(&self) -> FileKind {
        match self {
            Listed::Directory => FileKind::Directory,
            Listed::Object(_) => FileKind::File,
        }
    }
}

/// Entries that have been listed, and whose turn has not come.
#[derive(Debug)]
pub(crate) struct Memory {
    entries: HashMap<Box<[u8]>, Listed>,
    bucket: Arc<Bucket>,
}

impl Memory {
    pub(crate) fn of(bucket: &Arc<Bucket>) -> Self {
        Memory { entries: HashMap::new(), bucket: Arc::clone(bucket) }
    }

    pub(crate) fn note(&mut self, name: &[u8], listed: Listed) {
        if !self.entries.contains_key(name) && !self.bucket.remember() {
            return;
        }
        self.entries.insert(name.into(), listed);
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Listed> {
        self.entries.get(name)
    }

    pub(crate) fn take(&mut self, name: &[u8]) -> Option<Listed> {
        let taken = self.entries.remove(name);
        self.bucket.forget(usize::from(taken.is_some()));
        taken
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.bucket.forget(self.entries.len());
    }
}

/// Position of a reader.
#[derive(Debug, Default)]
pub struct Cursor {
    /// Entries of pages that have been read.
    waiting: VecDeque<(CString, Listed)>,
    /// What continues the listing.
    next: Option<String>,
    is_begun: bool,
    /// Objects whose names may also be those of directories on a later page: the last name of the page begins with
    /// them.
    objects: HashSet<Vec<u8>>,
    /// The first key that is not delivered, and why.
    failure: Option<(Errno, String)>,
}

impl Cursor {
    /// Fills `batch` with the next entries below `prefix`, and tells `note` what is known of each.
    pub(crate) fn read(
        &mut self,
        bucket: &Bucket,
        prefix: &[u8],
        batch: &mut DirentBatch,
        mut note: impl FnMut(&CString, Listed),
    ) -> Result<ReadState> {
        batch.clear();
        loop {
            while let Some((name, listed)) = self.waiting.front() {
                let key = [prefix, name.to_bytes()].concat();
                let dirent = Dirent { name, ino: bucket.identity(&key).1, kind: listed.kind() };
                if !batch.add(dirent) {
                    return Ok(ReadState::More);
                }
                if let Some((name, listed)) = self.waiting.pop_front() {
                    note(&name, listed);
                }
            }
            if !batch.is_empty() {
                return Ok(ReadState::More);
            }
            if self.is_begun && self.next.is_none() {
                // What there is has been delivered; that it is not all prevents deletions.
                return match self.failure.take() {
                    Some((errno, text)) => Err(bucket.reported(Operation::ReadDir, errno, &text)),
                    None => Ok(ReadState::End),
                };
            }
            let next = self.next.as_deref().unwrap_or_default().as_bytes();
            let asked = PageRequest { prefix, delimiter: b"/", next, ..PageRequest::default() };
            let page = bucket.page(Operation::ReadDir, &asked)?;
            if page.next.is_some() && page.next == self.next {
                // It would never end.
                return Err(Error::new(Operation::ReadDir, Errno::BADMSG));
            }
            self.is_begun = true;
            self.take_page(prefix, page);
        }
    }

    fn take_page(&mut self, prefix: &[u8], page: Page) {
        self.next = page.next;
        let directories: HashSet<&[u8]> =
            page.prefixes.iter().filter_map(|key| name_in(prefix, key)?.strip_suffix(b"/")).collect();
        let keys = page.items.iter().map(|item| &item.key).chain(&page.prefixes);
        let last = keys.filter_map(|key| name_in(prefix, key)).max().unwrap_or_default().to_vec();
        if page.items.iter().any(|item| item.key.as_bytes() == prefix && item.version.size > 0) {
            let marker = String::from_utf8_lossy(prefix);
            self.fail(Errno::ISDIR, &marker, "is a directory marker, but has contents");
        }
        for item in page.items {
            let Some(name) = name_in(prefix, &item.key) else { continue };
            if directories.contains(name) {
                self.fail(Errno::EXIST, &item.key, IS_BOTH);
                self.objects.insert(name.to_vec());
            } else if self.add(prefix, name, Listed::Object(item.version)) && last.starts_with(name) {
                self.objects.insert(name.to_vec());
            }
        }
        for name in directories {
            if self.objects.contains(name) {
                self.fail(Errno::EXIST, &String::from_utf8_lossy(&[prefix, name].concat()), IS_BOTH);
            } else {
                self.add(prefix, name, Listed::Directory);
            }
        }
        // Between the names of an object and of a directory that is called alike, all begin with it.
        self.objects.retain(|name| last.starts_with(name));
    }

    /// Adds an entry if its name can be that of a file; whether it can.
    fn add(&mut self, prefix: &[u8], name: &[u8], listed: Listed) -> bool {
        // Servers that cannot express a character may send this one, and the object is not found by it.
        let is_garbled = name.windows(3).any(|bytes| bytes == "\u{FFFD}".as_bytes());
        match CString::new(name) {
            Ok(name) if !matches!(name.to_bytes(), b"" | b"." | b"..") && !is_garbled => {
                self.waiting.push_back((name, listed));
                true
            }
            _ => {
                let key = String::from_utf8_lossy(&[prefix, name].concat()).into_owned();
                self.fail(Errno::ILSEQ, &key, "is not a valid file path");
                false
            }
        }
    }

    /// Notes the first key that is not delivered.
    fn fail(&mut self, errno: Errno, key: &str, why: &str) {
        self.failure.get_or_insert_with(|| (errno, format!("the key {key:?} {why}")));
    }
}

/// What follows the prefix in a key; none for the prefix itself, which is the directory's marker.
fn name_in<'k>(prefix: &[u8], key: &'k str) -> Option<&'k [u8]> {
    key.as_bytes().strip_prefix(prefix).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use millstream_s3::Item;

    use super::*;

    fn page(items: &[&str], prefixes: &[&str], next: Option<&str>) -> Page {
        Page {
            items: items.iter().map(|key| Item { key: (*key).to_owned(), ..Item::default() }).collect(),
            prefixes: prefixes.iter().map(|key| (*key).to_owned()).collect(),
            next: next.map(str::to_owned),
        }
    }

    /// The names that pages deliver, sorted, and why the listing is not all.
    fn delivered(pages: Vec<Page>) -> (Vec<String>, Option<Errno>) {
        let mut cursor = Cursor::default();
        for page in pages {
            cursor.take_page(b"d/", page);
            assert!(cursor.objects.len() < 3);
        }
        let slash = |listed: &Listed| if listed.kind() == FileKind::Directory { "/" } else { "" };
        let name =
            |(name, listed): &(CString, Listed)| format!("{}{}", name.to_string_lossy(), slash(listed));
        let mut names: Vec<_> = cursor.waiting.iter().map(name).collect();
        names.sort_unstable();
        (names, cursor.failure.map(|(errno, _)| errno))
    }

    #[test]
    fn a_directory_has_its_objects_and_directories_but_not_its_marker() {
        let all = page(&["d/", "d/a", "d/b.x"], &["d/b/"], None);
        assert_eq!(delivered(vec![all]), (vec!["a".into(), "b.x".into(), "b/".into()], None));
    }

    #[test]
    fn what_is_an_object_and_a_directory_is_a_failure_on_one_page_and_on_two() {
        let one = page(&["d/a", "d/a!", "d/c"], &["d/a/"], None);
        assert_eq!(delivered(vec![one]), (vec!["a!".into(), "c".into()], Some(Errno::EXIST)));
        let many: Vec<String> = (0..5).map(|number| format!("d/a!{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let pages = vec![
            page(&["d/0", "d/a"], &[], Some("1")),
            page(&many, &[], Some("2")),
            page(&["d/b"], &["d/a/"], None),
        ];
        let (names, failure) = delivered(pages);
        assert_eq!(failure, Some(Errno::EXIST));
        assert!(names.contains(&"a".into()) && names.contains(&"b".into()) && !names.contains(&"a/".into()));
    }

    #[test]
    fn names_that_are_no_names_of_files_are_a_failure() {
        for (items, prefixes) in
            [(vec!["d/.."], vec![]), (vec!["d/."], vec![]), (vec![], vec!["d//"]), (vec!["d/a\0"], vec![])]
        {
            let (names, failure) =
                delivered(vec![page(&["d/ok"], &[], Some("1")), page(&items, &prefixes, None)]);
            assert_eq!(
                (names, failure),
                (vec!["ok".to_owned()], Some(Errno::ILSEQ)),
                "{items:?} {prefixes:?}"
            );
        }
    }
}
