//! Carries out a journal, or the rest of one that an earlier attempt began.

use millstream_vfs::{Dir, FileKind, RemoveKind, SymlinkBehavior, Volume};

use super::CompactError;
use super::journal::Kind;
use super::outcome::Applied;
use super::parallel::in_parallel;
use super::staging::{Staging, entries, remove_entries};
use super::work::{Done, MANY, Work};

/// Carries out the journal in `staging`, or the rest of it, on up to `threads` threads. `should_continue` is called
/// before each step.
///
/// # Errors
/// If `should_continue` returns false; the journal then stays.
pub fn apply<V: Volume>(
    staging: &Staging<V>,
    threads: usize,
    should_continue: &(dyn Fn() -> bool + Sync),
) -> Result<Applied, CompactError> {
    let Some(journal) = staging.journal()? else { return Ok(Applied::default()) };
    let root = staging
        .base
        .open_dir(&journal.root, SymlinkBehavior::Follow)
        .map_err(|error| CompactError::Volume { path: journal.root.clone(), error })?;
    let directories: Vec<_> = journal.outputs.chunk_by(|a, b| a.directory == b.directory).collect();
    let threads = threads.max(1);
    let inner_threads = (threads / directories.len().max(1)).max(1);
    let work = Work { staging, root, root_path: &journal.root, should_continue, inner_threads };
    let done = in_parallel(&directories, threads, |index, outputs| match journal.kind {
        Kind::InPlace { .. } => work.replace(index, outputs),
        Kind::New => work.reveal(outputs),
    });
    let mut applied = Applied::default();
    for part in done {
        let part = part?;
        applied.outputs += part.outputs;
        applied.replaced += part.replaced;
        applied.left.extend(part.left);
    }
    staging.sync_volume()?;
    match journal.kind {
        Kind::InPlace { keep_until: Some(_) } => work.keep_old(&directories)?,
        _ => work.remove_old(threads)?,
    }
    staging.finish()?;
    Ok(applied)
}

impl<V: Volume> Work<'_, V> {
    /// Removes the replaced files and directories.
    fn remove_old(&self, threads: usize) -> Done<()> {
        let failed = self.failed(c"old");
        let all = entries(&self.staging.old).map_err(&failed)?;
        let removed = in_parallel(&all, threads, |_, (name, _)| {
            self.step()?;
            let dir = self.staging.old.open_dir(name, SymlinkBehavior::NoFollow).map_err(&failed)?;
            let files = entries(&dir).map_err(&failed)?;
            let chunks: Vec<_> = files.chunks(MANY).collect();
            let inner = (threads / all.len()).max(1);
            let parts = in_parallel(&chunks, inner, |_, chunk| {
                self.step()?;
                chunk.iter().try_for_each(|(file, kind)| match kind {
                    FileKind::Directory => Ok(()),
                    _ => match dir.remove(file, RemoveKind::File) {
                        Err(error) if !error.is_vanished() => Err(failed(error)),
                        _ => Ok(()),
                    },
                })
            });
            parts.into_iter().collect::<Done<()>>()?;
            self.step()?;
            remove_entries(&dir).map_err(&failed)
        });
        removed.into_iter().collect()
    }
}
