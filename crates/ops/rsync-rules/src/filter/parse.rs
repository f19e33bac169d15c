//! The text of rules: of options, and of files whose entries are rules or patterns.
//!
//! A rule is its kind, modifiers, and after a space or an underscore a pattern or the name of a file to
//! merge. The rules of a merged file begin with some of the modifiers of the rule that merges it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::pattern::Pattern;
use super::{Conditions, Effect, Filter, Rule, Side, Sides};
use crate::entries::{Separator, entries, printable};

/// Reads a file of rules or patterns; `-` is standard input.
pub type ReadFile<'a> = dyn FnMut(&OsStr) -> io::Result<Vec<u8>> + 'a;

/// The depth to which files may merge others, as in rsync.
const MOST_FILES_DEEP: usize = 32;

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter rule '{}'{}: {cause}", printable(rule), origin(file.as_deref()))]
pub struct BadRule {
    /// Its text.
    pub rule: Vec<u8>,
    /// The file that it is in, unless it is of an option.
    pub file: Option<OsString>,
    /// The mistake, or the unsupported feature and its replacement.
    pub cause: String,
    /// Whether a file that it names cannot be read.
    pub lacks_file: bool,
}

fn origin(file: Option<&OsStr>) -> String {
    file.map_or_else(String::new, |file| format!(" in {}", printable(file.as_bytes())))
}

const NO_PATTERN: &str = "it has no pattern";
const TWO_SIDES: &str = "it names a side, as does the rule that merges its file; only one of them may";
const NO_RULES_IN_DIRECTORIES: &str = "rule files in the source tree (dir-merge) are not supported; give \
                                       the rules themselves, or merge a single file with '. FILE'";
const NO_EXTENDED_ATTRIBUTES: &str =
    "rules for extended attribute names (x) are not supported; leave the rule out";
const NO_CVS: &str =
    "CVS patterns (C) are not supported; write the patterns to a file, and merge it with '.-w FILE'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pattern(Effect, Sides),
    Merge,
    MergeInDirectories,
    Clear,
}

/// The kinds of rules by their short and their long names.
const KINDS: [(u8, &[u8], Kind); 9] = [
    (b'-', b"exclude", Kind::Pattern(Effect::Exclude, Sides::None)),
    (b'+', b"include", Kind::Pattern(Effect::Include, Sides::None)),
    (b'H', b"hide", Kind::Pattern(Effect::Exclude, Sides::Sender)),
    (b'S', b"show", Kind::Pattern(Effect::Include, Sides::Sender)),
    (b'P', b"protect", Kind::Pattern(Effect::Exclude, Sides::Receiver)),
    (b'R', b"risk", Kind::Pattern(Effect::Include, Sides::Receiver)),
    (b'.', b"merge", Kind::Merge),
    (b':', b"dir-merge", Kind::MergeInDirectories),
    (b'!', b"clear", Kind::Clear),
];

/// The entries of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Entries {
    #[default]
    Rules,
    Patterns(Effect),
}

/// What stands between the kind of a rule and its pattern or file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Modifiers {
    sides: Sides,
    is_negated: bool,
    is_absolute: bool,
    is_perishable: bool,
    entries: Entries,
    splits_words: bool,
    hides_file: bool,
}

/// A rule, split.
struct Split<'a> {
    kind: Kind,
    letters: &'a [u8],
    /// The pattern or file.
    argument: Option<&'a [u8]>,
}

impl Filter {
    /// Adds a rule, as of `--filter`; an empty one is none. `read` reads the files that it merges, whose
    /// entries end as `separator` says.
    ///
    /// # Errors
    /// If the rule is wrong or not supported, or a file cannot be read.
    pub fn add_rule(
        &mut self,
        rule: &[u8],
        separator: Separator,
        read: &mut ReadFile<'_>,
    ) -> Result<(), BadRule> {
        Parser { filter: self, separator, read, files: Vec::new() }.rule(rule, Modifiers::default())
    }

