//! `io.millstream.hadoop.listing.NativeListing`.

use std::ffi::CString;
use std::ptr;
use std::time::Duration;

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JObjectArray};
use jni::sys::{jbyteArray, jint, jlong};
use millstream_enumerate::{Delivery, Depth, EnumerateOptions, Enumeration, Subdirectories};
use millstream_text::hidden::IgnoredNames;
use millstream_walk::Threads;

use crate::arrays::{array, bytes};
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

const RECURSIVE: jint = 1;
const DIRECTORIES: jint = 2;
const SKIP_HIDDEN: jint = 4;

fn options(flags: jint, threads: jint) -> EnumerateOptions {
    let has = |flag| flags & flag != 0;
    EnumerateOptions {
        depth: if has(RECURSIVE) { Depth::Tree } else { Depth::Roots },
        subdirectories: if has(DIRECTORIES) { Subdirectories::Report } else { Subdirectories::Omit },
        ignored: if has(SKIP_HIDDEN) { IgnoredNames::Hidden } else { IgnoredNames::Checksums },
        threads: match usize::try_from(threads) {
            Ok(0) | Err(_) => Threads::default(),
            Ok(n) => Threads::Fixed(n),
        },
    }
}

fn roots(env: &mut JNIEnv<'_>, paths: &JObjectArray<'_>) -> Result<Vec<CString>, Failure> {
    let count = env.get_array_length(paths)?;
    (0..count)
        .map(|i| {
            let path = JByteArray::from(env.get_object_array_element(paths, i)?);
            let bytes = bytes(env, &path)?;
            env.delete_local_ref(path)?;
            CString::new(bytes).map_err(|_| Failure::Argument("a path with a NUL byte"))
        })
        .collect()
}

/// `static native long open(byte[][] roots, int flags, int threads)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_listing_NativeListing_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    paths: JObjectArray<'local>,
    flags: jint,
    threads: jint,
) -> jlong {
    guard(&mut env, 0, |env| {
        let roots = roots(env, &paths)?;
        let started = Enumeration::start(SharedProcessVolume::default(), roots, options(flags, threads));
        let enumeration = started.map_err(|e| Failure::Engine(format!("cannot start a thread: {e}")))?;
        Ok(Box::into_raw(Box::new(enumeration)) as jlong)
    })
}

/// `static native byte[] next(long handle, int timeoutMillis)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_listing_NativeListing_next<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    timeout_millis: jint,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        if handle == 0 {
            return Err(Failure::Argument("the walk is closed"));
        }
        // SAFETY: the handle comes from `open`; Java clears it in `close` and makes no call after that.
        let enumeration = unsafe { &*(handle as *const Enumeration) };
        let timeout = Duration::from_millis(u64::try_from(timeout_millis).unwrap_or(0));
        match enumeration.next(timeout).map_err(|e| Failure::Engine(e.to_string()))? {
            Delivery::Blocks(blocks) => array(env, &blocks),
            Delivery::NotYet => Ok(env.new_byte_array(0)?.into_raw()),
            Delivery::End => Ok(ptr::null_mut()),
        }
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_listing_NativeListing_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        if handle != 0 {
            // SAFETY: the handle comes from `open`, and Java closes it once.
            drop(unsafe { Box::from_raw(handle as *mut Enumeration) });
        }
        Ok(())
    });
}
