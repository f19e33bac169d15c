//! Concatenates many text files into one.
//!
//! [`JoinedFiles`] are written to a new file; a single input is cloned where the volume supports it. The output is then
//! read back and its checksum compared with that of the written data.

use std::ffi::CStr;

use millstream_codec::Crc32;
use millstream_version::Version;
use millstream_vfs::{Access, At, Dir, Error, Fields, File, RemoveKind, SymlinkBehavior, Volume};

use crate::join::JoinRule;
use crate::joined::{ConcatenateError, Input, JoinedFiles};
use crate::source::{VolumeSource, checksum_file};

/// Size of a write, if there is enough data.
const BUFFER: usize = 1 << 20;
const MODE: u32 = 0o666;

/// Result of a concatenation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concatenated {
    /// The version of each input that was read.
    pub versions: Vec<Version>,
    /// Length of the output in bytes.
    pub length: u64,
}

/// Writes `inputs` one after the other to the new file `output`. On return the output is on disk; after an error it
/// does not exist. `should_continue` is asked repeatedly while inputs are read; false ends the call.
///
/// # Errors
/// The first error. An input that has changed since it was listed is one.
pub fn concatenate<V: Volume>(
    volume: &V,
    inputs: &[Input],
    rule: impl Into<JoinRule>,
    output: &CStr,
    max_readers: usize,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Concatenated, ConcatenateError> {
    let base = volume.base();
    let file = base.create_file(output, MODE)?;
    let written = match cloned(&base, inputs, &file) {
        Some(clone) => Ok(clone),
        None => joined(volume, inputs, rule.into(), &file, max_readers, should_continue),
    };
    let done = written.and_then(|written| file.sync().map(|()| written).map_err(Into::into));
    if done.is_err() {
        // The first error is the one to report.
        let _ = base.remove(output, RemoveKind::File);
    }
    done
}

/// Clones a single input. `None` if that is impossible, the input is not as it was listed, or it has checksums, which
/// must be verified: the clone's own data are not looked at.
fn cloned<D: Dir>(base: &D, inputs: &[Input], output: &D::File) -> Option<Concatenated> {
    let [input] = inputs else { return None };
    if base.metadata(&checksum_file(&input.path), SymlinkBehavior::Follow, Fields::KIND).is_ok() {
        return None;
    }
    let source = base.open_file(&input.path, Access::Read, SymlinkBehavior::Follow).ok()?;
    let before = Version::of(&source.metadata(Version::FIELDS).ok()?);
    if !input.is(&before) || input.version.size == 0 {
        return None;
    }
    output.clone_from(&source).ok()?;
    let length = output.metadata(Fields::SIZE).ok()?.size;
    let after = Version::of(&source.metadata(Version::FIELDS).ok()?);
    if !before.is_same(&after) || length != before.size {
        output.set_len(0).ok()?;
        return None;
    }
    Some(Concatenated { versions: vec![before], length })
}

fn joined<V: Volume>(
    volume: &V,
    inputs: &[Input],
    rule: JoinRule,
    output: &<V::Dir as Dir>::File,
    max_readers: usize,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Concatenated, ConcatenateError> {
    let mut files = JoinedFiles::new(VolumeSource::new(volume), inputs.to_vec(), rule, max_readers);
    let mut writer = Writer { output, buffer: Vec::new(), length: 0, checksum: Crc32::new() };
    while files.next(should_continue, &mut |bytes| writer.write(bytes))? {}
    let length = writer.finish()?;
    Ok(Concatenated { versions: files.into_versions(), length })
}

struct Writer<'a, F> {
    output: &'a F,
    buffer: Vec<u8>,
    length: u64,
    checksum: Crc32,
}

impl<F: File> Writer<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            return self.put(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let full = std::mem::take(&mut self.buffer);
        self.put(&full)?;
        self.buffer = full;
        self.buffer.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.output.write_all(bytes, At::Offset(self.length))?;
        self.checksum.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Reads the output back and compares checksums. Returns its length.
    fn finish(mut self) -> Result<u64, ConcatenateError> {
        self.flush()?;
        let (mut again, mut at) = (Crc32::new(), 0);
        self.buffer.resize(BUFFER, 0);
        loop {
            let n = self.output.read(&mut self.buffer, At::Offset(at))?;
            if n == 0 {
                break;
            }
            again.update(&self.buffer[..n]);
            at += n as u64;
        }
        if (at, again.value()) != (self.length, self.checksum.value()) {
            return Err(ConcatenateError::Differs);
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    use millstream_posix::PosixVolume;
    use millstream_vfs::{Errno, Timestamp};

    use super::*;
    use crate::error::Cause;
    use crate::join::Header;
    use crate::joined::check;

    fn c_path(path: &Path) -> CString {
        CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
    }

    fn listed(path: &Path) -> Input {
        let metadata = fs::metadata(path).expect("a file");
        let age = metadata.modified().expect("a time").duration_since(UNIX_EPOCH).expect("after 1970");
        Input {
            path: c_path(path),
            version: Version::at(metadata.len(), Timestamp::from_millis(age.as_millis() as i64)),
        }
    }

    fn files(scratch: &Path, contents: &[&[u8]]) -> Vec<Input> {
        let write = |(i, content): (usize, &&[u8])| {
            let path = scratch.join(format!("{i:04}"));
            fs::write(&path, content).expect("a file");
            listed(&path)
        };
        contents.iter().enumerate().map(write).collect()
    }

    fn run(inputs: &[Input], output: &Path) -> Result<Concatenated, ConcatenateError> {
        concatenate(&PosixVolume, inputs, Header::None, &c_path(output), 8, &mut || true)
    }

    #[test]
    fn small_and_large_files_become_one() {
        let scratch = tempfile::tempdir().expect("scratch");
        let large = vec![b'x'; (3 << 20) + 17];
        let mut contents: Vec<&[u8]> = vec![b"one\n", b"", &large, b"two\r", b"\n3"];
        contents.extend([&b"line\n"[..]; 200]);
        let inputs = files(scratch.path(), &contents);
        let output = scratch.path().join("out");
        let done = run(&inputs, &output).expect("written");
        let expected = [&b"one\n"[..], &large, b"\ntwo\r\n\n3\n", &b"line\n".repeat(200)].concat();
        assert!(fs::read(&output).expect("output") == expected);
        assert_eq!((done.length, done.versions.len()), (expected.len() as u64, inputs.len()));
        assert!(done.versions.iter().zip(&inputs).all(|(version, input)| input.is(version)));
    }

    #[test]
    fn one_file_is_copied_as_it_is() {
        let scratch = tempfile::tempdir().expect("scratch");
        for content in [&b"\xff\xfe\0"[..], b"PAR1\0", b"\xef\xbb\xbfx", b""] {
            let inputs = files(scratch.path(), &[content]);
            let output = scratch.path().join("out");
            run(&inputs, &output).expect("written");
            assert_eq!(fs::read(&output).expect("output"), content);
            fs::remove_file(&output).expect("removed");
        }
    }

    #[test]
    fn an_input_that_is_not_as_listed_leaves_nothing() {
        let scratch = tempfile::tempdir().expect("scratch");
        let output = scratch.path().join("out");
        let contents: [&[u8]; 3] = [b"one\n", b"two\n", b"three\n"];
        let mut grown = files(scratch.path(), &contents);
        fs::write(scratch.path().join("0001"), b"two and more\n").expect("written");
        assert_eq!(run(&grown, &output), Err(ConcatenateError::Changed { input: 1 }));
        fs::write(scratch.path().join("0001"), b"t").expect("written");
        assert_eq!(run(&grown, &output), Err(ConcatenateError::Changed { input: 1 }));
        grown[1] = listed(&scratch.path().join("0001"));
        grown[1].version.mtime.sec -= 1;
        assert_eq!(run(&grown, &output), Err(ConcatenateError::Changed { input: 1 }));
        fs::remove_file(scratch.path().join("0002")).expect("removed");
        grown[1].version.mtime.sec += 1;
        let error = run(&grown, &output).expect_err("an input is missing");
        assert_eq!(error.input(), Some(2));
        assert!(matches!(
            error,
            ConcatenateError::Read { cause: Cause::Volume(Error { errno: Errno::NOENT, .. }), .. }
        ));
        assert!(!output.exists());
    }

    #[test]
    fn an_interruption_leaves_nothing() {
        let scratch = tempfile::tempdir().expect("scratch");
        let output = scratch.path().join("out");
        let inputs = files(scratch.path(), &[&b"line\n"[..]; 20]);
        let mut asked = 0;
        let mut should_continue = || {
            asked += 1;
            asked < 10
        };
        let error =
            concatenate(&PosixVolume, &inputs, Header::None, &c_path(&output), 8, &mut should_continue)
                .expect_err("interrupted");
        assert!(matches!(error, ConcatenateError::Read { cause: Cause::Interrupted, .. }));
        assert!(!output.exists());
    }

    #[test]
    fn a_file_of_another_format_leaves_nothing() {
        let scratch = tempfile::tempdir().expect("scratch");
        let output = scratch.path().join("out");
        let error = run(&files(scratch.path(), &[b"one\n", b"PAR1\0"]), &output).expect_err("not lines");
        assert_eq!((error.input(), output.exists()), (Some(1), false));
    }

    #[test]
    fn a_check_finds_what_the_beginnings_say_and_writes_nothing() {
        let scratch = tempfile::tempdir().expect("scratch");
        let large = [&b"head\n"[..], &vec![b'x'; (3 << 20) + 17]].concat();
        let endless = vec![b'y'; (2 << 20) + 5];
        let cases: [(&[&[u8]], Header); 8] = [
            (&[b"one\n", b"", &large, b"two"], Header::None),
            (&[b"one\n", b"PAR1\0"], Header::None),
            (&[&large, b"", b"\0"], Header::None),
            (&[b"head\n1", &large, b"", b"head"], Header::Same),
            (&[b"head\n1", b"other\n2"], Header::Same),
            (&[b"head\n1", b"head\n2", &endless], Header::Same),
            (&[b""], Header::None),
            (&[], Header::None),
        ];
        for (contents, header) in cases {
            let inputs = files(scratch.path(), contents);
            let checked = check(VolumeSource::new(&PosixVolume), &inputs, header, 8, &mut || true);
            assert_eq!(fs::read_dir(scratch.path()).expect("scratch").count(), contents.len());
            let output = scratch.path().join("out");
            let done = concatenate(&PosixVolume, &inputs, header, &c_path(&output), 8, &mut || true);
            assert_eq!(checked, done.map(|_| ()), "{contents:?}");
            for entry in fs::read_dir(scratch.path()).expect("scratch") {
                fs::remove_file(entry.expect("an entry").path()).expect("removed");
            }
        }
    }

    #[test]
    fn a_check_finds_missing_and_changed_files() {
        let scratch = tempfile::tempdir().expect("scratch");
        let checked =
            |inputs: &[Input]| check(VolumeSource::new(&PosixVolume), inputs, Header::None, 8, &mut || true);
        let inputs = files(scratch.path(), &[b"one\n", b"two\n", b"three\n"]);
        assert_eq!(checked(&inputs), Ok(()));
        fs::write(scratch.path().join("0001"), b"two and more\n").expect("written");
        assert_eq!(checked(&inputs), Err(ConcatenateError::Changed { input: 1 }));
        fs::remove_file(scratch.path().join("0001")).expect("removed");
        assert_eq!(checked(&inputs).expect_err("missing").input(), Some(1));
        let inputs = files(scratch.path(), &[b"one\n", b"two\n"]);
        let stopped = check(VolumeSource::new(&PosixVolume), &inputs, Header::None, 8, &mut || false)
            .expect_err("stopped");
        assert!(matches!(stopped, ConcatenateError::Read { cause: Cause::Interrupted, .. }));
    }
}
