//! Outputs in a new tree, where they replace nothing.

use std::ffi::CStr;

use millstream_vfs::{Dir, Errno, Error, SymlinkBehavior, Volume};

use super::journal::Planned;
use super::outcome::{Applied, Left, Reason};
use super::paths::names;
use super::work::{Done, Work};

impl<V: Volume> Work<'_, V> {
    /// Gives the outputs their names in the new tree.
    pub(super) fn reveal(&self, outputs: &[Planned]) -> Done<Applied> {
        let mut applied = Applied::default();
        let Some(first) = outputs.first() else { return Ok(applied) };
        let path = self.path_of(&first.directory);
        let dir = self.make_path(&first.directory);
        for output in outputs {
            self.step()?;
            let Some(manifest) = self.staging.manifest(&output.staged)? else { continue };
            let revealed = match &dir {
                Err(error) => Err(Reason::Failed(*error)),
                Ok(dir) => self.reveal_in(dir, output),
            };
            match revealed {
                Ok(()) => applied.outputs += 1,
                Err(reason) => {
                    let inputs = manifest.entries.len() as u64;
                    applied.left.push(Left { directory: path.clone(), inputs, reason });
                }
            }
            self.drop_output(output)?;
        }
        Ok(applied)
    }

    fn reveal_in(&self, dir: &V::Dir, output: &Planned) -> Result<(), Reason> {
        let is_staged = self.exists(&self.staging.out, &output.staged).map_err(Reason::Failed)?;
        if !is_staged {
            // An earlier attempt did it.
            return Ok(());
        }
        if self.exists(dir, &output.name).map_err(Reason::Failed)? {
            return Err(Reason::Taken(output.name.clone()));
        }
        self.staging.out.rename(&output.staged, dir, &output.name).map_err(Reason::Failed)
    }

    fn make_path(&self, path: &CStr) -> Result<V::Dir, Error> {
        let mut dir = self.root.open_dir(c".", SymlinkBehavior::NoFollow)?;
        for name in names(path) {
            dir = match dir.create_dir(&name, 0o777) {
                Err(error) if error.errno != Errno::EXIST => return Err(error),
                _ => dir.open_dir(&name, SymlinkBehavior::NoFollow)?,
            };
        }
        Ok(dir)
    }
}
