//! What a thread has used: the difference between its waiting and its computing steers the number of threads.

/// CPU time and waits of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// How often the thread gave up its CPU to wait for something, as opposed to being preempted.
    pub waits: u64,
}

/// The usage of the calling thread, by `getrusage(2)`; zeros where the kernel does not tell.
pub fn thread_usage() -> ThreadUsage {
    // SAFETY: `rusage` is plain integers, for which all zeros is a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage` that lives through the call.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut raw) } != 0 {
        return ThreadUsage::default();
    }
    let nanoseconds =
        |t: libc::timeval| t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_usec.unsigned_abs() * 1_000;
    ThreadUsage {
        cpu_ns: nanoseconds(raw.ru_utime) + nanoseconds(raw.ru_stime),
        waits: raw.ru_nvcsw.unsigned_abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_a_wait_and_costs_no_cpu() {
        let before = thread_usage();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = thread_usage();
        assert!(after.waits > before.waits);
        assert!(after.cpu_ns - before.cpu_ns < 10_000_000);
    }
}
