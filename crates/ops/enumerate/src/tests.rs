use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use millstream_posix::PosixVolume;
use millstream_vfs::{Errno, Metadata};
use millstream_walk::Threads;
use millstream_wire::{Decoder, Malformed, vector};

use super::block::{Columns, FLAG_MORE, FLAG_NOT_DIRECTORY, Header};
use super::packer::MAX_BLOCK_ENTRIES;
use millstream_text::hidden::IgnoredNames;

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

fn decode(bytes: &[u8]) -> Vec<Decoded> {
    let mut input = Decoder::new(bytes);
    let mut decoded = Vec::new();
    while !input.is_empty() {
        decoded.push(decode_block(&mut input).expect("well-formed"));
    }
    decoded
}

fn decode_block(input: &mut Decoder<'_>) -> Result<Decoded, Malformed> {
    fn skip_padding(input: &mut Decoder<'_>, length: usize) -> Result<(), Malformed> {
        input.bytes(length.next_multiple_of(8) - length).map(drop)
    }
    let (root, flags, errno) = (input.u32()?, input.u32()?, input.u32()? as i32);
    let n = input.u32()? as usize;
    let (path_len, names_len) = (input.u32()? as usize, input.u32()? as usize);
    let (_unexamined, _listed_at) = (input.u32()?, input.u32()?);
    let position_len = input.u32()? as usize;
    let (path, position) = (input.bytes(path_len)?.to_vec(), input.bytes(position_len)?.to_vec());
    skip_padding(input, 36 + path_len + position_len)?;
    let sizes = (0..n).map(|_| input.i64()).collect::<Result<Vec<_>, _>>()?;
    input.bytes(8 * n)?;
    let ends = (0..n).map(|_| input.u32()).collect::<Result<Vec<_>, _>>()?;
    let (kinds, names) = (input.bytes(n)?, input.bytes(names_len)?);
    skip_padding(input, 21 * n + names_len)?;
    let mut start = 0;
    let entries = (0..n).map(|i| {
        let end = ends[i] as usize;
        let name = names[start..end].to_vec();
        start = end;
        (name, sizes[i], kinds[i] != 0)
    });
    Ok(Decoded { entries: entries.collect(), root, flags, errno, path, position })
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
    assert_eq!(header.block(&[first, second]), vector("listing-block.hex"));
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
    let flags: Vec<_> = queue.lock().blocks.iter().map(|block| decode(block)[0].flags).collect();
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
