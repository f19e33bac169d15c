//! What hands out credentials for a time: a program that the profile names, the token service for the identity of a
//! container (EKS), the service of a container (ECS, EKS) and that of a machine (EC2).
//!
//! <https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use millstream_s3::{Credentials, element, encode_query, tls};
use serde_json::Value;
use ureq::{Agent, Proxy};

use super::profile::Profile;
use super::{domain, variable};

const TIMEOUT: Duration = Duration::from_secs(20);
/// A machine's service is near, or not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const MACHINE: &str = "http://169.254.169.254";
const CONTAINER: &str = "http://169.254.170.2";

/// Credentials, and until when they are good.
#[derive(Clone, Debug)]
pub(super) struct Dated {
    pub(super) credentials: Credentials,
    pub(super) until: Option<SystemTime>,
}

/// What asks services: those of this machine directly, others by the proxy that the environment names.
#[derive(Debug)]
pub(super) struct Http {
    near: Agent,
    far: Agent,
}

impl Http {
    pub(super) fn new(certificates: &[Vec<u8>]) -> Self {
        let agent = |proxy, connect_timeout| {
            let builder = Agent::config_builder().proxy(proxy).timeout_connect(Some(connect_timeout));
            builder.timeout_global(Some(TIMEOUT)).tls_config(tls(certificates)).build().new_agent()
        };
        Http { near: agent(None, CONNECT_TIMEOUT), far: agent(Proxy::try_from_env(), TIMEOUT) }
    }

    fn get(&self, url: &str, header: Option<(&str, &str)>) -> Result<String, String> {
        let request =
            header.iter().fold(self.near.get(url), |request, (name, value)| request.header(*name, *value));
        let mut answer = request.call().map_err(|error| error.to_string())?;
        answer.body_mut().read_to_string().map_err(|error| error.to_string())
    }

    fn post(&self, url: &str, form: &str) -> Result<String, String> {
        let request = self.far.post(url).header("content-type", "application/x-www-form-urlencoded");
        let mut answer = request.send(form).map_err(|error| error.to_string())?;
        answer.body_mut().read_to_string().map_err(|error| error.to_string())
    }

    fn put(&self, url: &str, header: (&str, &str)) -> Result<String, String> {
        let sent = self.near.put(url).header(header.0, header.1).send_empty();
        let mut answer = sent.map_err(|error| error.to_string())?;
        answer.body_mut().read_to_string().map_err(|error| error.to_string())
    }
}

/// One that may have credentials.
#[derive(Debug)]
pub(super) enum Service {
    /// The command of a profile.
    Program(String),
    /// The token service, for a token in a file.
    Identity { url: String, role: String, token: PathBuf, session: String },
    /// That of a container, at this URL.
    Container(String),
    /// That of a machine, at this URL.
    Machine(String),
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Service::Program(_) => "credential_process",
            Service::Identity { .. } => "AWS_WEB_IDENTITY_TOKEN_FILE",
            Service::Container(_) => "container credentials",
            Service::Machine(_) => "instance metadata service",
        })
    }
}

