//! Writing an object.
//!
//! ```text
//!  write ─► buffers of parts ─► a part is full: sent (many at once)         rename ─► what is left is sent, the upload completed
//!              └ all fits into one part: nothing is sent                       └────► one PUT
//! ```
//!
//! The object's key, its approximate size and the time of its contents are known from the beginning: the first request
//! of an upload in parts states the key and the time, and the size decides how large the parts are.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crc_fast::CrcAlgorithm;
use millstream_s3::{Client, Counts, Refusal};
use millstream_vfs::{Errno, Error, FileKind, Metadata, Operation, Result, Timestamp};

use crate::bucket::{Bucket, headers_of, lock, time_header, time_of};
use crate::memory::Reservation;
use crate::reader::ObjectReader;

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
const CHECKSUM: &str = "millstream-checksum";

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
    /// ID of the upload in parts, once there is one.
    id: Option<Arc<str>>,
    parts: BTreeMap<u64, Part>,
    /// Bytes, counted to the last one.
    length: u64,
    /// The object whose contents it gets.
    copied: Option<Arc<ObjectReader>>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Nothing is written any more. The object is there, or is being made.
    Finished,
    /// Aborted: it will not be there.
    Aborted,
}

#[derive(Debug)]
enum Part {
    Filling(Buffer),
    Sending,
    /// Its ETag.
    Sent(String),
}

