//! A file and the one that replaces it.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::sync::atomic::Ordering;

use millstream_codec::{Codec, Decoder, Encoder, Form, recognize};
use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, RemoveKind, SymlinkBehavior,
};

use super::pipeline::{Pool, Text, compress};
use super::{Action, Cause, Effect, Logs, Old, Options, cause};
use crate::activity::Activity;
use crate::content::{Content, Counted, damage, take_after};
use crate::names::{c_string, rename_new, split};

/// Bytes of a file's beginning that tell whether it is text.
const BEGINNING: usize = 512;

/// The mode of a directory in which only owners remove files.
const STICKY: u32 = 0o1000;

type Result<T> = std::result::Result<T, Cause>;

/// Replaces files.
pub(super) struct Replacer<'a, D> {
    pub(super) base: &'a D,
    pub(super) options: &'a Options,
    pub(super) pool: &'a Pool,
    pub(super) activity: &'a Activity,
    pub(super) logs: &'a Logs,
}

/// A file that is to be replaced.
struct Source<D: Dir> {
    dir: D,
    name: CString,
    file: D::File,
    metadata: Metadata,
    /// [`None`] if it is plain text.
    codec: Option<Codec>,
    form: Form,
    new_name: CString,
}

impl<D: Dir> Replacer<'_, D> {
    /// Replaces a file; returns the path of the new one.
    pub(super) fn replace(&self, path: &[u8]) -> Result<(Vec<u8>, Action)> {
        let source = self.open(path)?;
        let directory = &path[..path.len() - source.name.to_bytes().len()];
        let new = [directory, source.new_name.to_bytes()].concat();
        self.activity.begun_bytes.fetch_add(source.metadata.size, Ordering::Relaxed);
        let (parent, _) = split(path);
        let action = self.act(&source, &parent, &new)?;
        Ok((new, action))
    }

    fn open(&self, path: &[u8]) -> Result<Source<D>> {
        let (parent, name) = split(path);
        let dir = self.base.open_dir(&parent, SymlinkBehavior::Follow)?;
        let kind = dir.metadata(&name, SymlinkBehavior::NoFollow, Fields::KIND)?.kind();
        if kind != FileKind::File {
            return Err(Cause::NotAFile);
        }
        let file = dir.open_file(&name, Access::Read, SymlinkBehavior::NoFollow)?;
        let metadata = file.metadata(Fields::STAT)?;
        let found = Codec::split_name(name.to_bytes());
        let (codec, stem) = found.map_or((None, name.to_bytes()), |(codec, stem)| (Some(codec), stem));
        let form = self.options.form.or_else(|| Form::of(codec?)).unwrap_or(Form::Bgzf);
        // A file that has the codec keeps its name.
        let is_same = codec == Some(form.codec());
        let new_name =
            if is_same { name.clone() } else { c_string(&[stem, form.codec().ending().as_bytes()]) };
        Ok(Source { dir, name, file, metadata, codec, form, new_name })
    }

    fn act(&self, source: &Source<D>, directory: &CStr, new: &[u8]) -> Result<Action> {
        let is_real = self.options.effect == Effect::Real;
        let keeps_name = source.new_name == source.name;
        if keeps_name && is_of(source.form, &source.file, source.metadata.size).map_err(cause)? {
            if is_real {
                source.remove_stale()?;
            }
            return Ok(Action::Kept);
        }
        let beginning = part(&source.file, 0, BEGINNING).map_err(cause)?;
        if let (None, Some(format)) = (source.codec, recognize(&beginning)) {
            return Err(Cause::Format(format));
        }
        let removes = keeps_name || self.options.old == Old::Remove;
        if removes && let Some(evidence) = self.logs.of(self.base, directory, self.options) {
            return Err(Cause::Named(Box::new(evidence)));
        }
        if !keeps_name && let Some(made) = self.made(source, new)? {
            return self.finish(source, &made, new);
        }
        if removes {
            source.check_removable()?;
        }
        if !is_real {
            return Ok(Action::WouldReplace);
        }
        let temporary = source.temporary()?;
        let replaced = self
            .write(source, &temporary)
            .and_then(|action| source.rename(&temporary, self.options.old, new).map(|()| action));
        if replaced.is_err() && source.check_name(&temporary).is_ok() {
            // The first error says more.
            let _ = source.dir.remove(&source.temporary_name(), RemoveKind::File);
        }
        match replaced {
            // It was not there before: another source has got the same name.
            Err(Cause::Exists(new_path)) => match self.made(source, new)? {
                Some(made) => self.finish(source, &made, new),
                None => Err(Cause::Exists(new_path)),
            },
            replaced => replaced,
        }
    }

    /// The new file, if an earlier run has made it: it is in the form, and has the text of the source.
    ///
    /// # Errors
    /// If another file has the new name.
    fn made(&self, source: &Source<D>, new: &[u8]) -> Result<Option<D::File>> {
        let unreadable = |error| Cause::Unreadable(new.to_vec(), error);
        let undecodable = |error| match damage(error) {
            Ok(damage) => Cause::Undecodable(new.to_vec(), damage),
            Err(error) => unreadable(error),
        };
        let file = match source.dir.open_file(&source.new_name, Access::Read, SymlinkBehavior::NoFollow) {
            Err(error) if error.errno == Errno::NOENT => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        let size = file.metadata(Fields::SIZE).map_err(unreadable)?.size;
        if !is_of(source.form, &file, size).map_err(undecodable)? {
            return Err(Cause::OtherForm(new.to_vec()));
        }
        let counted = Counted::default();
        let content = Content { file: &file, offset: 0, counted: &counted };
        let text = Text::of(Decoder::new(source.form.codec(), content)).map_err(undecodable)?;
        if text == Text::of(self.text(source, &counted)).map_err(cause)? {
            Ok(Some(file))
        } else {
            Err(Cause::Exists(new.to_vec()))
        }
    }

    /// Ends what an earlier run has begun.
    fn finish(&self, source: &Source<D>, made: &D::File, new: &[u8]) -> Result<Action> {
        if self.options.old == Old::Keep {
            return Ok(Action::Kept);
        }
        if self.options.effect == Effect::Real {
            // That run may have been killed before it did this.
            made.sync()?;
            source.dir.as_file()?.sync()?;
            source.check_unchanged()?;
            source.remove_stale()?;
            let removed = source.dir.remove(&source.name, RemoveKind::File);
            removed.map_err(|error| Cause::Twice(new.to_vec(), error))?;
        }
        Ok(Action::Finished)
    }

    fn write(&self, source: &Source<D>, temporary: &D::File) -> Result<Action> {
        take_after(temporary, &source.file, &source.metadata)?;
        let counted = Counted { all: Some(&self.activity.bytes), ..Counted::default() };
        let encoder = Encoder::new(source.form, self.options.level);
        let text = compress(self.pool, encoder, self.text(source, &counted), temporary)?;
        temporary.set_times(source.metadata.atime, source.metadata.mtime)?;
        temporary.sync()?;
        let uncounted = Counted::default();
        let written = Content { file: temporary, offset: 0, counted: &uncounted };
        let is_verified =
            Text::of(Decoder::new(source.form.codec(), written)).is_ok_and(|written| written == text);
        if !is_verified {
            return Err(Cause::NotVerified);
        }
        source.check_unchanged()?;
        let after = temporary.metadata(Fields::SIZE)?.size;
        Ok(Action::Replaced { before: source.metadata.size, after, text: text.length })
    }

    fn text<'a>(&self, source: &'a Source<D>, counted: &'a Counted<'a>) -> Box<dyn Read + 'a> {
        let content = Content { file: &source.file, offset: 0, counted };
        match source.codec {
            Some(codec) => Box::new(Decoder::new(codec, content)),
            None => Box::new(content),
        }
    }
}

