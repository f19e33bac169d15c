//! The contract of a volume, as a suite that each volume's own tests run.
//!
//! The suite prepares a directory through [`Outside`] and examines it through the volume, and the other way round. For
//! file systems that the kernel mounts, the outside is the operating system ([`System`]); other volumes bring their
//! own. Every function is one clause; [`all`] runs them all. What a clause demands depends on the volume's
//! [`Capabilities`]: what it has works as on every other volume, and what it lacks fails with `EOPNOTSUPP`.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::fmt::Debug;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;

use crate::{
    Access, At, Capabilities, Dir, DirentBatch, Fields, File, FileKind, Intended, Metadata, NodeKind,
    Operation, Ownership, Permission, ReadState, RemoveKind, SymlinkBehavior, Timestamp, User, Volume,
    is_writable,
};

/// Access to the suite's directory without the volume's handles. Paths are relative to the directory.
pub trait Outside: Debug {
    /// Creates a directory.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Writes a file with these contents, creating it if necessary.
    fn write(&self, path: &Path, contents: &[u8]) -> io::Result<()>;
    /// Creates a symbolic link.
    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()>;
    /// Creates a hard link.
    fn hard_link(&self, path: &Path, new: &Path) -> io::Result<()>;
    /// Renames.
    fn rename(&self, path: &Path, new: &Path) -> io::Result<()>;
    /// Sets permission bits.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// All fields of `stat(2)`.
    fn metadata(&self, path: &Path, symlinks: SymlinkBehavior) -> io::Result<Metadata>;
    /// The contents of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The target of a link.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// Number of entries of a directory.
    fn count(&self, path: &Path) -> io::Result<usize>;
    /// Whether permissions do not restrict the suite on this volume.
    fn is_privileged(&self) -> bool;
}

/// Access to a directory through the operating system.
#[derive(Debug)]
pub struct System(pub PathBuf);

impl Outside for System {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(self.0.join(path))
    }

    fn write(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        std::fs::write(self.0.join(path), contents)
    }

    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        symlink(target, self.0.join(path))
    }

    fn hard_link(&self, path: &Path, new: &Path) -> io::Result<()> {
        std::fs::hard_link(self.0.join(path), self.0.join(new))
    }

    fn rename(&self, path: &Path, new: &Path) -> io::Result<()> {
        std::fs::rename(self.0.join(path), self.0.join(new))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        std::fs::set_permissions(self.0.join(path), Permissions::from_mode(mode))
    }

    fn metadata(&self, path: &Path, symlinks: SymlinkBehavior) -> io::Result<Metadata> {
        let path = self.0.join(path);
        let told = match symlinks {
            SymlinkBehavior::Follow => std::fs::metadata(path),
            SymlinkBehavior::NoFollow => std::fs::symlink_metadata(path),
        }?;
        let time = |sec, nsec: i64| Timestamp { sec, nsec: u32::try_from(nsec).unwrap_or(u32::MAX) };
        Ok(Metadata {
            fields: Fields::STAT,
            mode: told.mode(),
            nlink: told.nlink(),
            uid: told.uid(),
            gid: told.gid(),
            dev: told.dev(),
            rdev: told.rdev(),
            ino: told.ino(),
            size: told.size(),
            blocks: told.blocks(),
            atime: time(told.atime(), told.atime_nsec()),
            mtime: time(told.mtime(), told.mtime_nsec()),
            ctime: time(told.ctime(), told.ctime_nsec()),
            ..Metadata::default()
        })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(self.0.join(path))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::read_link(self.0.join(path))
    }

    fn count(&self, path: &Path) -> io::Result<usize> {
        Ok(std::fs::read_dir(self.0.join(path))?.count())
    }

    fn is_privileged(&self) -> bool {
        rustix::process::geteuid().is_root()
    }
}

/// A volume and a directory on it that the suite may fill.
#[derive(Debug)]
pub struct Subject<V: Volume> {
    /// The volume.
    pub volume: V,
    /// Access to the directory, which is empty, from outside.
    pub outside: Box<dyn Outside>,
    /// The same directory as an operand of the volume.
    pub root: CString,
}

/// A fresh directory for one clause, from outside.
struct Ground<'a> {
    outside: &'a dyn Outside,
    at: &'a Path,
    capabilities: Capabilities,
}

