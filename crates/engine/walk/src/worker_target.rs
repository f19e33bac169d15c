//! Adapts the number of workers.
//!
//! Each worker meters itself after the calls it makes ([`millstream_system::concurrency`]). If a wait is significant,
//! the kernel is asked how much of it was spent on the run queue. With `c` CPUs and calls that take `w` of wall time
//! for every unit of CPU time, `c·w` workers keep the CPUs busy; twice as many ride out the variation.
//!
//! Where a single wait lasts as long as a round trip to a server, the floor is 64 workers (32 on one CPU, which cannot
//! drive more): a filer serves that many in parallel, and the first directories of a tree do not show how wide it is.
//! The number grows to the floor at once, because the first answers of a slow server suffice to recognise it. Beyond
//! the floor, it doubles only after every worker has reported, and only if the CPUs are idle, used neither by the
//! process (including starting and waking threads) nor by others: otherwise workers wait for a CPU, here or in the
//! server.
//!
//! The number shrinks when several windows agree, or at once if the process keeps the CPUs busy: then workers wait for
//! each other (a local disk's journal, the lock of a directory), and half of them suffice. If half do not suffice, the
//! CPUs become idle again, and that halving was the last.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_system::concurrency::{Lap, Meter, cpus};
use millstream_system::usage::{CpuTimes, process_cpu_time};
use rustix::process::{Resource, getrlimit};

use crate::Threads;

/// A window is judged when it has this many samples …
const WINDOW_SAMPLES: u32 = 16;
/// … or this much waiting.
const WINDOW_WAIT: Duration = Duration::from_micros(500);
/// How long CPU use is watched before the number grows beyond the floor for a server: kernels that count CPU time in
/// ticks of up to 10 ms show most shorter times as idle.
const GROWTH_WINDOW: Duration = Duration::from_millis(50);
/// How long it is watched before the number shrinks because the CPUs are busy, if CPU time is not counted in ticks.
const BUSY_WINDOW: Duration = Duration::from_millis(5);
/// A wait as long as this is a round trip to a server.
const ROUND_TRIP: Duration = Duration::from_micros(200);
/// The floor of workers for a server ...
const SERVER_WORKERS: usize = 64;
/// ... unless the CPUs are too few to drive them.
const WORKERS_PER_CPU: usize = 32;
/// The number grows beyond the floor for a server only while the process uses less than this share of the CPUs.
const IDLE_SHARE: f64 = 0.25;
/// Share of idle CPU time, system-wide, from which more workers would find a CPU. It is small, because a FUSE server on
/// this machine works for this process.
const IDLE_CPUS: f64 = 0.05;
/// Share of the CPUs in use from which they count as busy.
const BUSY_SHARE: f64 = 0.8;
/// Share of the CPUs in use up to which they count as idle again after a halving.
const EASED_SHARE: f64 = 0.6;
/// Address space for a worker, where it is limited: stack, buffers, and the C library's heap for the thread.
const WORKER_ADDRESS_BYTES: u64 = 128 << 20;
/// Windows that must agree before the number shrinks.
const SHRINK_AFTER: u32 = 8;

/// The number of workers that the traversal should have now.
#[derive(Debug)]
pub(crate) struct WorkerTarget {
    cpus: usize,
    max: usize,
    adaptive: bool,
    target: AtomicUsize,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    /// Since when the use of the CPUs has been watched, and the CPU time of the process then.
    watched_since: Option<(Instant, Duration)>,
    /// The times of the CPUs when growth beyond the floor for a server was last considered.
    cpu_times: Option<CpuTimes>,
    samples: u32,
    used: Lap,
    calm: u32,
    /// The CPUs have been seen busy with more workers than CPUs.
    contended: bool,
    /// A number of workers that was too small to keep the CPUs busy.
    too_few: usize,
}

/// The floor of workers for a server.
fn server_workers(cpus: usize) -> usize {
    SERVER_WORKERS.min(WORKERS_PER_CPU * cpus)
}

