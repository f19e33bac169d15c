//! A file and the one that replaces it.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::sync::atomic::Ordering;

use millstream_codec::{Codec, DamageKind, DecodeError, Decoder, Encoder, Form, recognize};
use millstream_vfs::{
    Access, Dir, Errno, Error, Fields, File, FileKind, Metadata, RemoveKind, SymlinkBehavior,
};

use super::pipeline::{Pool, Text, compress};
use super::{Action, Cause, Effect, Logs, Old, Options, cause};
use millstream_operation::activity::Activity;
use millstream_operation::content::{Content, Counted, damage, take_after};
use millstream_operation::sticky::restricted_user;
use millstream_text::names::{c_string, rename_new, split};

/// Bytes at a file's beginning that decide whether it is text.
const BEGINNING: usize = 512;

type Result<T> = std::result::Result<T, Cause>;

/// Replaces files.
pub(super) struct Replacer<'a, D> {
    pub(super) base: &'a D,
    pub(super) options: &'a Options,
    pub(super) pool: &'a Pool,
    pub(super) activity: &'a Activity,
    pub(super) logs: &'a Logs,
}

/// A file to be replaced.
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
            if is_same { name.clone() } else { c_string(&[stem, form.codec().extension().as_bytes()]) };
        Ok(Source { dir, name, file, metadata, codec, form, new_name })
    }

    fn act(&self, source: &Source<D>, directory: &CStr, new: &[u8]) -> Result<Action> {
        source.check_begun()?;
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
            // The first error is more informative.
            let _ = source.dir.remove(&source.temporary_name(), RemoveKind::File);
        }
        match replaced {
            // It is new: another source has got the same name.
            Err(Cause::Exists(new_path)) => match self.made(source, new)? {
                Some(made) => self.finish(source, &made, new),
                None => Err(Cause::Exists(new_path)),
            },
            replaced => replaced,
        }
    }

    /// The new file, if an earlier run has created it: it is in the form, and has the text of the source.
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

    /// Completes what an earlier run has begun.
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
            source.remove_old().map_err(|error| Cause::Twice(new.to_vec(), error))?;
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

    /// Removes the leftovers of a killed process.
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

    /// Refuses a file of no bytes if its format has none ([`Codec::may_be_empty`]).
    fn check_begun(&self) -> Result<()> {
        match self.codec {
            Some(codec) if self.metadata.size == 0 && !codec.may_be_empty() => {
                let reason = "the file is empty".into();
                let damage = DecodeError { codec, offset: 0, reason, kind: DamageKind::Truncated };
                Err(Cause::Damaged(Box::new(damage)))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a file that only its owner may remove. Other reasons show when it is removed.
    fn check_removable(&self) -> Result<()> {
        let is_kept = restricted_user(&self.dir)?.is_some_and(|user| user != self.metadata.uid);
        if is_kept { Err(Cause::Sticky) } else { Ok(()) }
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
        let renamed = match rename_new(&self.dir, &name, &self.dir, &self.new_name) {
            Err(error) if error.errno == Errno::EXIST => return Err(Cause::Exists(new.to_vec())),
            // It may have taken effect all the same.
            Err(error) if !self.is_in_place(temporary).unwrap_or(true) => return Err(error.into()),
            renamed => renamed,
        };
        let synced = renamed.and_then(|()| self.dir.as_file()?.sync());
        if old == Old::Keep {
            return Ok(synced?);
        }
        synced.map_err(|error| self.take_back(temporary, error, new))?;
        self.remove_old().map_err(|error| {
            if is_refusal(error.errno) {
                self.take_back(temporary, error, new)
            } else {
                Cause::Twice(new.to_vec(), error)
            }
        })
    }

    /// Removes the old file. It is not an error if it is gone: an NFS server that gets the request twice reports that,
    /// and after a timeout the first one may have taken effect.
    fn remove_old(&self) -> std::result::Result<(), Error> {
        let removed = self.dir.remove(&self.name, RemoveKind::File);
        let Err(error) = removed else { return Ok(()) };
        let is_gone = error.errno == Errno::NOENT
            || self
                .dir
                .metadata(&self.name, SymlinkBehavior::NoFollow, Fields::INO)
                .is_err_and(|error| error.errno == Errno::NOENT);
        if is_gone { Ok(()) } else { Err(error) }
    }

    /// Removes the new file, because the old one is to stay. The new one stays, too, unless the old one certainly has
    /// its name: it could be the only copy.
    fn take_back(&self, made: &D::File, error: Error, new: &[u8]) -> Cause {
        let taken_back = self.check_unchanged().and_then(|()| {
            if self.is_in_place(made)? {
                self.dir.remove(&self.new_name, RemoveKind::File)?;
            }
            Ok(())
        });
        match taken_back {
            Ok(()) => Cause::TakenBack(error),
            Err(_) => Cause::Twice(new.to_vec(), error),
        }
    }

    /// Whether this file has the new name.
    fn is_in_place(&self, made: &D::File) -> std::result::Result<bool, Error> {
        match self.dir.metadata(&self.new_name, SymlinkBehavior::NoFollow, Fields::INO) {
            Err(error) if error.errno == Errno::NOENT => Ok(false),
            named => Ok(named?.identity() == made.metadata(Fields::INO)?.identity()),
        }
    }
}

/// Whether a removal that failed with this error has certainly not taken effect.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::ACCESS | Errno::BUSY | Errno::ROFS | Errno::TXTBSY)
}

/// Some bytes of a file; fewer at its end.
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
    use millstream_posix::PosixVolume;
    use millstream_vfs::{At, Operation, Volume};

    use super::*;

    const REMOVING: Options = Options {
        form: None,
        level: None,
        old: Old::Remove,
        effect: Effect::Real,
        threads: 1,
        real_path: |_| None,
    };

    /// The result for the file `a` of a volume, and the names that exist afterwards.
    fn replaced(volume: &MemoryVolume) -> (Result<Action>, Vec<CString>) {
        let (pool, jobs) = Pool::new(1);
        let encoding = std::thread::spawn(move || super::super::pipeline::encode(&jobs));
        let (base, activity) = (volume.base(), Activity::default());
        let replacer = Replacer {
            base: &base,
            options: &REMOVING,
            pool: &pool,
            activity: &activity,
            logs: &Logs::default(),
        };
        let done = replacer.replace(b"a").map(|(_, action)| action);
        pool.close();
        encoding.join().expect("no panic");
        (done, volume.names("").expect("a directory"))
    }

    fn with_a() -> MemoryVolume {
        let volume = MemoryVolume::default();
        volume.write("a", b"line\n").expect("written");
        volume
    }

    /// Issue 36, C5.
    #[test]
    fn the_new_file_is_taken_back_if_the_old_one_cannot_be_removed() {
        let taken_back =
            "it cannot be removed, so the new file was removed again: remove: Operation not permitted";
        let twice =
            "it cannot be removed, and a.gz has the same text, so readers find each line twice: remove: ";
        let lasting = format!("{twice}Operation not permitted");
        let (io, unsynced) = (
            format!("{twice}Input/output error"),
            taken_back.replace("remove: Operation not permitted", "sync: Input/output error"),
        );
        for (faults, names, told) in [
            (&[("a", Operation::Remove, Errno::PERM)][..], &[c"a"][..], taken_back),
            (
                &[("a", Operation::Remove, Errno::PERM), ("a.gz", Operation::Remove, Errno::IO)],
                &[c"a", c"a.gz"],
                &lasting,
            ),
            // It may have taken effect on the server.
            (&[("a", Operation::Remove, Errno::IO)], &[c"a", c"a.gz"], &io),
            (&[("", Operation::Sync, Errno::IO)], &[c"a"], &unsynced),
        ] {
            let volume = with_a();
            for (path, operation, errno) in faults {
                volume.fail(path, *operation, *errno);
            }
            let (done, left) = replaced(&volume);
            assert_eq!(done.expect_err("an error").to_string(), told);
            assert_eq!(left, names, "{told}");
        }
    }

    /// Issue 36: a removal that is sent twice, or times out after it took effect.
    #[test]
    fn the_new_file_is_never_taken_back_if_the_old_one_may_be_gone() {
        let twice = |errno| Err(Cause::Twice(b"a.gz".to_vec(), Error::new(Operation::Remove, errno)));
        for (errno, seen_of_old, expected) in [
            (Errno::NOENT, None, Ok(())),
            (Errno::TIMEDOUT, Some(Errno::NOENT), Ok(())),
            (Errno::TIMEDOUT, None, twice(Errno::TIMEDOUT)),
            (Errno::PERM, Some(Errno::IO), twice(Errno::PERM)),
        ] {
            // The first attributes of the old file are read before it is removed.
            let done = (0..8).map(|spared| {
                let volume = with_a();
                volume.fail("a", Operation::Remove, errno);
                if let Some(seen) = seen_of_old {
                    volume.fail_after(spared, "a", Operation::Stat, seen);
                }
                let (done, left) = replaced(&volume);
                (done.map(|_| ()), left.contains(&c"a.gz".to_owned()))
            });
            assert!(
                done.into_iter().any(|done| done == (expected.clone(), true)),
                "{errno:?}, {seen_of_old:?}"
            );
        }
    }

    /// Issue 36: the same, if an earlier run has made the new file.
    #[test]
    fn an_old_file_that_is_gone_when_it_is_removed_is_no_error() {
        let volume = with_a();
        volume.fail("a", Operation::Remove, Errno::IO);
        assert!(replaced(&volume).0.is_err());
        assert!(volume.names("").expect("a directory").contains(&c"a.gz".to_owned()));
        let again = with_a();
        again.write("a.gz", &volume.read("a.gz").expect("readable")).expect("written");
        again.fail("a", Operation::Remove, Errno::NOENT);
        assert_eq!(replaced(&again).0, Ok(Action::Finished));
    }

    /// Another process removes the temporary file before it is locked, and begins with its own.
    #[test]
    fn a_temporary_file_that_another_process_has_removed_is_not_renamed() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("a.gz"), b"the old file").expect("written");
        let operand = c_string(&[path("a.gz").as_os_str().as_encoded_bytes()]);
        let (base, (pool, _jobs), activity) = (PosixVolume.base(), Pool::new(1), Activity::default());
        let replacer = Replacer {
            base: &base,
            options: &REMOVING,
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
