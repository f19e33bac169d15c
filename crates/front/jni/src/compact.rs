//! `io.millstream.hadoop.compact.NativeCompaction` and `NativeJoiner`.

use std::ffi::CString;

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JObject};
use jni::sys::{jboolean, jbyteArray, jint, jlong};
use millstream_compact::compact::{
    Applied, CompactError, Journal, ListedFile, Manifest, Reason, Staging, Undone, apply, has_journal,
    has_kept, obstacles, predict_purge, predict_undo, purge, undo, undo_command,
};
use millstream_scan::{Contents, Header, Input, JoinRule, Joiner, Place, concatenate};
use millstream_vfs::Volume;
use millstream_wire::Encoder;

use crate::arrays::{array, bytes};
use crate::cancellation::Cancellation;
use crate::ranges::{Packed, unpack};
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

type ProcessStaging = Staging<SharedProcessVolume>;

pub(crate) fn c_string(bytes: Vec<u8>) -> Result<CString, Failure> {
    CString::new(bytes).map_err(|_| Failure::Argument("a path with a NUL byte"))
}

/// Inputs and their file names.
pub(crate) struct NamedInputs {
    pub(crate) inputs: Vec<Input>,
    names: Vec<CString>,
}

/// The packed inputs.
pub(crate) fn inputs(env: &JNIEnv<'_>, packed: &JByteArray<'_>) -> Result<NamedInputs, Failure> {
    let packed = bytes(env, packed)?;
    let input = |packed: Packed<'_>| {
        Some((Input { path: packed.path()?, version: packed.version() }, CString::new(packed.name).ok()?))
    };
    unpack(&packed)
        .ok()
        .and_then(|inputs| inputs.into_iter().map(input).collect::<Option<(Vec<_>, Vec<_>)>>())
        .map(|(inputs, names)| NamedInputs { inputs, names })
        .ok_or(Failure::Argument("malformed list of inputs"))
}

/// Java's `JoinRule`: bit 0 says that first lines are headers, bit 1 that lines are JSON.
pub(crate) fn rule_from(bits: jint) -> JoinRule {
    JoinRule {
        header: if bits & 1 == 0 { Header::None } else { Header::Same },
        contents: if bits & 2 == 0 { Contents::Text } else { Contents::Json },
    }
}

fn write_manifest(manifest: &Manifest, output: &CString) -> Result<(), Failure> {
    manifest.write_beside(&SharedProcessVolume::default(), output).map_err(|error| unreadable(output, &error))
}

pub(crate) fn unreadable(path: &CString, error: &dyn std::fmt::Display) -> Failure {
    Failure::Unreadable(format!("{}: {error}", path.to_string_lossy()))
}

fn failure(error: &CompactError) -> Failure {
    Failure::Unreadable(error.to_string())
}

/// `static native long concatenate(byte[] inputs, int rule, byte[] output, int maxReaders, BooleanSupplier
/// isCancelled)`: returns the length of the output.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_concatenate<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    packed: JByteArray<'local>,
    rule: jint,
    output: JByteArray<'local>,
    max_readers: jint,
    is_cancelled: JObject<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let NamedInputs { inputs, names } = inputs(env, &packed)?;
        let output = c_string(bytes(env, &output)?)?;
        let rule = rule_from(rule);
        let max_readers = usize::try_from(max_readers).unwrap_or(0);
        let volume = SharedProcessVolume::default();
        let mut cancellation = Cancellation::new(env, &is_cancelled);
        let mut should_continue = || cancellation.should_continue();
        let done = concatenate(&volume, &inputs, rule, &output, max_readers, &mut should_continue);
        let done = done.map_err(|error| {
            unreadable(error.input().and_then(|i| inputs.get(i)).map_or(&output, |input| &input.path), &error)
        })?;
        let versions = done.versions.iter().map(|read| (read.file_id, read.size, read.mtime));
        write_manifest(&Manifest::of_read(names, versions), &output)?;
        Ok(jlong::try_from(done.length).unwrap_or(jlong::MAX))
    })
}

/// Files, each with the reason why it cannot be replaced, to the end: prefixed strings.
fn encoded_obstacles(found: &[(CString, Reason)]) -> Vec<u8> {
    let mut output = Encoder::default();
    for (name, reason) in found {
        output.prefixed(name.to_bytes());
        output.prefixed(reason.to_string().as_bytes());
    }
    output.into_bytes()
}

