//! Trees on the kernel's file systems, one of which is swapped for a link while it is used.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_posix::PosixVolume;
use millstream_version::Version;
use millstream_vfs::{Dir, Errno, FileKind, SymlinkBehavior, Timestamp, Volume};

use super::*;

const PLAIN: Carried = Carried { xattrs: false, acls: false, sparse: Sparse::Auto, bytes_per_second: None };
const TIME: Timestamp = Timestamp { sec: 1_500_000_000, nsec: 123_456_789 };
const ALL: Wanted = Wanted { uid: None, gid: None, mode: Some(0o640), mtime: Some(TIME) };

fn tree(path: &Path) -> Tree<PosixVolume> {
    Tree::new(PosixVolume, CString::new(path.as_os_str().as_bytes()).expect("no NUL"), PLAIN)
}

fn names(path: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(path).expect("readable").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().as_bytes().to_vec()).collect();
    names.sort();
    names
}

fn listed(tree: &Tree<PosixVolume>, path: &[u8]) -> Vec<(Vec<u8>, FileKind, Vec<u8>)> {
    let mut listing = tree.list(path).expect("opens");
    let mut found = Vec::new();
    while listing
        .next(&mut |name, entry| {
            let entry = entry.expect("examined");
            found.push((name.to_bytes().to_vec(), entry.metadata.kind(), entry.target));
        })
        .expect("read")
    {}
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn version(tree: &Tree<PosixVolume>, path: &[u8]) -> Version {
    let found = tree.status(path).expect("examined").expect("exists").metadata;
    Version::at(found.size, found.mtime)
}

fn copy(
    from: &Tree<PosixVolume>,
    to: &Tree<PosixVolume>,
    path: &[u8],
) -> Result<Copied<PosixVolume>, TreeError> {
    to.copy_from(from, path, &version(from, path), (c".tmp", &ALL), Verification::Checksum)
}

#[test]
fn names_are_bytes() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let odd = OsStr::from_bytes(b"d\xff");
    std::fs::create_dir(top.join(odd)).expect("mkdir");
    std::fs::write(top.join(odd).join(OsStr::from_bytes(b"\xfe\n")), "content").expect("write");
    symlink(OsStr::from_bytes(b"to\xc3"), top.join(odd).join("link")).expect("symlink");
    let tree = tree(top);
    let expected = [
        (b"link".to_vec(), FileKind::Symlink, b"to\xc3".to_vec()),
        (b"\xfe\n".to_vec(), FileKind::File, vec![]),
    ];
    assert_eq!(listed(&tree, b"d\xff"), expected);
    assert_eq!(version(&tree, b"d\xff/\xfe\n").size, 7);
    assert_eq!(tree.remove(b"d\xff/\xfe\n"), Ok(Removed::Done));
    assert_eq!(tree.remove(b"d\xff"), Ok(Removed::NotEmpty));
    assert_eq!(tree.remove(b"d\xff/\xfe\n"), Ok(Removed::Gone));
}

#[test]
fn a_version_is_read_whole_or_not_at_all() {
    let scratch = tempfile::tempdir().expect("scratch");
    std::fs::write(scratch.path().join("f"), "content").expect("write");
    let tree = tree(scratch.path());
    let now = version(&tree, b"f");
    let mut content = b"something longer".to_vec();
    assert_eq!(
        (tree.read_version(b"f", &now, &mut content), content.as_slice()),
        (Ok(true), &b"content"[..])
    );
    let earlier = Timestamp::from_nanos(now.mtime.as_nanos() - 1);
    for other in [Version { size: 6, ..now.clone() }, Version::at(now.size, earlier)] {
        assert_eq!(tree.read_version(b"f", &other, &mut content), Ok(false), "{other:?}");
    }
    let absent = tree.read_version(b"g", &now, &mut content);
    assert_eq!(absent.map_err(|error| error.errno()), Err(Some(Errno::NOENT)));
}

#[test]
fn a_time_that_is_known_late_is_kept() {
    let scratch = tempfile::tempdir().expect("scratch");
    let tree = tree(scratch.path());
    let mut staged = tree.stage(b"f", c".tmp", &Wanted::default()).expect("staged");
    staged.write(b"x", 0).expect("written");
    staged.keep_time(TIME);
    staged.install().expect("installed");
    assert_eq!(version(&tree, b"f"), Version::at(1, TIME));
}

