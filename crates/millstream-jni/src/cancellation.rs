//! Whether Java wants a native call to end.

use std::time::{Duration, Instant};

use jni::JNIEnv;
use jni::objects::JObject;

/// Java is asked no more often than this.
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

    /// Whether the call is to go on. An exception of the supplier's ends it, too.
    pub(crate) fn goes_on(&mut self) -> bool {
        if !self.cancelled && self.asked.elapsed() >= INTERVAL {
            self.asked = Instant::now();
            let answer = self.env.call_method(self.is_cancelled, "getAsBoolean", "()Z", &[]);
            self.cancelled = answer.and_then(|answer| answer.z()).unwrap_or(true);
        }
        !self.cancelled
    }
}
