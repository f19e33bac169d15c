//! The engine for the JVM: converts arguments and results, holds native objects behind handles, turns failures and panics
//! into exceptions. What is done is done elsewhere ([`millstream_ops`], [`millstream_scan`]).
//!
//! A handle is the address of a boxed object that Java owns: `open` makes it, `close` frees it, and Java's
//! `AutoCloseable`s see to it that nothing is called after `close` and no two calls run at once.

mod cancellation;
mod compact;
mod exchange;
mod listing;
mod ranges;
mod scan;
mod volume;

use std::panic::{AssertUnwindSafe, catch_unwind};

use jni::JNIEnv;
use jni::objects::{JThrowable, JValue};

/// Why a native call fails.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// A call into the JVM failed; maybe a Java exception is already pending.
    #[error(transparent)]
    Jvm(#[from] jni::errors::Error),
    /// An argument that the engine cannot take.
    #[error("{0}")]
    Argument(&'static str),
    /// A file that is not there.
    #[error("{0}")]
    NoFile(String),
    /// A file that cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A file that is not as its checksums say, from a byte on.
    #[error("{message}")]
    Damaged { message: String, offset: u64 },
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The engine reported a failure.
    #[error("{0}")]
    Engine(String),
}

/// Runs `call`; what it returns as failure, or panics with, is thrown as a Java exception and replaced by `otherwise`.
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
        Failure::Argument(_) => "java/lang/IllegalArgumentException",
        Failure::NoFile(_) => "java/io/FileNotFoundException",
        Failure::Unreadable(_) => "java/io/IOException",
        Failure::Damaged { .. } => "org/apache/hadoop/fs/ChecksumException",
        Failure::Cancelled => "java/io/InterruptedIOException",
        Failure::Jvm(_) | Failure::Engine(_) => "java/lang/IllegalStateException",
    };
    if !env.exception_check().unwrap_or(true) {
        // If not even this works, the JVM has an exception of its own pending.
        let _ = match &failure {
            Failure::Damaged { message, offset } => throw_damaged(env, class, message, *offset),
            _ => env.throw_new(class, failure.to_string()),
        };
    }
    otherwise
}

/// Hadoop's exception takes the place of the error as well.
fn throw_damaged(env: &mut JNIEnv<'_>, class: &str, message: &str, offset: u64) -> jni::errors::Result<()> {
    let message = env.new_string(message)?;
    let arguments = [JValue::Object(&message), JValue::Long(offset as i64)];
    let thrown = env.new_object(class, "(Ljava/lang/String;J)V", &arguments)?;
    env.throw(JThrowable::from(thrown))
}