#[test]
fn only_paths_below_the_root_are_taken() {
    let scratch = tempfile::tempdir().expect("scratch");
    let tree = tree(scratch.path());
    for path in [&b"/a"[..], b"a/", b"a//b", b"..", b"a/../b", b".", b"a\0b"] {
        assert_eq!(tree.status(path).map_err(|error| error.errno()), Err(Some(Errno::INVAL)), "{path:?}");
    }
    assert_eq!(tree.remove(b"").map_err(|error| error.errno()), Err(Some(Errno::INVAL)));
}

#[test]
fn nothing_is_at_a_path_below_a_file_or_a_link_and_a_missing_root_is_an_error() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    std::fs::create_dir(top.join("d")).expect("mkdir");
    std::fs::write(top.join("d/f"), "").expect("write");
    symlink("d", top.join("link")).expect("symlink");
    let tree = tree(top);
    for path in [&b"none"[..], b"none/x", b"d/f/x", b"link/f"] {
        assert_eq!(tree.status(path), Ok(None), "{path:?}");
        assert_eq!(tree.remove(path), Ok(Removed::Gone), "{path:?}");
    }
    assert_eq!(tree.status(b"link").map(|found| found.map(|found| found.target)), Ok(Some(b"d".to_vec())));
    let missing = super::tests::tree(&top.join("missing"));
    assert_eq!(missing.status(b""), Ok(None));
    for result in [missing.status(b"x").map(drop), missing.remove(b"x").map(drop)] {
        assert_eq!(result.map_err(|error| error.errno()), Err(Some(Errno::NOENT)));
    }
    assert_eq!(names(&top.join("d")), [b"f"]);
}

#[test]
fn the_root_may_be_a_link_and_be_made() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    symlink("real", top.join("link")).expect("symlink");
    std::fs::create_dir(top.join("real")).expect("mkdir");
    let tree = tree(&top.join("link/new/root"));
    assert_eq!(tree.make_directory(b"a/b/c"), Ok(()));
    assert_eq!(tree.make_directory(b"a/b"), Ok(()));
    assert!(top.join("real/new/root/a/b/c").is_dir());
    std::fs::write(top.join("real/new/root/f"), "").expect("write");
    symlink("a", top.join("real/new/root/l")).expect("symlink");
    for path in [&b"f"[..], b"l"] {
        assert_eq!(tree.make_directory(path).map_err(|error| error.errno()), Err(Some(Errno::EXIST)));
    }
    assert!(tree.make_directory(b"l/x").is_err() && tree.make_directory(b"f/x").is_err());
    assert_eq!(names(&top.join("real/new/root/a")), [b"b"]);
}

#[test]
fn copies_are_complete_before_they_have_their_name() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let (from, to) = (tree(&top.join("from")), tree(&top.join("to")));
    from.make_directory(b"d").expect("made");
    to.make_directory(b"d").expect("made");
    for size in [0, 10, 1 << 20] {
        let content = vec![b'x'; size];
        std::fs::write(top.join("from/d/f"), &content).expect("write");
        std::fs::write(top.join("to/d/f"), "old").expect("write");
        let copied = copy(&from, &to, b"d/f").expect("copied");
        assert_eq!((copied.change, copied.bytes), (SourceChange::Unchanged, size as u64));
        assert!(copied.checksum.is_some());
        assert_eq!(std::fs::read(top.join("to/d/f")).expect("readable"), b"old");
        copied.staged.expect("staged").install().expect("installed");
        assert_eq!(std::fs::read(top.join("to/d/f")).expect("readable"), content);
        let made = std::fs::metadata(top.join("to/d/f")).expect("stat");
        assert_eq!(
            (made.mode() & 0o7777, made.mtime(), made.mtime_nsec()),
            (0o640, TIME.sec, TIME.nsec.into())
        );
    }
    drop(copy(&from, &to, b"d/f").expect("copied"));
    assert_eq!(names(&top.join("to/d")), [b"f"], "what is not installed goes");
}

