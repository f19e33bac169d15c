//! Parsing of tests of a file's type, size, owner and permissions.

use std::ffi::CStr;

use super::super::arguments::{self, KindsError, SizeError};
use super::super::environment::Severity;
use super::super::expression::{Comparison, KindSet, Number, Test};
use super::super::mode::{ModeRelation, ModeTest};
use super::super::refusal::Refusal;
use super::super::words::{Parsed, Words, invalid, test};

pub(super) fn number(p: &mut Words<'_>, name: &CStr) -> Result<Number, Refusal> {
    let argument = p.next().ok_or_else(|| invalid(name, name))?;
    arguments::number(argument.to_bytes()).ok_or_else(|| invalid(argument, name))
}

pub(super) fn group(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let group = p.argument(name)?;
    if group.is_empty() {
        return Err(Refusal::mistake(&[b"argument to -group is empty, but should be a group name"]));
    }
    let id = p.env.group_id(group).map(u64::from).or_else(|| arguments::decimal(group.to_bytes()));
    match id {
        Some(value) => test(Test::Gid(Number { comparison: Comparison::Equal, value })),
        None => Err(Refusal::mistake(&[&p.quote(group), b" is not the name of an existing group"])),
    }
}

pub(super) fn user(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let user = p.argument(name)?;
    if user.is_empty() {
        return Err(Refusal::mistake(&[b"The argument to -user should not be empty"]));
    }
    let id = p.env.user_id(user).map(u64::from).or_else(|| arguments::decimal(user.to_bytes()));
    match id {
        Some(value) => test(Test::Uid(Number { comparison: Comparison::Equal, value })),
        None => Err(Refusal::mistake(&[&p.quote(user), b" is not the name of a known user"])),
    }
}

pub(super) fn permissions(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let argument = p.argument(name)?;
    let Some(mode) = ModeTest::parse(argument.to_bytes()) else {
        return Err(Refusal::mistake(&[b"invalid mode ", &p.quote(argument)]));
    };
    if mode.relation == ModeRelation::Any && mode.file == 0 && mode.directory == 0 {
        let message = [
            b"you have specified a mode pattern ",
            argument.to_bytes(),
            b" (which is equivalent to /000). The meaning of -perm /000 has now been changed to be consistent with -perm -000; that is, while it used to match no files, it now matches all files.",
        ];
        p.env.complain(Severity::Warning, &message.concat());
    }
    test(Test::Mode(mode))
}

pub(super) fn same_file(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let file = p.argument(name)?;
    let metadata = p.argument_metadata(file)?;
    test(Test::SameFile { dev: metadata.dev, ino: metadata.ino })
}

pub(super) fn size(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let argument = p.argument(name)?;
    match arguments::size(argument.to_bytes()) {
        Ok((number, unit_bytes)) => test(Test::Size { number, unit_bytes }),
        Err(SizeError::Empty) => Err(Refusal::mistake(&[b"invalid null argument to -size"])),
        Err(SizeError::Unit) => Err(Refusal::mistake(&[
            b"invalid -size type `",
            &argument.to_bytes()[argument.count_bytes() - 1..],
            b"'",
        ])),
        Err(SizeError::Digits) => {
            Err(Refusal::mistake(&[b"Invalid argument `", argument.to_bytes(), b"' to -size"]))
        }
    }
}

pub(super) fn kinds(p: &mut Words<'_>, name: &CStr) -> Result<KindSet, Refusal> {
    let argument = p.argument(name)?;
    let name = name.to_bytes();
    arguments::kinds(argument.to_bytes()).map_err(|error| match error {
        KindsError::Empty => {
            Refusal::mistake(&[b"Arguments to ", name, b" should contain at least one letter"])
        }
        KindsError::Unknown(letter) => Refusal::mistake(&[b"Unknown argument to ", name, b": ", &[letter]]),
        KindsError::Door => Refusal::mistake(&[
            name,
            b" D is not supported because Solaris doors are not supported on the platform find was compiled on.",
        ]),
        KindsError::Separator => {
            Refusal::mistake(&[b"Must separate multiple arguments to ", name, b" using: ','"])
        }
        KindsError::Trailing => Refusal::mistake(&[
            b"Last file type in list argument to ",
            name,
            b" is missing, i.e., list is ending on: ','",
        ]),
        KindsError::Duplicate(letter) => Refusal::mistake(&[
            b"Duplicate file type '",
            &[letter],
            b"' in the argument list to ",
            name,
            b".",
        ]),
    })
}
