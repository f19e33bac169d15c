//! A bucket: its client, what is being written to it, and its errors as those of a volume.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_s3::{Client, Counts, Item, Object, Page, PageRequest, Refusal};
use millstream_version::Tag;
use millstream_vfs::{Errno, Error, Fields, FileKind, Metadata, Operation, Result, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::MemoryBudget;

/// Objects of listings that are remembered until their turn comes; what is beyond is asked for one by one.
const REMEMBERED: usize = 1 << 16;
/// User metadata: the time of the contents, in seconds since 1970. psync on Spark writes and reads the same
/// (`ObjectTree.scala`); `testdata/object-metadata.tsv` has examples for both.
const TIME: &str = "millstream-mtime";
/// The numbers of devices of buckets have this bit, which those of the kernel do not.
const BUCKETS: u64 = 1 << 63;

/// Takes a message about a bucket.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Whether objects that are opened are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// They are, so that the first request asks for their contents.
    AtOnce,
    /// Most are not, because the server copies them.
    Rarely,
}

/// A bucket.
pub(crate) struct Bucket {
    pub(crate) client: Client,
    pub(crate) reads: Reads,
    pub(crate) name: String,
    device: u64,
    /// Directories that were made, and that no object shows yet: their keys, without a slash.
    made: Mutex<HashSet<Vec<u8>>>,
    /// How many objects of listings are remembered.
    remembered: AtomicUsize,
    pub(crate) memory: Arc<MemoryBudget>,
    tell: Tell,
    told: Mutex<HashSet<String>>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Bucket {
    pub(crate) fn new(
        name: &str,
        client: Client,
        reads: Reads,
        memory: Arc<MemoryBudget>,
        tell: Tell,
    ) -> Self {
        Bucket {
            client,
            reads,
            name: name.to_owned(),
            device: xxh3_64(name.as_bytes()) | BUCKETS,
            made: Mutex::default(),
            remembered: AtomicUsize::new(0),
            memory,
            tell,
            told: Mutex::default(),
        }
    }

    /// The result of a request; what the server says about a failure is told once.
    pub(crate) fn answered<T>(
        &self,
        operation: Operation,
        result: std::result::Result<T, Refusal>,
    ) -> Result<T> {
        result.map_err(|refusal| match errno_of(&refusal) {
            errno @ (Errno::NOENT | Errno::STALE | Errno::EXIST) => Error::new(operation, errno),
            errno => self.reported(operation, errno, &format!("{refusal}{}", advice(&refusal))),
        })
    }

    pub(crate) fn page(&self, operation: Operation, asked: &PageRequest<'_>) -> Result<Page> {
        let answer = self.client.page(asked, &mut Counts::default());
        self.answered(operation, answer).map_err(|error| match error.errno {
            // A bucket has a listing. What says otherwise is another server, and no proof that entries are missing.
            Errno::NOENT => self.reported(
                operation,
                Errno::NXIO,
                "this endpoint is not S3: it answered 404 to a list request",
            ),
            _ => error,
        })
    }

    /// Reports something about the bucket, once; the error for it.
    pub(crate) fn reported(&self, operation: Operation, errno: Errno, text: &str) -> Error {
        let message = format!("s3://{}: {text}", self.name);
        if lock(&self.told).insert(message.clone()) {
            (self.tell)(&message);
        }
        Error::new(operation, errno)
    }

    /// An object, if there is one.
    pub(crate) fn object(&self, operation: Operation, key: &[u8]) -> Result<Option<Object>> {
        let answer = self.client.head(key, &mut Counts::default());
        if let Err(Refusal::Answer { status: 400..=403, .. }) = answer {
            // The answer to a HEAD does not say why, but that to a listing does, if that is refused, too.
            self.page(operation, &PageRequest { prefix: key, is_probe: true, ..Default::default() })?;
        }
        match self.answered(operation, answer) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.errno == Errno::NOENT => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a directory, by its key without a slash; the empty one is the bucket.
    pub(crate) fn is_directory(&self, operation: Operation, key: &[u8]) -> Result<bool> {
        if lock(&self.made).contains(key) {
            return Ok(true);
        }
        let prefix = if key.is_empty() { Vec::new() } else { [key, b"/"].concat() };
        let page =
            self.page(operation, &PageRequest { prefix: &prefix, is_probe: true, ..Default::default() })?;
        Ok(key.is_empty() || !page.items.is_empty() || !page.prefixes.is_empty())
    }

    /// Writes an object by one request.
    pub(crate) fn put(
        &self,
        operation: Operation,
        key: &[u8],
        content: &[u8],
        headers: &[(String, String)],
    ) -> Result<()> {
        self.answered(operation, self.client.put(key, content, headers, &mut Counts::default()))?;
        self.mark_visible(key);
        Ok(())
    }

    /// Makes an object of another one, by the server.
    pub(crate) fn copy(
        &self,
        operation: Operation,
        key: &[u8],
        source: &str,
        tag: &Tag,
        headers: &[(String, String)],
    ) -> Result<()> {
        let copied = self.client.copy(key, source, tag, headers, &mut Counts::default());
        self.answered(operation, copied)
    }

    /// Gives an object another time; its other metadata stays.
    pub(crate) fn set_time(&self, key: &[u8], object: &Object, time: Timestamp) -> Result<()> {
        let headers = headers_of(object, Some(time));
        let source = Client::copy_source(&self.name, key);
        self.copy(Operation::SetTimes, key, &source, &object.version.tag, &headers)
    }

    /// Notes that an object has been written, which makes the directories visible that it is in.
    pub(crate) fn mark_visible(&self, key: &[u8]) {
        let mut made = lock(&self.made);
        if made.is_empty() {
            return;
        }
        for (at, _) in key.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            made.remove(&key[..at]);
        }
    }

    /// Makes a directory, which shows when something is in it, or when it is completed.
    pub(crate) fn make_directory(&self, key: Vec<u8>) {
        lock(&self.made).insert(key);
    }

    /// Makes a directory visible that was made, if nothing in it does.
    pub(crate) fn complete_directory(&self, key: &[u8]) -> Result<()> {
        let is_hidden = lock(&self.made).contains(key);
        if is_hidden { self.put_marker(Operation::CreateDir, key) } else { Ok(()) }
    }

    fn put_marker(&self, operation: Operation, key: &[u8]) -> Result<()> {
        self.put(operation, &[key, b"/"].concat(), b"", &[])
    }

    /// Removes an object.
    pub(crate) fn remove_object(&self, key: &[u8]) -> Result<()> {
        self.answered(Operation::Remove, self.client.delete(key, &mut Counts::default()))?;
        self.keep_directory_of(key)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&self, key: &[u8]) -> Result<()> {
        let prefix = [key, b"/"].concat();
        let asked = PageRequest { prefix: &prefix, delimiter: b"/", ..Default::default() };
        let page = self.page(Operation::Remove, &asked)?;
        // A marker with contents is data that somebody has put there.
        let is_marker = |item: &Item| item.key.as_bytes() == prefix && item.version.size == 0;
        let has_more = !page.prefixes.is_empty() || !page.items.iter().all(is_marker);
        if has_more || page.next.is_some() {
            return Err(Error::new(Operation::Remove, Errno::NOTEMPTY));
        }
        lock(&self.made).remove(key);
        if !page.items.is_empty() {
            let deleted = self.client.delete(&prefix, &mut Counts::default());
            self.answered(Operation::Remove, deleted)?;
        }
        self.keep_directory_of(key)
    }

    /// Marks the directory that something was removed from, if nothing shows it any more.
    fn keep_directory_of(&self, key: &[u8]) -> Result<()> {
        let Some(end) = key.iter().rposition(|&b| b == b'/') else { return Ok(()) };
        let directory = &key[..end];
        if self.is_directory(Operation::Remove, directory)? {
            return Ok(());
        }
        self.put_marker(Operation::Remove, directory)
    }

    /// Whether one more object of a listing may be remembered.
    pub(crate) fn remember(&self) -> bool {
        let is_within = self.remembered.fetch_add(1, Ordering::Relaxed) < REMEMBERED;
        if !is_within {
            self.forget(1);
        }
        is_within
    }

    pub(crate) fn forget(&self, count: usize) {
        self.remembered.fetch_sub(count, Ordering::Relaxed);
    }

    /// Device and inode number of what has a key, without a slash at its end.
    pub(crate) fn identity(&self, key: &[u8]) -> (u64, u64) {
        (self.device, xxh3_64(key))
    }

    /// The metadata of a file or directory; without `mtime`, that of a file has no times.
    pub(crate) fn metadata(
        &self,
        key: &[u8],
        kind: FileKind,
        size: u64,
        mtime: Option<Timestamp>,
    ) -> Metadata {
        let (dev, ino) = self.identity(key);
        let time = mtime.unwrap_or_default();
        let times = Fields::ATIME | Fields::MTIME | Fields::CTIME;
        let is_timed = mtime.is_some() || kind == FileKind::Directory;
        Metadata {
            fields: if is_timed { Fields::STAT } else { Fields::STAT - times },
            mode: if kind == FileKind::Directory { 0o040_777 } else { 0o100_666 },
            nlink: 1,
            dev,
            ino,
            size,
            blocks: size.div_ceil(512),
            block_size: 1 << 20,
            atime: time,
            mtime: time,
            ctime: time,
            ..Metadata::default()
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time of the contents of an object: that in its metadata, otherwise its own.
pub(crate) fn time_of(object: &Object) -> Timestamp {
    let stated = object.metadata.iter().find(|(name, _)| name.eq_ignore_ascii_case(TIME));
    let stated = stated.and_then(|(_, text)| decoded(text));
    stated.unwrap_or(object.version.mtime)
}

/// The header that states the time of an object's contents.
pub(crate) fn time_header(time: Timestamp) -> (String, String) {
    (format!("x-amz-meta-{TIME}"), encoded(time))
}

/// The headers of a copy of an object, which has this time.
pub(crate) fn headers_of(object: &Object, time: Option<Timestamp>) -> Vec<(String, String)> {
    let metadata = object.metadata.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(TIME));
    let metadata = metadata.map(|(name, value)| (format!("x-amz-meta-{name}"), value.clone()));
    object.headers.iter().cloned().chain(metadata).chain(time.map(time_header)).collect()
}

/// Seconds, with as many digits as there are.
fn encoded(time: Timestamp) -> String {
    let nanos = i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec);
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    let digits = format!("{rest:09}");
    match digits.trim_end_matches('0') {
        "" => format!("{sign}{seconds}"),
        digits => format!("{sign}{seconds}.{digits}"),
    }
}

/// None if it is no time, or one with more digits than a nanosecond has.
fn decoded(text: &str) -> Option<Timestamp> {
    let (is_before, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (seconds, digits) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(digits) || digits.len() > 9 {
        return None;
    }
    let seconds: i64 = seconds.parse().ok()?;
    let nanos: u32 = format!("{digits:0<9}").parse().ok()?;
    Some(match (is_before, nanos) {
        (false, nsec) => Timestamp { sec: seconds, nsec },
        (true, 0) => Timestamp { sec: -seconds, nsec: 0 },
        (true, nanos) => Timestamp { sec: -seconds - 1, nsec: 1_000_000_000 - nanos },
    })
}

/// The number nearest to why a request was refused.
fn errno_of(refusal: &Refusal) -> Errno {
    match refusal {
        // Not a missing entry, which would be made, or be a reason to delete its copy.
        Refusal::Answer { code, .. } if code == "NoSuchBucket" => Errno::NXIO,
        Refusal::Answer { code, .. } if code == "NoSuchUpload" => Errno::IO,
        Refusal::Answer { code, .. } if code == "EntityTooLarge" => Errno::FBIG,
        Refusal::Answer { status: 404, .. } => Errno::NOENT,
        Refusal::Answer { status: 401 | 403, .. } => Errno::ACCESS,
        // On some servers, an object and a directory of one name cannot be beside each other.
        Refusal::Answer { status: 409, .. } => Errno::EXIST,
        Refusal::Answer { status: 412, .. } => Errno::STALE,
        Refusal::Answer { status: 429 | 503, .. } => Errno::BUSY,
        Refusal::Answer { status: 507, .. } => Errno::NOSPC,
        Refusal::Answer { status: 301 | 307 | 308 | 400, .. } => Errno::INVAL,
        Refusal::Answer { .. } | Refusal::Lost(_) | Refusal::NotTaken | Refusal::Unused => Errno::IO,
        Refusal::Connection(_) => Errno::HOSTUNREACH,
        Refusal::Malformed(_) => Errno::BADMSG,
        Refusal::Credentials => Errno::ACCESS,
    }
}

/// What to do about it.
fn advice(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Answer { status: 301 | 307 | 308, .. } => {
            "; if the bucket is in another region, set AWS_REGION"
        }
        Refusal::Answer { code, .. } => match code.as_str() {
            "AuthorizationHeaderMalformed" => "; if the bucket is in another region, set AWS_REGION",
            "InvalidAccessKeyId" | "SignatureDoesNotMatch" => {
                "; the server rejects the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of \
                 the profile"
            }
            "RequestTimeTooSkewed" => "; this machine's clock is wrong",
            "ExpiredToken" => "; the credentials have expired: get new ones and start again",
            "NoSuchBucket" => "; create the bucket first",
            _ => "",
        },
        Refusal::Credentials => {
            ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; `aws configure \
             export-credentials --format env` prints the credentials of a session"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use millstream_wire::lines;

    use super::*;

    #[test]
    fn times_are_those_of_the_shared_vector() {
        for line in lines("object-metadata.tsv") {
            match *line.split('\t').collect::<Vec<_>>() {
                ["key", "time", name] => assert_eq!(TIME, name),
                ["time", nanos, text] => {
                    let time = Timestamp::from_nanos(nanos.parse().expect("a number"));
                    assert_eq!(encoded(time), text);
                    assert_eq!(decoded(text), Some(time), "{text}");
                }
                ["read", nanos, text] => {
                    let time = Timestamp::from_nanos(nanos.parse().expect("a number"));
                    assert_eq!(decoded(text), Some(time), "{text}");
                }
                ["other", text] => assert_eq!(decoded(text), None, "{text}"),
                ["key", "checksum", _] | ["checksum" | "largest", ..] => {}
                _ => panic!("{line}"),
            }
        }
    }
}
