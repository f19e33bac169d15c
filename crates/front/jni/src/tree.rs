//! `io.millstream.hadoop.tree.NativeTree`.
//!
//! Entries as Java reads them, of a directory or one of a status:
//!
//! ```text
//! prefixed mount    path of the mount point that the directory is, or is below; empty if there is none
//! then to the end, for each entry:
//!   u8 kind         0 file, 1 directory, 2 symbolic link, 3 pipe, 4 socket, 5 character device, 6 block device,
//!                   7 cannot be examined
//!   prefixed name   empty for a status
//!   prefixed text   where a link leads; for 7, the message; otherwise empty
//!   u64 size, i64 mtime in nanoseconds since 1970, u32 mode, u64 uid, u64 gid, u8 whether something is mounted on it,
//!   u64 device, u64 inode, u64 number of links, u64 number of a device, prefixed checksum of access control lists, prefixed
//!   checksum of other extended attributes; both are empty or have 16 bytes (from the size on: not for 7)
//! ```

use std::cell::RefCell;
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, LazyLock};

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass, JLongArray, JObject};
use jni::sys::{jboolean, jbyte, jbyteArray, jint, jlong};
use millstream_text::accounts;
use millstream_transfer::tree::{
    Carried, Entry, Listing, Removed, SourceChange, Sparse, Special, Staged, Tree, TreeError, Verification,
    Wanted,
};
use millstream_version::Version;
use millstream_vfs::{At, Dir, Errno, Error, File, FileKind, NodeKind, Operation, Timestamp, Volume};
use millstream_wire::Encoder;

use crate::arrays::{array, bytes, put};
use crate::compact::c_string;
use crate::numbered::Numbered;
use crate::volume::SharedProcessVolume;
use crate::{Failure, guard};

type LocalTree = Tree<SharedProcessVolume>;
type LocalFile = <<SharedProcessVolume as Volume>::Dir as Dir>::File;
type LocalListing = Listing<SharedProcessVolume>;
pub(crate) type LocalStaged = Staged<SharedProcessVolume>;

static TREES: LazyLock<Numbered<LocalTree>> = LazyLock::new(Numbered::default);

const XATTRS: jint = 1;
const ACLS: jint = 2;
const SPARSE: jint = 4;

/// Kinds of entries.
const PIPE: u8 = 3;
const SOCKET: u8 = 4;
const CHARACTER_DEVICE: u8 = 5;
const BLOCK_DEVICE: u8 = 6;
const FAILED: u8 = 7;

/// Stands for an owner, a group or a mode that is not wanted.
const NONE: jint = -1;
/// Stands for a time that is not wanted.
const NO_TIME: jlong = jlong::MIN;

/// Most bytes that are read or written at once.
const MAX_PIECE: usize = 1 << 20;
/// Returned by reads at the end of a file.
const END: jint = -1;