/// The temporary file belongs to the process that has locked it while it has its name: only that process
/// renames or removes it.
impl<D: Dir> Source<D> {
    fn temporary_name(&self) -> CString {
        c_string(&[b".", self.name.to_bytes(), b".recompress"])
    }

    /// A new temporary file, which is locked.
    fn temporary(&self) -> Result<D::File> {
        self.remove_stale()?;
        match self.dir.create_file(&self.temporary_name(), 0o600) {
            Err(error) if error.errno == Errno::EXIST => Err(Cause::Busy),
            created => {
                let file = created?;
                self.lock(&file)?;
                Ok(file)
            }
        }
    }

    /// Removes what a killed process has left.
    fn remove_stale(&self) -> Result<()> {
        let name = self.temporary_name();
        let open = |access| self.dir.open_file(&name, access, SymlinkBehavior::NoFollow);
        // NFS locks files that are open for writing; a file that has its permissions already may be read
        // only.
        let opened = match open(Access::Write) {
            Err(error) if error.errno == Errno::ACCESS => open(Access::Read),
            opened => opened,
        };
        match opened {
            Err(error) if error.errno == Errno::NOENT => Ok(()),
            Err(error) => Err(error.into()),
            Ok(file) => {
                self.lock(&file)?;
                Ok(self.dir.remove(&name, RemoveKind::File)?)
            }
        }
    }

