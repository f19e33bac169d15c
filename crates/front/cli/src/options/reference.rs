//! The spelling of options in help, manual pages and completions.

use std::ffi::OsStr;

use super::{Argument, Command, OptionSpec, Paragraph, Section, Syntax};

/// A command without the type of its options' identifiers: everything that texts need.
#[derive(Clone, Debug)]
pub struct Reference {
    /// See [`Command::name`].
    pub name: &'static str,
    pub(super) summary: &'static str,
    pub(super) usage: &'static [&'static str],
    pub(super) description: &'static [&'static str],
    pub(super) entries: Vec<ReferenceEntry>,
    pub(super) sections: &'static [Section],
}

/// An option in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceEntry {
    pub(super) short: Option<u8>,
    pub(super) long: &'static [&'static str],
    pub(super) dashes: &'static str,
    pub(super) argument: Argument,
    pub(super) words: &'static [&'static str],
    pub(super) group: &'static str,
    pub(super) help: &'static str,
}

impl<I> From<&Command<I>> for Reference {
    fn from(command: &Command<I>) -> Self {
        let dashes = match command.syntax {
            Syntax::Getopt | Syntax::Exact => "--",
            Syntax::Expression => "-",
        };
        let entry = |o: &OptionSpec<I>| ReferenceEntry {
            short: o.short,
            long: o.long,
            dashes,
            argument: o.argument,
            words: o.words,
            group: o.group,
            help: o.help,
        };
        Reference {
            name: command.name,
            summary: command.summary,
            usage: command.usage,
            description: command.description,
            entries: command.options.iter().filter(|o| !o.help.is_empty()).map(entry).collect(),
            sections: command.sections,
        }
    }
}

impl Reference {
    /// The options, group by group.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&'static str, &[ReferenceEntry])> {
        self.entries.chunk_by(|a, b| a.group == b.group).map(|group| (group[0].group, group))
    }

    /// The subcommand words of a tool, taken from its usage.
    pub(super) fn commands(&self) -> Vec<&'static str> {
        let first = self.usage.iter().filter_map(|line| line.split_whitespace().next());
        let mut commands: Vec<_> =
            first.filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')).collect();
        commands.dedup();
        commands
    }

    /// The subcommand that a word names.
    pub(super) fn command(&self, word: &OsStr) -> Option<&'static str> {
        self.commands().into_iter().find(|command| word == *command)
    }

    /// All spellings of the options, with their dashes.
    pub(super) fn words(&self) -> Vec<String> {
        self.entries.iter().flat_map(ReferenceEntry::spellings).collect()
    }

    /// The terms defined in the sections that begin with a dash, with their definitions: words of an expression.
    pub(super) fn expression_words(&self) -> Vec<(&'static str, &'static str)> {
        let terms = self.sections.iter().flat_map(|s| s.body).filter_map(|p| match p {
            Paragraph::Terms(terms) => Some(*terms),
            Paragraph::Text(_) => None,
        });
        terms.flatten().filter(|(term, _)| term.starts_with('-')).copied().collect()
    }
}

impl ReferenceEntry {
    /// `-a`, `--all`.
    pub(super) fn spellings(&self) -> Vec<String> {
        let short = self.short.map(|letter| format!("-{}", char::from(letter)));
        short.into_iter().chain(self.long.iter().map(|long| format!("{}{long}", self.dashes))).collect()
    }

    /// How the argument follows the last spelling: `=SIZE`, `[=WHEN]`, ` N`.
    pub(super) fn argument_suffix(&self) -> String {
        let separator = if self.dashes == "-" {
            " "
        } else if self.long.is_empty() {
            ""
        } else {
            "="
        };
        match self.argument {
            Argument::None => String::new(),
            Argument::Required(name) if separator.is_empty() => format!(" {name}"),
            Argument::Required(name) => format!("{separator}{name}"),
            Argument::Optional(name) => format!("[{separator}{name}]"),
        }
    }

    /// The name of the argument.
    pub(super) fn argument_name(&self) -> Option<&'static str> {
        match self.argument {
            Argument::None => None,
            Argument::Required(name) | Argument::Optional(name) => Some(name),
        }
    }

    /// Whether the argument names a file.
    pub(super) fn takes_file(&self) -> bool {
        matches!(self.argument_name(), Some("FILE" | "F" | "DIR" | "PATH"))
    }
}