impl Ground<'_> {
    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.at.join(path)
    }

    fn has(&self, capability: Capabilities) -> bool {
        self.capabilities.contains(capability)
    }

    fn create_dir(&self, path: &str) {
        self.outside.create_dir(&self.path(path)).expect("mkdir");
    }

    fn write(&self, path: impl AsRef<Path>, contents: &[u8]) {
        self.outside.write(&self.path(path), contents).expect("write");
    }

    fn symlink(&self, target: &str, path: &str) {
        self.outside.symlink(target.as_ref(), &self.path(path)).expect("symlink");
    }

    fn stat(&self, path: &str) -> Metadata {
        self.outside.metadata(&self.path(path), SymlinkBehavior::Follow).expect("stat")
    }

    fn lstat(&self, path: &str) -> Metadata {
        self.outside.metadata(&self.path(path), SymlinkBehavior::NoFollow).expect("stat")
    }

    fn read(&self, path: &str) -> Vec<u8> {
        self.outside.read(&self.path(path)).expect("readable")
    }
}

impl<V: Volume> Subject<V> {
    fn open(&self) -> V::Dir {
        self.volume.base().open_dir(&self.root, SymlinkBehavior::Follow).expect("the root opens")
    }

    /// Creates a new directory for one clause and opens it.
    fn ground<'a>(&'a self, name: &'a str) -> (Ground<'a>, V::Dir) {
        let capabilities = self.volume.base().capabilities(&self.root);
        let ground = Ground { outside: &*self.outside, at: Path::new(name), capabilities };
        ground.outside.create_dir(ground.at).expect("mkdir");
        let dir = self
            .open()
            .open_dir(&c_name(name.as_ref()), SymlinkBehavior::NoFollow)
            .expect("the ground opens");
        (ground, dir)
    }
}

/// Fails unless the volume says that it does not support this.
fn assert_refused<T: Debug>(operation: Operation, done: crate::Result<T>) {
    let error = done.expect_err("not supported");
    assert_eq!((error.operation, error.errno), (operation, Errno::OPNOTSUPP));
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
    permissions_are_told(subject);
    children_start_in_directories(subject);
    modes_are_set_by_name(subject);
    owners_are_set_by_name(subject);
    attributes_are_set_by_name(subject);
    files_are_written_at_any_place(subject);
    staged_files_appear_when_they_are_renamed(subject);
    directories_appear_when_they_are_complete(subject);
    names_are_made_once_and_linked(subject);
    names_are_exchanged(subject);
    files_are_locked_once(subject);
    errors_tell_operation_and_cause(subject);
    what_is_lacking_is_refused(subject);
}

/// A name may contain any byte but NUL and `/`, or any character; `.` and `..` are not entries.
pub fn names_are_bytes<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("names");
    let names: [&[u8]; 6] =
        [b"plain", b"new\nline", b"\xff\xfe invalid", "\u{e9}\u{65e5}".as_bytes(), b"-dash", b"..."];
    let is_possible = |name: &&[u8]| ground.has(Capabilities::ANY_NAME) || str::from_utf8(name).is_ok();
    for name in names.into_iter().filter(is_possible) {
        ground.write(OsStr::from_bytes(name), b"");
    }
    let listed: Vec<_> = entries(&dir, 4096).into_keys().map(CString::into_bytes).collect();
    let mut expected: Vec<_> = names.into_iter().filter(is_possible).map(<[u8]>::to_vec).collect();
    expected.sort();
    assert_eq!(listed, expected);
    if !ground.has(Capabilities::ANY_NAME) {
        let refused = dir.create_file(c"\xff", 0o600).expect_err("no name");
        assert_eq!((refused.operation, refused.errno), (Operation::CreateFile, Errno::ILSEQ));
    }
}

/// Reading in many small batches returns every entry once.
pub fn large_directories_are_complete<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("large");
    for i in 0..3_000 {
        ground.write(format!("entry-number-{i:05}"), b"");
    }
    assert_eq!(entries(&dir, 2_048).len(), 3_000);
    let again = subject.open().open_dir(c"large", SymlinkBehavior::NoFollow).expect("opens");
    assert_eq!(entries(&again, 1 << 20).len(), 3_000);
}