    /// Adds a pattern, as of `--include` and `--exclude`. `+ ` or `- ` at its beginning decides the effect;
    /// `!` alone removes all rules; an empty one is none.
    ///
    /// # Errors
    /// If nothing follows such a beginning.
    pub fn add_pattern(&mut self, pattern: &[u8], effect: Effect) -> Result<(), BadRule> {
        let (effect, text) = match pattern {
            b"!" => {
                self.clear();
                return Ok(());
            }
            [b'+', b' ', rest @ ..] => (Effect::Include, rest),
            [b'-', b' ', rest @ ..] => (Effect::Exclude, rest),
            [] => return Ok(()),
            _ => (effect, pattern),
        };
        if text.is_empty() {
            return Err(BadRule {
                rule: pattern.to_vec(),
                file: None,
                cause: NO_PATTERN.into(),
                lacks_file: false,
            });
        }
        self.add(effect, text, Modifiers::default());
        Ok(())
    }

    /// Adds the patterns of a file, as of `--include-from` and `--exclude-from`. Empty entries, and those
    /// that begin with `#` or `;`, are ignored.
    ///
    /// # Errors
    /// As [`Filter::add_pattern`].
    pub fn add_patterns(
        &mut self,
        content: &[u8],
        separator: Separator,
        effect: Effect,
    ) -> Result<(), BadRule> {
        entries(content, separator).try_for_each(|pattern| self.add_pattern(pattern, effect))
    }

    fn add(&mut self, effect: Effect, pattern: &[u8], modifiers: Modifiers) {
        let Modifiers { sides, is_negated, is_absolute, is_perishable, .. } = modifiers;
        let conditions = Conditions { sides, is_perishable };
        let written = pattern.into();
        let pattern = Pattern::parse(pattern);
        self.push(Rule { effect, pattern, conditions, is_absolute, is_negated, written });
    }
}

/// Adds rules to a filter.
struct Parser<'a, 'r> {
    filter: &'a mut Filter,
    separator: Separator,
    read: &'a mut ReadFile<'r>,
    /// The files that are being read, each merged by the one before.
    files: Vec<OsString>,
}

impl Parser<'_, '_> {
    fn rule(&mut self, text: &[u8], outer: Modifiers) -> Result<(), BadRule> {
        if text.is_empty() {
            return Ok(());
        }
        let split = Split::parse(text).map_err(|cause| self.bad(text, cause))?;
        let modifiers = split.modifiers(outer).map_err(|cause| self.bad(text, cause))?;
        match (split.kind, split.argument) {
            (Kind::Clear, _) => self.filter.clear(),
            (Kind::Pattern(effect, _), Some(pattern)) => self.filter.add(effect, pattern, modifiers),
            (Kind::Pattern(..), None) => return Err(self.bad(text, NO_PATTERN)),
            (_, Some(file)) => self.merge(text, OsStr::from_bytes(file), modifiers)?,
            (_, None) => return Err(self.bad(text, "it does not name a file")),
        }
        Ok(())
    }

    fn merge(&mut self, rule: &[u8], file: &OsStr, modifiers: Modifiers) -> Result<(), BadRule> {
        if self.files.len() == MOST_FILES_DEEP {
            return Err(
                self.bad(rule, format!("merged files are nested more than {MOST_FILES_DEEP} levels deep"))
            );
        }
        let content = (self.read)(file)
            .map_err(|error| BadRule { lacks_file: true, ..self.bad(rule, error.to_string()) })?;
        if modifiers.hides_file
            && let Some(name) = Path::new(file).file_name()
        {
            self.filter.add(Effect::Exclude, name.as_bytes(), Modifiers::default());
        }
        self.files.push(file.to_owned());
        let entries: Vec<&[u8]> = if modifiers.splits_words {
            words(&content, modifiers.entries)
        } else {
            entries(&content, self.separator).collect()
        };
        for entry in entries {
            match modifiers.entries {
                Entries::Patterns(effect) => self.filter.add(effect, entry, modifiers),
                Entries::Rules => self.rule(entry, modifiers)?,
            }
        }
        self.files.pop();
        Ok(())
    }

