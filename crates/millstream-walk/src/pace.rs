//! How many workers are worth having.
//!
//! Each worker meters itself after the calls it makes: wall time, CPU time, and how often it gave up the CPU to wait. Time
//! that the visitor slept on purpose is left out. Time lost to other threads on the same CPU is not waiting, so a busy
//! machine does not look like a slow disk: where there is a wait worth a thought, the kernel is asked how much of it was
//! spent on the run queue. Where workers queue for CPUs, they also wait for each other: for locks whose holders queue. So
//! nothing grows unless they wait for something else twice as long as for a CPU, in a full window. With `c` CPUs and calls that take
//! `w` of wall time for every unit of CPU time, `c·w` workers keep the CPUs busy; twice as many ride out the variation.
//! Where a single wait lasts as long as a round trip to a server, 64 is the least (32 on a single CPU, which drives no
//! more): a filer serves that many in parallel, and the first directories of a tree do not tell how wide it is. Growth that
//! far is at once, because the first answers of a slow server are all it takes to know it. Beyond, every worker there is
//! must have been heard before the number doubles, and only if the CPUs are idle: the whole process, starting and waking
//! threads included, leaves them, and nobody else takes them; what they wait for is otherwise a CPU, here or in the server. Shrinking waits for several windows
//! to agree, unless the process keeps the CPUs busy, or its workers queue for them: then workers wait for each other (a local disk's journal, the lock of a
//! directory), and half of them will do. Where they do not, the CPUs have time again, and that halving was the last.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_vfs::{CpuTimes, RunQueueDelay, ThreadUsage, process_cpu_time, thread_usage};
use rustix::process::{Resource, getrlimit};

use crate::Threads;

/// A window is judged when it has this many samples …
const WINDOW_SAMPLES: u32 = 16;
/// … or this much waiting, little of it for a CPU.
const WINDOW_WAIT: Duration = Duration::from_micros(500);
/// As many times as long as for a CPU have workers waited for something else, if one window with a single wait is enough …
const CLEARLY: u32 = 4;
/// … and for the number to grow at all.
const MOSTLY: u32 = 2;
/// One in so many workers asks for its run queue delay where there is a server's worth of them.
const ASKING: usize = 8;
/// How long the use of the CPUs is watched before the number grows beyond a server's worth: kernels that count CPU time in
/// ticks of up to 10 ms show most shorter times as idle.
const GROWTH_WINDOW: Duration = Duration::from_millis(50);
/// How long it is watched before the number shrinks because the CPUs are busy, if CPU time is not counted in ticks.
const BUSY_WINDOW: Duration = Duration::from_millis(5);
/// Wall time per CPU time from which calls count as waiting.
const WAITING_RATIO: f64 = 2.0;
/// A wait as long as this is a round trip to a server.
const ROUND_TRIP: Duration = Duration::from_micros(200);
/// Workers for a server, at least ...
const SERVER_WORKERS: usize = 64;
/// ... unless the CPUs are too few to drive them.
const WORKERS_PER_CPU: usize = 32;
/// Share of the CPUs that the process may use for their number to grow beyond a server's worth.
const IDLE_SHARE: f64 = 0.25;
/// Share of the time that the CPUs have nothing to run for anybody, from which more workers would find one. It is small, as
/// a FUSE server on this machine works for this process.
const IDLE_CPUS: f64 = 0.05;
/// Share of the CPUs from which they are busy.
const BUSY_SHARE: f64 = 0.8;
/// Share of the CPUs up to which they have time for more workers than there are after a halving.
const EASED_SHARE: f64 = 0.6;
/// Address space for a worker, where it is limited: stack, buffers, and the C library's heap for the thread.
const WORKER_ADDRESS_BYTES: u64 = 128 << 20;
/// Windows that must agree before the number shrinks.
const SHRINK_AFTER: u32 = 8;

/// The number of workers that the traversal should have now.
#[derive(Debug)]
pub(crate) struct Pace {
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
    /// The times of the CPUs when there were first enough workers for a server, or when the watch began later.
    cpus_then: Option<CpuTimes>,
    samples: u32,
    wall: Duration,
    cpu: Duration,
    waits: u64,
    /// Of the samples whose run queue delay is known: that delay, and what they waited for something else.
    queued: Duration,
    blocked: Duration,
    /// The window before was one of workers that waited for CPUs.
    has_queued: bool,
    calm: u32,
    /// The CPUs have been seen busy with more workers than there are of them.
    contended: bool,
    /// So many workers were too few to keep the CPUs busy.
    too_few: usize,
}