/// A directory entry has its true type or none.
pub fn kinds_are_right_or_unknown<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("kinds");
    ground.create_dir("dir");
    ground.write("file", b"");
    let mut wanted = vec![(c"dir", FileKind::Directory), (c"file", FileKind::File)];
    if ground.has(Capabilities::LINKS) {
        ground.symlink("file", "link");
        wanted.push((c"link", FileKind::Symlink));
    }
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

/// Metadata agrees with `stat(2)` as far as the volume has it, and the requested fields are marked as filled.
pub fn metadata_is_that_of_the_system<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("metadata");
    ground.write("file", &[7; 12_345]);
    let links = if ground.has(Capabilities::LINKS) { 2 } else { 1 };
    if links > 1 {
        ground.outside.hard_link(&ground.path("file"), &ground.path("second")).expect("link");
    }
    let ours = dir.metadata(c"file", SymlinkBehavior::NoFollow, Fields::STAT).expect("stat");
    let theirs = ground.lstat("file");
    assert!(ours.fields.contains(Fields::STAT));
    assert_eq!((ours.size, ours.nlink, ours.kind()), (12_345, links, FileKind::File));
    assert_eq!(ours.mtime.sec, theirs.mtime.sec);
    if !ground.has(Capabilities::PERMISSIONS) {
        return;
    }
    assert_eq!(ours.mode, theirs.mode);
    assert_eq!((ours.uid, ours.gid, ours.ino), (theirs.uid, theirs.gid, theirs.ino));
    assert_eq!((ours.mtime, ours.ctime, ours.blocks), (theirs.mtime, theirs.ctime, theirs.blocks));
}

/// Opening or examining a link acts on the link or on its target, as requested.
pub fn links_are_followed_only_when_asked<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("links");
    if !ground.has(Capabilities::LINKS) {
        return;
    }
    ground.create_dir("target");
    ground.symlink("target", "link");
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

/// Identity distinguishes directories, survives renaming, and agrees with `stat`.
pub fn identity_is_stable_and_distinct<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("identity");
    let one = dir.identity().expect("identity");
    let other = subject.open().identity().expect("identity");
    assert_ne!(one, other);
    let name = if ground.has(Capabilities::RENAME) { c"renamed" } else { c"identity" };
    if ground.has(Capabilities::RENAME) {
        ground.outside.rename(ground.at, "renamed".as_ref()).expect("rename");
    }
    assert_eq!(dir.identity().expect("identity"), one);
    let told = subject.open().metadata(name, SymlinkBehavior::NoFollow, Fields::INO).expect("stat");
    assert_eq!(told.identity(), one);
    assert_eq!(dir.own_metadata(Fields::INO).expect("stat").identity(), one);
}

/// The parent is the directory that holds this one now.
pub fn parent_is_reached<V: Volume>(subject: &Subject<V>) {
    let (_, dir) = subject.ground("child");
    let parent = dir.open_parent().expect("opens");
    assert_eq!(parent.identity().expect("identity"), subject.open().identity().expect("identity"));
}

/// Removal takes the name itself, never the target of a link, and refuses a file of the wrong kind.
pub fn removal_takes_one_name<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("removal");
    ground.create_dir("full");
    ground.write("full/file", b"");
    if ground.has(Capabilities::LINKS) {
        ground.symlink("full", "link");
        dir.remove(c"link", RemoveKind::File).expect("a link is removed as a file");
    }
    assert!(ground.stat("full/file").kind() == FileKind::File);
    let refused = dir.remove(c"full", RemoveKind::Directory).expect_err("not empty");
    assert!(matches!(refused.errno, Errno::NOTEMPTY | Errno::EXIST), "{refused}");
    if ground.has(Capabilities::UNIQUE_NAMES) {
        let refused = dir.remove(c"full", RemoveKind::File).expect_err("a directory");
        assert!(matches!(refused.errno, Errno::ISDIR | Errno::PERM), "{refused}");
    }
    let full = dir.open_dir(c"full", SymlinkBehavior::NoFollow).expect("opens");
    full.remove(c"file", RemoveKind::File).expect("unlink");
    dir.remove(c"full", RemoveKind::Directory).expect("rmdir");
    assert_eq!(ground.outside.count(ground.at).expect("readable"), 0);
}

