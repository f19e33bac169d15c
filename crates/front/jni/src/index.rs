//! `io.millstream.hadoop.reading.NativeIndex`.

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JLongArray, JObject};
use jni::sys::{jbyteArray, jlong};
use millstream_codec::Index;
use millstream_scan::{Cause, VolumeSource, index_file};
use millstream_vfs::Errno;

use crate::arrays::{array, bytes};
use crate::cancellation::Cancellation;
use crate::remote::hadoop_source;
use crate::scan::{failure, ranges};
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

/// `static native byte[] build(byte[] range, RemoteFiles files, BooleanSupplier isCancelled)`: null if the file cannot
/// be divided.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeIndex_build<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    packed: JByteArray<'local>,
    files: JObject<'local>,
    is_cancelled: JObject<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let ranges = ranges(&bytes(env, &packed)?);
        let [range] = ranges.as_deref().unwrap_or_default() else {
            return Err(Failure::Argument("not one range"));
        };
        let source = hadoop_source(env, &files, &packed)?;
        let mut cancellation = Cancellation::new(env, &is_cancelled);
        let mut should_continue = || cancellation.should_continue();
        let index = match source {
            Some(source) => index_file(&source, range, &mut should_continue),
            None => {
                let source = VolumeSource::new(&SharedProcessVolume::default());
                index_file(&source, range, &mut should_continue)
            }
        };
        match index {
            Ok(index) => array(env, &index.encode()),
            Err(error) => match error.cause {
                Cause::Volume(cause) if cause.errno == Errno::NOTSUP => Ok(std::ptr::null_mut()),
                _ => Err(failure(&error)),
            },
        }
    })
}

/// `static native long open(byte[] index)`: 0 if it is no index of a whole file.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeIndex_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    index: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let index = Index::decode(&bytes(env, &index)?).ok().filter(Index::is_whole);
        Ok(index.map_or(0, |index| Box::into_raw(Box::new(index)) as jlong))
    })
}

/// `static native void describe(long handle, long[] out)`: bytes of the file, decoded bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeIndex_describe<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    out: JLongArray<'local>,
) {
    guard(&mut env, (), |env| {
        // SAFETY: Java got the handle from `open`, and makes no call after `close`.
        let index = unsafe { &*(handle as *const Index) };
        Ok(env.set_long_array_region(&out, 0, &[index.size() as jlong, index.length() as jlong])?)
    });
}

/// `static native long cut(long handle, long start, long end)`: where a range that begins at `start` should end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeIndex_cut<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    start: jlong,
    end: jlong,
) -> jlong {
    guard(&mut env, end, |_| {
        // SAFETY: Java got the handle from `open`, and makes no call after `close`.
        let index = unsafe { &*(handle as *const Index) };
        Ok(index.cut(start as u64, end as u64) as jlong)
    })
}

/// `static native byte[] slice(long handle, long start, long end)`: what is needed between two decoded offsets.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeIndex_slice<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    start: jlong,
    end: jlong,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: Java got the handle from `open`, and makes no call after `close`.
        let index = unsafe { &*(handle as *const Index) };
        let slice = index.slice(start as u64..end as u64).encode();
        array(env, &slice)
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeIndex_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `open`, and closes it once.
        drop(unsafe { Box::from_raw(handle as *mut Index) });
        Ok(())
    });
}