thread_local! {
    static PIECE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What this thread does with a tree, even if another one closes it meanwhile.
pub(crate) fn tree(number: jlong) -> Result<Arc<LocalTree>, Failure> {
    // Java closes it when its task ends.
    TREES.get(number).ok_or(Failure::Cancelled)
}

pub(crate) fn failure(error: &TreeError) -> Failure {
    let text = error.to_string();
    match error.errno() {
        Some(Errno::NOENT) => Failure::NoFile(text),
        Some(Errno::ACCESS | Errno::PERM) => Failure::Denied(text),
        Some(Errno::CANCELED) => Failure::Cancelled,
        _ => Failure::Unreadable(text),
    }
}

fn wanted(uid: jint, gid: jint, mode: jint, mtime: jlong) -> Wanted {
    Wanted {
        uid: (uid != NONE).then_some(uid as u32),
        gid: (gid != NONE).then_some(gid as u32),
        mode: (mode != NONE).then_some(mode as u32),
        mtime: (mtime != NO_TIME).then(|| Timestamp::from_nanos(mtime)),
    }
}

fn encode(out: &mut Encoder, name: &[u8], entry: &Entry) {
    let Entry { metadata, target, acls, xattrs } = entry;
    out.u8(match metadata.kind() {
        FileKind::File => 0,
        FileKind::Directory => 1,
        FileKind::Symlink => 2,
        FileKind::Fifo => PIPE,
        FileKind::Socket => SOCKET,
        FileKind::CharDevice => CHARACTER_DEVICE,
        FileKind::BlockDevice => BLOCK_DEVICE,
        FileKind::Unknown => return encode_failed(out, name, Error::new(Operation::Stat, Errno::OPNOTSUPP)),
    });
    out.prefixed(name);
    out.prefixed(target);
    out.u64(metadata.size);
    out.i64(metadata.mtime.as_nanos());
    out.u32(metadata.mode & 0o7777);
    out.u64(metadata.uid.into());
    out.u64(metadata.gid.into());
    out.u8(metadata.is_mount_root.into());
    out.u64(metadata.dev);
    out.u64(metadata.ino);
    out.u64(metadata.nlink);
    out.u64(metadata.rdev);
    for checksum in [acls, xattrs] {
        out.prefixed(&checksum.map(u128::to_be_bytes).map_or(Vec::new(), Vec::from));
    }
}

fn encode_failed(out: &mut Encoder, name: &[u8], error: Error) {
    out.u8(FAILED);
    out.prefixed(name);
    out.prefixed(error.to_string().as_bytes());
}

/// `static native long open(byte[] root, int carried, long bytesPerSecond)`: a number. A rate of 0 is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_open<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    root: JByteArray<'local>,
    carried: jint,
    bytes_per_second: jlong,
) -> jlong {
    guard(&mut env, 0, |env| {
        let root = bytes(env, &root).and_then(c_string)?;
        let carried = Carried {
            xattrs: carried & XATTRS != 0,
            acls: carried & ACLS != 0,
            sparse: if carried & SPARSE != 0 { Sparse::Always } else { Sparse::Auto },
            bytes_per_second: u64::try_from(bytes_per_second).ok().filter(|&rate| rate > 0),
        };
        Ok(TREES.add(Tree::new(SharedProcessVolume::default(), root, carried)))
    })
}

/// `static native void close(long tree)`: ends copies into it that are under way.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_close<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    number: jlong,
) {
    guard(&mut env, (), |_| {
        if let Some(tree) = TREES.close(number) {
            tree.cancel();
        }
        Ok(())
    });
}

/// `native byte[] status(long tree, byte[] path)`: null if there is nothing.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_status<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        let path = bytes(env, &path)?;
        let Some(entry) = tree(number)?.status(&path).map_err(|error| failure(&error))? else {
            return Ok(ptr::null_mut());
        };
        let mut out = Encoder::with_capacity(128);
        out.prefixed(b"");
        encode(&mut out, b"", &entry);
        array(env, &out.into_bytes())
    })
}

/// `native long list(long tree, byte[] path)`: a handle.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_list<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let path = bytes(env, &path)?;
        let listing = tree(number)?.list(&path).map_err(|error| failure(&error))?;
        Ok(Box::into_raw(Box::new(listing)) as jlong)
    })
}

/// `static native byte[] nextEntries(long listing)`: null at the end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_nextEntries<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        // SAFETY: Java got the handle from `list`, makes one call at a time and none after `closeListing`.
        let listing = unsafe { &mut *(handle as *mut LocalListing) };
        let mut out = Encoder::with_capacity(16 << 10);
        out.prefixed(listing.mount().unwrap_or_default());
        let more = listing.next(&mut |name, entry| match entry {
            Ok(entry) => encode(&mut out, name.to_bytes(), &entry),
            Err(error) => encode_failed(&mut out, name.to_bytes(), error),
        });
        match more.map_err(|error| failure(&error))? {
            true => array(env, &out.into_bytes()),
            false => Ok(ptr::null_mut()),
        }
    })
}

/// `static native void closeListing(long listing)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_closeListing<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `list`, and closes it once.
        drop(unsafe { Box::from_raw(handle as *mut LocalListing) });
        Ok(())
    });
}

/// `native void makeDirectory(long tree, byte[] path)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_makeDirectory<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        let path = bytes(env, &path)?;
        tree(number)?.make_directory(&path).map_err(|error| failure(&error))
    });
}

/// The tree that extended attributes come from; none for 0.
fn origin(number: jlong) -> Result<Option<Arc<LocalTree>>, Failure> {
    if number == 0 { Ok(None) } else { tree(number).map(Some) }
}

