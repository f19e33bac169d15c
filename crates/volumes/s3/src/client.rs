//! Requests.
//!
//! A request has a few attempts. One that is lost, cut off, or answered by 500 and its like is made again after a
//! pause; a body that ends early is asked for again from there. An answer of 503 or 429 also slows the other requests
//! to the bucket, and allows more attempts. If that does not help, and after every other answer, the request is refused
//! ([`Refusal`]). The [`Policy`] says how many attempts there are, and whether kinds of requests that are refused again
//! and again are still made (`usefulness`).

use std::io::{self, Read};
use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use millstream_version::{Tag, Version};
use ureq::http::{Method, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body, BodyReader, Proxy};

use crate::address::encode;
use crate::connections::Connections;
use crate::page::{self, Page};
use crate::policy::{Policy, Proxies, RefusedKinds, SendTimeout};
use crate::refusal::{self, Refusal};
use crate::signature::{CredentialSource, Unsigned, sign};
use crate::throttle::Throttle;
use crate::usefulness::Usefulness;
use crate::{Address, PageRequest};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// A request is not repeated for longer than this, unless it is throttled.
const LONGEST_ATTEMPTS: Duration = Duration::from_secs(180);
/// Idle connections are closed before servers do so.
const IDLE: Duration = Duration::from_secs(4);
/// A page has a thousand keys of at most 1 KiB, which their encoding can triple.
const MOST_PAGE_BYTES: u64 = 16 << 20;
pub(crate) const MOST_ERROR_BYTES: u64 = 64 << 10;
/// Headers that an object keeps and that describe its contents.
const DESCRIPTIONS: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
];
const OTHER_LENGTH: &str = "the response is longer or shorter than the requested range";

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address of the bucket.
    pub address: Address,
    /// Region of the bucket, for signatures.
    pub region: String,
    /// `User-Agent` of requests.
    pub user_agent: String,
    /// Timeout of connecting.
    pub connect_timeout: Duration,
    /// Timeout of a read: longest wait for the next bytes; and of sending content, as the policy says.
    pub read_timeout: Duration,
    /// Maximum retries of a request, capped by the policy.
    pub retries: u32,
    /// Maximum retries of a request that the server throttles, capped by the policy.
    pub throttle_retries: u32,
    /// Limit of concurrent requests, each with its own connection, and of idle connections that stay open.
    pub connections: usize,
    /// Trusted root certificates (DER).
    pub certificates: Vec<Vec<u8>>,
    /// How far the client goes for the result of a request.
    pub policy: Policy,
}

/// Counts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All requests.
    pub requests: u32,
    /// Repeated requests.
    pub retries: u32,
    /// Throttled requests.
    pub throttled: u32,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.throttled += other.throttled;
    }
}

/// User metadata of an object: names in lower case, without `x-amz-meta-`, and values.
pub type Metadata = Vec<(String, String)>;

/// Reads and writes a bucket.
pub struct Client {
    pub(crate) settings: Settings,
    agent: Agent,
    credentials: Box<dyn CredentialSource>,
    throttle: Arc<Throttle>,
    connections: Connections,
    pages: Usefulness,
    objects: Usefulness,
    pub(crate) writes: Usefulness,
    /// For all other kinds of requests.
    pub(crate) others: Usefulness,
}

/// Why an attempt has no result.
pub(crate) enum Failure {
    /// The request may be repeated.
    Again(String),
    /// The server has throttled it.
    Throttled(Refusal),
    Final(Refusal),
}

/// A request.
#[derive(Default)]
pub(crate) struct Request<'a> {
    /// GET by default.
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    /// The body of a PUT or a POST.
    pub(crate) body: &'a [u8],
}

/// An object's metadata, as the server reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its version, with a time in seconds.
    pub version: Version,
    /// Headers that describe its contents, such as `content-type`.
    pub headers: Vec<(String, String)>,
    /// Its user metadata.
    pub metadata: Metadata,
}

