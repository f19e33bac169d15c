//! Parsing of tests of a file's name, its path and the target of a link.

use std::ffi::{CStr, CString};

use millstream_system::pattern::CaseSensitivity;

use super::super::environment::Severity;
use super::super::expression::Test;
use super::super::glob::Glob;
use super::super::refusal::Refusal;
use super::super::words::{Parsed, Words, test};

pub(super) fn base_name(p: &mut Words<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern = p.argument(name)?;
    // The name of the root directory is a slash.
    if pattern != c"/" && pattern.to_bytes().contains(&b'/') {
        let instead: &CStr = if case == CaseSensitivity::Sensitive { c"-wholename" } else { c"-iwholename" };
        let (this, slash, instead) = (p.quote(name), p.quote(c"/"), p.quote(instead));
        p.warn(&[
            &this,
            b" matches against basenames only, but the given pattern contains a directory separator (",
            &slash,
            b"), thus the expression will evaluate to false all the time.  Did you mean ",
            &instead,
            b"?",
        ]);
    }
    test(Test::Name(Glob::new(pattern.to_owned(), case)))
}

pub(super) fn whole_path(p: &mut Words<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern = p.argument(name)?;
    let bytes = pattern.to_bytes();
    if bytes.len() > 1 && bytes.ends_with(b"/") {
        let message = [name.to_bytes(), b" ", bytes, b" will not match anything because it ends with /."];
        p.env.complain(Severity::Warning, &message.concat());
    }
    test(Test::Path(Glob::new(pattern.to_owned(), case)))
}

pub(super) fn link_target(p: &mut Words<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern: CString = p.argument(name)?.to_owned();
    test(Test::LinkTarget(Glob::new(pattern, case)))
}

pub(super) fn regex(p: &mut Words<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern = p.argument(name)?;
    match p.env.regex(pattern, p.regex_syntax, case) {
        Ok(Some(regex)) => test(Test::Regex(regex)),
        Ok(None) => test(Test::False),
        Err(reason) => Err(Refusal::mistake(&[
            b"failed to compile regular expression '",
            pattern.to_bytes(),
            b"': ",
            &reason,
        ])),
    }
}
