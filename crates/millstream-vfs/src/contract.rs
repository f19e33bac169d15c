//! What every volume must do, as a suite that each volume's own tests run.
//!
//! The suite prepares a directory through the operating system and looks at it through the volume, so a new volume needs
//! nothing but a name for that directory. Every function is one clause; [`all`] runs them in turn.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::{
    Access, At, Dir, DirentBatch, Fields, File, FileKind, NodeKind, Operation, Ownership, ReadState,
    RemoveKind, SymlinkBehavior, Timestamp, Volume,
};

/// A volume and a directory on it that the suite may fill.
#[derive(Debug)]
pub struct Subject<V: Volume> {
    /// The volume.
    pub volume: V,
    /// The directory as the operating system names it; empty.
    pub local: PathBuf,
    /// The same directory as an operand of the volume.
    pub root: CString,
}

impl<V: Volume> Subject<V> {
    fn open(&self) -> V::Dir {
        self.volume.base().open_dir(&self.root, SymlinkBehavior::Follow).expect("the root opens")
    }

    /// Makes a fresh directory for one clause and opens it.
    fn room(&self, name: &str) -> (PathBuf, V::Dir) {
        let local = self.local.join(name);
        std::fs::create_dir(&local).expect("mkdir");
        let dir =
            self.open().open_dir(&c_name(name.as_ref()), SymlinkBehavior::NoFollow).expect("the room opens");
        (local, dir)
    }
}

fn c_name(name: &Path) -> CString {
    CString::new(name.as_os_str().as_bytes()).expect("no NUL")
}

fn entries(dir: &impl Dir, batch_bytes: usize) -> BTreeMap<CString, FileKind> {
    let mut batch = DirentBatch::with_capacity(batch_bytes);
    let mut cursor = Default::default();
    let mut all = BTreeMap::new();
    while dir.read_entries(&mut cursor, &mut batch).expect("readable") == ReadState::More {
        assert!(!batch.is_empty(), "a batch that says More has entries");
        for entry in batch.iter() {
            assert!(all.insert(entry.name.to_owned(), entry.kind).is_none(), "{:?} twice", entry.name);
        }
    }
    all
}

/// Runs every clause.
pub fn all<V: Volume>(subject: &Subject<V>) {
    names_are_bytes(subject);
    large_directories_are_complete(subject);
    kinds_are_right_or_unknown(subject);
    metadata_is_that_of_the_system(subject);
    links_are_followed_only_when_asked(subject);
    identity_is_stable_and_distinct(subject);
    parent_is_reached(subject);
    removal_takes_one_name(subject);
    write_permission_is_that_of_the_effective_user(subject);
    modes_are_set_by_name(subject);
    owners_are_set_by_name(subject);
    attributes_are_set_by_name(subject);
    files_are_written_at_any_place(subject);
    names_are_made_once_and_linked(subject);
    names_are_exchanged_and_files_locked(subject);
    errors_tell_operation_and_cause(subject);
}

/// Any byte but NUL and `/` may occur in a name; `.` and `..` are not entries.
pub fn names_are_bytes<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("names");
    let names: [&[u8]; 6] =
        [b"plain", b"new\nline", b"\xff\xfe invalid", "\u{e9}\u{65e5}".as_bytes(), b"-dash", b"..."];
    for name in names {
        std::fs::write(local.join(std::ffi::OsString::from_vec(name.to_vec())), b"").expect("write");
    }
    let listed: Vec<_> = entries(&dir, 4096).into_keys().map(CString::into_bytes).collect();
    let mut expected: Vec<_> = names.iter().map(|n| n.to_vec()).collect();
    expected.sort();
    assert_eq!(listed, expected);
}

/// Reading in many small batches gives every entry once.
pub fn large_directories_are_complete<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("large");
    for i in 0..3_000 {
        std::fs::write(local.join(format!("entry-number-{i:05}")), b"").expect("write");
    }
    assert_eq!(entries(&dir, 2_048).len(), 3_000);
    let again = subject.open().open_dir(c"large", SymlinkBehavior::NoFollow).expect("opens");
    assert_eq!(entries(&again, 1 << 20).len(), 3_000);
}