/// `native byte[] makeSpecial(long tree, byte[] path, int kind, byte[] target, long device, byte[] temporary, long
/// from, int uid, int gid, int mode, long mtime)`: which attribute it lacks, or null. `target` is that of a link,
/// `device` the number of a device, `from` another tree or 0.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_makeSpecial<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
    kind: jint,
    target: JByteArray<'local>,
    device: jlong,
    temporary: JByteArray<'local>,
    from: jlong,
    uid: jint,
    gid: jint,
    mode: jint,
    mtime: jlong,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        let path = bytes(env, &path)?;
        let target = bytes(env, &target).and_then(c_string)?;
        let temporary = bytes(env, &temporary).and_then(c_string)?;
        let special = match u8::try_from(kind) {
            Ok(PIPE) => Special::Node(NodeKind::Fifo),
            Ok(SOCKET) => Special::Node(NodeKind::Socket),
            Ok(CHARACTER_DEVICE) => Special::Node(NodeKind::CharDevice(device as u64)),
            Ok(BLOCK_DEVICE) => Special::Node(NodeKind::BlockDevice(device as u64)),
            _ => Special::Symlink(&target),
        };
        let how = (origin(from)?, wanted(uid, gid, mode, mtime));
        let made = tree(number)?.make_special(&path, special, &temporary, (how.0.as_deref(), &how.1));
        lacking(env, made)
    })
}

/// The message about an attribute that an entry has not got; null if it has all.
fn lacking(env: &JNIEnv<'_>, made: Result<Option<TreeError>, TreeError>) -> Result<jbyteArray, Failure> {
    match made.map_err(|error| failure(&error))? {
        Some(lacking) => array(env, lacking.to_string().as_bytes()),
        None => Ok(ptr::null_mut()),
    }
}

/// `native void makeHardLink(long tree, byte[] path, byte[] other, byte[] temporary)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_makeHardLink<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
    other: JByteArray<'local>,
    temporary: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        let (path, other) = (bytes(env, &path)?, bytes(env, &other)?);
        let temporary = bytes(env, &temporary).and_then(c_string)?;
        tree(number)?.make_hard_link(&path, &other, &temporary).map_err(|error| failure(&error))
    });
}

/// `native void setAttributes(long tree, byte[] path, long from, int uid, int gid, int mode, long mtime)`: `from` is
/// another tree or 0.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_setAttributes<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
    from: jlong,
    uid: jint,
    gid: jint,
    mode: jint,
    mtime: jlong,
) {
    guard(&mut env, (), |env| {
        let path = bytes(env, &path)?;
        let from = origin(from)?;
        let set = tree(number)?.set_attributes(&path, (from.as_deref(), &wanted(uid, gid, mode, mtime)));
        set.map_err(|error| failure(&error))
    });
}

/// `native int remove(long tree, byte[] path)`: the ordinal of a `Removal`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_remove<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
) -> jint {
    guard(&mut env, 0, |env| {
        let path = bytes(env, &path)?;
        Ok(match tree(number)?.remove(&path).map_err(|error| failure(&error))? {
            Removed::Done => 0,
            Removed::Gone => 1,
            Removed::NotEmpty => 2,
            Removed::Mounted => 3,
        })
    })
}

/// `native void removeTree(long tree, byte[] path)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_removeTree<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
) {
    guard(&mut env, (), |env| {
        let path = bytes(env, &path)?;
        tree(number)?.remove_tree(&path).map_err(|error| failure(&error))
    });
}

/// `native long openFile(long tree, byte[] path)`: a handle.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_openFile<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let path = bytes(env, &path)?;
        let file = tree(number)?.open(&path).map_err(|error| failure(&error))?;
        Ok(Box::into_raw(Box::new(file)) as jlong)
    })
}

/// Reads up to `length` bytes into an array; the number of bytes, or `END`.
fn read_into(
    env: &mut JNIEnv<'_>,
    out: &JByteArray<'_>,
    (start, length): (jint, jint),
    read: impl FnOnce(&mut [u8]) -> Result<usize, Failure>,
) -> Result<jint, Failure> {
    let length = usize::try_from(length).unwrap_or(0).min(MAX_PIECE);
    PIECE.with_borrow_mut(|piece| {
        if piece.len() < length {
            piece.resize(length, 0);
        }
        let read = read(&mut piece[..length])?;
        put(env, out, start, &piece[..read])?;
        Ok(if read == 0 && length > 0 { END } else { read as jint })
    })
}

