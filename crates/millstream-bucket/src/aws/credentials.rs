//! The chain of places that have credentials, in Amazon's order: the environment, a token of the container's identity, the
//! profile, the container's service, the machine's service. The first that has any is asked again before they end.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use millstream_s3::Credentials;

use super::profile::Profile;
use super::services::{Dated, Http, Service};
use super::{AccessError, variable};
use crate::bucket::lock;

/// Credentials are renewed when they are good for no longer than this.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// Pause after an attempt to renew them that failed, while the old ones are good.
const PAUSE: Duration = Duration::from_secs(10);

/// Where credentials come from.
#[derive(Debug)]
pub(super) struct Chain {
    /// None if what there is never ends.
    service: Option<Service>,
    http: Http,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: Dated,
    tried: SystemTime,
}

impl Chain {
    /// Asks all places until one has credentials.
    ///
    /// # Errors
    /// If none has.
    pub(super) fn new(profile: Profile, region: &str, certificates: &[Vec<u8>]) -> Result<Self, AccessError> {
        let http = Http::new(certificates);
        let (current, service) = first(&profile, region, &http).map_err(AccessError::NoCredentials)?;
        let state = Mutex::new(State { current, tried: SystemTime::now() });
        Ok(Chain { service, http, state })
    }

    /// A chain that knows a key.
    #[cfg(test)]
    pub(super) fn of(id: &str, secret: &str) -> Self {
        let credentials = Credentials::Key { id: id.into(), secret: secret.into(), token: String::new() };
        let current = Dated { credentials, until: None };
        let state = Mutex::new(State { current, tried: SystemTime::now() });
        Chain { service: None, http: Http::new(&[]), state }
    }

    /// The credentials of now, renewed if they are about to end.
    pub(super) fn credentials(&self) -> Option<Credentials> {
        let mut state = lock(&self.state);
        let now = SystemTime::now();
        let is_good_for = |dated: &Dated, time| dated.until.is_none_or(|until| until > now + time);
        let may_try = now.duration_since(state.tried).is_ok_and(|passed| passed >= PAUSE);
        let ends = !is_good_for(&state.current, MARGIN);
        if let (true, Some(service)) =
            (ends && (may_try || !is_good_for(&state.current, PAUSE)), &self.service)
        {
            state.tried = now;
            if let Ok(renewed) = service.ask(&self.http) {
                state.current = renewed;
            }
        }
        is_good_for(&state.current, Duration::ZERO).then(|| state.current.credentials.clone())
    }
}

/// The first credentials that there are, with the service that renews them, or why there are none.
fn first(profile: &Profile, region: &str, http: &Http) -> Result<(Dated, Option<Service>), String> {
    let key = |id: Option<String>, secret: Option<String>, token: Option<String>| {
        let (id, secret, token) = (id?, secret?, token.unwrap_or_default());
        Some((Dated { credentials: Credentials::Key { id, secret, token }, until: None }, None))
    };
    let is_named = variable("AWS_PROFILE").is_some();
    let of_environment =
        key(variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"));
    if let Some(found) = of_environment {
        return Ok(found);
    }
    let of_profile = || {
        key(
            profile.get("aws_access_key_id"),
            profile.get("aws_secret_access_key"),
            profile.get("aws_session_token"),
        )
    };
    if let Some(found) = of_profile() {
        return Ok(found);
    }
    if is_named && ["sso_session", "sso_start_url", "role_arn"].iter().any(|name| profile.get(name).is_some())
    {
        return Err(", because the profile takes them from single sign-on or from another role".to_owned());
    }
    let mut reasons = String::new();
    for service in Service::of_environment(profile, region) {
        match service.ask(http) {
            Ok(found) => return Ok((found, Some(service))),
            Err(reason) => reasons.push_str(&format!(" ({service}: {reason})")),
        }
    }
    Err(reasons)
}