/// Permissions are reported. A privileged user needs none, but nobody may execute a file without an execute bit.
pub fn permissions_are_told<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("permissions");
    if !ground.has(Capabilities::PERMISSIONS) {
        return;
    }
    let privileged = ground.outside.is_privileged();
    for (name, mode) in [(c"open", 0o600), (c"protected", 0o400), (c"secret", 0o300), (c"command", 0o100)] {
        ground.write(OsStr::from_bytes(name.to_bytes()), b"");
        let path = ground.path(OsStr::from_bytes(name.to_bytes()));
        ground.outside.set_mode(&path, mode).expect("chmod");
        for user in [User::Effective, User::Real] {
            let may = |permission| dir.permits(name, permission, user).expect("told");
            assert_eq!(may(Permission::Read), privileged || mode & 0o400 != 0, "{name:?}");
            assert_eq!(may(Permission::Write), privileged || mode & 0o200 != 0, "{name:?}");
            assert_eq!(may(Permission::Execute), mode & 0o100 != 0, "{name:?}");
        }
    }
    assert_eq!((is_writable(&dir, c"open"), is_writable(&dir, c"protected")), (Ok(true), Ok(privileged)));
    ground.symlink("open", "link");
    assert_eq!(dir.permits(c"link", Permission::Execute, User::Real), Ok(false));
    let missing = is_writable(&dir, c"missing").expect_err("nothing there");
    assert_eq!((missing.operation, missing.errno), (Operation::CheckAccess, Errno::NOENT));
}

/// A child process can start in an open directory, if processes can reach the volume.
pub fn children_start_in_directories<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("children");
    ground.write("file", b"");
    ground.outside.rename(ground.at, "elsewhere".as_ref()).expect("rename");
    match dir.path_for_children() {
        Err(error) => assert_eq!(error.errno, Errno::OPNOTSUPP),
        Ok(path) => {
            let start = OsStr::from_bytes(path.to_bytes());
            let listed = Command::new("ls").current_dir(start).output().expect("started");
            assert_eq!(listed.stdout, b"file\n");
        }
    }
}

/// Modes are set on the name itself, including the special bits. A link is followed only on request, and has no mode.
pub fn modes_are_set_by_name<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("modes");
    if !ground.has(Capabilities::PERMISSIONS | Capabilities::LINKS) {
        return;
    }
    ground.write("file", b"");
    ground.create_dir("dir");
    ground.symlink("file", "link");
    let mode = |name: &str| ground.stat(name).mode & 0o7777;
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

/// Owners are set on the name itself, or on a link's target on request. Only root may change them; other users set the
/// present ones.
pub fn owners_are_set_by_name<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("owners");
    if !ground.has(Capabilities::PERMISSIONS | Capabilities::LINKS) {
        return;
    }
    ground.write("file", b"");
    ground.symlink("file", "link");
    let owner = |name: &str| {
        let metadata = ground.lstat(name);
        (metadata.uid, metadata.gid)
    };
    let had = owner("file");
    let given = if ground.outside.is_privileged() { (1234, 1235) } else { had };
    let all = Ownership { uid: Some(given.0), gid: Some(given.1) };
    dir.set_owner(c"link", all, SymlinkBehavior::NoFollow).expect("lchown");
    assert_eq!((owner("link"), owner("file")), (given, had));
    let group = Ownership { uid: None, gid: Some(given.1) };
    dir.set_owner(c"link", group, SymlinkBehavior::Follow).expect("chown");
    assert_eq!((owner("link"), owner("file")), (given, (had.0, given.1)));
    let missing = dir.set_owner(c"missing", all, SymlinkBehavior::NoFollow).expect_err("nothing there");
    assert_eq!((missing.operation, missing.errno), (Operation::SetOwner, Errno::NOENT));
}

/// Extended attributes belong to the name itself, never to a link's target. Volumes need not support them.
pub fn attributes_are_set_by_name<V: Volume>(subject: &Subject<V>) {
    const NAME: &CStr = c"user.clause";
    let (ground, dir) = subject.ground("attributes");
    ground.write("file", b"");
    match dir.set_xattr(c"file", NAME, b"value") {
        Err(error) if error.errno == Errno::OPNOTSUPP => return,
        set => set.expect("set"),
    }
    ground.symlink("file", "link");
    let value = |name: &CStr| dir.get_xattr(name, NAME, SymlinkBehavior::NoFollow);
    assert_eq!(value(c"file"), Ok(b"value".to_vec()));
    // Links cannot have attributes of this namespace.
    assert!(dir.set_xattr(c"link", NAME, b"other").is_err());
    assert!(dir.remove_xattr(c"link", NAME).is_err());
    assert_eq!(value(c"file"), Ok(b"value".to_vec()));
    dir.remove_xattr(c"file", NAME).expect("removed");
    let missing = dir.remove_xattr(c"file", NAME).expect_err("it is gone");
    assert_eq!((missing.operation, missing.errno), (Operation::SetXattr, Errno::NODATA));
}