/// A part of an object that is being read.
pub struct Opened {
    /// The object's metadata.
    pub object: Object,
    body: BodyReader<'static>,
}

impl Read for Opened {
    /// Reads what has arrived. An end before the end of the part, and an error, come from the connection.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("object", &self.object).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of a bucket; no request is made yet.
    pub fn new(settings: Settings, credentials: Box<dyn CredentialSource>) -> Self {
        let proxy = match settings.policy.proxies {
            Proxies::None => None,
            Proxies::Environment => Proxy::try_from_env(),
        };
        let (content_timeout, write_timeout) = match settings.policy.send_timeout {
            SendTimeout::Content => (Some(settings.read_timeout), None),
            SendTimeout::Write => (None, Some(settings.read_timeout)),
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy)
            .user_agent(settings.user_agent.as_str())
            .timeout_connect(Some(settings.connect_timeout))
            .timeout_send_body(content_timeout)
            .timeout_per_write(write_timeout)
            .timeout_recv_response(Some(settings.read_timeout))
            .timeout_per_read(Some(settings.read_timeout))
            .max_idle_connections(settings.connections)
            .max_idle_connections_per_host(settings.connections)
            .max_idle_age(IDLE)
            .tls_config(tls(&settings.certificates))
            .build()
            .new_agent();
        let bucket = format!("{}{}", settings.address.origin(), settings.address.bucket());
        Client {
            agent,
            credentials,
            throttle: Throttle::of(&bucket),
            connections: Connections::new(settings.connections),
            pages: Usefulness::default(),
            objects: Usefulness::default(),
            writes: Usefulness::default(),
            others: Usefulness::default(),
            settings,
        }
    }

    /// Whether it lists pages; not if too many requests for them were refused.
    pub fn lists(&self) -> bool {
        self.pages.is_useful()
    }

    /// Whether it reads objects; not if too many requests for them were refused.
    pub fn reads(&self) -> bool {
        self.objects.is_useful()
    }

    /// Whether it writes objects; not if too many requests for them were refused.
    pub fn writes(&self) -> bool {
        self.writes.is_useful()
    }

    /// Lists a page of the bucket.
    ///
    /// # Errors
    /// Another client has to ask.
    pub fn page(&self, asked: &PageRequest<'_>, counts: &mut Counts) -> Result<Page, Refusal> {
        let query = query(asked);
        let path = self.settings.address.bucket();
        let mut body = Vec::new();
        self.persist(&self.pages, counts, || {
            body.clear();
            let response = self.send(&Request { path, query: &query, ..Request::default() })?;
            let mut response = expect(response, &[200])?;
            let read =
                response.body_mut().with_config().limit(MOST_PAGE_BYTES).reader().read_to_end(&mut body);
            read.map_err(|error| Failure::Again(error.to_string()))?;
            page::parse(&body).map_err(Failure::Final)
        })
    }

    /// Fills `buffer` with bytes of an object of this version; the object must have as many.
    ///
    /// # Errors
    /// Another client has to read them; what `buffer` contains is undefined.
    pub fn get(
        &self,
        key: &[u8],
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
        counts: &mut Counts,
    ) -> Result<(), Refusal> {
        let range = offset..offset + buffer.len() as u64;
        let read = self.read(key, version, range, counts, |body, at| {
            let filled = usize::try_from(at - offset).unwrap_or(usize::MAX);
            read_once(body, &mut buffer[filled..])
        });
        read.map(|_| ())
    }

    /// Reads a part of an object of this version in pieces of at most the size of `piece`, and passes each to `take`
    /// with its offset. Returns the object's metadata.
    ///
    /// # Errors
    /// Another client has to read the object; `take` may have got a part of it. [`Refusal::NotTaken`] if `take` has
    /// failed.
    pub fn fetch(
        &self,
        key: &[u8],
        version: &Version,
        part: Range<u64>,
        piece: &mut [u8],
        counts: &mut Counts,
        mut take: impl FnMut(&[u8], u64) -> bool,
    ) -> Result<Metadata, Refusal> {
        let end = part.end;
        self.read(key, version, part, counts, |body, at| {
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(piece.len());
            let read = read_once(body, &mut piece[..wanted])?;
            if read == 0 || take(&piece[..read], at) {
                Ok(read)
            } else {
                Err(Failure::Final(Refusal::NotTaken))
            }
        })
    }

