//! Directories that are reached from a root, component by component, without following links.

use std::ffi::CString;

use millstream_vfs::{Dir, Error, SymlinkBehavior};

/// Open directories from a root to the one that was reached last.
pub(super) struct Chain<D> {
    root: D,
    path: Vec<(Vec<u8>, D)>,
}

impl<D: Dir> Chain<D> {
    pub(super) fn new(root: D) -> Self {
        Chain { root, path: Vec::new() }
    }

    /// Opens the directory at a path below the root, and returns it.
    pub(super) fn reach(&mut self, below: &[u8]) -> Result<&D, Error> {
        let names: Vec<&[u8]> = below.split(|&b| b == b'/').filter(|name| !name.is_empty()).collect();
        let common = self.path.iter().zip(&names).take_while(|((open, _), name)| open == *name).count();
        self.path.truncate(common);
        for name in &names[common..] {
            let above = self.path.last().map_or(&self.root, |(_, directory)| directory);
            let directory = above
                .open_dir_for_names(&CString::new(*name).unwrap_or_default(), SymlinkBehavior::NoFollow)?;
            self.path.push((name.to_vec(), directory));
        }
        Ok(self.last())
    }

    pub(super) fn last(&self) -> &D {
        self.path.last().map_or(&self.root, |(_, directory)| directory)
    }

    /// The directory above the last one, and the last one's name in it; none at the root.
    pub(super) fn above(&self) -> Option<(&D, CString)> {
        let (name, _) = self.path.last()?;
        let above = self.path.len().checked_sub(2).map_or(&self.root, |at| &self.path[at].1);
        Some((above, CString::new(name.as_slice()).unwrap_or_default()))
    }
}
