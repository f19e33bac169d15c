//! The command line: leading options, operands, and the words of the expression.
//!
//! Words are read one after the other into a list of tokens; each test or action takes its arguments.
//! [`super::grammar`] then builds the tree. A mistake in a word is therefore reported before one in the structure, as
//! users expect.

use std::ffi::{CStr, CString};

use millstream_vfs::{SymlinkBehavior, errno_text};
use millstream_walk::{FollowPolicy, Threads};

use super::environment::{Environment, Severity, UnreadableList};
use super::expression::{Action, Expr, GlobalOptions, Leaf, StreamId};
use super::grammar::{Token, TokenKind, build_tree};
use super::primaries::{self, Class, Primary};
use super::refusal::Refusal;
use super::words::{DefaultOutput, Verbosity, Warnings, Words};

/// A parsed command line.
#[derive(Debug)]
pub(super) struct CommandLine {
    pub options: GlobalOptions,
    pub expression: Expr,
    pub output: DefaultOutput,
    pub threads: Threads,
    pub verbosity: Verbosity,
}

/// Reads a command line from left to right.
struct Parser<'a> {
    words: Words<'a>,
    tokens: Vec<Token>,
    /// The last predicate, for messages.
    last_predicate: Option<&'a CStr>,
    /// The first word after which a global option deserves a warning.
    first_positional: Option<&'a CStr>,
}

/// Parses a command line without the program's name.
pub(super) fn parse(
    args: &[CString],
    warnings: Warnings,
    env: &mut dyn Environment,
) -> Result<CommandLine, Refusal> {
    let words = Words::new(args, warnings, env);
    let mut parser = Parser { words, tokens: Vec::new(), last_predicate: None, first_positional: None };
    parser.leading_options()?;
    parser.operands();
    parser.expression()?;
    parser.finish()
}

impl<'a> Parser<'a> {
    fn leading_options(&mut self) -> Result<(), Refusal> {
        while let Some(word) = self.words.peek() {
            match word.to_bytes() {
                b"-H" => self.words.options.follow = FollowPolicy::Operands,
                b"-L" => self.words.options.follow = FollowPolicy::Always,
                b"-P" => self.words.options.follow = FollowPolicy::Never,
                b"--" => {
                    self.words.skip();
                    break;
                }
                b"-D" => {
                    self.words.skip();
                    let Some(flags) = self.words.peek() else {
                        return Err(Refusal::Usage(b"Missing argument after the -D option.".to_vec()));
                    };
                    self.debug_flags(flags)?;
                }
                [b'-', b'O', level @ ..] => check_optimisation(level)?,
                bytes if primaries::is_leading(bytes) => {
                    self.words.skip();
                    self.leading_long_option(word)?;
                    continue;
                }
                _ => break,
            }
            self.words.skip();
        }
        Ok(())
    }

    fn leading_long_option(&mut self, word: &'a CStr) -> Result<(), Refusal> {
        match primaries::find(word.to_bytes()) {
            Some(primary) => (primary.parse)(&mut self.words, word).map(drop),
            None => Ok(()),
        }
    }

    fn debug_flags(&mut self, flags: &CStr) -> Result<(), Refusal> {
        const KNOWN: [&[u8]; 9] =
            [b"exec", b"opt", b"rates", b"search", b"stat", b"time", b"tree", b"all", b"fts"];
        for flag in flags.to_bytes().split(|&b| b == b',') {
            if flag == b"help" {
                return Err(Refusal::DebugHelp);
            }
            if !KNOWN.contains(&flag) {
                let quoted = self.words.env.quote(flag);
                self.words.env.complain(
                    Severity::Remark,
                    &[b"Ignoring unrecognised debug flag ", &quoted[..]].concat(),
                );
            }
        }
        Ok(())
    }

    fn operands(&mut self) {
        while let Some(word) = self.words.peek().filter(|word| !starts_expression(word.to_bytes())) {
            self.words.options.operands.push(word.to_owned());
            self.words.skip();
        }
    }

    fn expression(&mut self) -> Result<(), Refusal> {
        while let Some(word) = self.words.next() {
            self.word(word)?;
        }
        Ok(())
    }

    fn word(&mut self, word: &'a CStr) -> Result<(), Refusal> {
        let (operator, is_deprecated) = match word.to_bytes() {
            [b'-', operator @ (b'(' | b')' | b'!' | b',')] => (std::slice::from_ref(operator), true),
            word => (word, false),
        };
        if is_deprecated {
            let message = [
                b"operator '",
                word.to_bytes(),
                b"' (with leading dash '-') will no longer be accepted in future findutils releases!",
            ];
            self.words.env.complain(Severity::Warning, &message.concat());
        }
        if let Some(kind) = TokenKind::of_operator(operator) {
            self.first_positional.get_or_insert(word);
            self.last_predicate = Some(word);
            self.tokens.push(Token { kind, name: word.to_owned() });
            return Ok(());
        }
        let Some(primary) = primaries::find(word.to_bytes()) else { return Err(self.unknown(word)) };
        self.note_position(primary, word);
        let expr = (primary.parse)(&mut self.words, word)?;
        self.last_predicate = Some(word);
        // One replaces the operands, the other is already applied; neither belongs to the expression.
        if word == c"-files0-from" || word == c"-daystart" {
            return Ok(());
        }
        self.tokens.push(Token { kind: TokenKind::Primary(expr), name: word.to_owned() });
        Ok(())
    }

