//! The JVM's interface to the engine: converts arguments and results, keeps native objects behind handles, and turns
//! failures and panics into exceptions. The work itself is in the crates of operations, [`millstream_scan`],
//! [`millstream_parquet`] and [`millstream_s3`].
//!
//! A handle is the address of a boxed object that Java owns: `open` creates it, `close` frees it. Java's
//! `AutoCloseable` classes guarantee that no call follows `close`, and that no two calls on a handle overlap, unless
//! its module says otherwise. What several threads use at once has a number instead, by which a call finds it as long
//! as it is open ([`numbered`]).

mod arrays;
mod cancellation;
mod compact;
mod decoded;
mod exchange;
mod files;
mod filter;
mod index;
mod joined;
mod listing;
mod numbered;
mod parquet;
mod ranges;
mod remote;
mod s3;
mod scan;
mod sync_rules;
mod table_logs;
mod transfers;
mod tree;
mod upcall;
mod volume;

use std::panic::{AssertUnwindSafe, catch_unwind};

use jni::JNIEnv;
use jni::objects::{JThrowable, JValue};

/// The reason a native call fails.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// A call into the JVM failed; a Java exception may already be pending.
    #[error(transparent)]
    Jvm(#[from] jni::errors::Error),
    /// An invalid argument.
    #[error("{0}")]
    Argument(&'static str),
    /// What the user has written is wrong; the message says how.
    #[error("{0}")]
    Refused(String),
    /// A file does not exist.
    #[error("{0}")]
    NoFile(String),
    /// A file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The user may not do that.
    #[error("{0}")]
    Denied(String),
    /// A file is not the one that was listed, or its contents do not allow what is to be done with it: another attempt
    /// fails, too.
    #[error("{0}")]
    Unfit(String),
    /// A file ends before the data to read.
    #[error("{0}")]
    Ended(String),
    /// A file does not match its checksums; `offset` is the start of the first bad chunk.
    #[error("{message}")]
    Damaged { message: String, offset: u64 },
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The engine reported a failure.
    #[error("{0}")]
    Engine(String),
}

/// Runs `call`. A failure or a panic is thrown as a Java exception, and `otherwise` is returned.
fn guard<'local, T>(
    env: &mut JNIEnv<'local>,
    otherwise: T,
    call: impl FnOnce(&mut JNIEnv<'local>) -> Result<T, Failure>,
) -> T {
    let failure = match catch_unwind(AssertUnwindSafe(|| call(env))) {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::Engine("panic in native code".into()),
    };
    let class = match failure {
        Failure::Argument(_) | Failure::Refused(_) => "java/lang/IllegalArgumentException",
        Failure::NoFile(_) => "java/io/FileNotFoundException",
        Failure::Unreadable(_) => "java/io/IOException",
        Failure::Denied(_) => "java/nio/file/AccessDeniedException",
        Failure::Unfit(_) => "io/millstream/hadoop/natives/UnfitFileException",
        Failure::Ended(_) => "java/io/EOFException",
        Failure::Damaged { .. } => "org/apache/hadoop/fs/ChecksumException",
        Failure::Cancelled => "java/io/InterruptedIOException",
        Failure::Jvm(_) | Failure::Engine(_) => "java/lang/IllegalStateException",
    };
    if !env.exception_check().unwrap_or(true) {
        // If this fails too, the JVM has an exception of its own pending.
        let _ = match &failure {
            Failure::Damaged { message, offset } => throw_damaged(env, class, message, *offset),
            _ => env.throw_new(class, failure.to_string()),
        };
    }
    otherwise
}

/// Hadoop's exception also carries the offset of the error.
fn throw_damaged(env: &mut JNIEnv<'_>, class: &str, message: &str, offset: u64) -> jni::errors::Result<()> {
    let message = env.new_string(message)?;
    let arguments = [JValue::Object(&message), JValue::Long(offset as i64)];
    let thrown = env.new_object(class, "(Ljava/lang/String;J)V", &arguments)?;
    env.throw(JThrowable::from(thrown))
}