/// A directory entry states its true type or none.
pub fn kinds_are_right_or_unknown<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("kinds");
    std::fs::create_dir(local.join("dir")).expect("mkdir");
    std::fs::write(local.join("file"), b"").expect("write");
    symlink("file", local.join("link")).expect("symlink");
    let wanted = [(c"dir", FileKind::Directory), (c"file", FileKind::File), (c"link", FileKind::Symlink)];
    let listed = entries(&dir, 4096);
    for (name, kind) in wanted {
        assert!(
            [kind, FileKind::Unknown].contains(&listed[name]),
            "{name:?} is listed as {:?}",
            listed[name]
        );
        let metadata = dir.metadata(name, SymlinkBehavior::NoFollow, Fields::KIND).expect("stat");
        assert_eq!(metadata.kind(), kind);
    }
}

/// All that `stat(2)` tells is told, and the fields asked for are marked as filled.
pub fn metadata_is_that_of_the_system<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("metadata");
    std::fs::write(local.join("file"), vec![7; 12_345]).expect("write");
    std::fs::hard_link(local.join("file"), local.join("second")).expect("link");
    let ours = dir.metadata(c"file", SymlinkBehavior::NoFollow, Fields::STAT).expect("stat");
    let theirs = std::fs::symlink_metadata(local.join("file")).expect("stat");
    assert!(ours.fields.contains(Fields::STAT));
    assert_eq!((ours.size, ours.nlink, ours.mode), (12_345, 2, theirs.mode()));
    assert_eq!((ours.uid, ours.gid, ours.ino), (theirs.uid(), theirs.gid(), theirs.ino()));
    assert_eq!((ours.mtime.sec, i64::from(ours.mtime.nsec)), (theirs.mtime(), theirs.mtime_nsec()));
    assert_eq!((ours.ctime.sec, i64::from(ours.ctime.nsec)), (theirs.ctime(), theirs.ctime_nsec()));
    assert_eq!(ours.blocks, theirs.blocks());
}

/// Opening and examining a link acts on it or on its target as asked.
pub fn links_are_followed_only_when_asked<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("links");
    std::fs::create_dir(local.join("target")).expect("mkdir");
    symlink("target", local.join("link")).expect("symlink");
    let kind = |symlinks| dir.metadata(c"link", symlinks, Fields::KIND).expect("stat").kind();
    assert_eq!(kind(SymlinkBehavior::NoFollow), FileKind::Symlink);
    assert_eq!(kind(SymlinkBehavior::Follow), FileKind::Directory);
    assert!(dir.open_dir(c"link", SymlinkBehavior::Follow).is_ok());
    assert!(dir.open_dir_for_names(c"link", SymlinkBehavior::Follow).is_ok());
    assert!(dir.open_dir_for_names(c"link", SymlinkBehavior::NoFollow).is_err());
    let refused = dir.open_dir(c"link", SymlinkBehavior::NoFollow).expect_err("a link is not followed");
    assert!(matches!(refused.errno, Errno::LOOP | Errno::NOTDIR), "{refused}");
    assert_eq!(dir.read_link(c"link").expect("readlink"), b"target");
}

/// Identity tells directories apart, survives renaming, and is what `stat` tells.
pub fn identity_is_stable_and_distinct<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("identity");
    let one = dir.identity().expect("identity");
    let other = subject.open().identity().expect("identity");
    assert_ne!(one, other);
    std::fs::rename(&local, subject.local.join("renamed")).expect("rename");
    assert_eq!(dir.identity().expect("identity"), one);
    let told = subject.open().metadata(c"renamed", SymlinkBehavior::NoFollow, Fields::INO).expect("stat");
    assert_eq!(told.identity(), one);
    assert_eq!(dir.own_metadata(Fields::INO).expect("stat").identity(), one);
}