    /// Reads a range, some bytes at a time, with `read_some`. It gets the body and the offset of its next byte, and
    /// returns how many bytes it has read; 0 ends the attempt.
    fn read(
        &self,
        key: &[u8],
        version: &Version,
        range: Range<u64>,
        counts: &mut Counts,
        mut read_some: impl FnMut(&mut dyn Read, u64) -> Result<usize, Failure>,
    ) -> Result<Metadata, Refusal> {
        let path = self.settings.address.object(key);
        let tag = version.tag.to_string();
        let (mut from, end) = (range.start, range.end);
        self.persist(&self.objects, counts, || {
            let is_whole = from == 0 && end == version.size;
            let headers = range_headers(&tag, &(from..end), is_whole);
            let response = self.send(&Request { path: &path, headers, ..Request::default() })?;
            let mut response = expect(response, &[if is_whole { 200 } else { 206 }])?;
            check_answer(&response, &tag, from..end, is_whole)?;
            let metadata = metadata(&response);
            let mut body = response.body_mut().as_reader();
            while from < end {
                match read_some(&mut body, from)? {
                    0 => return Err(Failure::Again("the body ended early".into())),
                    n => from += n as u64,
                }
            }
            // A connection is reusable only after its end of body has been read; otherwise a new one is made.
            match body.read(&mut [0]) {
                Ok(1..) => Err(Failure::Final(Refusal::Malformed(OTHER_LENGTH))),
                Ok(0) | Err(_) => Ok(metadata),
            }
        })
    }

    /// Requests an object's metadata.
    ///
    /// # Errors
    /// 404 if the object does not exist.
    pub fn head(&self, key: &[u8], counts: &mut Counts) -> Result<Object, Refusal> {
        let path = self.settings.address.object(key);
        self.persist(&self.others, counts, || {
            let request = Request { method: Method::HEAD, path: &path, ..Request::default() };
            let response = expect(self.send(&request)?, &[200])?;
            let size =
                response.headers().get("content-length").and_then(|size| size.to_str().ok()?.parse().ok());
            object(&response, size.ok_or(Failure::Final(Refusal::Malformed("an object has no size")))?)
        })
    }

    /// Begins to read a part of an object of this version. The request is retried here; the caller retries if the body
    /// breaks off later.
    ///
    /// # Errors
    /// 404 if there is no object, 412 if it is another version.
    pub fn open(
        &self,
        key: &[u8],
        version: &Version,
        range: Range<u64>,
        counts: &mut Counts,
    ) -> Result<Opened, Refusal> {
        let path = self.settings.address.object(key);
        let (tag, size) = (version.tag.to_string(), version.size);
        let is_whole = range == (0..size);
        self.persist(&self.objects, counts, || {
            let headers = range_headers(&tag, &range, is_whole);
            let response = self.send(&Request { path: &path, headers, ..Request::default() })?;
            let response = expect(response, &[if is_whole { 200 } else { 206 }])?;
            check_answer(&response, &tag, range.clone(), is_whole)?;
            let object = object(&response, size)?;
            Ok(Opened { object, body: response.into_body().into_reader() })
        })
    }

