//! The words of a command line, and the settings made by its options.
//!
//! The parser of one word sees the words after it, for its arguments, and the settings that it may read or change.
//! [`super::parser`] handles the order of words and the structure of the expression.

use std::ffi::{CStr, CString};

use millstream_system::pattern::RegexSyntax;
use millstream_vfs::{Errno, Metadata, SymlinkBehavior, errno_text};
use millstream_walk::{FollowPolicy, Threads};

use super::environment::{Environment, Severity};
use super::expression::{Expr, GlobalOptions, MountPoints, Test, VanishedFiles, VisitOrder};
use super::moment::nanoseconds;
use super::refusal::Refusal;
use millstream_operation::terms::FileSystems;

/// The default output for an entry, if the expression has no action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefaultOutput {
    /// The path.
    Path,
    /// A record of JSON.
    Record,
}

/// What is printed at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Nothing.
    Quiet,
    /// A summary of the work, the number of threads and the time.
    Statistics,
}

/// Whether to warn about oddities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Warnings {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// The kind of a word in the expression.
pub(super) type Parsed = Result<Expr, Refusal>;

/// The words of a command line, read from left to right, and the settings that they have made.
pub(super) struct Words<'a> {
    pub env: &'a mut dyn Environment,
    args: &'a [CString],
    at: usize,
    pub options: GlobalOptions,
    pub depth_asked: bool,
    pub files_from: Option<CString>,
    pub regex_syntax: RegexSyntax,
    pub warnings: Warnings,
    pub output: DefaultOutput,
    pub threads: Threads,
    pub verbosity: Verbosity,
    /// The moment from which ages count.
    pub age_origin: i128,
    pub commands: usize,
}

impl<'a> Words<'a> {
    pub fn new(args: &'a [CString], warnings: Warnings, env: &'a mut dyn Environment) -> Self {
        Words {
            age_origin: nanoseconds(env.now()),
            env,
            args,
            at: 0,
            options: GlobalOptions {
                operands: Vec::new(),
                follow: FollowPolicy::Never,
                visits: VisitOrder::PreOrder,
                min_depth: 0,
                max_depth: u32::MAX,
                file_systems: FileSystems::All,
                mount_points: MountPoints::Evaluate,
                vanished: VanishedFiles::Report,
            },
            depth_asked: false,
            files_from: None,
            regex_syntax: RegexSyntax::EMACS,
            warnings,
            output: DefaultOutput::Path,
            threads: Threads::default(),
            verbosity: Verbosity::Quiet,
            commands: 0,
        }
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a CStr> {
        self.args.get(self.at).map(CString::as_c_str)
    }

    /// Skips the next word.
    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// The next word.
    pub fn next(&mut self) -> Option<&'a CStr> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// The argument of the predicate `name`.
    pub fn argument(&mut self, name: &CStr) -> Result<&'a CStr, Refusal> {
        self.next().ok_or_else(|| Refusal::mistake(&[b"missing argument to `", name.to_bytes(), b"'"]))
    }

    /// Prints a warning if they are wanted.
    pub fn warn(&mut self, parts: &[&[u8]]) {
        if self.warnings == Warnings::On {
            self.env.complain(Severity::Warning, &parts.concat());
        }
    }

    /// Text in the locale's quotation marks.
    pub fn quote(&self, text: &CStr) -> Vec<u8> {
        self.env.quote(text.to_bytes())
    }

    /// The refusal of an unusable file.
    pub fn file_error(&self, path: &CStr, errno: Errno) -> Refusal {
        Refusal::mistake(&[&self.quote(path), b": ", errno_text(errno).as_bytes()])
    }

    /// Metadata of a file that an argument names; of the link itself, if it is dangling.
    pub fn argument_metadata(&self, path: &CStr) -> Result<Metadata, Refusal> {
        let found = match self.options.follow {
            FollowPolicy::Never => self.env.metadata(path, SymlinkBehavior::NoFollow),
            FollowPolicy::Operands | FollowPolicy::Always => {
                match self.env.metadata(path, SymlinkBehavior::Follow) {
                    Err(Errno::NOENT | Errno::NOTDIR) => self.env.metadata(path, SymlinkBehavior::NoFollow),
                    found => found,
                }
            }
        };
        found.map_err(|errno| self.file_error(path, errno))
    }
}

/// A test, as a word of the expression.
pub(super) fn test(test: Test) -> Parsed {
    Ok(Expr::Test(test))
}

/// What an option affects, depending on its position among tests.
pub(super) fn truth() -> Parsed {
    test(Test::True)
}

/// ``invalid argument `x' to `-name'``
pub(super) fn invalid(argument: &CStr, name: &CStr) -> Refusal {
    Refusal::mistake(&[b"invalid argument `", argument.to_bytes(), b"' to `", name.to_bytes(), b"'"])
}