    /// Warns about global options placed after the tests they apply to.
    fn note_position(&mut self, primary: &Primary, word: &'a CStr) {
        match (primary.class, self.first_positional) {
            (Class::GlobalOption, Some(first)) => {
                let (option, first) = (word.to_bytes(), first.to_bytes());
                self.words.warn(&[
                    b"you have specified the global option ",
                    option,
                    b" after the argument ",
                    first,
                    b", but global options are not positional, i.e., ",
                    option,
                    b" affects tests specified before it as well as those specified after it.  Please specify global options before other arguments.",
                ]);
            }
            (Class::Test | Class::Action, None) => self.first_positional = Some(word),
            _ => {}
        }
    }

    fn unknown(&self, word: &CStr) -> Refusal {
        if word.to_bytes().starts_with(b"-") && word.to_bytes() != b"-" {
            return Refusal::mistake(&[b"unknown predicate `", word.to_bytes(), b"'"]);
        }
        let mut lines = vec![[b"paths must precede expression: `", word.to_bytes(), b"'"].concat()];
        let exists = || self.words.env.metadata(word, SymlinkBehavior::Follow).is_ok();
        if let Some(last) = self.last_predicate.filter(|_| exists()) {
            let last = last.to_bytes();
            lines.push([b"possible unquoted pattern after predicate `", last, b"'?"].concat());
        }
        Refusal::Mistake(lines)
    }

    fn finish(mut self) -> Result<CommandLine, Refusal> {
        let expression = build_tree(std::mem::take(&mut self.tokens), self.last_predicate)?;
        let facts = Facts::of(&expression);
        if facts.deletes && facts.prunes && !self.words.depth_asked {
            return Err(Refusal::mistake(&[
                b"The -delete action automatically turns on -depth, but -prune does nothing when -depth is in effect.  If you want to carry on anyway, just explicitly use the -depth option.",
            ]));
        }
        self.read_operands(&facts)?;
        let expression = if expression.acts() { expression } else { self.with_default_action(expression) };
        Ok(CommandLine {
            options: self.words.options,
            expression,
            output: self.words.output,
            threads: self.words.threads,
            verbosity: self.words.verbosity,
        })
    }

    fn with_default_action(&self, expression: Expr) -> Expr {
        let action = match self.words.output {
            DefaultOutput::Path => Action::Print { stream: StreamId::STDOUT, terminator: b'\n' },
            DefaultOutput::Record => Action::Record,
        };
        Expr::And(vec![expression, Expr::Action(action)])
    }

    fn read_operands(&mut self, facts: &Facts) -> Result<(), Refusal> {
        let Some(file) = self.words.files_from.take() else {
            if self.words.options.operands.is_empty() {
                self.words.options.operands.push(c".".to_owned());
            }
            return Ok(());
        };
        if let Some(operand) = self.words.options.operands.first() {
            return Err(Refusal::Mistake(vec![
                [b"extra operand ", &self.words.quote(operand)[..]].concat(),
                b"file operands cannot be combined with -files0-from".to_vec(),
            ]));
        }
        if facts.asks && file.as_bytes() == b"-" {
            return Err(Refusal::mistake(&[
                b"when -ok or -okdir is in use, the option -files0-from cannot also read from standard input",
            ]));
        }
        if facts.asks && self.is_standard_input(&file) {
            return Err(Refusal::mistake(&[
                b"when -ok or -okdir is in use, the option -files0-from cannot also read from standard input, but the file (",
                &self.words.quote(&file),
                b") used for -files0-from appears to refer to the same file as the standard input",
            ]));
        }
        let shown = if file.as_bytes() == b"-" {
            self.words.quote(c"(standard input)")
        } else {
            self.words.quote(&file)
        };
        match self.words.env.read_operands(&file) {
            Ok(text) => self.take_operands(&shown, &text),
            Err(UnreadableList::Open(errno)) => {
                let reason = errno_text(errno);
                return Err(Refusal::mistake(&[
                    b"cannot open ",
                    &shown,
                    b" for reading: ",
                    reason.as_bytes(),
                ]));
            }
            Err(UnreadableList::Read(errno)) => {
                let reason = errno_text(errno);
                self.words
                    .env
                    .complain(Severity::Error, &[&shown[..], b": read error: ", reason.as_bytes()].concat());
            }
        }
        Ok(())
    }

