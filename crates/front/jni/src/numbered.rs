//! Native objects that several threads of Java use at once.
//!
//! Java refers to each by a number, not by its address: it may be closed while a call on another thread uses it. That
//! call keeps its reference to the object, which ends with the last one; later calls with the number find nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jni::sys::jlong;

/// Objects of one kind that are open.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    open: Mutex<Open<T>>,
}

#[derive(Debug)]
struct Open<T> {
    by_number: HashMap<jlong, Arc<T>>,
    last: jlong,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { open: Mutex::new(Open { by_number: HashMap::new(), last: 0 }) }
    }
}

impl<T> Numbered<T> {
    fn lock(&self) -> MutexGuard<'_, Open<T>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an object; its number, which is never 0.
    pub(crate) fn add(&self, object: T) -> jlong {
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        open.by_number.insert(number, Arc::new(object));
        number
    }

    /// The object with this number; `None` once it is closed.
    pub(crate) fn get(&self, number: jlong) -> Option<Arc<T>> {
        self.lock().by_number.get(&number).cloned()
    }

    /// Gives an object up.
    pub(crate) fn close(&self, number: jlong) -> Option<Arc<T>> {
        self.lock().by_number.remove(&number)
    }
}
