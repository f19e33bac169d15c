//! The buckets that one way of access reaches, each as a volume.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use millstream_vfs::{Capabilities, Volume};

use crate::aws;
use crate::bucket::{Bucket, Reads, Tell, lock};
use crate::directory::{BucketDir, CAPABILITIES};
use crate::memory::MemoryBudget;

/// Memory for what is being written.
const UPLOADS: usize = 256 << 20;
/// A directory of a bucket holds nothing open.
const MAX_OPEN_DIRS: usize = 1 << 20;

/// The buckets that have been used, and how others are reached.
pub struct Buckets {
    open: Mutex<HashMap<String, BucketVolume>>,
    access: aws::Access,
    reads: Reads,
    memory: Arc<MemoryBudget>,
    tell: Tell,
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buckets")
    }
}

impl Buckets {
    /// Buckets are reached as `access` says. `tell` gets what servers say about failures, each once.
    pub fn new(access: aws::Access, reads: Reads, tell: Tell) -> Self {
        let (open, memory) = (Mutex::default(), MemoryBudget::new(UPLOADS));
        Buckets { open, access, reads, memory, tell }
    }

    /// A bucket.
    pub fn volume(&self, name: &str) -> BucketVolume {
        let mut open = lock(&self.open);
        if let Some(volume) = open.get(name) {
            return volume.clone();
        }
        let (memory, tell) = (Arc::clone(&self.memory), Arc::clone(&self.tell));
        let bucket = Bucket::new(name, self.access.client(name), self.reads, memory, tell);
        let volume = BucketVolume { root: BucketDir::root(bucket) };
        open.insert(name.to_owned(), volume.clone());
        volume
    }
}

/// A bucket. Its paths are keys, which may begin with a slash.
#[derive(Clone, Debug)]
pub struct BucketVolume {
    root: BucketDir,
}

impl Volume for BucketVolume {
    type Dir = BucketDir;

    fn base(&self) -> BucketDir {
        self.root.without_listing()
    }

    fn max_open_dirs(&self) -> usize {
        MAX_OPEN_DIRS
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }
}
