//! Signals and standard output of the process.
//!
//! The Rust runtime opens `/dev/null` in place of a standard stream that was closed, before `main` and without a trace.
//! A constructor, which the loader runs before that, looks at standard output as it was inherited.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Makes a write to a closed pipe end the process silently, as it ends every other filter; the Rust runtime ignores the
/// signal and would turn it into an error of the write.
pub fn end_on_broken_pipe() {
    // SAFETY: sets the default disposition; no handler is installed, and none of the program's own is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Has a signal that asks the process to end (hangup, interrupt, termination) run `last`, with what ends the process by
/// that signal. A second signal ends it at once, whatever `last` waits for; signals that the process was started to
/// ignore stay ignored. To be called before any other thread is started, as each inherits from the one that starts it
/// that signals are left to the thread that waits for them.
///
/// # Errors
/// If that thread cannot be started.
pub fn before_termination(last: impl FnOnce(&dyn Fn()) + Send + 'static) -> io::Result<()> {
    let signals = termination_signals();
    mask(libc::SIG_BLOCK, &signals);
    let waiter = thread::Builder::new().name("signals".into()).spawn(move || {
        let mut signal = 0;
        // SAFETY: both point to what they must; the signals are blocked in this thread, as in the one that started it.
        let failed = unsafe { libc::sigwait(&signals, &mut signal) };
        if failed == 0 {
            // The signal itself is taken; another one now does what it does by default.
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

/// The signals that ask to end and that are not ignored.
fn termination_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: initializes the set before it is read, and asks for dispositions, which changes nothing.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            let mut disposition = MaybeUninit::<libc::sigaction>::zeroed();
            libc::sigaction(signal, std::ptr::null(), disposition.as_mut_ptr());
            if disposition.assume_init().sa_sigaction != libc::SIG_IGN {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        set.assume_init()
    }
}

fn mask(how: libc::c_int, signals: &libc::sigset_t) {
    // SAFETY: changes which signals this thread takes; the set is initialized.
    unsafe { libc::pthread_sigmask(how, signals, std::ptr::null_mut()) };
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

#[used]
// SAFETY: the section holds addresses of functions that the loader calls once, with arguments that a function without
// parameters does not look at.
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = {
    extern "C" fn look_at_stdout() {
        // SAFETY: asks for the flags of a descriptor, which need not be open.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        STDOUT_WAS_CLOSED.store(closed, Ordering::Relaxed);
    }
    look_at_stdout
};

/// Makes writes to a standard output that the process was started without fail with `EBADF` again, for it and for the
/// commands that it runs. Nothing changes where there is one.
pub fn restore_closed_stdout() {
    if !STDOUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return;
    }
    // A descriptor that cannot be written, and is closed in commands, keeps the number from being given to another file.
    // SAFETY: the path is a C string; the descriptor is ours, and what was 1 is the runtime's `/dev/null`, which nobody
    // has a use for.
    unsafe {
        let unwritable = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if unwritable >= 0 {
            libc::dup3(unwritable, libc::STDOUT_FILENO, libc::O_CLOEXEC);
            libc::close(unwritable);
        }
    }
}
