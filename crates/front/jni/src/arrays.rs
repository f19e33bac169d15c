//! Java's byte arrays.

use jni::JNIEnv;
use jni::objects::JByteArray;
use jni::sys::{jbyte, jbyteArray, jint};

use crate::Failure;

/// The bytes of an array.
pub(crate) fn bytes(env: &JNIEnv<'_>, array: &JByteArray<'_>) -> Result<Vec<u8>, Failure> {
    Ok(env.convert_byte_array(array)?)
}

/// A new array, which a native method returns.
pub(crate) fn array(env: &JNIEnv<'_>, bytes: &[u8]) -> Result<jbyteArray, Failure> {
    Ok(env.byte_array_from_slice(bytes)?.into_raw())
}

/// Copies bytes into an array, from `start` on.
pub(crate) fn put(
    env: &JNIEnv<'_>,
    array: &JByteArray<'_>,
    start: jint,
    bytes: &[u8],
) -> Result<(), Failure> {
    // SAFETY: `u8` and `i8` have the same size and alignment, and every byte is a value of both.
    let signed = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<jbyte>(), bytes.len()) };
    Ok(env.set_byte_array_region(array, start, signed)?)
}
