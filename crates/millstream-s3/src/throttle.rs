//! Slows down the requests to a bucket that turns some of them away.
//!
//! S3 answers 503 when a bucket gets more requests than it is ready for. If each thread then waited by itself, all would come
//! back at once. So the clients of a bucket in this process share one [`Throttle`]: a rate that is halved when a request is
//! turned away, at most once in a second, and grows by a twentieth of what it was each second without that (additive increase,
//! multiplicative decrease). There is no limit before the first such answer, nor once the rate has grown well beyond what it was.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Times between two changes of the rate.
const PERIOD: Duration = Duration::from_secs(1);
/// Shortest time over which a rate is measured.
const MEASURED: Duration = Duration::from_millis(100);
const LOWEST: f64 = 1.0;
const GROWTH: f64 = 0.05;
/// With this multiple of the rate at which requests were turned away, there is no limit any more.
const ENOUGH: f64 = 2.0;

static THROTTLES: LazyLock<Mutex<HashMap<String, Weak<Throttle>>>> = LazyLock::new(Mutex::default);

/// The rate of requests to a bucket.
#[derive(Debug)]
pub(crate) struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: Option<Limit>,
    /// Requests since then.
    begun: u64,
    since: Instant,
}

#[derive(Debug)]
struct Limit {
    /// Requests in a second.
    rate: f64,
    /// The rate at which requests were turned away.
    refused: f64,
    /// When the next request may begin.
    next: Instant,
    changed: Instant,
}

impl Throttle {
    fn new(now: Instant) -> Self {
        Throttle { state: Mutex::new(State { limit: None, begun: 0, since: now }) }
    }

    /// The throttle of a bucket, the same for all clients in this process.
    pub(crate) fn of(bucket: &str) -> Arc<Self> {
        let mut all = THROTTLES.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, throttle| throttle.strong_count() > 0);
        all.get(bucket).and_then(Weak::upgrade).unwrap_or_else(|| {
            let made = Arc::new(Throttle::new(Instant::now()));
            all.insert(bucket.to_owned(), Arc::downgrade(&made));
            made
        })
    }

    /// How long a request must wait before it begins.
    pub(crate) fn begin(&self, now: Instant) -> Duration {
        self.with(|state| {
            if now.duration_since(state.since) >= 10 * PERIOD {
                (state.begun, state.since) = (0, now);
            }
            state.begun += 1;
            state.limit.as_mut().map_or(Duration::ZERO, |limit| {
                let start = limit.next.max(now);
                limit.next = start + Duration::from_secs_f64(1.0 / limit.rate);
                start - now
            })
        })
    }

    /// A request was turned away.
    pub(crate) fn refused(&self, now: Instant) {
        self.with(|state| {
            let elapsed = now.duration_since(state.since).max(MEASURED).as_secs_f64();
            let measured = state.begun as f64 / elapsed;
            (state.begun, state.since) = (0, now);
            match &mut state.limit {
                Some(limit) if now.duration_since(limit.changed) < PERIOD => {}
                Some(limit) => {
                    limit.refused = limit.rate;
                    limit.rate = (limit.rate / 2.0).max(LOWEST);
                    limit.changed = now;
                }
                none => {
                    let rate = (measured / 2.0).max(LOWEST);
                    *none = Some(Limit { rate, refused: 2.0 * rate, next: now, changed: now });
                }
            }
        });
    }

    /// A request was answered.
    pub(crate) fn answered(&self, now: Instant) {
        self.with(|state| {
            if let Some(limit) = &mut state.limit
                && now.duration_since(limit.changed) >= PERIOD
            {
                limit.rate += (limit.refused * GROWTH).max(LOWEST);
                limit.changed = now;
                if limit.rate > ENOUGH * limit.refused {
                    state.limit = None;
                }
            }
        });
    }

    fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        body(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests begin within a second from `start`.
    fn requests_in_a_second(throttle: &Throttle, start: Instant) -> u32 {
        let mut count = 0;
        while throttle.begin(start) < PERIOD {
            count += 1;
            assert!(count < 100_000, "unlimited");
        }
        count
    }

    #[test]
    fn the_rate_is_halved_grows_and_ends() {
        let start = Instant::now();
        let throttle = Throttle::new(start);
        for i in 0..1000 {
            assert_eq!(throttle.begin(start + Duration::from_millis(i)), Duration::ZERO);
        }
        let refused = start + PERIOD;
        throttle.refused(refused);
        throttle.refused(refused + PERIOD / 2);
        let halved = requests_in_a_second(&throttle, refused);
        assert!((495..=505).contains(&halved), "{halved}");

        let mut now = refused;
        for _ in 0..4 {
            now += PERIOD;
            throttle.answered(now);
            throttle.answered(now);
        }
        let grown = requests_in_a_second(&throttle, now + PERIOD);
        assert!((695..=705).contains(&grown), "{grown}");

        for _ in 0..40 {
            now += PERIOD;
            throttle.answered(now);
        }
        assert!((0..10_000).all(|_| throttle.begin(now) == Duration::ZERO));
    }

    #[test]
    fn it_never_stands_still() {
        let start = Instant::now();
        let throttle = Throttle::new(start);
        for second in 0..100 {
            throttle.refused(start + second * PERIOD);
        }
        assert_eq!(requests_in_a_second(&throttle, start + 100 * PERIOD), 1);
    }

    #[test]
    fn clients_of_a_bucket_share_it() {
        let (a, b) = (Throttle::of("a"), Throttle::of("b"));
        assert!(Arc::ptr_eq(&a, &Throttle::of("a")) && !Arc::ptr_eq(&a, &b));
    }
}