impl Pace {
    pub(crate) fn new(threads: Threads, most: usize) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let (adaptive, max, target) = match threads {
            Threads::Fixed(n) => (false, n.clamp(1, most), n),
            Threads::Adaptive { max } => (true, max.min(most).min(workers_that_fit()).max(1), cpus),
        };
        Pace { cpus, max, adaptive, target: AtomicUsize::new(target.clamp(1, max)), window: Mutex::default() }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn target(&self) -> usize {
        self.target.load(Ordering::Relaxed)
    }

    /// Whether there may be too few workers yet for what is known to be worth it.
    pub(crate) fn is_starting(&self) -> bool {
        self.target() < self.server_workers()
    }

    /// The number of workers that a server is worth.
    fn server_workers(&self) -> usize {
        SERVER_WORKERS.min(WORKERS_PER_CPU * self.cpus)
    }

    /// Whether calls wait more than they compute, as far as is known.
    pub(crate) fn calls_wait(&self) -> bool {
        self.target() > self.cpus
    }

    /// The least entries that make a chunk: waiting pays for handing over fewer of them.
    pub(crate) fn min_chunk(&self) -> usize {
        if self.calls_wait() { 8 } else { 128 }
    }

    /// Takes a sample; whether the target rose by it. `process_cpu` is the CPU time of the process, which costs a pass
    /// over its threads, `cpu_times` those of the CPUs, which costs more.
    fn add(
        &self,
        now: Instant,
        sample: Sample,
        process_cpu: impl Fn() -> Duration,
        cpu_times: impl Fn() -> Option<CpuTimes>,
    ) -> bool {
        // Workers that meet here would wait for each other, on a single CPU for a time slice: a sample less does no harm.
        let Ok(mut window) = self.window.try_lock() else { return false };
        let (since, cpu_before) = *window.watched_since.get_or_insert_with(|| (now, process_cpu()));
        let (target, enough) = (self.target(), self.server_workers());
        window.add(sample);
        if !window.is_complete(target, enough) {
            return false;
        }
        let watched = now - since;
        let decisive = if target > self.cpus { BUSY_WINDOW } else { GROWTH_WINDOW };
        let cpu_now = (watched >= decisive).then(process_cpu);
        let used = cpu_now.map(|cpu_now| cpu_now - cpu_before);
        // Of the CPUs, if it can be told; no number is neither above nor below another.
        let share = match used {
            Some(used) if watched >= GROWTH_WINDOW || !is_counted_in_ticks(used) => {
                used.as_secs_f64() / (watched.as_secs_f64() * self.cpus as f64)
            }
            _ => f64::NAN,
        };
        let may_grow = window.waits_for_more_than_cpus(MOSTLY);
        let is_long = watched >= GROWTH_WINDOW;
        let is_full = share > BUSY_SHARE || (is_long && !may_grow);
        let is_busy = is_full && target > self.cpus && target / 2 > window.too_few;
        let is_eased = window.contended && share < EASED_SHARE && may_grow;
        let cpus_now = (is_long && target >= enough && target < self.max).then(&cpu_times).flatten();
        let is_idle = is_long && share < IDLE_SHARE && may_grow && window.leaves_cpus(cpus_now);
        if is_busy || is_eased || is_long {
            window.watched_since = cpu_now.map(|cpu_now| (now, cpu_now));
        }
        let most = if is_busy {
            (target / 2).max(self.cpus)
        } else if is_idle || is_eased {
            2 * target
        } else if target < enough && !window.contended && may_grow {
            enough
        } else {
            target
        };
        let wanted = wanted(&window, self.cpus, enough).min(most).min(self.max);
        let calm = if wanted < target { window.calm + 1 } else { 0 };
        let rises = wanted > target;
        let is_first_of_a_server = rises && target < enough && wanted >= enough && wanted < self.max;
        *window = Window {
            watched_since: window.watched_since,
            cpus_then: match cpus_now {
                None if is_first_of_a_server => cpu_times(),
                None => window.cpus_then,
                now => now,
            },
            has_queued: !window.waits_for_more_than_cpus(CLEARLY),
            calm: calm % SHRINK_AFTER,
            contended: (window.contended || is_busy) && !is_idle,
            too_few: if is_eased { target } else { window.too_few },
            ..Window::default()
        };
        if rises || is_busy || calm == SHRINK_AFTER {
            self.target.store(wanted, Ordering::Relaxed);
        }
        rises
    }
}

