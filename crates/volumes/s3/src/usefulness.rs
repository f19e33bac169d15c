//! Whether a kind of request is useful.
//!
//! A client may have outdated settings, or lack what a bucket requires of requests; then every request is made twice,
//! the second time by the bucket's real client. So requests of a kind end after enough refusals in a row. Before the
//! first success, one is enough if it says that the request itself is wrong. Denied access to an object is not such a
//! refusal, and requests that are lost or throttled say nothing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::refusal::Refusal;

const ENOUGH: u32 = 16;

#[derive(Debug, Default)]
pub(crate) struct Usefulness {
    has_succeeded: AtomicBool,
    /// Refusals since the last success.
    refusals: AtomicU32,
}

impl Usefulness {
    pub(crate) fn is_useful(&self) -> bool {
        self.refusals.load(Ordering::Relaxed) < ENOUGH
    }

    pub(crate) fn succeeded(&self) {
        self.has_succeeded.store(true, Ordering::Relaxed);
        self.refusals.store(0, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        let weight = match refusal {
            Refusal::Answer { status: 404 | 412 | 416, .. } => return self.succeeded(),
            Refusal::Answer { status: 429 | 503, .. }
            | Refusal::Lost(_)
            | Refusal::Credentials
            | Refusal::NotTaken
            | Refusal::Unused => return,
            Refusal::Answer { code, .. } if code == "AccessDenied" || code == "InvalidObjectState" => 1,
            Refusal::Answer { .. } | Refusal::Connection(_) | Refusal::Malformed(_) => {
                if self.has_succeeded.load(Ordering::Relaxed) { 1 } else { ENOUGH }
            }
        };
        self.refusals.fetch_add(weight, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, code: &str) -> Refusal {
        Refusal::Answer { status, code: code.into() }
    }

    /// Whether requests are useful after these.
    fn after(refusals: &[Refusal], successes: usize) -> bool {
        let usefulness = Usefulness::default();
        (0..successes).for_each(|_| usefulness.succeeded());
        refusals.iter().for_each(|refusal| usefulness.refused(refusal));
        usefulness.is_useful()
    }

    #[test]
    fn what_is_wrong_with_the_first_request_is_wrong_with_all() {
        for refusal in [
            answer(301, "PermanentRedirect"),
            answer(400, "AuthorizationHeaderMalformed"),
            answer(403, "SignatureDoesNotMatch"),
            answer(501, "NotImplemented"),
            answer(206, ""),
            Refusal::Connection("certificate".into()),
            Refusal::Malformed("no XML"),
        ] {
            assert!(!after(std::slice::from_ref(&refusal), 0), "{refusal:?}");
            assert!(after(&vec![refusal.clone(); 15], 1), "{refusal:?}");
            assert!(!after(&vec![refusal.clone(); 16], 1), "{refusal:?}");
        }
    }

    #[test]
    fn a_moment_or_an_object_says_little() {
        for refusal in [
            answer(403, "AccessDenied"),
            answer(403, "InvalidObjectState"),
            answer(503, "SlowDown"),
            answer(429, ""),
            answer(404, "NoSuchKey"),
            answer(412, ""),
            Refusal::Lost("connection reset".into()),
            Refusal::Credentials,
        ] {
            assert!(after(&vec![refusal.clone(); 15], 0), "{refusal:?}");
        }
        assert!(!after(&vec![answer(403, "AccessDenied"); 16], 1), "too many in a row");
        assert!(after(&vec![answer(503, "SlowDown"); 1000], 0));
        assert!(after(&vec![answer(404, ""); 1000], 0));
    }
}
