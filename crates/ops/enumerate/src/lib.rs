#![forbid(unsafe_code)]
//! The files of data sets, packed for Spark.
//!
//! ```text
//!  traversal (its own threads)                                   the consumer's thread
//!  visit: names and attributes ─► parts kept with the directory
//!  end_of_directory: parts in directory order ─► blocks ─► bounded queue ─► Enumeration::next: whole blocks
//! ```
//!
//! A directory is delivered whole and in the order in which the volume lists it, because Spark bases some decisions on
//! the first file. Directories are delivered as they are completed, each with its position, so that the consumer can
//! restore the order of a serial traversal. The consumer may stop at any time: dropping the [`Enumeration`] ends the
//! traversal without waiting for threads that hang in the volume.
//!
//! Memory: blocks that wait for the consumer are bounded, by bytes in [`queue`] and by the number of entries in each
//! worker's block. Directories still being listed are not bounded: each is held until its last entry is known.
//!
//! Java's `NativeListing` documents the layout of a block; `tests::block_is_the_shared_vector` and Java's
//! `DirectoryListingTest` check both sides against the same example.

mod block;
mod options;
mod packer;
mod queue;

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use millstream_vfs::Volume;
use millstream_walk::{Cancellation, FollowPolicy, WalkOptions, walk};

pub use options::{Depth, EnumerateOptions, Subdirectories};
pub use queue::{Delivery, Panicked};

use packer::Packer;
use queue::Queue;

/// A running enumeration.
#[derive(Debug)]
pub struct Enumeration {
    queue: Arc<Queue>,
    cancellation: Cancellation,
}

impl Enumeration {
    /// Starts to enumerate `roots` on its own threads; symbolic links are followed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start<V: Volume>(
        volume: V,
        roots: Vec<CString>,
        options: EnumerateOptions,
    ) -> std::io::Result<Self> {
        let cancellation = Cancellation::default();
        let queue = Arc::new(Queue::new(cancellation.clone()));
        let producer = Arc::clone(&queue);
        let walk_options = WalkOptions {
            threads: options.threads,
            follow: FollowPolicy::Always,
            cancellation: cancellation.clone(),
            ..WalkOptions::default()
        };
        thread::Builder::new().name("millstream-list".into()).spawn(move || {
            let visitor = Packer { options, queue: &producer, volume: std::marker::PhantomData };
            let run = AssertUnwindSafe(|| walk(&volume, &roots, &visitor, &walk_options));
            let outcome = catch_unwind(run).map(drop).map_err(|panic| Panicked(panic_message(&*panic)));
            producer.end(outcome);
        })?;
        Ok(Enumeration { queue, cancellation })
    }

    /// Returns the next blocks, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`Panicked`] at the end, if the traversal did.
    pub fn next(&self, timeout: Duration) -> Result<Delivery, Panicked> {
        self.queue.take(timeout)
    }
}

impl Drop for Enumeration {
    fn drop(&mut self) {
        self.cancellation.cancel();
        self.queue.wake_all();
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic").to_owned()
}

#[cfg(test)]
mod tests;