#[test]
fn copies_carry_what_they_are_to() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let from = tree(&top.join("from"));
    from.make_directory(b"").expect("made");
    let zeros = vec![0; 1 << 20];
    std::fs::write(top.join("from/f"), &zeros).expect("write");
    from.root().and_then(|root| root.set_xattr(c"f", c"user.note", b"kept")).expect("set");
    for (name, carries) in [("plain", false), ("all", true)] {
        let sparse = if carries { Sparse::Always } else { Sparse::Never };
        let carried = Carried { xattrs: carries, acls: carries, sparse, bytes_per_second: None };
        let path = CString::new(top.join(name).as_os_str().as_bytes()).expect("no NUL");
        let to = Tree::new(PosixVolume, path, carried);
        to.make_directory(b"").expect("made");
        copy(&from, &to, b"f").expect("copied").staged.expect("staged").install().expect("installed");
        let note = to.root().and_then(|root| root.get_xattr(c"f", c"user.note", SymlinkBehavior::NoFollow));
        assert_eq!(note.is_ok_and(|note| note == b"kept"), carries);
        let made = std::fs::metadata(top.join(name).join("f")).expect("stat");
        assert_eq!((made.blocks() == 0, made.len(), made.mode() & 0o777), (carries, 1 << 20, 0o640));
        assert_eq!(std::fs::read(top.join(name).join("f")).expect("readable"), zeros);
    }
}

/// A list for one more user, of version 2: owner rw, the user 1234 r, group r, mask r, others none.
const ACL: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 210, 4, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16,
    0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];

#[test]
fn extended_attributes_and_lists_are_told_and_made_like_those_of_the_source() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let carrying = |name: &str| {
        let path = CString::new(top.join(name).as_os_str().as_bytes()).expect("no NUL");
        let tree = Tree::new(PosixVolume, path, Carried { xattrs: true, acls: true, ..PLAIN });
        tree.make_directory(b"d").expect("made");
        tree
    };
    let (from, to) = (carrying("from"), carrying("to"));
    let found = |tree: &Tree<PosixVolume>, path: &[u8]| {
        let found = tree.status(path).expect("examined").expect("exists");
        (found.acls, found.xattrs)
    };
    std::fs::write(top.join("from/f"), "").expect("write");
    std::fs::write(top.join("to/f"), "").expect("write");
    assert_eq!(found(&from, b"f"), (None, None));
    let (source, copy) = (from.root().expect("opens"), to.root().expect("opens"));
    for name in [c"f", c"d", c"."] {
        source.set_xattr(name, c"user.note", b"one").expect("set");
        source.set_xattr(name, c"system.posix_acl_access", &ACL).expect("set");
        copy.set_xattr(name, c"user.other", b"two").expect("set");
    }
    for path in [&b"f"[..], b"d", b""] {
        let expected = found(&from, path);
        assert!(expected.0.is_some() && expected.1.is_some() && expected != found(&to, path), "{path:?}");
        let mode = from.status(path).expect("examined").expect("exists").metadata.mode & 0o7777;
        let wanted = Wanted { mode: Some(mode), ..Wanted::default() };
        to.set_attributes(path, (Some(&from), &wanted)).expect("set");
        assert_eq!(found(&to, path), expected, "{path:?}");
    }
    let mut listed = Vec::new();
    let mut listing = to.list(b"").expect("opens");
    while listing.next(&mut |_, entry| listed.push(entry.expect("examined").xattrs)).expect("read") {}
    assert_eq!(listed, [found(&from, b"f").1; 2], "listings say the same");
    assert_eq!(
        found(&tree(&top.join("from")), b"f"),
        (None, None),
        "a tree that carries nothing looks at nothing"
    );
    source.remove_xattr(c"f", c"user.note").expect("removed");
    source.remove_xattr(c"f", c"system.posix_acl_access").expect("removed");
    to.set_attributes(b"f", (Some(&from), &Wanted::default())).expect("set");
    assert_eq!(found(&to, b"f"), (None, None));
}

/// A change of the owner takes capabilities away, which both sides have.
#[test]
fn capabilities_survive_a_new_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Version 2 of linux/capability.h: permitted are those with the number 10, CAP_NET_BIND_SERVICE.
    const BINDS: [u8; 20] = [0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let scratch = tempfile::tempdir().expect("scratch");
    let trees = ["from", "to"].map(|name| {
        let path = CString::new(scratch.path().join(name).as_os_str().as_bytes()).expect("no NUL");
        let tree = Tree::new(PosixVolume, path, Carried { xattrs: true, ..PLAIN });
        tree.make_directory(b"").expect("made");
        std::fs::write(scratch.path().join(name).join("f"), "").expect("write");
        tree.root().and_then(|root| root.set_xattr(c"f", c"security.capability", &BINDS)).expect("set");
        tree
    });
    let [from, to] = &trees;
    let wanted = Wanted { uid: Some(1234), mode: Some(0o755), ..Wanted::default() };
    to.set_attributes(b"f", (Some(from), &wanted)).expect("set");
    let found = to.status(b"f").expect("examined").expect("exists");
    assert_eq!((found.metadata.uid, found.metadata.mode & 0o7777), (1234, 0o755));
    assert!(found.xattrs.is_some(), "the capability is gone");
}

