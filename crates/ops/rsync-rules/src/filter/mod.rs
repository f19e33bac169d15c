//! Filter rules of rsync: which entries of a source are copied, and which entries of a destination may be
//! deleted.
//!
//! The first rule that matches an entry decides; an entry that no rule matches takes part. A rule hides
//! entries of the source, protects entries of the destination, or both. The caller asks top down and does not
//! ask about entries below a directory that is excluded.
//!
//! Most rules of long lists are plain names or paths. These are looked up by hash (`literals.rs`); only the
//! rules with wildcards that precede the rule found are tried one after the other.
//!
//! The reference is *FILTER RULES* of the manual rsync(1). Where the manual is silent or differs from rsync
//! 3.5.0, the program decides: `tests/integration/filter.rs` compares the two. Rules that rsync knows and this module
//! does not are refused: those in files of the source tree (`dir-merge`), for extended attributes (`x`), and
//! CVS's list (`C`).

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod literals;
mod parse;
mod pattern;

use std::cell::LazyCell;

pub use parse::{BadRule, ReadFile};

use literals::Literals;
use pattern::{Pattern, Text};

/// Filter rules, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    rules: Vec<Rule>,
    /// Rules that are found by the path of an entry.
    literals: Literals,
    /// Indexes of the other rules.
    others: Vec<usize>,
    unsided: Unsided,
}

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The entry takes part.
    Include,
    /// The entry does not take part.
    Exclude,
}

/// The side of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The source.
    Sender,
    /// The destination.
    Receiver,
}

/// The sides that a rule without the modifiers `s` and `r` applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsided {
    /// Both.
    #[default]
    Both,
    /// The sender's alone, as of `--delete-excluded`.
    Sender,
}

/// An entry that a filter is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Path from the root of the transfer, without a slash at either end.
    pub path: &'a [u8],
    /// Absolute path of the root of the transfer on this side, without its first and its last slash: for
    /// rules with the modifier `/`.
    pub root: &'a [u8],
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether its directory is to be deleted, so that perishable rules do not count.
    pub is_in_deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    effect: Effect,
    pattern: Pattern,
    conditions: Conditions,
    /// Whether the pattern is compared with absolute paths.
    is_absolute: bool,
    /// Whether the rule applies to entries that the pattern does not match.
    is_negated: bool,
    /// The pattern as it was written.
    written: Box<[u8]>,
}

/// The entries that a rule is tried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conditions {
    sides: Sides,
    is_perishable: bool,
}

/// The sides that a rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sides {
    #[default]
    None,
    Sender,
    Receiver,
    Both,
}

impl Filter {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules as texts for [`Filter::add_rule`], which add up to the same filter. Those of merged files
    /// are among them, so that no file has to be read again.
    pub fn rules(&self) -> impl Iterator<Item = Vec<u8>> {
        self.rules.iter().map(Rule::text)
    }

    /// Decides what rules apply to that name no side: both sides, unless this says otherwise.
    pub fn apply_unsided(&mut self, unsided: Unsided) {
        self.unsided = unsided;
    }

    /// Whether an entry takes part: is copied if it is of the source, may be deleted if it is of the
    /// destination.
    pub fn includes(&self, side: Side, subject: &Subject<'_>) -> bool {
        self.deciding(side, subject).is_none_or(|rule| rule.effect == Effect::Include)
    }

    fn deciding(&self, side: Side, subject: &Subject<'_>) -> Option<&Rule> {
        let is_tried = |rule: &Rule| rule.conditions.hold(side, self.unsided, subject);
        let is_literal = |&index: &usize| {
            let rule = &self.rules[index];
            is_tried(rule) && rule.pattern.admits(subject.is_directory)
        };
        let literal = self.literals.find(subject.path, is_literal);

        let relative = LazyCell::new(|| Text::new(&[subject.path], subject.is_directory));
        let absolute = LazyCell::new(|| Text::new(&[subject.root, subject.path], subject.is_directory));
        let is_other = |&&index: &&usize| {
            let rule = &self.rules[index];
            is_tried(rule) && rule.matches(if rule.is_absolute { &absolute } else { &relative })
        };
        let before = |&&index: &&usize| literal.is_none_or(|literal| index < literal);
        let other = self.others.iter().take_while(before).find(is_other).copied();
        other.or(literal).map(|index| &self.rules[index])
    }

    fn push(&mut self, rule: Rule) {
        let index = self.rules.len();
        match rule.pattern.literal() {
            Some((place, text)) if !rule.is_negated && !rule.is_absolute => {
                let is_same = |&earlier: &usize| {
                    let earlier = &self.rules[earlier];
                    earlier.conditions == rule.conditions && earlier.pattern == rule.pattern
                };
                self.literals.insert(place, text, index, is_same);
            }
            _ => self.others.push(index),
        }
        self.rules.push(rule);
    }

    fn clear(&mut self) {
        *self = Filter { unsided: self.unsided, ..Filter::default() };
    }
}

impl Rule {
    fn matches(&self, text: &Text) -> bool {
        self.pattern.matches(text) != self.is_negated
    }

    /// The rule as of `--filter`.
    fn text(&self) -> Vec<u8> {
        let effect = if self.effect == Effect::Include { "+" } else { "-" };
        let sides = match self.conditions.sides {
            Sides::None => "",
            Sides::Sender => "s",
            Sides::Receiver => "r",
            Sides::Both => "sr",
        };
        let letters = [(self.is_absolute, "/"), (self.is_negated, "!"), (self.conditions.is_perishable, "p")];
        let letters = letters.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter);
        let head: String = [effect, sides].into_iter().chain(letters).chain([" "]).collect();
        [head.as_bytes(), &self.written].concat()
    }
}

impl Conditions {
    fn hold(self, side: Side, unsided: Unsided, subject: &Subject<'_>) -> bool {
        self.sides.include(side, unsided) && !(self.is_perishable && subject.is_in_deleted)
    }
}

impl Sides {
    fn include(self, side: Side, unsided: Unsided) -> bool {
        match self {
            Sides::Both => true,
            Sides::Sender => side == Side::Sender,
            Sides::Receiver => side == Side::Receiver,
            Sides::None => side == Side::Sender || unsided == Unsided::Both,
        }
    }

    fn and(self, side: Side) -> Self {
        match (self, side) {
            (Sides::None | Sides::Sender, Side::Sender) => Sides::Sender,
            (Sides::None | Sides::Receiver, Side::Receiver) => Sides::Receiver,
            _ => Sides::Both,
        }
    }
}

#[cfg(test)]
mod tests;
