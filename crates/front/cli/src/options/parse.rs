//! Parses arguments into occurrences of options, as `getopt_long(3)` of the GNU C library does.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::{Abbreviation, Argument, Command, OptionSpec, Role, Syntax};
use crate::diagnostics::UsageError;

/// An option that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence<I> {
    /// Which one.
    pub id: I,
    /// Its argument.
    pub value: Option<OsString>,
    /// Its spelling, for messages.
    pub spelling: Spelling,
    /// The whole word that contained it, dashes and attached argument included.
    pub word: OsString,
}

impl<I> Occurrence<I> {
    /// The argument's bytes; empty if there is none.
    pub fn bytes(&self) -> &[u8] {
        self.value.as_deref().map_or(&[], OsStrExt::as_bytes)
    }
}

/// The spelling of an option. Displayed as `-B` or `--block-size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// By its letter.
    Short(u8),
    /// By its long name, given here in full.
    Long(&'static str),
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spelling::Short(letter) => write!(f, "-{}", char::from(*letter)),
            Spelling::Long(name) => write!(f, "--{name}"),
        }
    }
}

/// The position of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permutation {
    /// Anywhere: options are recognised among and after them.
    Anywhere,
    /// After the options: the first operand ends the options (`POSIXLY_CORRECT`).
    Last,
}

/// Yields the options of a command line one by one, so that the tool handles options and mistakes in order. An error
/// does not end the parsing; the tool decides whether to stop.
#[derive(Debug)]
pub struct Parser<I: 'static> {
    command: &'static Command<I>,
    permutation: Permutation,
    arguments: VecDeque<OsString>,
    /// Remaining letters of a cluster.
    cluster: VecDeque<u8>,
    /// The whole word that the last option came from.
    word: OsString,
    operands: Vec<OsString>,
}