    /// Makes attempts until one has a result.
    pub(crate) fn persist<T>(
        &self,
        usefulness: &Usefulness,
        counts: &mut Counts,
        attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Refusal> {
        self.persist_for(u32::MAX, usefulness, counts, attempt)
    }

    /// Makes attempts until one has a result, with at most this many retries.
    pub(crate) fn persist_for<T>(
        &self,
        most: u32,
        usefulness: &Usefulness,
        counts: &mut Counts,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Refusal> {
        let policy = &self.settings.policy;
        if policy.refused_kinds == RefusedKinds::Dropped && !usefulness.is_useful() {
            return Err(Refusal::Unused);
        }
        let begun = Instant::now();
        let mut tried = 0;
        let refusal = loop {
            self.wait_for_turn()?;
            tried += 1;
            counts.requests += 1;
            let connection = self.connections.take();
            let result = attempt();
            drop(connection);
            let (refusal, retries) = match result {
                Ok(value) => {
                    self.throttle.answered(Instant::now());
                    usefulness.succeeded();
                    return Ok(value);
                }
                Err(Failure::Final(refusal)) => break refusal,
                Err(Failure::Throttled(refusal)) => {
                    counts.throttled += 1;
                    self.throttle.refused(Instant::now());
                    (refusal, self.settings.throttle_retries.min(policy.max_throttle_retries))
                }
                Err(Failure::Again(reason)) if begun.elapsed() > LONGEST_ATTEMPTS => {
                    break Refusal::Lost(reason);
                }
                Err(Failure::Again(reason)) => {
                    (Refusal::Lost(reason), self.settings.retries.min(policy.max_retries))
                }
            };
            if tried > retries.min(most) {
                break refusal;
            }
            counts.retries += 1;
            std::thread::sleep((FIRST_PAUSE * 2_u32.pow((tried - 1).min(8))).min(policy.longest_pause));
        };
        usefulness.refused(&refusal);
        Err(refusal)
    }

    /// Waits until a request to the bucket may begin.
    fn wait_for_turn(&self) -> Result<(), Refusal> {
        let since = Instant::now();
        while let Some(wait) = self.throttle.begin(Instant::now()) {
            if since.elapsed() > self.settings.policy.longest_wait {
                return Err(Refusal::Lost("the server has throttled requests for too long".into()));
            }
            std::thread::sleep(wait);
        }
        Ok(())
    }

    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Response<Body>, Failure> {
        let credentials = self.credentials.credentials().ok_or(Failure::Final(Refusal::Credentials))?;
        let Settings { address, region, .. } = &self.settings;
        let Request { method, path, query, headers, body } = request;
        let unsigned = Unsigned { method: method.as_str(), host: address.host(), path, query, headers, body };
        let added = sign(&unsigned, &credentials, region, Timestamp::now());
        let mut url = [address.origin(), path].concat();
        if !query.is_empty() {
            url.push('?');
            url.push_str(query);
        }
        let headers = headers.iter().chain(&added);
        let has_body = *method == Method::PUT || *method == Method::POST;
        let sent = if has_body {
            let request = if *method == Method::PUT { self.agent.put(url) } else { self.agent.post(url) };
            headers.fold(request, |request, (name, value)| request.header(*name, value)).send(*body)
        } else {
            let request = match *method {
                Method::HEAD => self.agent.head(url),
                Method::DELETE => self.agent.delete(url),
                _ => self.agent.get(url),
            };
            headers.fold(request, |request, (name, value)| request.header(*name, value)).call()
        };
        sent.map_err(|error| match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Failure::Final(Refusal::Connection(error.to_string()))
            }
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
            | ureq::Error::Protocol(_) => Failure::Again(error.to_string()),
            other => Failure::Final(Refusal::Connection(other.to_string())),
        })
    }
}

/// TLS for servers whose certificate one of these root certificates (DER) vouches for.
pub fn tls(certificates: &[Vec<u8>]) -> TlsConfig {
    let trusted = certificates.iter().map(|der| Certificate::from_der(der).to_owned());
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::Specific(Arc::new(trusted.collect())))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

/// Reads some bytes of a body; 0 at its end.
fn read_once(body: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, Failure> {
    loop {
        match body.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read.map_err(|error| Failure::Again(error.to_string())),
        }
    }
}

