//! `io.millstream.hadoop.codec.DecodedInputStream`.

use std::io::{self, Read};

use jni::objects::{GlobalRef, JByteArray, JClass, JObject, JValue};
use jni::sys::{jbyte, jint, jlong};
use jni::{JNIEnv, JavaVM};
use millstream_codec::{Codec, Decoder};

use crate::arrays::put;
use crate::{Failure, guard};

/// Compressed bytes that one call gets from Java.
const PIECE: usize = 128 << 10;
/// Decoded bytes that one call gives to Java, at most.
const DECODED: usize = 128 << 10;
/// Returned by `read` at the end, in place of a number of bytes.
const END: jint = -1;

/// A Java `InputStream`. It is read on the thread that calls the decoder, so its exception reaches the caller.
struct Compressed {
    vm: JavaVM,
    stream: GlobalRef,
    /// A `byte[]` of `PIECE` bytes.
    piece: GlobalRef,
}

impl Compressed {
    fn read_piece(&self, out: &mut [i8]) -> jni::errors::Result<usize> {
        let mut env = self.vm.get_env()?;
        let arguments = [JValue::Object(&self.piece), JValue::Int(0), JValue::Int(out.len() as jint)];
        // Unlike `read`, it returns 0 at the end only.
        let read = env.call_method(&self.stream, "readNBytes", "([BII)I", &arguments)?.i()?;
        let read = usize::try_from(read).unwrap_or(0).min(out.len());
        // SAFETY: `piece` is a `byte[]`; the copy of the reference is neither deleted nor used after `self`.
        let piece = unsafe { JByteArray::from_raw(self.piece.as_obj().as_raw()) };
        env.get_byte_array_region(&piece, 0, &mut out[..read])?;
        Ok(read)
    }
}

impl Read for Compressed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = out.len().min(PIECE);
        // SAFETY: the bytes of `i8` are those of `u8`, and any are valid.
        let signed = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<jbyte>(), length) };
        self.read_piece(signed).map_err(io::Error::other)
    }
}

/// What a handle refers to.
struct Decoded {
    decoder: Decoder<Compressed>,
    buffer: Vec<u8>,
}

/// `static native long open(int codec, InputStream compressed)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_codec_DecodedInputStream_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    codec: jint,
    compressed: JObject<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let codec = u8::try_from(codec).ok().and_then(Codec::from_code);
        let codec = codec.ok_or(Failure::Argument("no such codec"))?;
        let piece = env.new_byte_array(PIECE as jint)?;
        let input = Compressed {
            vm: env.get_java_vm()?,
            stream: env.new_global_ref(compressed)?,
            piece: env.new_global_ref(piece)?,
        };
        let decoded = Decoded { decoder: Decoder::new(codec, input), buffer: Vec::new() };
        Ok(Box::into_raw(Box::new(decoded)) as jlong)
    })
}

/// `static native int read(long handle, byte[] out, int offset, int length)`: the number of bytes; -1 at the end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_codec_DecodedInputStream_read<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    out: JByteArray<'local>,
    offset: jint,
    length: jint,
) -> jint {
    guard(&mut env, END, |env| {
        // SAFETY: Java got the handle from `open`, makes one call at a time and none after `close`.
        let decoded = unsafe { &mut *(handle as *mut Decoded) };
        let wanted = usize::try_from(length).unwrap_or(0).min(DECODED);
        if decoded.buffer.len() < wanted {
            decoded.buffer.resize(wanted, 0);
        }
        let bytes = &mut decoded.buffer[..wanted];
        let read = decoded.decoder.read(bytes).map_err(|error| Failure::Unreadable(error.to_string()))?;
        put(env, &out, offset, &bytes[..read])?;
        Ok(if read == 0 { END } else { read as jint })
    })
}

/// `static native void close(long handle)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_codec_DecodedInputStream_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `open`, and closes it once.
        drop(unsafe { Box::from_raw(handle as *mut Decoded) });
        Ok(())
    });
}
