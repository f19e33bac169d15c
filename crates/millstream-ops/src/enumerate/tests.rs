use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use millstream_vfs::{Errno, Metadata, PosixVolume};
use millstream_walk::Threads;

use super::block::{Columns, FLAG_MORE, FLAG_NOT_DIRECTORY, Header};
use super::packer::MAX_BLOCK_ENTRIES;
use super::*;

const TREE: EnumerateOptions = EnumerateOptions {
    depth: Depth::Tree,
    subdirectories: Subdirectories::Omit,
    ignored: IgnoredNames::Hidden,
    threads: Threads::Fixed(4),
};

#[derive(Debug, Default, PartialEq, Eq)]
struct Decoded {
    root: u32,
    flags: u32,
    errno: i32,
    path: Vec<u8>,
    position: Vec<u8>,
    entries: Vec<(Vec<u8>, i64, bool)>,
}

fn decode(mut bytes: &[u8]) -> Vec<Decoded> {
    fn u32_at(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize
    }
    fn i64_at(bytes: &[u8], at: usize) -> i64 {
        i64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
    }
    let mut decoded = Vec::new();
    while !bytes.is_empty() {
        let (n, path_len, names_len) = (u32_at(bytes, 12), u32_at(bytes, 16), u32_at(bytes, 20));
        let (path_end, position_end) = (36 + path_len, 36 + path_len + u32_at(bytes, 32));
        let sizes = position_end.next_multiple_of(8);
        let (ends, kinds, names) = (sizes + 16 * n, sizes + 20 * n, sizes + 21 * n);
        let mut start = 0;
        let entries = (0..n).map(|i| {
            let end = u32_at(bytes, ends + 4 * i);
            let name = bytes[names + start..names + end].to_vec();
            start = end;
            (name, i64_at(bytes, sizes + 8 * i), bytes[kinds + i] != 0)
        });
        decoded.push(Decoded {
            entries: entries.collect(),
            root: u32_at(bytes, 0) as u32,
            flags: u32_at(bytes, 4) as u32,
            errno: u32_at(bytes, 8) as i32,
            path: bytes[36..path_end].to_vec(),
            position: bytes[path_end..position_end].to_vec(),
        });
        bytes = &bytes[(names + names_len).next_multiple_of(8)..];
    }
    decoded
}

fn enumerate(roots: &[&Path], options: EnumerateOptions) -> Vec<Decoded> {
    let roots = roots.iter().map(|r| CString::new(r.as_os_str().as_bytes()).expect("no NUL")).collect();
    let enumeration = Enumeration::start(PosixVolume, roots, options).expect("a thread");
    let mut blocks = Vec::new();
    loop {
        match enumeration.next(Duration::from_secs(10)).expect("no panic") {
            Delivery::Blocks(more) => blocks.extend(decode(&more)),
            Delivery::NotYet => panic!("nothing came for ten seconds"),
            Delivery::End => return blocks,
        }
    }
}

/// Names of the entries by directory below `root`, sorted.
fn names(blocks: &[Decoded], root: &Path) -> BTreeMap<String, Vec<String>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut by_directory = BTreeMap::new();
    for block in blocks {
        let path = text(&block.path).replacen(&*root.to_string_lossy(), "", 1);
        let mut names: Vec<_> = block.entries.iter().map(|(name, ..)| text(name)).collect();
        names.sort();
        assert!(by_directory.insert(path, names).is_none(), "a directory came twice");
    }
    by_directory
}

fn touch(path: impl AsRef<Path>, size: usize) {
    fs::create_dir_all(path.as_ref().parent().expect("a parent")).expect("create directories");
    fs::write(path, vec![b'x'; size]).expect("write");
}

/// Java's `DirectoryListingTest` reads the same bytes.
#[test]
fn block_is_the_shared_vector() {
    let file = |size, sec, nsec, mode| Metadata {
        size,
        mode,
        mtime: millstream_vfs::Timestamp { sec, nsec },
        ..Metadata::default()
    };
    let mut first = Columns::default();
    first.push(b"a", &file(1, 2, 3_000_000, 0o100_644));
    let mut second = Columns { first_index: 1, ..Columns::default() };
    second.push("\u{e9} %".as_bytes(), &file(1 << 40, -1, 500_000_000, 0o040_755));
    let header = Header {
        root: 3,
        flags: 1,
        errno: 0,
        unexamined: 2,
        listed_at_millis: 7,
        path: b"/d/e",
        position: &[0, 0, 0, 3],
    };
    let mut block = Vec::new();
    header.write_block(&[first, second], &mut block);
    let hex: String = block.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, include_str!("../../../../testdata/listing-block.hex").replace('\n', ""));
}

