//! Files of file systems other than the local one.
//!
//! The JVM reads them for the engine: `io.millstream.hadoop.reading.RemoteFiles` knows the file system's client with its credentials,
//! encryption and proxies. A thread of the engine is attached to the JVM by its first call, as a daemon, and detached when it
//! ends. Bytes are copied once, from the client's stream into the engine's buffer.
//!
//! The objects of a bucket that has a native client ([`crate::s3`]) are read by that, if their versions are known. The JVM is
//! told what it cost, and reads what the native client does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jni::objects::{GlobalRef, JByteArray, JLongArray, JObject, JValue};
use jni::sys::jint;
use jni::{JNIEnv, JavaVM};
use millstream_s3::{Client, Counts, Version};
use millstream_scan::{FileRange, Portions, Source, SourceFile, Stamp};
use millstream_vfs::{Errno, Error, Operation, Result, Timestamp};

use crate::Failure;
use crate::ranges::{Packed, unpack};
use crate::s3;
use crate::upcall::call;

/// The files of a scan. The index of a range is its key.
#[derive(Debug)]
pub(crate) struct RemoteSource {
    files: Arc<RemoteFiles>,
    /// For each range, if a native client can read them.
    objects: Option<(Arc<Client>, Vec<Object>)>,
}

/// The JVM's `RemoteFiles`.
#[derive(Debug)]
struct RemoteFiles {
    vm: JavaVM,
    object: GlobalRef,
}

/// What was listed.
#[derive(Clone, Debug)]
struct Object {
    size: u64,
    mtime_ms: i64,
    version: Version,
}

impl RemoteSource {
    /// The files that `files`, a `RemoteFiles`, can open: those of the ranges in `packed`. `None` for null, which stands for
    /// local files.
    pub(crate) fn of(
        env: &mut JNIEnv<'_>,
        files: &JObject<'_>,
        packed: &JByteArray<'_>,
    ) -> std::result::Result<Option<Self>, Failure> {
        if files.is_null() {
            return Ok(None);
        }
        let packed = env.convert_byte_array(packed)?;
        RemoteSource::new(env, files, &packed).map(Some)
    }

    fn new(env: &mut JNIEnv<'_>, files: &JObject<'_>, packed: &[u8]) -> std::result::Result<Self, Failure> {
        let number = env.call_method(files, "nativeBucket", "()J", &[])?.j()?;
        let objects = match s3::client(number) {
            None => None,
            Some(client) => {
                let ranges = unpack(packed).map_err(|_| Failure::Argument("malformed file ranges"))?;
                let object = |range: &Packed<'_>| Object {
                    size: range.size,
                    mtime_ms: range.mtime_ms,
                    version: Version::packed(range.version),
                };
                Some((client, ranges.iter().map(object).collect()))
            }
        };
        let files = RemoteFiles { vm: env.get_java_vm()?, object: env.new_global_ref(files)? };
        Ok(RemoteSource { files: Arc::new(files), objects })
    }

    /// A native client and the object of a range, if they are known. An empty object is not read natively: no request would
    /// tell whether it is still there.
    fn native(&self, index: usize, range: &FileRange) -> Option<Native> {
        let (client, objects) = self.objects.as_ref()?;
        let object = objects
            .get(index)
            .filter(|object| (1..=i64::MAX as u64).contains(&object.size) && !object.version.is_none())?;
        let path = range.path.to_bytes();
        let key = &path[path.iter().position(|&b| b != b'/').unwrap_or(path.len())..];
        Some(Native {
            client: Arc::clone(client),
            key: key.to_vec(),
            object: object.clone(),
            is_left: AtomicBool::new(false),
        })
    }
}

impl Source for RemoteSource {
    type File = RemoteFile;

    /// A file each, since requests take long; large files in parts, each of which is one request.
    const PORTIONS: Portions = Portions { bytes: 8 << 20, ranges: 1, first_readers: 8 };

    fn open(&self, index: usize, range: &FileRange) -> Result<RemoteFile> {
        let key = i32::try_from(index).map_err(|_| Error::new(Operation::OpenFile, Errno::OVERFLOW))?;
        Ok(RemoteFile {
            files: Arc::clone(&self.files),
            key,
            opened: OnceLock::new(),
            native: self.native(index, range),
        })
    }

    fn open_checksums(&self, _range: &FileRange) -> Result<Option<RemoteFile>> {
        Ok(None)
    }
}

/// An open file.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    files: Arc<RemoteFiles>,
    key: jint,
    /// The JVM's `RemoteFiles.File`, once it has to read.
    opened: OnceLock<GlobalRef>,
    native: Option<Native>,
}

/// An object that a native client reads.
#[derive(Debug)]
struct Native {
    client: Arc<Client>,
    key: Vec<u8>,
    object: Object,
    /// Whether the JVM reads it.
    is_left: AtomicBool,
}

impl RemoteFile {
    /// The JVM's file.
    fn opened(&self) -> Result<&GlobalRef> {
        if let Some(file) = self.opened.get() {
            return Ok(file);
        }
        let opened = call(&self.files.vm, |env| {
            let signature = "(I)Lio/millstream/hadoop/reading/RemoteFiles$File;";
            let file =
                env.call_method(&self.files.object, "open", signature, &[JValue::Int(self.key)])?.l()?;
            env.new_global_ref(file)
        });
        let file = opened.ok_or(Error::new(Operation::OpenFile, Errno::IO))?;
        // If another thread was faster, its file is the one, and this one has not been read.
        Ok(self.opened.get_or_init(|| file))
    }

