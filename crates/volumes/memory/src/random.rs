//! Random trees with injected errors, and the entries that a traversal should find in them.

use millstream_vfs::{Errno, FileKind, Operation};

use crate::MemoryVolume;

/// A small generator of repeatable numbers (SplitMix64, public domain, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Seeded from `MILLSTREAM_SEED` or from the clock; prints the seed.
    ///
    /// # Panics
    /// If the variable is not a number.
    pub fn from_environment() -> Self {
        let seed = match std::env::var("MILLSTREAM_SEED") {
            Ok(seed) => seed.parse().expect("MILLSTREAM_SEED is a number"),
            Err(_) => std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.subsec_nanos().into()),
        };
        println!("MILLSTREAM_SEED={seed}");
        Random(seed)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as usize % n
    }

    /// A name of unusual bytes, but without newlines and colons. It ends in `unique`.
    pub fn name(&mut self, unique: usize) -> Vec<u8> {
        let alphabet = b"a-Z \t\\'\"*?[\xff\xc3\xa9\x01.";
        let mut name: Vec<u8> = (0..self.below(12)).map(|_| alphabet[self.below(alphabet.len())]).collect();
        name.extend_from_slice(unique.to_string().as_bytes());
        name
    }
}

/// The injected error of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The directory cannot be opened.
    Unopenable,
    /// The directory cannot be read.
    Unreadable,
    /// Its attributes cannot be read.
    Unknown,
    /// It is listed, but gone.
    Vanished,
}

/// An entry of a random tree.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path, starting with the operand.
    pub path: Vec<u8>,
    /// Type.
    pub kind: FileKind,
    /// Size of its contents or of its target in bytes.
    pub size: u64,
    /// Its injected error.
    pub trouble: Trouble,
    parent: Option<usize>,
}

impl Entry {
    /// The error of an operation on this entry.
    pub fn error_of(&self, operation: Operation) -> Option<Errno> {
        match (self.trouble, operation) {
            (Trouble::Unopenable, Operation::OpenDir) => Some(Errno::ACCESS),
            (Trouble::Unreadable, Operation::ReadDir) | (Trouble::Unknown, Operation::Stat) => {
                Some(Errno::IO)
            }
            (Trouble::Vanished, _) => Some(Errno::NOENT),
            _ => None,
        }
    }

    /// The error of reading its entries.
    pub fn reading_error(&self) -> Option<(Operation, Errno)> {
        let failing = |operation| self.error_of(operation).map(|errno| (operation, errno));
        failing(Operation::OpenDir).or_else(|| failing(Operation::ReadDir))
    }
}

/// A random tree.
#[derive(Debug)]
pub struct RandomTree {
    /// The operand and everything below it; directories come before their entries.
    pub entries: Vec<Entry>,
}

impl RandomTree {
    /// Grows a tree of up to `most` entries and creates it on `volume` with its errors. The operand has no error.
    ///
    /// # Panics
    /// If `operand` exists.
    pub fn grow(volume: &MemoryVolume, random: &mut Random, operand: &str, most: usize) -> Self {
        let root = Entry {
            path: operand.into(),
            kind: FileKind::Directory,
            size: 0,
            trouble: Trouble::None,
            parent: None,
        };
        volume.create_dir(operand).expect("nothing there yet");
        let mut tree = RandomTree { entries: vec![root] };
        let mut directories = vec![0];
        for unique in 1..=random.below(most) {
            let parent = directories[random.below(directories.len())];
            let entry = tree.entry(random, parent, unique);
            entry.put_on(volume);
            if entry.kind == FileKind::Directory {
                directories.push(unique);
            }
            tree.entries.push(entry);
        }
        tree
    }

    fn entry(&self, random: &mut Random, parent: usize, unique: usize) -> Entry {
        let kind =
            [FileKind::Directory, FileKind::Directory, FileKind::File, FileKind::File, FileKind::Symlink]
                [random.below(5)];
        let trouble = match (random.below(12), kind) {
            (0, FileKind::Directory) => Trouble::Unopenable,
            (1, FileKind::Directory) => Trouble::Unreadable,
            (2, _) => Trouble::Unknown,
            (3, _) => Trouble::Vanished,
            _ => Trouble::None,
        };
        let size = if kind == FileKind::Directory { 0 } else { 1 + random.below(300) as u64 };
        let path = [&self.entries[parent].path[..], b"/", &random.name(unique)].concat();
        Entry { path, kind, size, trouble, parent: Some(parent) }
    }

    /// The entries that a traversal reaches if it opens the directories that `opens` accepts.
    pub fn reachable(&self, opens: impl Fn(&Entry) -> bool) -> Vec<&Entry> {
        let mut is_reached: Vec<bool> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let reached = entry.parent.is_none_or(|parent| {
                let above = &self.entries[parent];
                is_reached[parent] && above.reading_error().is_none() && opens(above)
            });
            is_reached.push(reached);
        }
        self.entries.iter().zip(is_reached).filter(|(_, reached)| *reached).map(|(entry, _)| entry).collect()
    }
}

impl Entry {
    fn put_on(&self, volume: &MemoryVolume) {
        let contents = vec![b'x'; usize::try_from(self.size).unwrap_or(usize::MAX)];
        let put = match self.kind {
            FileKind::Directory => volume.create_dir(&self.path),
            FileKind::Symlink => volume.symlink(contents, &self.path),
            _ => volume.write(&self.path, &contents),
        };
        put.expect("the name is new");
        if self.trouble == Trouble::Vanished {
            return volume.vanish(&self.path);
        }
        for operation in [Operation::OpenDir, Operation::ReadDir, Operation::Stat] {
            if let Some(errno) = self.error_of(operation) {
                volume.fail(&self.path, operation, errno);
            }
        }
    }
}
