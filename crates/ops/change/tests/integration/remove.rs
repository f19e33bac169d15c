//! Removal on volumes that behave worse than the kernel's.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use millstream_change::remove::{
    Directories, Execution, FileSystems, Missing, Options, PreserveRoot, Problem, Prompts, Question, Sink,
    remove,
};
use millstream_operation::activity::Activity;
use millstream_posix::{PosixDir, PosixFile, PosixVolume};
use millstream_vfs::{
    Access, Capabilities, Dir, DirentBatch, Fields, Intended, Metadata, MountBehavior, NodeKind, Ownership,
    Permission, ReadState, RemoveKind, Result, SymlinkBehavior, Timestamp, User, Volume,
};
use millstream_walk::Threads;

/// A volume whose position in a directory is the number of entries before it, so that a reader passes over as many
/// entries as have been removed since it began. It does not report types either.
#[derive(Debug)]
struct Shifting;

#[derive(Debug)]
struct ShiftingDir(PosixDir);

const ENTRIES_A_BATCH: usize = 10;

impl Volume for Shifting {
    type Dir = ShiftingDir;

    fn base(&self) -> ShiftingDir {
        ShiftingDir(PosixVolume.base())
    }

    fn max_open_dirs(&self) -> usize {
        40
    }

    fn capabilities(&self) -> Capabilities {
        PosixVolume.capabilities()
    }
}

impl ShiftingDir {
    fn names(&self) -> Result<Vec<CString>> {
        let reader = self.0.open_dir(c".", SymlinkBehavior::NoFollow)?;
        let mut batch = DirentBatch::with_capacity(4096);
        let mut names = Vec::new();
        while reader.read_entries(&mut (), &mut batch)? == ReadState::More {
            names.extend(batch.iter().map(|entry| entry.name.to_owned()));
        }
        names.sort();
        Ok(names)
    }
}

impl Dir for ShiftingDir {
    type Cursor = usize;
    type File = PosixFile;

    fn open_dir(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        self.0.open_dir(name, symlinks).map(ShiftingDir)
    }

