#![forbid(unsafe_code)]
//! Buckets of S3 as a [`millstream_vfs::Volume`], beside the file systems of the machine.
//!
//! ```text
//!  Storage ── path ──► PosixVolume
//!     └── s3://BUCKET/KEY ──► Bucket (one client each) ──► BucketDir: a prefix ──► ObjectReader, Upload
//! ```
//!
//! A directory is what the keys of a bucket have in common up to a slash. It exists by what is in it, or by an empty object whose
//! key ends with the slash (a marker, as S3A and the console make them). A listed entry costs no further request, unless its
//! time is asked for: that is in the object's user metadata (`millstream-mtime`, as psync on Spark writes it), and takes a HEAD.
//!
//! **Nothing is half there.** An object appears when all of it is written. A file that is made under another name first
//! ([`millstream_vfs::Dir::create_staged`]) therefore has no object of that name: it is in memory, or, if it is large, in the
//! parts of an upload, and becomes an object of its own name when it is renamed ([`upload`]).
//!
//! **What there is not**: permissions, owners, links, special files, and times of directories. Asking for them gives what all
//! files have; making them is `EOPNOTSUPP`.

pub mod aws;
mod bucket;
mod directory;
mod file;
mod listing;
mod location;
mod memory;
mod reader;
mod storage;
mod upload;

pub use bucket::{Reads, Tell};
pub use location::is_bucket;
pub use storage::Storage;
