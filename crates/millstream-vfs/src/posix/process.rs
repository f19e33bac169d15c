//! Signals and standard output of the process.
//!
//! The Rust runtime opens `/dev/null` in place of a standard stream that was closed, before `main` and without a trace.
//! A constructor, which the loader runs before that, looks at standard output as it was inherited.

use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a write to a closed pipe end the process silently, as it ends every other filter; the Rust runtime ignores the
/// signal and would turn it into an error of the write.
pub fn end_on_broken_pipe() {
    // SAFETY: sets the default disposition; no handler is installed, and none of the program's own is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
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
