//! Output streams: standard output and the files of `-fprint` and related actions.
//!
//! A stream is a buffer under a lock, flushed when it is large. Workers hand over whole pieces, so the output of
//! different workers never mixes within a piece.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use millstream_system::process::check_as_on_close;
use rustix::io::Errno;

use super::expression::StreamId;

/// Bytes that a stream buffers before it writes them.
const STREAM_BUFFER: usize = 64 << 10;

/// All outputs of an expression.
#[derive(Debug)]
pub(super) struct Streams {
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    /// As it appears in messages; empty for standard output.
    name: Vec<u8>,
    target: Target,
    /// Device and inode number of a file, to open it once only.
    identity: Option<(u64, u64)>,
    device: StreamDevice,
    buffer: Mutex<Buffer>,
}

#[derive(Debug)]
enum Target {
    Stdout,
    Stderr,
    File(File),
}

/// The target of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamDevice {
    /// A terminal: output is written at once, and names are shown without control characters.
    Terminal,
    /// Anything else.
    Other,
}

/// An output that could not be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure<'a> {
    /// As it appears in messages; empty for standard output.
    pub name: &'a [u8],
    pub when: FailedAt,
    pub errno: Errno,
}

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailedAt {
    Write,
    Close,
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    failure: Option<Errno>,
}

impl Default for Streams {
    fn default() -> Self {
        Streams { streams: vec![Stream::new(Vec::new(), Target::Stdout, None, device_of(io::stdout()))] }
    }
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn device_of(output: impl AsFd) -> StreamDevice {
    if rustix::termios::isatty(output) { StreamDevice::Terminal } else { StreamDevice::Other }
}

impl Streams {
    /// Creates or truncates a file, unless it is already one of the streams.
    pub fn open(&mut self, path: &[u8]) -> Result<StreamId, Errno> {
        use std::os::unix::ffi::OsStrExt;
        match path {
            b"/dev/stdout" => return Ok(StreamId::STDOUT),
            b"/dev/stderr" => return Ok(self.stderr()),
            _ => {}
        }
        let failed = |error: io::Error| errno_of(&error);
        let file = File::create(std::ffi::OsStr::from_bytes(path)).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let identity = Some((metadata.dev(), metadata.ino()));
        if let Some(known) = self.streams.iter().position(|stream| stream.identity == identity) {
            return Ok(StreamId(known));
        }
        let device = device_of(&file);
        Ok(self.add(Stream::new(path.to_vec(), Target::File(file), identity, device)))
    }

    fn stderr(&mut self) -> StreamId {
        let known = self.streams.iter().position(|stream| matches!(stream.target, Target::Stderr));
        match known {
            Some(known) => StreamId(known),
            None => {
                let stderr =
                    Stream::new(b"/dev/stderr".to_vec(), Target::Stderr, None, device_of(io::stderr()));
                self.add(stderr)
            }
        }
    }

    fn add(&mut self, stream: Stream) -> StreamId {
        self.streams.push(stream);
        StreamId(self.streams.len() - 1)
    }

    /// The target of the stream.
    pub fn device(&self, stream: StreamId) -> StreamDevice {
        self.streams[stream.0].device
    }

    /// Adds to a stream.
    pub fn append(&self, stream: StreamId, bytes: &[u8]) {
        self.streams[stream.0].append(bytes);
    }

    /// Flushes all streams.
    pub fn flush(&self) {
        for stream in &self.streams {
            stream.write_out(&mut stream.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Writes the rest, and returns the streams that could not be written.
    pub fn finish(&self) -> Vec<Failure<'_>> {
        self.flush();
        self.streams.iter().filter_map(Stream::failure).collect()
    }
}

impl Stream {
    fn new(name: Vec<u8>, target: Target, identity: Option<(u64, u64)>, device: StreamDevice) -> Self {
        Stream { name, target, identity, device, buffer: Mutex::default() }
    }

    fn append(&self, bytes: &[u8]) {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.bytes.extend_from_slice(bytes);
        if buffer.bytes.len() >= STREAM_BUFFER || self.device == StreamDevice::Terminal {
            self.write_out(&mut buffer);
        }
    }

    fn failure(&self) -> Option<Failure<'_>> {
        let written = self.buffer.lock().unwrap_or_else(PoisonError::into_inner).failure;
        let (when, errno) = match written {
            Some(errno) => (FailedAt::Write, errno),
            None => (FailedAt::Close, self.check_as_on_close()?),
        };
        Some(Failure { name: &self.name, when, errno })
    }

    fn check_as_on_close(&self) -> Option<Errno> {
        let checked = match &self.target {
            Target::Stdout => check_as_on_close(io::stdout()),
            Target::Stderr => Ok(()),
            Target::File(file) => check_as_on_close(file),
        };
        checked.err().map(|error| errno_of(&error))
    }

    fn write_out(&self, buffer: &mut Buffer) {
        if buffer.failure.is_none() && !buffer.bytes.is_empty() {
            let written = match &self.target {
                Target::Stdout => write_all(io::stdout().as_fd(), &buffer.bytes),
                Target::Stderr => io::stderr().write_all(&buffer.bytes),
                Target::File(file) => (&*file).write_all(&buffer.bytes),
            };
            buffer.failure = written.err().map(|error| errno_of(&error));
        }
        buffer.bytes.clear();
    }
}

/// Bypasses the standard library's line buffer for standard output.
fn write_all(fd: std::os::fd::BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(fd, bytes))?;
        bytes = &bytes[written..];
    }
    Ok(())
}
