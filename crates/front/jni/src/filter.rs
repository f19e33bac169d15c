//! `io.millstream.hadoop.tree.NativeFilter`.

use std::io;

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JObject, JObjectArray};
use jni::sys::{JNI_TRUE, jboolean, jint, jlong, jobjectArray};
use millstream_rsync_rules::Separator;
use millstream_rsync_rules::filter::{BadRule, Effect, Filter, Side, Subject, Unsided};

use crate::arrays::bytes;
use crate::{Failure, guard};

/// What Java's handle leads to.
struct Sides {
    filter: Filter,
    /// Absolute paths of the roots of the transfer, without their first and last slash: source, destination.
    roots: [Vec<u8>; 2],
}

/// `static native byte[][] flatten(byte[][] given)`: see Java.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeFilter_flatten<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    given: JObjectArray<'local>,
) -> jobjectArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let mut filter = Filter::default();
        for rule in arrays(env, &given)? {
            add(&mut filter, &rule)?;
        }
        let texts: Vec<Vec<u8>> = filter.rules().collect();
        let flat = env.new_object_array(texts.len() as jint, "[B", JObject::null())?;
        for (index, text) in (0..).zip(&texts) {
            let text = env.byte_array_from_slice(text)?;
            env.set_object_array_element(&flat, index, &text)?;
            env.delete_local_ref(text)?;
        }
        Ok(flat.into_raw())
    })
}

/// Adds a rule or pattern, whose first byte says which.
fn add(filter: &mut Filter, given: &[u8]) -> Result<(), Failure> {
    let mut read = |file: &std::ffi::OsStr| {
        if file == "-" { Err(io::ErrorKind::Unsupported.into()) } else { std::fs::read(file) }
    };
    let refused = |error: BadRule| Failure::Refused(error.to_string());
    match given {
        [b'-', pattern @ ..] => filter.add_pattern(pattern, Effect::Exclude).map_err(refused),
        [b'+', pattern @ ..] => filter.add_pattern(pattern, Effect::Include).map_err(refused),
        [b'f', rule @ ..] => filter.add_rule(rule, Separator::Line, &mut read).map_err(refused),
        _ => Err(Failure::Argument("neither a pattern nor a rule")),
    }
}

/// `static native long open(byte[][] rules, boolean deletesExcluded, byte[] source, byte[] destination)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeFilter_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    rules: JObjectArray<'local>,
    deletes_excluded: jboolean,
    source: JByteArray<'local>,
    destination: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let mut filter = Filter::default();
        let mut read = |_: &std::ffi::OsStr| Err(io::ErrorKind::Unsupported.into());
        for rule in arrays(env, &rules)? {
            let added = filter.add_rule(&rule, Separator::Line, &mut read);
            added.map_err(|error| Failure::Refused(error.to_string()))?;
        }
        if deletes_excluded == JNI_TRUE {
            filter.apply_unsided(Unsided::Sender);
        }
        let roots = [bytes(env, &source)?, bytes(env, &destination)?];
        Ok(Box::into_raw(Box::new(Sides { filter, roots })) as jlong)
    })
}

fn arrays(env: &mut JNIEnv<'_>, given: &JObjectArray<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    (0..env.get_array_length(given)?)
        .map(|index| {
            let rule = JByteArray::from(env.get_object_array_element(given, index)?);
            let copy = bytes(env, &rule)?;
            env.delete_local_ref(rule)?;
            Ok(copy)
        })
        .collect()
}

/// `static native boolean includes(long handle, boolean isOfDestination, byte[] path, boolean isDirectory,
/// boolean isInDeleted)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeFilter_includes<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    is_of_destination: jboolean,
    path: JByteArray<'local>,
    is_directory: jboolean,
    is_in_deleted: jboolean,
) -> jboolean {
    guard(&mut env, 0, |env| {
        // SAFETY: Java got the handle from `open`, and makes no call after `close`. Overlapping calls read.
        let sides = unsafe { &*(handle as *const Sides) };
        let path = bytes(env, &path)?;
        let (side, root) = match is_of_destination {
            JNI_TRUE => (Side::Receiver, &sides.roots[1]),
            _ => (Side::Sender, &sides.roots[0]),
        };
        let subject = Subject {
            path: &path,
            root,
            is_directory: is_directory == JNI_TRUE,
            is_in_deleted: is_in_deleted == JNI_TRUE,
        };
        Ok(sides.filter.includes(side, &subject).into())
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeFilter_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `open`, and closes it once, when no call is under way.
        drop(unsafe { Box::from_raw(handle as *mut Sides) });
        Ok(())
    });
}