    fn lock(&self, file: &D::File) -> Result<()> {
        match file.try_lock() {
            Err(error) if error.errno == Errno::AGAIN => Err(Cause::Busy),
            Err(error) => Err(error.into()),
            // Another process may have removed or renamed it before it was locked.
            Ok(()) => self.check_name(file),
        }
    }

    /// Checks that the temporary file has its name.
    fn check_name(&self, file: &D::File) -> Result<()> {
        match self.dir.metadata(&self.temporary_name(), SymlinkBehavior::NoFollow, Fields::INO) {
            Err(error) if error.errno == Errno::NOENT => Err(Cause::Busy),
            Err(error) => Err(error.into()),
            Ok(named) if named.identity() != file.metadata(Fields::INO)?.identity() => Err(Cause::Busy),
            Ok(_) => Ok(()),
        }
    }

    /// Refuses a file that only its owner may remove. Other reasons show when it is removed.
    fn check_removable(&self) -> Result<()> {
        let directory = self.dir.own_metadata(Fields::MODE | Fields::UID)?;
        let user = rustix::process::geteuid();
        let is_owner = [self.metadata.uid, directory.uid].contains(&user.as_raw());
        if directory.mode & STICKY == 0 || is_owner || user.is_root() { Ok(()) } else { Err(Cause::Sticky) }
    }

    fn check_unchanged(&self) -> Result<()> {
        let fields = Fields::INO | Fields::SIZE | Fields::MTIME;
        let now = self.dir.metadata(&self.name, SymlinkBehavior::NoFollow, fields)?;
        let state = |metadata: &Metadata| (metadata.identity(), metadata.size, metadata.mtime);
        if state(&now) == state(&self.metadata) { Ok(()) } else { Err(Cause::Changed) }
    }

    /// Puts the temporary file in place.
    fn rename(&self, temporary: &D::File, old: Old, new: &[u8]) -> Result<()> {
        self.check_name(temporary)?;
        let name = self.temporary_name();
        if self.new_name == self.name {
            self.dir.rename(&name, &self.dir, &self.name)?;
            return Ok(self.dir.as_file()?.sync()?);
        }
        match rename_new(&self.dir, &name, &self.new_name) {
            Err(error) if error.errno == Errno::EXIST => return Err(Cause::Exists(new.to_vec())),
            renamed => renamed?,
        }
        self.dir.as_file()?.sync()?;
        match old {
            Old::Keep => Ok(()),
            Old::Remove => self
                .dir
                .remove(&self.name, RemoveKind::File)
                .map_err(|error| self.take_back(temporary, error, new)),
        }
    }

    /// Removes the new file, because the old one cannot be removed.
    fn take_back(&self, made: &D::File, error: Error, new: &[u8]) -> Cause {
        let named = self.dir.metadata(&self.new_name, SymlinkBehavior::NoFollow, Fields::INO);
        let is_ours = named.and_then(|named| Ok(named.identity() == made.metadata(Fields::INO)?.identity()));
        let removed = is_ours
            .and_then(|is| if is { self.dir.remove(&self.new_name, RemoveKind::File) } else { Ok(()) });
        match removed {
            Ok(()) => Cause::TakenBack(error),
            Err(_) => Cause::Twice(new.to_vec(), error),
        }
    }
}

