//! `io.millstream.hadoop.natives.NativeExchange`.

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass};
use jni::sys::jint;
use millstream_compact::exchange::{Exchange, Outcome, exchange};

use crate::arrays::bytes;
use crate::compact::c_string;
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

/// `static native int exchange(byte[] root, byte[] token, byte[] made, byte[] place, byte[] witness)`: returns the
/// ordinal of an `Outcome`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_natives_NativeExchange_exchange<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    root: JByteArray<'local>,
    token: JByteArray<'local>,
    made: JByteArray<'local>,
    place: JByteArray<'local>,
    witness: JByteArray<'local>,
) -> jint {
    guard(&mut env, 0, |env| {
        let path = |array| bytes(env, array).and_then(c_string);
        let (root, token, new) = (path(&root)?, path(&token)?, path(&made)?);
        let (place, witness) = (path(&place)?, path(&witness)?);
        let what = Exchange { token: &token, new: &new, place: &place, witness: &witness };
        let done = exchange(&SharedProcessVolume::default(), &root, &what);
        Ok(match done.map_err(|error| Failure::Unreadable(error.to_string()))? {
            Outcome::Exchanged => 0,
            Outcome::DoneBefore => 1,
            Outcome::Over => 2,
            Outcome::Busy => 3,
        })
    })
}