/// Bytes of a part. Those that nobody has written are zeros.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many have been written.
    filled: u64,
    _reservation: Reservation,
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

    pub(crate) fn metadata(&self) -> Metadata {
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
            let expected = match self.size.saturating_sub(index * self.part_size) {
                0 => self.part_size,
                rest => rest.min(self.part_size),
            };
            let reservation = self.bucket.memory.reserve(expected as usize);
            state = lock(&self.state);
            let buffer =
                Buffer { bytes: Vec::with_capacity(expected as usize), filled: 0, _reservation: reservation };
            state.parts.entry(index).or_insert(Part::Filling(buffer));
        }
        if state.phase != Phase::Open {
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
        let id = self.upload_id()?;
        let number = u32::try_from(index + 1).map_err(|_| Error::new(Operation::Write, Errno::FBIG))?;
        let client = &self.bucket.client;
        let sent = client.put_part(&self.key, &id, number, &part.bytes, &mut Counts::default());
        let etag = self.bucket.answered(Operation::Write, sent)?;
        lock(&self.state).parts.insert(index, Part::Sent(etag));
        Ok(())
    }

    /// The ID of the upload, which begins with the first part.
    fn upload_id(&self) -> Result<Arc<str>> {
        let mut state = lock(&self.state);
        if let Some(id) = &state.id {
            return Ok(Arc::clone(id));
        }
        if state.phase == Phase::Aborted {
            return Err(Error::new(Operation::Write, Errno::CANCELED));
        }
        let headers: Vec<_> = state.mtime.map(time_header).into_iter().collect();
        let begun = self.bucket.client.begin_upload(&self.key, &headers, &mut Counts::default());
        let id: Arc<str> = self.bucket.answered(Operation::Write, begun)?.into();
        state.id = Some(Arc::clone(&id));
        Ok(id)
    }

    /// Gets the contents of another object from the server, when it is complete.
    ///
    /// # Errors
    /// `EXDEV` if no server can do that, `EFBIG` if it cannot with this object.
    pub(crate) fn copy(&self, source: &Arc<ObjectReader>) -> Result<()> {
        let size = source.metadata().size;
        if !self.bucket.client.shares_server_with(&source.bucket.client) {
            return Err(Error::new(Operation::Clone, Errno::XDEV));
        }
        if size > MOST_COPIED {
            return Err(Error::new(Operation::Clone, Errno::FBIG));
        }
        let mut state = lock(&self.state);
        state.copied = Some(Arc::clone(source));
        state.length = size;
        Ok(())
    }

    /// Makes the object of what was written, once.
    ///
    /// # Errors
    /// `EEXIST` if a directory has the key, and this can be called again when it is gone; `ECANCELED` if it was
    /// aborted, or this was called before. After any other error, the object may be there nevertheless.
    pub(crate) fn finish(&self) -> Result<()> {
        {
            let mut state = lock(&self.state);
            if state.phase != Phase::Open {
                return Err(Error::new(Operation::Write, Errno::CANCELED));
            }
            state.phase = Phase::Finished;
        }
        let made = self.make();
        if let Err(error) = &made {
            let mut state = lock(&self.state);
            if error.errno == Errno::EXIST {
                state.phase = Phase::Open;
            } else {
                let id = state.id.take();
                drop(state);
                self.abort_upload(id);
            }
        }
        made
    }

    fn make(&self) -> Result<()> {
        let (whole, mtime) = {
            let mut state = lock(&self.state);
            (self.whole(&mut state)?, state.mtime)
        };
        match whole {
            Whole::Copy(source) => {
                let named = Client::copy_source(&source.bucket.name, &source.key);
                let headers = headers_of(&source.object, mtime);
                let copied =
                    self.bucket.copy(Operation::Write, &self.key, &named, &source.version.tag, &headers);
                copied.inspect_err(|_| lock(&self.state).copied = Some(source))?;
            }
            Whole::Content(content) => {
                let bytes = content.as_ref().map_or(&[][..], |part| &part.bytes);
                let time = mtime.map(time_header);
                let checksum = (format!("x-amz-meta-{CHECKSUM}"), checksum(bytes));
                let headers: Vec<_> = time.into_iter().chain([checksum]).collect();
                let put = self.bucket.put(Operation::Write, &self.key, bytes, &headers);
                if let (Err(_), Some(content)) = (&put, content) {
                    lock(&self.state).parts.insert(0, Part::Filling(content));
                }
                put?;
            }
            Whole::Parts => self.complete(mtime)?,
        }
        self.bucket.mark_visible(&self.key);
        Ok(())
    }

    /// How the object is made.
    fn whole(&self, state: &mut State) -> Result<Whole> {
        if let Some(source) = state.copied.take() {
            return Ok(Whole::Copy(source));
        }
        if state.id.is_some() || state.length > self.part_size {
            return Ok(Whole::Parts);
        }
        match state.parts.remove(&0) {
            Some(Part::Filling(buffer)) => Ok(Whole::Content(Some(buffer))),
            None if state.length == 0 => Ok(Whole::Content(None)),
            // It could not be sent, which was reported.
            _ => Err(Error::new(Operation::Write, Errno::IO)),
        }
    }

    fn complete(&self, mtime: Option<Timestamp>) -> Result<()> {
        let failed = || Error::new(Operation::Write, Errno::IO);
        let id = self.upload_id()?;
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
        let etags: Vec<String> = {
            let state = lock(&self.state);
            let sent = |part: &Part| if let Part::Sent(etag) = part { Some(etag.clone()) } else { None };
            state.parts.values().map_while(sent).collect()
        };
        if etags.len() as u64 != count {
            return Err(failed());
        }
        let client = &self.bucket.client;
        let done = client.complete_upload(&self.key, &id, &etags, &mut Counts::default());
        if let Err(Refusal::Answer { code, .. }) = &done
            && code == "NoSuchUpload"
            && let Some(object) = self.bucket.object(Operation::Write, &self.key)?
            && object.version.size == length
            && mtime.is_some_and(|mtime| mtime == time_of(&object))
        {
            // An attempt has succeeded whose answer was lost.
            return Ok(());
        }
        self.bucket.answered(Operation::Write, done)
    }

    /// Aborts the upload, unless it is being made an object.
    pub(crate) fn abort(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Open {
            state.phase = Phase::Aborted;
            state.parts.clear();
            self.abort_upload(state.id.take());
        }
    }

    /// Removes the parts of an upload.
    fn abort_upload(&self, id: Option<Arc<str>>) {
        if let Some(id) = id {
            // If that fails, the bucket's rule for incomplete uploads removes them.
            let _ = self.bucket.client.abort_upload(&self.key, &id, &mut Counts::default());
        }
    }
}

