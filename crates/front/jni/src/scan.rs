//! `io.millstream.hadoop.reading.NativeScan`.

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JLongArray, JObject};
use jni::sys::{JNI_FALSE, jboolean, jbyteArray, jint, jlong};
use millstream_codec::{DamageKind, Index};
use millstream_scan::{
    Batch, Cause, Damage, FileRange, Grouping, Missing, Output, Predicate, Progress, Rows, Scan, ScanError,
    ScanOptions, Separator, Source, Verification, VolumeSource,
};
use millstream_vfs::{Errno, errno_text};
use millstream_wire::Encoder;

use crate::arrays::{array, bytes};
use crate::cancellation::Cancellation;
use crate::ranges::{Packed, unpack};
use crate::remote::hadoop_source;
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

const WHOLE_FILES: jint = 1;
const COUNT: jint = 2;
const BY_RANGE: jint = 4;
const SKIP_MISSING: jint = 8;
const VERIFY: jint = 16;
const DISTINCT: jint = 32;
const PASS_OVER_DAMAGE: jint = 64;

/// Returned by `next` at the end, in place of a number of rows.
const END: jlong = -1;

const TOO_LONG: &str = "a line of more than 2 GB, or a file of more than 2 GB read as a single row; to skip long lines, \
    set mapreduce.input.linerecordreader.line.maxlength, or choose another lineSep to get shorter ones";

/// A scan of files wherever they are.
trait AnyScan {
    fn next_batch_while(
        &mut self,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<&Batch>, ScanError>;
    fn batch(&self) -> Option<&Batch>;
    fn progress(&self) -> Progress;
    fn take_indexes(&mut self) -> Vec<(usize, Index)>;
    fn stop(&mut self);
}

impl<S: Source> AnyScan for Scan<S> {
    fn next_batch_while(
        &mut self,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<&Batch>, ScanError> {
        Scan::next_batch_while(self, should_continue)
    }

    fn batch(&self) -> Option<&Batch> {
        Scan::batch(self)
    }

    fn progress(&self) -> Progress {
        Scan::progress(self)
    }

    fn take_indexes(&mut self) -> Vec<(usize, Index)> {
        Scan::take_indexes(self)
    }

    fn stop(&mut self) {
        Scan::stop(self);
    }
}

/// What a handle refers to.
type OpenScan = Box<dyn AnyScan>;

fn options(
    flags: jint,
    separator: &[u8],
    predicate: &[u8],
    words: &[u8],
    max_readers: jint,
) -> Result<ScanOptions, Failure> {
    let has = |flag| flags & flag != 0;
    let separator = match separator {
        [] => Separator::AnyNewline,
        bytes => Separator::Bytes(bytes.to_vec()),
    };
    Ok(ScanOptions {
        rows: if has(WHOLE_FILES) { Rows::WholeFiles } else { Rows::Lines(separator) },
        predicate: Predicate::decode(predicate).map_err(|_| Failure::Argument("a malformed predicate"))?,
        words: Some(words.to_vec()).filter(|separator| !separator.is_empty()),
        output: if has(COUNT) {
            Output::Count
        } else if has(DISTINCT) {
            Output::Distinct
        } else {
            Output::Values
        },
        grouping: if has(BY_RANGE) { Grouping::ByRange } else { Grouping::Any },
        missing: if has(SKIP_MISSING) { Missing::Skip } else { Missing::Fail },
        verification: if has(VERIFY) { Verification::Checksums } else { Verification::None },
        damage: if has(PASS_OVER_DAMAGE) { Damage::PassOver } else { Damage::Fail },
        max_readers: usize::try_from(max_readers).unwrap_or(0),
    })
}

/// The ranges that Java packed.
pub(crate) fn ranges(packed: &[u8]) -> Option<Vec<FileRange>> {
    unpack(packed).ok()?.iter().map(Packed::range).collect()
}

/// What Java is told of an error.
pub(crate) fn failure(error: &ScanError) -> Failure {
    let message = match &error.cause {
        Cause::Interrupted => return Failure::Cancelled,
        Cause::Volume(cause) if cause.errno == Errno::OVERFLOW => TOO_LONG.into(),
        Cause::Volume(cause) => errno_text(cause.errno),
        Cause::Shortened { .. } => return Failure::Ended(error.cause.to_string()),
        Cause::Damaged(damage) if damage.kind == DamageKind::Truncated => {
            return Failure::Ended(damage.to_string());
        }
        Cause::Damaged(damage) => damage.to_string(),
        Cause::Checksum { offset } => {
            return Failure::Damaged { message: error.cause.to_string(), offset: *offset };
        }
    };
    if error.cause.is_missing() { Failure::NoFile(message) } else { Failure::Unreadable(message) }
}

/// `static native boolean isValid(byte[] predicate)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_isValid<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    predicate: JByteArray<'local>,
) -> jboolean {
    guard(&mut env, JNI_FALSE, |env| Ok(jboolean::from(Predicate::decode(&bytes(env, &predicate)?).is_ok())))
}

/// `static native long open(byte[] ranges, RemoteFiles files, byte[] separator, byte[] predicate, byte[] words, int
/// flags, int maxReaders)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    packed: JByteArray<'local>,
    files: JObject<'local>,
    separator: JByteArray<'local>,
    predicate: JByteArray<'local>,
    words: JByteArray<'local>,
    flags: jint,
    max_readers: jint,
) -> jlong {
    guard(&mut env, 0, |env| {
        let separator = bytes(env, &separator)?;
        let predicate = bytes(env, &predicate)?;
        let words = bytes(env, &words)?;
        let options = options(flags, &separator, &predicate, &words, max_readers)?;
        let ranges = ranges(&bytes(env, &packed)?).ok_or(Failure::Argument("malformed file ranges"))?;
        let scan: OpenScan = match hadoop_source(env, &files, &packed)? {
            Some(source) => Box::new(Scan::new(source, ranges, options)),
            None => Box::new(Scan::new(VolumeSource::new(&SharedProcessVolume::default()), ranges, options)),
        };
        Ok(Box::into_raw(Box::new(scan)) as jlong)
    })
}

