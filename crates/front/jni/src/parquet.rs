//! `io.millstream.hadoop.reading.NativeParquet`.

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass};
use jni::sys::jbyteArray;
use millstream_parquet::{Request, decode};

use crate::arrays::{array, bytes};
use crate::{Failure, guard};

/// `static native byte[] decoded(byte[] file, byte[] request)`: returns null if the file is left to Spark.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_reading_NativeParquet_decoded<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    file: JByteArray<'local>,
    request: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let request = Request::decode(&bytes(env, &request)?);
        let request = request.map_err(|_| Failure::Argument("a malformed request"))?;
        match decode(bytes(env, &file)?, &request) {
            Some(decoded) => array(env, &decoded.to_bytes()),
            None => Ok(std::ptr::null_mut()),
        }
    })
}
