//! Meters whether threads wait or compute, and bounds the number of threads in the process.
//!
//! A thread meters the time between its calls: wall time, CPU time, and how often it gave up its CPU. Time in which it
//! only queued for a CPU, behind other threads, is not waiting: on a busy machine, data in memory must not look like a
//! slow disk. Where calls take twice their CPU time or more, further threads help.
//!
//! A further thread needs a [`Permit`]. All traversals and scans of the process share one [`Budget`]:
//! 32 tasks that want 32 readers each know nothing of each other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::usage::{RunQueueDelay, ThreadUsage, thread_usage};

/// Wall time per CPU time from which calls count as waiting.
const WAITING_RATIO: f64 = 2.0;
/// Threads for each CPU …
const PER_CPU: usize = 32;
/// … at least this many, …
const LEAST: usize = 512;
/// … and not more.
const MOST: usize = 2048;

/// A thread's usage in a period of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lap {
    /// Wall time; the CPU time if the thread never waited, but was at most preempted.
    pub wall: Duration,
    /// CPU time.
    pub cpu: Duration,
    /// How often the thread gave up its CPU.
    pub waits: u64,
}

impl Lap {
    /// A lap of this much time awake, `cpu` of it on a CPU.
    pub fn new(awake: Duration, cpu: Duration, waits: u64) -> Self {
        Lap { wall: if waits > 0 { awake.max(cpu) } else { cpu }, cpu, waits }
    }

    /// Wall time per CPU time.
    pub fn ratio(&self) -> f64 {
        self.wall.as_secs_f64() / self.cpu.max(Duration::from_micros(1)).as_secs_f64()
    }

    /// Whether more time went by waiting than computing.
    pub fn is_waiting(&self) -> bool {
        self.ratio() >= WAITING_RATIO
    }
}

impl std::ops::AddAssign for Lap {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.waits += other.waits;
    }
}

/// Meters the thread that started it.
#[derive(Debug)]
pub struct Meter {
    since: Instant,
    usage: ThreadUsage,
    /// Opened when first needed.
    run_queue: Option<RunQueueDelay>,
    /// The part of the run queue's delay that has been accounted for.
    delay_ns: u64,
}

impl Meter {
    /// Begins now.
    pub fn start() -> Self {
        Meter { since: Instant::now(), usage: thread_usage(), run_queue: None, delay_ns: 0 }
    }

    /// Begins now, and measures all queueing for a CPU from now on. Costs an open file.
    pub fn start_with_run_queue() -> Self {
        let run_queue = RunQueueDelay::of_this_thread();
        let delay_ns = run_queue.nanoseconds();
        Meter { run_queue: Some(run_queue), delay_ns, ..Meter::start() }
    }

    /// Wall time since the last lap, which costs no system call.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// The thread's usage since the last lap.
    pub fn lap(&mut self) -> Lap {
        self.lap_without(Duration::ZERO, |_| false)
    }

    /// The thread's usage since the last lap, without the time that it `slept` on purpose, which does not count as
    /// waiting. If the result `is_unclear`, the time on the run queue is subtracted too, for another system call. Where
    /// that was not measured from the start, the first time may be longer than the lap, which errs on the side of fewer
    /// threads.
    pub fn lap_without(&mut self, slept: Duration, is_unclear: impl FnOnce(&Lap) -> bool) -> Lap {
        let (now, usage) = (Instant::now(), thread_usage());
        let cpu = Duration::from_nanos(usage.cpu_ns.saturating_sub(self.usage.cpu_ns));
        let waits = usage.waits.saturating_sub(self.usage.waits);
        let awake = (now - self.since).saturating_sub(slept);
        (self.since, self.usage) = (now, usage);
        let lap = Lap::new(awake, cpu, waits);
        if waits > 0 && is_unclear(&lap) {
            return Lap::new(awake.saturating_sub(self.run_queue_delay()), cpu, waits);
        }
        lap
    }

    /// Time on the run queue since the last call.
    fn run_queue_delay(&mut self) -> Duration {
        let total = self.run_queue.get_or_insert_with(RunQueueDelay::of_this_thread).nanoseconds();
        let since = total.saturating_sub(self.delay_ns);
        self.delay_ns = total;
        Duration::from_nanos(since)
    }

    /// Forgets the time since the last lap.
    pub fn restart(&mut self) {
        (self.since, self.usage) = (Instant::now(), thread_usage());
    }
}

/// The CPUs that this process may use, by its control group and affinity. Determined once, because it takes a dozen
/// system calls.
pub fn cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// A bound on the number of additional threads.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    taken: AtomicUsize,
}

impl Budget {
    /// A bound of `most` threads.
    pub const fn new(most: usize) -> Self {
        Budget { most, taken: AtomicUsize::new(0) }
    }

    /// The budget of this process: 32 threads per CPU, but at least 512 and at most 2,048.
    pub fn of_process() -> &'static Budget {
        static BUDGET: OnceLock<Budget> = OnceLock::new();
        BUDGET.get_or_init(|| Budget::new((PER_CPU * cpus()).clamp(LEAST, MOST)))
    }

    /// Permission for one more thread, for as long as the permit lives. With [`None`], the existing threads do the
    /// work.
    pub fn take(&self) -> Option<Permit<'_>> {
        let more = |taken| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Permit(self))
    }

    /// The same where the user has set the number of threads: it is counted, and never refused.
    pub fn take_anyway(&self) -> Permit<'_> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Permit(self)
    }
}

/// Permission for a thread.
#[derive(Debug)]
pub struct Permit<'b>(&'b Budget);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_waiting_unless_it_is_on_purpose() {
        let mut meter = Meter::start();
        std::thread::sleep(Duration::from_millis(20));
        let lap = meter.lap();
        assert!(lap.is_waiting() && lap.waits > 0 && lap.wall >= Duration::from_millis(20), "{lap:?}");
        std::thread::sleep(Duration::from_millis(20));
        let lap = meter.lap_without(Duration::from_secs(1), |_| false);
        assert_eq!(lap.wall, lap.cpu);
    }

    #[test]
    fn computing_is_not_waiting_however_many_do_it() {
        let compute = || {
            let mut meter = Meter::start_with_run_queue();
            while meter.elapsed() < Duration::from_millis(100) {
                // Gives up the CPU now and then, as a read from memory behind a lock does.
                std::thread::yield_now();
            }
            meter.lap_without(Duration::ZERO, |_| true)
        };
        let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
        let laps: Vec<Lap> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(compute)).collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut sum = Lap::default();
        for lap in laps {
            sum += lap;
        }
        assert!(!sum.is_waiting(), "{sum:?}");
    }

    #[test]
    fn a_budget_is_never_exceeded_and_comes_back() {
        let budget = Budget::new(3);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let permit = budget.take();
                        assert!(budget.taken.load(Ordering::Relaxed) <= 3);
                        drop(permit);
                    }
                });
            }
        });
        let all: Vec<_> = std::iter::from_fn(|| budget.take()).collect();
        assert_eq!(all.len(), 3);
        drop(all);
        let one = budget.take_anyway();
        let others: Vec<_> = std::iter::from_fn(|| budget.take()).collect();
        assert_eq!(others.len(), 2, "whatever is taken counts");
        let more = budget.take_anyway();
        drop((one, others, more));
        assert_eq!(budget.taken.into_inner(), 0);
    }
}