    fn bad(&self, rule: &[u8], cause: impl Into<String>) -> BadRule {
        BadRule {
            rule: rule.to_vec(),
            file: self.files.last().cloned(),
            cause: cause.into(),
            lacks_file: false,
        }
    }
}

impl<'a> Split<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, String> {
        let ends = |byte: &u8| matches!(byte, b' ' | b'_');
        let after_kind = |&(letter, name, kind): &(u8, &[u8], Kind)| {
            let long =
                text.strip_prefix(name).filter(|rest| rest.first().is_none_or(|b| *b == b',' || ends(b)));
            text.strip_prefix(&[letter]).or(long).map(|rest| (kind, rest))
        };
        let (kind, rest) = KINDS
            .iter()
            .find_map(after_kind)
            .ok_or("a rule begins with -, +, H, S, P, R, ., !, or one of their long names")?;
        if kind == Kind::Clear && !rest.is_empty() {
            return Err("nothing may follow ! or clear".into());
        }
        let rest = rest.strip_prefix(b",").unwrap_or(rest);
        let letters = rest.iter().position(ends).unwrap_or(rest.len());
        let argument = rest.get(letters + 1..).filter(|argument| !argument.is_empty());
        Ok(Split { kind, letters: &rest[..letters], argument })
    }

    /// The modifiers of the rule, where `outer` are those of the rule that merges its file.
    fn modifiers(&self, outer: Modifiers) -> Result<Modifiers, String> {
        let Modifiers { sides, is_absolute, is_perishable, .. } = outer;
        let mut modifiers = Modifiers { sides, is_absolute, is_perishable, ..Modifiers::default() };
        let mut own_sides = match self.kind {
            Kind::Pattern(_, sides) => sides,
            Kind::MergeInDirectories => return Err(NO_RULES_IN_DIRECTORIES.into()),
            Kind::Merge | Kind::Clear => Sides::None,
        };
        let names_no_side = own_sides == Sides::None;
        let is_merge = self.kind == Kind::Merge;
        for &letter in self.letters {
            match letter {
                b'/' => modifiers.is_absolute = true,
                b'p' => modifiers.is_perishable = true,
                b's' if names_no_side => own_sides = own_sides.and(Side::Sender),
                b'r' if names_no_side => own_sides = own_sides.and(Side::Receiver),
                b'!' if !is_merge => modifiers.is_negated = true,
                b'-' | b'+' if is_merge && modifiers.entries == Entries::Rules => {
                    let effect = if letter == b'-' { Effect::Exclude } else { Effect::Include };
                    modifiers.entries = Entries::Patterns(effect);
                }
                b'e' if is_merge => modifiers.hides_file = true,
                b'w' if is_merge => modifiers.splits_words = true,
                // Rules that subdirectories do not inherit: only those of dir-merge are inherited at all.
                b'n' if is_merge => {}
                b'x' => return Err(NO_EXTENDED_ATTRIBUTES.into()),
                b'C' => return Err(NO_CVS.into()),
                _ => return Err(format!("the modifier '{}' does not apply here", printable(&[letter]))),
            }
        }
        match (outer.sides, own_sides) {
            (_, Sides::None) => {}
            (Sides::None, own) => modifiers.sides = own,
            _ => return Err(TWO_SIDES.into()),
        }
        Ok(modifiers)
    }
}

/// The words of a file. A rule may be two of them: its kind and modifiers, and after one space its argument.
fn words(content: &[u8], entries: Entries) -> Vec<&[u8]> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'\x0b' | 0);
    let word = |from: usize| from + content[from..].iter().position(ends).unwrap_or(content.len() - from);
    let mut words = Vec::new();
    let mut at = 0;
    while at < content.len() {
        let mut end = word(at);
        let lacks_argument = |text: &[u8]| {
            Split::parse(text).is_ok_and(|split| split.kind != Kind::Clear && split.argument.is_none())
        };
        if entries == Entries::Rules && content.get(end) == Some(&b' ') && lacks_argument(&content[at..end]) {
            end = word(end + 1);
        }
        if end > at {
            words.push(&content[at..end]);
        }
        at = end + 1;
    }
    words
}