/// `static native byte[] obstacles(byte[] directory)`: returns what `encoded_obstacles` makes of those in it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_obstacles<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    directory: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let directory = c_string(bytes(env, &directory)?)?;
        let found = obstacles(&SharedProcessVolume::default(), &directory).map_err(|e| failure(&e))?;
        array(env, &encoded_obstacles(&found))
    })
}

/// `static native void stamp(byte[] inputs, byte[] output)`: writes the manifest of an output before the output itself.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_stamp<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    packed: JByteArray<'local>,
    output: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        let NamedInputs { inputs, names } = inputs(env, &packed)?;
        let output = c_string(bytes(env, &output)?)?;
        let listed = inputs.into_iter().zip(names).map(|(input, name)| {
            let Input { path, version } = input;
            ListedFile { path, name, size: version.size, mtime_ms: version.mtime.as_millis() }
        });
        let manifest = Manifest::of_listed(&SharedProcessVolume::default(), listed.collect());
        write_manifest(&manifest.map_err(|e| failure(&e))?, &output)
    });
}

/// `static native long open(byte[] path)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    path: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let path = c_string(bytes(env, &path)?)?;
        let staging = Staging::open(&SharedProcessVolume::default(), &path).map_err(|e| failure(&e))?;
        Ok(Box::into_raw(Box::new(staging)) as jlong)
    })
}

/// The staging directory behind a handle.
///
/// # Safety
/// The handle comes from `open`, and Java makes no call after `close`.
unsafe fn staging<'a>(handle: jlong) -> &'a ProcessStaging {
    // SAFETY: the caller's promise.
    unsafe { &*(handle as *const ProcessStaging) }
}

/// `static native boolean isCommitted(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_isCommitted<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jboolean {
    guard(&mut env, 0, |_| {
        // SAFETY: see `staging`.
        let staging = unsafe { staging(handle) };
        Ok(jboolean::from(staging.journal().map_err(|e| failure(&e))?.is_some()))
    })
}

/// `static native void clear(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_clear<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: see `staging`.
        unsafe { staging(handle) }.clear().map_err(|e| failure(&e))
    });
}

/// `static native void commit(long handle, byte[] journal)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_commit<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    journal: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        let journal =
            Journal::decode(&bytes(env, &journal)?).map_err(|_| Failure::Argument("a malformed journal"))?;
        // SAFETY: see `staging`.
        unsafe { staging(handle) }.commit(&journal).map_err(|e| failure(&e))
    });
}

/// The numbers of outputs and of replaced files (`u64` each), then to the end for each group left unchanged its
/// directory (a prefixed string), its number of files (`u64`) and the reason (a prefixed string).
fn encoded_result(applied: &Applied) -> Vec<u8> {
    let mut output = Encoder::default();
    output.u64(applied.outputs);
    output.u64(applied.replaced);
    for left in &applied.left {
        output.prefixed(left.directory.to_bytes());
        output.u64(left.inputs);
        output.prefixed(left.reason.to_string().as_bytes());
    }
    output.into_bytes()
}

/// `static native byte[] apply(long handle, int threads)`: returns what `encoded_result` makes of the result.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_apply<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    threads: jint,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: see `staging`.
        let staging = unsafe { staging(handle) };
        let threads = usize::try_from(threads).unwrap_or(1);
        let applied = apply(staging, threads, &|| true).map_err(|e| failure(&e))?;
        array(env, &encoded_result(&applied))
    })
}

/// `static native boolean hasJournal(byte[] staging)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_hasJournal<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    staging: JByteArray<'local>,
) -> jboolean {
    guard(&mut env, 0, |env| {
        let staging = c_string(bytes(env, &staging)?)?;
        let found = has_journal(&SharedProcessVolume::default().base(), &staging);
        Ok(jboolean::from(found.map_err(|error| unreadable(&staging, &error))?))
    })
}

/// `static native boolean hasKept(byte[] staging)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_hasKept<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    staging: JByteArray<'local>,
) -> jboolean {
    guard(&mut env, 0, |env| {
        let staging = c_string(bytes(env, &staging)?)?;
        let found = has_kept(&SharedProcessVolume::default(), &staging);
        Ok(jboolean::from(found.map_err(|e| failure(&e))?))
    })
}

/// What `encoded_result` makes of an undoing: the numbers are of outputs removed and of files put back.
fn encoded_undone(undone: Undone) -> Vec<u8> {
    encoded_result(&Applied { outputs: undone.outputs, replaced: undone.restored, left: undone.left })
}