/// Data is written at the given offset; holes are found where the volume reports them; attributes are set on open
/// files.
pub fn files_are_written_at_any_place<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("files");
    if !ground.has(Capabilities::REWRITE) {
        return;
    }
    let file = dir.create_file(c"file", 0o600).expect("created");
    file.write_all(b"tail", At::Offset(1 << 20)).expect("written");
    file.write_all(b"head", At::Offset(0)).expect("written");
    let data = ground.read("file");
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
    ground.symlink("file", "link");
    let refused = dir.open_file(c"link", Access::Read, SymlinkBehavior::NoFollow).expect_err("a link");
    assert_eq!(refused.errno, Errno::LOOP);
    let followed = dir.open_file(c"link", Access::Truncate, SymlinkBehavior::Follow).expect("followed");
    assert_eq!(followed.metadata(Fields::SIZE).expect("stat").size, 0);
    let own = dir.as_file().expect("a file").metadata(Fields::INO).expect("stat");
    assert_eq!(own.identity(), dir.identity().expect("identity"));
}

/// A file is written under another name and appears with its contents and its time when it is renamed, in place of the
/// file that had the name.
pub fn staged_files_appear_when_they_are_renamed<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("staged");
    ground.write("file", b"old");
    let time = Timestamp { sec: 1_234_567_890, nsec: 0 };
    let intended = Intended { name: c"file", size: 8, mtime: Some(time) };
    let file = dir.create_staged(c".stage", 0o600, &intended).expect("created");
    file.write_all(b"head", At::Offset(0)).expect("written");
    file.write_all(b"tail", At::Offset(4)).expect("written");
    file.set_times(time, time).expect("utimes");
    file.close().expect("closed");
    assert_eq!(ground.read("file"), b"old");
    assert_eq!(ground.outside.count(ground.at).expect("readable") > 1, ground.has(Capabilities::RENAME));
    dir.rename(c".stage", &dir, c"file").expect("completed");
    assert_eq!((ground.read("file"), entries(&dir, 4096).len()), (b"headtail".to_vec(), 1));
    let again = subject.open().open_dir(c"staged", SymlinkBehavior::NoFollow).expect("opens");
    let told = again.metadata(c"file", SymlinkBehavior::NoFollow, Fields::STAT).expect("stat");
    assert_eq!((told.size, told.mtime), (8, time));
    let file = again.open_file(c"file", Access::Read, SymlinkBehavior::NoFollow).expect("opens");
    let mut buffer = [0; 8];
    assert_eq!(file.read(&mut buffer[..4], At::Offset(4)).expect("read"), 4);
    assert_eq!(&buffer[..4], b"tail");
}

/// A directory that was made is there when it is complete, even if nothing is in it; its parents may have to be made
/// first.
pub fn directories_appear_when_they_are_complete<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("complete");
    dir.create_dir(c"empty", 0o700).expect("mkdir");
    let made = dir.open_dir(c"empty", SymlinkBehavior::NoFollow).expect("opens");
    made.complete().expect("completed");
    assert_eq!(ground.lstat("empty").kind(), FileKind::Directory);
    let none = dir.open_dir_for_names(c"none", SymlinkBehavior::NoFollow);
    let below = none.and_then(|none| none.create_file(c"file", 0o600)).map(drop);
    assert_eq!(below.is_err(), ground.has(Capabilities::DIRECTORIES), "{below:?}");
    let beside = dir.beside_files().expect("opens");
    let found = beside.metadata(c"empty", SymlinkBehavior::NoFollow, Fields::KIND).expect("stat");
    assert_eq!(found.kind(), FileKind::Directory);
}