/// What an object is made of.
enum Whole {
    /// Another object.
    Copy(Arc<ObjectReader>),
    /// These bytes; none for an empty one.
    Content(Option<Buffer>),
    /// Parts that have been sent, and what is left.
    Parts,
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.abort();
    }
}

/// A CRC-32C with its name in front, as psync on Spark writes it.
fn checksum(bytes: &[u8]) -> String {
    format!("crc32c:{:08x}", crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use millstream_s3::{Address, CredentialSource, Credentials, Policy, Settings};
    use millstream_wire::lines;

    use super::*;
    use crate::bucket::Reads;
    use crate::memory::MemoryBudget;

    struct Nobody;

    impl CredentialSource for Nobody {
        fn credentials(&self) -> Option<Credentials> {
            Some(Credentials::Anonymous)
        }
    }

    /// A bucket of which every request fails at once, with another error than `ECANCELED`.
    fn upload(size: u64) -> Arc<Upload> {
        let settings = Settings {
            address: Address::new("http://127.0.0.1:9/b/").expect("an address"),
            region: "x".into(),
            user_agent: "test".into(),
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(1),
            retries: 0,
            throttle_retries: 0,
            connections: 1,
            certificates: Vec::new(),
            policy: Policy::WITH_FALLBACK,
        };
        let client = Client::new(settings, Box::new(Nobody));
        let bucket =
            Bucket::new("b", client, Reads::AtOnce, MemoryBudget::new(64 << 20), Arc::new(|_: &str| {}));
        Upload::new(&Arc::new(bucket), b"key".to_vec(), size, None, 0o600).expect("small enough")
    }

    #[test]
    fn what_was_aborted_makes_no_object() {
        for content in [&b""[..], b"content"] {
            let upload = upload(7);
            upload.write_all(content, 0).expect("it is in memory");
            upload.abort();
            assert_eq!(upload.finish().map_err(|error| error.errno), Err(Errno::CANCELED));
            assert_eq!(upload.write_all(b"more", 0).map_err(|error| error.errno), Err(Errno::CANCELED));
        }
    }

    #[test]
    fn an_object_is_made_once_even_if_that_fails() {
        let upload = upload(7);
        upload.write_all(b"content", 0).expect("it is in memory");
        assert_eq!(upload.finish().map_err(|error| error.errno), Err(Errno::IO), "nobody answers");
        assert_eq!(upload.finish().map_err(|error| error.errno), Err(Errno::CANCELED));
    }

    #[test]
    fn a_part_that_was_not_sent_makes_no_object() {
        let upload = upload(PART);
        let sent = upload.write_all(&vec![1; PART as usize], 0);
        assert_eq!(sent.map_err(|error| error.errno), Err(Errno::IO), "nobody answers");
        assert_eq!(upload.finish().map_err(|error| error.errno), Err(Errno::IO));
    }

    #[test]
    fn checksums_are_those_of_the_shared_vector() {
        for line in lines("object-metadata.tsv") {
            match *line.split('\t').collect::<Vec<_>>() {
                ["key", "checksum", name] => assert_eq!(CHECKSUM, name),
                ["checksum", content, expected] => assert_eq!(checksum(content.as_bytes()), expected),
                // Objects of one part have one.
                ["largest", "psync", bytes] => assert_eq!(PART.to_string(), bytes),
                ["key" | "time" | "read" | "other" | "largest", ..] => {}
                _ => panic!("{line}"),
            }
        }
    }

    #[test]
    fn parts_are_large_enough_and_objects_not_too_large() {
        for (size, part_size) in
            [(0, PART), (PART * PLANNED_PARTS, PART), (PART * PLANNED_PARTS + 1, 2 * PART)]
        {
            assert_eq!(upload(size).part_size, part_size);
        }
        assert_eq!(upload(LARGEST_PART * PLANNED_PARTS).part_size, LARGEST_PART);
        let bucket = Arc::clone(&upload(0).bucket);
        let larger = Upload::new(&bucket, b"key".to_vec(), LARGEST_PART * PLANNED_PARTS + 1, None, 0o600);
        assert_eq!(larger.map(|_| ()).map_err(|error| error.errno), Err(Errno::FBIG));
    }
}
