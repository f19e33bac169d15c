//! `io.millstream.hadoop.s3a.NativeTransfers`: files and objects that are copied into each other without passing
//! through the JVM.
//!
//! An object is written while it arrives, a large one in parts, for which there are several requests at once. A file is
//! read whole before it is sent, because it may be another version afterwards; so it has to be small.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crc_fast::CrcAlgorithm;
use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jlong, jobjectArray, jstring};
use millstream_s3::{Counts, Refusal};
use millstream_transfer::tree::Unfilled;
use millstream_version::{Tag, Version};
use millstream_vfs::Timestamp;

use crate::arrays::bytes;
use crate::s3::{client, text_at};
use crate::tree::{LocalStaged, failure, tree};
use crate::{Failure, guard};

/// How much of a buffer for the content of a file stays for the next one.
const KEPT_BYTES: usize = 1 << 20;
const CRC32C: CrcAlgorithm = CrcAlgorithm::Crc32Iscsi;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What Java gets to know of requests besides their result, in this order.
fn tell(env: &mut JNIEnv<'_>, out: &JLongArray<'_>, counts: Counts, checksum: u32) -> Result<(), Failure> {
    let values = [counts.requests.into(), counts.throttled.into(), jlong::from(checksum)];
    Ok(env.set_long_array_region(out, 0, &values)?)
}

fn texts<'local>(env: &mut JNIEnv<'local>, texts: &[String]) -> Result<JObjectArray<'local>, Failure> {
    let array = env.new_object_array(
        i32::try_from(texts.len()).unwrap_or(0),
        "java/lang/String",
        JString::default(),
    )?;
    for (index, text) in texts.iter().enumerate() {
        let text = env.new_string(text)?;
        env.set_object_array_element(&array, i32::try_from(index).unwrap_or(0), &text)?;
        env.delete_local_ref(text)?;
    }
    Ok(array)
}

/// `static native String[] fetch(long bucket, byte[] key, byte[] version, long size, long tree, long staged, long[]
/// out)`: names and values of the object's metadata in turn, after an empty text; or one text, why S3A has to read it.
/// `out` gets the numbers of requests and of those that were turned away, and the checksum of the contents.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeTransfers_fetch<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    bucket: jlong,
    key: JByteArray<'local>,
    version: JByteArray<'local>,
    size: jlong,
    into: jlong,
    staged: jlong,
    out: JLongArray<'local>,
) -> jobjectArray {
    guard(&mut env, ptr::null_mut(), |env| {
        let (key, tag) = (bytes(env, &key)?, Tag::pack(&bytes(env, &version)?));
        // SAFETY: Java got the handle from `stage`, makes one call with it at a time and none after `install` or
        // `discard`.
        let staged = unsafe { &*(staged as *const LocalStaged) };
        let version = Version { size: size as u64, tag, ..Version::default() };
        let counts = Mutex::<Counts>::default();
        let filled = match client(bucket) {
            None => Err(Unfilled::Unread(Refusal::Unused)),
            Some(client) => tree(into)?.fill(staged, version.size, |range, piece, take| {
                let mut cost = Counts::default();
                let read = client.fetch(&key, &version, range, piece, &mut cost, take);
                *counts.lock().unwrap_or_else(PoisonError::into_inner) += cost;
                read
            }),
        };
        let counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let checksum = filled.as_ref().ok().and_then(Option::as_ref).map_or(0, |filled| filled.checksum);
        tell(env, &out, counts, checksum)?;
        // Java closes the tree when its task ends.
        tree(into)?;
        let answer = match filled {
            Ok(filled) => {
                let metadata = filled.map(|filled| filled.first).unwrap_or_default();
                let pairs = metadata.into_iter().flat_map(|(name, value)| [name, value]);
                std::iter::once(String::new()).chain(pairs).collect()
            }
            Err(Unfilled::Unwritten(error)) => return Err(failure(&error)),
            Err(Unfilled::Unread(refusal)) => vec![refusal.to_string()],
        };
        Ok(texts(env, &answer)?.into_raw())
    })
}

/// `static native String send(long bucket, byte[] key, long tree, byte[] path, long size, long time, String[] headers,
/// String checksumHeader, long[] out)`: null if the object has been written; empty if the file is of another version
/// than the one of that size and time; or why S3A has to write it. `headers` are names and values in turn; `out` is as
/// for `fetch`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_s3a_NativeTransfers_send<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    bucket: jlong,
    key: JByteArray<'local>,
    from: jlong,
    path: JByteArray<'local>,
    size: jlong,
    time: jlong,
    headers: JObjectArray<'local>,
    checksum_header: JString<'local>,
    out: JLongArray<'local>,
) -> jstring {
    guard(&mut env, ptr::null_mut(), |env| {
        let (key, path) = (bytes(env, &key)?, bytes(env, &path)?);
        let checksum_header: String = env.get_string(&checksum_header)?.into();
        let mut sent = Vec::new();
        for index in (0..env.get_array_length(&headers)?).step_by(2) {
            sent.push((text_at(env, &headers, index)?, text_at(env, &headers, index + 1)?));
        }
        let expected = Version::at(size as u64, Timestamp::from_nanos(time));
        let mut counts = Counts::default();
        let (answer, checksum) = BUFFER.with_borrow_mut(|content| {
            if !tree(from)?.read_version(&path, &expected, content).map_err(|error| failure(&error))? {
                return Ok((Some(String::new()), 0));
            }
            let checksum = crc_fast::checksum(CRC32C, content) as u32;
            sent.push((checksum_header, format!("crc32c:{checksum:08x}")));
            let put = match client(bucket) {
                None => Err(Refusal::Unused),
                Some(client) => client.put(&key, content, &sent, &mut counts),
            };
            // There are many threads.
            content.truncate(KEPT_BYTES);
            content.shrink_to(KEPT_BYTES);
            Ok::<_, Failure>((put.err().map(|refusal| refusal.to_string()), checksum))
        })?;
        tell(env, &out, counts, checksum)?;
        match answer {
            None => Ok(ptr::null_mut()),
            Some(text) => Ok(env.new_string(text)?.into_raw()),
        }
    })
}