impl Service {
    /// The token service, if the environment has a token for it.
    pub(super) fn of_identity(region: &str) -> Vec<Self> {
        let identity = variable("AWS_WEB_IDENTITY_TOKEN_FILE").zip(variable("AWS_ROLE_ARN"));
        let service = identity.map(|(token, role)| {
            let url = variable("AWS_ENDPOINT_URL_STS")
                .unwrap_or_else(|| format!("https://sts.{region}.{}", domain(region)));
            let session = variable("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "millstream".to_owned());
            Service::Identity { url, role, token: token.into(), session }
        });
        service.into_iter().collect()
    }

    /// Those of this machine that the environment and the profile speak of, in the order in which to ask.
    pub(super) fn of_machine(profile: &Profile) -> Vec<Self> {
        let mut services = Vec::new();
        services.extend(profile.get("credential_process").map(Service::Program));
        let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let container = relative.map(|path| format!("{CONTAINER}{path}"));
        let container = container.or_else(|| variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
        services.extend(container.map(Service::Container));
        let is_disabled =
            variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !is_disabled {
            let url = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| MACHINE.to_owned());
            services.push(Service::Machine(url.trim_end_matches('/').to_owned()));
        }
        services
    }

    /// Its credentials, or why it gives none.
    pub(super) fn ask(&self, http: &Http) -> Result<Dated, String> {
        match self {
            Service::Program(command) => {
                let output = Command::new("sh").args(["-c", command]).output();
                let output = output.map_err(|error| error.to_string())?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', " "));
                }
                of_json(&String::from_utf8_lossy(&output.stdout), "SessionToken")
            }
            Service::Identity { url, role, token, session } => {
                let token = std::fs::read_to_string(token).map_err(|error| error.to_string())?;
                let mut form = String::new();
                for (name, value) in [
                    ("Action", "AssumeRoleWithWebIdentity"),
                    ("RoleArn", role),
                    ("RoleSessionName", session),
                    ("Version", "2011-06-15"),
                    ("WebIdentityToken", token.trim()),
                ] {
                    form.push_str(if form.is_empty() { "" } else { "&" });
                    form.push_str(name);
                    form.push('=');
                    encode_query(value.as_bytes(), &mut form);
                }
                of_xml(&http.post(url, &form)?)
            }
            Service::Container(url) => {
                let file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
                let token = match file {
                    Some(path) => Some(std::fs::read_to_string(path).map_err(|error| error.to_string())?),
                    None => variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
                };
                let header = token.as_deref().map(|token| ("authorization", token.trim()));
                of_json(&http.get(url, header)?, "Token")
            }
            Service::Machine(url) => {
                let roles = format!("{url}/latest/meta-data/iam/security-credentials/");
                let lifetime = ("x-aws-ec2-metadata-token-ttl-seconds", "21600");
                let token = http.put(&format!("{url}/latest/api/token"), lifetime)?;
                let header = Some(("x-aws-ec2-metadata-token", token.trim()));
                let role = http.get(&roles, header)?;
                let role = role.lines().next().unwrap_or_default();
                of_json(&http.get(&format!("{roles}{role}"), header)?, "Token")
            }
        }
    }
}

/// Credentials in JSON; `token` is how that of the session is called.
fn of_json(text: &str, token: &str) -> Result<Dated, String> {
    // The text is not told: it may have a secret.
    let value: Value = serde_json::from_str(text).map_err(|_| "its response is not JSON".to_owned())?;
    let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    dated(field("AccessKeyId"), field("SecretAccessKey"), field(token), field("Expiration"))
}

/// Credentials in the answer of the token service.
fn of_xml(text: &str) -> Result<Dated, String> {
    let field = |name: &[u8]| element(text.as_bytes(), name);
    dated(field(b"AccessKeyId"), field(b"SecretAccessKey"), field(b"SessionToken"), field(b"Expiration"))
}

fn dated(
    id: Option<String>,
    secret: Option<String>,
    token: Option<String>,
    until: Option<String>,
) -> Result<Dated, String> {
    let (Some(id), Some(secret)) = (id, secret) else {
        return Err("its response has no access key".to_owned());
    };
    let until = match until {
        Some(text) => {
            let time: jiff::Timestamp =
                text.parse().map_err(|_| "the expiration time in its response is not valid".to_owned())?;
            Some(SystemTime::from(time))
        }
        None => None,
    };
    Ok(Dated { credentials: Credentials::Key { id, secret, token: token.unwrap_or_default() }, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_keys_and_an_end() {
        let json = r#"{"Code": "Success", "AccessKeyId": "I", "SecretAccessKey": "S", "Token": "T", "Expiration": "2030-01-01T00:00:00Z"}"#;
        let xml = "<R xmlns='x'><C><AccessKeyId>I</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>\
                   <Expiration>2030-01-01T00:00:00Z</Expiration></C></R>";
        for found in [of_json(json, "Token"), of_xml(xml)] {
            let found = found.expect("credentials");
            let Credentials::Key { id, secret, token } = found.credentials else { panic!("a key") };
            assert_eq!((&*id, &*secret, &*token), ("I", "S", "T"));
            assert_eq!(found.until, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_456_000)));
        }
        assert!(
            of_json(r#"{"AccessKeyId": "I", "SecretAccessKey": "S"}"#, "Token")
                .expect("a key")
                .until
                .is_none()
        );
        for wrong in ["", "{", "{}", "[]", r#"{"AccessKeyId": "I"}"#, &json.replace("2030-01", "x")] {
            assert!(of_json(wrong, "Token").is_err(), "{wrong}");
        }
    }
}