/// `static native int readFile(long file, long offset, byte[] out, int start, int length)`: the number of bytes; -1 at
/// the end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_readFile<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    offset: jlong,
    out: JByteArray<'local>,
    start: jint,
    length: jint,
) -> jint {
    guard(&mut env, END, |env| {
        // SAFETY: Java got the handle from `openFile`, and makes no call after `closeFile`.
        let file = unsafe { &*(handle as *const LocalFile) };
        read_into(env, &out, (start, length), |piece| {
            file.read(piece, At::Offset(offset as u64))
                .map_err(|error| Failure::Unreadable(error.to_string()))
        })
    })
}

/// `static native void closeFile(long file)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_closeFile<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `openFile`, and closes it once.
        drop(unsafe { Box::from_raw(handle as *mut LocalFile) });
        Ok(())
    });
}

/// `native long stage(long tree, byte[] path, byte[] temporary, int uid, int gid, int mode, long mtime)`: a handle.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_stage<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    path: JByteArray<'local>,
    temporary: JByteArray<'local>,
    uid: jint,
    gid: jint,
    mode: jint,
    mtime: jlong,
) -> jlong {
    guard(&mut env, 0, |env| {
        let path = bytes(env, &path)?;
        let temporary = bytes(env, &temporary).and_then(c_string)?;
        let staged = tree(number)?.stage(&path, &temporary, &wanted(uid, gid, mode, mtime));
        Ok(Box::into_raw(Box::new(staged.map_err(|error| failure(&error))?)) as jlong)
    })
}

/// `native long copy(long tree, long from, byte[] path, long size, long time, byte[] temporary, int uid, int gid, int
/// mode, long mtime, boolean verify, long[] out)`: a handle of a staged file, 0 if the source is another version than
/// the one of that size and time. `out` gets the length of the copy, the ordinal of a `SourceChange`, and the halves of
/// the checksum.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_copy<'local>(
    mut env: JNIEnv<'local>,
    _this: JObject<'local>,
    number: jlong,
    from: jlong,
    path: JByteArray<'local>,
    size: jlong,
    time: jlong,
    temporary: JByteArray<'local>,
    uid: jint,
    gid: jint,
    mode: jint,
    mtime: jlong,
    verify: jboolean,
    out: JLongArray<'local>,
) -> jlong {
    guard(&mut env, 0, |env| {
        let path = bytes(env, &path)?;
        let temporary = bytes(env, &temporary).and_then(c_string)?;
        let expected = Version::at(size as u64, Timestamp::from_nanos(time));
        let verification = if verify == 0 { Verification::None } else { Verification::Checksum };
        let how = (temporary.as_c_str(), &wanted(uid, gid, mode, mtime));
        let copied = tree(number)?.copy_from(&*tree(from)?, &path, &expected, how, verification);
        let copied = copied.map_err(|error| failure(&error))?;
        let change = match copied.change {
            SourceChange::Unchanged => 0,
            SourceChange::Grown => 1,
            SourceChange::Changed => 2,
        };
        let checksum = copied.checksum.unwrap_or_default();
        let values = [copied.bytes as jlong, change, (checksum >> 64) as jlong, checksum as jlong];
        env.set_long_array_region(&out, 0, &values)?;
        Ok(copied.staged.map_or(0, |staged| Box::into_raw(Box::new(staged)) as jlong))
    })
}

/// `static native void write(long staged, long offset, byte[] bytes, int start, int length)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_write<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    offset: jlong,
    from: JByteArray<'local>,
    start: jint,
    length: jint,
) {
    guard(&mut env, (), |env| {
        // SAFETY: Java got the handle from `stage` or `copy`, and makes no call after `install` or `discard`.
        let staged = unsafe { &*(handle as *const LocalStaged) };
        let (mut offset, mut start) = (offset as u64, start);
        let mut left = usize::try_from(length).unwrap_or(0);
        PIECE.with_borrow_mut(|piece| {
            while left > 0 {
                let length = left.min(MAX_PIECE);
                if piece.len() < length {
                    piece.resize(length, 0);
                }
                // SAFETY: the bytes of `u8` are those of `i8`, and all of them are valid.
                let signed =
                    unsafe { std::slice::from_raw_parts_mut(piece.as_mut_ptr().cast::<jbyte>(), length) };
                env.get_byte_array_region(&from, start, signed)?;
                staged.write(&piece[..length], offset).map_err(|error| failure(&error))?;
                offset += length as u64;
                start += length as jint;
                left -= length;
            }
            Ok(())
        })
    });
}

