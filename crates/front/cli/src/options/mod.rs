//! Option tables: each option of a tool is defined once, and every text that mentions it is generated from the table.
//!
//! ```text
//!                     ┌─ parse.rs ─────> command_line.rs ─> the tool's settings, operands
//!  Command + Options ─┼─ help.rs         --help, --version
//!                     ├─ man.rs          the manual page
//!                     └─ completions.rs  bash, zsh, fish
//! ```
//!
//! The parser turns arguments into occurrences of options, as `getopt_long(3)` does, with the same messages.
//! `command_line.rs` answers `--help` and `--version` and passes on the other options in order. It makes no decisions:
//! which of two conflicting options wins is up to the tool.

mod choice;
mod command_line;
mod completions;
mod help;
mod man;
mod parse;
mod reference;

pub use choice::{Choice, choose};
pub use command_line::{Text, take_options, write_text};
pub use completions::{Shell, completions};
pub use help::{help, help_on, version};
pub use man::man_page;
use parse::Parser;
pub use parse::{Occurrence, Spelling};
pub use reference::Reference;

/// A command line tool.
#[derive(Debug)]
pub struct Command<I: 'static> {
    /// Name of the binary.
    pub name: &'static str,
    /// Its purpose, as a phrase for the manual's NAME section: no capital, no full stop.
    pub summary: &'static str,
    /// The usage after the name, one line per form.
    pub usage: &'static [&'static str],
    /// Paragraphs that explain the tool.
    pub description: &'static [&'static str],
    /// The syntax of the options.
    pub syntax: Syntax,
    /// The options; those of a group are adjacent.
    pub options: &'static [OptionSpec<I>],
    /// Long names in the order in which a message about an ambiguous abbreviation lists them, if that differs from the
    /// table. Names not given here come last.
    pub long_order: &'static [&'static str],
    /// The texts after the options.
    pub sections: &'static [Section],
}

/// The syntax of a command's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `-a`, `-n5`, `--all`, `--depth=5`, in clusters and abbreviated.
    Getopt,
    /// As [`Syntax::Getopt`], without abbreviations.
    Exact,
    /// The words of an expression: long names follow a single dash. The command has its own parser.
    Expression,
}

/// The argument of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None.
    None,
    /// A required argument of this name, attached or in the next word.
    Required(&'static str),
    /// An optional argument of this name, attached.
    Optional(&'static str),
}

/// Whether an option's long names may be abbreviated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abbreviation {
    /// If the abbreviation is unambiguous.
    Allowed,
    /// Never: the GNU tool does not have the option, which must not make its abbreviations ambiguous.
    Never,
}

/// Which code handles an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<I> {
    /// The tool, under this identifier.
    Tool(I),
    /// None: a text is printed instead of working.
    Text(Text),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec<I: 'static> {
    /// Which code handles it.
    pub id: Role<I>,
    /// The letter.
    pub short: Option<u8>,
    /// The long names, without dashes.
    pub long: &'static [&'static str],
    /// Its argument.
    pub argument: Argument,
    /// The possible arguments, if they are a few words.
    pub words: &'static [&'static str],
    /// Whether its long names may be abbreviated.
    pub abbreviation: Abbreviation,
    /// Heading under which it is listed.
    pub group: &'static str,
    /// Its effect, as a sentence without capital and full stop; empty for unlisted options.
    pub help: &'static str,
}

impl<I: 'static> OptionSpec<I> {
    const fn new(
        id: Role<I>,
        short: Option<u8>,
        long: &'static [&'static str],
        argument: Argument,
        group: &'static str,
        help: &'static str,
    ) -> Self {
        OptionSpec { id, short, long, argument, words: &[], abbreviation: Abbreviation::Allowed, group, help }
    }

    /// Lists it under another heading.
    #[must_use]
    pub const fn under(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// Sets the possible arguments, for completions.
    #[must_use]
    pub const fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }
}

/// An option without an argument, under the heading `group`.
pub const fn flag<I: 'static>(
    id: I,
    short: Option<u8>,
    long: &'static [&'static str],
    group: &'static str,
    help: &'static str,
) -> OptionSpec<I> {
    OptionSpec::new(Role::Tool(id), short, long, Argument::None, group, help)
}

/// An option with an argument called `name`.
pub const fn value<I: 'static>(
    id: I,
    short: Option<u8>,
    long: &'static [&'static str],
    name: &'static str,
    group: &'static str,
    help: &'static str,
) -> OptionSpec<I> {
    OptionSpec::new(Role::Tool(id), short, long, Argument::Required(name), group, help)
}

