//! `io.millstream.hadoop.compact.JoinedFiles`.

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JObject};
use jni::sys::{jint, jlong};
use millstream_scan::{Cause, ConcatenateError, JoinedFiles, Source, VolumeSource, check};
use millstream_vfs::Error;

use crate::arrays::put;
use crate::cancellation::Cancellation;
use crate::compact::{NamedInputs, inputs, rule_from, unreadable};
use crate::remote::hadoop_source;
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

/// Returned by `next` at the end, in place of a number of bytes.
const END: jint = -1;

type Put<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// Joined files wherever they are.
trait AnyFiles {
    fn next(&mut self, should_continue: &mut dyn FnMut() -> bool, put: Put<'_>) -> Result<bool, Failure>;
}

impl<S: Source> AnyFiles for JoinedFiles<S> {
    fn next(&mut self, should_continue: &mut dyn FnMut() -> bool, put: Put<'_>) -> Result<bool, Failure> {
        let next = JoinedFiles::next(self, should_continue, put);
        next.map_err(|error| failure(&error, error.input().and_then(|input| self.inputs().get(input))))
    }
}

fn failure(error: &ConcatenateError, input: Option<&millstream_scan::Input>) -> Failure {
    let Some(input) = input else {
        return Failure::Unreadable(error.to_string());
    };
    match error {
        ConcatenateError::Read { cause: Cause::Volume(_) | Cause::Interrupted, .. } if !is_missing(error) => {
            unreadable(&input.path, error)
        }
        _ => Failure::Unfit(format!("{}: {error}", input.path.to_string_lossy())),
    }
}

fn is_missing(error: &ConcatenateError) -> bool {
    matches!(error, ConcatenateError::Read { cause, .. } if cause.is_missing())
}

/// What a handle refers to.
struct OpenFiles {
    files: Box<dyn AnyFiles>,
    /// Bytes that Java has not taken yet, from `taken` on.
    bytes: Vec<u8>,
    taken: usize,
}

fn readers(max_readers: jint) -> usize {
    usize::try_from(max_readers).unwrap_or(0)
}

/// `static native long open(byte[] inputs, RemoteFiles files, int rule, int maxReaders)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_JoinedFiles_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    packed: JByteArray<'local>,
    files: JObject<'local>,
    rule: jint,
    max_readers: jint,
) -> jlong {
    guard(&mut env, 0, |env| {
        let NamedInputs { inputs, .. } = inputs(env, &packed)?;
        let (rule, max_readers) = (rule_from(rule), readers(max_readers));
        let files: Box<dyn AnyFiles> = match hadoop_source(env, &files, &packed)? {
            Some(source) => Box::new(JoinedFiles::new(source, inputs, rule, max_readers)),
            None => {
                let source = VolumeSource::new(&SharedProcessVolume::default());
                Box::new(JoinedFiles::new(source, inputs, rule, max_readers))
            }
        };
        Ok(Box::into_raw(Box::new(OpenFiles { files, bytes: Vec::new(), taken: 0 })) as jlong)
    })
}

/// `static native int next(long handle, byte[] buffer, BooleanSupplier isCancelled)`: returns the number of bytes, -1
/// at the end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_JoinedFiles_next<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    buffer: JByteArray<'local>,
    is_cancelled: JObject<'local>,
) -> jint {
    guard(&mut env, END, |env| {
        // SAFETY: Java got the handle from `open`, makes one call at a time and none after `close`.
        let open = unsafe { &mut *(handle as *mut OpenFiles) };
        let room = usize::try_from(env.get_array_length(&buffer)?).unwrap_or(0);
        let mut cancellation = Cancellation::new(env, &is_cancelled);
        // Small batches are handed over together.
        while open.bytes.len() - open.taken < room {
            open.bytes.drain(..open.taken);
            open.taken = 0;
            let bytes = &mut open.bytes;
            let mut put = |piece: &[u8]| {
                bytes.extend_from_slice(piece);
                Ok(())
            };
            if !open.files.next(&mut || cancellation.should_continue(), &mut put)? {
                break;
            }
        }
        let taken = &open.bytes[open.taken..][..room.min(open.bytes.len() - open.taken)];
        put(env, &buffer, 0, taken)?;
        open.taken += taken.len();
        Ok(if taken.is_empty() { END } else { jint::try_from(taken.len()).unwrap_or(jint::MAX) })
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_JoinedFiles_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `open`, and closes it once.
        drop(unsafe { Box::from_raw(handle as *mut OpenFiles) });
        Ok(())
    });
}

/// `static native void check(byte[] inputs, RemoteFiles files, int rule, int maxReaders, BooleanSupplier isCancelled)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_compact_JoinedFiles_check<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    packed: JByteArray<'local>,
    files: JObject<'local>,
    rule: jint,
    max_readers: jint,
    is_cancelled: JObject<'local>,
) {
    guard(&mut env, (), |env| {
        let NamedInputs { inputs, .. } = inputs(env, &packed)?;
        let (rule, max_readers) = (rule_from(rule), readers(max_readers));
        let remote = hadoop_source(env, &files, &packed)?;
        let mut cancellation = Cancellation::new(env, &is_cancelled);
        let mut should_continue = || cancellation.should_continue();
        let checked = match remote {
            Some(source) => check(source, &inputs, rule, max_readers, &mut should_continue),
            None => {
                let source = VolumeSource::new(&SharedProcessVolume::default());
                check(source, &inputs, rule, max_readers, &mut should_continue)
            }
        };
        checked.map_err(|error| failure(&error, error.input().and_then(|input| inputs.get(input))))
    });
}
