//! From text to a compressed file: one thread per file decodes and writes, those of the pool encode.
//!
//! The blocks of all files together are bounded. A file that gets no more blocks writes those that it has, which frees
//! them.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use millstream_codec::{BLOCK, Crc32, Encoded, Encoder, Sizes};
use millstream_vfs::{At, File, Result};

use super::{Cause, cause};

/// Blocks for each encoder: one that is encoded, and one that is read or written.
const BLOCKS: usize = 2;

/// A block to encode.
pub(super) struct Job {
    text: Vec<u8>,
    encoder: Encoder,
    done: Sender<Encoded>,
}

/// The queue from which encoders take their work.
pub(super) type Jobs = Mutex<Receiver<Job>>;

/// The queue to which files add work for encoders.
pub(super) struct Pool {
    jobs: Mutex<Option<Sender<Job>>>,
    free: Mutex<usize>,
    freed: Condvar,
}

/// Permission to hold a block.
struct Permit<'a>(&'a Pool);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

/// Encodes blocks until the pool is closed.
pub(super) fn encode(jobs: &Jobs) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { text, encoder, done }) = job else { return };
        // Nobody waits for it if its file has failed.
        let _ = done.send(encoder.encode(&text));
    }
}

impl Pool {
    /// The pool for this many encoders, and the work, which only they may hold on to.
    pub(super) fn new(threads: usize) -> (Self, Arc<Jobs>) {
        let (jobs, queue) = mpsc::channel();
        let free = Mutex::new(BLOCKS * threads);
        let pool = Pool { jobs: Mutex::new(Some(jobs)), free, freed: Condvar::new() };
        (pool, Arc::new(Mutex::new(queue)))
    }

    /// Lets the encoders end once they have no work.
    pub(super) fn close(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_permit(&self) -> Option<Permit<'_>> {
        let mut free = self.free();
        *free = free.checked_sub(1)?;
        Some(Permit(self))
    }

    fn permit(&self) -> Permit<'_> {
        let free = self.freed.wait_while(self.free(), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Permit(self)
    }

    fn begin(&self, text: Vec<u8>, encoder: Encoder) -> Receiver<Encoded> {
        let (done, encoded) = mpsc::channel();
        if let Some(jobs) = &*self.jobs.lock().unwrap_or_else(PoisonError::into_inner) {
            // Without encoders, the block is dropped, and its receiver gets an error.
            let _ = jobs.send(Job { text, encoder, done });
        }
        encoded
    }
}

/// Length and checksum of a text.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) length: u64,
    crc: Crc32,
}

impl Text {
    /// Reads the text of `input`.
    pub(super) fn of(mut input: impl Read) -> io::Result<Text> {
        let (mut text, mut buffer) = (Text::default(), vec![0; 256 << 10]);
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok(text),
                count => text.add(&buffer[..count]),
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.crc.update(bytes);
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.length == other.length && self.crc.value() == other.crc.value()
    }
}

/// Compresses the text of `input` to `file`.
pub(super) fn compress<F: File>(
    pool: &Pool,
    encoder: Encoder,
    mut input: impl Read,
    file: &F,
) -> std::result::Result<Text, Cause> {
    let (mut text, mut waiting, mut output) = (Text::default(), VecDeque::new(), Output::new(file));
    loop {
        let permit = loop {
            match pool.try_permit() {
                Some(permit) => break permit,
                None => match waiting.pop_front() {
                    Some(block) => output.write(block)?,
                    // Other files will write theirs.
                    None => break pool.permit(),
                },
            }
        };
        let block = read_block(&mut input).map_err(cause)?;
        // A file without text has one block without text.
        if block.is_empty() && (text.length > 0 || !waiting.is_empty()) {
            break;
        }
        let is_end = block.is_empty();
        text.add(&block);
        waiting.push_back((pool.begin(block, encoder), permit));
        if is_end {
            break;
        }
    }
    for block in waiting {
        output.write(block)?;
    }
    let end = encoder.end(&output.sizes);
    output.append(&end)?;
    Ok(text)
}

/// The text of a block, or the rest.
fn read_block(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut block = Vec::new();
    input.take(BLOCK as u64).read_to_end(&mut block)?;
    Ok(block)
}

/// A file that is being written.
struct Output<'a, F> {
    file: &'a F,
    offset: u64,
    sizes: Sizes,
}

impl<'a, F: File> Output<'a, F> {
    fn new(file: &'a F) -> Self {
        Output { file, offset: 0, sizes: Sizes::default() }
    }

    /// Waits for a block and appends it.
    ///
    /// # Panics
    /// If an encoder did.
    fn write(&mut self, (block, _permit): (Receiver<Encoded>, Permit<'_>)) -> Result<()> {
        let encoded = block.recv().expect("encoders encode all blocks");
        self.sizes.add(&encoded);
        self.append(&encoded.bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes, At::Offset(self.offset))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use millstream_codec::Form;
    use millstream_posix::PosixVolume;
    use millstream_vfs::{Dir, SymlinkBehavior, Volume};

    use super::*;
    use millstream_text::names::c_string;

    #[test]
    fn nobody_waits_for_encoders_that_have_panicked() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = c_string(&[scratch.path().as_os_str().as_encoded_bytes()]);
        let dir = PosixVolume.base().open_dir(&path, SymlinkBehavior::Follow).expect("a directory");
        let file = dir.create_file(c"a", 0o600).expect("created");
        let (pool, jobs) = Pool::new(1);
        let encoder = Encoder::new(Form::Bgzf, None);
        let _waiting = pool.begin(b"text".to_vec(), encoder);
        drop(jobs);
        let compressed = AssertUnwindSafe(|| compress(&pool, encoder, &b"text"[..], &file));
        assert!(catch_unwind(compressed).is_err());
    }
}