#[test]
fn pipes_and_hard_links_replace_what_is_there() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let tree = tree(top);
    std::fs::write(top.join("f"), "kept").expect("write");
    std::fs::write(top.join("g"), "replaced").expect("write");
    std::fs::create_dir(top.join("d")).expect("mkdir");
    assert_eq!(tree.make_hard_link(b"g", b"f", c".tmp"), Ok(()));
    assert_eq!(tree.make_hard_link(b"g", b"f", c".tmp"), Ok(()), "it may be one already");
    assert_eq!(tree.make_hard_link(b"d/h", b"f", c".tmp"), Ok(()));
    let inode = |name: &str| std::fs::metadata(top.join(name)).expect("stat").ino();
    assert_eq!([inode("g"), inode("d/h")], [inode("f"); 2]);
    assert_eq!(tree.status(b"f").expect("examined").expect("exists").metadata.nlink, 3);
    assert!(tree.make_hard_link(b"d", b"f", c".tmp").is_err());
    assert!(tree.make_hard_link(b"new", b"none", c".tmp").is_err());
    let pipe = Special::Node(millstream_vfs::NodeKind::Fifo);
    assert_eq!(tree.make_special(b"g", pipe, c".tmp", (None, &ALL)), Ok(None));
    let made = tree.status(b"g").expect("examined").expect("exists").metadata;
    assert_eq!((made.kind(), made.mode & 0o7777, made.mtime), (FileKind::Fifo, 0o640, TIME));
    assert_eq!(
        (names(top), names(&top.join("d"))),
        (vec![b"d".to_vec(), b"f".to_vec(), b"g".to_vec()], vec![b"h".to_vec()])
    );
}

#[test]
fn another_version_than_the_expected_is_not_copied() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let (from, to) = (tree(&top.join("from")), tree(&top.join("to")));
    from.make_directory(b"").expect("made");
    to.make_directory(b"").expect("made");
    std::fs::write(top.join("from/f"), "one").expect("write");
    let listed = version(&from, b"f");
    std::fs::write(top.join("from/f"), "two, longer").expect("write");
    let copied = to.copy_from(&from, b"f", &listed, (c".tmp", &ALL), Verification::None).expect("examined");
    assert_eq!((copied.change, copied.staged.is_none()), (SourceChange::Changed, true));
    assert!(names(&top.join("to")).is_empty());
    symlink("f", top.join("from/link")).expect("symlink");
    let refused = to.copy_from(&from, b"link", &listed, (c".tmp", &ALL), Verification::None);
    assert_eq!(refused.map(drop).map_err(|error| error.errno()), Err(Some(Errno::LOOP)));
}

#[test]
fn large_files_are_copied_in_chunks() {
    const CHUNK: u64 = crate::transfer::copy_workers::CHUNK;
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let (from, to) = (tree(&top.join("from")), tree(&top.join("to")));
    from.make_directory(b"").expect("made");
    to.make_directory(b"").expect("made");
    // All of the first chunk and a little, and data around the ends of other ones.
    let file = std::fs::File::create(top.join("from/f")).expect("created");
    for at in (0..CHUNK + 1).step_by(1 << 20) {
        file.write_all_at(&vec![(at >> 20) as u8 + 1; 1 << 20], at).expect("written");
    }
    for (at, bytes) in [(CHUNK * 2 - 3, "across"), (CHUNK * 3, "begins"), (CHUNK * 4 - 2, "at the end")] {
        file.write_all_at(bytes.as_bytes(), at).expect("written");
    }
    let listed = version(&from, b"f");
    let copied = to.copy_from(&from, b"f", &listed, (c".tmp", &ALL), Verification::None).expect("copied");
    assert_eq!((copied.bytes, copied.change), (CHUNK * 4 + 8, SourceChange::Unchanged));
    copied.staged.expect("staged").install().expect("installed");
    let content = |name| std::fs::read(top.join(name)).expect("read");
    assert!(content("to/f") == content("from/f"));
    let blocks = |name| std::fs::metadata(top.join(name)).expect("examined").blocks();
    assert!(blocks("to/f") <= blocks("from/f") + 64, "{} and {}", blocks("to/f"), blocks("from/f"));
}