/// What a worker used between two reports.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Without time that it slept on purpose.
    wall: Duration,
    cpu: Duration,
    /// How often it gave up its CPU.
    waits: u64,
    /// How much of the wall time it waited for a CPU, if that was asked for.
    queued: Option<Duration>,
}

impl Window {
    fn add(&mut self, Sample { wall, cpu, waits, queued }: Sample) {
        self.samples += 1;
        self.cpu += cpu;
        self.waits += waits;
        let waited = wall.saturating_sub(queued.unwrap_or_default());
        self.wall += if waits > 0 { waited.max(cpu) } else { cpu };
        if let Some(queued) = queued {
            self.queued += queued;
            self.blocked += waited.saturating_sub(cpu);
        }
    }

    /// Whether it tells enough about `target` workers, where a server is worth `enough` of them.
    fn is_complete(&self, target: usize, enough: usize) -> bool {
        if target >= enough {
            return self.samples as usize >= target;
        }
        let has_waited = self.wall.saturating_sub(self.cpu) >= WINDOW_WAIT;
        self.samples >= WINDOW_SAMPLES
            || (has_waited && !self.has_queued && self.waits_for_more_than_cpus(CLEARLY))
    }

    /// Whether the CPUs have had nothing to run, for anybody, for some of the time until `now`, as far as is known.
    fn leaves_cpus(&self, now: Option<CpuTimes>) -> bool {
        let idle = now.zip(self.cpus_then).and_then(|(now, then)| now.idle_since(&then));
        idle.is_none_or(|idle| idle > IDLE_CPUS)
    }

    /// Whether waits for anything but a CPU were `times` as long as those for one, as far as the latter are known.
    fn waits_for_more_than_cpus(&self, times: u32) -> bool {
        self.blocked >= self.queued * times
    }
}

/// Whether an amount of CPU time looks like one of a kernel that counts it in ticks of some milliseconds.
fn is_counted_in_ticks(cpu: Duration) -> bool {
    cpu.subsec_nanos().is_multiple_of(1_000_000)
}

fn wanted(window: &Window, cpus: usize, server_workers: usize) -> usize {
    let cpu = window.cpu.max(Duration::from_micros(1));
    let ratio = window.wall.as_secs_f64() / cpu.as_secs_f64();
    if ratio < WAITING_RATIO {
        return cpus;
    }
    let wait =
        window.wall.saturating_sub(window.cpu) / u32::try_from(window.waits.max(1)).unwrap_or(u32::MAX);
    let busy = (cpus as f64 * ratio * 2.0) as usize;
    if wait >= ROUND_TRIP { busy.max(server_workers) } else { busy }
}

/// One worker's meter.
#[derive(Debug)]
pub(crate) struct Meter {
    started: Instant,
    usage: ThreadUsage,
    /// Opened when first needed.
    run_queue: Option<RunQueueDelay>,
    /// What of the run queue's delay has been accounted for.
    delay_ns: u64,
    /// What of the visitor's sleep has been accounted for.
    slept: Duration,
    /// Whether the run queue's delay is asked for although there is a server's worth of workers.
    is_asking: bool,
}

impl Meter {
    /// That of the worker `index`, whose thread has just begun, unless it is the first.
    pub(crate) fn start(pace: &Pace, index: usize) -> Self {
        let is_asking = index.is_multiple_of(ASKING);
        let mut meter = Meter {
            started: Instant::now(),
            usage: thread_usage(),
            run_queue: None,
            delay_ns: 0,
            slept: Duration::ZERO,
            is_asking,
        };
        if index == 0 && pace.adaptive {
            meter.run_queue_delay();
        }
        meter
    }

    /// Reports what the worker used since the last report; whether more workers are wanted because of it. `slept` is how
    /// long its thread has slept on purpose.
    pub(crate) fn report(&mut self, pace: &Pace, slept: Duration) -> bool {
        if !pace.adaptive {
            return false;
        }
        let sample = self.sample(pace.is_starting(), slept);
        pace.add(self.started, sample, process_cpu_time, CpuTimes::now)
    }

