//! Resource usage of threads: whether they wait or compute decides how many of them help.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity};

/// CPU time and waits of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// How often the thread gave up its CPU to wait for something, as opposed to being preempted.
    pub waits: u64,
}

/// The usage of the calling thread; zeros where the kernel does not report it. The CPU time is that of the thread's
/// clock: `getrusage(2)` brings its own up to date only when a tick comes or the thread gives up its CPU.
pub fn thread_usage() -> ThreadUsage {
    // SAFETY: `rusage` is plain integers, for which all zeros is a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage` that lives through the call.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut raw) } != 0 {
        return ThreadUsage::default();
    }
    let cpu_ns = cpu_time(libc::CLOCK_THREAD_CPUTIME_ID).as_nanos().try_into().unwrap_or(u64::MAX);
    ThreadUsage { cpu_ns, waits: raw.ru_nvcsw.unsigned_abs() }
}

/// CPU time of all threads of the process since it began.
pub fn process_cpu_time() -> Duration {
    cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Calls the C library, because rustix looks for the vDSO itself and crashes under valgrind, which hides it.
fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec` that lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut used) };
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.try_into().unwrap_or(0))
}

/// Time of the CPUs that this process may use, since the system started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Spent with nothing to run.
    pub idle: u64,
    /// All of it.
    pub total: u64,
}

impl CpuTimes {
    /// The current times from `/proc/stat`; `None` where the kernel does not report them.
    pub fn now() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        Some(Self::parse(&text, |cpu| cpu < CpuSet::MAX_CPU && allowed.is_set(cpu)))
    }

    /// Adds up the lines `cpu0 user nice system idle iowait irq softirq steal ...` of some CPUs.
    fn parse(text: &str, is_wanted: impl Fn(usize) -> bool) -> Self {
        let mut times = CpuTimes::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let cpu = words.next().and_then(|word| word.strip_prefix("cpu")).and_then(|n| n.parse().ok());
            if !cpu.is_some_and(&is_wanted) {
                continue;
            }
            // The numbers after the first eight are included in the first two.
            for (at, ticks) in words.take(8).map_while(|ticks| ticks.parse::<u64>().ok()).enumerate() {
                times.total += ticks;
                times.idle += if matches!(at, 3 | 4) { ticks } else { 0 };
            }
        }
        times
    }

    /// The idle share of the time since `before`, if there was any.
    pub fn idle_since(&self, before: &Self) -> Option<f64> {
        let total = self.total.checked_sub(before.total).filter(|&total| total > 0)?;
        Some(self.idle.saturating_sub(before.idle) as f64 / total as f64)
    }
}

/// How long the thread that opened it has waited for a CPU: `/proc/thread-self/schedstat`, see the kernel's
/// `Documentation/scheduler/sched-stats.rst`.
#[derive(Debug)]
pub struct RunQueueDelay {
    file: Option<File>,
}

impl RunQueueDelay {
    /// For the calling thread, which is to read it.
    pub fn of_this_thread() -> Self {
        RunQueueDelay { file: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Nanoseconds since the thread began; 0 where the kernel does not report it.
    pub fn nanoseconds(&self) -> u64 {
        let mut text = [0; 64];
        let Some(Ok(length)) = self.file.as_ref().map(|file| file.read_at(&mut text, 0)) else { return 0 };
        // "time on the CPU, time on the run queue, slices", the times in nanoseconds.
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_used_at_least_what_this_thread_has() {
        assert!(process_cpu_time() >= Duration::from_nanos(thread_usage().cpu_ns));
    }

    #[test]
    fn the_times_of_wanted_cpus_are_added_up() {
        let text = "cpu  99 99 99 99\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 0 0 0 50 0 0 0 0 0 0\ncpu2 7 7 7 7 7\nintr 5 5\n";
        let before = CpuTimes::parse(text, |cpu| cpu < 2);
        assert_eq!(before, CpuTimes { idle: 4 + 5 + 50, total: 36 + 50 });
        assert_eq!(CpuTimes { idle: 60, total: 90 }.idle_since(&before), Some(0.25));
        assert_eq!(before.idle_since(&before), None);
        let now = CpuTimes::now().expect("Linux tells");
        assert!(now.total > now.idle, "{now:?}");
    }

    #[test]
    fn sleeping_is_a_wait_and_costs_no_cpu() {
        let before = thread_usage();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = thread_usage();
        assert!(after.waits > before.waits);
        assert!(after.cpu_ns - before.cpu_ns < 10_000_000);
    }

    #[test]
    fn run_queue_delay_grows_when_threads_compete() {
        let busy = |_| {
            let delay = RunQueueDelay::of_this_thread();
            let started = std::time::Instant::now();
            while started.elapsed() < std::time::Duration::from_millis(100) {
                std::hint::spin_loop();
            }
            delay.nanoseconds()
        };
        let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
        let delays: Vec<u64> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|i| scope.spawn(move || busy(i))).collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(delays.iter().max() > Some(&1_000_000), "{delays:?}");
    }
}
