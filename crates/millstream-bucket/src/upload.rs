//! Writing an object.
//!
//! ```text
//!  write ─► buffers of parts ─► a part is full: sent (many at once)         rename ─► what is left is sent, the upload completed
//!              └ all fits into one part: nothing is sent                       └────► one PUT
//! ```
//!
//! The name of the object is known from the beginning, and so are its size, about, and the time of its contents, because the
//! first request of an upload in parts states them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crc_fast::CrcAlgorithm;
use millstream_s3::{Client, Counts};
use millstream_vfs::{Errno, Error, Fields, FileKind, Metadata, Operation, Result, Timestamp};

use crate::bucket::{Bucket, lock, time_header};
use crate::reader::ObjectReader;
use crate::room::Taken;

/// Smallest size of a part. S3 wants 5 MiB.
const PART: u64 = 8 << 20;
/// Largest one: the parts in which large files are copied are as large, and each of those is written in order.
const LARGEST_PART: u64 = 64 << 20;
const MOST_PARTS: u64 = 10_000;
/// Room for growth while a file is copied.
const PLANNED_PARTS: u64 = 9_000;
/// Largest object that the server copies at once.
const MOST_COPIED: u64 = 5 << 30;
/// User metadata: the checksum of the contents.
const CHECKSUM: &str = "x-amz-meta-millstream-checksum";

/// What is being written to a bucket, by the keys of first names.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<HashMap<Vec<u8>, Arc<Upload>>>);

impl Staging {
    pub(crate) fn add(&self, key: Vec<u8>, upload: Arc<Upload>) {
        lock(&self.0).insert(key, upload);
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Arc<Upload>> {
        lock(&self.0).get(key).cloned()
    }

    pub(crate) fn remove(&self, key: &[u8]) -> Option<Arc<Upload>> {
        lock(&self.0).remove(key)
    }
}

/// An object that is being written.
#[derive(Debug)]
pub struct Upload {
    bucket: Arc<Bucket>,
    key: Vec<u8>,
    /// About how many bytes it will have.
    size: u64,
    part_size: u64,
    mode: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    mtime: Option<Timestamp>,
    /// Name of the upload in parts, once there is one.
    name: Option<Arc<str>>,
    parts: BTreeMap<u64, Part>,
    /// Bytes, counted to the last one.
    length: u64,
    /// The object whose contents it gets.
    copied: Option<Arc<ObjectReader>>,
    is_over: bool,
}

#[derive(Debug)]
enum Part {
    Filling(Buffer),
    Sending,
    /// Its version.
    Sent(String),
}

/// Bytes of a part. Those that nobody has written are zeros.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many have been written.
    filled: u64,
    _room: Taken,
}

impl Upload {
    /// An object of about `size` bytes.
    ///
    /// # Errors
    /// `EFBIG` if it is larger than an object can be that is written here.
    pub(crate) fn new(
        bucket: &Arc<Bucket>,
        key: Vec<u8>,
        size: u64,
        mtime: Option<Timestamp>,
        mode: u32,
    ) -> Result<Arc<Self>> {
        let mut part_size = PART;
        while size.div_ceil(part_size) > PLANNED_PARTS {
            part_size *= 2;
        }
        if part_size > LARGEST_PART {
            return Err(Error::new(Operation::CreateFile, Errno::FBIG));
        }
        let state = Mutex::new(State { mtime, ..State::default() });
        Ok(Arc::new(Upload { bucket: Arc::clone(bucket), key, size, part_size, mode, state }))
    }

    pub(crate) fn metadata(&self, _: Fields) -> Metadata {
        let length = lock(&self.state).length;
        let metadata = self.bucket.metadata(&self.key, FileKind::File, length, Some(Timestamp::default()));
        Metadata { mode: 0o100_000 | self.mode & 0o777, ..metadata }
    }

    /// Whether it becomes the object with this key.
    pub(crate) fn is_for(&self, key: &[u8]) -> bool {
        self.key == key
    }

    pub(crate) fn set_time(&self, mtime: Timestamp) {
        lock(&self.state).mtime = Some(mtime);
    }