/// `static native int read(long staged, long offset, byte[] out, int start, int length)`: the number of bytes; -1 at
/// the end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_read<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    offset: jlong,
    out: JByteArray<'local>,
    start: jint,
    length: jint,
) -> jint {
    guard(&mut env, END, |env| {
        // SAFETY: Java got the handle from `stage` or `copy`, and makes no call after `install` or `discard`.
        let staged = unsafe { &*(handle as *const LocalStaged) };
        read_into(env, &out, (start, length), |piece| {
            staged.read(piece, offset as u64).map_err(|error| failure(&error))
        })
    })
}

/// `static native void keepTime(long staged, long mtime)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_keepTime<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
    mtime: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `stage` or `copy`, makes one call at a time and none after `install` or
        // `discard`.
        let staged = unsafe { &mut *(handle as *mut LocalStaged) };
        staged.keep_time(Timestamp::from_nanos(mtime));
        Ok(())
    });
}

/// `static native byte[] install(long staged)`: which attribute the file lacks, or null. The handle is gone afterwards,
/// even after an error.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_install<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        // SAFETY: Java got the handle from `stage` or `copy`, and makes no call after this one.
        let staged = unsafe { Box::from_raw(handle as *mut LocalStaged) };
        lacking(env, staged.install())
    })
}

/// `static native void discard(long staged)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_discard<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    guard(&mut env, (), |_| {
        // SAFETY: Java got the handle from `stage` or `copy`, and makes no call after this one.
        drop(unsafe { Box::from_raw(handle as *mut LocalStaged) });
        Ok(())
    });
}

/// `static native byte[] accountName(boolean isGroup, int id)`: null if it has none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_accountName<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    is_group: jboolean,
    id: jint,
) -> jbyteArray {
    guard(&mut env, ptr::null_mut(), |env| {
        let look_up = if is_group == 0 { accounts::user_name } else { accounts::group_name };
        match look_up(id as u32) {
            Some(name) => array(env, &name),
            None => Ok(ptr::null_mut()),
        }
    })
}

/// `static native int accountId(boolean isGroup, byte[] name)`: -1 if there is no such account.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeTree_accountId<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    is_group: jboolean,
    name: JByteArray<'local>,
) -> jint {
    guard(&mut env, NONE, |env| {
        let name: CString = bytes(env, &name).and_then(c_string)?;
        let look_up = if is_group == 0 { accounts::user_id } else { accounts::group_id };
        Ok(look_up(&name).map_or(NONE, |id| id as jint))
    })
}

#[cfg(test)]
mod tests {
    use millstream_vfs::{Error, Metadata, Operation};

    use super::*;

    /// Java's `NativeTreeTest` reads the same bytes.
    #[test]
    fn entries_are_the_shared_vector() {
        let mut out = Encoder::default();
        out.prefixed(b"m\xff");
        let metadata = Metadata {
            mode: 0o120_777,
            size: 3,
            uid: u32::MAX - 1,
            gid: 7,
            mtime: Timestamp { sec: -2, nsec: 999_999_999 },
            is_mount_root: true,
            dev: 5,
            ino: u64::MAX,
            nlink: 3,
            rdev: 0x301,
            ..Metadata::default()
        };
        let acls = Some(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
        encode(&mut out, b"l\xfe", &Entry { metadata, target: b"to".to_vec(), acls, xattrs: None });
        encode_failed(&mut out, b"bad", Error::new(Operation::Stat, Errno::IO));
        assert_eq!(out.into_bytes(), millstream_wire::vector("tree-entries.hex"));
    }

    #[test]
    fn what_is_not_wanted_is_left_out() {
        assert_eq!(wanted(NONE, NONE, NONE, NO_TIME), Wanted::default());
        let all = wanted(-2, 0, 0o4755, -1);
        assert_eq!((all.uid, all.gid, all.mode), (Some(u32::MAX - 1), Some(0), Some(0o4755)));
        assert_eq!(all.mtime, Some(Timestamp { sec: -1, nsec: 999_999_999 }));
    }
}
