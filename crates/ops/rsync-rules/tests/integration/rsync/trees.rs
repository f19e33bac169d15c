//! Random source and destination trees.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::random::Random;

/// Names of entries: some match what looks like a wildcard, some are not text.
pub const NAMES: [&[u8]; 22] = [
    b"a",
    b"b",
    b"c",
    b"foo",
    b"bar",
    b"a.o",
    b"foo.o",
    b"ab",
    b"a b",
    b" a",
    b"a ",
    b"A7",
    b"[a]",
    b"*",
    b"a*",
    b"\\",
    b"a\\b",
    b"-",
    b"!",
    b"\xff",
    b"n\nl",
    b"\xc3\xa9",
];
const MOST_CHILDREN: usize = 5;
const DEPTH: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
}

/// An entry of the source, the destination, or both.
pub struct Node {
    /// From the root of its tree.
    pub path: Vec<u8>,
    pub kind: Kind,
    pub in_source: bool,
    pub in_destination: bool,
    pub children: Vec<Node>,
}

impl Node {
    /// Its path as rsync lists it.
    pub fn listed(&self) -> Vec<u8> {
        let slash: &[u8] = if self.kind == Kind::Directory { b"/" } else { b"" };
        [&self.path, slash].concat()
    }

    fn all(&self) -> Box<dyn Iterator<Item = &Node> + '_> {
        Box::new(std::iter::once(self).chain(self.children.iter().flat_map(Node::all)))
    }
}

/// A source `s` and a destination `d` in a directory.
pub struct Tree {
    pub nodes: Vec<Node>,
    directory: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Tree {
    pub fn random(random: &mut Random) -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let directory = scratch.path().canonicalize().expect("scratch");
        let nodes = children(random, b"", DEPTH, [true, true]);
        let tree = Tree { nodes, directory, _scratch: scratch };
        fs::create_dir(tree.directory.join("s")).expect("a source");
        fs::create_dir(tree.directory.join("d")).expect("a destination");
        for node in tree.all() {
            node.in_source.then(|| create(&tree.directory.join("s"), node));
            node.in_destination.then(|| create(&tree.directory.join("d"), node));
        }
        tree
    }

    /// The directory that rsync runs in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Entries of both trees, each after its directory.
    pub fn all(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flat_map(Node::all)
    }

    /// The number of entries of the source.
    pub fn sources(&self) -> usize {
        self.all().filter(|node| node.in_source).count()
    }
}

fn children(random: &mut Random, parent: &[u8], depth: usize, sides: [bool; 2]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let count = if parent.is_empty() { MOST_CHILDREN } else { random.below(MOST_CHILDREN) };
    for _ in 0..count {
        let separator: &[u8] = if parent.is_empty() { b"" } else { b"/" };
        let path = [parent, separator, random.pick(&NAMES)].concat();
        let is_directory = depth > 1 && random.below(2) == 0;
        let [in_source, in_destination] = sides.map(|side| side && random.below(4) > 0);
        if !(in_source || in_destination) || nodes.iter().any(|node| node.path == path) {
            continue;
        }
        let (kind, children) = if is_directory {
            (Kind::Directory, children(random, &path, depth - 1, [in_source, in_destination]))
        } else {
            (Kind::File, Vec::new())
        };
        nodes.push(Node { path, kind, in_source, in_destination, children });
    }
    nodes
}

fn create(root: &Path, node: &Node) {
    let path = root.join(OsStr::from_bytes(&node.path));
    match node.kind {
        Kind::File => drop(File::create(path).expect("a file")),
        Kind::Directory => fs::create_dir(path).expect("a directory"),
    }
}
