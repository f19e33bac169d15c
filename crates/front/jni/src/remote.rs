//! Files of file systems other than the local one, as [`millstream_remote`] reads them.
//!
//! The JVM reads them for the engine: `io.millstream.hadoop.reading.RemoteFiles` knows the file system's client with
//! its credentials, encryption and proxies. A thread of the engine is attached to the JVM by its first call, as a
//! daemon, and detached when it ends. Bytes are copied once, from the client's stream into the engine's buffer. The
//! native reader is the client of a bucket ([`crate::s3`]).

use std::sync::Arc;

use jni::objects::{GlobalRef, JByteArray, JLongArray, JObject, JValue};
use jni::sys::jint;
use jni::{JNIEnv, JavaVM};
use millstream_remote::{Cost, NativeRead, NativeReader, RemoteFile, RemoteFiles, RemoteSource};
use millstream_s3::{Client, Counts};
use millstream_scan::SourceFile;
use millstream_version::Version;
use millstream_vfs::{Errno, Error, Operation, Result, Timestamp};

use crate::Failure;
use crate::arrays::bytes;
use crate::ranges::{Packed, unpack};
use crate::s3;
use crate::upcall::call;

/// Files that the JVM or a bucket's client reads.
pub(crate) type HadoopSource = RemoteSource<BucketReader, HadoopFiles>;

/// The files that `files`, a `RemoteFiles`, can open: those of the ranges in `packed`. `None` for null, which stands
/// for local files.
pub(crate) fn hadoop_source(
    env: &mut JNIEnv<'_>,
    files: &JObject<'_>,
    packed: &JByteArray<'_>,
) -> std::result::Result<Option<HadoopSource>, Failure> {
    if files.is_null() {
        return Ok(None);
    }
    let number = env.call_method(files, "nativeBucket", "()J", &[])?.j()?;
    let native = match s3::client(number) {
        None => None,
        Some(client) => {
            let packed = bytes(env, packed)?;
            let ranges = unpack(&packed).map_err(|_| Failure::Argument("malformed file ranges"))?;
            Some((BucketReader(client), ranges.iter().map(Packed::version).collect()))
        }
    };
    let files = HadoopFiles { vm: env.get_java_vm()?, object: env.new_global_ref(files)? };
    Ok(Some(RemoteSource::new(files, native)))
}

/// A bucket's client.
#[derive(Debug)]
pub(crate) struct BucketReader(Arc<Client>);

impl NativeReader for BucketReader {
    fn reads(&self) -> bool {
        self.0.reads()
    }

    fn read(
        &self,
        key: &[u8],
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
        cost: &mut Cost,
    ) -> std::result::Result<(), String> {
        let mut counts = Counts::default();
        let read = self.0.get(key, version, offset, buffer, &mut counts);
        let Counts { requests, retries, throttled } = counts;
        *cost = Cost { requests, retries, throttled };
        read.map_err(|refusal| refusal.to_string())
    }
}

/// The JVM's `RemoteFiles`.
#[derive(Debug)]
pub(crate) struct HadoopFiles {
    vm: JavaVM,
    object: GlobalRef,
}

impl RemoteFiles for HadoopFiles {
    type File = HadoopFile;

    fn open(&self, index: usize) -> Result<HadoopFile> {
        let key = jint::try_from(index).map_err(|_| Error::new(Operation::OpenFile, Errno::OVERFLOW))?;
        let opened = call(&self.vm, |env| {
            let signature = "(I)Lio/millstream/hadoop/reading/RemoteFiles$File;";
            let file = env.call_method(&self.object, "open", signature, &[JValue::Int(key)])?.l()?;
            Ok(HadoopFile { vm: env.get_java_vm()?, file: env.new_global_ref(file)? })
        });
        opened.ok_or(Error::new(Operation::OpenFile, Errno::IO))
    }

    fn has_read_natively(&self, read: NativeRead) {
        call(&self.vm, |env| {
            let refusal = read.refusal.map(|text| env.new_string(text)).transpose()?;
            let refusal = refusal.map_or(JObject::null(), JObject::from);
            let number = |n: u32| JValue::Int(jint::try_from(n).unwrap_or(jint::MAX));
            let arguments = [
                number(read.cost.requests),
                number(read.cost.retries),
                number(read.cost.throttled),
                JValue::Long(read.bytes as i64),
                JValue::Object(&refusal),
            ];
            env.call_method(&self.object, "readNatively", "(IIIJLjava/lang/String;)V", &arguments)?.v()
        });
    }
}

/// The JVM's `RemoteFiles.File`.
#[derive(Debug)]
pub(crate) struct HadoopFile {
    vm: JavaVM,
    file: GlobalRef,
}

impl RemoteFile for HadoopFile {
    fn accept(&self) -> bool {
        call(&self.vm, |env| env.call_method(&self.file, "accept", "()Z", &[])?.z()).unwrap_or(false)
    }
}

impl SourceFile for HadoopFile {
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

    fn last_start(&self) -> Result<u64> {
        let last = call(&self.vm, |env| env.call_method(&self.file, "lastStart", "()J", &[])?.j());
        last.and_then(|last| u64::try_from(last).ok()).ok_or(Error::new(Operation::Read, Errno::IO))
    }

    fn version(&self) -> Result<Version> {
        let stamp = call(&self.vm, |env| {
            let stamp = JLongArray::from(env.call_method(&self.file, "stamp", "()[J", &[])?.l()?);
            let mut values = [0; 2];
            env.get_long_array_region(&stamp, 0, &mut values)?;
            Ok((values[0], values[1]))
        });
        let (size, mtime_ms) = stamp.ok_or(Error::new(Operation::Read, Errno::IO))?;
        match u64::try_from(size) {
            Ok(size) => Ok(Version::at(size, Timestamp::from_millis(mtime_ms))),
            Err(_) => Err(Error::new(Operation::OpenFile, Errno::from_raw_os_error(-(size as i32)))),
        }
    }
}

impl Drop for HadoopFile {
    fn drop(&mut self) {
        call(&self.vm, |env| env.call_method(&self.file, "close", "()V", &[])?.v());
    }
}