#[test]
fn tree_comes_whole_and_without_what_spark_ignores() {
    let dir = tempfile::tempdir().expect("tempdir");
    for file in
        ["a", "d/b", "d/e/c", "_hidden/x", ".git/x", "_k=v/y", "d/_SUCCESS", "d/.b.crc", "d/z._COPYING_"]
    {
        touch(dir.path().join(file), 1);
    }
    touch(dir.path().join("_metadata"), 5);
    let found = names(&enumerate(&[dir.path()], TREE), dir.path());
    let expected =
        [("", vec!["_metadata", "a"]), ("/_k=v", vec!["y"]), ("/d", vec!["b"]), ("/d/e", vec!["c"])];
    let expected = expected.map(|(d, names)| (d.to_owned(), names.into_iter().map(str::to_owned).collect()));
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn one_level_reports_subdirectories_and_hides_only_checksums() {
    let dir = tempfile::tempdir().expect("tempdir");
    for file in ["a", ".a.crc", ".hidden", "d/below", ".d.crc/below"] {
        touch(dir.path().join(file), 3);
    }
    let flat = EnumerateOptions {
        depth: Depth::Roots,
        subdirectories: Subdirectories::Report,
        ignored: IgnoredNames::Checksums,
        ..TREE
    };
    let mut blocks = enumerate(&[dir.path()], flat);
    assert_eq!(blocks.len(), 1);
    let entries = &mut blocks[0].entries;
    entries.sort();
    let kinds: Vec<_> = entries.iter().map(|(name, _, is_dir)| (name.as_slice(), *is_dir)).collect();
    assert_eq!(kinds, [(&b".hidden"[..], false), (b"a", false), (b"d", true)]);
    assert_eq!(entries[1].1, 3);
}

#[test]
fn roots_that_are_no_directories_come_as_what_they_are() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (file, hidden, missing) = (dir.path().join("f"), dir.path().join("_f"), dir.path().join("gone"));
    touch(&file, 9);
    touch(&hidden, 9);
    let mut blocks = enumerate(&[&file, &missing, &hidden], TREE);
    blocks.sort_by_key(|b| b.root);
    let parent = dir.path().as_os_str().as_bytes().to_vec();
    let expected = [
        Decoded {
            root: 0,
            flags: FLAG_NOT_DIRECTORY,
            errno: 0,
            path: parent.clone(),
            position: vec![0, 0, 0, 0],
            entries: vec![(b"f".to_vec(), 9, false)],
        },
        Decoded {
            root: 1,
            errno: 2,
            path: missing.as_os_str().as_bytes().to_vec(),
            position: vec![0, 0, 0, 1],
            ..Decoded::default()
        },
        Decoded {
            root: 2,
            flags: FLAG_NOT_DIRECTORY,
            path: parent,
            position: vec![0, 0, 0, 2],
            ..Decoded::default()
        },
    ];
    assert_eq!(blocks, expected);
}

#[test]
fn links_are_followed_dangling_ones_left_out_and_loops_told() {
    let dir = tempfile::tempdir().expect("tempdir");
    touch(dir.path().join("d/f"), 4);
    symlink("d/f", dir.path().join("to_file")).expect("symlink");
    symlink("d", dir.path().join("to_dir")).expect("symlink");
    symlink("nowhere", dir.path().join("dangling")).expect("symlink");
    symlink("self", dir.path().join("self")).expect("symlink");
    let found = names(&enumerate(&[dir.path()], TREE), dir.path());
    let expected = [("", vec!["to_file"]), ("/d", vec!["f"]), ("/to_dir", vec!["f"])];
    let expected = expected.map(|(d, names)| (d.to_owned(), names.into_iter().map(str::to_owned).collect()));
    assert_eq!(found, BTreeMap::from(expected));

    symlink("..", dir.path().join("d/up")).expect("symlink");
    let blocks = enumerate(&[dir.path()], TREE);
    assert!(
        blocks.iter().any(|b| b.errno == Errno::LOOP.raw_os_error() && b.entries.is_empty()),
        "{blocks:?}"
    );
}

