//! Parsing of tests of a file's times.

use std::ffi::CStr;

use millstream_vfs::Timestamp;

use super::super::arguments::{self, AgeUnit};
use super::super::expression::{Expr, Test};
use super::super::moment::{TimeField, Window, nanoseconds};
use super::super::refusal::Refusal;
use super::super::words::{Parsed, Words, invalid, test};

pub(super) fn age(p: &mut Words<'_>, name: &CStr, which: TimeField, unit: AgeUnit) -> Parsed {
    let argument = p.argument(name)?;
    let window = arguments::age(argument.to_bytes(), unit, p.age_origin);
    window
        .map(|window| Expr::Test(Test::Time { which, window }))
        .ok_or_else(|| not_a_number(argument).unwrap_or_else(|| invalid(argument, name)))
}

pub(super) fn newer(p: &mut Words<'_>, name: &CStr, which: TimeField, of_reference: TimeField) -> Parsed {
    let reference = p.argument(name)?;
    let metadata = p.argument_metadata(reference)?;
    later_than(which, of_reference.of(&metadata))
}

fn later_than(which: TimeField, moment: Timestamp) -> Parsed {
    test(Test::Time { which, window: Window::later_than(nanoseconds(moment)) })
}

pub(super) fn newer_xy(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let refused = || Refusal::mistake(&[b"invalid predicate `", name.to_bytes(), b"'"]);
    let field = |letter| match letter {
        b'a' => Some(TimeField::Access),
        b'B' => Some(TimeField::Birth),
        b'c' => Some(TimeField::Change),
        b'm' => Some(TimeField::Modification),
        _ => None,
    };
    let [x, y] = name.to_bytes()["-newer".len()..] else { return Err(refused()) };
    let which = field(x).ok_or_else(refused)?;
    if y != b't' && field(y).is_none() {
        return Err(refused());
    }
    let Some(reference) = p.next() else {
        return Err(Refusal::mistake(&[
            b"The ",
            &p.quote(name),
            b" test needs to be followed by an argument",
        ]));
    };
    match field(y) {
        Some(y) => {
            let metadata = p.argument_metadata(reference)?;
            later_than(which, y.of(&metadata))
        }
        None => match p.env.parse_date(reference) {
            Some(moment) => later_than(which, moment),
            None => Err(Refusal::mistake(&[
                b"I cannot figure out how to interpret ",
                &p.quote(reference),
                b" as a date or time",
            ])),
        },
    }
}

pub(super) fn used(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let argument = p.argument(name)?;
    arguments::span_of_days(argument.to_bytes()).map(|window| Expr::Test(Test::Used(window))).ok_or_else(
        || {
            not_a_number(argument).unwrap_or_else(|| {
                Refusal::mistake(&[b"Invalid argument ", argument.to_bytes(), b" to -used"])
            })
        },
    )
}

/// The refusal of an argument that the C library parses as not a number.
fn not_a_number(argument: &CStr) -> Option<Refusal> {
    let (_, digits) = arguments::comparison(argument.to_bytes());
    let refusal = || Refusal::mistake(&[b"invalid not-a-number argument: `", digits, b"'"]);
    arguments::is_nan(digits).then(refusal)
}
