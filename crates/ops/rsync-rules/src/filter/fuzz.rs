//! Entry point of the fuzzer: rules and paths of arbitrary bytes.

use std::io;

use super::*;
use crate::Separator;

/// Parses rules and asks about paths, each ended by a NUL; paths begin after the first empty one. The rules
/// decide as they would if they were tried one after the other, and their texts are those of the same filter.
pub fn filter(bytes: &[u8]) {
    let mut parts = bytes.split(|&byte| byte == 0);
    let mut filter = Filter::default();
    let mut read = |file: &std::ffi::OsStr| match file.as_encoded_bytes() {
        b"-" => Err(io::ErrorKind::NotFound.into()),
        name => Ok(name.iter().map(|&byte| if byte == b'|' { b'\n' } else { byte }).collect()),
    };
    for rule in parts.by_ref().take_while(|rule| !rule.is_empty()) {
        if filter.add_rule(rule, Separator::Line, &mut read).is_err() {
            drop(filter.add_pattern(rule, Effect::Exclude));
        }
    }
    let mut again = Filter::default();
    for rule in filter.rules() {
        again.add_rule(&rule, Separator::Line, &mut read).expect("the text of a rule");
    }
    assert_eq!(again, filter);
    for path in parts.filter(|path| !path.is_empty()) {
        for (is_directory, is_in_deleted) in [(false, false), (true, false), (false, true)] {
            let subject = Subject { path, root: b"a/b", is_directory, is_in_deleted };
            for side in [Side::Sender, Side::Receiver] {
                assert_eq!(filter.deciding(side, &subject), filter.one_by_one(side, &subject));
            }
        }
    }
}

impl Filter {
    /// The rule that decides, found without the index of literal rules.
    pub(super) fn one_by_one(&self, side: Side, subject: &Subject<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            let root: &[u8] = if rule.is_absolute { subject.root } else { b"" };
            rule.conditions.hold(side, self.unsided, subject)
                && rule.matches(&Text::new(&[root, subject.path], subject.is_directory))
        })
    }
}
