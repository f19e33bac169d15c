//! Random trees with every kind of entry, name and attribute.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use super::attributes::{ACCESS_LIST, DEFAULT_LIST, list, set_attribute, set_mode, set_owner, set_time};
use super::program::{NOBODY, User, is_root, is_rsync};
use crate::random::Random;

/// Names that mean something to a careless program, or to a synchronizing one.
const WHOLE_NAMES: [&[u8]; 26] = [
    b" ",
    b"\n",
    b"*",
    b"?",
    b"[a]",
    b"\\",
    b"-",
    b"--",
    b"--delete",
    b"-rf",
    b"...",
    b".psync-1.tmp",
    b".psync-x.tmp",
    b".~tmp~",
    b".rsync-filter",
    b".cvsignore",
    b"core",
    b"host:path",
    b"host::module",
    b"#name#",
    b"a~",
    b"\xff\xfe",
    "é".as_bytes(),
    b"\x01",
    b"%20",
    b"'\"$HOME;`",
];
const PIECES: [&[u8]; 12] =
    [b"a", b"Z", b" ", b"\n", b"'", b"\"", b"\xff", "é".as_bytes(), b"*", b"-", b"\\", b".x"];

pub struct Growing<'a> {
    pub root: &'a Path,
    pub random: &'a mut Random,
    pub user: User,
    /// Numbers what is made, so that no two times are the same.
    pub serial: usize,
}

