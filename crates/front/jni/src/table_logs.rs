//! `io.millstream.hadoop.compact.TableLogs`.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jbyteArray, jint, jlong};
use millstream_compact::table_logs::{
    Care, Certainty, Evidence, LISTED_ENTRIES, SEARCHED_BYTES, Search, of_tree, probes,
};
use millstream_wire::{Decoder, Encoder, Malformed};

use crate::arrays::{array, bytes};
use crate::compact::c_string;
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

/// Nothing if there is no evidence, or else how sure it is (0: possible, 1: known, 2: an unfinished compaction or
/// undoing) and the message (a prefixed string).
fn encoded_evidence(evidence: Option<&Evidence>) -> Vec<u8> {
    let mut output = Encoder::default();
    if let Some(evidence) = evidence {
        output.u8(match evidence.certainty {
            Certainty::Possible => 0,
            Certainty::Known => 1,
            Certainty::Unfinished | Certainty::PartlyUndone => 2,
        });
        output.prefixed(evidence.to_string().as_bytes());
    }
    output.into_bytes()
}

/// Byte strings, each prefixed, to the end.
fn encoded_list<T: AsRef<[u8]>>(list: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut output = Encoder::default();
    list.into_iter().for_each(|bytes| output.prefixed(bytes.as_ref()));
    output.into_bytes()
}

/// The directory's path (a prefixed string), then to the end for each entry whether it is a directory (a flag) and its
/// name (a prefixed string). A name with slashes is the path below the directory of something that was asked for.
fn add_entries(search: &mut Search, packed: &[u8]) -> Result<(), Malformed> {
    let mut input = Decoder::new(packed);
    let directory = input.prefixed()?;
    while !input.is_empty() {
        let is_directory = input.u8()? != 0;
        search.probed(directory, input.prefixed()?, is_directory);
    }
    Ok(())
}

/// Paths of files of the tree, each a prefixed string, to the end.
fn add_files(search: &mut Search, packed: &[u8]) -> Result<(), Malformed> {
    let mut input = Decoder::new(packed);
    while !input.is_empty() {
        search.file(input.prefixed()?);
    }
    Ok(())
}

/// The search behind a handle.
///
/// # Safety
/// The handle comes from `open`; Java makes one call at a time and none after `close`.
unsafe fn search<'a>(handle: jlong) -> &'a mut Search {
    // SAFETY: the caller's promise.
    unsafe { &mut *(handle as *mut Search) }
}

const MALFORMED: Failure = Failure::Argument("a malformed listing");

/// `static native byte[] ofLocal(byte[] root, byte[] given, boolean isReplaced)`: returns what `encoded_evidence` makes
/// of what is found.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_ofLocal<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    root: JByteArray<'local>,
    given: JByteArray<'local>,
    is_replaced: jboolean,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let (root, given) = (c_string(bytes(env, &root)?)?, c_string(bytes(env, &given)?)?);
        let care = if is_replaced == 0 { Care::Names } else { Care::All };
        let found = of_tree(&SharedProcessVolume::default(), &root, &given, care, real_path);
        array(env, &encoded_evidence(found.as_ref()))
    })
}

fn real_path(directory: &CStr) -> Option<CString> {
    let path = std::fs::canonicalize(OsStr::from_bytes(directory.to_bytes())).ok()?;
    CString::new(path.into_os_string().into_vec()).ok()
}

/// `static native int listedEntries()`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_listedEntries(
    _env: JNIEnv<'_>,
    _class: JClass<'_>,
) -> jint {
    LISTED_ENTRIES as jint
}

/// `static native int searchedBytes()`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_searchedBytes(
    _env: JNIEnv<'_>,
    _class: JClass<'_>,
) -> jint {
    SEARCHED_BYTES as jint
}

/// `static native byte[] probes()`: prefixed strings.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_probes<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| array(env, &encoded_list(probes())))
}

/// `static native long open(byte[] root)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    root: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| Ok(Box::into_raw(Box::new(Search::new(&bytes(env, &root)?))) as jlong))
}

/// `static native void addEntries(long handle, byte[] packed)`: see `add_entries`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_addEntries<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    packed: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        // SAFETY: see `search`.
        add_entries(unsafe { search(handle) }, &bytes(env, &packed)?).map_err(|_| MALFORMED)
    });
}

/// `static native void addFiles(long handle, byte[] packed)`: see `add_files`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_addFiles<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    packed: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        // SAFETY: see `search`.
        add_files(unsafe { search(handle) }, &bytes(env, &packed)?).map_err(|_| MALFORMED)
    });
}

/// `static native byte[] beside(long handle, byte[] directory)`: prefixed strings.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_beside<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    directory: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: see `search`.
        let names = unsafe { search(handle) }.beside(&bytes(env, &directory)?);
        array(env, &encoded_list(names))
    })
}

/// `static native byte[] suspects(long handle)`: prefixed strings.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_suspects<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: see `search`.
        array(env, &encoded_list(unsafe { search(handle) }.suspects(Care::Names)))
    })
}

/// `static native void examine(long handle, byte[] path, byte[] content)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_examine<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    path: JByteArray<'local>,
    content: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        // SAFETY: see `search`.
        unsafe { search(handle) }.examine(&bytes(env, &path)?, &bytes(env, &content)?);
        Ok(())
    });
}

/// `static native byte[] evidence(long handle)`: returns what `encoded_evidence` makes of what is found.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_evidence<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: see `search`.
        array(env, &encoded_evidence(unsafe { search(handle) }.evidence().as_ref()))
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_TableLogs_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: the handle comes from `open`, and Java closes it once.
        drop(unsafe { Box::from_raw(handle as *mut Search) });
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use millstream_wire::vector;

    use super::*;

    /// Java's `TableLogsTest` writes and reads the same bytes.
    #[test]
    fn a_listing_and_what_it_shows_are_the_shared_vectors() {
        let mut search = Search::new(b"/t");
        add_entries(&mut search, &vector("table-logs-entries.hex")).expect("well-formed");
        let evidence = search.evidence().expect("a log");
        assert_eq!((&evidence.table[..], &evidence.log[..]), (&b"/t"[..], &b"_delta_log"[..]));
        assert_eq!(encoded_evidence(Some(&evidence)), vector("table-logs-evidence.hex"));
        assert_eq!(encoded_evidence(None), b"");
        let mut other = Search::new(b"/t");
        add_files(&mut other, &encoded_list(["/t/a", "/t/_delta_log/0.json"])).expect("well-formed");
        assert_eq!(other.evidence(), Some(evidence));
    }
}