impl WorkerTarget {
    /// At most `most` workers; from the beginning the floor for a server, if it is known that calls wait for one.
    pub(crate) fn new(threads: Threads, most: usize, waits: bool) -> Self {
        let cpus = cpus();
        let first = if waits { server_workers(cpus) } else { cpus };
        let (adaptive, max, target) = match threads {
            Threads::Fixed(n) => (false, n.clamp(1, most), n),
            Threads::Adaptive { max } => (true, max.min(most).min(workers_that_fit()).max(1), first),
        };
        WorkerTarget {
            cpus,
            max,
            adaptive,
            target: AtomicUsize::new(target.clamp(1, max)),
            window: Mutex::default(),
        }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn target(&self) -> usize {
        self.target.load(Ordering::Relaxed)
    }

    /// Whether the target is still below the floor for a server.
    pub(crate) fn is_starting(&self) -> bool {
        self.target() < server_workers(self.cpus)
    }

    /// Whether calls wait more than they compute, as far as is known.
    pub(crate) fn calls_wait(&self) -> bool {
        self.target() > self.cpus
    }

    /// The fewest entries in a chunk: the longer calls wait, the smaller the chunks that are worth handing over.
    pub(crate) fn min_chunk(&self) -> usize {
        if self.calls_wait() { 8 } else { 128 }
    }

    /// Takes a sample; returns whether it raised the target. `process_cpu` is the CPU time of the process, which costs
    /// a pass over its threads, `cpu_times` those of the CPUs, which costs more.
    fn add(
        &self,
        now: Instant,
        lap: Lap,
        process_cpu: impl Fn() -> Duration,
        cpu_times: impl Fn() -> Option<CpuTimes>,
    ) -> bool {
        // Workers that meet here would wait for each other, on a single CPU for a time slice: a lost sample does no
        // harm.
        let Ok(mut window) = self.window.try_lock() else { return false };
        let (since, cpu_before) = *window.watched_since.get_or_insert_with(|| (now, process_cpu()));
        window.samples += 1;
        window.used += lap;
        let (target, enough) = (self.target(), server_workers(self.cpus));
        let complete = if target < enough {
            window.samples >= WINDOW_SAMPLES
                || window.used.wall.saturating_sub(window.used.cpu) >= WINDOW_WAIT
        } else {
            window.samples as usize >= target
        };
        if !complete {
            return false;
        }
        let watched = now - since;
        let decisive = if target > self.cpus { BUSY_WINDOW } else { GROWTH_WINDOW };
        let cpu_now = (watched >= decisive).then(process_cpu);
        let used = cpu_now.map(|cpu_now| cpu_now - cpu_before);
        // The share of the CPUs, NaN if unknown, which is neither above nor below another number.
        let share = match used {
            Some(used) if watched >= GROWTH_WINDOW || !is_counted_in_ticks(used) => {
                used.as_secs_f64() / (watched.as_secs_f64() * self.cpus as f64)
            }
            _ => f64::NAN,
        };
        let is_busy = target > self.cpus && target / 2 > window.too_few && share > BUSY_SHARE;
        let leaves_cpus = watched >= GROWTH_WINDOW && share < IDLE_SHARE;
        let is_idle = leaves_cpus && (target < enough || window.finds_idle_cpus(&cpu_times));
        let is_eased = window.contended && share < EASED_SHARE;
        if is_busy || is_eased || watched >= GROWTH_WINDOW {
            window.watched_since = cpu_now.map(|cpu_now| (now, cpu_now));
        }
        let most = if is_busy {
            (target / 2).max(self.cpus)
        } else if is_idle || is_eased {
            2 * target
        } else if target < enough && !window.contended {
            enough
        } else {
            target
        };
        let wanted = wanted(&window.used, self.cpus, enough).min(most).min(self.max);
        let calm = if wanted < target { window.calm + 1 } else { 0 };
        *window = Window {
            watched_since: window.watched_since,
            cpu_times: window.cpu_times,
            calm: calm % SHRINK_AFTER,
            contended: (window.contended || is_busy) && !is_idle,
            too_few: if is_eased { target } else { window.too_few },
            ..Window::default()
        };
        let rises = wanted > target;
        if rises || is_busy || calm == SHRINK_AFTER {
            self.target.store(wanted, Ordering::Relaxed);
        }
        rises
    }
}

impl Window {
    /// Whether the CPUs have been idle, system-wide, for some of the time since the last call. The first call just
    /// begins that time.
    fn finds_idle_cpus(&mut self, cpu_times: impl Fn() -> Option<CpuTimes>) -> bool {
        let now = cpu_times();
        match (now, std::mem::replace(&mut self.cpu_times, now)) {
            (Some(now), Some(then)) => now.idle_since(&then).is_some_and(|idle| idle > IDLE_CPUS),
            (Some(_), None) => false,
            // The kernel does not report it.
            (None, _) => true,
        }
    }
}

/// Whether an amount of CPU time looks as if the kernel counts it in ticks of some milliseconds.
fn is_counted_in_ticks(cpu: Duration) -> bool {
    cpu.subsec_nanos().is_multiple_of(1_000_000)
}

fn wanted(used: &Lap, cpus: usize, server_workers: usize) -> usize {
    if !used.is_waiting() {
        return cpus;
    }
    let wait = used.wall.saturating_sub(used.cpu) / u32::try_from(used.waits.max(1)).unwrap_or(u32::MAX);
    let busy = (cpus as f64 * used.ratio() * 2.0) as usize;
    if wait >= ROUND_TRIP { busy.max(server_workers) } else { busy }
}

/// One worker's meter.
#[derive(Debug)]
pub(crate) struct WorkerMeter {
    meter: Meter,
    /// The part of the visitor's sleep that has been accounted for.
    slept: Duration,
}

impl WorkerMeter {
    pub(crate) fn start() -> Self {
        WorkerMeter { meter: Meter::start(), slept: Duration::ZERO }
    }

