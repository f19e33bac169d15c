//! Signals and standard output of the process.
//!
//! Before `main`, the Rust runtime silently opens `/dev/null` in place of a closed standard stream, and ignores
//! `SIGPIPE`. A constructor, which the loader runs earlier, notes whether standard output was inherited closed and the
//! signal ignored.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Makes a write to a closed pipe end the process silently, as in every other filter. If the process was started with
/// the signal ignored, as by Python and some supervisors, the write fails instead.
pub fn end_on_broken_pipe() {
    if !BROKEN_PIPES_WERE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: sets the default disposition; no handler is installed, and none of the program's own is replaced.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) an error instead of ending the process. Commands that the
/// process runs have the signal's default disposition.
pub fn report_too_large_files() {
    extern "C" fn continue_with_the_error(_: libc::c_int) {}
    if !is_ignored(libc::SIGXFSZ) {
        // SAFETY: the handler does nothing, so it is safe at any point of the program.
        unsafe { libc::signal(libc::SIGXFSZ, continue_with_the_error as *const () as libc::sighandler_t) };
    }
}

/// Starts `command` with `SIGPIPE` ignored if this process was started so. Rust's library starts commands with the
/// default.
pub fn pass_on_ignored_broken_pipes(command: &mut Command) {
    if BROKEN_PIPES_WERE_IGNORED.load(Ordering::Relaxed) {
        let ignore = || {
            // SAFETY: sets a disposition, and installs no handler.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
            Ok(())
        };
        // SAFETY: `signal` may be called between fork and exec, and nothing is allocated.
        unsafe { command.pre_exec(ignore) };
    }
}

/// Asks the kernel for a failed write to an open file, as closing it would: some file systems (NFS, quotas) send the
/// data only then. `fd` stays open. A descriptor that is already closed is not an error.
///
/// # Errors
/// What closing reports: `EDQUOT`, `ENOSPC`, `EIO`.
pub fn check_as_on_close(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: the duplicate is ours, and closed once.
    let closed = unsafe {
        match libc::dup(fd.as_fd().as_raw_fd()) {
            -1 => 0,
            duplicate => libc::close(duplicate),
        }
    };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs `last` when a signal asks the process to end (hangup, interrupt, quit, termination). The argument of `last`
/// ends the process by that signal. A second signal ends the process at once, whatever `last` waits for. Signals that
/// were ignored when the process was started stay ignored.
///
/// Call this before starting other threads: they inherit the signal mask that leaves the signals to the waiting thread.
///
/// # Errors
/// If that thread cannot be started.
pub fn before_termination(last: impl FnOnce(&dyn Fn()) + Send + 'static) -> io::Result<()> {
    let signals = termination_signals();
    mask(libc::SIG_BLOCK, &signals);
    let waiter = thread::Builder::new().name("signals".into()).spawn(move || {
        let mut signal = 0;
        // SAFETY: both pointers are valid; the signals are blocked in this thread, as in the one that started it.
        let failed = unsafe { libc::sigwait(&signals, &mut signal) };
        if failed == 0 {
            // This signal has been consumed; a second one has its default effect from now on.
            mask(libc::SIG_UNBLOCK, &signals);
            last(&|| {
                // SAFETY: sends this thread a signal that ends the process.
                unsafe { libc::raise(signal) };
            });
        }
    });
    if waiter.is_err() {
        mask(libc::SIG_UNBLOCK, &signals);
    }
    waiter.map(drop)
}

/// The signals that ask the process to end and are not ignored.
fn termination_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: initializes the set before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            if !is_ignored(signal) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        set.assume_init()
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut disposition = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only queries a disposition, and zeros are a valid one where that failed.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), disposition.as_mut_ptr());
        disposition.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn mask(how: libc::c_int, signals: &libc::sigset_t) {
    // SAFETY: changes this thread's signal mask; the set is initialized.
    unsafe { libc::pthread_sigmask(how, signals, std::ptr::null_mut()) };
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static BROKEN_PIPES_WERE_IGNORED: AtomicBool = AtomicBool::new(false);

#[used]
// SAFETY: the section holds addresses of functions that the loader calls once; a function without parameters ignores
// the arguments.
#[unsafe(link_section = ".init_array")]
static NOTE_WHAT_IS_INHERITED: extern "C" fn() = {
    extern "C" fn note_what_is_inherited() {
        // SAFETY: queries the flags of a descriptor, which need not be open.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        STDOUT_WAS_CLOSED.store(closed, Ordering::Relaxed);
        BROKEN_PIPES_WERE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    }
    note_what_is_inherited
};

/// If the process was started without standard output, makes writes to it fail with `EBADF` again, also in the commands
/// that it runs. Otherwise does nothing.
pub fn restore_closed_stdout() {
    if !STDOUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return;
    }
    // An unwritable descriptor, closed in commands, keeps the number 1 from being reused for another file.
    // SAFETY: the path is a C string; the new descriptor is ours, and descriptor 1 is the runtime's `/dev/null`, which
    // is unused.
    unsafe {
        let unwritable = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if unwritable >= 0 {
            libc::dup3(unwritable, libc::STDOUT_FILENO, libc::O_CLOEXEC);
            libc::close(unwritable);
        }
    }
}