/// Directories, links and special files are created under new names only; renaming replaces.
pub fn names_are_made_once_and_linked<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("made");
    if !ground.has(Capabilities::LINKS | Capabilities::SPECIAL_FILES | Capabilities::RENAME) {
        return;
    }
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
    let taken = dir.rename_new(c"link", &below, c"one").expect_err("there is something");
    assert_eq!((taken.operation, taken.errno), (Operation::Rename, Errno::EXIST));
    dir.rename_new(c"link", &below, c"new").expect("nothing is there");
    below.rename_new(c"new", &dir, c"link").expect("nothing is there");
    dir.rename(c"link", &below, c"one").expect("renamed over");
    assert_eq!(ground.outside.read_link(&ground.path("dir/one")).expect("a link"), Path::new("two"));
    assert_eq!(kind(c"two").nlink, 1);
}

/// Two names are exchanged atomically, or the volume reports that it cannot.
pub fn names_are_exchanged<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("exchange");
    if !ground.has(Capabilities::RENAME) {
        return;
    }
    for name in ["one", "two"] {
        ground.create_dir(name);
        ground.write(format!("{name}/of"), name.as_bytes());
    }
    let below = dir.open_dir(c"two", SymlinkBehavior::NoFollow).expect("opens");
    assert_eq!(dir.exchange(c"two", &below, c"of").expect_err("into itself").operation, Operation::Rename);
    match dir.exchange(c"one", &dir, c"two") {
        Ok(()) => assert_eq!(ground.read("one/of"), b"two"),
        Err(error) => assert!(matches!(error.errno, Errno::INVAL | Errno::NOSYS), "{error}"),
    }
}

/// A locked file cannot be locked again. Files and volumes are made durable.
pub fn files_are_locked_once<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("locks");
    ground.write("lock", b"");
    let file = |name| dir.open_file(name, Access::Read, SymlinkBehavior::NoFollow).expect("opens");
    file(c"lock").sync().expect("written");
    dir.as_file().expect("opens").sync_volume().expect("written");
    if !ground.has(Capabilities::LOCKS) {
        return;
    }
    let first = file(c"lock");
    first.try_lock().expect("nobody has it");
    let refused = file(c"lock").try_lock().expect_err("somebody has it");
    assert_eq!((refused.operation, refused.errno), (Operation::Lock, Errno::AGAIN));
    drop(first);
    file(c"lock").try_lock().expect("nobody has it any more");
}

/// Errors name the operation and carry the system's cause.
pub fn errors_tell_operation_and_cause<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("errors");
    ground.write("file", b"");
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

/// What a volume has no capability for fails as such, and changes nothing.
pub fn what_is_lacking_is_refused<V: Volume>(subject: &Subject<V>) {
    let (ground, dir) = subject.ground("lacking");
    ground.write("file", b"data");
    let symlinks = SymlinkBehavior::NoFollow;
    if !ground.has(Capabilities::LINKS) {
        assert_refused(Operation::CreateSymlink, dir.create_symlink(c"link", c"file"));
        assert_refused(Operation::HardLink, dir.hard_link(c"file", symlinks, &dir, c"link"));
    }
    if !ground.has(Capabilities::SPECIAL_FILES) {
        assert_refused(Operation::CreateNode, dir.create_node(c"pipe", NodeKind::Fifo, 0o600));
    }
    if !ground.has(Capabilities::PERMISSIONS) {
        let owner = Ownership { uid: Some(0), gid: Some(0) };
        assert_refused(Operation::SetOwner, dir.set_owner(c"file", owner, symlinks));
    }
    if !ground.has(Capabilities::XATTRS) {
        assert_refused(Operation::SetXattr, dir.set_xattr(c"file", c"user.a", b"1"));
        assert_refused(Operation::SetXattr, dir.remove_xattr(c"file", c"user.a"));
    }
    if !ground.has(Capabilities::RENAME) {
        assert_refused(Operation::Rename, dir.rename(c"file", &dir, c"other"));
        assert_refused(Operation::Rename, dir.rename_new(c"file", &dir, c"other"));
        assert_refused(Operation::Rename, dir.exchange(c"file", &dir, c"file"));
    }
    if !ground.has(Capabilities::REWRITE) {
        assert_refused(Operation::OpenFile, dir.open_file(c"file", Access::Write, symlinks));
    }
    if !ground.has(Capabilities::LOCKS) {
        let file = dir.open_file(c"file", Access::Read, symlinks).expect("opens");
        assert_refused(Operation::Lock, file.try_lock());
    }
    assert_eq!((ground.read("file"), entries(&dir, 4096).len()), (b"data".to_vec(), 1));
}
