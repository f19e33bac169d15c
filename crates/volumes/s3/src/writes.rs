//! Requests that write: whole objects, multipart uploads, server-side copies, deletions.

use std::io::Read;

use millstream_version::Tag;
use ureq::Body;
use ureq::http::{Method, Response};

use crate::address::{encode, encode_path};
use crate::client::{Client, Counts, Failure, MOST_ERROR_BYTES, Request, expect};
use crate::refusal::{self, Refusal};

/// Retries of a request whose failure does no harm.
const FEW_RETRIES: u32 = 2;

impl Client {
    /// Writes an object, replacing an existing one. `headers` have names in lower case. The server checks the content
    /// by its hash if the request is signed.
    ///
    /// # Errors
    /// Another client has to write it. It may exist all the same.
    pub fn put(
        &self,
        key: &[u8],
        content: &[u8],
        headers: &[(String, String)],
        counts: &mut Counts,
    ) -> Result<(), Refusal> {
        let path = self.settings.address.object(key);
        self.persist(&self.writes, counts, || {
            let headers = headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let response =
                self.send(&Request { method: Method::PUT, path: &path, headers, body: content, query: "" })?;
            require_no_body(expect(response, &[200])?)
        })
    }

    /// Deletes an object, if there is one.
    ///
    /// # Errors
    /// It may still exist.
    pub fn delete(&self, key: &[u8], counts: &mut Counts) -> Result<(), Refusal> {
        let path = self.settings.address.object(key);
        self.persist(&self.others, counts, || {
            let request = Request { method: Method::DELETE, path: &path, ..Request::default() };
            require_no_body(expect(self.send(&request)?, &[200, 204])?)
        })
    }

    /// Begins a multipart upload; returns its ID. `headers` are as for [`Client::put`].
    ///
    /// # Errors
    /// An upload with an unknown ID may have been left.
    pub fn begin_upload(
        &self,
        key: &[u8],
        headers: &[(String, String)],
        counts: &mut Counts,
    ) -> Result<String, Refusal> {
        let path = self.settings.address.object(key);
        self.persist(&self.others, counts, || {
            let headers = headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let (method, query) = (Method::POST, "uploads=");
            let response = self.send(&Request { method, path: &path, query, headers, body: b"" })?;
            let answer = content(expect(response, &[200])?)?;
            refusal::element(&answer, b"UploadId")
                .filter(|id| !id.is_empty())
                .ok_or(Failure::Final(Refusal::Malformed("the response has no upload ID")))
        })
    }

    /// Uploads a part with a `number` from 1 to 10,000; returns its ETag.
    ///
    /// # Errors
    /// It may exist all the same.
    pub fn put_part(
        &self,
        key: &[u8],
        upload: &str,
        number: u32,
        content: &[u8],
        counts: &mut Counts,
    ) -> Result<String, Refusal> {
        let path = self.settings.address.object(key);
        let query = format!("partNumber={number}&{}", query_of(upload));
        self.persist(&self.writes, counts, || {
            let (method, headers) = (Method::PUT, Vec::new());
            let response =
                self.send(&Request { method, path: &path, query: &query, headers, body: content })?;
            let response = expect(response, &[200])?;
            let etag = response.headers().get("etag").and_then(|etag| etag.to_str().ok()).map(str::to_owned);
            require_no_body(response)?;
            etag.ok_or(Failure::Final(Refusal::Malformed("the response to a part upload has no ETag")))
        })
    }

    /// Completes an upload. `etags` are those of its parts, in order from number 1.
    ///
    /// # Errors
    /// It may exist all the same.
    pub fn complete_upload(
        &self,
        key: &[u8],
        upload: &str,
        parts: &[String],
        counts: &mut Counts,
    ) -> Result<(), Refusal> {
        let path = self.settings.address.object(key);
        let query = query_of(upload);
        let mut body = "<CompleteMultipartUpload>".to_owned();
        for (number, etag) in (1..).zip(parts) {
            let etag = etag.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            body.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"));
        }
        body.push_str("</CompleteMultipartUpload>");
        self.persist(&self.others, counts, || {
            let (method, headers) = (Method::POST, Vec::new());
            let body = body.as_bytes();
            let response = self.send(&Request { method, path: &path, query: &query, headers, body })?;
            succeeded(&content(expect(response, &[200])?)?)
        })
    }

