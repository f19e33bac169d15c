//! Slows down the requests to a bucket that throttles them.
//!
//! S3 answers 503 when a bucket gets more requests than it can handle. If each thread then waited by itself, all would
//! come back at once. So the clients of a bucket in this process share one [`Throttle`]: a rate that is halved when a
//! request is throttled, at most four times in a second, and grows each second without throttling, by a twentieth of
//! the initial rate (additive increase, multiplicative decrease). There is no limit before the first such answer, nor
//! once the rate has grown well beyond the initial one.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The rate grows after this time, and is measured over it.
const PERIOD: Duration = Duration::from_secs(1);
/// A request throttled so soon after the rate was halved began before that, or was in the burst that emptied the
/// bucket's quota.
const SETTLING: Duration = Duration::from_millis(250);
/// Shortest time over which a rate is measured.
const MEASURED: Duration = Duration::from_millis(100);
/// A waiting request checks again after this time, since the rate may have changed. Unused permission to begin requests
/// is saved up for as long.
const STEP: Duration = Duration::from_millis(100);
/// Requests in a second.
const LOWEST: f64 = 1.0;
const GROWTH: f64 = 0.05;
/// At this multiple of the rate at which requests were first throttled, the limit is dropped.
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
    recent: Recent,
}

/// The rate of requests until now. Time without any does not count: throttled requests came in a burst.
#[derive(Debug)]
struct Recent {
    /// Requests since then, for at most a [`PERIOD`].
    begun: u64,
    since: Instant,
    /// Requests in a second in the period before, if there was one right before.
    before: f64,
}

impl Recent {
    fn begin(&mut self, now: Instant) {
        let elapsed = now.duration_since(self.since);
        if elapsed >= PERIOD {
            let before = if elapsed < 2 * PERIOD { self.begun as f64 / elapsed.as_secs_f64() } else { 0.0 };
            *self = Recent { begun: 0, since: now, before };
        }
        self.begun += 1;
    }

    /// Requests in a second.
    fn rate(&self, now: Instant) -> f64 {
        let elapsed = now.duration_since(self.since).clamp(MEASURED, PERIOD).as_secs_f64();
        (self.begun as f64 / elapsed).max(self.before)
    }
}

#[derive(Debug)]
struct Limit {
    /// Requests in a second.
    rate: f64,
    /// The rate at which requests were first throttled.
    refused: f64,
    /// Requests that may begin at this time.
    allowed: f64,
    counted: Instant,
    changed: Instant,
}

impl Limit {
    /// Takes the right to begin a request, or says how long it will take until there is one.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        let most = (self.rate * STEP.as_secs_f64()).max(1.0);
        let more = now.duration_since(self.counted).as_secs_f64() * self.rate;
        (self.allowed, self.counted) = ((self.allowed + more).min(most), now);
        if self.allowed >= 1.0 {
            self.allowed -= 1.0;
            return None;
        }
        Some(Duration::from_secs_f64((1.0 - self.allowed) / self.rate).min(STEP))
    }
}

impl Throttle {
    fn new(now: Instant) -> Self {
        let recent = Recent { begun: 0, since: now, before: 0.0 };
        Throttle { state: Mutex::new(State { limit: None, recent }) }
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

    /// Whether a request may begin now: `None`, or when to ask again. Waiting requests do not queue.
    pub(crate) fn begin(&self, now: Instant) -> Option<Duration> {
        self.with(|state| {
            if let Some(wait) = state.limit.as_mut().and_then(|limit| limit.take(now)) {
                return Some(wait);
            }
            state.recent.begin(now);
            None
        })
    }

    /// A request was throttled.
    pub(crate) fn refused(&self, now: Instant) {
        self.with(|state| {
            let measured = state.recent.rate(now);
            match &mut state.limit {
                Some(limit) if now.duration_since(limit.changed) < SETTLING => {}
                Some(limit) => (limit.rate, limit.changed) = ((limit.rate / 2.0).max(LOWEST), now),
                none => {
                    let rate = (measured / 2.0).max(LOWEST);
                    *none =
                        Some(Limit { rate, refused: 2.0 * rate, allowed: 0.0, counted: now, changed: now });
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

    /// A throttle whose bucket throttled after a second with 1000 requests.
    fn refused(start: Instant) -> Throttle {
        let throttle = Throttle::new(start);
        assert!((0..1000).all(|i| throttle.begin(start + Duration::from_millis(i)).is_none()));
        throttle.refused(start + PERIOD);
        throttle
    }

    /// How many requests begin within a second from `start` if there are always more waiting.
    fn requests_in_a_second(throttle: &Throttle, start: Instant) -> u32 {
        let mut count = 0;
        for ms in 0..1000 {
            while throttle.begin(start + Duration::from_millis(ms)).is_none() {
                count += 1;
                assert!(count < 100_000, "unlimited");
            }
        }
        count
    }

    #[test]
    fn the_rate_is_halved_grows_and_ends() {
        let start = Instant::now();
        let throttle = refused(start);
        let mut now = start + PERIOD;
        throttle.refused(now + SETTLING / 2);
        let halved = requests_in_a_second(&throttle, now);
        assert!((490..=510).contains(&halved), "{halved}");
        for _ in 0..4 {
            now += PERIOD;
            throttle.answered(now);
            throttle.answered(now);
        }
        let grown = requests_in_a_second(&throttle, now);
        assert!((690..=780).contains(&grown), "{grown}");
        for _ in 0..40 {
            now += PERIOD;
            throttle.answered(now);
        }
        assert!((0..10_000).all(|_| throttle.begin(now).is_none()));
    }

    #[test]
    fn after_many_refusals_it_grows_from_there() {
        let start = Instant::now();
        let throttle = refused(start);
        let mut now = start + PERIOD;
        for _ in 0..20 {
            now += PERIOD;
            throttle.refused(now);
        }
        let lowest = requests_in_a_second(&throttle, now);
        assert!((1..=2).contains(&lowest), "{lowest}");
        for _ in 0..5 {
            now += PERIOD;
            throttle.answered(now);
        }
        let grown = requests_in_a_second(&throttle, now);
        assert!((240..=290).contains(&grown), "{grown}");
    }

    #[test]
    fn who_waits_looks_again_soon() {
        let start = Instant::now();
        let throttle = refused(start);
        let now = start + 2 * PERIOD;
        while throttle.begin(now).is_none() {}
        for _ in 0..10_000 {
            assert!(throttle.begin(now).is_some_and(|wait| wait <= STEP), "however many wait");
        }
    }

    #[test]
    fn idle_time_before_a_burst_is_no_part_of_its_rate() {
        let start = Instant::now();
        let throttle = Throttle::new(start);
        assert!(throttle.begin(start).is_none());
        let burst = start + 9 * PERIOD;
        assert!((0..100).all(|i| throttle.begin(burst + Duration::from_millis(i)).is_none()));
        throttle.refused(burst + MEASURED);
        let halved = requests_in_a_second(&throttle, burst + MEASURED);
        assert!((490..=510).contains(&halved), "{halved}");
    }

    #[test]
    fn clients_of_a_bucket_share_it() {
        let (a, b) = (Throttle::of("a"), Throttle::of("b"));
        assert!(Arc::ptr_eq(&a, &Throttle::of("a")) && !Arc::ptr_eq(&a, &b));
    }
}
