//! The chain of providers of credentials, in the order of Amazon's tools: the environment, a web identity token, the
//! profile, container credentials, the instance metadata service. The first that has any is asked again before they
//! end.

use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use millstream_s3::Credentials;

use super::profile::Profile;
use super::services::{Dated, Http, Service};
use super::{AccessError, variable};
use crate::bucket::lock;

/// Credentials are renewed when they are good for no longer than this.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// Pause after an attempt to renew them.
const PAUSE: Duration = Duration::from_secs(1);

/// Where credentials come from.
#[derive(Debug)]
pub(super) struct Chain {
    /// None if what there is never ends.
    service: Option<Service>,
    http: Http,
    current: Mutex<Dated>,
    /// When they were last asked for; held meanwhile.
    renewal: Mutex<Option<Instant>>,
}

impl Chain {
    /// Asks all places until one has credentials.
    ///
    /// # Errors
    /// If none has.
    pub(super) fn new(profile: Profile, region: &str, certificates: &[Vec<u8>]) -> Result<Self, AccessError> {
        let http = Http::new(certificates);
        let (current, service) = first(&profile, region, &http).map_err(AccessError::NoCredentials)?;
        Ok(Chain { service, http, current: Mutex::new(current), renewal: Mutex::default() })
    }

    /// A chain that knows a key.
    #[cfg(test)]
    pub(super) fn of(id: &str, secret: &str) -> Self {
        let credentials = Credentials::Key { id: id.into(), secret: secret.into(), token: String::new() };
        let current = Mutex::new(Dated { credentials, until: None });
        Chain { service: None, http: Http::new(&[]), current, renewal: Mutex::default() }
    }

    /// The current credentials. When they are about to expire, one thread renews them; meanwhile, others use the old
    /// ones.
    pub(super) fn credentials(&self) -> Option<Credentials> {
        if let (Some(service), true) = (&self.service, self.ends_within(MARGIN)) {
            let is_over = self.ends_within(Duration::ZERO);
            let turn = match self.renewal.try_lock() {
                Ok(turn) => Some(turn),
                Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) => is_over.then(|| lock(&self.renewal)),
            };
            if let Some(mut tried) = turn {
                let is_time = tried.is_none_or(|tried| tried.elapsed() >= PAUSE);
                if is_time && self.ends_within(MARGIN) {
                    if let Ok(renewed) = service.ask(&self.http) {
                        *lock(&self.current) = renewed;
                    }
                    *tried = Some(Instant::now());
                }
            }
        }
        let is_good = !self.ends_within(Duration::ZERO);
        is_good.then(|| lock(&self.current).credentials.clone())
    }

    fn ends_within(&self, time: Duration) -> bool {
        lock(&self.current).until.is_some_and(|until| until <= SystemTime::now() + time)
    }
}

/// The first credentials that there are, with the service that renews them, or why there are none.
fn first(profile: &Profile, region: &str, http: &Http) -> Result<(Dated, Option<Service>), String> {
    let key = |id: Option<String>, secret: Option<String>, token: Option<String>| {
        let (id, secret, token) = (id?, secret?, token.unwrap_or_default());
        Some((Dated { credentials: Credentials::Key { id, secret, token }, until: None }, None))
    };
    let of_environment =
        key(variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"));
    if let Some(found) = of_environment {
        return Ok(found);
    }
    let mut reasons = String::new();
    let mut ask = |services: Vec<Service>| {
        services.into_iter().find_map(|service| match service.ask(http) {
            Ok(found) => Some((found, Some(service))),
            Err(reason) => {
                reasons.push_str(&format!(" ({service}: {reason})"));
                None
            }
        })
    };
    if let Some(found) = ask(Service::of_identity(region)) {
        return Ok(found);
    }
    if ["sso_session", "sso_start_url", "role_arn"].iter().any(|name| profile.get(name).is_some()) {
        return Err(", because the profile uses single sign-on or another role".to_owned());
    }
    let of_profile = key(
        profile.get("aws_access_key_id"),
        profile.get("aws_secret_access_key"),
        profile.get("aws_session_token"),
    );
    if let Some(found) = of_profile.or_else(|| ask(Service::of_machine(profile))) {
        return Ok(found);
    }
    Err(reasons)
}