    /// What has been used since the last one.
    fn sample(&mut self, is_starting: bool, slept: Duration) -> Sample {
        let (now, usage) = (Instant::now(), thread_usage());
        let cpu = Duration::from_nanos(usage.cpu_ns.saturating_sub(self.usage.cpu_ns));
        let waits = usage.waits.saturating_sub(self.usage.waits);
        let wall = (now - self.started).saturating_sub(slept.saturating_sub(self.slept));
        let is_asked = waits > 0 && wall > cpu + ROUND_TRIP && (self.is_asking || is_starting);
        let queued = is_asked.then(|| self.run_queue_delay().min(wall.saturating_sub(cpu)));
        (self.started, self.usage, self.slept) = (now, usage, slept);
        Sample { wall, cpu, waits, queued }
    }

    /// Time on the run queue since it was last asked for. That may be longer than the time being accounted for, which
    /// errs on the side of fewer workers, once.
    fn run_queue_delay(&mut self) -> Duration {
        let total = self.run_queue.get_or_insert_with(RunQueueDelay::of_this_thread).nanoseconds();
        let since = total.saturating_sub(self.delay_ns);
        self.delay_ns = total;
        Duration::from_nanos(since)
    }

    /// Forgets the time since the last report, which was spent waiting for work.
    pub(crate) fn restart(&mut self, pace: &Pace) {
        if pace.adaptive {
            (self.started, self.usage) = (Instant::now(), thread_usage());
        }
    }
}