/// The parent is the directory that holds this one now.
pub fn parent_is_reached<V: Volume>(subject: &Subject<V>) {
    let (_, dir) = subject.room("child");
    let parent = dir.open_parent().expect("opens");
    assert_eq!(parent.identity().expect("identity"), subject.open().identity().expect("identity"));
}

/// Removal takes the name itself, never the target of a link, and refuses what is not as announced.
pub fn removal_takes_one_name<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("removal");
    std::fs::create_dir(local.join("full")).expect("mkdir");
    std::fs::write(local.join("full/file"), b"").expect("write");
    symlink("full", local.join("link")).expect("symlink");
    dir.remove(c"link", RemoveKind::File).expect("a link is removed as a file");
    assert!(local.join("full/file").exists());
    let refused = dir.remove(c"full", RemoveKind::Directory).expect_err("not empty");
    assert!(matches!(refused.errno, Errno::NOTEMPTY | Errno::EXIST), "{refused}");
    let refused = dir.remove(c"full", RemoveKind::File).expect_err("a directory");
    assert!(matches!(refused.errno, Errno::ISDIR | Errno::PERM), "{refused}");
    let full = dir.open_dir(c"full", SymlinkBehavior::NoFollow).expect("opens");
    full.remove(c"file", RemoveKind::File).expect("unlink");
    dir.remove(c"full", RemoveKind::Directory).expect("rmdir");
    assert_eq!(std::fs::read_dir(local).expect("readable").count(), 0);
}

/// What may be written is told; nobody needs permission who is above it.
pub fn write_permission_is_that_of_the_effective_user<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("writable");
    for (name, mode) in [("open", 0o600), ("protected", 0o400)] {
        std::fs::write(local.join(name), b"").expect("write");
        std::fs::set_permissions(local.join(name), Permissions::from_mode(mode)).expect("chmod");
    }
    assert_eq!(dir.is_writable(c"open"), Ok(true));
    assert_eq!(dir.is_writable(c"protected"), Ok(rustix::process::geteuid().is_root()));
    let missing = dir.is_writable(c"missing").expect_err("nothing there");
    assert_eq!((missing.operation, missing.errno), (Operation::CheckAccess, Errno::NOENT));
}

/// Modes are set on the name itself, special bits included; a link is followed only when asked, and has no mode.
pub fn modes_are_set_by_name<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("modes");
    std::fs::write(local.join("file"), b"").expect("write");
    std::fs::create_dir(local.join("dir")).expect("mkdir");
    symlink("file", local.join("link")).expect("symlink");
    let mode = |name: &str| std::fs::metadata(local.join(name)).expect("stat").mode() & 0o7777;
    dir.set_mode(c"file", 0o5751, SymlinkBehavior::NoFollow).expect("chmod");
    dir.set_mode(c"dir", 0o1700, SymlinkBehavior::NoFollow).expect("chmod");
    assert_eq!((mode("file"), mode("dir")), (0o5751, 0o1700));
    let refused = dir.set_mode(c"link", 0o600, SymlinkBehavior::NoFollow).expect_err("a link has no mode");
    assert_eq!((refused.operation, refused.errno), (Operation::SetMode, Errno::OPNOTSUPP));
    assert_eq!(mode("file"), 0o5751);
    dir.set_mode(c"link", 0o600, SymlinkBehavior::Follow).expect("chmod");
    assert_eq!(mode("file"), 0o600);
    let missing = dir.set_mode(c"missing", 0o600, SymlinkBehavior::NoFollow).expect_err("nothing there");
    assert_eq!((missing.operation, missing.errno), (Operation::SetMode, Errno::NOENT));
}

