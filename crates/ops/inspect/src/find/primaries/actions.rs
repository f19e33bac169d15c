//! Parsing of actions.

use std::ffi::CStr;

use super::super::environment::Severity;
use super::super::exec::{Exec, ExecMode, ExecPlace};
use super::super::expression::{Action, Expr, StreamId, VisitOrder};
use super::super::format::{Format, FormatError};
use super::super::refusal::Refusal;
use super::super::words::{Parsed, Words, invalid};

fn action(action: Action) -> Parsed {
    Ok(Expr::Action(action))
}

pub(super) fn print(_: &mut Words<'_>, _: &CStr) -> Parsed {
    action(Action::Print { stream: StreamId::STDOUT, terminator: b'\n' })
}

pub(super) fn print0(_: &mut Words<'_>, _: &CStr) -> Parsed {
    action(Action::Print { stream: StreamId::STDOUT, terminator: 0 })
}

pub(super) fn ls(p: &mut Words<'_>, _: &CStr) -> Parsed {
    list(p, StreamId::STDOUT)
}

pub(super) fn prune(_: &mut Words<'_>, _: &CStr) -> Parsed {
    action(Action::Prune)
}

pub(super) fn quit(_: &mut Words<'_>, _: &CStr) -> Parsed {
    action(Action::Quit)
}

pub(super) fn delete(p: &mut Words<'_>, _: &CStr) -> Parsed {
    p.options.visits = VisitOrder::PostOrder;
    action(Action::Delete)
}

pub(super) fn fprint(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let stream = open(p, name)?;
    action(Action::Print { stream, terminator: b'\n' })
}

pub(super) fn fprint0(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let stream = open(p, name)?;
    action(Action::Print { stream, terminator: 0 })
}

pub(super) fn fls(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let stream = open(p, name)?;
    list(p, stream)
}

fn list(p: &Words<'_>, stream: StreamId) -> Parsed {
    action(Action::List { stream, unit_blocks: if p.env.is_posixly_correct() { 1 } else { 2 } })
}

pub(super) fn printf(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let text = p.argument(name)?;
    let format = compile(p, text)?;
    action(Action::Printf { stream: StreamId::STDOUT, format })
}

pub(super) fn fprintf(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let path = p.argument(name)?;
    let stream = p.env.open_output(path).map_err(|errno| p.file_error(path, errno))?;
    let text = p.next().ok_or_else(|| invalid(path, name))?;
    let format = compile(p, text)?;
    action(Action::Printf { stream, format })
}

fn open(p: &mut Words<'_>, name: &CStr) -> Result<StreamId, Refusal> {
    let path = p.argument(name)?;
    p.env.open_output(path).map_err(|errno| p.file_error(path, errno))
}

fn compile(p: &mut Words<'_>, text: &CStr) -> Result<Format, Refusal> {
    let env = &mut *p.env;
    Format::compile(text.to_bytes(), &mut |warning| env.complain(Severity::Warning, warning)).map_err(
        |error| match error {
            FormatError::PercentAtEnd => Refusal::mistake(&[b"error: % at end of format string"]),
            FormatError::Reserved(letter) => Refusal::mistake(&[
                b"error: the format directive `%",
                &[letter],
                b"' is reserved for future use",
            ]),
        },
    )
}

pub(super) fn exec(p: &mut Words<'_>, name: &CStr) -> Parsed {
    command(p, name, ExecPlace::Start, ExecMode::Each)
}

pub(super) fn execdir(p: &mut Words<'_>, name: &CStr) -> Parsed {
    command(p, name, ExecPlace::DirectoryOfFile, ExecMode::Each)
}

pub(super) fn ok(p: &mut Words<'_>, name: &CStr) -> Parsed {
    command(p, name, ExecPlace::Start, ExecMode::Ask)
}

pub(super) fn okdir(p: &mut Words<'_>, name: &CStr) -> Parsed {
    command(p, name, ExecPlace::DirectoryOfFile, ExecMode::Ask)
}

fn command(p: &mut Words<'_>, name: &CStr, place: ExecPlace, mode: ExecMode) -> Parsed {
    let (mut words, mode) = command_words(p, name, mode)?;
    if place == ExecPlace::DirectoryOfFile {
        check_search_path(p, name)?;
    }
    if mode == ExecMode::Batch {
        words.pop();
    }
    let index = p.commands;
    p.commands += 1;
    action(Action::Exec(Exec { index, words, place, mode }))
}

/// The words up to the `;` or `+` that ends the command.
fn command_words(
    p: &mut Words<'_>,
    name: &CStr,
    mode: ExecMode,
) -> Result<(Vec<Vec<u8>>, ExecMode), Refusal> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    loop {
        let word = p.argument(name)?;
        match word.to_bytes() {
            b";" if words.is_empty() => return Err(invalid(word, name)),
            b";" => return Ok((words, mode)),
            b"+" if mode == ExecMode::Each && words.last().is_some_and(|last| last == b"{}") => {
                check_batch(name, &words)?;
                return Ok((words, ExecMode::Batch));
            }
            word => words.push(word.to_vec()),
        }
    }
}

fn has_braces(word: &[u8]) -> bool {
    word.windows(2).any(|pair| pair == b"{}")
}

fn check_batch(name: &CStr, words: &[Vec<u8>]) -> Result<(), Refusal> {
    if words.iter().filter(|word| has_braces(word)).count() > 1 {
        let name = name.to_bytes();
        return Err(Refusal::mistake(&[b"Only one instance of {} is supported with ", name, b" ... +"]));
    }
    Ok(())
}

/// Refuses a search path through which a file of the traversed tree might be run.
fn check_search_path(p: &Words<'_>, name: &CStr) -> Result<(), Refusal> {
    let Some(path) = p.env.search_path() else { return Ok(()) };
    for entry in path.split(|&b| b == b':') {
        match entry {
            b"" | b"." => {
                return Err(Refusal::mistake(&[
                    b"The current directory is included in the PATH environment variable, which is insecure in combination with the ",
                    name.to_bytes(),
                    b" action of find.  Please remove the current directory from your $PATH (that is, remove \".\", doubled colons, or leading or trailing colons)",
                ]));
            }
            [b'/', ..] => {}
            relative => {
                return Err(Refusal::mistake(&[
                    b"The relative path ",
                    &p.env.quote(relative),
                    b" is included in the PATH environment variable, which is insecure in combination with the ",
                    name.to_bytes(),
                    b" action of find.  Please remove that entry from $PATH",
                ]));
            }
        }
    }
    Ok(())
}