/// How many workers have room where the address space is limited (`ulimit -v`).
fn workers_that_fit() -> usize {
    let limit = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    usize::try_from(limit / WORKER_ADDRESS_BYTES).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace { cpus: 2, ..Pace::new(Threads::Adaptive { max: 256 }, 1024) }
    }

    /// Samples of as many workers as there are to be, side by side, that are all that the process does.
    fn feed(pace: &Pace, samples: u32, wall_us: u64, cpu_us: u64, waits: u64) {
        feed_queued(pace, samples, wall_us, cpu_us, waits, 0);
    }

    /// The same, of workers that wait for a CPU `queued_us` of their wall time.
    fn feed_queued(pace: &Pace, samples: u32, wall_us: u64, cpu_us: u64, waits: u64, queued_us: u64) {
        let [wall, cpu, queued] = [wall_us, cpu_us, queued_us].map(Duration::from_micros);
        let sample = Sample { wall, cpu, waits, queued: Some(queued) };
        let since = pace.window.lock().expect("no panic").watched_since;
        let (mut now, mut used) = since.unwrap_or((Instant::now(), Duration::ZERO));
        for _ in 0..samples {
            now += wall / u32::try_from(pace.target()).expect("few workers");
            // Not in ticks.
            used += cpu + Duration::from_nanos(1);
            pace.add(now, sample, || used, || None);
        }
    }

    #[test]
    fn warm_disk_stays_at_the_number_of_cpus() {
        let pace = pace();
        pace.target.store(2, Ordering::Relaxed);
        feed(&pace, 1000, 40, 38, 0);
        assert_eq!(pace.target(), 2);
    }

    #[test]
    fn preemption_is_not_waiting() {
        let pace = pace();
        pace.target.store(2, Ordering::Relaxed);
        feed(&pace, 1000, 900, 30, 0);
        assert_eq!(pace.target(), 2);
    }

    #[test]
    fn the_first_slow_answer_brings_a_servers_worth_of_workers() {
        let pace = pace();
        feed(&pace, 1, 1000, 1, 1);
        assert_eq!(pace.target(), SERVER_WORKERS, "however extreme that one answer is");
        feed(&pace, 64, 1000, 5, 1);
        assert_eq!(pace.target(), SERVER_WORKERS, "64 answers in 1 ms do not tell how idle the CPUs are");
        feed(&pace, 64 * 50, 1000, 5, 1);
        assert_eq!(pace.target(), 2 * SERVER_WORKERS, "50 ms of them do");
    }

    #[test]
    fn busy_cpus_are_not_helped_by_more_workers() {
        let pace = pace();
        feed(&pace, 1, 1000, 10, 1);
        feed(&pace, 1000, 2000, 30, 1);
        assert_eq!(pace.target(), SERVER_WORKERS, "64 workers at 30 us in 2 ms use one CPU of two");
    }

    #[test]
    fn workers_that_wait_for_each_other_are_halved_until_the_cpus_have_time() {
        let pace = pace();
        feed(&pace, 1, 1000, 10, 1);
        assert_eq!(pace.target(), SERVER_WORKERS);
        feed(&pace, 3 * 64, 2000, 60, 1);
        assert_eq!(pace.target(), SERVER_WORKERS / 2, "64 workers at 60 us in 2 ms use both CPUs");
        feed(&pace, 1000, 500, 40, 1);
        assert_eq!(pace.target(), 16, "16 workers at 40 us in 0.5 ms do not, 32 would");
        feed(&pace, 100, 1000, 90, 1);
        assert_eq!(pace.target(), 16, "waits do not bring them back");
        feed(&pace, 1000, 1000, 5, 1);
        assert!(pace.target() >= SERVER_WORKERS, "idle CPUs do: {}", pace.target());
    }

    #[test]
    fn a_halving_that_leaves_the_cpus_idle_is_the_last() {
        let pace = pace();
        feed(&pace, 1, 1000, 10, 1);
        feed(&pace, 3 * 64, 2000, 60, 1);
        feed(&pace, 3 * 64, 1000, 60, 1);
        assert_eq!(pace.target(), SERVER_WORKERS / 4);
        // 16 workers at 60 us in 1 ms use half of the CPUs.
        feed(&pace, 100, 1000, 60, 1);
        assert_eq!(pace.target(), SERVER_WORKERS / 2);
        feed(&pace, 1000, 1000, 60, 1);
        assert_eq!(pace.target(), SERVER_WORKERS / 2, "though that many keep them busy");
    }

    #[test]
    fn workers_that_queue_for_cpus_get_no_company() {
        let pace = pace();
        // They also wait for locks whose holders queue; the process has little of the CPUs.
        feed_queued(&pace, 62 * WINDOW_SAMPLES, 15_000, 1600, 100, 6_000);
        assert_eq!(pace.target(), 2);
        feed_queued(&pace, 3 * WINDOW_SAMPLES, 10_000, 50, 2, 3_000);
        assert_eq!(
            pace.target(),
            SERVER_WORKERS,
            "a server that is twice as slow is one on a busy machine too"
        );
        feed_queued(&pace, 64 * 100, 30_000, 150, 8, 14_000);
        assert_eq!(pace.target(), 2, "workers that queue would only queue longer");
    }

    #[test]
    fn there_is_not_more_than_a_servers_worth_while_others_use_the_cpus() {
        let pace = pace();
        feed(&pace, 1, 1000, 1, 1);
        let (_, used) = pace.window.lock().expect("no panic").watched_since.expect("since the first sample");
        let add = |milliseconds, idle| {
            let now = Instant::now() + Duration::from_millis(milliseconds);
            let sample =
                Sample { wall: Duration::from_millis(1), cpu: Duration::ZERO, waits: 1, queued: None };
            let times = || Some(CpuTimes { idle, total: 1000 + milliseconds });
            (0..pace.target()).for_each(|_| {
                pace.add(now, sample, || used, times);
            });
            pace.target()
        };
        assert_eq!(add(100, 100), 2 * SERVER_WORKERS, "nothing is known yet");
        assert_eq!(add(200, 102), 2 * SERVER_WORKERS, "never idle, nearly");
        assert_eq!(add(300, 112), 4 * SERVER_WORKERS, "idle for a tenth of the time");
    }

    #[test]
    fn sleep_on_purpose_is_no_waiting() {
        let pause = Duration::from_millis(20);
        let mut meter = Meter::start(&pace(), 1);
        std::thread::sleep(pause);
        assert!(meter.sample(true, Duration::ZERO).wall >= pause);
        std::thread::sleep(pause);
        let slept = meter.started.elapsed();
        let rest = meter.sample(true, slept).wall;
        assert!(rest < pause, "{rest:?}");
        std::thread::sleep(pause);
        assert!(meter.sample(true, slept).wall >= pause, "accounted for before");
    }

    #[test]
    fn a_single_cpu_gets_what_it_can_drive() {
        let pace = Pace { cpus: 1, ..pace() };
        feed(&pace, 1, 5000, 20, 1);
        assert_eq!(pace.target(), WORKERS_PER_CPU);
        feed(&pace, 32 * 6, 10_000, 100, 1);
        assert_eq!(pace.target(), WORKERS_PER_CPU);
    }

    #[test]
    fn calm_after_a_slow_start_shrinks_again() {
        let pace = pace();
        feed(&pace, 1, 2000, 30, 2);
        let grown = pace.target();
        feed(&pace, 64 * (SHRINK_AFTER + 1), 40, 39, 0);
        assert!(grown > 2 && pace.target() == 2, "{grown} then {}", pace.target());
    }

    #[test]
    fn fixed_means_fixed() {
        let pace = Pace::new(Threads::Fixed(3), 1024);
        feed(&pace, 100, 5000, 1, 1);
        assert_eq!(pace.target(), 3);
    }
}
