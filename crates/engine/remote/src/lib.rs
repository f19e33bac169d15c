#![forbid(unsafe_code)]
//! Files of remote file systems as the [`Source`](millstream_scan::Source) of a scan.
//!
//! ```text
//! scan ─► RemoteSource ─┬─► NativeReader   objects of a known version, by a client in this process
//!                       └─► RemoteFiles    everything else, by the file system's own client
//! ```
//!
//! [`RemoteFiles`] can open every file. A [`NativeReader`], if there is one, is asked first for the objects whose
//! version is known; it needs no open file. Each of its reads is reported to [`RemoteFiles`], which counts the
//! requests. A file that the reader refuses is read to its end by the other client, and so is one of which that client
//! has meanwhile read another version: all rows of a file come from one version.
//!
//! Who reads is a type parameter: the crate knows neither S3 nor a JVM.

mod reader;
mod source;

pub use reader::{Cost, NativeRead, NativeReader, RemoteFile, RemoteFiles};
pub use source::{RemoteSource, SourceObject};
