//! Threads that take work from the queue, and build indexes.

use std::ffi::CStr;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use millstream_codec::{Codec, Index, Indexer, Points, SPACING, import, to_gztool};
use millstream_version::Version;
use millstream_vfs::{Access, Dir, Errno, Fields, File, FileKind, Metadata, SymlinkBehavior, Volume};

use super::names::gztool_name;
use super::search::{Found, Job};
use super::store::{Existing, Store, content, load, not_kept, write_atomically};
use super::{Action, Cause, Effect, Event, Run, Summary, divisible};
use millstream_operation::content::{Content, Counted, damage};

impl<V: Volume> Run<'_, V> {
    /// Does the tasks from the queue, until it ends.
    pub(super) fn work(&self, jobs: &Mutex<Receiver<Job<V::Dir>>>, store: &Store<V::Dir>) {
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match job {
                Ok(Job::Build(found)) => self.build(&found, store),
                Ok(Job::Prune { dir, directory, only }) => {
                    self.prune(dir.as_ref(), &directory, only.as_deref(), store)
                }
                Err(_) => return,
            }
        }
    }

    fn build(&self, found: &Found<V::Dir>, store: &Store<V::Dir>) {
        let path = [&found.directory, found.name.to_bytes()].concat();
        let counted = Counted { all: Some(&self.activity.bytes), own: AtomicU64::new(0) };
        match self.index(found, store, &counted) {
            Ok(action) => self.sink.event(Event { path: &path, action }),
            Err(Cause::Undivided) if !found.is_operand => {
                self.sink.event(Event { path: &path, action: Action::Undivided });
            }
            Err(cause) => self.problem(&path, &cause),
        }
        // The file may have grown, or need not be read.
        let left = found.size.wrapping_sub(counted.own.into_inner());
        self.activity.spared_bytes.fetch_add(left, Ordering::Relaxed);
    }

    fn index(
        &self,
        found: &Found<V::Dir>,
        store: &Store<V::Dir>,
        counted: &Counted<'_>,
    ) -> Result<Action, Cause> {
        let dir = &*found.dir;
        let file = dir.open_file(&found.name, Access::Read, SymlinkBehavior::Follow)?;
        let before = file.metadata(Fields::STAT)?;
        if before.kind() != FileKind::File {
            return Err(Cause::NotAFile);
        }
        let version = Version::of(&before);
        let name = self.index_name(&found.directory, &found.name, &version);
        let index_directory = self.open_for(store, Some(dir)).map_err(not_kept)?;
        if let Some((index_bytes, index)) =
            index_directory.and_then(|index_directory| load(&index_directory, &name, &before))
        {
            self.export(found, &file, &index, &before)?;
            return Ok(Action::Kept(summary(&index, index_bytes)));
        }
        let codec = divisible(found.name.to_bytes()).ok_or(Cause::NotDivisible)?;
        if self.options.import.is_some() && codec != Codec::Gzip {
            return Err(Cause::OnlyGzip);
        }
        if self.options.effect == Effect::DryRun {
            return Ok(Action::WouldMake);
        }
        let index = match &self.options.import {
            Some(path) => self.import(path, &file, before.size, counted)?,
            None => decode(codec, Content { file: &file, offset: 0, counted })?,
        };
        if !Version::of(&file.metadata(Version::FIELDS)?).is_same(&version) || index.size() != before.size {
            return Err(Cause::Changed);
        }
        let bytes = index.encode();
        self.save(store, dir, &name, &bytes, (&file, &before)).map_err(not_kept)?;
        self.export(found, &file, &index, &before)?;
        Ok(Action::Made(summary(&index, bytes.len() as u64)))
    }

    /// Decodes a whole file on several threads, with the index of another program.
    fn import<F: File>(
        &self,
        path: &CStr,
        file: &F,
        size: u64,
        counted: &Counted<'_>,
    ) -> Result<Index, Cause> {
        let other = self.base.open_file(path, Access::Read, SymlinkBehavior::Follow);
        let other = other.and_then(|other| {
            let size = other.metadata(Fields::SIZE)?.size;
            content(&other, size)
        });
        let other = other.map_err(Cause::NotImported)?;
        let points = Points::parse(&other).map_err(|_| Cause::NotForeign(path.to_bytes().to_vec()))?;
        let open = |offset| Ok(Content { file, offset, counted });
        let index =
            import(&points, size, SPACING, self.options.threads, open).map_err(|error| {
                match cause(error) {
                    Cause::Damaged(damage) => Cause::Unfit(damage),
                    cause => cause,
                }
            })?;
        index.ok_or(Cause::Undivided)
    }

    /// Writes gztool's index next to the file, if requested and if gztool reads such files.
    fn export(
        &self,
        found: &Found<V::Dir>,
        file: &<V::Dir as Dir>::File,
        index: &Index,
        owner: &Metadata,
    ) -> Result<(), Cause> {
        if !self.options.export {
            return Ok(());
        }
        let path = |name: &CStr| [&found.directory, name.to_bytes()].concat();
        if index.codec() != Codec::Gzip {
            self.sink.event(Event { path: &path(&found.name), action: Action::NotExported });
            return Ok(());
        }
        let counted = Counted::default();
        let exported = to_gztool(index, |offset| Ok(Content { file, offset, counted: &counted }));
        let exported = exported.map_err(|error| match cause(error) {
            Cause::Damaged(damage) => Cause::Unexportable(damage),
            cause => cause,
        })?;
        let (dir, name) = (&*found.dir, gztool_name(&found.name));
        let most = exported.len() as u64 + 1;
        let there = match dir.open_file(&name, Access::Read, SymlinkBehavior::Follow) {
            Err(error) if error.errno == Errno::NOENT => None,
            opened => Some(opened.and_then(|there| content(&there, most)).map_err(Cause::NotExported)?),
        };
        match there {
            Some(there) if there == exported => return Ok(()),
            Some(_) => return Err(Cause::OtherIndex(path(&name))),
            None if self.options.effect == Effect::DryRun => {}
            None => {
                let written = write_atomically(dir, &name, &exported, (file, owner), Existing::Refuse);
                written.map_err(|error| match error.errno {
                    Errno::EXIST => Cause::OtherIndex(path(&name)),
                    _ => Cause::NotExported(error),
                })?;
            }
        }
        self.sink.event(Event { path: &path(&name), action: Action::Exported });
        Ok(())
    }
}

fn summary(index: &Index, index_bytes: u64) -> Summary {
    Summary {
        size: index.size(),
        decoded: index.length(),
        lines: index.lines(),
        chunks: index.chunks() as u64,
        index_bytes,
    }
}

/// Decodes a whole file.
fn decode(codec: Codec, input: impl Read) -> Result<Index, Cause> {
    let indexer = Indexer::new(codec, input, SPACING).ok_or(Cause::NotDivisible)?;
    indexer.run(|| true).map_err(cause)?.ok_or(Cause::Undivided)
}

/// Why a file could not be decoded.
fn cause(error: io::Error) -> Cause {
    damage(error).map_or_else(Cause::Volume, Cause::Damaged)
}