impl<I: Copy + PartialEq + 'static> Parser<I> {
    /// A parser of the arguments after the program's name; `POSIXLY_CORRECT` is looked up in the environment.
    pub fn new(command: &'static Command<I>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        let permutation = match std::env::var_os("POSIXLY_CORRECT") {
            Some(_) => Permutation::Last,
            None => Permutation::Anywhere,
        };
        Self::with_permutation(command, arguments, permutation)
    }

    fn with_permutation(
        command: &'static Command<I>,
        arguments: impl IntoIterator<Item = OsString>,
        permutation: Permutation,
    ) -> Self {
        let arguments = arguments.into_iter().collect();
        Parser {
            command,
            permutation,
            arguments,
            cluster: VecDeque::new(),
            word: OsString::new(),
            operands: Vec::new(),
        }
    }

    /// The operands before the options that have not been taken yet.
    pub fn operands(&self) -> &[OsString] {
        &self.operands
    }

    /// The operands, after all options have been taken.
    pub fn into_operands(mut self) -> Vec<OsString> {
        self.operands.extend(self.arguments);
        self.operands
    }

    fn short(&mut self, letter: u8) -> Result<Occurrence<Role<I>>, UsageError> {
        let Some(spec) = self.command.options.iter().find(|o| o.short == Some(letter)) else {
            return Err(UsageError::option([b"invalid option -- '", &[letter][..], b"'"].concat()));
        };
        let value = match spec.argument {
            Argument::None => None,
            Argument::Optional(_) => self.take_cluster(),
            Argument::Required(_) => match self.take_cluster().or_else(|| self.arguments.pop_front()) {
                None => {
                    let message = [b"option requires an argument -- '", &[letter][..], b"'"].concat();
                    return Err(UsageError::option(message));
                }
                value => value,
            },
        };
        Ok(Occurrence { id: spec.id, value, spelling: Spelling::Short(letter), word: self.word.clone() })
    }

    /// The rest of a cluster as an argument; `None` if nothing is left.
    fn take_cluster(&mut self) -> Option<OsString> {
        let rest: Vec<u8> = std::mem::take(&mut self.cluster).into();
        (!rest.is_empty()).then(|| OsString::from_vec(rest))
    }

    fn long(&mut self, text: &[u8]) -> Result<Occurrence<Role<I>>, UsageError> {
        let (name, attached) = match text.iter().position(|&b| b == b'=') {
            Some(at) => (&text[..at], Some(OsStr::from_bytes(&text[at + 1..]).to_owned())),
            None => (text, None),
        };
        let (name, spec) = self.find_long(name, text)?;
        let value = match (spec.argument, attached) {
            (Argument::None, Some(_)) => {
                let message = format!("option '--{name}' doesn't allow an argument");
                return Err(UsageError::option(message.into_bytes()));
            }
            (Argument::Required(_), None) => match self.arguments.pop_front() {
                None => {
                    let message = format!("option '--{name}' requires an argument");
                    return Err(UsageError::option(message.into_bytes()));
                }
                value => value,
            },
            (_, attached) => attached,
        };
        Ok(Occurrence { id: spec.id, value, spelling: Spelling::Long(name), word: self.word.clone() })
    }

    /// The option with this name or unambiguous abbreviation; `text` is the whole word for messages.
    fn find_long(
        &self,
        name: &[u8],
        text: &[u8],
    ) -> Result<(&'static str, &'static OptionSpec<I>), UsageError> {
        let command = self.command;
        let names = || command.options.iter().flat_map(|o| o.long.iter().map(move |&long| (long, o)));
        if let Some(exact) = names().find(|(long, _)| long.as_bytes() == name) {
            return Ok(exact);
        }
        let mut possible: Vec<_> = names()
            .filter(|(long, o)| {
                command.syntax != Syntax::Exact
                    && o.abbreviation == Abbreviation::Allowed
                    && long.as_bytes().starts_with(name)
            })
            .collect();
        possible
            .sort_by_key(|(long, _)| command.long_order.iter().position(|l| l == long).unwrap_or(usize::MAX));
        let Some(&first) = possible.first() else {
            return Err(UsageError::option([b"unrecognized option '--", text, b"'"].concat()));
        };
        // Several names of one option are not ambiguous.
        let different =
            |&(_, o): &(&str, &OptionSpec<I>)| o.id != first.1.id || o.argument != first.1.argument;
        let others: Vec<_> = possible[1..].iter().filter(|&candidate| different(candidate)).collect();
        if others.is_empty() {
            return Ok(first);
        }
        let mut message = [b"option '--", text, b"' is ambiguous; possibilities:"].concat();
        for (long, _) in std::iter::once(&first).chain(others) {
            message.extend_from_slice(format!(" '--{long}'").as_bytes());
        }
        Err(UsageError::option(message))
    }
}