/// An option with an optional argument called `name`.
pub const fn optional<I: 'static>(
    id: I,
    short: Option<u8>,
    long: &'static [&'static str],
    name: &'static str,
    group: &'static str,
    help: &'static str,
) -> OptionSpec<I> {
    OptionSpec::new(Role::Tool(id), short, long, Argument::Optional(name), group, help)
}

/// Heading of the options that the GNU tool does not have.
pub const EXTENSIONS: &str = "Not in GNU's tool";

/// An option that the GNU tool does not have.
pub const fn extension<I: 'static>(
    id: I,
    long: &'static [&'static str],
    argument: Argument,
    help: &'static str,
) -> OptionSpec<I> {
    let mut spec = OptionSpec::new(Role::Tool(id), None, long, argument, EXTENSIONS, help);
    spec.abbreviation = Abbreviation::Never;
    spec
}

/// `--threads=N`.
pub const fn threads<I: 'static>(id: I) -> OptionSpec<I> {
    const HELP: &str = "use up to N threads; 0, the default, starts with one per CPU and adds more, up to 256, while calls wait";
    extension(id, &["threads"], Argument::Required("N"), HELP)
}

/// `--verbose`.
pub const fn verbose<I: 'static>(id: I) -> OptionSpec<I> {
    const HELP: &str = "report entries, threads and seconds on standard error at the end";
    extension(id, &["verbose"], Argument::None, HELP)
}

/// `--json`.
pub const fn json<I: 'static>(id: I) -> OptionSpec<I> {
    const HELP: &str = "write one JSON object per line, also for errors; see docs/json.md";
    extension(id, &["json"], Argument::None, HELP)
}

/// `--dry-run`.
pub const fn dry_run<I: 'static>(id: I, help: &'static str) -> OptionSpec<I> {
    extension(id, &["dry-run"], Argument::None, help)
}

/// `--help`.
pub const fn help_option<I: 'static>(group: &'static str) -> OptionSpec<I> {
    const HELP: &str = "display this help and exit";
    OptionSpec::new(Role::Text(Text::Help), None, &["help"], Argument::None, group, HELP)
}

/// `--version`.
pub const fn version_option<I: 'static>(group: &'static str) -> OptionSpec<I> {
    const HELP: &str = "output version information and exit";
    OptionSpec::new(Role::Text(Text::Version), None, &["version"], Argument::None, group, HELP)
}

/// A part of the help and the manual after the options.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// Its contents.
    pub body: &'static [Paragraph],
}

/// The contents of a section.
#[derive(Clone, Copy, Debug)]
pub enum Paragraph {
    /// Text, wrapped.
    Text(&'static str),
    /// Terms, each with its definition.
    Terms(&'static [(&'static str, &'static str)]),
}

#[cfg(test)]
mod sample {
    //! The table that the tests of this module use.
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Id {
        All,
        Width,
        Color,
        Size,
        Si,
        ShowControl,
        Sort,
        Dereference,
        DereferenceArgs,
        Json,
    }

    const G: &str = "Options";

    pub const SAMPLE: Command<Id> = Command {
        name: "pls",
        summary: "list directory contents",
        usage: &["[OPTION]... [FILE]..."],
        description: &["List information about the FILEs."],
        syntax: Syntax::Getopt,
        options: &[
            flag(Id::All, Some(b'a'), &["all"], G, "do not ignore entries starting with ."),
            value(Id::Width, Some(b'w'), &["width"], "COLS", G, "set output width"),
            optional(Id::Color, None, &["color", "colour"], "WHEN", G, "color the output")
                .words(&["always", "auto", "never"]),
            flag(Id::Si, None, &["si"], G, "use powers of 1000"),
            flag(Id::Size, Some(b's'), &["size"], G, "print the allocated size"),
            flag(Id::ShowControl, None, &["show-control-chars"], G, "show them as is"),
            value(Id::Sort, None, &["sort"], "WORD", G, "sort by WORD"),
            flag(Id::Dereference, Some(b'L'), &["dereference"], G, "follow links"),
            flag(Id::DereferenceArgs, Some(b'D'), &["dereference-args"], G, "it's -H"),
            json(Id::Json),
        ],
        long_order: &["size", "si", "show-control-chars", "sort"],
        sections: &[Section {
            title: "Exit status",
            body: &[Paragraph::Text("0 if all went well."), Paragraph::Terms(&[("1", "minor problems")])],
        }],
    };
}