    /// Aborts an upload, which removes its parts.
    ///
    /// # Errors
    /// It may still exist.
    pub fn abort_upload(&self, key: &[u8], upload: &str, counts: &mut Counts) -> Result<(), Refusal> {
        let path = self.settings.address.object(key);
        let query = query_of(upload);
        self.persist_for(FEW_RETRIES, &self.others, counts, || {
            let (method, headers) = (Method::DELETE, Vec::new());
            let response = self.send(&Request { method, path: &path, query: &query, headers, body: b"" })?;
            require_no_body(expect(response, &[200, 204])?)
        })
    }

    /// Copies another object of this server, of this version, with these headers. `source` is its
    /// [`Client::copy_source`].
    ///
    /// # Errors
    /// 412 if it is another version.
    pub fn copy(
        &self,
        key: &[u8],
        source: &str,
        tag: &Tag,
        headers: &[(String, String)],
        counts: &mut Counts,
    ) -> Result<(), Refusal> {
        let path = self.settings.address.object(key);
        let conditions = [
            ("x-amz-copy-source", source.to_owned()),
            ("x-amz-copy-source-if-match", format!("\"{tag}\"")),
            ("x-amz-metadata-directive", "REPLACE".to_owned()),
        ];
        self.persist(&self.writes, counts, || {
            let given = headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
            let headers = conditions.iter().cloned().chain(given).collect();
            let response =
                self.send(&Request { method: Method::PUT, path: &path, headers, ..Request::default() })?;
            succeeded(&content(expect(response, &[200])?)?)
        })
    }

    /// The name of an object of this bucket as the source of a copy.
    pub fn copy_source(bucket: &str, key: &[u8]) -> String {
        let mut source = format!("/{bucket}/");
        encode_path(key, &mut source);
        source
    }

    /// Whether another client's bucket is on the same server, which can then copy between both.
    pub fn shares_server_with(&self, other: &Client) -> bool {
        self.settings.address.server() == other.settings.address.server()
    }
}

/// The body of a short answer.
fn content(mut response: Response<Body>) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let read = response.body_mut().with_config().limit(MOST_ERROR_BYTES).reader().read_to_end(&mut body);
    read.map(|_| body).map_err(|error| Failure::Again(error.to_string()))
}

/// Checks the outcome of a request that S3 may answer with 200 before it knows whether it succeeds.
fn succeeded(answer: &[u8]) -> Result<(), Failure> {
    match refusal::code(answer) {
        code if code.is_empty() && refusal::element(answer, b"ETag").is_some() => Ok(()),
        code if code == "SlowDown" => Err(Failure::Throttled(Refusal::Answer { status: 200, code })),
        code if code.is_empty() || code == "InternalError" => {
            Err(Failure::Again("the server began to respond, but did not succeed".into()))
        }
        code => Err(Failure::Final(Refusal::Answer { status: 200, code })),
    }
}

/// Reads the end of an answer without a body, so that the connection can be reused.
fn require_no_body(mut response: Response<Body>) -> Result<(), Failure> {
    match response.body_mut().as_reader().read(&mut [0]) {
        Ok(0) | Err(_) => Ok(()),
        Ok(1..) => Err(Failure::Final(Refusal::Malformed("the response has an unexpected body"))),
    }
}

/// The query that names an upload.
fn query_of(upload: &str) -> String {
    let mut query = "uploadId=".to_owned();
    encode(upload.as_bytes(), &mut query);
    query
}
