//! Converts the options to settings of the removal.

use millstream_change::remove::{
    Directories, Execution, FileSystems, Missing, Options, PreserveRoot, Prompts, ReportFormat,
};
use millstream_system::locale::Locale;
use millstream_text::quote::{ControlCharacters, Quoter, QuotingStyle};
use millstream_walk::Threads;

use super::table::Id;
use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::options::{Choice, Occurrence, choose};
use crate::startup::parse_threads;

/// When to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Never,
    Once,
    Always,
}

const WHENS: &[Choice<When>] = &[
    Choice { words: &["never", "no", "none"], meaning: When::Never },
    Choice { words: &["once"], meaning: When::Once },
    Choice { words: &["always", "yes"], meaning: When::Always },
];

/// Whether to ask one question about all operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overview {
    Skip,
    Ask,
}

/// The values of the options.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    diagnostics: &'a Diagnostics,
    recursive: bool,
    empty_directories: bool,
    missing: Missing,
    /// `None` until an option decides: ask about write-protected files if there is a terminal.
    prompts: Option<Prompts>,
    overview: Overview,
    presume_input_tty: bool,
    file_systems: FileSystems,
    preserve_root: PreserveRoot,
    verbose: bool,
    execution: Execution,
    json: bool,
    threads: Threads,
}

impl<'a> Settings<'a> {
    pub(super) fn new(diagnostics: &'a Diagnostics) -> Self {
        Settings {
            diagnostics,
            recursive: false,
            empty_directories: false,
            missing: Missing::Report,
            prompts: None,
            overview: Overview::Skip,
            presume_input_tty: false,
            file_systems: FileSystems::All,
            preserve_root: PreserveRoot::Root,
            verbose: false,
            execution: Execution::Real,
            json: false,
            threads: Threads::default(),
        }
    }

    /// Handles an option.
    pub(super) fn take(&mut self, option: &Occurrence<Id>) -> Result<(), Refused> {
        let refuse = |error| self.diagnostics.usage_error(&error, FAILURE);
        match option.id {
            Id::Force => {
                self.missing = Missing::Ignore;
                self.ask(When::Never);
            }
            Id::PromptAlways => self.ask_and_report(When::Always),
            Id::PromptOnce => self.ask_and_report(When::Once),
            Id::Interactive if option.value.is_none() => self.ask_and_report(When::Always),
            Id::Interactive => {
                match choose(option.bytes(), "--interactive", WHENS, self.diagnostics).map_err(refuse)? {
                    When::Never => self.ask(When::Never),
                    when => self.ask_and_report(when),
                }
            }
            Id::OneFileSystem => self.file_systems = FileSystems::One,
            Id::NoPreserveRoot if option.word == "--no-preserve-root" => {
                self.preserve_root = PreserveRoot::Off;
            }
            Id::NoPreserveRoot => {
                let message = "you may not abbreviate the --no-preserve-root option";
                self.diagnostics.error(FAILURE).text(message).send();
                return Err(Refused);
            }
            Id::PreserveRoot => match option.value.as_ref().map(|_| option.bytes()) {
                None => self.preserve_root = PreserveRoot::Root,
                Some(b"all") => self.preserve_root = PreserveRoot::MountPoints,
                Some(other) => {
                    let message =
                        self.diagnostics.error(FAILURE).text("unrecognized --preserve-root argument: ");
                    message.name(other).send();
                    return Err(Refused);
                }
            },
            Id::PresumeInputTty => self.presume_input_tty = true,
            Id::Recursive => self.recursive = true,
            Id::Dir => self.empty_directories = true,
            Id::Verbose => self.verbose = true,
            Id::DryRun => self.execution = Execution::DryRun,
            Id::Json => self.json = true,
            Id::Threads => {
                self.threads = parse_threads(option.bytes(), self.diagnostics).map_err(refuse)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, when: When) {
        self.prompts = match when {
            When::Never => Some(Prompts::Never),
            When::Once => None,
            When::Always => Some(Prompts::Always),
        };
        self.overview = if when == When::Once { Overview::Ask } else { Overview::Skip };
    }

    fn ask_and_report(&mut self, when: When) {
        self.ask(when);
        self.missing = Missing::Report;
    }

    /// Whether an empty list of operands is allowed.
    pub(super) fn needs_no_operands(&self) -> bool {
        self.missing == Missing::Ignore
    }

    /// The question about all operands that must be answered with yes first.
    pub(super) fn overview(&self, operands: usize) -> Option<String> {
        let wanted = self.overview == Overview::Ask
            && self.execution == Execution::Real
            && (self.recursive || operands > 3);
        let noun = if operands == 1 { "argument" } else { "arguments" };
        let how = if self.recursive { " recursively" } else { "" };
        wanted.then(|| format!("remove {operands} {noun}{how}? "))
    }

    /// The settings of the removal.
    pub(super) fn finish(self, locale: &'static Locale) -> Options {
        let is_terminal = || self.presume_input_tty || rustix::termios::isatty(std::io::stdin());
        let text =
            Quoter { style: QuotingStyle::ShellEscapeAlways, control: ControlCharacters::Show, locale };
        Options {
            directories: match (self.recursive, self.empty_directories) {
                (true, _) => Directories::Recursive,
                (false, true) => Directories::Empty,
                (false, false) => Directories::Refuse,
            },
            missing: self.missing,
            prompts: match self.prompts {
                Some(prompts) => prompts,
                None if is_terminal() => Prompts::WriteProtected,
                None => Prompts::Never,
            },
            file_systems: self.file_systems,
            preserve_root: self.preserve_root,
            execution: self.execution,
            report: match (self.json, self.verbose || self.execution == Execution::DryRun) {
                (true, _) => Some(ReportFormat::Json),
                (false, true) => Some(ReportFormat::Text(text)),
                (false, false) => None,
            },
            threads: self.threads,
        }
    }
}