    /// Reads what has not been sent.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let state = lock(&self.state);
        let (index, at) = (offset / self.part_size, (offset % self.part_size) as usize);
        match state.parts.get(&index) {
            _ if offset >= state.length => Ok(0),
            Some(Part::Filling(part)) => {
                let rest = part.bytes.get(at..).unwrap_or_default();
                let read = rest.len().min(buffer.len());
                buffer[..read].copy_from_slice(&rest[..read]);
                Ok(read)
            }
            _ => Err(Error::new(Operation::Read, Errno::OPNOTSUPP)),
        }
    }

    pub(crate) fn write_all(&self, mut bytes: &[u8], mut offset: u64) -> Result<()> {
        while !bytes.is_empty() {
            let (index, at) = (offset / self.part_size, offset % self.part_size);
            if index >= MOST_PARTS {
                return Err(Error::new(Operation::Write, Errno::FBIG));
            }
            let here = usize::try_from(self.part_size - at).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(here);
            if let Some(full) = self.fill(index, at as usize, now)? {
                self.send(index, full)?;
            }
            (bytes, offset) = (later, offset + here as u64);
        }
        Ok(())
    }

    /// Writes into a part; the part, if it is full.
    fn fill(&self, index: u64, at: usize, bytes: &[u8]) -> Result<Option<Buffer>> {
        let failed = |errno| Error::new(Operation::Write, errno);
        let mut state = lock(&self.state);
        if !state.parts.contains_key(&index) {
            // Others may write meanwhile.
            drop(state);
            let expected = self.size.saturating_sub(index * self.part_size).min(self.part_size);
            let room = self.bucket.room.take(expected as usize);
            state = lock(&self.state);
            let buffer = Buffer { bytes: Vec::with_capacity(expected as usize), filled: 0, _room: room };
            state.parts.entry(index).or_insert(Part::Filling(buffer));
        }
        if state.is_over {
            return Err(failed(Errno::CANCELED));
        }
        state.length = state.length.max(index * self.part_size + (at + bytes.len()) as u64);
        let Some(part) = state.parts.get_mut(&index) else { return Err(failed(Errno::IO)) };
        // What has been sent cannot be changed any more.
        let Part::Filling(buffer) = part else { return Err(failed(Errno::IO)) };
        if buffer.bytes.len() == at {
            buffer.bytes.extend_from_slice(bytes);
        } else {
            let end = at + bytes.len();
            buffer.bytes.resize(buffer.bytes.len().max(end), 0);
            buffer.bytes[at..end].copy_from_slice(bytes);
        }
        buffer.filled += bytes.len() as u64;
        if buffer.filled < self.part_size {
            return Ok(None);
        }
        match std::mem::replace(part, Part::Sending) {
            Part::Filling(full) => Ok(Some(full)),
            _ => Ok(None),
        }
    }

    /// Sends a part.
    fn send(&self, index: u64, part: Buffer) -> Result<()> {
        let name = self.name()?;
        let number = u32::try_from(index + 1).map_err(|_| Error::new(Operation::Write, Errno::FBIG))?;
        let client = &self.bucket.client;
        let sent = client.put_part(&self.key, &name, number, &part.bytes, &mut Counts::default());
        let version = self.bucket.answered(Operation::Write, sent)?;
        lock(&self.state).parts.insert(index, Part::Sent(version));
        Ok(())
    }

    /// The name of the upload, which begins with the first part.
    fn name(&self) -> Result<Arc<str>> {
        let mut state = lock(&self.state);
        if let Some(name) = &state.name {
            return Ok(Arc::clone(name));
        }
        if state.is_over {
            return Err(Error::new(Operation::Write, Errno::CANCELED));
        }
        let headers: Vec<_> = state.mtime.map(time_header).into_iter().collect();
        let begun = self.bucket.client.begin_upload(&self.key, &headers, &mut Counts::default());
        let name: Arc<str> = self.bucket.answered(Operation::Write, begun)?.into();
        state.name = Some(Arc::clone(&name));
        Ok(name)
    }

    /// Gets the contents of another object from the server, when it is complete.
    ///
    /// # Errors
    /// `EXDEV` if the server cannot do that.
    pub(crate) fn copy(&self, source: &Arc<ObjectReader>) -> Result<()> {
        let size = source.metadata(Fields::SIZE).size;
        let can_copy = size <= MOST_COPIED && self.bucket.client.shares_server_with(&source.bucket.client);
        if !can_copy {
            return Err(Error::new(Operation::Clone, Errno::XDEV));
        }
        let mut state = lock(&self.state);
        state.copied = Some(Arc::clone(source));
        state.length = size;
        Ok(())
    }

    /// Makes the object of what was written.
    pub(crate) fn finish(&self) -> Result<()> {
        let (copied, mtime) = {
            let state = lock(&self.state);
            (state.copied.clone(), state.mtime)
        };
        let mut headers: Vec<_> = mtime.map(time_header).into_iter().collect();
        if let Some(source) = copied {
            let named = Client::copy_source(&source.bucket.name, &source.key);
            self.bucket.copy(Operation::Write, &self.key, &named, &source.version, &headers)?;
        } else if let Some(content) = self.only_part() {
            let bytes = content.as_ref().map_or(&[][..], |part| &part.bytes);
            headers.push((CHECKSUM.to_owned(), checksum(bytes)));
            self.bucket.put(Operation::Write, &self.key, bytes, &headers)?;
        } else {
            self.complete()?;
        }
        self.bucket.shows(&self.key);
        lock(&self.state).is_over = true;
        Ok(())
    }

    /// All that was written, if nothing of it has been sent and it fits into one request; no buffer if that is nothing.
    fn only_part(&self) -> Option<Option<Buffer>> {
        let mut state = lock(&self.state);
        if state.name.is_some() || state.length > self.part_size {
            return None;
        }
        match state.parts.remove(&0) {
            Some(Part::Filling(buffer)) => Some(Some(buffer)),
            Some(other) => {
                state.parts.insert(0, other);
                None
            }
            None => Some(None),
        }
    }

    fn complete(&self) -> Result<()> {
        let failed = || Error::new(Operation::Write, Errno::IO);
        let name = self.name()?;
        let length = lock(&self.state).length;
        let count = length.div_ceil(self.part_size);
        for index in 0..count {
            let part = {
                let mut state = lock(&self.state);
                match state.parts.remove(&index) {
                    Some(Part::Filling(buffer)) => {
                        state.parts.insert(index, Part::Sending);
                        buffer
                    }
                    Some(sent @ Part::Sent(_)) => {
                        state.parts.insert(index, sent);
                        continue;
                    }
                    // One could not be sent, or was never written, which was reported.
                    Some(Part::Sending) | None => return Err(failed()),
                }
            };
            let is_whole = part.bytes.len() as u64 == self.part_size.min(length - index * self.part_size);
            if !is_whole || part.filled != part.bytes.len() as u64 {
                return Err(failed());
            }
            self.send(index, part)?;
        }
        let versions: Vec<String> = {
            let state = lock(&self.state);
            let sent =
                |part: &Part| if let Part::Sent(version) = part { Some(version.clone()) } else { None };
            state.parts.values().map_while(sent).collect()
        };
        if versions.len() as u64 != count {
            return Err(failed());
        }
        let client = &self.bucket.client;
        let done = client.complete_upload(&self.key, &name, &versions, &mut Counts::default());
        self.bucket.answered(Operation::Write, done)
    }

    /// Gives up what has been written.
    pub(crate) fn give_up(&self) {
        let name = {
            let mut state = lock(&self.state);
            state.parts.clear();
            if std::mem::replace(&mut state.is_over, true) { None } else { state.name.clone() }
        };
        if let Some(name) = name {
            // If that fails, the bucket's rule for incomplete uploads removes it.
            let _ = self.bucket.client.abort_upload(&self.key, &name, &mut Counts::default());
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// A CRC-32C with its name in front, as psync on Spark writes it.
fn checksum(bytes: &[u8]) -> String {
    format!("crc32c:{:08x}", crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32)
}
