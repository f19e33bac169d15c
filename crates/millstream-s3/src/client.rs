//! Requests.
//!
//! A request has a few attempts. One that is lost, cut off, or answered by 500 and its like is made again after a pause; a body
//! that ends early is asked for again from there. An answer of 503 or 429 also slows the other requests to the bucket, and allows
//! more attempts. If that does not help, and after every other answer, the bucket's real client has to ask ([`Refusal`]). Kinds of
//! requests that are refused again and again are no longer made (`standing`).

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use crate::address::encode;
use crate::connections::Connections;
use crate::page::{self, Page};
use crate::refusal::{self, Refusal};
use crate::signature::{CredentialSource, Unsigned, sign};
use crate::standing::Standing;
use crate::throttle::Throttle;
use crate::{Address, PageRequest, Version};

/// Limit of [`Settings::retries`].
const MAX_RETRIES: u32 = 2;
/// Limit of [`Settings::throttle_retries`]. It is higher because elsewhere, the request would be made without regard to the others.
const MAX_THROTTLE_RETRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Longest time for which the throttle keeps an attempt back.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Idle connections are closed before servers do so.
const IDLE: Duration = Duration::from_secs(4);
/// A page has a thousand keys of at most a KiB, which are tripled by their encoding.
const MOST_PAGE_BYTES: u64 = 16 << 20;
const MOST_ERROR_BYTES: u64 = 64 << 10;
const OTHER_LENGTH: &str = "an answer is longer or shorter than the range";

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
    /// Timeout of a read: longest wait for the next bytes.
    pub read_timeout: Duration,
    /// Maximum retries of a request, capped at two.
    pub retries: u32,
    /// Maximum retries of a request that the server turns away for now, capped at seven.
    pub throttle_retries: u32,
    /// Most requests at once, each of which has a connection, and most idle connections that are kept.
    pub connections: usize,
    /// Trusted root certificates (DER).
    pub certificates: Vec<Vec<u8>>,
}

/// What requests cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests.
    pub requests: u32,
    /// Those of them that repeated another.
    pub retries: u32,
    /// Those that the server turned away for now.
    pub throttled: u32,
}

/// Reads a bucket.
pub struct Client {
    settings: Settings,
    agent: Agent,
    credentials: Box<dyn CredentialSource>,
    throttle: Arc<Throttle>,
    connections: Connections,
    pages: Standing,
    objects: Standing,
}

/// Why an attempt has no result.
enum Failure {
    /// The request may be made again.
    Again(String),
    /// The server has turned it away for now.
    Throttled(Refusal),
    Final(Refusal),
}

/// A GET.
struct Get<'a> {
    path: &'a str,
    query: &'a str,
    headers: Vec<(&'static str, String)>,
}