    /// Reports what the worker used since the last report; returns whether more workers are wanted because of it.
    /// `slept` is how long its thread has slept on purpose, which does not count as waiting.
    pub(crate) fn report(&mut self, worker_target: &WorkerTarget, slept: Duration) -> bool {
        if !worker_target.adaptive {
            return false;
        }
        // Once the floor for a server is reached, a better measurement would change nothing.
        let is_unclear = |lap: &Lap| lap.wall > lap.cpu + ROUND_TRIP && worker_target.is_starting();
        let lap = self.meter.lap_without(slept.saturating_sub(self.slept), is_unclear);
        self.slept = slept;
        worker_target.add(Instant::now(), lap, process_cpu_time, CpuTimes::now)
    }

    /// Forgets the time since the last report, which was spent waiting for work.
    pub(crate) fn restart(&mut self, worker_target: &WorkerTarget) {
        if worker_target.adaptive {
            self.meter.restart();
        }
    }
}

/// How many workers fit where the address space is limited (`ulimit -v`).
fn workers_that_fit() -> usize {
    let limit = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    usize::try_from(limit / WORKER_ADDRESS_BYTES).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker_target() -> WorkerTarget {
        WorkerTarget { cpus: 2, ..WorkerTarget::new(Threads::Adaptive { max: 256 }, 1024, false) }
    }

    /// Concurrent samples of as many workers as wanted, which use all the CPU time of the process.
    fn feed(worker_target: &WorkerTarget, samples: u32, wall_us: u64, cpu_us: u64, waits: u64) {
        feed_beside(0.0, worker_target, samples, wall_us, cpu_us, waits);
    }

    /// The same, while others use a share of the CPUs.
    fn feed_beside(
        others: f64,
        worker_target: &WorkerTarget,
        samples: u32,
        wall_us: u64,
        cpu_us: u64,
        waits: u64,
    ) {
        let (wall, cpu) = (Duration::from_micros(wall_us), Duration::from_micros(cpu_us));
        let since = worker_target.window.lock().expect("no panic").watched_since;
        let (mut now, mut used) = since.unwrap_or((Instant::now(), Duration::ZERO));
        let (started, asked_first) =
            (now, worker_target.window.lock().expect("no panic").cpu_times.unwrap_or_default());
        for _ in 0..samples {
            now += wall / u32::try_from(worker_target.target()).expect("few workers");
            // Not in ticks.
            used += cpu + Duration::from_nanos(1);
            let ticks = (now - started).as_micros() as u64;
            let cpu_times = CpuTimes {
                idle: asked_first.idle + (ticks as f64 * (1.0 - others)) as u64,
                total: asked_first.total + ticks,
            };
            worker_target.add(now, Lap::new(wall, cpu, waits), || used, || Some(cpu_times));
        }
    }

    #[test]
    fn warm_disk_stays_at_the_number_of_cpus() {
        let worker_target = worker_target();
        worker_target.target.store(2, Ordering::Relaxed);
        feed(&worker_target, 1000, 40, 38, 0);
        assert_eq!(worker_target.target(), 2);
    }

    #[test]
    fn preemption_is_not_waiting() {
        let worker_target = worker_target();
        worker_target.target.store(2, Ordering::Relaxed);
        feed(&worker_target, 1000, 900, 30, 0);
        assert_eq!(worker_target.target(), 2);
    }

    #[test]
    fn the_first_slow_answer_brings_a_servers_worth_of_workers() {
        let worker_target = worker_target();
        feed(&worker_target, 1, 1000, 1, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS, "however extreme that one answer is");
        feed(&worker_target, 64, 1000, 5, 1);
        assert_eq!(
            worker_target.target(),
            SERVER_WORKERS,
            "64 answers in 1 ms do not tell how idle the CPUs are"
        );
        feed(&worker_target, 64 * 100, 1000, 5, 1);
        assert_eq!(worker_target.target(), 2 * SERVER_WORKERS, "twice 50 ms of them do");
    }

    #[test]
    fn cpus_that_others_use_are_not_idle() {
        let worker_target = worker_target();
        feed_beside(0.99, &worker_target, 1, 1000, 1, 1);
        feed_beside(0.99, &worker_target, 64 * 1000, 1000, 5, 1);
        assert_eq!(
            worker_target.target(),
            SERVER_WORKERS,
            "who gets little of a busy machine does not leave it idle"
        );
        feed_beside(0.8, &worker_target, 64 * 1000, 1000, 5, 1);
        assert!(worker_target.target() > SERVER_WORKERS, "others may be the server");
    }

    #[test]
    fn cpus_count_as_idle_where_their_use_is_unknown() {
        let worker_target = worker_target();
        feed(&worker_target, 1, 1000, 1, 1);
        let now = Instant::now();
        for i in 0..64 * 300 {
            let used = || Duration::from_nanos(1_000_000 + i);
            let at = now + Duration::from_micros(20) * u32::try_from(i).expect("few");
            let lap = Lap::new(Duration::from_millis(1), Duration::from_micros(5), 1);
            worker_target.add(at, lap, used, || None);
        }
        assert!(worker_target.target() > SERVER_WORKERS);
    }

    #[test]
    fn busy_cpus_are_not_helped_by_more_workers() {
        let worker_target = worker_target();
        feed(&worker_target, 1, 1000, 10, 1);
        feed(&worker_target, 1000, 2000, 30, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS, "64 workers at 30 us in 2 ms use one CPU of two");
    }

    #[test]
    fn workers_that_wait_for_each_other_are_halved_until_the_cpus_have_time() {
        let worker_target = worker_target();
        feed(&worker_target, 1, 1000, 10, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS);
        feed(&worker_target, 3 * 64, 2000, 60, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS / 2, "64 workers at 60 us in 2 ms use both CPUs");
        feed(&worker_target, 1000, 500, 40, 1);
        assert_eq!(worker_target.target(), 16, "16 workers at 40 us in 0.5 ms do not, 32 would");
        feed(&worker_target, 100, 1000, 90, 1);
        assert_eq!(worker_target.target(), 16, "waits do not bring them back");
        feed(&worker_target, 1000, 1000, 5, 1);
        assert!(worker_target.target() >= SERVER_WORKERS, "idle CPUs do: {}", worker_target.target());
    }

    #[test]
    fn a_halving_that_leaves_the_cpus_idle_is_the_last() {
        let worker_target = worker_target();
        feed(&worker_target, 1, 1000, 10, 1);
        feed(&worker_target, 3 * 64, 2000, 60, 1);
        feed(&worker_target, 3 * 64, 1000, 60, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS / 4);
        // 16 workers at 60 us in 1 ms use half of the CPUs.
        feed(&worker_target, 100, 1000, 60, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS / 2);
        feed(&worker_target, 1000, 1000, 60, 1);
        assert_eq!(worker_target.target(), SERVER_WORKERS / 2, "though that many keep them busy");
    }

    #[test]
    fn a_single_cpu_gets_what_it_can_drive() {
        let worker_target = WorkerTarget { cpus: 1, ..worker_target() };
        feed(&worker_target, 1, 5000, 20, 1);
        assert_eq!(worker_target.target(), WORKERS_PER_CPU);
        feed(&worker_target, 32 * 6, 10_000, 100, 1);
        assert_eq!(worker_target.target(), WORKERS_PER_CPU);
    }

    #[test]
    fn calm_after_a_slow_start_shrinks_again() {
        let worker_target = worker_target();
        feed(&worker_target, 1, 2000, 30, 2);
        let grown = worker_target.target();
        feed(&worker_target, 64 * (SHRINK_AFTER + 1), 40, 39, 0);
        assert!(grown > 2 && worker_target.target() == 2, "{grown} then {}", worker_target.target());
    }

    #[test]
    fn where_calls_are_known_to_wait_there_is_a_servers_worth_from_the_beginning() {
        let worker_target = WorkerTarget::new(Threads::Adaptive { max: 256 }, 1024, true);
        assert_eq!(worker_target.target(), server_workers(worker_target.cpus));
        assert!(worker_target.calls_wait());
        assert_eq!(WorkerTarget::new(Threads::Adaptive { max: 8 }, 1024, true).target(), 8);
    }

    #[test]
    fn fixed_means_fixed() {
        let worker_target = WorkerTarget::new(Threads::Fixed(3), 1024, true);
        feed(&worker_target, 100, 5000, 1, 1);
        assert_eq!(worker_target.target(), 3);
    }
}