#[test]
fn a_cancelled_tree_copies_nothing_more() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let (from, to) = (tree(&top.join("from")), tree(Path::new("/dev/shm/millstream-tree-test")));
    from.make_directory(b"").expect("made");
    to.make_directory(b"").expect("made");
    std::fs::write(top.join("from/f"), vec![0; 1 << 20]).expect("write");
    to.cancel();
    let copied = copy(&from, &to, b"f").map(drop);
    // A clone needs no time that could be saved.
    assert!(copied.is_ok() || copied.map_err(|error| error.errno()) == Err(Some(Errno::CANCELED)));
    assert!(names(Path::new("/dev/shm/millstream-tree-test")).is_empty());
    std::fs::remove_dir("/dev/shm/millstream-tree-test").expect("removed");
}

#[test]
fn links_replace_what_is_there() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let tree = tree(top);
    std::fs::write(top.join("f"), "").expect("write");
    std::fs::create_dir(top.join("d")).expect("mkdir");
    let make = |path: &[u8]| tree.make_special(path, Special::Symlink(c"to\xff"), c".tmp", (None, &ALL));
    assert_eq!(make(b"f"), Ok(None));
    assert_eq!(std::fs::read_link(top.join("f")).expect("link").as_os_str().as_bytes(), b"to\xff");
    let made = std::fs::symlink_metadata(top.join("f")).expect("stat");
    assert_eq!((made.mtime(), made.mtime_nsec()), (TIME.sec, TIME.nsec.into()));
    assert!(make(b"d").is_err());
    assert_eq!(names(top), [&b"d"[..], b"f"]);
}

#[test]
fn attributes_are_set_on_links_themselves_and_special_bits_survive_the_owner() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let tree = tree(top);
    std::fs::write(top.join("f"), "").expect("write");
    std::fs::set_permissions(top.join("f"), std::fs::Permissions::from_mode(0o600)).expect("chmod");
    symlink("f", top.join("link")).expect("symlink");
    let gid = std::fs::metadata(top).expect("stat").gid();
    let is_superuser = rustix::process::geteuid().is_root();
    let (uid, gid) = if is_superuser { (Some(1234), Some(2345)) } else { (None, Some(gid)) };
    tree.set_attributes(b"f", (None, &Wanted { uid, gid, mode: Some(0o4711), mtime: Some(TIME) }))
        .expect("set");
    let file = std::fs::metadata(top.join("f")).expect("stat");
    assert_eq!((file.mode() & 0o7777, file.mtime(), Some(file.gid())), (0o4711, TIME.sec, gid));
    let later = Wanted { mtime: Some(Timestamp { sec: 7, nsec: 0 }), ..Wanted::default() };
    tree.set_attributes(b"link", (None, &later)).expect("set");
    assert_eq!(std::fs::symlink_metadata(top.join("link")).expect("stat").mtime(), 7);
    assert_eq!(std::fs::metadata(top.join("f")).expect("stat").mtime(), TIME.sec);
    tree.set_attributes(b"", (None, &Wanted { mode: Some(0o711), ..Wanted::default() })).expect("set");
    assert_eq!(std::fs::metadata(top).expect("stat").mode() & 0o7777, 0o711);
}

#[test]
fn whole_trees_go_and_links_in_them_lead_nowhere() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    std::fs::create_dir_all(top.join("tree/a/b/c")).expect("mkdir");
    std::fs::create_dir(top.join("outside")).expect("mkdir");
    std::fs::write(top.join("outside/f"), "kept").expect("write");
    std::fs::write(top.join("tree/a/b/f"), "").expect("write");
    symlink("../../outside", top.join("tree/a/link")).expect("symlink");
    let tree = tree(&top.join("tree"));
    assert_eq!(tree.remove_tree(b"a/b/f"), Ok(()));
    assert_eq!(tree.remove_tree(b"a/none"), Ok(()));
    assert_eq!(tree.remove_tree(b"a"), Ok(()));
    assert!(names(&top.join("tree")).is_empty());
    assert_eq!(names(&top.join("outside")), [b"f"]);
}

