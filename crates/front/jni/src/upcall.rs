//! Calls into the JVM from threads of the engine.

use jni::{JNIEnv, JavaVM};

/// References of a call to objects in the JVM.
const LOCAL_REFERENCES: i32 = 8;

/// Calls into the JVM. `None` after an exception, which Java's side keeps for its caller if it is one of input and
/// output.
pub(crate) fn call<T>(
    vm: &JavaVM,
    body: impl FnOnce(&mut JNIEnv<'_>) -> jni::errors::Result<T>,
) -> Option<T> {
    let mut env = vm.attach_current_thread_as_daemon().ok()?;
    let result = env.with_local_frame(LOCAL_REFERENCES, body);
    if result.is_err() {
        // If it cannot be cleared, the JVM is ending.
        let _ = env.exception_clear();
    }
    result.ok()
}