    /// What a native client reads; `None` if the JVM has to.
    fn native(&self) -> Option<&Native> {
        self.native.as_ref().filter(|native| !native.is_left.load(Ordering::Relaxed) && native.client.reads())
    }

    /// Reads by the native client; `None` if the JVM has to.
    fn read_natively(&self, native: &Native, buffer: &mut [u8], offset: u64) -> Option<Result<usize>> {
        let Object { size, version, .. } = &native.object;
        let Some(rest) = size.checked_sub(offset).filter(|&rest| rest > 0) else {
            return Some(Ok(0));
        };
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(buffer.len());
        let mut counts = Counts::default();
        let read = native.client.get(&native.key, version, *size, offset, &mut buffer[..wanted], &mut counts);
        self.report(
            counts,
            if read.is_ok() { wanted } else { 0 },
            read.as_ref().err().map(ToString::to_string),
        );
        let is_accepted = match read {
            Err(_) => false,
            // All rows of the file are of these bytes.
            Ok(()) if wanted as u64 == *size => true,
            // If another part has been read from a new version meanwhile, this one is to be as well.
            Ok(()) => match self
                .opened()
                .map(|file| call(&self.files.vm, |env| env.call_method(file, "accept", "()Z", &[])?.z()))
            {
                Ok(accepted) => accepted.unwrap_or(false),
                Err(error) => return Some(Err(error)),
            },
        };
        if !is_accepted {
            native.is_left.store(true, Ordering::Relaxed);
        }
        is_accepted.then_some(Ok(wanted))
    }

    /// Tells the JVM what a read has cost, and why it has to read.
    fn report(&self, counts: Counts, bytes: usize, refusal: Option<String>) {
        call(&self.files.vm, |env| {
            let refusal = refusal.map(|text| env.new_string(text)).transpose()?;
            let refusal = refusal.map_or(JObject::null(), JObject::from);
            let number = |n: u32| JValue::Int(jint::try_from(n).unwrap_or(jint::MAX));
            let arguments = [
                number(counts.requests),
                number(counts.retries),
                number(counts.throttled),
                JValue::Long(bytes as i64),
                JValue::Object(&refusal),
            ];
            env.call_method(&self.files.object, "readNatively", "(IIIJLjava/lang/String;)V", &arguments)?.v()
        });
    }
}

impl SourceFile for RemoteFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if let Some(read) = self.native().and_then(|native| self.read_natively(native, buffer, offset)) {
            return read;
        }
        let file = self.opened()?;
        let length = buffer.len().min(i32::MAX as usize);
        let read = call(&self.files.vm, |env| {
            // SAFETY: Java writes to the buffer during the call only, and keeps no reference to it.
            let bytes = unsafe { env.new_direct_byte_buffer(buffer.as_mut_ptr(), length) }?;
            let arguments = [JValue::Long(offset as i64), JValue::Object(&bytes)];
            env.call_method(file, "read", "(JLjava/nio/ByteBuffer;)I", &arguments)?.i()
        });
        match read {
            Some(n @ 0..) => Ok(n as usize),
            // Whether the file is there shows when it is read.
            Some(errno) => Err(Error::new(Operation::OpenFile, Errno::from_raw_os_error(-errno))),
            None => Err(Error::new(Operation::Read, Errno::IO)),
        }
    }

    fn last_start(&self) -> Result<u64> {
        if let Some(native) = self.native() {
            return Ok(native.object.size);
        }
        let file = self.opened()?;
        let last = call(&self.files.vm, |env| env.call_method(file, "lastStart", "()J", &[])?.j());
        last.and_then(|last| u64::try_from(last).ok()).ok_or(Error::new(Operation::Read, Errno::IO))
    }

    fn stamp(&self) -> Result<Stamp> {
        let (size, mtime_ms) = match self.native() {
            Some(Native { object, .. }) => (object.size as i64, object.mtime_ms),
            None => {
                let file = self.opened()?;
                let stamp = call(&self.files.vm, |env| {
                    let stamp = JLongArray::from(env.call_method(file, "stamp", "()[J", &[])?.l()?);
                    let mut values = [0; 2];
                    env.get_long_array_region(&stamp, 0, &mut values)?;
                    Ok((values[0], values[1]))
                });
                stamp.ok_or(Error::new(Operation::Read, Errno::IO))?
            }
        };
        match u64::try_from(size) {
            Ok(size) => Ok(Stamp { size, mtime: timestamp(mtime_ms), ..Stamp::default() }),
            Err(_) => Err(Error::new(Operation::OpenFile, Errno::from_raw_os_error(-(size as i32)))),
        }
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        if let Some(file) = self.opened.get() {
            call(&self.files.vm, |env| env.call_method(file, "close", "()V", &[])?.v());
        }
    }
}

/// Java's time in milliseconds.
fn timestamp(millis: i64) -> Timestamp {
    Timestamp { sec: millis.div_euclid(1000), nsec: millis.rem_euclid(1000) as u32 * 1_000_000 }
}