/// Some bytes of a file, or those that there are.
fn part<F: File>(file: &F, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let counted = Counted::default();
    let mut bytes = Vec::new();
    Content { file, offset, counted: &counted }.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_of<F: File>(form: Form, file: &F, size: u64) -> io::Result<bool> {
    form.is_of(size, |offset, length| part(file, offset, length))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use millstream_memory::MemoryVolume;
    use millstream_vfs::{At, Operation, PosixVolume, Volume};

    use super::*;

    /// Issue 36, C5.
    #[test]
    fn the_new_file_is_taken_back_if_the_old_one_cannot_be_removed() {
        for (errno_of_new, names, told) in [
            (
                None,
                &["a"][..],
                "it cannot be removed, so the new file was taken back: remove: Operation not permitted",
            ),
            (
                Some(Errno::IO),
                &["a", "a.gz"],
                "it cannot be removed, and a.gz has the same text, so readers find each line twice: remove: Operation not permitted",
            ),
        ] {
            let volume = MemoryVolume::default();
            volume.write("a", b"line\n").expect("written");
            volume.fail("a", Operation::Remove, Errno::PERM);
            if let Some(errno) = errno_of_new {
                volume.fail("a.gz", Operation::Remove, errno);
            }
            let (pool, jobs) = Pool::new(1);
            let encoding = std::thread::spawn(move || super::super::pipeline::encode(&jobs));
            let options = Options {
                form: None,
                level: None,
                old: Old::Remove,
                effect: Effect::Real,
                threads: 1,
                real_path: |_| None,
            };
            let (base, activity) = (volume.base(), Activity::default());
            let replacer = Replacer {
                base: &base,
                options: &options,
                pool: &pool,
                activity: &activity,
                logs: &Logs::default(),
            };
            let failed = replacer.replace(b"a").expect_err("cannot be removed");
            assert_eq!(failed.to_string(), told);
            let left: Vec<_> = volume
                .names("")
                .expect("a directory")
                .into_iter()
                .map(|name| name.into_string().expect("UTF-8"))
                .collect();
            assert_eq!(left, names);
            pool.close();
            encoding.join().expect("no panic");
        }
    }

    /// Another process removes the temporary file before it is locked, and begins with its own.
    #[test]
    fn a_temporary_file_that_another_process_has_removed_is_not_renamed() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("a.gz"), b"the old file").expect("written");
        let operand = c_string(&[path("a.gz").as_os_str().as_encoded_bytes()]);
        let options = Options {
            form: None,
            level: None,
            old: Old::Remove,
            effect: Effect::Real,
            threads: 1,
            real_path: |_| None,
        };
        let (base, (pool, _jobs), activity) = (PosixVolume.base(), Pool::new(1), Activity::default());
        let replacer = Replacer {
            base: &base,
            options: &options,
            pool: &pool,
            activity: &activity,
            logs: &Logs::default(),
        };
        let source = replacer.open(operand.to_bytes()).expect("a file");
        let replace_temporary = || {
            fs::remove_file(path(".a.gz.recompress")).expect("removed");
            fs::write(path(".a.gz.recompress"), b"half of a fi").expect("written");
        };
        let created = source.dir.create_file(&source.temporary_name(), 0o600).expect("created");
        replace_temporary();
        assert_eq!(source.lock(&created), Err(Cause::Busy));
        let locked = source.temporary().expect("what is left is removed");
        locked.write_all(b"the new file", At::Offset(0)).expect("written");
        replace_temporary();
        assert_eq!(source.rename(&locked, Old::Remove, b"a.gz"), Err(Cause::Busy));
        assert_eq!(fs::read(path("a.gz")).expect("readable"), b"the old file");
        assert_eq!(fs::read(path(".a.gz.recompress")).expect("readable"), b"half of a fi");
    }
}