/// Owners are set on the name itself, or on a link's target when asked. Only root may, others give what they have.
pub fn owners_are_set_by_name<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("owners");
    std::fs::write(local.join("file"), b"").expect("write");
    symlink("file", local.join("link")).expect("symlink");
    let owner = |name: &str| {
        let metadata = std::fs::symlink_metadata(local.join(name)).expect("stat");
        (metadata.uid(), metadata.gid())
    };
    let had = owner("file");
    let given = if rustix::process::geteuid().is_root() { (1234, 1235) } else { had };
    let all = Ownership { uid: Some(given.0), gid: Some(given.1) };
    dir.set_owner(c"link", all, SymlinkBehavior::NoFollow).expect("lchown");
    assert_eq!((owner("link"), owner("file")), (given, had));
    let group = Ownership { uid: None, gid: Some(given.1) };
    dir.set_owner(c"link", group, SymlinkBehavior::Follow).expect("chown");
    assert_eq!((owner("link"), owner("file")), (given, (had.0, given.1)));
    let missing = dir.set_owner(c"missing", all, SymlinkBehavior::NoFollow).expect_err("nothing there");
    assert_eq!((missing.operation, missing.errno), (Operation::SetOwner, Errno::NOENT));
}

/// Extended attributes of a name are its own, never those of what it leads to. Volumes need not have any.
pub fn attributes_are_set_by_name<V: Volume>(subject: &Subject<V>) {
    const NAME: &CStr = c"user.clause";
    let (local, dir) = subject.room("attributes");
    std::fs::write(local.join("file"), b"").expect("write");
    symlink("file", local.join("link")).expect("symlink");
    match dir.set_xattr(c"file", NAME, b"value") {
        Err(error) if error.errno == Errno::OPNOTSUPP => return,
        set => set.expect("set"),
    }
    let value = |name: &CStr| dir.get_xattr(name, NAME, SymlinkBehavior::NoFollow);
    assert_eq!(value(c"file"), Ok(b"value".to_vec()));
    // Links have none of this kind.
    assert!(dir.set_xattr(c"link", NAME, b"other").is_err());
    assert!(dir.remove_xattr(c"link", NAME).is_err());
    assert_eq!(value(c"file"), Ok(b"value".to_vec()));
    dir.remove_xattr(c"file", NAME).expect("removed");
    let missing = dir.remove_xattr(c"file", NAME).expect_err("it is gone");
    assert_eq!((missing.operation, missing.errno), (Operation::SetXattr, Errno::NODATA));
}

/// Data goes where it is said to go; holes are found where the volume knows them; attributes are set on open files.
pub fn files_are_written_at_any_place<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("files");
    let file = dir.create_file(c"file", 0o600).expect("created");
    file.write_all(b"tail", At::Offset(1 << 20)).expect("written");
    file.write_all(b"head", At::Offset(0)).expect("written");
    let data = std::fs::read(local.join("file")).expect("readable");
    assert_eq!((&data[..5], &data[1 << 20..], data.len()), (&b"head\0"[..], &b"tail"[..], (1 << 20) + 4));
    assert_eq!(file.next_data(0).expect("found"), Some(0));
    assert_eq!(file.next_data(1 << 30).expect("found"), None);
    let mut buffer = [0; 16];
    assert_eq!(file.read(&mut buffer, At::Offset(1 << 20)).expect("read"), 4);
    file.set_len(2).expect("cut");
    file.set_mode(0o640).expect("chmod");
    let (atime, mtime) = (Timestamp { sec: 5, nsec: 6 }, Timestamp { sec: -7, nsec: 8 });
    file.set_times(atime, mtime).expect("utimes");
    let told = file.metadata(Fields::STAT).expect("stat");
    assert_eq!((told.size, told.mode & 0o7777, told.atime, told.mtime), (2, 0o640, atime, mtime));
    let refused = dir.create_file(c"file", 0o600).expect_err("it exists");
    assert_eq!((refused.operation, refused.errno), (Operation::CreateFile, Errno::EXIST));
    symlink("file", local.join("link")).expect("symlink");
    let refused = dir.open_file(c"link", Access::Read, SymlinkBehavior::NoFollow).expect_err("a link");
    assert_eq!(refused.errno, Errno::LOOP);
    let followed = dir.open_file(c"link", Access::Truncate, SymlinkBehavior::Follow).expect("followed");
    assert_eq!(followed.metadata(Fields::SIZE).expect("stat").size, 0);
    let own = dir.as_file().expect("a file").metadata(Fields::INO).expect("stat");
    assert_eq!(own.identity(), dir.identity().expect("identity"));
}