/// A directory, then its subtrees in the order in which it lists them, as a serial traversal has them.
fn serially(directory: &Path, found: &mut Vec<Vec<u8>>) {
    found.push(directory.as_os_str().as_bytes().to_vec());
    let entries = fs::read_dir(directory).expect("read_dir").map(|e| e.expect("entry"));
    let below: Vec<_> =
        entries.filter(|e| e.file_type().expect("a type").is_dir()).map(|e| e.path()).collect();
    below.iter().for_each(|d| serially(d, found));
}

#[test]
fn positions_give_the_order_of_a_serial_traversal() {
    let dir = tempfile::tempdir().expect("tempdir");
    let roots = ["z", "a"].map(|root| dir.path().join(root));
    for root in &roots {
        for i in 0..300 {
            touch(root.join(format!("{}/d{}/f", i % 7, i)), 1);
        }
    }
    let mut blocks = enumerate(&[&roots[0], &roots[1]], TREE);
    blocks.sort_by(|a, b| a.position.cmp(&b.position));
    let mut expected = Vec::new();
    roots.iter().for_each(|root| serially(root, &mut expected));
    assert_eq!(blocks.into_iter().map(|b| b.path).collect::<Vec<_>>(), expected);
}

#[test]
fn large_directory_keeps_the_order_of_the_volume() {
    let dir = tempfile::tempdir().expect("tempdir");
    for i in 0..20_000 {
        fs::File::create(dir.path().join(format!("file-{i}"))).expect("create");
    }
    let listed: Vec<_> = fs::read_dir(dir.path())
        .expect("read_dir")
        .map(|e| e.expect("entry").file_name().as_bytes().to_vec())
        .collect();
    let blocks = enumerate(&[dir.path()], TREE);
    assert_eq!(blocks.len(), 1);
    let found: Vec<_> = blocks[0].entries.iter().map(|(name, ..)| name.clone()).collect();
    assert!(found == listed, "the order differs");
}

#[test]
fn huge_directory_is_cut_between_parts() {
    let queue = Queue::new(Cancellation::default());
    let packer: Packer<'_, PosixVolume> =
        Packer { options: TREE, queue: &queue, volume: std::marker::PhantomData };
    let mut parts: Vec<Columns> = Vec::new();
    for i in 0..3 {
        let mut part = Columns { first_index: i, ..Columns::default() };
        (0..MAX_BLOCK_ENTRIES * 2 / 3).for_each(|_| part.push(b"n", &Metadata::default()));
        parts.push(part);
    }
    packer.send_directory(Header { path: b"/d", ..Header::default() }, &parts);
    let flags: Vec<_> =
        queue.lock().blocks.iter().map(|b| u32::from_le_bytes([b[4], b[5], b[6], b[7]])).collect();
    assert_eq!(flags, [FLAG_MORE, FLAG_MORE, 0]);
}

#[test]
fn unreadable_directory_is_an_error_unless_the_user_may_read_everything() {
    let dir = tempfile::tempdir().expect("tempdir");
    let locked = dir.path().join("locked");
    touch(locked.join("f"), 1);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("chmod");
    let readable = fs::read_dir(&locked).is_ok();
    let blocks = enumerate(&[dir.path()], TREE);
    let errno = blocks.iter().find(|b| b.path.ends_with(b"locked")).expect("a block").errno;
    assert_eq!(errno, if readable { 0 } else { Errno::ACCESS.raw_os_error() });
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).expect("chmod");
}

#[test]
fn dropping_the_enumeration_ends_its_thread() {
    let dir = tempfile::tempdir().expect("tempdir");
    for i in 0..2_000 {
        touch(dir.path().join(format!("d{i}/f")), 0);
    }
    let root = CString::new(dir.path().as_os_str().as_bytes()).expect("no NUL");
    let enumeration = Enumeration::start(PosixVolume, vec![root], TREE).expect("a thread");
    let queue = Arc::clone(&enumeration.queue);
    drop(enumeration);
    let deadline = Instant::now() + Duration::from_secs(60);
    while queue.lock().outcome.is_none() {
        assert!(Instant::now() < deadline, "the traversal goes on");
        thread::sleep(Duration::from_millis(5));
    }
}