/// A directory that is moved away, and another one made in its place, between any two calls.
#[test]
fn a_directory_that_was_replaced_is_not_used_any_more() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let tree = tree(&top.join("tree"));
    tree.make_directory(b"d").expect("made");
    std::fs::write(top.join("tree/d/f"), "old").expect("write");
    assert_eq!(version(&tree, b"d/f").size, 3);
    std::fs::rename(top.join("tree/d"), top.join("moved")).expect("rename");
    assert_eq!(tree.status(b"d/f"), Ok(None));
    assert_eq!(tree.remove(b"d/f"), Ok(Removed::Gone));
    tree.make_directory(b"d").expect("made");
    let staged = tree.stage(b"d/new", c".tmp", &ALL).expect("staged");
    staged.write(b"content", 0).expect("written");
    staged.install().expect("installed");
    assert_eq!(names(&top.join("moved")), [b"f"]);
    assert_eq!(names(&top.join("tree/d")), [b"new"]);
}

/// While one thread exchanges a directory of the path and a link to the outside, another one writes, amends and deletes
/// below it.
#[test]
fn nothing_outside_is_touched_while_links_come_and_go() {
    let scratch = tempfile::tempdir().expect("scratch");
    let top = scratch.path();
    let (from, tree) = (tree(&top.join("from")), tree(&top.join("tree")));
    from.make_directory(b"a/b").expect("made");
    std::fs::write(top.join("from/a/b/f"), "from inside").expect("write");
    tree.make_directory(b"a/b").expect("made");
    std::fs::create_dir_all(top.join("outside/b/e")).expect("mkdir");
    std::fs::write(top.join("outside/b/f"), "outside").expect("write");
    symlink(top.join("outside"), top.join("tree/swap")).expect("symlink");
    let before = std::fs::metadata(top.join("outside/b")).expect("stat");
    let is_over = AtomicBool::new(false);
    let expected = version(&from, b"a/b/f");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let path = CString::new(top.join("tree").as_os_str().as_bytes()).expect("no NUL");
            let dir = PosixVolume.base().open_dir(&path, SymlinkBehavior::Follow).expect("opens");
            while !is_over.load(Ordering::Relaxed) {
                dir.exchange(c"a", &dir, c"swap").expect("exchanged");
                std::thread::yield_now();
            }
        });
        for _ in 0..2000 {
            let attributes = Wanted { mode: Some(0o700), ..ALL };
            if let Ok(copied) =
                tree.copy_from(&from, b"a/b/f", &expected, (c".tmp", &ALL), Verification::None)
            {
                let _ = copied.staged.expect("the source is as expected").install();
            }
            let _ = tree.set_attributes(b"a/b/e", (None, &attributes));
            let _ = tree.set_attributes(b"a/b", (None, &attributes));
            let _ = tree.make_directory(b"a/b/made");
            let _ = tree.make_special(b"a/b/link", Special::Symlink(c"x"), c".link", (None, &ALL));
            let removed = [tree.remove(b"a/b/f"), tree.remove(b"a/b/e"), tree.remove(b"a/b/made")];
            assert!(removed.iter().flatten().all(|removed| *removed != Removed::Mounted));
            let _ = tree.remove_tree(b"a/b/link");
            let _ = tree
                .list(b"a/b")
                .map(|mut listing| listing.next(&mut |name, _| assert_ne!(name, c"outside")));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read(top.join("outside/b/f")).expect("readable"), b"outside");
    assert_eq!(names(&top.join("outside/b")), [&b"e"[..], b"f"]);
    let after = std::fs::metadata(top.join("outside/b")).expect("stat");
    assert_eq!(
        (after.mode(), after.mtime(), after.ctime_nsec()),
        (before.mode(), before.mtime(), before.ctime_nsec())
    );
}

/// `/proc/sys` is mounted on `/proc` in most systems, and the other way round nothing can be removed from it.
#[test]
fn what_is_mounted_is_told_and_not_removed() {
    let root = tree(Path::new("/"));
    let listing = root.list(b"proc/self").map(drop);
    assert!(listing.is_err(), "a link is not followed");
    assert_eq!(root.list(b"proc/1").expect("opens").mount(), Some(&b"proc"[..]));
    assert_eq!(root.list(b"usr").expect("opens").mount(), None);
    assert_eq!(root.remove(b"proc/1/status"), Ok(Removed::Mounted));
    assert_eq!(root.remove(b"proc"), Ok(Removed::Mounted));
    assert!(root.status(b"proc").expect("examined").expect("exists").metadata.is_mount_root);
}