/// The headers that ask for a range of a version.
fn range_headers(tag: &str, range: &Range<u64>, is_whole: bool) -> Vec<(&'static str, String)> {
    let mut headers = vec![("if-match", format!("\"{tag}\""))];
    if !is_whole {
        headers.push(("range", format!("bytes={}-{}", range.start, range.end - 1)));
    }
    headers
}

/// The metadata in the headers of an answer about an object of this size.
fn object(response: &Response<Body>, size: u64) -> Result<Object, Failure> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let no_time = Failure::Final(Refusal::Malformed("an object has no time"));
    let time = |text: &str| {
        let sec = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_second();
        Some(millstream_vfs::Timestamp { sec, nsec: 0 })
    };
    Ok(Object {
        version: Version {
            size,
            mtime: header("last-modified").and_then(time).ok_or(no_time)?,
            file_id: 0,
            tag: Tag::pack(header("etag").unwrap_or_default().as_bytes()),
        },
        headers: DESCRIPTIONS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), header(name)?.to_owned())))
            .collect(),
        metadata: metadata(response),
    })
}

/// The user metadata in an answer, except values that are not text.
fn metadata(response: &Response<Body>) -> Metadata {
    let user = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
        let name = name.as_str().strip_prefix("x-amz-meta-")?;
        Some((name.to_owned(), value.to_str().ok()?.to_owned()))
    };
    response.headers().iter().filter_map(user).collect()
}

/// Refuses an answer unless it is these bytes of this version.
fn check_answer(
    response: &Response<Body>,
    tag: &str,
    range: Range<u64>,
    is_whole: bool,
) -> Result<(), Failure> {
    let header = |name| response.headers().get(name).map(|value| value.as_bytes());
    let etag = header("etag").map(|etag| Tag::pack(etag).to_string());
    // Only a part has bytes for certain.
    let stated = if is_whole { String::new() } else { format!("bytes {}-{}/", range.start, range.end - 1) };
    let wrong = if etag.as_deref() != Some(tag) {
        "the response has a different version, or none: the server ignores If-Match"
    } else if response.body().content_length().is_some_and(|length| length != range.end - range.start) {
        OTHER_LENGTH
    } else if !is_whole && !header("content-range").is_some_and(|sent| sent.starts_with(stated.as_bytes())) {
        "the response has a different range"
    } else {
        return Ok(());
    };
    Err(Failure::Final(Refusal::Malformed(wrong)))
}

/// Credentials are not shown.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The query of a page, in the order of its names.
fn query(asked: &PageRequest<'_>) -> String {
    let mut query = String::new();
    let most = if asked.is_probe { b"1".as_slice() } else { b"1000" };
    let values: [(&str, &[u8]); 7] = [
        ("continuation-token", asked.next),
        ("delimiter", asked.delimiter),
        ("encoding-type", b"url"),
        ("list-type", b"2"),
        ("max-keys", most),
        ("prefix", asked.prefix),
        ("start-after", asked.after),
    ];
    for (name, value) in values {
        if !value.is_empty() {
            let separator = if query.is_empty() { "" } else { "&" };
            query.push_str(separator);
            query.push_str(name);
            query.push('=');
            encode(value, &mut query);
        }
    }
    query
}

/// The response if it has one of these statuses.
pub(crate) fn expect(mut response: Response<Body>, statuses: &[u16]) -> Result<Response<Body>, Failure> {
    let status = response.status().as_u16();
    if statuses.contains(&status) {
        return Ok(response);
    }
    let mut body = Vec::new();
    // The status suffices if the body does not arrive.
    let _ = response.body_mut().with_config().limit(MOST_ERROR_BYTES).reader().read_to_end(&mut body);
    let answer = Refusal::Answer { status, code: refusal::code(&body) };
    Err(match status {
        429 | 503 => Failure::Throttled(answer),
        408 | 500 | 502 | 504 => Failure::Again(answer.to_string()),
        _ => Failure::Final(answer),
    })
}
