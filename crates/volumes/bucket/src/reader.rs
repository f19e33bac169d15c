//! Reading an object: by requests for parts that are read to their end, so that a file read from its beginning costs
//! one.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_s3::{Counts, Object, Opened};
use millstream_version::Version;
use millstream_vfs::{Errno, Error, FileKind, Metadata, Operation, Result};

use crate::bucket::{Bucket, Reads, lock, time_of};

/// Requests end at multiples of this, as the parts do in which large files are copied.
const PART: u64 = 64 << 20;
/// How often a part is asked for again after no byte of it has come.
const ATTEMPTS: u32 = 8;
/// Pause before the first of these, which doubles.
const PAUSE: Duration = Duration::from_millis(50);

/// An object that is being read, always of the same version.
#[derive(Debug)]
pub struct ObjectReader {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) key: Vec<u8>,
    pub(crate) version: Version,
    /// What the server said of it.
    pub(crate) object: Object,
    metadata: Metadata,
    parts: Mutex<Vec<Open>>,
}

/// A part that is being read.
#[derive(Debug)]
struct Open {
    /// Offset of the next byte.
    at: u64,
    end: u64,
    body: Opened,
}

impl ObjectReader {
    /// Begins to read an object of which something is known; if that is not true any more, or nothing is known, it is
    /// asked for.
    pub(crate) fn open(bucket: &Arc<Bucket>, key: Vec<u8>, known: Option<Version>) -> Result<Self> {
        // A listing may not tell versions.
        if let Some(known) = known.filter(|known| !known.tag.is_none()) {
            match Self::begin(bucket, &key, &known) {
                Err(error) if error.errno == Errno::STALE => {}
                begun => return begun,
            }
        }
        let failed = |errno| Error::new(Operation::OpenFile, errno);
        let object = bucket.object(Operation::OpenFile, &key)?.ok_or(failed(Errno::NOENT))?;
        Self::begin(bucket, &key, &object.version)
    }

    fn begin(bucket: &Arc<Bucket>, key: &[u8], known: &Version) -> Result<Self> {
        if known.tag.is_none() {
            return Err(Error::new(Operation::OpenFile, Errno::BADMSG));
        }
        let (object, parts) = match bucket.reads {
            Reads::AtOnce => {
                let end = known.size.min(PART);
                let opened = bucket.client.open(key, known, 0..end, &mut Counts::default());
                let body = bucket.answered(Operation::OpenFile, opened)?;
                let object = body.object.clone();
                (object, if end > 0 { vec![Open { at: 0, end, body }] } else { Vec::new() })
            }
            Reads::Rarely => {
                let failed = |errno| Error::new(Operation::OpenFile, errno);
                let object = bucket.object(Operation::OpenFile, key)?.ok_or(failed(Errno::NOENT))?;
                if object.version.tag != known.tag {
                    return Err(failed(Errno::STALE));
                }
                (object, Vec::new())
            }
        };
        let metadata = bucket.metadata(key, FileKind::File, known.size, Some(time_of(&object)));
        Ok(ObjectReader {
            bucket: Arc::clone(bucket),
            key: key.to_vec(),
            version: known.clone(),
            object,
            metadata,
            parts: Mutex::new(parts),
        })
    }

    pub(crate) fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Fills `buffer` from `offset` on, as far as the object goes.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && offset + (filled as u64) < self.metadata.size {
            filled += self.read_part(&mut buffer[filled..], offset + filled as u64)?;
        }
        Ok(filled)
    }

    /// Reads some bytes, at least one.
    fn read_part(&self, buffer: &mut [u8], at: u64) -> Result<usize> {
        let mut attempts = 0;
        loop {
            let mut open = self.part_at(at)?;
            let wanted = usize::try_from(open.end - at).unwrap_or(usize::MAX).min(buffer.len());
            match open.body.read(&mut buffer[..wanted]) {
                Ok(read) if read > 0 => {
                    open.at += read as u64;
                    if open.at < open.end {
                        lock(&self.parts).push(open);
                    } else {
                        // Once the end has been seen, the connection can be used again.
                        let _ = open.body.read(&mut [0]);
                    }
                    return Ok(read);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    lock(&self.parts).push(open);
                }
                // The connection has ended early; the next one goes on where it did.
                _ if attempts < ATTEMPTS => {
                    std::thread::sleep(PAUSE * 2_u32.pow(attempts));
                    attempts += 1;
                }
                _ => return Err(Error::new(Operation::Read, Errno::IO)),
            }
        }
    }

    /// The part whose next byte is this one.
    fn part_at(&self, at: u64) -> Result<Open> {
        let mut parts = lock(&self.parts);
        if let Some(found) = parts.iter().position(|open| open.at == at) {
            return Ok(parts.swap_remove(found));
        }
        drop(parts);
        let end = ((at / PART + 1) * PART).min(self.metadata.size);
        let opened = self.bucket.client.open(&self.key, &self.version, at..end, &mut Counts::default());
        let body = self.bucket.answered(Operation::Read, opened)?;
        Ok(Open { at, end, body })
    }
}
