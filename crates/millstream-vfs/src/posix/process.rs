//! Signals of the process.

/// Makes a write to a closed pipe end the process silently, as it ends every other filter; the Rust runtime ignores the
/// signal and would turn it into an error of the write.
pub fn end_on_broken_pipe() {
    // SAFETY: sets the default disposition; no handler is installed, and none of the program's own is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
