//! The first steps of every tool.

use std::ffi::OsString;

use millstream_system::locale::Locale;
use millstream_system::process;
use millstream_walk::Threads;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::diagnostics::{Diagnostics, UsageError};

/// The process, ready for work.
#[derive(Debug)]
pub struct Startup {
    /// Arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// Messages under the name that the program was called by.
    pub diagnostics: Diagnostics,
    /// The locale.
    pub locale: &'static Locale,
    /// The limit of open files with which the process was started, for its children.
    pub inherited_open_files: Rlimit,
}

/// Takes the arguments and sets the locale. A closed pipe then ends the process quietly, a closed standard output stays
/// closed, and a file that grows beyond the limit is an error. The limit of open files is raised as far as possible.
///
/// To be called first in `main`, before any thread is started.
pub fn startup(name: &str) -> Startup {
    let mut arguments = std::env::args_os();
    let diagnostics = Diagnostics::new(arguments.next().unwrap_or_else(|| name.into()));
    process::end_on_broken_pipe();
    process::restore_closed_stdout();
    process::report_too_large_files();
    Startup {
        arguments: arguments.collect(),
        diagnostics,
        locale: Locale::from_environment(),
        inherited_open_files: raise_open_files(),
    }
}

fn raise_open_files() -> Rlimit {
    let inherited = getrlimit(Resource::Nofile);
    if inherited.current != inherited.maximum {
        // If it cannot be raised, the traversal works within the current limit.
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: inherited.maximum, maximum: inherited.maximum });
    }
    inherited
}

/// Restores the limit of open files with which the process was started, for it and for the commands that it will run.
pub fn restore_open_files(inherited: Rlimit) {
    // Restoring a lower limit does not fail; if it did, commands would only have a higher limit than expected.
    let _ = setrlimit(Resource::Nofile, inherited);
}

/// The argument of `--threads`.
///
/// # Errors
/// If it is not a number.
pub fn parse_threads(argument: &[u8], diagnostics: &Diagnostics) -> Result<Threads, UsageError> {
    let number = std::str::from_utf8(argument).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    match number.and_then(|text| text.parse().ok()) {
        Some(0) => Ok(Threads::default()),
        Some(n) => Ok(Threads::Fixed(n)),
        None => {
            let message = [b"invalid number of threads: ", &diagnostics.quoted(argument)[..]].concat();
            Err(UsageError::argument(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads() {
        let diagnostics = Diagnostics::new("pls");
        assert_eq!(parse_threads(b"0", &diagnostics), Ok(Threads::default()));
        assert_eq!(parse_threads(b"17", &diagnostics), Ok(Threads::Fixed(17)));
        for bad in [&b""[..], b"-1", b"+1", b"x", b"\xff", b"99999999999999999999999"] {
            assert!(parse_threads(bad, &diagnostics).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn limit_of_open_files_is_raised_and_remembered() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise_open_files(), before);
        let after = getrlimit(Resource::Nofile);
        assert_eq!((after.current, after.maximum), (before.maximum, before.maximum));
    }
}
