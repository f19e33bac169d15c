#![forbid(unsafe_code)]
//! Reads and writes a bucket: pages of listings, ranges of objects whose version is known, whole objects and multipart
//! uploads.
//!
//! A [`Client`] makes blocking requests over HTTP/1.1 on the threads of its callers, and keeps its connections open.
//! The caller gives the address of the bucket, its region, the certificates to trust and, for each request, the
//! credentials.
//!
//! The client accepts only answers that cannot be misunderstood. Anything else, such as a missing object, another
//! version, a redirection or an error, is a [`Refusal`]. A caller that owns another client of the bucket
//! ([`Policy::WITH_FALLBACK`]: Spark's S3A) asks that one then. Requests that are lost, cut off or
//! throttled are repeated (`client`); a server that throttles requests slows all clients of its bucket in this process
//! (`throttle`).

mod address;
mod client;
mod connections;
mod page;
mod policy;
mod refusal;
mod signature;
mod throttle;
mod usefulness;
mod writes;

pub use address::{Address, encode as encode_query};
pub use client::{Client, Counts, Metadata, Object, Opened, Settings, tls};
pub use page::{Item, Page};
pub use policy::{Policy, Proxies, RefusedKinds, SendTimeout};
pub use refusal::{Refusal, element};
pub use signature::{CredentialSource, Credentials};

/// A request for a page of a listing (`ListObjectsV2`).
#[derive(Clone, Copy, Debug, Default)]
pub struct PageRequest<'a> {
    /// The prefix of the keys.
    pub prefix: &'a [u8],
    /// The delimiter that ends a common prefix; empty for none.
    pub delimiter: &'a [u8],
    /// A key that precedes the first one wanted; empty for none.
    pub after: &'a [u8],
    /// [`Page::next`] of the page before; empty for none.
    pub next: &'a [u8],
    /// Whether one key is enough.
    pub is_probe: bool,
}

/// Parses an answer, for fuzz/.
#[cfg(feature = "fuzzing")]
pub fn parse_page(xml: &[u8]) {
    let _ = page::parse(xml);
    let _ = refusal::code(xml);
}
