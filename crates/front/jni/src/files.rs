//! `io.millstream.hadoop.tree.NativeFileList`.

use std::ptr;

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass};
use jni::sys::{JNI_TRUE, jboolean, jbyteArray};
use millstream_rsync_rules::Separator;
use millstream_rsync_rules::files::FileList;

use crate::arrays::{array, bytes};
use crate::{Failure, guard};

/// `static native byte[] resolve(byte[] content, boolean isNulSeparated)`: see Java.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeFileList_resolve<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    content: JByteArray<'local>,
    is_nul_separated: jboolean,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        let content = bytes(env, &content)?;
        let separator = if is_nul_separated == JNI_TRUE { Separator::Nul } else { Separator::Line };
        let list = FileList::parse(&content, separator).map_err(|bad| Failure::Refused(bad.to_string()))?;
        let mut packed = Vec::with_capacity(content.len() + 1);
        packed.push(u8::from(list.names_root()));
        for (path, with_contents) in list.paths() {
            packed.push(if with_contents { b'/' } else { b'.' });
            packed.extend_from_slice(path);
            packed.push(0);
        }
        array(env, &packed)
    })
}
