//! A file and the one that replaces it.

use std::ffi::{CStr, CString};
use std::io::Read;
use std::sync::atomic::Ordering;

use millstream_codec::{Codec, Decoder, Encoder, Form, recognize};
use millstream_vfs::{Access, Dir, Errno, Fields, File, FileKind, Metadata, RemoveKind, SymlinkBehavior};

use super::pipeline::{Pool, Text, compress};
use super::{Action, Cause, Effect, Old, Options, cause};
use crate::activity::Activity;
use crate::content::{Content, Counted, take_after};

/// Bytes of a file's beginning and end that tell its form.
const BEGINNING: u64 = 512;
const END: u64 = 32;

type Result<T> = std::result::Result<T, Cause>;

/// Replaces files.
pub(super) struct Replacer<'a, D> {
    pub(super) base: &'a D,
    pub(super) options: &'a Options,
    pub(super) pool: &'a Pool,
    pub(super) activity: &'a Activity,
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
        let action = self.act(&source, &new)?;
        Ok((new, action))
    }

    fn open(&self, path: &[u8]) -> Result<Source<D>> {
        let at = path.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        let c_string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let (parent, name) = (c_string(if at == 0 { b"." } else { &path[..at] }), c_string(&path[at..]));
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
            if is_same { name.clone() } else { c_string(&[stem, form.codec().ending().as_bytes()].concat()) };
        Ok(Source { dir, name, file, metadata, codec, form, new_name })
    }

    fn act(&self, source: &Source<D>, new: &[u8]) -> Result<Action> {
        let beginning = part(&source.file, 0, BEGINNING)?;
        let end = part(&source.file, source.metadata.size.saturating_sub(END), END)?;
        let is_real = self.options.effect == Effect::Real;
        if source.new_name == source.name && source.form.is_of(&beginning, &end) {
            if is_real {
                source.remove_stale()?;
            }
            return Ok(Action::Kept);
        }
        if let (None, Some(format)) = (source.codec, recognize(&beginning)) {
            return Err(Cause::Format(format));
        }
        if source.new_name != source.name
            && let Some(same) = self.compare(source)?
        {
            return self.finish(source, same, new);
        }
        if !is_real {
            return Ok(Action::WouldReplace);
        }
        let temporary = source.temporary()?;
        let replaced = self
            .write(source, &temporary)
            .and_then(|action| source.rename(self.options.old, new).map(|()| action));
        if replaced.is_err() {
            // The first error says more. If it has been renamed, there is none.
            let _ = source.dir.remove(&source.temporary_name(), RemoveKind::File);
        }
        match replaced {
            // It was not there before: another source has got the same name.
            Err(Cause::Exists(_)) => match self.compare(source)? {
                Some(same) => self.finish(source, same, new),
                None => replaced,
            },
            replaced => replaced,
        }
    }

    /// Whether a file that has the new name has the same text; `None` if there is none.
    fn compare(&self, source: &Source<D>) -> Result<Option<bool>> {
        let new = match source.dir.open_file(&source.new_name, Access::Read, SymlinkBehavior::NoFollow) {
            Err(error) if error.errno == Errno::NOENT => return Ok(None),
            Err(_) => return Ok(Some(false)),
            Ok(new) => new,
        };
        let counted = Counted::default();
        let new = Content { file: &new, offset: 0, counted: &counted };
        match Text::of(Decoder::new(source.form.codec(), new)) {
            Ok(text) => Ok(Some(text == Text::of(self.text(source, &counted)).map_err(cause)?)),
            Err(_) => Ok(Some(false)),
        }
    }

    /// Ends what an earlier run has begun.
    fn finish(&self, source: &Source<D>, is_same: bool, new: &[u8]) -> Result<Action> {
        if !is_same {
            return Err(Cause::Exists(new.to_vec()));
        }
        if self.options.old == Old::Keep {
            return Ok(Action::Kept);
        }
        if self.options.effect == Effect::Real {
            source.check_unchanged()?;
            source.remove_stale()?;
            source.dir.remove(&source.name, RemoveKind::File)?;
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

impl<D: Dir> Source<D> {
    fn temporary_name(&self) -> CString {
        CString::new([b".", self.name.to_bytes(), b".recompress"].concat()).unwrap_or_default()
    }

    /// A new temporary file, which is locked.
    fn temporary(&self) -> Result<D::File> {
        self.remove_stale()?;
        let file = self.dir.create_file(&self.temporary_name(), 0o600)?;
        self.lock(&file)?;
        Ok(file)
    }

    /// Removes what a killed process has left.
    fn remove_stale(&self) -> Result<()> {
        let name = self.temporary_name();
        match self.dir.open_file(&name, Access::Write, SymlinkBehavior::NoFollow) {
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
            locked => Ok(locked?),
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        let fields = Fields::INO | Fields::SIZE | Fields::MTIME;
        let now = self.dir.metadata(&self.name, SymlinkBehavior::NoFollow, fields)?;
        let state = |metadata: &Metadata| (metadata.identity(), metadata.size, metadata.mtime);
        if state(&now) == state(&self.metadata) { Ok(()) } else { Err(Cause::Changed) }
    }

    /// Gives the temporary file its name, by a link.
    fn link(&self, temporary: &CStr, new: &[u8]) -> Result<()> {
        match self.dir.hard_link(temporary, SymlinkBehavior::NoFollow, &self.dir, &self.new_name) {
            Err(error) if error.errno == Errno::EXIST => Err(Cause::Exists(new.to_vec())),
            linked => {
                linked?;
                Ok(self.dir.remove(temporary, RemoveKind::File)?)
            }
        }
    }

    /// Puts the temporary file in place.
    fn rename(&self, old: Old, new: &[u8]) -> Result<()> {
        let temporary = self.temporary_name();
        if self.new_name == self.name {
            self.dir.rename(&temporary, &self.dir, &self.name)?;
            return Ok(self.dir.as_file()?.sync()?);
        }
        match self.dir.rename_new(&temporary, &self.dir, &self.new_name) {
            Err(error) if error.errno == Errno::EXIST => return Err(Cause::Exists(new.to_vec())),
            // The volume cannot do that, such as NFS. A link does not replace a file either.
            Err(error) if matches!(error.errno, Errno::INVAL | Errno::NOSYS) => self.link(&temporary, new)?,
            renamed => renamed?,
        }
        self.dir.as_file()?.sync()?;
        if old == Old::Remove {
            self.dir.remove(&self.name, RemoveKind::File)?;
        }
        Ok(())
    }
}

/// Some bytes of a file, or those that there are.
fn part<F: File>(file: &F, offset: u64, length: u64) -> Result<Vec<u8>> {
    let counted = Counted::default();
    let mut bytes = Vec::new();
    Content { file, offset, counted: &counted }.take(length).read_to_end(&mut bytes).map_err(cause)?;
    Ok(bytes)
}
