//! Parsing of tests of a file's type, size, owner and permissions.

use std::ffi::CStr;

use super::super::arguments::{self, KindsError, SizeError};
use super::super::environment::Severity;
use super::super::expression::{Comparison, KindSet, Number, Test};
use super::super::mode::{ModeRelation, ModeTest};
use super::super::refusal::Refusal;
use super::super::words::{Parsed, Words, test};

pub(super) fn number(p: &mut Words<'_>, name: &CStr) -> Result<Number, Refusal> {
    let argument = p.argument(name)?;
    arguments::number(argument.to_bytes()).ok_or_else(|| {
        Refusal::mistake(&[b"non-numeric argument to ", name.to_bytes(), b": ", &p.quote(argument)])
    })
}

pub(super) fn group(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let group = p.argument(name)?;
    match p.env.group_id(group).or_else(|| arguments::account(group.to_bytes())) {
        Some(id) => test(Test::Gid(Number { comparison: Comparison::Equal, value: id.into() })),
        None => Err(Refusal::mistake(&[b"invalid group name or GID argument to -group: ", &p.quote(group)])),
    }
}

pub(super) fn user(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let user = p.argument(name)?;
    match p.env.user_id(user).or_else(|| arguments::account(user.to_bytes())) {
        Some(id) => test(Test::Uid(Number { comparison: Comparison::Equal, value: id.into() })),
        None => Err(Refusal::mistake(&[b"invalid user name or UID argument to -user: ", &p.quote(user)])),
    }
}

pub(super) fn permissions(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let argument = p.argument(name)?;
    let Some(mode) = ModeTest::parse(argument.to_bytes()) else {
        return Err(Refusal::mistake(&[b"invalid file mode ", &p.quote(argument)]));
    };
    if mode.relation == ModeRelation::Any && mode.file == 0 && mode.directory == 0 {
        let message = [
            b"you have specified a mode pattern ",
            argument.to_bytes(),
            b" (which is equivalent to /000). The meaning of -perm /000 was changed in 2007 to be consistent with -perm -000; that is, while it used to match no files, it now matches all files. This warning message will be removed in a future findutils release.",
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
