//! Files that the JVM reads for the engine: those of file systems other than the local one.
//!
//! The engine's threads call `io.millstream.hadoop.RemoteFiles`, which knows the file system's client with its credentials,
//! encryption and proxies. A thread of the engine is attached to the JVM by its first call, as a daemon, and detached when it
//! ends. Bytes are copied once, from the client's stream into the engine's buffer.

use std::sync::Arc;

use jni::objects::{GlobalRef, JLongArray, JObject, JValue};
use jni::{JNIEnv, JavaVM};
use millstream_scan::{FileRange, Portions, Source, SourceFile, Stamp};
use millstream_vfs::{Errno, Error, Operation, Result, Timestamp};

/// References of a call to objects in the JVM.
const LOCAL_REFERENCES: i32 = 8;

/// The files of a scan. The index of a range is its key.
#[derive(Debug)]
pub(crate) struct RemoteSource {
    vm: Arc<JavaVM>,
    /// A `RemoteFiles`.
    files: GlobalRef,
}

impl RemoteSource {
    /// The files that `files`, a `RemoteFiles`, can open.
    pub(crate) fn new(env: &JNIEnv<'_>, files: &JObject<'_>) -> jni::errors::Result<Self> {
        Ok(RemoteSource { vm: Arc::new(env.get_java_vm()?), files: env.new_global_ref(files)? })
    }
}

impl Source for RemoteSource {
    type File = RemoteFile;

    /// A file each, since requests take long; large files in parts, each of which is one request.
    const PORTIONS: Portions = Portions { bytes: 8 << 20, ranges: 1 };

    fn open(&self, index: usize, _range: &FileRange) -> Result<RemoteFile> {
        let key = i32::try_from(index).map_err(|_| Error::new(Operation::OpenFile, Errno::OVERFLOW))?;
        let opened = call(&self.vm, |env| {
            let signature = "(I)Lio/millstream/hadoop/RemoteFiles$File;";
            let file = env.call_method(&self.files, "open", signature, &[JValue::Int(key)])?.l()?;
            env.new_global_ref(file)
        });
        let file = opened.ok_or(Error::new(Operation::OpenFile, Errno::IO))?;
        Ok(RemoteFile { vm: Arc::clone(&self.vm), file })
    }

    fn open_checksums(&self, _range: &FileRange) -> Result<Option<RemoteFile>> {
        Ok(None)
    }
}

/// An open file, a `RemoteFiles.File`.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    vm: Arc<JavaVM>,
    file: GlobalRef,
}

impl SourceFile for RemoteFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let length = buffer.len().min(i32::MAX as usize);
        let read = call(&self.vm, |env| {
            // SAFETY: Java writes to the buffer during the call only, and keeps no reference to it.
            let bytes = unsafe { env.new_direct_byte_buffer(buffer.as_mut_ptr(), length) }?;
            let arguments = [JValue::Long(offset as i64), JValue::Object(&bytes)];
            env.call_method(&self.file, "read", "(JLjava/nio/ByteBuffer;)I", &arguments)?.i()
        });
        match read {
            Some(n @ 0..) => Ok(n as usize),
            // Whether the file is there shows when it is read.
            Some(errno) => Err(Error::new(Operation::OpenFile, Errno::from_raw_os_error(-errno))),
            None => Err(Error::new(Operation::Read, Errno::IO)),
        }
    }

    fn size(&self) -> Result<u64> {
        let size = call(&self.vm, |env| env.call_method(&self.file, "size", "()J", &[])?.j());
        size.and_then(|size| u64::try_from(size).ok()).ok_or(Error::new(Operation::Read, Errno::IO))
    }

    fn stamp(&self) -> Result<Stamp> {
        let stamp = call(&self.vm, |env| {
            let stamp = JLongArray::from(env.call_method(&self.file, "stamp", "()[J", &[])?.l()?);
            let mut values = [0; 2];
            env.get_long_array_region(&stamp, 0, &mut values)?;
            Ok(values)
        });
        let [size, mtime_ms] = stamp.ok_or(Error::new(Operation::Read, Errno::IO))?;
        match u64::try_from(size) {
            Ok(size) => Ok(Stamp { size, mtime: timestamp(mtime_ms), ..Stamp::default() }),
            Err(_) => Err(Error::new(Operation::OpenFile, Errno::from_raw_os_error(-(size as i32)))),
        }
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        call(&self.vm, |env| env.call_method(&self.file, "close", "()V", &[])?.v());
    }
}

/// Java's time in milliseconds.
fn timestamp(millis: i64) -> Timestamp {
    Timestamp { sec: millis.div_euclid(1000), nsec: millis.rem_euclid(1000) as u32 * 1_000_000 }
}

/// Calls into the JVM. `None` after an exception, which Java's side keeps for its caller if it is one of input and output.
fn call<T>(vm: &JavaVM, body: impl FnOnce(&mut JNIEnv<'_>) -> jni::errors::Result<T>) -> Option<T> {
    let mut env = vm.attach_current_thread_as_daemon().ok()?;
    let result = env.with_local_frame(LOCAL_REFERENCES, body);
    if result.is_err() {
        // If it cannot be cleared, the JVM is ending.
        let _ = env.exception_clear();
    }
    result.ok()
}
