//! The paths that `--files-from` lists.
//!
//! A transfer of a list holds the listed paths, the directories above them and, with recursion, what is below
//! them. A slash at the end of a directory's path also lists the entries in it. Paths are relative to the
//! source: slashes at the beginning do not count, and `..` removes the component before it, if there is one.
//! The list is sorted so that the paths below a directory follow it directly; each query is a few binary
//! searches.

use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicBool};

use crate::entries::{Separator, entries, printable};

/// A list of paths.
#[derive(Debug, Default)]
pub struct FileList {
    /// In the order of [`compare`], each once.
    paths: Vec<Listed>,
    /// Whether one of them begins with `./`.
    names_root: bool,
}

#[derive(Debug)]
struct Listed {
    path: Box<[u8]>,
    with_contents: bool,
    is_met: AtomicBool,
}

/// How a path relates to a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// It is listed.
    pub is_listed: bool,
    /// It is listed with a slash at the end: the entries in it take part without recursion.
    pub has_contents: bool,
    /// A path below it is listed.
    pub is_parent: bool,
    /// The directory that it is in is listed with a slash at the end.
    pub is_content: bool,
    /// A directory above it is listed: it takes part with recursion.
    pub is_below: bool,
    /// It is the source, and a path is listed with `./` before it: it takes part as other directories that lead to
    /// listed paths do.
    pub is_named: bool,
}

impl Membership {
    /// As it is in a directory of which all entries take part, or only those that are listed or lead there.
    pub fn in_directory(self, takes_all: bool) -> Self {
        Membership { is_content: takes_all, is_below: takes_all && self.is_below, ..self }
    }

    /// As it is if a filter excludes the path: directories that lead to listed paths are not filtered.
    pub fn excluded(self) -> Self {
        Membership { is_parent: self.is_parent, ..Membership::default() }
    }

    /// Whether nothing is said about a root itself, whatever is in it.
    pub fn leaves_root(self, below: &[u8]) -> bool {
        below.is_empty() && !self.is_listed && !self.is_named
    }

    /// Whether the path takes part, if it is known what its directory does.
    pub fn takes_part(self) -> bool {
        self.is_listed || self.is_parent || self.is_content
    }

    /// Whether a directory takes part only because it leads to listed paths.
    pub fn leads_only(self) -> bool {
        self.is_parent && !(self.is_listed || self.is_content || self.is_below)
    }
}

/// A listed path that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{}' in the list of files: a /./ that shortens the names of copies is not supported; give the directory \
     before it as the source",
    printable(.0)
)]
pub struct BadPath(pub Vec<u8>);

impl FileList {
    /// Parses the content of a list.
    ///
    /// # Errors
    /// If a path has `/./` after its first component.
    pub fn parse(content: &[u8], separator: Separator) -> Result<Self, BadPath> {
        let names_root = entries(content, separator).any(names_root);
        let mut paths = entries(content, separator).map(Listed::parse).collect::<Result<Vec<_>, _>>()?;
        paths.sort_by(|a, b| compare(&a.path, &b.path));
        paths.dedup_by(|later, earlier| {
            let is_same = later.path == earlier.path;
            earlier.with_contents |= is_same && later.with_contents;
            is_same
        });
        Ok(FileList { paths, names_root })
    }

    /// The paths, and whether the entries in each take part without recursion.
    pub fn paths(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.paths.iter().map(|listed| (&*listed.path, listed.with_contents))
    }

    /// Whether a path is listed with `./` before it, as `find .` prints them: as with rsync, the source itself then
    /// takes part.
    pub fn names_root(&self) -> bool {
        self.names_root
    }

    /// How a path relates to the list: one from the source, without slashes at its ends, and empty for the
    /// source itself.
    pub fn membership(&self, path: &[u8]) -> Membership {
        let index = self.search(path);
        let listed = index.ok().map(|index| &self.paths[index]);
        let after = index.map_or_else(|index| index, |index| index + 1);
        let parent = parent(path).and_then(|parent| self.get(parent));
        Membership {
            is_listed: listed.is_some(),
            has_contents: listed.is_some_and(|listed| listed.with_contents),
            is_parent: self.paths.get(after).is_some_and(|next| is_below(&next.path, path)),
            is_content: parent.is_some_and(|parent| parent.with_contents),
            is_below: ancestors(path).any(|ancestor| self.get(ancestor).is_some()),
            is_named: path.is_empty() && self.names_root,
        }
    }

