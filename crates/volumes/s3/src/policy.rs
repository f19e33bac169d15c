//! How far a client goes for the result of a request.

use std::time::Duration;

/// How far a client goes for the result of a request, before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Limit of [`Settings::retries`](crate::Settings::retries).
    pub max_retries: u32,
    /// Limit of [`Settings::throttle_retries`](crate::Settings::throttle_retries).
    pub max_throttle_retries: u32,
    /// Longest pause between two attempts.
    pub longest_pause: Duration,
    /// Longest time for which the throttle keeps an attempt back.
    pub longest_wait: Duration,
    /// What happens to kinds of requests that are refused again and again.
    pub refused_kinds: RefusedKinds,
    /// What the read timeout limits when content is sent.
    pub send_timeout: SendTimeout,
    /// Where proxies are configured.
    pub proxies: Proxies,
}

/// What happens to kinds of requests that are refused again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedKinds {
    /// They are no longer made ([`Refusal::Unused`](crate::Refusal::Unused)).
    Dropped,
    /// They are still made.
    Kept,
}

/// What the read timeout limits when content is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTimeout {
    /// Sending all of it.
    Content,
    /// Each write to the connection.
    Write,
}

/// Where proxies are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// Nowhere: none are used.
    None,
    /// In the environment (`HTTPS_PROXY` and the like).
    Environment,
}

impl Policy {
    /// Another client of the bucket in this process, such as Spark's S3A, makes the requests that this one is refused.
    /// So this one gives up early; later if it is throttled, because the other one would repeat the request without
    /// regard to the rest.
    pub const WITH_FALLBACK: Policy = Policy {
        max_retries: 2,
        max_throttle_retries: 7,
        longest_pause: Duration::from_secs(1),
        longest_wait: Duration::from_secs(30),
        refused_kinds: RefusedKinds::Dropped,
        send_timeout: SendTimeout::Content,
        proxies: Proxies::None,
    };

    /// No other client makes a request that this one is refused.
    pub const WITHOUT_FALLBACK: Policy = Policy {
        max_retries: u32::MAX,
        max_throttle_retries: u32::MAX,
        longest_pause: Duration::from_secs(5),
        longest_wait: Duration::from_secs(600),
        refused_kinds: RefusedKinds::Kept,
        send_timeout: SendTimeout::Write,
        proxies: Proxies::Environment,
    };
}