/// Directories, links and nodes are made under new names only; renaming replaces.
pub fn names_are_made_once_and_linked<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("made");
    dir.create_dir(c"dir", 0o700).expect("mkdir");
    let below = dir.open_dir(c"dir", SymlinkBehavior::NoFollow).expect("opens");
    drop(below.create_file(c"one", 0o600).expect("created"));
    below.hard_link(c"one", SymlinkBehavior::NoFollow, &dir, c"two").expect("linked");
    dir.create_symlink(c"link", c"two").expect("symlink");
    dir.create_node(c"pipe", NodeKind::Fifo, 0o600).expect("mkfifo");
    let again = dir.create_symlink(c"dir", c"two").expect_err("it exists");
    assert_eq!((again.operation, again.errno), (Operation::CreateSymlink, Errno::EXIST));
    let time = Timestamp { sec: 9, nsec: 0 };
    dir.set_times(c"link", time, time).expect("utimes");
    let kind = |name| dir.metadata(name, SymlinkBehavior::NoFollow, Fields::STAT).expect("stat");
    assert_eq!((kind(c"link").mtime, kind(c"two").nlink, kind(c"pipe").kind()), (time, 2, FileKind::Fifo));
    dir.rename(c"link", &below, c"one").expect("renamed over");
    assert_eq!(std::fs::read_link(local.join("dir/one")).expect("a link"), Path::new("two"));
    assert_eq!(kind(c"two").nlink, 1);
}

/// Two names change places at once, or the volume says that it cannot. A locked file cannot be locked again.
pub fn names_are_exchanged_and_files_locked<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("exchange");
    for name in ["one", "two"] {
        std::fs::create_dir(local.join(name)).expect("mkdir");
        std::fs::write(local.join(name).join("of"), name).expect("write");
    }
    let below = dir.open_dir(c"two", SymlinkBehavior::NoFollow).expect("opens");
    assert_eq!(dir.exchange(c"two", &below, c"of").expect_err("into itself").operation, Operation::Rename);
    match dir.exchange(c"one", &dir, c"two") {
        Ok(()) => assert_eq!(std::fs::read(local.join("one/of")).expect("read"), b"two"),
        Err(error) => assert!(matches!(error.errno, Errno::INVAL | Errno::NOSYS), "{error}"),
    }
    let file = |name| dir.open_file(name, Access::Read, SymlinkBehavior::NoFollow).expect("opens");
    std::fs::write(local.join("lock"), b"").expect("write");
    let first = file(c"lock");
    first.try_lock().expect("nobody has it");
    let refused = file(c"lock").try_lock().expect_err("somebody has it");
    assert_eq!((refused.operation, refused.errno), (Operation::Lock, Errno::AGAIN));
    drop(first);
    file(c"lock").try_lock().expect("nobody has it any more");
    file(c"lock").sync().expect("written");
    dir.as_file().expect("opens").sync_volume().expect("written");
}

/// Errors name the operation and carry the system's cause.
pub fn errors_tell_operation_and_cause<V: Volume>(subject: &Subject<V>) {
    let (local, dir) = subject.room("errors");
    std::fs::write(local.join("file"), b"").expect("write");
    let missing: &CStr = c"missing";
    let open = |name: &CStr| dir.open_dir(name, SymlinkBehavior::NoFollow).expect_err("cannot be opened");
    assert_eq!((open(missing).operation, open(missing).errno), (Operation::OpenDir, Errno::NOENT));
    assert_eq!(open(c"file").errno, Errno::NOTDIR);
    assert!(open(missing).is_vanished() && !open(c"file").is_vanished());
    let stat =
        dir.metadata(missing, SymlinkBehavior::NoFollow, Fields::SIZE).expect_err("cannot be examined");
    assert_eq!((stat.operation, stat.errno), (Operation::Stat, Errno::NOENT));
    let link = dir.read_link(c"file").expect_err("no link");
    assert_eq!((link.operation, link.errno), (Operation::ReadLink, Errno::INVAL));
}