    /// As [`FileList::membership`], for a path that exists in the source.
    pub fn meet(&self, path: &[u8]) -> Membership {
        if let Some(listed) = self.get(path) {
            listed.is_met.store(true, atomic::Ordering::Relaxed);
        }
        self.membership(path)
    }

    /// The listed paths that were never met.
    pub fn missing(&self) -> impl Iterator<Item = &[u8]> {
        let is_missing = |listed: &&Listed| !listed.is_met.load(atomic::Ordering::Relaxed);
        self.paths.iter().filter(is_missing).map(|listed| &*listed.path)
    }

    /// The listed paths below a directory.
    pub fn below<'l>(&'l self, directory: &'l [u8]) -> impl Iterator<Item = &'l [u8]> {
        let after = self.search(directory).map_or_else(|index| index, |index| index + 1);
        let paths = self.paths[after..].iter().map(|listed| &*listed.path);
        paths.take_while(move |path| is_below(path, directory))
    }

    fn get(&self, path: &[u8]) -> Option<&Listed> {
        self.search(path).ok().map(|index| &self.paths[index])
    }

    fn search(&self, path: &[u8]) -> Result<usize, usize> {
        self.paths.binary_search_by(|listed| compare(&listed.path, path))
    }
}

impl Listed {
    fn parse(text: &[u8]) -> Result<Self, BadPath> {
        let components: Vec<&[u8]> = text.split(|&byte| byte == b'/').collect();
        let is_name = |component: &&[u8]| !matches!(*component, b"" | b".");
        let within = components[..components.len() - 1].iter();
        if within.skip_while(|component| !is_name(component)).any(|component| *component == b".") {
            return Err(BadPath(text.to_vec()));
        }
        let with_contents = matches!(components.last(), Some(&(b"" | b"." | b"..")));
        let mut path: Vec<&[u8]> = Vec::new();
        for component in components.into_iter().filter(is_name) {
            if component == b".." {
                path.pop();
            } else {
                path.push(component);
            }
        }
        Ok(Listed { path: path.join(&b'/').into(), with_contents, is_met: AtomicBool::new(false) })
    }
}

/// Whether a listed path begins with `./` and a name.
fn names_root(text: &[u8]) -> bool {
    let mut components = text.split(|&byte| byte == b'/').filter(|component| !component.is_empty());
    components.next() == Some(b".") && components.next().is_some_and(|next| !matches!(next, b"." | b".."))
}

/// The order of paths: as bytes, except that a slash is the least of them.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let key = |&byte: &u8| if byte == b'/' { 0 } else { byte };
    a.iter().map(key).cmp(b.iter().map(key))
}

/// Whether a path that follows a directory in the order is below it.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

/// The directory that an entry is in; the source itself is in none.
fn parent(path: &[u8]) -> Option<&[u8]> {
    if path.is_empty() {
        return None;
    }
    Some(&path[..path.iter().rposition(|&byte| byte == b'/').unwrap_or(0)])
}

fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent(path), |path| parent(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(content: &str) -> FileList {
        FileList::parse(content.as_bytes(), Separator::Line).expect("a list")
    }

    /// The fields of a membership that are set, by their first letters: listed, with contents, parent, in
    /// contents, below, named.
    fn membership(list: &FileList, path: &str) -> String {
        let Membership { is_listed, has_contents, is_parent, is_content, is_below, is_named } =
            list.membership(path.as_bytes());
        let fields = [
            (is_listed, 'l'),
            (has_contents, 'w'),
            (is_parent, 'p'),
            (is_content, 'c'),
            (is_below, 'b'),
            (is_named, 'n'),
        ];
        fields.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect()
    }

    #[test]
    fn paths_are_resolved_as_rsync_resolves_them() {
        for (text, path, with_contents) in [
            ("foo", "foo", false),
            ("//foo", "foo", false),
            ("././foo", "foo", false),
            (".//.//foo", "foo", false),
            ("a//foo", "a/foo", false),
            ("a/", "a", true),
            ("a/.", "a", true),
            ("a/b/..", "a", true),
            ("/", "", true),
            (".", "", true),
            ("..", "", true),
            ("a/..", "", true),
            ("../../a/foo", "a/foo", false),
            ("a/../../foo", "foo", false),
            ("none/../foo", "foo", false),
            ("a/...", "a/...", false),
            ("./#c", "#c", false),
            (" c ", " c ", false),
        ] {
            let listed = Listed::parse(text.as_bytes()).expect(text);
            assert_eq!((&*listed.path, listed.with_contents), (path.as_bytes(), with_contents), "{text}");
        }
    }

    #[test]
    fn a_dot_that_shortens_names_is_refused() {
        for text in ["a/./foo", "/a/./foo", "./a/./foo", "a/./", "a/././b", "../a/./foo"] {
            let error = FileList::parse(text.as_bytes(), Separator::Line).expect_err(text);
            assert!(
                error.to_string().starts_with(&format!("'{text}' in the list of files: a /./ ")),
                "{error}"
            );
        }
    }

    #[test]
    fn paths_stand_by_what_is_listed() {
        let list = list("a/b\na/b/c/d\na/b-/x\n#c\n\ne/\ne\na/b\n");
        for (path, expected) in [
            ("", "p"),
            ("a", "p"),
            ("a/b", "lp"),
            ("a/b/x", "b"),
            ("a/b/c", "pb"),
            ("a/b/c/d", "lb"),
            ("a/b/c/d/e", "b"),
            ("a/b-", "p"),
            ("a/b-/x", "l"),
            ("a/b-/y", ""),
            ("a/bb", ""),
            ("e", "lw"),
            ("e/f", "cb"),
            ("e/f/g", "b"),
            ("f", ""),
        ] {
            assert_eq!(membership(&list, path), expected, "{path}");
        }
        let all = self::list("/");
        assert_eq!(["", "a", "a/b"].map(|path| membership(&all, path)), ["lw", "cb", "b"]);
        assert_eq!(membership(&self::list(""), ""), "");
        for (text, expected) in [
            ("./a", "pn"),
            (".//a/b", "pn"),
            ("/./a", "pn"),
            ("././a", "p"),
            ("./../a", "p"),
            ("a/.././b", "p"),
        ] {
            if let Ok(list) = FileList::parse(text.as_bytes(), Separator::Line) {
                assert_eq!(membership(&list, ""), expected, "{text}");
                assert!(!membership(&list, "a").contains('n'));
            }
        }
    }

    #[test]
    fn paths_that_nobody_met_are_missing() {
        let list = FileList::parse(b"b\0a\n/c\0b/\0#\0\xff", Separator::Nul).expect("a list");
        assert!(list.meet(b"b").has_contents);
        assert!(list.meet(b"a\n").is_parent);
        assert_eq!(list.missing().collect::<Vec<_>>(), [&b"a\n/c"[..], b"\xff"]);
    }

    #[test]
    fn queries_agree_with_the_definition_on_random_lists() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |bound: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed >> 33).unwrap_or(0) % bound
        };
        for _ in 0..500 {
            let mut path = || {
                let names =
                    (0..=random(3)).map(|_| ["a", "b", "a-", "a.", "\u{1}"][random(5)]).collect::<Vec<_>>();
                names.join("/") + ["", "", "/"][random(3)]
            };
            let texts: Vec<String> = (0..6).map(|_| path()).collect();
            let list = list(&texts.join("\n"));
            for _ in 0..20 {
                let path = path();
                let path = path.trim_end_matches('/');
                let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                let found = |test: &dyn Fn(&str) -> bool| texts.iter().any(|text| test(text));
                let expected = Membership {
                    is_listed: found(&|text| text.trim_end_matches('/') == path),
                    has_contents: found(&|text| *text == format!("{path}/")),
                    is_parent: found(&|text| {
                        text.starts_with(&format!("{path}/")) && text.len() > path.len() + 1
                    }),
                    is_content: found(&|text| *text == format!("{parent}/")),
                    is_below: found(&|text| path.starts_with(&format!("{}/", text.trim_end_matches('/')))),
                    is_named: false,
                };
                assert_eq!(list.membership(path.as_bytes()), expected, "{path:?} in {texts:?}");
            }
        }
    }
}
