#![forbid(unsafe_code)]
//! Buckets of S3, each as a [`millstream_vfs::Volume`].
//!
//! ```text
//!  Buckets ──► BucketVolume (one client each) ──► BucketDir: a prefix ──► ObjectReader, Upload
//! ```
//!
//! A directory is what the keys of a bucket have in common up to a slash. It exists by what is in it, or by an empty
//! object whose key ends with the slash (a marker, as S3A and the console make them). A listed entry costs no further
//! request, unless its time is asked for: that is in the object's user metadata (`millstream-mtime`, as psync on Spark
//! writes it), and takes a HEAD.
//!
//! **Nothing is half there.** An object appears when all of it is written. A file that is made under another name first
//! ([`millstream_vfs::Dir::create_staged`]) therefore has no object of that name: it is in memory, or, if it is large,
//! in the parts of an upload, and becomes an object of its own name when it is renamed ([`upload`]).
//!
//! **What there is not**: permissions, owners, links, special files, and times of directories. Asking for them gives
//! what all files have; making them is `EOPNOTSUPP`.

pub mod aws;
mod bucket;
mod buckets;
mod directory;
mod file;
mod listing;
mod location;
mod memory;
mod reader;
mod upload;

pub use bucket::{Reads, Tell};
pub use buckets::{BucketVolume, Buckets};
pub use directory::{BucketDir, CAPABILITIES};
pub use file::ObjectFile;
pub use location::split;