impl Client {
    /// A client of a bucket. It makes no request yet.
    pub fn new(settings: Settings, credentials: Box<dyn CredentialSource>) -> Self {
        let trusted = settings.certificates.iter().map(|der| Certificate::from_der(der).to_owned());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::Specific(Arc::new(trusted.collect())))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(settings.user_agent.as_str())
            .timeout_connect(Some(settings.connect_timeout))
            .timeout_recv_response(Some(settings.read_timeout))
            .timeout_per_read(Some(settings.read_timeout))
            .max_idle_connections(settings.connections)
            .max_idle_connections_per_host(settings.connections)
            .max_idle_age(IDLE)
            .tls_config(tls)
            .build()
            .new_agent();
        let bucket = format!("{}{}", settings.address.origin(), settings.address.bucket());
        Client {
            agent,
            credentials,
            throttle: Throttle::of(&bucket),
            connections: Connections::new(settings.connections),
            pages: Standing::default(),
            objects: Standing::default(),
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
            let response = self.send(&Get { path, query: &query, headers: Vec::new() })?;
            let mut response = expect(response, &[200])?;
            let read =
                response.body_mut().with_config().limit(MOST_PAGE_BYTES).reader().read_to_end(&mut body);
            read.map_err(|error| Failure::Again(error.to_string()))?;
            page::parse(&body).map_err(Failure::Final)
        })
    }

    /// Reads bytes of an object of this version, as many as `buffer` takes; the object must have them.
    ///
    /// `size` is that of the whole object.
    ///
    /// # Errors
    /// Another client has to read them; what `buffer` contains is undefined.
    pub fn get(
        &self,
        key: &[u8],
        version: &Version,
        size: u64,
        offset: u64,
        buffer: &mut [u8],
        counts: &mut Counts,
    ) -> Result<(), Refusal> {
        let path = self.settings.address.object(key);
        let version = version.to_string();
        let end = offset + buffer.len() as u64;
        let mut filled = 0;
        self.persist(&self.objects, counts, || {
            let from = offset + filled as u64;
            let is_whole = from == 0 && end == size;
            let mut headers = vec![("if-match", format!("\"{version}\""))];
            if !is_whole {
                headers.push(("range", format!("bytes={from}-{}", end - 1)));
            }
            let response = self.send(&Get { path: &path, query: "", headers })?;
            let mut response = expect(response, &[if is_whole { 200 } else { 206 }])?;
            check_answer(&response, &version, from..end, is_whole)?;
            let mut body = response.body_mut().as_reader();
            while filled < buffer.len() {
                match body.read(&mut buffer[filled..]) {
                    Ok(0) => return Err(Failure::Again("the body ended early".into())),
                    Ok(n) => filled += n,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(Failure::Again(error.to_string())),
                }
            }
            // The connection can be used again once the end has been seen. If it comes in another way, another one is made.
            match body.read(&mut [0]) {
                Ok(1..) => Err(Failure::Final(Refusal::Malformed(OTHER_LENGTH))),
                Ok(0) | Err(_) => Ok(()),
            }
        })
    }

    /// Makes attempts until one has a result.
    fn persist<T>(
        &self,
        standing: &Standing,
        counts: &mut Counts,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Refusal> {
        if !standing.is_useful() {
            return Err(Refusal::Unused);
        }
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
                    standing.succeeded();
                    return Ok(value);
                }
                Err(Failure::Final(refusal)) => break refusal,
                Err(Failure::Throttled(refusal)) => {
                    counts.throttled += 1;
                    self.throttle.refused(Instant::now());
                    (refusal, self.settings.throttle_retries.min(MAX_THROTTLE_RETRIES))
                }
                Err(Failure::Again(reason)) => {
                    (Refusal::Lost(reason), self.settings.retries.min(MAX_RETRIES))
                }
            };
            if tried > retries {
                break refusal;
            }
            counts.retries += 1;
            std::thread::sleep((FIRST_PAUSE * 2_u32.pow(tried - 1)).min(LONGEST_PAUSE));
        };
        standing.refused(&refusal);
        Err(refusal)
    }

    /// Waits until the bucket may be asked.
    fn wait_for_turn(&self) -> Result<(), Refusal> {
        let since = Instant::now();
        while let Some(wait) = self.throttle.begin(Instant::now()) {
            if since.elapsed() > LONGEST_WAIT {
                return Err(Refusal::Lost("the server turns requests away".into()));
            }
            std::thread::sleep(wait);
        }
        Ok(())
    }

    fn send(&self, get: &Get<'_>) -> Result<Response<Body>, Failure> {
        let credentials = self.credentials.credentials().ok_or(Failure::Final(Refusal::Credentials))?;
        let Settings { address, region, .. } = &self.settings;
        let unsigned =
            Unsigned { host: address.host(), path: get.path, query: get.query, headers: &get.headers };
        let added = sign(&unsigned, &credentials, region, Timestamp::now());
        let mut url = [address.origin(), get.path].concat();
        if !get.query.is_empty() {
            url.push('?');
            url.push_str(get.query);
        }
        let headers = get.headers.iter().chain(&added);
        let request =
            headers.fold(self.agent.get(url), |request, (name, value)| request.header(*name, value));
        request.call().map_err(|error| match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Failure::Final(Refusal::Connection(error.to_string()))
            }
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::Protocol(_) => Failure::Again(error.to_string()),
            other => Failure::Final(Refusal::Connection(other.to_string())),
        })
    }
}

/// Refuses an answer that is not these bytes of this version.
fn check_answer(
    response: &Response<Body>,
    version: &str,
    range: Range<u64>,
    is_whole: bool,
) -> Result<(), Failure> {
    let header = |name| response.headers().get(name).map(|value| value.as_bytes());
    let etag = header("etag").map(|etag| Version::pack(etag).to_string());
    let stated = format!("bytes {}-{}/", range.start, range.end - 1);
    let wrong = if etag.as_deref() != Some(version) {
        "another version, or none: the server does not know If-Match"
    } else if response.body().content_length().is_some_and(|length| length != range.end - range.start) {
        OTHER_LENGTH
    } else if !is_whole && !header("content-range").is_some_and(|sent| sent.starts_with(stated.as_bytes())) {
        "an answer is another range"
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
    let values: [(&str, &[u8]); 7] = [
        ("continuation-token", asked.next),
        ("delimiter", asked.delimiter),
        ("encoding-type", b"url"),
        ("list-type", b"2"),
        ("max-keys", b"1000"),
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
fn expect(mut response: Response<Body>, statuses: &[u16]) -> Result<Response<Body>, Failure> {
    let status = response.status().as_u16();
    if statuses.contains(&status) {
        return Ok(response);
    }
    let mut body = Vec::new();
    // The status says enough if its body does not arrive.
    let _ = response.body_mut().with_config().limit(MOST_ERROR_BYTES).reader().read_to_end(&mut body);
    let answer = Refusal::Answer { status, code: refusal::code(&body) };
    Err(match status {
        429 | 503 => Failure::Throttled(answer),
        408 | 500 | 502 | 504 => Failure::Again(answer.to_string()),
        _ => Failure::Final(answer),
    })
}
