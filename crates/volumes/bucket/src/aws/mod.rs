//! Where buckets are and who asks for them, as Amazon's own tools find out: the environment, the profiles in `~/.aws`,
//! and the services that containers and machines of Amazon have.
//!
//! <https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html>. Profiles of single sign-on and those that
//! take another role are not supported; `aws configure export-credentials` gives their credentials.

mod credentials;
mod profile;
mod services;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use millstream_s3::{Address, Client, CredentialSource, Credentials, Policy, Settings};

use credentials::Chain;
use profile::Profile;

const READ_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests of one bucket at once. There are as many threads as the latency asks for; this is a limit of last resort.
const CONNECTIONS: usize = 1024;
/// Together with their pauses, these take some 20 seconds.
const RETRIES: u32 = 10;
/// These take some two minutes.
const THROTTLE_RETRIES: u32 = 30;

/// Why buckets cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// There are no credentials.
    #[error(
        "no S3 credentials found{0}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or \
         use `aws configure export-credentials --format env`"
    )]
    NoCredentials(String),
    /// An endpoint is not the URL of a server.
    #[error("{0}: not a valid endpoint URL; expected one like https://s3.example.com")]
    Endpoint(String),
    /// A file cannot be read.
    #[error("cannot read '{path}': {reason}", path = .0.display(), reason = .1)]
    File(PathBuf, String),
    /// There is no such profile.
    #[error("no profile '{0}' in ~/.aws/credentials or ~/.aws/config; correct AWS_PROFILE")]
    NoProfile(String),
}

/// How buckets are reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// The server, if it is not Amazon's.
    endpoint: Option<String>,
    region: String,
    certificates: Vec<Vec<u8>>,
    credentials: Arc<Chain>,
}

impl Access {
    /// What the environment and the profile of this user say. Asks for credentials, once.
    ///
    /// # Errors
    /// If something is wrong with that, or there are no credentials.
    pub fn from_environment() -> Result<Self, AccessError> {
        let profile = Profile::from_environment()?;
        let endpoint = variable("AWS_ENDPOINT_URL_S3")
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .or_else(|| profile.get("endpoint_url"));
        let endpoint = endpoint.map(|url| {
            let address = Address::new(&format!("{}/", url.trim_end_matches('/')));
            if address.is_some() {
                Ok(url.trim_end_matches('/').to_owned())
            } else {
                // What precedes an @ may be a password.
                Err(AccessError::Endpoint(url.rsplit('@').next().unwrap_or_default().to_owned()))
            }
        });
        let endpoint = endpoint.transpose()?;
        let region = variable("AWS_REGION")
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .or_else(|| profile.get("region"))
            .unwrap_or_else(|| "us-east-1".to_owned());
        let certificates = certificates()?;
        let credentials = Arc::new(Chain::new(profile, &region, &certificates)?);
        Ok(Access { endpoint, region, certificates, credentials })
    }

    /// A client of a bucket.
    pub(crate) fn client(&self, bucket: &str) -> Client {
        let url = self.url(bucket);
        let settings = Settings {
            // Its parts have been checked.
            address: Address::new(&url).unwrap_or_else(|| unreachable!("{url} is an address")),
            region: self.region.clone(),
            user_agent: concat!("millstream/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: READ_TIMEOUT,
            retries: RETRIES,
            throttle_retries: THROTTLE_RETRIES,
            connections: CONNECTIONS,
            certificates: self.certificates.clone(),
            policy: Policy::WITHOUT_FALLBACK,
        };
        Client::new(settings, Box::new(Shared(Arc::clone(&self.credentials))))
    }

    /// The URL that the keys of a bucket are appended to.
    fn url(&self, bucket: &str) -> String {
        let region = &self.region;
        let domain = domain(region);
        match &self.endpoint {
            Some(endpoint) => format!("{endpoint}/{bucket}/"),
            // The certificate is good for one part before the service's name.
            None if bucket.contains(['.', '_']) || bucket.bytes().any(|b| b.is_ascii_uppercase()) => {
                format!("https://s3.{region}.{domain}/{bucket}/")
            }
            None => format!("https://{bucket}.s3.{region}.{domain}/"),
        }
    }
}

/// The chain, as each client has it.
struct Shared(Arc<Chain>);

impl CredentialSource for Shared {
    fn credentials(&self) -> Option<Credentials> {
        self.0.credentials()
    }
}

/// Where the hosts of a region's services are.
fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

/// A variable of the environment that is set, and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The certificates to trust: those of a file that is named, otherwise the system's.
fn certificates() -> Result<Vec<Vec<u8>>, AccessError> {
    let Some(path) = variable("AWS_CA_BUNDLE").map(PathBuf::from) else {
        // Without any, a connection that needs one says so.
        let found = rustls_native_certs::load_native_certs().certs;
        return Ok(found.iter().map(|certificate| certificate.to_vec()).collect());
    };
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let failed = |error: rustls::pki_types::pem::Error| AccessError::File(path.clone(), error.to_string());
    let found = CertificateDer::pem_file_iter(&path).map_err(failed)?;
    found.map(|certificate| certificate.map(|der| der.to_vec()).map_err(failed)).collect()
}

/// Parses a file of profiles, for fuzz/.
#[cfg(feature = "fuzzing")]
pub fn parse_profile(text: &str, name: &str) {
    let _ = profile::section(text, name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_amazon_are_hosts_where_their_names_can_be() {
        let access = |endpoint: Option<&str>, region: &str| Access {
            endpoint: endpoint.map(str::to_owned),
            region: region.to_owned(),
            certificates: Vec::new(),
            credentials: Arc::new(Chain::of("a", "b")),
        };
        for (endpoint, region, bucket, url) in [
            (None, "eu-central-1", "data", "https://data.s3.eu-central-1.amazonaws.com/"),
            (None, "eu-central-1", "my.data", "https://s3.eu-central-1.amazonaws.com/my.data/"),
            (None, "cn-north-1", "data", "https://data.s3.cn-north-1.amazonaws.com.cn/"),
            (Some("http://127.0.0.1:9000"), "x", "data", "http://127.0.0.1:9000/data/"),
        ] {
            let access = access(endpoint, region);
            assert_eq!(access.url(bucket), url);
            assert!(Address::new(&access.url(bucket)).is_some());
        }
    }
}