impl Growing<'_> {
    /// Whether owners, devices, and modes that lock the owner out are among what is made.
    pub fn is_privileged(&self) -> bool {
        self.user == User::Own && is_root()
    }

    pub fn one_in(&mut self, number: usize) -> bool {
        self.random.below(number) == 0
    }

    /// A name that is not in this directory yet.
    pub fn new_name(&mut self, parent: &Path) -> PathBuf {
        self.serial += 1;
        let mut name = Vec::new();
        if self.one_in(4) {
            name.extend_from_slice(self.random.pick(&WHOLE_NAMES));
        } else {
            for _ in 0..1 + self.random.below(3) {
                name.extend_from_slice(self.random.pick(&PIECES));
            }
            name.extend_from_slice(self.serial.to_string().as_bytes());
            if self.one_in(12) {
                name.resize(255, b'l');
            }
        }
        let path = parent.join(OsStr::from_bytes(&name));
        if fs::symlink_metadata(self.root.join(&path)).is_err() {
            return path;
        }
        parent.join(format!("again{}", self.serial))
    }

    /// A time of its own second.
    pub fn new_time(&mut self) -> (i64, i64) {
        self.serial += 1;
        let base =
            self.random.pick(&[1_500_000_000, 1_700_000_000, 100_000, -1_000_000, -50_000, 7_000_000_000]);
        let nanoseconds = self.random.pick(&[0, 1, 999_999_999, 123_456_789]);
        (base + self.serial as i64, nanoseconds)
    }

    fn pick_directory(&mut self, directories: &[PathBuf]) -> PathBuf {
        directories[self.random.below(directories.len())].clone()
    }

    /// A regular file of any shape.
    pub fn make_file(&mut self, at: &Path) {
        let file = File::create(at).expect("a file");
        let write = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).expect("written");
        let byte = b'a' + (self.serial % 26) as u8;
        match self.random.below(40) {
            0..=5 => {}
            6 => {
                // Larger than what is copied by one worker, and not all the same.
                let mut data = vec![byte; (9 << 20) + self.random.below(4096)];
                data.iter_mut().step_by(4096).enumerate().for_each(|(index, first)| *first = index as u8);
                write(0, &data);
            }
            7 => file.set_len((8 << 20) + self.random.below(64 << 20) as u64).expect("a hole"),
            8 => write((20 << 20) + self.random.below(4096) as u64, &[byte; 5000]),
            9 => {
                write(0, &[byte; 5000]);
                file.set_len(17 << 20).expect("a hole");
            }
            10 => {
                write(0, &[byte; 100]);
                write(3 << 20, &[byte; 70_000]);
                write(12 << 20, &[byte; 1]);
            }
            11 => write(0, &vec![0; 1 << 20]),
            12..=15 => write(0, &vec![byte; self.random.below(300_000)]),
            _ => write(0, &vec![byte; self.random.below(5000)]),
        }
    }

    fn target(&mut self, others: &[PathBuf]) -> Vec<u8> {
        match self.random.below(8) {
            0 => b"nowhere".to_vec(),
            1 => b"/etc/passwd".to_vec(),
            2 => b"/".to_vec(),
            3 => b"\xff\n\xfe/\x01".to_vec(),
            4 => b"../../../../outside".to_vec(),
            5 => vec![b'l'; 1000],
            6 => b".".to_vec(),
            _ => {
                let other =
                    others.last().map_or(b"none".to_vec(), |path| path.as_os_str().as_bytes().to_vec());
                [&b"./"[..], &other].concat()
            }
        }
    }

    fn make_node(&mut self, at: &Path) {
        let privileged = self.is_privileged();
        let (kind, device) = match self.random.below(if privileged { 6 } else { 2 }) {
            0 => (FileType::Fifo, 0),
            1 => (FileType::Socket, 0),
            number => {
                let kind = [FileType::CharacterDevice, FileType::BlockDevice][number % 2];
                (kind, rustix::fs::makedev(1, self.random.below(9) as u32))
            }
        };
        rustix::fs::mknodat(CWD, at, kind, Mode::from_raw_mode(0o640), device).expect("a node");
    }

    /// Makes one entry of any kind that is not a directory.
    pub fn make_leaf(&mut self, at: &Path, others: &[PathBuf]) {
        match self.random.below(10) {
            0..=1 => {
                let loops = self.one_in(8);
                let own = at.file_name().expect("a name").as_bytes().to_vec();
                let target = if loops { own } else { self.target(others) };
                symlink(OsStr::from_bytes(&target), at).expect("a link");
            }
            2 => self.make_node(at),
            _ => self.make_file(at),
        }
    }

    /// Fills the root.
    pub fn fill(&mut self, entries: usize) {
        let mut directories = vec![PathBuf::new()];
        let mut leaves: Vec<PathBuf> = Vec::new();
        for _ in 0..entries {
            let parent = self.pick_directory(&directories);
            let path = self.new_name(&parent);
            let at = self.root.join(&path);
            match self.random.below(12) {
                0..=3 => {
                    fs::create_dir(&at).expect("a directory");
                    directories.push(path);
                }
                4..=5 if !leaves.is_empty() => {
                    // Any kind may have further names; a few files have many.
                    let bound = if self.one_in(2) { leaves.len() } else { leaves.len().min(3) };
                    let first = self.root.join(&leaves[self.random.below(bound)]);
                    fs::hard_link(first, &at).expect("a hard link");
                }
                _ => {
                    self.make_leaf(&at, &leaves);
                    leaves.push(path);
                }
            }
        }
        // What is in a directory comes before it: its mode may close it, and its time stays.
        for path in leaves.iter().chain(directories.iter().rev()) {
            let at = if path.as_os_str().is_empty() { self.root.to_owned() } else { self.root.join(path) };
            self.season(&at);
        }
    }

    /// Owner, mode, attributes, lists and time.
    pub fn season(&mut self, at: &Path) {
        let kind = fs::symlink_metadata(at).expect("metadata").file_type();
        self.season_owner(at);
        if !kind.is_symlink() {
            set_mode(at, self.some_mode(kind.is_dir()));
            if self.one_in(4) {
                let (access, default) = (self.some_list(), self.some_list());
                set_attribute(at, ACCESS_LIST, &access);
                if kind.is_dir() && self.one_in(2) {
                    set_attribute(at, DEFAULT_LIST, &default);
                }
            }
        }
        self.season_attributes(at);
        let time = self.new_time();
        set_time(at, time);
    }

    fn some_list(&mut self) -> Vec<u8> {
        let mut may = || self.random.below(8) as u16;
        let (user, group, mut own_group, others, mask) = (may(), may(), may(), may(), may());
        if is_rsync() && own_group == mask {
            // rsync then takes all from the owner's group.
            own_group ^= 1;
        }
        list(0o700 | own_group << 3 | others, (7, user), (12, group), mask)
    }

    /// Who owns what nobody gives away, as `chown` takes it.
    pub fn owner(&self) -> String {
        if self.user == User::Nobody { "65534:65534".to_owned() } else { String::from(":") }
    }

    /// An owner, if the user may give files away.
    pub fn season_owner(&mut self, at: &Path) {
        if self.user == User::Nobody {
            set_owner(at, NOBODY, NOBODY);
        } else if self.is_privileged() && self.one_in(3) {
            let ids = [0, 1, 2, NOBODY, 12_345, 4_000_000_000];
            set_owner(at, self.random.pick(&ids), self.random.pick(&ids));
        }
    }

    pub fn some_mode(&mut self, is_directory: bool) -> u32 {
        const OF_FILES: [u32; 9] = [0o644, 0o600, 0o444, 0o400, 0o755, 0o4755, 0o2755, 0o6711, 0];
        const OF_DIRECTORIES: [u32; 9] = [0o755, 0o700, 0o555, 0o500, 0o1777, 0o2755, 0o3775, 0o777, 0];
        let modes = if is_directory { &OF_DIRECTORIES } else { &OF_FILES };
        // What is closed to its owner is only copied by root.
        let bound = modes.len() - usize::from(!self.is_privileged());
        if self.one_in(2) { modes[0] } else { modes[self.random.below(bound)] }
    }

    /// Attributes of users, and of administrators where the user is one.
    pub fn season_attributes(&mut self, at: &Path) {
        let kind = fs::symlink_metadata(at).expect("metadata").file_type();
        if (kind.is_file() || kind.is_dir()) && self.one_in(4) {
            if is_rsync() && self.user == User::Nobody && kind.is_dir() {
                // Once rsync has changed an attribute of a read-only directory it cannot write into it. psync
                // can.
                return;
            }
            for name in ["user.a", "user.b", "user.with space", "user.é"] {
                if self.one_in(2) {
                    let length = self.random.pick(&[0, 1, 31, 32, 33, 600]);
                    let value = vec![self.random.below(256) as u8; length];
                    self.set_own_attribute(at, name, &value);
                }
            }
        }
        if self.is_privileged() && self.one_in(8) {
            set_attribute(at, "trusted.t", b"\0\xff");
        }
        if self.is_privileged() && kind.is_file() && self.one_in(12) {
            // `cap_net_raw`, which a change of the owner takes away.
            let mut capability = 0x0200_0000u32.to_le_bytes().to_vec();
            capability.extend([1u32 << 13, 0, 0, 0].map(u32::to_le_bytes).concat());
            set_attribute(at, "security.capability", &capability);
        }
    }

    fn set_own_attribute(&self, at: &Path, name: &str, value: &[u8]) {
        let writable = rustix::fs::access(at, rustix::fs::Access::WRITE_OK).is_ok();
        if writable {
            set_attribute(at, name, value);
        }
    }
}