    fn is_standard_input(&self, file: &CStr) -> bool {
        let file = self.words.env.metadata(file, SymlinkBehavior::Follow);
        file.is_ok_and(|file| self.words.env.standard_input() == Some(file.identity()))
    }

    fn take_operands(&mut self, shown: &[u8], text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        for (index, name) in text.split(|&b| b == 0).enumerate() {
            match CString::new(name) {
                Ok(name) if !name.is_empty() => self.words.options.operands.push(name),
                _ => {
                    let line = (index + 1).to_string();
                    let message = [shown, b":", line.as_bytes(), b": invalid zero-length file name"];
                    self.words.env.complain(Severity::Error, &message.concat());
                }
            }
        }
    }
}

/// The properties of the expression that the rules of the command line depend on.
#[derive(Default)]
struct Facts {
    deletes: bool,
    prunes: bool,
    asks: bool,
}

impl Facts {
    fn of(expression: &Expr) -> Self {
        let mut facts = Facts { asks: expression.asks(), ..Facts::default() };
        expression.for_each_leaf(&mut |leaf| {
            if let Leaf::Action(action) = leaf {
                match action {
                    Action::Prune => facts.prunes = true,
                    Action::Delete => facts.deletes = true,
                    _ => {}
                }
            }
        });
        facts
    }
}

/// Whether a word ends the operands.
fn starts_expression(word: &[u8]) -> bool {
    matches!(word, [b'-', _, ..] | b"(" | b"!")
}

fn check_optimisation(level: &[u8]) -> Result<(), Refusal> {
    if level.is_empty() {
        return Err(Refusal::mistake(&[b"The -O option must be immediately followed by a decimal integer"]));
    }
    if !level[0].is_ascii_digit() {
        return Err(Refusal::mistake(&[b"Please specify a decimal number immediately after -O"]));
    }
    match super::arguments::decimal(level) {
        Some(level) if level <= u64::from(u16::MAX) => Ok(()),
        Some(_) => Err(Refusal::mistake(&[
            b"Optimisation level ",
            level,
            b" is too high.  If you want to find files very quickly, consider using GNU locate.",
        ])),
        None => Err(Refusal::mistake(&[b"Invalid optimisation level ", level])),
    }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Nothing;
    use super::*;

    fn parsed(words: &[&str]) -> CommandLine {
        let args: Vec<_> = words.iter().map(|word| CString::new(*word).expect("no NUL")).collect();
        parse(&args, Warnings::Off, &mut Nothing::default()).expect("valid")
    }

    fn operands(words: &[&str]) -> Vec<String> {
        let names = parsed(words).options.operands;
        names.into_iter().map(|name| name.into_string().expect("text")).collect()
    }

    #[test]
    fn operands_end_where_the_expression_begins() {
        for (words, expected) in [
            (&[][..], &["."][..]),
            (&["-type", "f"], &["."]),
            (&["a", "b", "-print"], &["a", "b"]),
            (&["-L", "a"], &["a"]),
            (&["--", "a"], &["a"]),
            (&["-"], &["-"]),
            (&[")", ","], &[")", ","]),
            (&["a", "(", "-true", ")"], &["a"]),
            (&["a", "!", "-true"], &["a"]),
            (&["--json", "a"], &["a"]),
            (&["--threads", "3", "a", "--verbose"], &["a"]),
            (&["-files0-from", "list"], &["a", "b"]),
        ] {
            assert_eq!(operands(words), expected, "{words:?}");
        }
    }

    #[test]
    fn our_own_options_stand_anywhere() {
        let command = parsed(&["a", "-type", "f", "--threads=5", "--json", "--verbose"]);
        assert_eq!(command.threads, Threads::Fixed(5));
        assert_eq!(command.output, DefaultOutput::Record);
        assert_eq!(command.verbosity, Verbosity::Statistics);
        assert_eq!(parsed(&["--threads", "0", "a"]).threads, Threads::default());
    }

    #[test]
    fn the_last_of_the_link_options_counts() {
        for (words, follow) in [
            (&["-H", "-L", "-P"][..], FollowPolicy::Never),
            (&["-P", "-H"], FollowPolicy::Operands),
            (&["-L"], FollowPolicy::Always),
            (&["-P", "a", "-follow"], FollowPolicy::Always),
        ] {
            assert_eq!(parsed(words).options.follow, follow);
        }
    }

    #[test]
    fn paths_are_printed_unless_the_expression_acts() {
        for (words, prints) in [
            (&["-type", "f"][..], true),
            (&["-name", "a", "-prune"], true),
            (&["-print0"], false),
            (&["-name", "a", "-quit"], true),
            (&["-exec", "true", ";"], false),
            (&["-delete"], false),
        ] {
            let mut found = false;
            parsed(words).expression.for_each_leaf(&mut |leaf| {
                found |= matches!(leaf, Leaf::Action(Action::Print { terminator: b'\n', .. }));
            });
            assert_eq!(found, prints, "{words:?}");
        }
    }
}