impl<I: Copy + PartialEq + 'static> Iterator for Parser<I> {
    type Item = Result<Occurrence<Role<I>>, UsageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(letter) = self.cluster.pop_front() {
                return Some(self.short(letter));
            }
            let argument = self.arguments.pop_front()?;
            match argument.as_bytes() {
                b"--" => return None,
                [b'-', b'-', long @ ..] => {
                    self.word.clone_from(&argument);
                    return Some(self.long(long));
                }
                [b'-', cluster @ ..] if !cluster.is_empty() => {
                    self.cluster = cluster.iter().copied().collect();
                    self.word.clone_from(&argument);
                }
                _ if self.permutation == Permutation::Last => {
                    self.arguments.push_front(argument);
                    return None;
                }
                _ => self.operands.push(argument),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Id, SAMPLE};
    use super::*;

    fn parse(arguments: &[&str], permutation: Permutation) -> (Vec<String>, Vec<String>) {
        let mut parser = Parser::with_permutation(&SAMPLE, arguments.iter().map(OsString::from), permutation);
        let options = parser
            .by_ref()
            .map(|option| match option {
                Ok(Occurrence { id: Role::Tool(id), value: Some(value), .. }) => {
                    format!("{id:?}={}", value.display())
                }
                Ok(Occurrence { id: Role::Tool(id), .. }) => format!("{id:?}"),
                Ok(Occurrence { id: Role::Text(text), .. }) => format!("{text:?}"),
                Err(error) => String::from_utf8_lossy(error.message()).into_owned(),
            })
            .collect();
        let operands = parser.into_operands().into_iter().map(|o| o.display().to_string()).collect();
        (options, operands)
    }

    #[test]
    fn options_and_operands() {
        for (arguments, options, operands) in [
            (&["-as", "x"][..], &["All", "Size"][..], &["x"][..]),
            (
                &["-aw5", "-w", "6", "-sw"],
                &["All", "Width=5", "Width=6", "Size", "option requires an argument -- 'w'"],
                &[],
            ),
            (&["x", "-a", "y", "--size"], &["All", "Size"], &["x", "y"]),
            (&["-a", "--", "-a", "--"], &["All"], &["-a", "--"]),
            (&["-", "-a"], &["All"], &["-"]),
            (
                &["--width=5", "--width", "-a", "--wid=", "--w", "7"],
                &["Width=5", "Width=-a", "Width=", "Width=7"],
                &[],
            ),
            (
                &["--color", "x", "--color=y", "--col", "--colou=z"],
                &["Color", "Color=y", "Color", "Color=z"],
                &["x"],
            ),
            (&["--sor=name"], &["Sort=name"], &[]),
            (&["--dereference", "--dereference-"], &["Dereference", "DereferenceArgs"], &[]),
            (&["--json"], &["Json"], &[]),
        ] {
            let parsed = parse(arguments, Permutation::Anywhere);
            assert_eq!(parsed.0, options, "{arguments:?}");
            assert_eq!(parsed.1, operands, "{arguments:?}");
        }
    }

    #[test]
    fn mistakes_are_reported_as_the_c_library_does() {
        for (argument, message) in [
            ("-y", "invalid option -- 'y'"),
            ("-w", "option requires an argument -- 'w'"),
            ("--foo=1", "unrecognized option '--foo=1'"),
            ("--js", "unrecognized option '--js'"),
            ("--width", "option '--width' requires an argument"),
            ("--all=3", "option '--all' doesn't allow an argument"),
            ("--al=3", "option '--all' doesn't allow an argument"),
            (
                "--s=1",
                "option '--s=1' is ambiguous; possibilities: '--size' '--si' '--show-control-chars' '--sort'",
            ),
            ("--deref", "option '--deref' is ambiguous; possibilities: '--dereference' '--dereference-args'"),
        ] {
            assert_eq!(parse(&[argument], Permutation::Anywhere).0, [message]);
        }
    }

    #[test]
    fn posixly_correct_stops_at_the_first_operand() {
        let parsed = parse(&["-a", "x", "-s", "--", "y"], Permutation::Last);
        assert_eq!(parsed, (vec!["All".into()], vec!["x".into(), "-s".into(), "--".into(), "y".into()]));
        let parsed = parse(&["--", "x"], Permutation::Last);
        assert_eq!(parsed.1, ["x"]);
    }

    #[test]
    fn arguments_need_not_be_utf8() {
        let argument = OsString::from_vec(b"--width=\xff".to_vec());
        let mut parser = Parser::with_permutation(&SAMPLE, [argument], Permutation::Anywhere);
        let option = parser.next().expect("an option").expect("a valid one");
        assert_eq!((option.id, option.bytes()), (Role::Tool(Id::Width), &b"\xff"[..]));
        let argument = OsString::from_vec(b"-\xff".to_vec());
        let mut parser = Parser::with_permutation(&SAMPLE, [argument], Permutation::Anywhere);
        let error = parser.next().expect("an option").expect_err("an invalid one");
        assert_eq!(error.message(), b"invalid option -- '\xff'");
    }

    #[test]
    fn words_are_kept_whole() {
        let words = ["-asw5", "x", "--width=7", "-w", "5"].map(OsString::from);
        let parser = Parser::with_permutation(&SAMPLE, words, Permutation::Anywhere);
        let seen: Vec<_> = parser.map(|option| option.expect("a valid one").word).collect();
        assert_eq!(seen, ["-asw5", "-asw5", "-asw5", "--width=7", "-w"]);
    }

    #[test]
    fn spelling_names_the_option_in_full() {
        let spelled = |argument: &str| {
            let mut parser =
                Parser::with_permutation(&SAMPLE, [OsString::from(argument)], Permutation::Anywhere);
            parser.next().expect("an option").expect("a valid one").spelling.to_string()
        };
        assert_eq!((spelled("-w1"), spelled("--wi=1")), ("-w".to_owned(), "--width".to_owned()));
    }
}
