//! Cancellation of native calls by Java.

use std::time::{Duration, Instant};

use jni::JNIEnv;
use jni::objects::JObject;

/// Shortest time between two calls into Java.
const INTERVAL: Duration = Duration::from_millis(50);

/// Asks a `BooleanSupplier` whether a call is cancelled.
pub(crate) struct Cancellation<'a, 'local> {
    env: &'a mut JNIEnv<'local>,
    is_cancelled: &'a JObject<'local>,
    asked: Instant,
    cancelled: bool,
}

impl<'a, 'local> Cancellation<'a, 'local> {
    pub(crate) fn new(env: &'a mut JNIEnv<'local>, is_cancelled: &'a JObject<'local>) -> Self {
        Cancellation { env, is_cancelled, asked: Instant::now(), cancelled: false }
    }

    /// Whether to continue. An exception thrown by the supplier ends the call too.
    pub(crate) fn should_continue(&mut self) -> bool {
        if !self.cancelled && self.asked.elapsed() >= INTERVAL {
            self.asked = Instant::now();
            let answer = self.env.call_method(self.is_cancelled, "getAsBoolean", "()Z", &[]);
            self.cancelled = answer.and_then(|answer| answer.z()).unwrap_or(true);
        }
        !self.cancelled
    }
}
