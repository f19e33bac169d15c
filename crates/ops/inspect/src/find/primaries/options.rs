//! Parsing of options.

use std::ffi::CStr;

use millstream_system::pattern::RegexSyntax;
use millstream_walk::Threads;

use super::super::arguments;
use super::super::expression::VisitOrder;
use super::super::refusal::Refusal;
use super::super::words::{Parsed, Words, truth};

pub(super) fn post_order(p: &mut Words<'_>) -> Parsed {
    p.depth_asked = true;
    p.options.visits = VisitOrder::PostOrder;
    truth()
}

pub(super) fn depth(p: &mut Words<'_>, name: &CStr) -> Result<u32, Refusal> {
    let argument = p.argument(name)?;
    let levels = arguments::decimal(argument.to_bytes()).ok_or_else(|| {
        let quoted = p.quote(argument);
        Refusal::mistake(&[
            b"Expected a positive decimal integer argument to ",
            name.to_bytes(),
            b", but got ",
            &quoted,
        ])
    })?;
    Ok(u32::try_from(levels).unwrap_or(u32::MAX))
}

pub(super) fn threads(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let argument = match name.to_bytes().strip_prefix(b"--threads=") {
        Some(value) => value,
        None => p.argument(name)?.to_bytes(),
    };
    p.threads = match arguments::decimal(argument).and_then(|n| usize::try_from(n).ok()) {
        Some(0) => Threads::default(),
        Some(n) => Threads::Fixed(n),
        None => return Err(Refusal::mistake(&[b"invalid number of threads: ", &p.env.quote(argument)])),
    };
    truth()
}

/// The dialects of `-regextype`.
const DIALECTS: [(&str, RegexSyntax); 13] = [
    ("findutils-default", RegexSyntax::FINDUTILS_DEFAULT),
    ("awk", RegexSyntax::AWK),
    ("ed", RegexSyntax::POSIX_BASIC),
    ("egrep", RegexSyntax::EGREP),
    ("emacs", RegexSyntax::EMACS),
    ("gnu-awk", RegexSyntax::GNU_AWK),
    ("grep", RegexSyntax::GREP),
    ("posix-awk", RegexSyntax::POSIX_AWK),
    ("posix-basic", RegexSyntax::POSIX_BASIC),
    ("posix-egrep", RegexSyntax::EGREP),
    ("posix-extended", RegexSyntax::POSIX_EXTENDED),
    ("posix-minimal-basic", RegexSyntax::POSIX_MINIMAL_BASIC),
    ("sed", RegexSyntax::POSIX_BASIC),
];

pub(super) fn regextype(p: &mut Words<'_>, name: &CStr) -> Parsed {
    let wanted = p.argument(name)?;
    if let Some((_, syntax)) = DIALECTS.iter().find(|(name, _)| name.as_bytes() == wanted.to_bytes()) {
        p.regex_syntax = *syntax;
        return truth();
    }
    let names: Vec<_> = DIALECTS.iter().map(|(name, _)| p.env.quote(name.as_bytes())).collect();
    Err(Refusal::mistake(&[
        b"Unknown regular expression type ",
        &p.quote(wanted),
        b"; valid types are ",
        &names.join(&b", "[..]),
        b".",
    ]))
}
