//! Directories that are reached from a root, component by component, without following links.

use std::collections::VecDeque;
use std::ffi::CString;

use millstream_vfs::{Dir, Errno, Error, Fields, FileKind, SymlinkBehavior};

/// Directories that are kept open, besides the root.
const KEPT: usize = 4;

/// The way from a root to the directory that was reached last. Only the last directories of it are open.
pub(super) struct Chain<D> {
    root: D,
    names: Vec<CString>,
    /// The last directories, with the number of components that lead to each.
    open: VecDeque<(usize, D)>,
}

impl<D: Dir> Chain<D> {
    pub(super) fn new(root: D) -> Self {
        Chain { root, names: Vec::new(), open: VecDeque::new() }
    }

    /// Opens the directory at a path below the root, and returns it.
    pub(super) fn reach(&mut self, below: &[u8]) -> Result<&D, Error> {
        // Names of a path have no NUL.
        let names: Vec<CString> = below
            .split(|&b| b == b'/')
            .filter(|name| !name.is_empty())
            .filter_map(|name| CString::new(name).ok())
            .collect();
        let common = self.names.iter().zip(&names).take_while(|(one, other)| one == other).count();
        while self.open.back().is_some_and(|(depth, _)| *depth > common) {
            self.open.pop_back();
        }
        self.names.truncate(self.open.back().map_or(0, |(depth, _)| *depth));
        for name in names.into_iter().skip(self.names.len()) {
            let directory = self.last().open_dir_for_names(&name, SymlinkBehavior::NoFollow)?;
            self.names.push(name);
            self.open.push_back((self.names.len(), directory));
            if self.open.len() > KEPT {
                self.open.pop_front();
            }
        }
        Ok(self.last())
    }

    /// The kind of what is at a path below the root, if there is anything.
    pub(super) fn look_up(&mut self, below: &[u8]) -> Result<Option<FileKind>, Error> {
        let (directory, name) = match below.iter().rposition(|&b| b == b'/') {
            Some(slash) => (&below[..slash], &below[slash + 1..]),
            None => (&b""[..], below),
        };
        let name = CString::new(name).unwrap_or_default();
        let found = self
            .reach(directory)
            .and_then(|directory| directory.metadata(&name, SymlinkBehavior::NoFollow, Fields::KIND));
        match found {
            Ok(found) => Ok(Some(found.kind())),
            Err(error) if matches!(error.errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The directory that was reached last.
    pub(super) fn last(&self) -> &D {
        self.open.back().map_or(&self.root, |(_, directory)| directory)
    }

    /// The directory above it, if that is open, and its name there; none at the root.
    pub(super) fn above(&self) -> Option<(&D, CString)> {
        let name = self.names.last()?.clone();
        let above = match self.open.len().checked_sub(2) {
            Some(at) => &self.open[at].1,
            None if self.names.len() == 1 => &self.root,
            None => return None,
        };
        Some((above, name))
    }
}