    fn open_dir_for_names(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<Self> {
        self.0.open_dir_for_names(name, symlinks).map(ShiftingDir)
    }

    fn open_below(&self, path: &CStr, mounts: MountBehavior) -> Result<Self> {
        self.0.open_below(path, mounts).map(ShiftingDir)
    }

    fn open_parent(&self) -> Result<Self> {
        self.0.open_parent().map(ShiftingDir)
    }

    fn metadata(&self, name: &CStr, symlinks: SymlinkBehavior, fields: Fields) -> Result<Metadata> {
        self.0.metadata(name, symlinks, fields)
    }

    fn device_within(&self, name: &CStr, symlinks: SymlinkBehavior) -> Result<u64> {
        self.0.device_within(name, symlinks)
    }

    fn identity(&self) -> Result<(u64, u64)> {
        self.0.identity()
    }

    fn own_metadata(&self, fields: Fields) -> Result<Metadata> {
        self.0.own_metadata(fields)
    }

    fn read_entries(&self, cursor: &mut usize, batch: &mut DirentBatch) -> Result<ReadState> {
        let names = self.names()?;
        let next = names.iter().skip(*cursor).take(ENTRIES_A_BATCH);
        *batch = DirentBatch::from_names(next.map(CString::as_c_str));
        *cursor += ENTRIES_A_BATCH;
        Ok(if batch.is_empty() { ReadState::End } else { ReadState::More })
    }

    fn read_link(&self, name: &CStr) -> Result<Vec<u8>> {
        self.0.read_link(name)
    }

    fn list_xattr(&self, name: &CStr, names: &mut Vec<u8>) -> Result<()> {
        self.0.list_xattr(name, names)
    }

    fn get_xattr(&self, name: &CStr, attribute: &CStr, symlinks: SymlinkBehavior) -> Result<Vec<u8>> {
        self.0.get_xattr(name, attribute, symlinks)
    }

    fn set_xattr(&self, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()> {
        self.0.set_xattr(name, attribute, value)
    }

    fn remove_xattr(&self, name: &CStr, attribute: &CStr) -> Result<()> {
        self.0.remove_xattr(name, attribute)
    }

    fn remove(&self, name: &CStr, kind: RemoveKind) -> Result<()> {
        self.0.remove(name, kind)
    }

    fn permits(&self, name: &CStr, permission: Permission, user: User) -> Result<bool> {
        self.0.permits(name, permission, user)
    }

    fn path_for_children(&self) -> Result<CString> {
        self.0.path_for_children()
    }

    fn set_mode(&self, name: &CStr, mode: u32, symlinks: SymlinkBehavior) -> Result<()> {
        self.0.set_mode(name, mode, symlinks)
    }

    fn set_owner(&self, name: &CStr, owner: Ownership, symlinks: SymlinkBehavior) -> Result<()> {
        self.0.set_owner(name, owner, symlinks)
    }

    fn open_file(&self, name: &CStr, access: Access, symlinks: SymlinkBehavior) -> Result<PosixFile> {
        self.0.open_file(name, access, symlinks)
    }

    fn create_file(&self, name: &CStr, mode: u32) -> Result<PosixFile> {
        self.0.create_file(name, mode)
    }

    fn create_staged(&self, name: &CStr, mode: u32, intended: &Intended<'_>) -> Result<PosixFile> {
        self.0.create_staged(name, mode, intended)
    }

    fn complete(&self) -> Result<()> {
        self.0.complete()
    }

    fn capabilities(&self, path: &CStr) -> Capabilities {
        self.0.capabilities(path)
    }

    fn beside_files(&self) -> Result<Self> {
        self.0.beside_files().map(ShiftingDir)
    }

    fn as_file(&self) -> Result<PosixFile> {
        self.0.as_file()
    }

    fn create_dir(&self, name: &CStr, mode: u32) -> Result<()> {
        self.0.create_dir(name, mode)
    }

    fn create_symlink(&self, name: &CStr, target: &CStr) -> Result<()> {
        self.0.create_symlink(name, target)
    }

    fn create_node(&self, name: &CStr, kind: NodeKind, mode: u32) -> Result<()> {
        self.0.create_node(name, kind, mode)
    }

    fn hard_link(&self, name: &CStr, symlinks: SymlinkBehavior, other: &Self, new_name: &CStr) -> Result<()> {
        self.0.hard_link(name, symlinks, &other.0, new_name)
    }

    fn rename_new(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        self.0.rename_new(name, &other.0, new_name)
    }

    fn rename(&self, name: &CStr, other: &Self, new_name: &CStr) -> Result<()> {
        self.0.rename(name, &other.0, new_name)
    }

    fn exchange(&self, name: &CStr, other: &Self, other_name: &CStr) -> Result<()> {
        self.0.exchange(name, &other.0, other_name)
    }

    fn set_times(&self, name: &CStr, atime: Timestamp, mtime: Timestamp) -> Result<()> {
        self.0.set_times(name, atime, mtime)
    }
}

/// Records problems, and answers no to questions about names that begin with `keep`.
#[derive(Default)]
struct Judge {
    problems: Mutex<Vec<String>>,
    questions: Mutex<u32>,
}

impl Sink for Judge {
    fn lines(&self, lines: &[u8]) {
        panic!("nothing is reported: {}", lines.escape_ascii());
    }

    fn problem(&self, problem: &Problem<'_>) {
        self.problems.lock().expect("problems").push(format!("{:?}", problem.cause));
    }

    fn approve(&self, question: &Question<'_>) -> bool {
        *self.questions.lock().expect("questions") += 1;
        !question.path.split(|&b| b == b'/').next_back().is_some_and(|name| name.starts_with(b"keep"))
    }
}

fn options(prompts: Prompts, threads: usize) -> Options {
    Options {
        directories: Directories::Recursive,
        missing: Missing::Report,
        prompts,
        file_systems: FileSystems::All,
        preserve_root: PreserveRoot::Root,
        execution: Execution::Real,
        report: None,
        threads: Threads::Fixed(threads),
    }
}

fn remove_shifting(root: &Path, options: &Options) -> Judge {
    let judge = Judge::default();
    let operand = CString::new(root.as_os_str().as_bytes()).expect("no NUL");
    remove(&Shifting, &[operand], options, &judge, &Activity::default());
    judge
}

/// Files and directories, some of them nested, in numbers that take several batches.
fn grow(root: &Path) {
    for i in 0..60 {
        std::fs::create_dir_all(root.join(format!("d{i}/below"))).expect("directories");
        std::fs::write(root.join(format!("f{i}")), "").expect("a file");
        for j in 0..i {
            std::fs::write(root.join(format!("d{i}/below/f{j}")), "").expect("a file");
        }
    }
}

#[test]
fn entries_that_a_reader_passes_over_are_removed_too() {
    for threads in [1, 4] {
        let scratch = tempfile::tempdir().expect("tempdir");
        let root = scratch.path().join("root");
        grow(&root);
        let judge = remove_shifting(&root, &options(Prompts::Never, threads));
        assert_eq!(judge.problems.into_inner().expect("problems"), [""; 0]);
        assert!(!root.exists());
    }
}

#[test]
fn what_the_user_keeps_is_not_asked_about_again() {
    let scratch = tempfile::tempdir().expect("tempdir");
    let root = scratch.path().join("root");
    std::fs::create_dir(&root).expect("mkdir");
    for name in ["keep", "a", "b"] {
        std::fs::write(root.join(name), "").expect("a file");
    }
    let judge = remove_shifting(&root, &options(Prompts::Always, 2));
    assert_eq!(judge.questions.into_inner().expect("questions"), 1 + 3 + 1);
    assert_eq!(judge.problems.into_inner().expect("problems").len(), 1, "the directory is not empty");
    assert_eq!(std::fs::read_dir(&root).expect("readable").count(), 1);
}