/// `static native long next(long handle, long[] batch, BooleanSupplier isCancelled)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_next<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    out: JLongArray<'local>,
    is_cancelled: JObject<'local>,
) -> jlong {
    guard(&mut env, END, |env| {
        // SAFETY: Java got the handle from `open`, makes one call at a time and none after `close`.
        let scan = unsafe { &mut *(handle as *mut OpenScan) };
        let mut cancellation = Cancellation::new(env, &is_cancelled);
        let (rows, batch) = match scan.next_batch_while(&mut || cancellation.should_continue()) {
            Ok(None) => (END, None),
            Ok(Some(batch)) => {
                let (bytes, lines) = (batch.bytes().as_ptr() as jlong, batch.lines().as_ptr() as jlong);
                let counts = [batch.counts().as_ptr() as jlong, batch.occurrences() as jlong];
                env.set_long_array_region(&out, 8, &counts)?;
                (batch.rows() as jlong, Some([bytes, lines, batch.range() as jlong, batch.offset() as jlong]))
            }
            // `isCancelled` itself has thrown an exception, which is already pending.
            Err(error) if env.exception_check()? => return Err(failure(&error)),
            Err(error) => {
                // Java looks up the file of this range for its message.
                env.set_long_array_region(&out, 2, &[error.range as jlong])?;
                return Err(failure(&error));
            }
        };
        if let Some(batch) = batch {
            env.set_long_array_region(&out, 0, &batch)?;
        }
        let progress = scan.progress();
        let waited = jlong::try_from(progress.waited.as_nanos()).unwrap_or(jlong::MAX);
        let counts = [progress.bytes as jlong, progress.files as jlong, progress.missing as jlong, waited];
        env.set_long_array_region(&out, 4, &counts)?;
        Ok(rows)
    })
}

/// `static native byte[] row(long handle, int index)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_row<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    index: jint,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: Java got the handle from `open`, makes one call at a time and none after `close`.
        let scan = unsafe { &*(handle as *const OpenScan) };
        let row = usize::try_from(index).ok().and_then(|index| scan.batch()?.row(index));
        array(env, row.ok_or(Failure::Argument("no such row"))?)
    })
}

/// `static native byte[] takeIndexes(long handle)`: for each index that was made, its range as a `u32` and the prefixed
/// bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_takeIndexes<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        // SAFETY: Java got the handle from `open`, makes one call at a time and none after `close`.
        let scan = unsafe { &mut *(handle as *mut OpenScan) };
        let mut out = Encoder::default();
        for (range, index) in scan.take_indexes() {
            out.u32(u32::try_from(range).map_err(|_| Failure::Argument("too many ranges"))?);
            out.prefixed(&index.encode());
        }
        array(env, &out.into_bytes())
    })
}

/// `static native void stop(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_stop<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `open`, makes one call at a time and none after `close`.
        unsafe { &mut *(handle as *mut OpenScan) }.stop();
        Ok(())
    });
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeScan_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `open`, and closes it once.
        drop(unsafe { Box::from_raw(handle as *mut OpenScan) });
        Ok(())
    });
}