/// `static native byte[] undo(long handle)`: returns what `encoded_undone` makes of the result.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_undo<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: see `staging`.
        let undone = undo(unsafe { staging(handle) }, &|| true).map_err(|e| failure(&e))?;
        array(env, &encoded_undone(undone))
    })
}

/// `static native byte[] predictUndo(byte[] staging)`: returns what `encoded_undone` makes of what would be done.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_predictUndo<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    staging: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let staging = c_string(bytes(env, &staging)?)?;
        let undone = predict_undo(&SharedProcessVolume::default(), &staging).map_err(|e| failure(&e))?;
        array(env, &encoded_undone(undone))
    })
}

/// `static native byte[] undoCommand(byte[] tree)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_undoCommand<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    tree: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| array(env, &undo_command(&bytes(env, &tree)?)))
}

/// `static native long purge(long handle, long now)`: of all compactions if `now` is negative.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_purge<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    now: jlong,
) -> jlong {
    guard(&mut env, 0, |_| {
        // SAFETY: see `staging`.
        let removed =
            purge(unsafe { staging(handle) }, (now >= 0).then_some(now)).map_err(|e| failure(&e))?;
        Ok(jlong::try_from(removed).unwrap_or(jlong::MAX))
    })
}

/// `static native long predictPurge(byte[] staging)`: of all compactions.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_predictPurge<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    staging: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let staging = c_string(bytes(env, &staging)?)?;
        let removed =
            predict_purge(&SharedProcessVolume::default(), &staging, None).map_err(|e| failure(&e))?;
        Ok(jlong::try_from(removed).unwrap_or(jlong::MAX))
    })
}

/// `static native void close(long handle, boolean remove)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeCompaction_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    remove: jboolean,
) {
    guard(&mut env, (), |_| {
        // SAFETY: the handle comes from `open`, and Java closes it once.
        let staging = unsafe { Box::from_raw(handle as *mut ProcessStaging) };
        if remove != 0 { staging.close().map_err(|e| failure(&e)) } else { Ok(()) }
    });
}

/// `static native long open(int rule)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeJoiner_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    rule: jint,
) -> jlong {
    guard(&mut env, 0, |_| Ok(Box::into_raw(Box::new(Joiner::new(rule_from(rule)))) as jlong))
}

/// `static native long add(long handle, byte[] piece, int length, boolean first, boolean last)`: returns in the lower
/// half the offset in the piece from which to append, in the upper half the byte to insert before it (0 for none).
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeJoiner_add<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    piece: JByteArray<'local>,
    length: jint,
    first: jboolean,
    last: jboolean,
) -> jlong {
    guard(&mut env, 0, |env| {
        let length = usize::try_from(length).map_err(|_| Failure::Argument("a piece of negative length"))?;
        let mut copy = vec![0_i8; length];
        env.get_byte_array_region(&piece, 0, &mut copy)?;
        let piece: Vec<u8> = copy.into_iter().map(i8::cast_unsigned).collect();
        // SAFETY: the handle comes from `open`; Java makes one call at a time and none after `close`.
        let joiner = unsafe { &mut *(handle as *mut Joiner) };
        let place = Place { first: first != 0, last: last != 0 };
        let (before, added) = joiner.add(&piece, place).map_err(|error| Failure::Unfit(error.to_string()))?;
        let before = before.first().map_or(0, |&byte| jlong::from(byte));
        Ok(before << 32 | (piece.len() - added.len()) as jlong)
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_NativeJoiner_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: the handle comes from `open`, and Java closes it once.
        drop(unsafe { Box::from_raw(handle as *mut Joiner) });
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use millstream_compact::compact::Left;
    use millstream_wire::vector;

    use super::*;

    /// Java's `NativeCompactionTest` reads the same bytes.
    #[test]
    fn obstacles_are_the_shared_vector() {
        let found = [c"a", c"\u{e9} %"].map(|name| (name.to_owned(), Reason::Link(name.to_owned())));
        assert_eq!(encoded_obstacles(&found), vector("compaction-obstacles.hex"));
    }

    /// Java's `NativeCompactionTest` reads the same bytes.
    #[test]
    fn result_is_the_shared_vector() {
        let left =
            |directory: &std::ffi::CStr, inputs, reason| Left { directory: directory.into(), inputs, reason };
        let changed = left(c"/d/e", 3, Reason::Changed(c"\u{e9}".into()));
        let applied = Applied {
            outputs: 2,
            replaced: 1 << 32,
            left: vec![changed, left(c"/f", 1, Reason::Link(c"l".into()))],
        };
        assert_eq!(encoded_result(&applied), vector("compaction-result.hex"));
    }
}
